"""Choosers: processes for long computations, so that the server's threads do not wait for the interpreter.

The next trial is a function of a history, see `noregret.optimizer.Replay`. A chooser keeps an optimizer for each of
its studies and is sent new outcomes. It holds nothing that is not stored elsewhere: if one has died, the server
computes the same itself.

Fits are made in the background: an ask is answered from the last fit while a new one is made. Each trial stores which
answers were new to it. So a suggestion made during a fit knows of fewer answers, and can be computed again like any
other.
"""

from __future__ import annotations

import logging
import signal
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any, NamedTuple, TypeVar, cast

from noregret.gp.threads import one_thread
from noregret.optimizer import Fits, Optimizer, Reading, Replay, Trial, is_same, is_to_stop
from noregret.studies.learning.suggest import replay_of
from noregret.studies.study.study import Params, Study

LOG = logging.getLogger("uvicorn.error")
T = TypeVar("T")

NO_FITS: Fits = {}
NUMBERS = count()
"""Ids of studies in choosers."""


WAIT_SECONDS = 0.2
"""Time for which the first ask that needs a fit waits for it, unless the fitter is at work for another study. A single
client then gets trials that know of its last answer, unless the fit takes longer."""
BEHIND, BEHIND_PART = 32, 0.25
"""Number of answers, or part of those known, that a suggestion may miss. An ask that would miss more waits for the fit:
clients that answer faster than fits are made would otherwise leave the model behind for good."""


class ChooserLost(Exception):
    """The process has ended."""


class Request(NamedTuple):
    """Request to a chooser about one study."""

    study: int
    replay: Replay | None
    """Replay of the study's history; None if the chooser has it."""
    start: int
    """Number of first answers that the chooser has and that are still the first."""
    answers: Sequence[Trial]
    """The answers that follow them."""
    settled: int | None
    """Number of all answers that will stay the first, None if all will."""
    then: Callable[[Optimizer], Any] | None
    """Function that is called with the optimizer; None for the fits that its next question needs."""
    fits: Fits
    """Fits that were made for this study in another process."""
    gone: Sequence[int] = ()
    """Studies that are closed."""


class Reply(NamedTuple):
    """Reply of a chooser: its result, or its exception."""

    found: Any = None
    error: Exception | None = None


class Chooser:
    """A process that answers requests in the order in which they come. It ends when the server does, however that ends.

    The order matters: a study that sends one request after another must not keep others waiting.
    """

    def __init__(self) -> None:
        self._line, theirs = Pipe()
        self._process = Process(target=_work, args=(theirs, self._line), daemon=True)
        self._process.start()
        theirs.close()
        self._queue = ThreadPoolExecutor(1)
        self._last: Future[Any] | None = None
        self._gone: list[int] = []

    def ask(self, request: Request) -> Any:
        """Return the result, or raise the exception of the chooser; ChooserLost if the process has ended."""
        answer = self._last = self._queue.submit(self._exchange, request)
        return answer.result()

    @property
    def is_busy(self) -> bool:
        """True while there are requests without an answer."""
        return self._last is not None and not self._last.done()

    def _exchange(self, request: Request) -> Any:
        try:
            gone, self._gone = self._gone, []
            self._line.send(request._replace(gone=gone))
            reply: Reply = self._line.recv()
        except (EOFError, OSError):
            raise ChooserLost from None
        if reply.error is not None:
            raise reply.error
        return reply.found

    def forget(self, study: int) -> None:
        """Drop a closed study."""
        self._gone.append(study)

    def close(self) -> None:
        """End the process."""
        self._queue.shutdown(wait=False, cancel_futures=True)
        self._line.close()
        self._process.join()


class ModelClient:
    """Runs functions on an optimizer that knows the history of one study, in a chooser if there is one."""

    def __init__(self, replay: Replay, chooser: Chooser | None = None) -> None:
        self._replay, self._chooser, self._study = replay, chooser, next(NUMBERS)
        self._sent: list[Trial] | None = None
        if chooser is not None:
            weakref.finalize(self, chooser.forget, self._study)

    def __call__(
        self,
        answers: Sequence[Trial],
        then: Callable[[Optimizer], T] | None = None,
        settled: int | None = None,
        fits: Fits = NO_FITS,
    ) -> T:
        """Result of a function of an optimizer that knows these answers; without one, the fits that it needs.

        ``answers`` and ``settled`` are as `Replay` takes them, and ``fits`` as `Replay.made_fits` returns them.
        ``then`` and its result are sent between processes.
        """
        self._replay.remember(fits)
        if self._chooser is not None:
            start, replay = (0, self._replay) if self._sent is None else (_shared(self._sent, answers), None)
            self._sent = None
            try:
                answer: T = self._chooser.ask(Request(self._study, replay, start, answers[start:], settled, then, fits))
                self._sent = list(answers)
                return answer
            except ChooserLost:
                LOG.error("a process that chooses what to measure has ended: the server does so itself")
                self._chooser = None
        return cast(T, _result(self._replay, answers, settled, then))


