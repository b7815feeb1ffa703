"""Rules: the score of a point to measure next, and the width of the interval around a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.rules import log_expected_improvement


@dataclass(frozen=True)
class ImprovementOfMean:
    """ln of the improvement on the incumbent that one more observation is expected to make in the posterior mean.

    With variance v of f and noise variance s^2, the mean changes by a Gaussian with standard deviation
    v / sqrt(v + s^2). This takes the place of the standard deviation sqrt(v) of f in expected improvement: a point that
    is known well compared to the noise has little to offer, however often that noise could make it look better. At the
    incumbent itself a repeat can only change the choice between it and the next best arm, so the gap between their
    means counts there: the knowledge gradient of Frazier, Powell and Dayanik (2009) for an arm alone.
    """

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        mean, pulled, variance = posterior.mean, posterior.pulled, posterior.std**2
        incumbent = pulled[np.argmax(mean[pulled])] if pulled.size else np.argmax(mean)
        gap = mean - mean[incumbent]
        gap[incumbent] = -np.abs(np.delete(gap, incumbent).max(initial=-np.inf if len(mean) > 1 else 0.0))
        return np.asarray(log_expected_improvement(gap, variance / np.sqrt(variance + posterior.ridge)))


@dataclass(frozen=True)
class SaturatedImprovement:
    """ln of expected improvement times min(1, n v / s^2), v the variance of f, s^2 that of the noise.

    n = max(enough, early / rounds), and s^2 / v is how many observations' worth is known about a point. Expected
    improvement alone keeps measuring where n of them have left little to learn, and is stuck on the first hill it
    finds; here such points lose their appeal, the sooner the more rounds have been spent. A heuristic, akin to the
    augmented expected improvement of Huang, Allen, Notz and Zeng (2006), which gives up a good point earlier.

    At the incumbent itself a repeat can only change the choice between it and the next best arm. So the gap between
    their means counts there, and the standard deviation v / sqrt(v + s^2) by which the mean changes: the knowledge
    gradient of Frazier, Powell and Dayanik (2009) for an arm alone.
    """

    enough: float = 5.0
    early: float = 500.0

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        mean, pulled, variance = posterior.mean, posterior.pulled, posterior.std**2
        incumbent = pulled[np.argmax(mean[pulled])] if pulled.size else np.argmax(mean)
        gap, std = mean - mean[incumbent], posterior.std.copy()
        if len(mean) > 1:
            gap[incumbent] = -abs(np.delete(gap, incumbent).max())
        noise = np.broadcast_to(posterior.ridge, mean.shape)
        std[incumbent] = variance[incumbent] / np.sqrt(variance[incumbent] + noise[incumbent])
        measurements = max(self.enough, self.early / max(posterior.rounds, 1))
        news = np.minimum(1.0, measurements * variance / noise)
        return np.asarray(log_expected_improvement(gap, std) + np.log(np.maximum(news, 1e-300)))


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
