"""Summaries of many trials: one row per algorithm, and confidence intervals of means and fractions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, stdtrit

from noregret.experiments.trace import Trace
from noregret.formatting import number


class Row(NamedTuple):
    """Mean regret and time of one algorithm."""

    algorithm: str
    trials: int
    regret: float
    """Cumulative regret at the end, mean over the trials."""
    sd: float
    """Standard deviation of the final cumulative regret over the trials; nan if there is only one trial."""
    microseconds: float
    """Microseconds per round spent in the algorithm."""


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{number(self.value, 3)} [{number(self.low, 3)}, {number(self.high, 3)}]"


def mean_interval(values: ArrayLike) -> Interval:
    """Mean of (n,) values with its 95% interval by Student's t, unbounded for a single value.

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
    """Fraction of trials with the answer yes, with the 95% interval of Clopper and Pearson.

    Examples
    --------
    >>> str(fraction_interval(198, 200))
    '0.99 [0.964, 0.999]'
    """
    no = trials - yes
    low = float(betaincinv(yes, no + 1, 0.025)) if yes else 0.0
    return Interval(yes / trials, low, float(betaincinv(yes + 1, no, 0.975)) if no else 1.0)


def final_regret(trace: Any) -> float:
    """Cumulative regret of a trace after its last round."""
    return float(trace.regret.sum())


def summarise(traces_by_name: Mapping[str, Sequence[Trace]]) -> list[Row]:
    """Return one row per algorithm, the smallest regret first.

    Examples
    --------
    >>> import numpy as np
    >>> from noregret.experiments.trace import Trace
    >>> def trace(*regret):
    ...     return Trace(np.zeros(2, int), np.zeros(2), np.array(regret), 1e-5, "mine", "toy", {})
    >>> summarise({"mine": [trace(1.0, 0.0), trace(1.0, 2.0)]})
    [Row(algorithm='mine', trials=2, regret=2.0, sd=1.4142135623730951, microseconds=5.0)]
    """
    rows = []
    for name, traces in traces_by_name.items():
        if not traces:
            raise ValueError(f"every algorithm needs at least one trace, {name} has none")
        regret = np.array([final_regret(trace) for trace in traces])
        sd = float(regret.std(ddof=1)) if len(traces) > 1 else float("nan")
        microseconds = 1e6 * sum(t.seconds for t in traces) / sum(len(t.regret) for t in traces)
        rows.append(Row(name, len(traces), float(regret.mean()), sd, microseconds))
    return sorted(rows, key=lambda row: (row.regret, row.algorithm))
