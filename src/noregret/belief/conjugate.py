"""Robust and conjugate Gaussian process: closed-form weights against corrupted rewards.

M. Altamirano, F.-X. Briol, J. Knoblauch. Robust and conjugate Gaussian process regression. ICML 2024.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from noregret.belief.arms import as_points
from noregret.belief.arrays import numpy_of
from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.posterior import HUGE, Rng, as_pulls

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
        object.__setattr__(self, "kernel", as_kernel(kernel))
        for name, value in {"ridge": ridge, "threshold": threshold, "softness": softness}.items():
            object.__setattr__(self, name, float(value))

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


class ConjugatePosterior:
    """Belief of `ConjugateGP`: an exact posterior that learns rewards one by one, each with its own ridge."""

    largest_reward = math.inf

    def __init__(self, model: ConjugateGP, exact: ExactPosterior) -> None:
        self._model, self._exact, self.claimed_gain = model, exact, 0.0

    def __getattr__(self, name: str) -> Any:
        if name == "_exact":  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._exact, name)

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Update with rewards in this order; None changes the variance only; ``noise`` scales each one's ridge."""
        if rewards is None:
            self._exact.update(arms, noise=noise)
            return
        pulls, values, factors = as_pulls(arms, rewards, noise, len(self._exact.arms), self.largest_reward)
        assert values is not None
        factors = np.ones(pulls.size) if factors is None else factors
        claimed = 0.5 * float(np.log1p(numpy_of(self._exact.std[pulls]) ** 2 / (self._exact.ridge * factors)).sum())
        for arm, reward, factor in zip(pulls, np.clip(values, -HUGE, HUGE), factors.tolist(), strict=True):
            mean, std, ridge = float(self._exact.mean[arm]), float(self._exact.std[arm]), self._exact.ridge * factor
            value, weight = self._model.observation(float(reward), mean, std, ridge)
            self._exact.update(arm, value, noise=factor * weight)
        self.claimed_gain += claimed

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Update with rewards of any (n, d) points in this order; None changes the variance only."""
        if rewards is None:
            self._exact.learn(points, noise=noise)
            return
        points = as_points(points, self._exact.arms.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        assert values is not None
        factors = np.ones(len(points)) if factors is None else factors
        claimed = 0.5 * float(np.log1p(self._exact.predict(points)[1] ** 2 / (self._exact.ridge * factors)).sum())
        for point, reward, factor in zip(points, np.clip(values, -HUGE, HUGE), factors.tolist(), strict=True):
            (mean,), (std,) = self._exact.predict(point[None])
            value, weight = self._model.observation(float(reward), float(mean), float(std), self._exact.ridge * factor)
            self._exact.learn(point, value, factor * weight)
        self.claimed_gain += claimed

    def at(self, arms: Any) -> ConjugatePosterior:
        """Return the same knowledge about other (N, d) arms."""
        other = ConjugatePosterior(self._model, self._exact.at(arms))
        other.claimed_gain = self.claimed_gain
        return other

    def copy(self) -> Self:
        """Return an independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._exact = self._exact.copy()
        return twin
