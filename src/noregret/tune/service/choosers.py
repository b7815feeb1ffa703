"""Choosers: processes of their own for what takes long, so that nobody waits for the interpreter meanwhile.

What to measure next is a function of a history, see `noregret.integrations.replay`. A chooser keeps an optimizer for
each of its studies and is sent what is new. It has nothing that is not stored elsewhere: where one has died, the server
computes the same itself.
"""

from __future__ import annotations

import logging
import signal
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from itertools import count
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from noregret.belief.numerics.threads import one_thread
from noregret.integrations.replay import Fits, Remembering, Replay
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.trials import Answer
from noregret.tune.learning.suggest import replay_of
from noregret.tune.service.served import ServiceStudy
from noregret.tune.study.study import Params

LOG = logging.getLogger("uvicorn.error")
T = TypeVar("T")
Measured = tuple[Params, Params | None]
"""Params, and the context that they are measured in."""

NO_FITS: Fits = {}
NUMBERS = count()
"""What studies are called in choosers."""


WAIT_SECONDS = 0.2
"""How long the first ask that needs a fit waits for it. A client that is alone is then asked questions that know of its
last answer, unless the fit takes longer."""
BEHIND, BEHIND_PART = 32, 0.25
"""How many answers, or what part of those known, a suggestion may not know of. An ask that would miss more waits for
the fit: clients that answer faster than fits are made would otherwise leave the model behind for good."""


class ChooserLost(Exception):
    """The process has ended."""


class Request(NamedTuple):
    """What is asked of a chooser about one study."""

    study: int
    replay: Replay | None
    """What leads an optimizer through the history; None where the chooser has it."""
    start: int
    """How many of the answers that the chooser has are the first ones still."""
    answers: Sequence[Answer]
    """Those that follow."""
    settled: int | None
    """How many of all will stay the first, None if all will."""
    then: Callable[[Optimizer], Any]
    """What is asked of the optimizer."""
    fits: Fits
    """Fits that were made for this study in another process."""
    gone: Sequence[int]
    """Studies that nobody will ask about again."""


class Reply(NamedTuple):
    """What a chooser says: what it found, or what was raised."""

    found: Any = None
    error: Exception | None = None


class Chooser:
    """A process that answers requests, one at a time. It ends when the server does, however that ends."""

    def __init__(self) -> None:
        self._line, theirs = Pipe()
        self._process = Process(target=_work, args=(theirs, self._line), daemon=True)
        self._process.start()
        theirs.close()
        self._lock = Lock()
        self._gone: list[int] = []

    def ask(self, request: Request) -> Any:
        """What was found; what was raised there is raised here, and ChooserLost if the process has ended."""
        try:
            with self._lock:
                gone, self._gone = self._gone, []
                self._line.send(request._replace(gone=gone))
                reply: Reply = self._line.recv()
        except (EOFError, OSError):
            raise ChooserLost from None
        if reply.error is not None:
            raise reply.error
        return reply.found

    def forget(self, study: int) -> None:
        """Nobody will ask about this study again."""
        self._gone.append(study)

    def close(self) -> None:
        """End the process."""
        self._line.close()
        self._process.join()


class ModelClient:
    """Leads an optimizer to where the history of one study has led, in a chooser if there is one.

    Parameters
    ----------
    replay : Replay
        What does it.
    chooser : Chooser, optional
    """

    def __init__(self, replay: Replay, chooser: Chooser | None = None) -> None:
        self._replay, self._chooser, self._study = replay, chooser, next(NUMBERS)
        self._sent: list[Answer] | None = None
        if chooser is not None:
            weakref.finalize(self, chooser.forget, self._study)

    def __call__(
        self,
        answers: Sequence[Answer],
        then: Callable[[Optimizer], T],
        settled: int | None = None,
        fits: Fits = NO_FITS,
    ) -> T:
        """What a function says about an optimizer that is told these answers.

        Parameters
        ----------
        answers, settled
            As `Replay` takes them.
        then : callable Optimizer -> anything
            It and what it gives travel between processes.
        fits : Fits
            Fits that need not be made, as `made_fits` gives them.
        """
        self._replay.remember(fits)
        if self._chooser is not None:
            try:
                return self._asked(self._chooser, answers, then, settled, fits)
            except ChooserLost:
                LOG.warning("a process that chooses what to measure has ended: the server does so itself")
                self._chooser = None
        return then(self._replay(answers, settled=settled))

    def _asked(
        self,
        chooser: Chooser,
        answers: Sequence[Answer],
        then: Callable[[Optimizer], T],
        settled: int | None,
        fits: Fits,
    ) -> T:
        start, replay = (0, self._replay) if self._sent is None else (_shared(self._sent, answers), None)
        self._sent = None
        found: T = chooser.ask(Request(self._study, replay, start, answers[start:], settled, then, fits, ()))
        self._sent = list(answers)
        return found


