"""BLAS threads: one, unless a product is large enough for the user's own number of threads to pay off.

On matrices of a few hundred rows, waking a second thread costs many times the product itself, and more on a busy core.
If the setting belongs to the whole process, entries are counted: the first one saves the setting, and the last to leave
restores it. If every Python thread has its own setting, each thread does this for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import product
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 1_000_000_000
"""Multiply-adds below which one thread does the work: about 50 ms, of which a second thread would save half."""

TINY = 8_000
"""Multiply-adds below which no BLAS wakes a second thread, so that the setting need not change."""

Switch = tuple[Callable[[], int], Callable[[int], Any]]
"""Functions that get and set the number of threads of a BLAS."""


def threads_for(work: float) -> AbstractContextManager[None]:
    """Run the body on one BLAS thread unless one of its products has many multiply-adds (``SMALL``)."""
    return _ONE if TINY < work < SMALL else _ANY


def one_thread() -> AbstractContextManager[None]:
    """Run the body on one BLAS thread."""
    return _ONE


class _OneThread(AbstractContextManager[None]):
    """Context with one BLAS thread. All entries share the counts, so one object is enough."""

    def __init__(self) -> None:
        self.lock, self.process, self.thread = threading.Lock(), _Inside(), _InsideThread()

    def __enter__(self) -> None:
        of_process, of_thread = _switches()
        with self.lock:
            self.process.enter(of_process)
        if of_thread:
            self.thread.enter(of_thread)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.process.leave()
        if _switches()[1]:
            self.thread.leave()


class _Inside:
    """Number of blocks entered and not yet left, and the settings that the first of them changed."""

    def __init__(self) -> None:
        self.count = 0
        self.changed: list[tuple[Callable[[int], Any], int]] = []  # setter of each BLAS, and its former setting

    def enter(self, switches: list[Switch]) -> None:
        if self.count == 0:
            self.changed = [(set_threads, count) for get, set_threads in switches if (count := get()) > 1]
            for set_threads, _ in self.changed:
                set_threads(1)
        self.count += 1

    def leave(self) -> None:
        self.count -= 1
        if self.count == 0:
            for set_threads, count in self.changed:
                set_threads(count)


class _InsideThread(_Inside, threading.local):
    """Separate count for every Python thread."""


_ONE, _ANY = _OneThread(), nullcontext()


@cache
def _switches() -> tuple[list[Switch], list[Switch]]:
    """Loaded BLAS libraries: those with one setting per process, and those with one setting per Python thread.

    An OpenBLAS with its own threads has one setting, and its own functions are called: those of threadpoolctl take
    several times as long, and from 3.8 on they obey only the first Python thread that calls them, but any thread may be
    the last to leave and must restore the setting. All others are set for the calling thread if possible (OpenMP is).
    Otherwise a block of one thread may end that of another, which is slower, but the setting is restored in the end.
    """
    of_process, of_thread = [], []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        own = _own_functions(library) if library.internal_api == "openblas" else None
        if own is not None and library.threading_layer != "openmp":
            of_process.append(own)
        else:
            of_thread.append((library.get_num_threads, library.set_num_threads))
    return of_process, of_thread


def _own_functions(library: Any) -> Switch | None:
    """Functions of OpenBLAS itself that get and set its number of threads; None if it has none."""
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        name = f"{prefix}openblas_{{}}_num_threads{suffix}"
        if hasattr(library.dynlib, name.format("set")):
            return getattr(library.dynlib, name.format("get")), getattr(library.dynlib, name.format("set"))
    return None
