"""Fits in the background: an ask is answered from the last fit while a new one is made.

A suggestion knows of the answers that it was chosen from, and each trial stores which of them are new. So a suggestion
that was made while a fit was under way is one that knows of fewer answers, and can be computed again like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from time import monotonic
from typing import NamedTuple

from noregret.integrations.replay import Answer, Fits
from noregret.tune.service.choosing.choosers import NO_FITS, Chooser, Guide, made_fits
from noregret.tune.service.served import Served, replay_of

WAIT_SECONDS = 0.2
"""How long the first ask that needs a fit waits for it. A client that is alone is then asked questions that know of its
last answer, unless the fit takes longer."""
BEHIND, BEHIND_PART = 32, 0.25
"""How many answers, or what part of those known, a suggestion may not know of. An ask that would miss more waits for
the fit: clients that answer faster than fits are made would otherwise leave the model behind for good."""


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
    study : Served
    fitter : Chooser, optional
        The process that makes fits. Without one, or if what is best may change, they are made where questions are
        chosen, and asks wait for them.
    pool : Executor
        Its threads wait for the fitter.
    """

    def __init__(self, study: Served, fitter: Chooser | None, pool: Executor) -> None:
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
            fits = self._pool.submit(Guide(replay_of(self._study), self._fitter), answers, made_fits)
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
