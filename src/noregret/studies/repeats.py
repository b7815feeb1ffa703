"""Repeats: readings of several runs of a trial, and whether another run is worth its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from noregret.optimizer import Goal, Optimizer, Reading, middle

CLEARLY = 1.0
"""Standard errors by which the median of the runs must be worse than the recommended setting for the trial to end. Of
0, 0.5 and 1 none differed from the others by more than its standard error (decision 197)."""
HEAVY = math.sqrt(2.0)
"""Standard deviation of Student-t noise with 4 degrees of freedom, the optimizer's, in units of its scale."""
MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median of many, as a multiple of that of their mean under normal noise; one of two is a mean."""


FEWEST_REPEATS = 5
"""The number of repeats from which their spread says enough about the noise of their median (decision 197)."""


def median_of(runs: Sequence[Reading]) -> Reading:
    """Median of the readings of several runs, with its standard error as its noise; the only one as it is."""
    found = middle(runs)
    is_known = len(runs) > 1 and found.bound is None
    return replace(found, noise=error_of_median([run.value for run in runs])) if is_known else found


def error_of_median(values: Sequence[float]) -> float | None:
    """Standard error of a median: 1.96 of them to both sides hold the true median with at least 95% under normal noise.

    It comes from the mean distance to the median and Student's quantile for n - 1 degrees of freedom, so that a small
    spread of few values is not trusted and an outlier makes it larger. None for fewer than `FEWEST_REPEATS` values,
    or if all are equal.

    >>> round(error_of_median([1.0, 2.0, 3.0, 4.0, 5.0]), 2)
    1.49
    """
    count = len(values)
    if count < FEWEST_REPEATS or min(values) == max(values):
        return None
    from scipy.special import stdtrit  # few studies need it

    middle = median(values)
    spread = sum(abs(value - middle) for value in values) / (count - 1) * math.pi / 2
    return float(spread / math.sqrt(count) * stdtrit(count - 1, 0.975) / 1.96)


@dataclass(frozen=True)
class Target:
    """Value that a trial has to come near to be run again.

    >>> target = Target(10.0, noise=1.0, goal="minimize")
    >>> target.is_out_of_reach([12.0]), target.is_out_of_reach([10.5])
    (True, False)
    """

    estimate: float
    """Estimate of the recommended setting."""
    noise: float
    """Standard deviation of one run."""
    goal: Goal

    def is_out_of_reach(self, values: Sequence[float]) -> bool:
        """Return True if the median of these runs is clearly worse than the recommended setting.

        Its standard error is that of the model's noise, or the one that the runs show, whichever is larger.
        """
        worse = (median(values) - self.estimate) * (1 if self.goal == "minimize" else -1)
        error = self.noise * (MEDIAN if len(values) > 2 else 1.0) / math.sqrt(len(values))
        return worse > CLEARLY * max(error, error_of_median(values) or 0.0)


def target_of(optimizer: Optimizer) -> Target | None:
    """The present target; None while the optimizer takes its first, spread-out looks at the space."""
    values = sum(trial.state == "done" for trial in optimizer.trials)
    if values < max(2, optimizer.calibration.first(optimizer.space)):
        return None
    best, heavy = optimizer.best(), optimizer.calibrated.noise.heavy
    return Target(best.estimate, noise_near(optimizer, best.estimate) * (HEAVY if heavy else 1.0), optimizer.goal)


def noise_near(optimizer: Optimizer, estimate: float) -> float:
    """Scale of the noise of a value near this one, in its units."""
    fitted, signed = optimizer.calibrated, estimate if optimizer.goal == "maximize" else -estimate
    return fitted.fit.noise * float(fitted.scale.units(np.array(signed)))
