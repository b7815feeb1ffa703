"""Watch: when it is asked how fast f changes, and what the answer was.

It is asked at milestones of the number of arrivals, and at once when answers are strange: the last `LAST` of them lie,
on average, farther from what was believed when it was last asked than `STRANGE` allows. So the answer depends on the
arrivals alone, and not on when somebody looks: after a restart only those since the last milestone are gone through.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats
from noregret.optimizer.model.hypotheses import MANY_SMALL_STEPS, FittedModels, OptimizerConfig
from noregret.optimizer.model.condensing import Conditioned, conditioned
from noregret.optimizer.model.drift import ENOUGH, Drift, Pace, is_moving, looked_at, of_now
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.history import History

LAST = 5
"""So many answers in a row are looked at together."""

FARTHEST = 4.0
"""No answer counts as farther off than so many standard deviations: one that is absurd is no sign of change."""

STRANGE = 5.0
"""The mean of their squared distances, in standard deviations, from which answers are strange.

For Gaussians that are as well known as they seem it is passed once in 7,000 times.
"""


class Watch:
    """Whether f changes, as a function of the history alone."""

    def __init__(self, history: History, calibration: OptimizerConfig, drift: Drift) -> None:
        self._history, self._pace = history, Pace(calibration, drift)
        self._base = self._at = 0  # the last milestone, and when it was last asked
        self._found: FittedModels | None = None  # with a finite half-life, or None
        self._believed: Conditioned | None = None  # when it was last asked
        self._squares: list[float] = []  # how strange each answer since then was

    def copy(self, history: History) -> Watch:
        """The same for a copy of the history."""
        twin = copy.copy(self)
        twin._history, twin._squares = history, list(self._squares)
        return twin

    def moving(self, base: int, still: Callable[[], FittedModels]) -> tuple[int, FittedModels] | None:
        """After how many arrivals f was last found to change, and how; None if it was found to stay.

        ``base`` is the last milestone, and ``still`` the calibration of one who believes that f stays.
        """
        if base != self._base:
            self._base = base
            self._ask(base, still)
        while self._believed is not None and (strange := self._strange()):
            self._ask(strange, None)
        return None if self._found is None else (self._at, self._found)

    def _ask(self, stop: int, still: Callable[[], FittedModels] | None) -> None:
        """How fast f changes, after the first ``stop`` arrivals; a glance may be enough where ``still`` is given."""
        self._at, self._found, self._believed, self._squares = stop, None, None, []
        evidence = self._history.evidence(stop)[0]
        if self._pace.half_life is None and len(evidence) < ENOUGH:
            return
        with threads_for(MANY_SMALL_STEPS):
            is_likely = still is None or self._pace.is_likely(evidence, stop)
            found = self._pace.calibrated(evidence, stop) if is_likely or still is None else still()
            self._found = found if is_moving(found) else None
            self._believed = conditioned(found, self._telling(found, evidence, stop))

    def _telling(self, found: FittedModels, evidence: Evidence, stop: int) -> Evidence:
        """What the belief that answers are compared with is made of."""
        if is_moving(found):
            return of_now(found, evidence, stop)
        return found.scale.standardised(evidence.chosen(looked_at(evidence)))

    def _strange(self) -> int | None:
        """After how many arrivals the last ones were strange for the first time since it was last asked."""
        begin, arrivals = self._at + len(self._squares), self._history.arrivals
        if begin < len(arrivals):
            self._squares += self._surprises(begin).tolist()
            sums = np.convolve(self._squares, np.ones(LAST), "full")[: len(self._squares)]
            late = np.flatnonzero(sums >= STRANGE * LAST)
            return self._at + int(late[0]) + 1 if late.size else None
        return None

    def _surprises(self, begin: int) -> Floats:
        """The squared distance of each arrival from ``begin`` on from what was believed, 0 for a failure."""
        assert self._believed is not None
        (calibrated, *_), arrivals = self._believed, self._history.arrivals[begin:]
        squares = np.zeros(len(arrivals))
        good = [i for i, arrival in enumerate(arrivals) if not arrival.failed]
        if good:
            points = self._history.points[[arrivals[i].where for i in good]]
            mean, std = self._believed.posterior.predict(points)
            squares[good] = [
                calibrated.distance(arrivals[i].value, arrivals[i].noise, *at) ** 2
                for i, *at in zip(good, mean.tolist(), std.tolist(), strict=True)
            ]
        return np.minimum(squares, FARTHEST**2)
