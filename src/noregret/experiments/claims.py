"""Tests of claims: ratios of mean regrets over paired trials, with their confidence intervals.

The claim "A is below B" is about the ratio of the mean regret of A to that of B. It is as the paper says if the whole
95% interval of the ratio is below the threshold, against the paper if the whole interval is above it, and undecided if
the interval contains it. "A is no worse than B" has a threshold a little above 1. The trials are paired: A and B have
the same problem and the same noise. The interval is Fieller's: the ratios r for which a paired t test does not reject
that A - r B has mean 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from noregret.experiments.figure import Claim, Decision, Finding, Panel, Results
from noregret.experiments.summary import Interval, final_regret, fraction_interval, mean_interval

Number = Callable[[Any], float]
"""Function from a finished trial to the number that is compared."""


def decided(interval: Interval, low: float, high: float) -> Decision:
    """Decide the claim that a number is between ``low`` and ``high`` from its confidence interval.

    Examples
    --------
    >>> [decided(Interval(value, value - 0.2, value + 0.2), 0.0, 1.0) for value in (0.5, 2.0, 1.1)]
    ['as the paper says', 'against the paper', 'undecided']
    """
    if low <= interval.low and interval.high < high:
        return "as the paper says"
    return "against the paper" if interval.high < low or interval.low > high else "undecided"


def ratio_of_means(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """Ratio of the means of paired nonnegative numbers, with Fieller's interval.

    The interval extends to infinity if the second mean may be 0. It is [0, infinity] if both means may be 0.

    Examples
    --------
    >>> str(ratio_of_means([1.0, 2.0, 3.0, 4.0], [2.1, 3.9, 6.2, 7.8]))
    '0.5 [0.423, 0.53]'
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    value = float(x.mean() / y.mean()) if y.mean() else math.inf
    if len(x) < 2:
        return Interval(value, 0.0, math.inf)
    k = float(stdtrit(len(x) - 1, (1 + confidence) / 2)) ** 2 / len(x)
    (vx, cxy), (_, vy) = np.cov(x, y)
    # r with (mx - r my)^2 <= k var(x - r y): a quadratic in r
    a, b, c = y.mean() ** 2 - k * vy, x.mean() * y.mean() - k * cxy, x.mean() ** 2 - k * vx
    if a <= 0 and c <= 0:
        return Interval(value, 0.0, math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
    if a <= 0:  # (b - root) / a, written so that a may be 0
        return Interval(value, float(c / (b + root)) if b + root > 0 else math.inf, math.inf)
    return Interval(value, max(float((b - root) / a), 0.0), float((b + root) / a))


def seconds(trial: Any) -> float:
    """Seconds that a trial spent in the algorithm."""
    return float(trial.seconds)


TIME: Any = {"of": seconds, "what": "time"}
"""Arguments of `Below` and `less` that compare times."""


def less(text: str, panel: Panel, first: str, *others: str, because: str = "", unlike: str = "", **test: Any) -> Claim:
    """Claim of this text that one algorithm has less regret than each of the others; ``test`` as in `Below`."""
    return Claim(text, Below(panel.key, first, others, **test), unlike, because)


@dataclass(frozen=True)
class Below:
    """Claim that one algorithm has less of something, regret by default, than each of the others.

    It is as the paper says if the interval of every ratio is below ``bound`` and above ``above``, and against the paper
    if a whole interval is outside.
    """

    panel: str
    first: str
    others: Sequence[str]
    bound: float = 1.0
    above: float = 0.0
    of: Number = final_regret
    what: str = "regret"

    def __call__(self, results: Results) -> Finding:
        """Decide from the ratios of the first algorithm to each of the others; one refuted ratio refutes the claim."""
        numbers = {
            label: [self.of(trial) for trial in results[self.panel][label]] for label in (self.first, *self.others)
        }
        ratios = {other: ratio_of_means(numbers[self.first], numbers[other]) for other in self.others}
        outcomes = {decided(ratio, self.above, self.bound) for ratio in ratios.values()}
        order: tuple[Decision, ...] = ("against the paper", "undecided", "as the paper says")
        text = "; ".join(f"{self.first} / {other} = {ratio}" for other, ratio in ratios.items())
        needed = f"below {self.bound:.3g}" if not self.above else f"{self.above:.3g} to {self.bound:.3g}"
        return Finding(next(each for each in order if each in outcomes), f"{self.what}: {text}; {needed} needed")


@dataclass(frozen=True)
class MeanBelow:
    """Claim that the mean of a number over the trials is below ``bound``; the interval is Student's."""

    panel: str
    label: str
    of: Number
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """Decide from the mean and its interval."""
        interval = mean_interval([self.of(trial) for trial in results[self.panel][self.label]])
        outcome = decided(interval, -math.inf, self.bound)
        return Finding(outcome, f"{self.what} = {interval}; below {self.bound:.3g} needed")


@dataclass(frozen=True)
class Fraction:
    """Claim that a condition holds in more than a fraction ``bound`` of the trials of the curve ``label``.

    The interval is that of Clopper and Pearson.
    """

    panel: str
    label: str
    true: Callable[[Any], bool]
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """Decide from the fraction of the trials and its interval."""
        answers = [bool(self.true(trial)) for trial in results[self.panel][self.label]]
        n, yes = len(answers), sum(answers)
        interval = fraction_interval(yes, n)
        numbers = f"{self.what}: {yes} of {n} trials = {interval}; above {self.bound:.3g} needed"
        return Finding(decided(interval, self.bound, math.inf), numbers)
