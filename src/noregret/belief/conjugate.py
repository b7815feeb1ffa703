"""Robust and conjugate Gaussian process: closed-form weights against corrupted rewards.

M. Altamirano, F.-X. Briol, J. Knoblauch. Robust and conjugate Gaussian process regression. ICML 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.belief.arms import LearnsPoints, learn_at
from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, set_fields

FARTHEST = 1e60
"""Largest excess u: beyond it a reward has no weight anyway, and a product of two ridges would overflow."""


@dataclass(frozen=True)
class ConjugateGP:
    """Gaussian process that down-weights rewards far from the mean before them.

    With r the residual in units of sqrt(std^2 + ridge) and w^2 = (ridge / 2) / (1 + u^2), u = max(|r| - threshold, 0) /
    softness,

        mean = k' (K + J)^-1 (y - ridge d/dy ln w^2),    J = diag(ridge^2 / (2 w^2)) = ridge diag(1 + u^2).

    So a reward with |r| <= threshold counts as in the exact GP, and the influence of an outlier falls like 1 / |r|.
    Weights are fixed when a reward arrives, so the order of rewards matters if some are outliers.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        The variance of the noise, above 0.
    threshold, softness : float
        c1 and c2 above.

    Examples
    --------
    >>> from noregret import SquaredExponential
    >>> belief = ConjugateGP(SquaredExponential(0.2), ridge=0.01).prior([[0.0], [1.0]])
    >>> belief.update([0, 0, 0], [1.0, 1.1, 1e6])
    >>> belief.mean.round(2)
    array([1.04, 0.  ])
    """

    kernel: Kernel
    ridge: float
    threshold: float
    softness: float

    def __init__(self, kernel: KernelLike, ridge: float, threshold: float = 1.96, softness: float = 1.0) -> None:
        for name, value in {"ridge": ridge, "softness": softness}.items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")
        if not threshold >= 0:
            raise ValueError(f"threshold must be at least 0, got {threshold}")
        set_fields(self, kernel=as_kernel(kernel))
        set_fields(self, ridge=float(ridge), threshold=float(threshold), softness=float(softness))

    def prior(self, arms: Any, rng: Rng | None = None) -> ConjugatePosterior:
        """Belief about f on these (N, d) arms before any reward."""
        return ConjugatePosterior(self, ExactGP(self.kernel, self.ridge).prior(arms))

    def observation(self, reward: float, mean: float, std: float, ridge: float) -> tuple[float, float]:
        """Value that replaces a reward, and the factor 1 + u^2 on its ridge."""
        unit = math.hypot(std, math.sqrt(ridge))
        residual = (reward - mean) / unit
        excess = min(max(abs(residual) - self.threshold, 0.0) / self.softness, FARTHEST)
        slope = -2 * excess / (1 + excess**2) * math.copysign(1 / (self.softness * unit), residual)  # d/dy ln w^2
        return reward - ridge * slope, 1 + excess**2


class ConjugatePosterior(LearnsPoints):
    """Belief of `ConjugateGP`: an exact posterior that learns rewards one by one, each with its own ridge."""

    OWN = ("_exact",)
    largest_reward = math.inf

    def __init__(self, model: ConjugateGP, exact: ExactPosterior) -> None:
        self._model, self._exact, self.claimed_gain = model, exact, 0.0

    def __getattr__(self, name: str) -> Any:
        if name == "_exact":  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._exact, name)

    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats, std: Floats) -> None:
        exact = self._exact
        if values is None:
            learn_at(exact, arms, points, None, factors)
            return
        claimed = 0.5 * float(np.log1p(std**2 / (exact.ridge * factors)).sum())
        for i, reward in enumerate(np.clip(values, -HUGE, HUGE).tolist()):
            arm, point, factor = arms[i : i + 1], points[i : i + 1], float(factors[i])
            (mean,), (std,) = (exact.mean[arm], exact.std[arm]) if arm >= 0 else exact.predict(point)
            value, weight = self._model.observation(reward, float(mean), float(std), exact.ridge * factor)
            learn_at(exact, arm, point, value, factor * weight)
        self.claimed_gain += claimed

    def at(self, arms: Any) -> ConjugatePosterior:
        other = ConjugatePosterior(self._model, self._exact.at(arms))
        other.claimed_gain = self.claimed_gain
        return other
