"""BLAS threads: one, unless a product is so large that the user's own number pays even on a busy machine.

On matrices of a few hundred rows, waking a second thread costs many times the product itself, and more where another
process has the core. Where the setting belongs to the whole process it is counted: the first to come in notes it, the
last to leave puts it back. Where every Python thread has its own, every thread does so for itself.
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
"""Multiply-adds below which one thread does the work: some 50 ms of it, of which a second thread would save half."""

TINY = 8_000
"""Multiply-adds below which no BLAS wakes a second thread, so that the setting need not be touched."""

Switch = tuple[Callable[[], int], Callable[[int], Any]]
"""How to ask a BLAS for its number of threads, and how to set it."""


def threads_for(work: float) -> AbstractContextManager[None]:
    """Run the body on one BLAS thread unless one of its products has many multiply-adds (``SMALL``)."""
    return _ONE if TINY < work < SMALL else _ANY


def one_thread() -> AbstractContextManager[None]:
    """Run the body on one BLAS thread."""
    return _ONE


class _OneThread(AbstractContextManager[None]):
    """One BLAS thread inside; all that are inside at once share the counts, so one object will do."""

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
    """How many blocks are entered and not yet left, and what the first of them changed."""

    def __init__(self) -> None:
        self.count = 0
        self.changed: list[tuple[Callable[[int], Any], int]] = []  # how to set the threads of a BLAS, and their number

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
    """The same, of every Python thread for itself."""


_ONE, _ANY = _OneThread(), nullcontext()


@cache
def _switches() -> tuple[list[Switch], list[Switch]]:
    """Of every BLAS that is loaded: those whose setting the process has, and those where each thread has its own.

    An OpenBLAS with threads of its own has one setting, and its own functions are called: those of threadpoolctl take
    several times as long, and from 3.8 on they obey only the first Python thread that calls them, but whichever thread
    is the last to leave must be able to put the setting back. All others are set for the calling thread, where they
    can be (OpenMP can). Where they cannot, a block of one thread may end that of another: slower, never left changed.
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
    """How OpenBLAS itself tells and sets its number of threads, where it has the functions."""
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        name = f"{prefix}openblas_{{}}_num_threads{suffix}"
        if hasattr(library.dynlib, name.format("set")):
            return getattr(library.dynlib, name.format("get")), getattr(library.dynlib, name.format("set"))
    return None