def _shared(first: Sequence[Answer], second: Sequence[Answer]) -> int:
    """How many answers two histories begin with in common."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (one, other) in pairs if one is not other and one != other), min(len(first), len(second)))


class _Session(NamedTuple):
    """A study of a chooser, and the answers of its history."""

    replay: Replay
    answers: list[Answer]


def _work(line: Connection, servers: Connection) -> None:
    """Answer requests until there is no server any more."""
    servers.close()  # the other end of the line: once the server's is closed too, nothing more can come
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    studies: dict[int, _Session] = {}
    with suppress(EOFError, OSError), one_thread():
        while True:
            request: Request = line.recv()
            for study in request.gone:
                studies.pop(study, None)
            _send(line, _replied(studies, request))


def _replied(studies: dict[int, _Session], request: Request) -> Reply:
    try:
        session = studies.get(request.study)
        if request.replay is not None or session is None:
            assert request.replay is not None
            session = studies[request.study] = _Session(request.replay, [])
        session.answers[request.start :] = request.answers
        session.replay.remember(request.fits)
        return Reply(request.then(session.replay(session.answers, settled=request.settled)))
    except Exception as error:  # who asked must know, whatever it is
        return Reply(error=error)


def _send(line: Connection, reply: Reply) -> None:
    try:
        line.send(reply)
    except (OSError, EOFError):
        raise
    except Exception as error:  # it does not travel
        line.send(Reply(error=RuntimeError(f"{error!r}, of {reply!r}")))


def itself(optimizer: Optimizer) -> Optimizer:
    """The optimizer, to be asked here."""
    return optimizer


def made_fits(optimizer: Optimizer) -> Fits:
    """The fits that an optimizer of a `Replay` needs for its next question."""
    assert isinstance(optimizer.calibration, Remembering)
    return optimizer.calibration.fits


def chosen(pending: Sequence[Measured], contexts: Sequence[Params | None], optimizer: Optimizer) -> list[Params]:
    """What to measure next in each of these contexts, one after another, while these are being measured."""
    for params, context in pending:
        optimizer.expect(params, context)
    return [optimizer.ask(context=context).params for context in contexts]


class Job(NamedTuple):
    """A fit that is under way."""

    told: int
    """Number of answers that suggestions knew of when it began."""
    fresh: list[int]
    """Trials with further answers, which it takes in."""
    made_from: int
    """Number of answers that the fit is made from."""
    deadline: float
    """Until when asks wait for it."""
    fits: Future[Fits]


class Ready(NamedTuple):
    """What a suggestion can know of now, without a fit that it would have to wait for."""

    fresh: list[int]
    """Trials with answers that no earlier suggestion knew of."""
    fits: Fits
    """The fits that are needed and that the chooser does not have."""


class Fitting:
    """The fits of one study.

    Parameters
    ----------
    study : ServiceStudy
    fitter : Chooser, optional
        The process that makes fits. Without one, or if what is best may change, they are made where questions are
        chosen, and asks wait for them.
    pool : Executor
        Its threads wait for the fitter.
    """

    def __init__(self, study: ServiceStudy, fitter: Chooser | None, pool: Executor) -> None:
        self._study, self._fitter, self._pool = study, fitter if study.drift is None else None, pool
        self._replay = replay_of(study)
        self._made_from = 0
        self._job: Job | None = None

    def ready(self, told: Sequence[Answer], fresh: list[int], new: Sequence[Answer]) -> Ready:
        """Which answers a suggestion can know of now.

        Parameters
        ----------
        told : sequence of Answer
            The answers that earlier suggestions knew of. All of them are known.
        fresh : list of int
            The trials with further answers.
        new : sequence of Answer
            These answers.
        """
        if self._fitter is None:
            return Ready(fresh, NO_FITS)
        answers = [*told, *new]
        made_from = self._replay.fitted_from(answers)
        if made_from in (0, self._made_from):
            return Ready(fresh, NO_FITS)
        if self._job is None or self._job.told != len(told):
            fits = self._pool.submit(ModelClient(replay_of(self._study), self._fitter), answers, made_fits)
            self._job = Job(len(told), fresh, made_from, monotonic() + WAIT_SECONDS, fits)
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
