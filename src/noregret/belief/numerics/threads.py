"""BLAS threads: one, unless a product is so large that the user's own number pays even on a busy machine.

On matrices of a few hundred rows, waking a second thread costs many times the product itself, and more where another
process has the core. The setting belongs to the whole process, so it is counted: the first to come in notes it, the
last to leave puts it back.
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

_lock = threading.Lock()
_inside = 0
_changed: list[tuple[Callable[[int], Any], int]] = []
"""How to set the threads of each BLAS that was found with more than one, and their number."""


def threads_for(work: float) -> AbstractContextManager[None]:
    """Run the body on one BLAS thread unless one of its products has many multiply-adds (``SMALL``)."""
    return _ONE if TINY < work < SMALL else _ANY


def one_thread() -> AbstractContextManager[None]:
    """Run the body on one BLAS thread."""
    return _ONE


class _OneThread(AbstractContextManager[None]):
    """One BLAS thread inside; all that are inside at once share the count, so one object will do."""

    def __enter__(self) -> None:
        global _inside, _changed
        with _lock:
            if _inside == 0:
                _changed = [(set_threads, count) for get, set_threads in _switches() if (count := get()) > 1]
                for set_threads, _ in _changed:
                    set_threads(1)
            _inside += 1

    def __exit__(self, *error: object) -> None:
        global _inside
        with _lock:
            _inside -= 1
            if _inside == 0:
                for set_threads, count in _changed:
                    set_threads(count)


_ONE, _ANY = _OneThread(), nullcontext()


@cache
def _switches() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """For every BLAS that is loaded, how to ask for its number of threads and how to set it."""
    return [_switch(library) for library in ThreadpoolController().select(user_api="blas").lib_controllers]


def _switch(library: Any) -> tuple[Callable[[], int], Callable[[int], Any]]:
    """OpenBLAS's own functions, where it has them.

    Those of threadpoolctl take several times as long, and from 3.8 on they obey only the first Python thread that
    calls them; but whichever thread is the last to leave must be able to put the setting back.
    """
    if library.internal_api == "openblas" and library.threading_layer != "openmp":
        for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
            name = f"{prefix}openblas_{{}}_num_threads{suffix}"
            if hasattr(library.dynlib, name.format("set")):
                return getattr(library.dynlib, name.format("get")), getattr(library.dynlib, name.format("set"))
    return library.get_num_threads, library.set_num_threads
