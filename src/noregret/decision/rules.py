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
from scipy.special import erfcx, log_ndtr, ndtr

from noregret.belief.posterior import Floats, Posterior, Rng
from noregret.decision.schedules import Schedule

Rule = Callable[[Posterior, Rng], Floats]

LOWEST = float(np.finfo(float).min)
LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


def best_arm(rule: Rule, posterior: Posterior, rng: Rng) -> int:
    """The arm that scores highest, the lowest index on ties; ValueError unless there is one number for every arm."""
    return best_of(np.asarray(rule(posterior, rng)), rule, posterior)


def best_of(scores: Floats, rule: Rule, posterior: Posterior) -> int:
    """The place of the largest of the scores that a rule gave, the first on ties; the errors are `best_arm`'s."""
    expected = posterior.mean.shape
    if scores.shape != expected:
        raise ValueError(f"the rule {rule} must give one score per arm, {expected}, got shape {scores.shape}")
    best = int(scores.argmax())  # the first nan, if there is one
    if math.isnan(scores[best]):
        rounds = posterior.rounds
        raise ValueError(f"the rule {rule} gave nan for arm {best} after {rounds} rewards: scores must be numbers")
    return best


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
    """ln E max(f - incumbent - margin, 0), the incumbent being the best mean among the pulled arms.

    The logarithm tells arms apart where the expectation itself underflows to 0. Its exponential is the expected
    improvement. Where no arm can improve, the scores are mean - incumbent - margin: the best mean is pulled.
    """

    margin: float = 0.0

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        floored = np.maximum(std, 1e-50)  # a std of 0 leaves max(gap, 0)
        return _scores(np.log(floored) + _log_improvement(gap / floored), gap, std)


@dataclass(frozen=True)
class ProbabilityOfImprovement:
    """ln P(f > incumbent + margin), the incumbent being the best mean among the pulled arms.

    The logarithm tells arms apart where the probability itself underflows to 0. A margin of 0 is greedy and gets stuck.
    Where the std is 0 the probability is 0 or 1. Where no arm can improve, the scores are mean - incumbent - margin:
    the best mean is pulled.
    """

    margin: float = 0.01

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        return _scores(log_ndtr(gap / np.maximum(std, 1e-50)), gap, std)


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


def _scores(logarithms: Floats, gap: Floats, std: Floats) -> Floats:
    """The logarithms, finite: the lowest of all numbers where improvement is impossible; the gaps if it always is."""
    possible = (std > 0) | (gap > 0)
    return np.where(possible, np.maximum(logarithms, LOWEST), LOWEST) if possible.any() else gap


def _log_improvement(z: Floats) -> Floats:
    """ln(phi(z) + z Phi(z)), phi and Phi the standard normal density and distribution function.

    Below -1 it is ln phi(z) + ln(1 - |z| Phi(z) / phi(z)) with Phi / phi from erfcx; below -100, where that difference
    cancels, its asymptotic series 1/z^2 - 3/z^4 + 15/z^6 - 105/z^8.
    """
    return np.piecewise(z, [z < -100, (z >= -100) & (z < -1)], [_far_below, _below, _near])


def _far_below(z: Floats) -> Floats:
    part = 1 / z**2
    return -0.5 * z * z - LOG_SQRT_2_PI + np.log(part) + np.log1p(part * (-3 + part * (15 - 105 * part)))


def _below(z: Floats) -> Floats:
    return np.asarray(-0.5 * z * z - LOG_SQRT_2_PI + np.log1p(z * math.sqrt(math.pi / 2) * erfcx(-z * math.sqrt(0.5))))


def _near(z: Floats) -> Floats:
    return np.asarray(np.log(np.exp(-0.5 * z * z - LOG_SQRT_2_PI) + z * ndtr(z)))
