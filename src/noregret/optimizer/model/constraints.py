"""Margins: what is believed about the number of each constraint, and how likely it is that all are met.

A constraint is measured with noise like the values are, so it gets a belief of the same kind: its own scale, kernel,
noise and trust, fitted at the same milestones. It has no logarithm, which would look closely at the best numbers, and
not where the constraint is just met. A measurement that was told without its number says nothing about it,
and neither does a failure. Heuristic: the constraints are taken for independent, given the measurements.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.model.hypotheses import FittedModels, OptimizerConfig
from noregret.optimizer.model.condensing import Belief, conditioned, essential
from noregret.optimizer.constraint import Constraint
from noregret.optimizer.model.drift import Drift, Pace, is_moving, of_now
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.transforms import Logarithms
from noregret.optimizer.history import History

OPEN = math.log(0.5)
"""Logarithm of the chance that is supposed of a constraint which has fewer than two numbers."""


FAINT = 0.01
"""What meets all constraints with less than this probability is no alternative to what is recommended."""


class Margin(NamedTuple):
    """The belief about a constraint's number less its prior mean, and the least that meets it, in standard units."""

    belief: Belief
    least: float

    def log_chance(self, mean: Floats, std: Floats) -> Floats:
        """Logarithm of the probability that the constraint is met where this is believed, (n,)."""
        return np.asarray(log_ndtr((mean - self.least) / np.maximum(std, 1e-12)))


Margins = Sequence[Margin | None]
"""One of each constraint, None where nothing is known."""


def log_chances(margins: Margins, arms: int) -> Floats:
    """Logarithm of the probability that all constraints are met, on each of so many arms of the beliefs, (arms,)."""
    return np.zeros(arms) + sum(OPEN if m is None else m.log_chance(m.belief.mean, m.belief.std) for m in margins)


def log_chances_at(margins: Margins, points: Floats) -> Floats:
    """Logarithm of the probability that all constraints are met at (n, d) points, (n,)."""
    each = [OPEN if m is None else m.log_chance(*m.belief.predict(points)) for m in margins]
    return np.zeros(len(points)) + sum(each)


def closeness(margins: Margins, arms: int, width: float) -> Floats:
    """How near each arm comes to meeting all constraints if it is as good as mean + width std, at most 0, (arms,).

    It is the sum of what is missing of each constraint, in its standard units.
    """
    known = [m for m in margins if m is not None]
    each = [np.minimum(m.belief.mean + width * m.belief.std - m.least, 0.0) for m in known]
    return np.asarray(np.zeros(arms) + sum(each))


def impossible(margins: Margins, arms: int) -> Ints:
    """Which of so many arms of the beliefs meet all constraints with a probability of less than `FAINT`."""
    return np.flatnonzero(log_chances(margins, arms) < math.log(FAINT))


class _Weighed(NamedTuple):
    """What the numbers up to a milestone amount to: a belief at the points where they were measured."""

    stop: int
    calibrated: FittedModels
    belief: Belief


class Side:
    """Keeps the belief about one constraint, on the arms of the belief about the values."""

    def __init__(
        self, history: History, calibration: OptimizerConfig, drift: Drift, index: int, constraint: Constraint
    ) -> None:
        self._history, self._calibration = history, replace(calibration, logarithms=Logarithms(gaps=()))
        self._pace = Pace(self._calibration, drift)
        self._index, self._constraint = index, constraint
        self._fitted_key = 0, False
        self._fitted: FittedModels | None = None
        self._weighed: _Weighed | None = None
        self._belief: Belief | None = None
        self._taken = 0  # arrivals that are part of the belief

    def copy(self, history: History) -> Side:
        """The same for a copy of the history."""
        twin = copy.copy(self)
        twin._history = history
        twin._belief = None if self._belief is None else self._belief.copy()
        return twin

    def measured(self, fitted_key: tuple[int, bool], draw_at: int) -> Margin | None:
        """What the first ``draw_at`` arrivals say, where they were measured.

        The key of the fit is the number of arrivals that it is to be made to, and whether what is measured may change.
        """
        if fitted_key != self._fitted_key:
            self._fitted = self._fit(*fitted_key)
            self._fitted_key, self._weighed = fitted_key, None
        if self._fitted is None:
            return None
        if self._weighed is None or self._weighed.stop != draw_at:
            self._weighed, self._belief = self._weigh(self._fitted, draw_at), None
        return self._margin(self._weighed.belief)

    def margin(
        self, fitted_key: tuple[int, bool], draw_at: int, arms: Floats, arm_of: Mapping[int, int]
    ) -> Margin | None:
        """What all arrivals say about these (N, d) arms, among which all points met since ``draw_at`` are."""
        if self.measured(fitted_key, draw_at) is None:
            return None
        assert self._weighed is not None
        if self._belief is None or self._belief.arms is not arms:
            self._belief, self._taken = self._weighed.belief.at(arms), draw_at
        for arrival in self._history.arrivals[self._taken :]:
            self._taken += 1
            number = self._constraint.sign * arrival.constraints[self._index] if arrival.constraints else math.nan
            if not math.isnan(number):
                self._take(arm_of[arrival.where], number)
        return self._margin(self._belief)

    def _evidence(self, stop: int) -> Evidence:
        return self._history.numbers(self._index, self._constraint.sign, stop)

    def _fit(self, stop: int, may_change: bool) -> FittedModels | None:
        evidence = self._evidence(stop)
        if len(evidence) < 2:
            return None
        return self._pace.calibrated(evidence, stop) if may_change else self._calibration.calibrated(evidence)

    def _weigh(self, fitted: FittedModels, stop: int) -> _Weighed:
        evidence, space = self._evidence(stop), self._history.space
        if is_moving(fitted):
            found = conditioned(fitted, of_now(fitted, evidence, stop))
            return _Weighed(stop, found.calibrated, found.posterior)
        evidence = fitted.scale.standardised(evidence)
        most = self._calibration.exact if space.count > self._calibration.candidates.few else len(evidence.points)
        found = conditioned(fitted, evidence.only(essential(fitted, evidence, most)))
        return _Weighed(stop, found.calibrated, found.posterior)

    def _margin(self, belief: Belief) -> Margin:
        assert self._weighed is not None
        scale, fit = self._weighed.calibrated.scale, self._weighed.calibrated.fit
        return Margin(belief, float(scale.standard(np.array(self._constraint.least))) - fit.centre)

    def _take(self, arm: int, number: float) -> None:
        assert self._weighed is not None
        assert self._belief is not None
        belief, mean, std = self._belief, float(self._belief.mean[arm]), float(self._belief.std[arm])
        standard, noise, trust = self._weighed.calibrated.arriving(number, math.nan, mean, std)
        belief.update(arm, standard, noise=noise**2 / (belief.ridge * trust))
