"""BLAS threads: one where the work is small, the user's own number where it is large.

On matrices of a few hundred rows, waking a second thread costs many times the product itself. The setting
belongs to the whole process, so it is counted: the first to come in notes it, the last to leave puts it back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 250_000
"""Multiply-adds below which one thread does the work: about 0.05 ms of it."""

TINY = 8_000
"""Multiply-adds below which no BLAS wakes a second thread, so that the setting need not be touched."""

_lock = threading.Lock()
_inside = 0
_found: list[int] = []


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def threads_for(work: float) -> Iterator[None]:
    """Run the body on one BLAS thread if it has few multiply-adds (``SMALL``)."""
    global _inside, _found
    if not TINY < work < SMALL:
        yield
        return
    libraries = _libraries()
    with _lock:
        if _inside == 0:
            _found = [library.get_num_threads() for library in libraries]
            _set(libraries, [1] * len(libraries))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _set(libraries, _found)


def _set(libraries: list[Any], counts: list[int]) -> None:
    if max(_found, default=1) == 1:
        return  # one thread was all there was, and is
    _free_to_all()
    for library, count in zip(libraries, counts, strict=True):
        library.set_num_threads(count)
    _free_to_all()


def _free_to_all() -> None:
    """Let every Python thread set the number: from threadpoolctl 3.8 on, only the one that did so first may.

    The last of several to leave must be able to put the setting back, and whoever comes later to change it.
    """
    for kind in _kinds():
        kind.clear_controlling_thread(force=True)


@cache
def _kinds() -> list[Any]:
    return [kind for kind in {type(library) for library in _libraries()} if hasattr(kind, "clear_controlling_thread")]
