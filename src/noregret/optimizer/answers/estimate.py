"""Estimate of a setting, and the gain of one setting over another."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from noregret.formatting import as_precise_as, number, shown
from noregret.gp.posterior import Floats
from noregret.optimizer.answers.certificate import Certificate
from noregret.optimizer.answers.changes import ChangedParameter, Reversions
from noregret.optimizer.answers.paired import MeasuredGain, Percent
from noregret.optimizer.measures import Goal
from noregret.optimizer.model.evidence import LEVEL


@dataclass(frozen=True, repr=False)
class Estimate:
    """Estimate of the value of some params.

    Parameters
    ----------
    params
    estimate : float
        The expected value.
    lower, upper : float
        The true value lies between them with probability ``level``.
    level : float
    feasible : float
        The probability that all constraints are met, 1 without any.
    is_likeliest : bool
        Whether it was recommended although it is not likely to meet all constraints, as nothing else is.
    cost : float or None
        Median of the predicted cost of one measurement, in `Optimizer.predict` if costs are known; None if not.
    promising : ChangedParameter or None
        The most promising change, if the baseline is recommended because noise alone may explain the values.
    """

    params: Any
    estimate: float
    lower: float
    upper: float
    level: float = LEVEL
    feasible: float = 1.0
    """Certain where there are no constraints."""
    _certificate: Certificate | None = field(default=None, repr=False, compare=False)
    _reversions: Reversions | None = field(default=None, repr=False, compare=False)
    _point: Floats | None = field(default=None, repr=False, compare=False)
    _is_best: bool = field(default=False, repr=False, compare=False)
    is_likeliest: bool = field(default=False, repr=False, compare=False)
    cost: float | None = field(default=None, repr=False, compare=False)
    promising: ChangedParameter | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """As ``Estimate: 0.123 (0.061 to 0.167, at 95%) of {rate: 0.01235}``, with the digits that it supports."""
        middle, low, high = (as_precise_as(self.lower, self.upper, n) for n in (self.estimate, self.lower, self.upper))
        interval = f" ({low} to {high}, at {100 * self.level:g}%)" if math.isfinite(self.upper - self.lower) else ""
        feasible = f", feasible with probability {chance_in_words(self.feasible)}" if self.feasible < 1 else ""
        note = " <nothing is likely to meet all constraints: this is the likeliest>" if self.is_likeliest else ""
        if self._is_best and self.has_gap:
            note += f" <{self.remaining_in_words()}>"
        return f"Estimate: {middle}{interval} of {shown(self.params)}{feasible}{note}"

    def as_likeliest(self) -> Estimate:
        """Copy that says: recommended although it is not likely to meet all constraints, as nothing else is."""
        return replace(self, is_likeliest=True, _certificate=None)

    @property
    def has_gap(self) -> bool:
        """True if `gap` says anything: after the first fit, if this setting is likely feasible."""
        return self._certificate is not None

    @cached_property
    def remaining(self) -> float:
        """Improvement that is left to gain by another setting, by the model, with probability ``level``.

        In the units of the values, under the worst of the models that the observations do not refute. A heuristic:
        it says nothing about hills that are narrower than `narrowest`. Infinite before the first fit, while noise alone
        may explain the values, and where nothing is likely to meet the constraints. Computed when it is first looked
        at, as of when the estimate was made.
        """
        if self._certificate is None or self._point is None:
            return math.inf
        return self._certificate.remaining(self._point, self.level)

    @cached_property
    def _likely(self) -> float:
        """As `remaining`, at 50%."""
        assert self._certificate is not None
        assert self._point is not None
        return self._certificate.remaining(self._point, 0.5)

    @property
    def narrowest(self) -> float:
        """Width of the narrowest hill that `remaining` speaks of, as a part of each range; 1 if it is infinite."""
        return self._certificate.narrowest if self._certificate and math.isfinite(self.remaining) else 1.0

    def remaining_in_words(self, unit: str = "") -> str:
        """As ``by the model, at most 0.8% left to gain (95%), if no hill is narrower than 0.2 of each range``.

        A percentage of the estimate, if that is not near 0. Where that would be more than 100%, it is the size with
        what is left to gain at 50%, if that is less.
        """
        level = f"({100 * self.level:g}%)"
        if math.isinf(self.remaining):
            return "no setting is shown to be better than another: noise alone may explain the results"
        condition = f", if no hill is narrower than {number(self.narrowest, 1)} of each range"
        if self.remaining <= 0:
            return f"by the model, nothing is left to gain {level}{condition}"
        if self.lower < 0 <= self.upper or not self.estimate:
            return f"by the model, at most {number(self.remaining, 2)}{unit} left to gain {level}{condition}"
        if self.remaining >= abs(self.estimate):
            most = f"up to {number(self.remaining, 2)}{unit} {level}, more than the estimate itself"
            if self._likely >= abs(self.estimate):
                return f"by the model, other settings may be better by {most}: too few are measured"
            likely = f"likely at most {number(100 * self._likely / abs(self.estimate), 2)}% left to gain (50%)"
            return f"by the model, {likely}, but {most}, is not excluded"
        percent = number(100 * self.remaining / abs(self.estimate), 2)
        return f"by the model, at most {percent}% left to gain {level}{condition}"

    @cached_property
    def gap(self) -> float:
        """Largest improvement that another setting may bring, in the units of the values, with probability ``level``.

        It is infinite before the first fit, while too many settings are unexplored, and where nothing is likely to
        meet the constraints. Computed when it is first looked at, as of when the estimate was made.
        """
        if self._certificate is None or self._point is None:
            return math.inf
        return self._certificate.gap(self._point)

    @cached_property
    def changes(self) -> list[ChangedParameter]:
        """Parameters whose recommended value is not the baseline's, and what each change is worth, the largest first.

        Empty without a baseline. A parameter that applies only because of another change belongs to that one.
        """
        if self._reversions is None or self._point is None:
            return []
        return self._reversions.changes(self._point)


def chance_in_words(probability: float) -> str:
    """A probability to two digits, and less than 0.01 where it is.

    >>> chance_in_words(0.953), chance_in_words(1e-30)
    ('0.95', 'less than 0.01')
    """
    return f"{probability:.2f}" if probability >= 0.01 else "less than 0.01"


@dataclass(frozen=True)
class Gain:
    """Improvement of the recommended setting on the baseline, in the units of the values; above 0 is better.

    Parameters
    ----------
    estimate : float
    lower, upper : float
        The true difference lies between them with probability ``level``. It is the interval of the difference: what
        the two settings have in common does not widen it.
    best, baseline : Estimate
    goal : "minimize" or "maximize"
    level : float
    relative : (float, float), optional
        The ends of the interval of the gain as a part of the baseline's true size. Without them ``lower`` and ``upper``
        are divided by the baseline's estimate.
    measured : MeasuredGain, optional
        What paired runs of the two show, valid after selection and at every look; None with too few pairs.
    is_positive : bool, optional
        Whether all observations are above 0, as those of a rate: then the baseline's estimate is not taken for 0, even
        if its interval reaches 0.
    """

    estimate: float
    lower: float
    upper: float
    best: Estimate
    baseline: Estimate
    goal: Goal
    level: float = LEVEL
    relative: tuple[float, float] | None = None
    measured: MeasuredGain | None = None
    is_positive: bool = False

    def within(self, low: float, high: float) -> Gain:
        """The gain if both values are from low to high: a time gets at most 100% lower.

        The difference of two values is at most the upper end of the first less the least value, and so on. A gain in
        percent is unclear if the best may be of either sign.
        """
        is_lower, relative = self.goal == "minimize", self.relative
        larger, smaller = (self.baseline, self.best) if is_lower else (self.best, self.baseline)
        lower = max(self.lower, low - smaller.upper, larger.lower - high)
        upper = min(self.upper, larger.upper - low, high - smaller.lower)
        if low >= 0 and relative is not None and math.isfinite(relative[1]):
            relative = (min(relative[0], 1), min(relative[1], 1)) if is_lower else (max(relative[0], -1), relative[1])
        elif low < 0 and relative is not None:
            at_zero = 1.0 if is_lower == (self.baseline.estimate > 0) else -1.0  # the relative gain of a best that is 0
            relative = (-math.inf, math.inf) if relative[0] < at_zero < relative[1] else relative
        return replace(self, lower=min(lower, self.estimate), upper=max(upper, self.estimate), relative=relative)

    @property
    def percent(self) -> Percent | None:
        """In percent of the size of the baseline; None if the baseline may be 0, or of either sign.

        Its ends are those of a ratio. So 84% lower is never "between 61% and 120%": nothing that is positive
        can be 120% lower than something else. Where only noise makes a baseline reach 0 that cannot be 0, they are
        parts of its estimate.
        """
        is_unclear = self.baseline.lower <= 0 <= self.baseline.upper
        if is_unclear and not (self.is_positive and self.baseline.estimate > 0 and math.isfinite(self.upper)):
            return None
        size = abs(self.baseline.estimate)
        estimate = self.estimate / size
        lower, upper = self.lower / size, self.upper / size
        if is_unclear:
            lower, upper = (lower, min(upper, 1.0)) if self.goal == "minimize" else (max(lower, -1.0), upper)
        elif self.relative:
            lower, upper = self.relative
        if math.isinf(upper):
            return None
        return Percent(100 * estimate, 100 * min(lower, estimate), 100 * max(upper, estimate))

    @property
    def is_shown(self) -> bool:
        """True if the recommended setting is shown to be better than the baseline, at ``level``.

        By the pairs of runs, or where these do not tell by the model.
        """
        measured = self.measured
        if measured is not None and (measured.lower > 0 or measured.upper < 0):
            return measured.lower > 0
        return self.lower > 0

    def __str__(self) -> str:
        """As ``18% lower than your settings (between 12% and 23%, at 95%)``; if that is not shown, it says so first.

        What was measured in pairs comes before it.
        """
        if self.best is self.baseline:
            change = self.best.promising
            if change is None:
                return "your settings are the best that is known"
            which = f"{change.name} {shown(change.before)} -> {shown(change.after)}"
            return f"nothing is shown to be better than your settings; most promising: {which}"
        words = ("lower", "higher") if self.goal == "minimize" else ("higher", "lower")
        percent, unit = (self.percent, "%") if self.percent else (self, "")
        both = percent.lower < 0 < percent.upper
        order = (lambda end: words[end < 0] == "higher") if both else abs
        ends = [_said(end, unit, words if both else None) for end in sorted((percent.lower, percent.upper), key=order)]
        interval = f"(between {ends[0]} and {ends[1]}, at {100 * self.level:g}%)"
        middle = _said(percent.estimate, unit, words)
        if self.measured:
            level = f"(at {100 * self.measured.level:g}%)"
            said = f"{self.measured} than your settings {level}; by the model {middle} {interval}"
            said = said if self.is_shown else f"not shown to be better than your settings: {said}"
        elif self.is_shown:
            said = f"{middle} than your settings {interval}"
        else:
            said = f"not shown to be better than your settings: {middle} {interval}"
        if self.baseline.feasible < 0.5:
            chance = chance_in_words(self.baseline.feasible)
            said += f"; your settings meet the constraints with a probability of {chance}"
        return said


def _said(value: float, unit: str, words: tuple[str, str] | None) -> str:
    """The size of a number with its unit, whole or to two digits, and which of the words it deserves."""
    word = "" if words is None else f" {words[value < 0]}"
    size = number(round(abs(value)), 9) if 10 <= abs(value) < math.inf else number(abs(value), 2)
    return f"{size}{unit}{word}"
