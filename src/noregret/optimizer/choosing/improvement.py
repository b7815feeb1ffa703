"""Improvement: what to ask for next, by how much better than the best it may be, and whether measuring it tells."""

from __future__ import annotations

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
