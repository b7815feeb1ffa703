"""Fits: which arrivals are fitted, and which are weighed, as a function of their number and of what they say."""

from __future__ import annotations

import copy
import logging
import math
from functools import lru_cache, partial
from typing import NamedTuple

from noregret.optimizer.model.hypotheses import FittedModels, OptimizerConfig
from noregret.optimizer.model.drift import Drift, renewal
from noregret.optimizer.model.watch import Watch
from noregret.optimizer.history import History
from noregret.optimizer.space.space import Space

LOG = logging.getLogger("noregret")


class Fitted(NamedTuple):
    """After how many arrivals the last fit was made, what it was, and how many are to be weighed together."""

    at: int
    calibrated: FittedModels
    weigh: int


class Fits:
    """The last fit, made when somebody asks for it."""

    def __init__(self, history: History, calibration: OptimizerConfig, drift: Drift) -> None:
        self._history, self._calibration = history, calibration
        self._watch = None if drift is None else Watch(history, calibration, drift)
        self._still: tuple[int, FittedModels] | None = None  # as of the last milestone, if f stays as it is

    def copy(self, history: History) -> Fits:
        """The same for a copy of the history."""
        twin = copy.copy(self)
        twin._history, twin._watch = history, None if self._watch is None else self._watch.copy(history)
        return twin

    def latest(self) -> Fitted:
        """The fit to the arrivals up to the last milestone, or since f was last found to change."""
        arrivals, calibration = len(self._history.arrivals), self._calibration
        first = max(calibration.first(self._history.space), self._history.usable)
        at = fitted_from(arrivals, self._history.usable, self._history.space, calibration)
        if self._watch is not None:
            asked_at = max(at, milestone(arrivals, first, *calibration.ask_pace))
            moving = self._watch.moving(asked_at, partial(self._if_still, at))
            if moving is not None:
                since, found = moving
                return Fitted(since, found, arrivals - (arrivals - since) % renewal(found.fit.half_life))
        weigh = max(at, milestone(arrivals, first, *calibration.refresh, calibration.longest))
        return Fitted(at, self._if_still(at), weigh)

    def _if_still(self, stop: int) -> FittedModels:
        """The fit to the first ``stop`` arrivals if f stays as it is."""
        if self._still is None or self._still[0] != stop:
            self._still = stop, self._calibration.calibrated(self._history.evidence(stop)[0])
            fit = self._still[1].fit
            LOG.debug("fitted after %d answers: noise %.3g, lengthscales %s", stop, fit.noise, fit.lengthscales)
        return self._still[1]


def fitted_from(arrivals: int, usable: int, space: Space, calibration: OptimizerConfig) -> int:
    """Number of the first arrivals that the fit is made from, if f does not change.

    Parameters
    ----------
    arrivals : int
        Number of all arrivals.
    usable : int
        Number of arrivals up to the second value.
    space : Space
        The space together with its contexts.
    calibration : OptimizerConfig
    """
    return milestone(arrivals, max(calibration.first(space), usable), *calibration.refit)


@lru_cache(maxsize=16)
def milestone(count: int, first: int, eager: int, growth: float, longest: float = math.inf) -> int:
    """The last milestone not above ``count``, or ``count`` itself before the first one.

    From one milestone m to the next it is m / eager of m, at least 1 and at most what makes it grow by ``growth``, nor
    more than ``longest``: they are close at first, when a measurement changes much and costs little, and later evenly
    spaced in ln m.
    """
    at = min(count, first)
    while (after := at + max(1, int(min(at * min(at / eager, growth - 1), longest)))) <= count:
        at = after
    return at
