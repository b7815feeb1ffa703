"""Rules: one score per arm; the largest is pulled.

A rule is any callable (posterior, rng) -> (N,) scores. Rules that come with confidence bounds also have
``bounds(posterior) -> (lower, upper)``, each (N,), and so are a `Band`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtr

from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.schedules import Schedule

Rule = Callable[[Posterior, Rng], Floats]


@runtime_checkable
class Band(Protocol):
    """Confidence bounds for every arm."""

    def bounds(self, posterior: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper bound, each (N,)."""
        ...


@dataclass(frozen=True)
class UCB:
    """mean + width * std."""

    width: Schedule

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return np.asarray(posterior.mean + self.width(posterior) * posterior.std)

    def bounds(self, posterior: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ width * std."""
        half_width = self.width(posterior) * posterior.std
        return posterior.mean - half_width, posterior.mean + half_width


@dataclass(frozen=True)
class Thompson:
    """mean + width * (sample - mean): a joint draw from GP(mean, width^2 cov)."""

    width: Schedule

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        mean = posterior.mean
        return np.asarray(mean + self.width(posterior) * (posterior.sample(rng) - mean))

    def bounds(self, posterior: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ width * std."""
        return UCB(self.width).bounds(posterior)


@dataclass(frozen=True)
class ExpectedImprovement:
    """E max(f - incumbent - margin, 0), the incumbent being the best mean among the pulled arms."""

    margin: float = 0.0

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        z = gap / np.maximum(std, 1e-50)  # a std of 0 leaves max(gap, 0)
        return np.asarray(gap * ndtr(z) + std * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class ProbabilityOfImprovement:
    """P(f > incumbent + margin), the incumbent being the best mean among the pulled arms.

    A margin of 0 is greedy and gets stuck. Where the std is 0 the probability is 0 or 1.
    """

    margin: float = 0.01

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        z = np.divide(gap, std, out=np.where(gap > 0, np.inf, -np.inf), where=std > 0)
        return np.asarray(ndtr(z))


@dataclass(frozen=True)
class MaxVariance:
    """std: the arm known least."""

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return posterior.std


@dataclass(frozen=True)
class Uniform:
    """Independent uniform scores: an arm at random."""

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return rng.random(len(posterior.mean))


def _gap(posterior: Posterior, margin: float) -> Floats:
    """How far each mean lies above the incumbent's plus the margin; before any pull the incumbent is the mean's top."""
    mean, pulled = posterior.mean, posterior.pulled
    incumbent = mean[pulled].max() if pulled.size else mean.max()
    return np.asarray(mean - incumbent - margin)
