"""A desk: requests are laid down one by one, and all that lie there are worked on together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from threading import Lock
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class Desk(Generic[Asked, Answered]):
    """Requests of one kind. What comes while some are worked on waits, and is the next lot, however much it is.

    Parameters
    ----------
    pool : Executor
        Whose threads do the work: one lot at a time, and between two lots whatever else the pool has to do.
    work : callable
        Gives an answer to each of some requests. If it raises an exception, the requests are worked on one by one, and
        each gets its own answer or exception.
    for_all : exception type
        An exception of this type concerns all requests alike, and trying them one by one would only take longer.
    """

    def __init__(
        self,
        pool: Executor,
        work: Callable[[Sequence[Asked]], Sequence[Answered]],
        for_all: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:
        self._pool, self._work, self._lock = pool, work, Lock()
        self._for_all = for_all
        self._waiting: list[tuple[Asked, Future[Answered]]] = []
        self._is_busy = False

    def lay(self, request: Asked) -> Future[Answered]:
        """Lay a request down; where its answer will be."""
        answer: Future[Answered] = Future()
        with self._lock:
            self._waiting.append((request, answer))
            is_first, self._is_busy = not self._is_busy, True
        if is_first:
            self._pool.submit(self._serve)
        return answer

    def _serve(self) -> None:
        """Work on one lot, and come back for the next one if there is any."""
        with self._lock:
            lot, self._waiting = self._waiting, []
        self._answer([(asked, answer) for asked, answer in lot if answer.set_running_or_notify_cancel()])
        with self._lock:
            self._is_busy = is_more = bool(self._waiting)
        if is_more:
            self._pool.submit(self._serve)

    def _answer(self, lot: Sequence[tuple[Asked, Future[Answered]]]) -> None:
        try:
            found = self._work([asked for asked, _ in lot]) if lot else []
        except BaseException as error:  # who asked must know, whatever it is
            if len(lot) > 1 and not isinstance(error, self._for_all):
                for one in lot:
                    self._answer([one])
                return
            for _, answer in lot:
                answer.set_exception(error)
        else:
            for (_, answer), its in zip(lot, found, strict=True):
                answer.set_result(its)
