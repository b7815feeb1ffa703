"""Summary: many traces as one small table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from noregret.experiments.running.trace import Trace


class Row(NamedTuple):
    """The regret and the time of one algorithm."""

    algorithm: str
    trials: int
    regret: float
    """Cumulative regret at the end, mean over the trials."""
    sd: float
    """Standard deviation of the final cumulative regret over the trials; nan if there is only one trial."""
    microseconds: float
    """Microseconds per round spent in the algorithm."""


class Interval(NamedTuple):
    """A number that was estimated, and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean_interval(values: ArrayLike) -> Interval:
    """The mean of (n,) values, and the 95 % interval of Student's t: all numbers, if there is only one value.

    Examples
    --------
    >>> str(mean_interval([1.0, 2.0, 3.0]))
    '2 [-0.484, 4.48]'
    """
    numbers = np.asarray(values, dtype=float)
    mean, n = float(numbers.mean()), numbers.size
    half_width = math.inf if n < 2 else float(stdtrit(n - 1, 0.975) * numbers.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half_width, mean + half_width)


def fraction_interval(yes: int, trials: int) -> Interval:
    """The share of trials that said yes, and the 95 % interval of Clopper and Pearson for its probability.

    Examples
    --------
    >>> str(fraction_interval(198, 200))
    '0.99 [0.964, 0.999]'
    """
    no = trials - yes
    low = float(betaincinv(yes, no + 1, 0.025)) if yes else 0.0
    return Interval(yes / trials, low, float(betaincinv(yes + 1, no, 0.975)) if no else 1.0)


def summarise(traces_by_name: Mapping[str, Sequence[Trace]]) -> list[Row]:
    """Return one row per algorithm, the smallest regret first.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret.experiments.running.trace import Trace
    >>> def trace(*regret):
    ...     return Trace(np.zeros(2, int), np.zeros(2), np.array(regret), 1e-5, "mine", "toy", {})
    >>> summarise({"mine": [trace(1.0, 0.0), trace(1.0, 2.0)]})
    [Row(algorithm='mine', trials=2, regret=2.0, sd=1.4142135623730951, microseconds=5.0)]
    """
    return sorted((_row(*item) for item in traces_by_name.items()), key=lambda row: (row.regret, row.algorithm))


def _row(name: str, traces: Sequence[Trace]) -> Row:
    if not traces:
        raise ValueError(f"every algorithm needs at least one trace, {name} has none")
    regret = np.array([trace.regret.sum() for trace in traces])
    sd = float(regret.std(ddof=1)) if len(traces) > 1 else float("nan")
    microseconds = 1e6 * sum(t.seconds for t in traces) / sum(len(t.regret) for t in traces)
    return Row(name, len(traces), float(regret.mean()), sd, microseconds)
