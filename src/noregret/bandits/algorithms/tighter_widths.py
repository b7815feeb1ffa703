"""Confidence widths from after the four papers, for R-sub-Gaussian noise; all are valid at every ridge.

Y. Abbasi-Yadkori. Online learning for linearly parametrized control problems. PhD thesis, 2012;
J. Whitehouse, A. Ramdas, Z. S. Wu. On the sublinear regret of GP-UCB. NeurIPS 2023 (AY).
H. Flynn, D. Reeb. Tighter confidence bounds for sequential kernel regression. AISTATS 2025 (AMM, DMM).

=================  =======================================================================================
symbol             here
=================  =======================================================================================
B, R, delta        ``norm``, ``noise``, ``delta``
gain               1/2 ln det(I + K_t / ridge), realised
q(a)               a y' (K_t + a I)^-1 y, the ridge a times the posterior's ``misfit``
c                  R^2 / ridge
=================  =======================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

from noregret.bandits.algorithms.constants import Checked, checks_constants
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.belief.model_set import RidgeFamily
from noregret.bandits.decision.loops import Sequential
from noregret.bandits.decision.rules import UCB
from noregret.gp.arrays import namespace
from noregret.gp.kernels import KernelLike, as_kernel
from noregret.gp.posterior import Floats, Posterior, Rng


@dataclass(frozen=True)
class SubGaussian(Checked):
    """Constants of a band for R-sub-Gaussian noise; R is multiplied by ``scale``."""

    norm: float
    noise: float
    delta: float
    scale: float = 1.0


@dataclass(frozen=True)
class AYWidth(SubGaussian):
    """B + (R / sqrt(ridge)) sqrt(2 (gain + ln(1/delta))); the noise part is multiplied by ``scale``."""

    def __call__(self, posterior: Posterior) -> float:
        confidence = 2 * (posterior.information_gain + math.log(1 / self.delta))
        return self.norm + self.scale * self.noise * math.sqrt(confidence / posterior.ridge)


@dataclass(frozen=True)
class AMMWidth(SubGaussian):
    """sqrt(B^2 + (R^2 / ridge) 2 (gain + ln(1/delta))): never wider than AY; R is multiplied by ``scale``."""

    def __call__(self, posterior: Posterior) -> float:
        confidence = 2 * (posterior.information_gain + math.log(1 / self.delta))
        return math.sqrt(self.norm**2 + (self.scale * self.noise) ** 2 * confidence / posterior.ridge)


@dataclass(frozen=True)
class DMM(SubGaussian):
    """Tightest of the bounds for several ridges a, from a `RidgeFamily` whose first ridge is a0.

    With Q = q(a0) + 2 R^2 (gain + ln(1/delta)) at a0, the upper bound is the least over a of
    mean_a + sqrt((Q + a B^2 - q(a)) / a) std_a, and the lower bound likewise. If Q + a B^2 < q(a), no function of norm
    B fits the rewards: arms are then chosen by their means, and the lower bounds lie above the upper ones.
    """

    def __call__(self, posterior: Any, rng: Rng) -> Floats:
        return self._bounds(posterior, 0.0)[1]

    def bounds(self, posterior: Any) -> tuple[Floats, Floats]:
        """Lower and upper bound, each (N,); the lower is above the upper if no function fits the rewards."""
        return self._bounds(posterior, -math.inf)

    def _bounds(self, posterior: Any, least: float) -> tuple[Floats, Floats]:
        """Bounds, with Q + a B^2 - q(a) at least ``least``."""
        first = posterior.members[posterior.leader]
        confidence = 2 * (first.information_gain + math.log(1 / self.delta))
        budget = first.ridge * first.misfit + (self.scale * self.noise) ** 2 * confidence
        lower, upper = [], []
        for member in posterior.members.values():
            spare = max(least, budget / member.ridge + self.norm**2 - member.misfit)
            half_width = math.copysign(math.sqrt(abs(spare)), spare) * member.std
            lower.append(member.mean - half_width)
            upper.append(member.mean + half_width)
        xp = namespace(first.mean)
        return reduce(xp.maximum, lower), reduce(xp.minimum, upper)


@checks_constants
def ay_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB with the Abbasi-Yadkori width: B + (R / sqrt(ridge)) sqrt(2 (gain + ln(1/delta))); ridge R^2 unless given."""
    return Sequential(ExactGP(kernel, noise**2 if ridge is None else ridge), UCB(AYWidth(norm, noise, delta, scale)))


@checks_constants
def amm_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB with the AMM width of Flynn and Reeb: sqrt(B^2 + (R^2 / ridge) 2 (gain + ln(1/delta))); ridge R^2."""
    return Sequential(ExactGP(kernel, noise**2 if ridge is None else ridge), UCB(AMMWidth(norm, noise, delta, scale)))


@checks_constants
def dmm_ucb(
    kernel: KernelLike,
    *,
    norm: float = 1.0,
    noise: float = 0.1,
    delta: float = 0.1,
    ridge: float | None = None,
    scale: float = 1.0,
) -> Sequential:
    """UCB with the DMM bounds of Flynn and Reeb: the tightest of five ridges around R^2 (or around the given one)."""
    first = noise**2 if ridge is None else ridge
    family = RidgeFamily(as_kernel(kernel), (first, 0.1 * first, 0.3 * first, 3 * first, 10 * first))
    return Sequential(family, DMM(norm, noise, delta, scale))