def _shared(first: Sequence[Trial], second: Sequence[Trial]) -> int:
    """Number of first answers that two histories share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (one, other) in pairs if not is_same(one, other)), min(len(first), len(second)))


def _work(line: Connection, servers: Connection) -> None:
    """Answer requests until the server has ended."""
    servers.close()  # the other end of the line: once the server's is closed too, nothing more can come
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    studies: dict[int, tuple[Replay, list[Trial]]] = {}
    with suppress(EOFError, OSError), one_thread():
        while True:
            request: Request = line.recv()
            for study in request.gone:
                studies.pop(study, None)
            reply = _replied(studies, request)
            try:
                line.send(reply)
            except (OSError, EOFError):
                raise
            except Exception as error:  # it cannot be pickled
                line.send(Reply(error=RuntimeError(f"{error!r}, of {reply!r}")))


def _replied(studies: dict[int, tuple[Replay, list[Trial]]], request: Request) -> Reply:
    try:
        if request.replay is not None:
            studies[request.study] = request.replay, []
        replay, answers = studies[request.study]
        answers[request.start :] = request.answers
        replay.remember(request.fits)
        return Reply(_result(replay, answers, request.settled, request.then))
    except Exception as error:  # the server reports it, whatever it is
        return Reply(error=error)


def _result(
    replay: Replay, answers: Sequence[Trial], settled: int | None, then: Callable[[Optimizer], Any] | None
) -> Any:
    return replay.made_fits(answers) if then is None else then(replay(answers, settled=settled))


def itself(optimizer: Optimizer) -> Optimizer:
    """The optimizer, to be asked here."""
    return optimizer


def chosen(pending: Sequence[Trial], contexts: Sequence[Params | None], optimizer: Optimizer) -> list[Trial]:
    """Next trials in each of these contexts, one after another, with these trials pending."""
    for trial in pending:
        optimizer.expect(trial.params, trial.context, fidelity=trial.fidelity, number=trial.number)
    return [optimizer.ask(context=context) for context in contexts]


def judged(trial: Trial, reports: Sequence[Reading], optimizer: Optimizer) -> bool:
    """Return True if a running trial with these reports is to be stopped."""
    return is_to_stop(optimizer, trial, reports)


class Job(NamedTuple):
    """A fit in progress."""

    told: int
    """Number of answers that suggestions knew of when it began."""
    fresh: list[int]
    """Further finished trials, which it takes in."""
    made_from: int
    """Number of answers that the fit is made from."""
    deadline: float
    """Time until which asks wait for it."""
    fits: Future[Fits]


class Ready(NamedTuple):
    """Answers that a suggestion can know of now, without waiting for a fit."""

    fresh: list[int]
    """Finished trials that no earlier suggestion knew of."""
    fits: Fits
    """Needed fits that the chooser does not have."""


class Fitting:
    """The fits of one study.

    The ``fitter`` is the process that makes fits, and threads of the ``pool`` wait for it. Without one, or with drift,
    they are made where trials are chosen, and asks wait.
    """

    def __init__(self, study: Study, fitter: Chooser | None, pool: Executor) -> None:
        self._study, self._fitter, self._pool = study, fitter if study.drift is None else None, pool
        self._replay = replay_of(study)
        self._made_from = 0
        self._job: Job | None = None

    @property
    def is_busy(self) -> bool:
        """True while a fit is made."""
        job = self._job
        return job is not None and not job.fits.done()

    def ready(self, told: Sequence[Trial], fresh: list[int], new: Sequence[Trial]) -> Ready:
        """Return the answers that a suggestion can know of now.

        Earlier suggestions knew of the answers ``told``: all of them are known. ``fresh`` are the trials with further
        answers, and ``new`` these answers.
        """
        if self._fitter is None:
            return Ready(fresh, NO_FITS)
        answers = [*told, *new]
        made_from = self._replay.fitted_from(answers)
        if made_from in (0, self._made_from):
            return Ready(fresh, NO_FITS)
        if self._job is None or self._job.told != len(told):
            deadline = monotonic() + (0.0 if self._fitter.is_busy else WAIT_SECONDS)
            fits: Future[Fits] = self._pool.submit(ModelClient(replay_of(self._study), self._fitter), answers)
            self._job = Job(len(told), fresh, made_from, deadline, fits)
        job = self._job
        has_last_fit = self._replay.fitted_from(told) == self._made_from > 0
        may_go_ahead = has_last_fit and len(fresh) <= max(BEHIND, BEHIND_PART * len(told))
        try:
            fits_made = job.fits.result(max(job.deadline - monotonic(), 0.0) if may_go_ahead else None)
        except TimeoutError:
            return Ready([], NO_FITS)
        except BaseException:
            self._job = None
            raise
        self._job, self._made_from = None, job.made_from
        return Ready(job.fresh, fits_made)
