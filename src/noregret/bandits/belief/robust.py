"""Gaussian processes that resist a few large rewards: `ConjugateGP` and `CatoniGP`.

**Weights.** M. Altamirano, F.-X. Briol, J. Knoblauch. Robust and conjugate Gaussian process regression. ICML 2024:
closed-form weights against corrupted rewards (`ConjugateGP`).

**Catoni's mean in place of the least-squares mean** (`CatoniGP`). The mean of a Gaussian process at x is a weighted sum
of the rewards, sum_t a_t y_t with a = (K + ridge I)^-1 k(x). If the arms do not depend on the rewards, as in an epoch
of REDS or BPE, the weights are fixed numbers. A few large rewards spoil the sum; Catoni's influence function psi bounds
their effect:

    mean(x) = (1 / theta) sum_t psi(theta a_t y_t),    psi(z) = sgn(z) ln(1 + |z| + |z|^p / p),    p = 1 + alpha.

For 1 < p <= 2, exp(psi(z)) <= 1 + z + |z|^p / p, and the same for -z. So if E|y|^p <= v, theta mean(x) deviates from
theta sum_t a_t f(x_t) by more than l + theta^p |a|_p^p v / p with probability at most exp(-l) on each side. With the
best theta, theta^p = l p / (alpha |a|_p^p v), mean(x) deviates by at most l p / (alpha theta), which is
|a| sqrt(2 v l) for alpha = 1. docs/guarantees_details.md has the proof.

O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48, 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from noregret.bandits.belief.arms import LearnsPoints, as_arms, learn_at
from noregret.bandits.belief.exact import ExactGP, ExactPosterior
from noregret.gp.arrays import is_tensor
from noregret.gp.influence import influence
from noregret.gp.kernels import Kernel, KernelLike, as_kernel
from noregret.gp.posterior import HUGE, Floats, Ints, Rng, set_fields
from noregret.gp.threads import threads_for

# Weights

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


# Catoni's mean

PIECE = 1 << 21
"""Numbers psi(theta a_t y_t) that are computed at once, so that memory is bounded."""


@dataclass(frozen=True)
class CatoniGP:
    """Gaussian process whose mean is Catoni's. The arms must not depend on the rewards that it is updated with.

    ``ridge`` is lambda, positive. The rewards y have E|y|^(1 + alpha) <= v, with ``moment`` v and ``alpha`` in (0, 1].
    ``log_events`` is l: each side of the deviation of one arm's mean fails with probability at most exp(-l).
    """

    kernel: Kernel
    ridge: float
    moment: float
    alpha: float
    log_events: Callable[[Any], float]

    def __init__(
        self, kernel: KernelLike, ridge: float, moment: float, alpha: float, log_events: Callable[[Any], float]
    ) -> None:
        if not (math.isfinite(ridge) and ridge > 0):
            raise ValueError(f"ridge must be positive, got {ridge}")
        set_fields(self, kernel=as_kernel(kernel), ridge=float(ridge), moment=float(moment), alpha=float(alpha))
        set_fields(self, log_events=log_events)

    def prior(self, arms: Any, rng: Rng | None = None) -> CatoniPosterior:
        arms = as_arms(arms)
        if not isinstance(arms, np.ndarray):
            given = "a tensor: pass arms.cpu().numpy()" if is_tensor(arms) else "arms on a cluster"
            raise ValueError(f"arms must be a NumPy array for Catoni's mean, got {given}")
        return CatoniPosterior(self, arms)


class CatoniPosterior(ExactPosterior):
    """Belief of `CatoniGP`: std and gain are those of the exact Gaussian process.

    The mean takes O(u^2 N + n N) for N arms and n rewards of u distinct arms. It is computed when it is first read
    after a reward. Rewards of any finite size are accepted.
    """

    OWN = ("_conditioning", "_told")

    def __init__(self, model: CatoniGP, arms: Floats) -> None:
        super().__init__(ExactGP(model.kernel, model.ridge), arms)
        self._catoni = model
        self._told: list[Floats] = []  # of each update (3, n): slot, reward, 1 / noise factor
        self._mean: Floats | None = None  # of all arms, after all rewards

    @property
    def largest_reward(self) -> float:
        return math.inf

    @property
    def mean(self) -> Floats:
        """Catoni's mean of every arm, (N,)."""
        if self._mean is None:
            self._mean = self._estimate(self._arms)
        return self._mean

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        points = as_arms(points)
        return self._estimate(points), super().predict(points)[1]

    def sample(self, rng: Rng, among: int | None = None) -> Floats:
        return np.asarray(self.mean + super().sample(rng, among) - super().mean)

    def at(self, arms: Any) -> Any:
        other = super().at(arms)
        other._told, other._mean = list(self._told), None
        return other

    def _take(self, names: Ints, values: Floats | None, noise: Floats | None, points: Floats | None = None) -> None:
        super()._take(names, None if values is None else np.zeros_like(values), noise, points)
        if values is not None:
            shares = np.ones(len(values)) if noise is None else 1 / noise
            self._told.append(np.array([self._conditioning.pulls.slots(names), values, shares]))
            self._mean = None

    def _estimate(self, points: Floats) -> Floats:
        """Catoni's mean at (n, d) points, (n,)."""
        if not self._told:
            return np.zeros(len(points))
        model, p = self._catoni, 1 + self._catoni.alpha
        slots, rewards, shares = np.hstack(self._told)
        distinct, where = np.unique(slots.astype(np.intp), return_inverse=True)
        total, powers = np.bincount(where, shares), np.bincount(where, shares**p)
        seen = self._conditioning.seen[distinct]
        with threads_for(len(seen) ** 2 * len(points)):
            root = cho_factor(model.kernel(seen, seen) + np.diag(model.ridge / total), lower=True, overwrite_a=True)
            weights = cho_solve(root, model.kernel(seen, points)) / total[:, None]  # of a pull with noise factor 1
        norms = np.maximum(powers @ np.abs(weights) ** p, np.finfo(float).tiny)  # |a|_p^p
        theta = (model.log_events(self) * p / (model.alpha * norms * model.moment)) ** (1 / p)
        own, mean = shares * rewards, np.empty(len(points))
        rows = max(PIECE // len(own), 1)
        for start in range(0, len(points), rows):
            piece = slice(start, start + rows)
            numbers = (theta[piece] * weights[:, piece]).T[:, where] * own
            mean[piece] = influence(numbers, model.alpha).sum(axis=1) / theta[piece]
        return mean
