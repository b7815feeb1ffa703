"""Rules: the score of a point to measure next, and the width of the interval around a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.rules import ExpectedImprovement


@dataclass(frozen=True)
class SaturatedImprovement:
    """ln of expected improvement times min(1, n std^2 / s^2), s the noise and n = max(enough, early / rounds).

    s^2 / std^2 is how many measurements' worth is known about a point. Expected improvement alone keeps measuring where
    n of them have left little to learn, and is stuck on the first hill it finds; here such points lose their appeal,
    the sooner the more rounds have been spent. A heuristic, akin to the augmented expected improvement of Huang, Allen,
    Notz and Zeng (2006), which gives up a good point earlier.
    """

    enough: float = 5.0
    early: float = 500.0

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        measurements = max(self.enough, self.early / max(posterior.rounds, 1))
        news = np.minimum(1.0, measurements * posterior.std**2 / posterior.ridge)
        return np.asarray(ExpectedImprovement()(posterior, rng) + np.log(np.maximum(news, 1e-300)))


AMONG_NAMES = SaturatedImprovement(enough=1.0, early=0.0)
"""The rule for settings without neighbours: repeating one of them tells nothing of the others."""


@dataclass(frozen=True)
class SimultaneousWidth:
    """sqrt(2 ln(d / delta)), d the effective dimension: d Gaussians all lie so near, with probability 1 - delta.

    What looks best is the luckiest of about d guesses, so its interval must hold for all of them. Heuristic: the
    posterior is taken at its word, and the guesses for independent.
    """

    delta: float = 0.05

    def __call__(self, posterior: Posterior) -> float:
        return math.sqrt(2 * math.log(max(posterior.effective_dimension, 1.0) / self.delta))
