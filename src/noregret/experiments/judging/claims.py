"""How claims are decided: ratios of mean regrets over paired trials, with their confidence intervals.

It is as the paper says that "A is below B" if the whole 95 % interval of the ratio mean regret of A / mean regret of B
lies below the threshold, against the paper if the whole interval lies above it, and undecided if the interval contains
it. "A no worse than B" has a threshold a little above 1. The trials are paired, A and B having met the same problem and
the same noise, and the interval is Fieller's: the ratios r for which a paired t test does not reject that A - r B has
mean 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from noregret.belief.posterior import Floats
from noregret.experiments.judging.figure import Decision, Finding, Results
from noregret.experiments.running.summary import Interval, fraction_interval, mean_interval

Number = Callable[[Any], float]
"""From a finished trial to the number that is compared."""


def decided(interval: Interval, low: float, high: float) -> Decision:
    """Which side of the thresholds an interval lies on; the claim is that the number is between ``low`` and ``high``.

    Examples
    --------
    >>> [decided(Interval(value, value - 0.2, value + 0.2), 0.0, 1.0) for value in (0.5, 2.0, 1.1)]
    ['as the paper says', 'against the paper', 'undecided']
    """
    if low <= interval.low and interval.high < high:
        return "as the paper says"
    return "against the paper" if interval.high < low or interval.low > high else "undecided"


def ratio_of_means(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """Ratio of the means of paired numbers that are not negative, with Fieller's interval.

    Where the second mean may be 0 for all that is known, the interval goes to infinity; where the first may be 0 too,
    it is all numbers.

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


def final_regret(trace: Any) -> float:
    """The cumulative regret of a trace after its last round."""
    return float(trace.regret.sum())


def seconds(trial: Any) -> float:
    """The seconds that a trial spent in the algorithm."""
    return float(trial.seconds)


@dataclass(frozen=True)
class Below:
    """The first algorithm has less of something (regret unless said otherwise) than each of the others.

    It is as the paper says if the interval of every ratio lies below ``bound``, and above ``above``; against the paper
    if one of them lies wholly beyond.
    """

    panel: str
    first: str
    others: Sequence[str]
    bound: float = 1.0
    above: float = 0.0
    of: Number = final_regret
    what: str = "regret"

    def __call__(self, results: Results) -> Finding:
        """Ratios of the first to each of the others."""
        first = self._numbers(results, self.first)
        ratios = {other: ratio_of_means(first, self._numbers(results, other)) for other in self.others}
        text = "; ".join(f"{self.first} / {other} = {ratio}" for other, ratio in ratios.items())
        outcomes = {decided(ratio, self.above, self.bound) for ratio in ratios.values()}
        return Finding(_all_of(outcomes), f"{self.what}: {text}; {self._needed()} needed")

    def _numbers(self, results: Results, label: str) -> Floats:
        return np.array([self.of(trial) for trial in results[self.panel][label]])

    def _needed(self) -> str:
        return f"below {self.bound:.3g}" if not self.above else f"{self.above:.3g} to {self.bound:.3g}"


@dataclass(frozen=True)
class MeanBelow:
    """The mean over the trials of some number is below ``bound``; the interval is Student's."""

    panel: str
    label: str
    of: Number
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """The mean and its interval."""
        interval = mean_interval([self.of(trial) for trial in results[self.panel][self.label]])
        outcome = decided(interval, -math.inf, self.bound)
        return Finding(outcome, f"{self.what} = {interval}; below {self.bound:.3g} needed")


@dataclass(frozen=True)
class Fraction:
    """A yes or no of every trial is yes in more than ``bound`` of them; the interval is Clopper and Pearson's.

    ``label`` is the curve whose trials are asked.
    """

    panel: str
    label: str
    true: Callable[[Any], bool]
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """How often, and the interval of the probability."""
        answers = [bool(self.true(trial)) for trial in results[self.panel][self.label]]
        n, yes = len(answers), sum(answers)
        interval = fraction_interval(yes, n)
        numbers = f"{self.what}: {yes} of {n} trials = {interval}; above {self.bound:.3g} needed"
        return Finding(decided(interval, self.bound, math.inf), numbers)


def _all_of(outcomes: set[Decision]) -> Decision:
    """What is known of several statements together: one that is refuted refutes them all."""
    if "against the paper" in outcomes:
        return "against the paper"
    return "undecided" if "undecided" in outcomes else "as the paper says"
