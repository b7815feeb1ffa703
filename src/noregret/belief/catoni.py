"""Catoni's mean in place of the least-squares mean of a Gaussian process: `CatoniGP`.

The mean of a Gaussian process at x is a weighted sum of the rewards, sum_t a_t y_t with a = (K + ridge I)^-1 k(x). If
the arms do not depend on the rewards, as in an epoch of REDS or BPE, the weights are fixed numbers. A few large rewards
spoil the sum; Catoni's influence function psi bounds their effect:

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

from noregret.belief.arms import as_arms
from noregret.belief.arrays import is_tensor
from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints, Rng, set_fields

PIECE = 1 << 21
"""Numbers psi(theta a_t y_t) that are computed at once, so that memory is bounded."""

LARGEST = 1e150
"""Largest |z| in psi: its square is still a float."""


def influence(z: Floats, alpha: float = 1.0) -> Floats:
    """psi(z) = sgn(z) ln(1 + |z| + |z|^(1 + alpha) / (1 + alpha)).

    >>> influence(np.array([-1.0, 0.0, 0.1, 1e9])).round(3)
    array([-0.916,  0.   ,  0.1  , 40.753])
    """
    size = np.minimum(np.abs(z), LARGEST)
    return np.asarray(np.sign(z) * np.log1p(size * (1 + size**alpha / (1 + alpha))))


@dataclass(frozen=True)
class CatoniGP:
    """Gaussian process whose mean is Catoni's. The arms must not depend on the rewards that it is updated with.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        lambda, positive.
    moment, alpha : float
        v and alpha in (0, 1]: E|y|^(1 + alpha) <= v for the reward y.
    log_events : Posterior -> float
        l: each side of the deviation of one arm's mean fails with probability at most exp(-l).
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
