"""How claims are decided: ratios of mean regrets over paired trials, with their confidence intervals.

A claim "A below B" holds if the whole 95 % interval of the ratio mean regret of A / mean regret of B lies below the
bound; "A no worse than B" if it lies below a bound a little above 1. The trials are paired, A and B having met the same
problem and the same noise, and the interval is Fieller's: the ratios r for which a paired t test does not reject that A
- r B has mean 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from noregret.belief.posterior import Floats
from noregret.experiments.judging.figure import Finding, Results
from noregret.experiments.running.summary import Interval, mean_interval

Number = Callable[[Any], float]
"""From a finished trial to the number that is compared."""


def ratio_of_means(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> Interval:
    """Ratio of the means of paired numbers that are not negative, with Fieller's interval.

    Where the second mean may be 0 for all that is known, the interval goes to infinity.

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
    if a <= 0:
        return Interval(value, 0.0, math.inf)
    root = math.sqrt(max(b * b - a * c, 0.0))
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

    Holds if the interval of every ratio lies below ``bound``, and above ``above``.
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
        holds = all(self.above <= ratio.low and ratio.high < self.bound for ratio in ratios.values())
        return Finding(holds, f"{self.what}: {text}; {self._needed()} needed")

    def _numbers(self, results: Results, label: str) -> Floats:
        return np.array([self.of(trial) for trial in results[self.panel][label]])

    def _needed(self) -> str:
        return f"below {self.bound:.3g}" if not self.above else f"{self.above:.3g} to {self.bound:.3g}"


@dataclass(frozen=True)
class MeanBelow:
    """A number of every trial: holds if the 95 % interval (Student's) of its mean lies below ``bound``."""

    panel: str
    label: str
    of: Number
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """The mean and its interval."""
        interval = mean_interval([self.of(trial) for trial in results[self.panel][self.label]])
        return Finding(interval.high < self.bound, f"{self.what} = {interval}; below {self.bound:.3g} needed")


@dataclass(frozen=True)
class Fraction:
    """A yes or no in every trial: holds if it is yes in more than ``bound`` of them, with 95 % confidence.

    ``label`` is the curve whose trials are asked. The interval is that of Clopper and Pearson.
    """

    panel: str
    label: str
    true: Callable[[Any], bool]
    bound: float
    what: str

    def __call__(self, results: Results) -> Finding:
        """How often, and the lower end of the one-sided interval."""
        answers = [bool(self.true(trial)) for trial in results[self.panel][self.label]]
        n, yes = len(answers), sum(answers)
        low = float(betaincinv(yes, n - yes + 1, 0.05)) if yes else 0.0
        return Finding(low > self.bound, f"{self.what}: {yes} of {n} trials, at least {low:.0%} with 95 % confidence")
