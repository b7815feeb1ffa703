"""Repeats: how often a trial is worth another run of its command, where a study leaves that open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from noregret.optimizer import Goal, Optimizer
from noregret.tune.measuring import error_of_median

CLEARLY = 1.0
"""Standard errors by which the median of the runs must be worse than the recommended setting for the trial to end. Of
0, 0.5 and 1 none differed from the others by more than its standard error (decision 212)."""
HEAVY = math.sqrt(2.0)
"""Standard deviation of Student-t noise with 4 degrees of freedom, the optimizer's, in units of its scale."""
MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median of many, as a multiple of that of their mean under normal noise; one of two is a mean."""


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
    values = sum(answer.value is not None for answer in optimizer.answers)
    if values < max(2, optimizer.calibration.first(optimizer.space)):
        return None
    best, fitted = optimizer.best(), optimizer.calibrated
    signed = best.estimate if optimizer.goal == "maximize" else -best.estimate
    noise = fitted.fit.noise * float(fitted.scale.units(np.array(signed)))
    return Target(best.estimate, noise * (HEAVY if fitted.noise.heavy else 1.0), optimizer.goal)
