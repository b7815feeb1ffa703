"""BLAS threads: one where the work is small, the user's own number where it is large.

On matrices of a few hundred rows, waking a second thread costs many times the product itself. The setting
belongs to the whole process, so it is counted: the first to come in notes it, the last to leave puts it back.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
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


def threads_for(work: float) -> AbstractContextManager[None]:
    """Run the body on one BLAS thread if it has few multiply-adds (``SMALL``)."""
    return _ONE if TINY < work < SMALL else _ANY


class _OneThread(AbstractContextManager[None]):
    """One BLAS thread inside; all that are inside at once share the count, so one object will do."""

    def __enter__(self) -> None:
        global _inside, _found
        with _lock:
            if _inside == 0:
                _found = [library.get_num_threads() for library in _libraries()]
                _set([1] * len(_found))
            _inside += 1

    def __exit__(self, *error: object) -> None:
        global _inside
        with _lock:
            _inside -= 1
            if _inside == 0:
                _set(_found)


_ONE, _ANY = _OneThread(), nullcontext()


def _set(counts: list[int]) -> None:
    if max(_found, default=1) == 1:
        return  # one thread was all there was, and is
    _free_to_all()
    for library, count in zip(_libraries(), counts, strict=True):
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
