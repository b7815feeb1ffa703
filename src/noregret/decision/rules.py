"""Rules: one score per arm; the largest is pulled.

A rule is any callable (posterior, rng) -> (N,) scores. Rules that come with confidence bounds also have
``bounds(posterior) -> (lower, upper)``, each (N,), and so are a `Band`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np

from noregret.belief.arrays import Array, as_array, at_least, between, namespace, special, top
from noregret.belief.posterior import Floats, Posterior, Rng, Schedule, as_schedule

Rule = Callable[[Posterior, Rng], Floats]

LOWEST = float(np.finfo(float).min)
LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
FARTHEST, NEAREST = -100.0, 8.0
"""Between so many standard deviations of improvement one formula does."""


def best_arm(rule: Rule, posterior: Posterior, rng: Rng) -> int:
    """The arm that scores highest, the lowest index on ties; ValueError unless there is one number for every arm."""
    scores: Array = rule(posterior, rng)
    return best_of(scores if isinstance(scores, np.ndarray) else as_array(scores), rule, posterior)


def best_of(scores: Array, rule: Rule, posterior: Posterior) -> int:
    """The place of the largest of the scores that a rule gave, the first on ties; the errors are `best_arm`'s."""
    expected = posterior.mean.shape
    if scores.shape != expected:
        shapes = f"{tuple(expected)}, got shape {tuple(scores.shape)}"
        raise ValueError(f"the rule {rule} must give one score per arm, {shapes}")
    best, highest = top(scores)
    if math.isnan(highest):
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
    """mean + width * std; a width that is a number is the same at every round.

    >>> UCB(2.0)
    UCB(width=Constant(value=2.0))
    """

    width: Schedule

    def __init__(self, width: Schedule | float) -> None:
        object.__setattr__(self, "width", as_schedule("width", width))

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return posterior.mean + posterior.std * self.width(posterior)

    def bounds(self, posterior: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ width * std."""
        half_width = posterior.std * self.width(posterior)
        return posterior.mean - half_width, posterior.mean + half_width


@dataclass(frozen=True)
class Thompson:
    """mean + width * (sample - mean): a joint draw from GP(mean, width^2 cov)."""

    width: Schedule

    def __init__(self, width: Schedule | float) -> None:
        object.__setattr__(self, "width", as_schedule("width", width))

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        mean = posterior.mean
        return mean + (posterior.sample(rng) - mean) * self.width(posterior)

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
        return _scores(log_expected_improvement(gap, std), gap, std)


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
        return _scores(special(std).log_ndtr(gap / at_least(std, 1e-50)), gap, std)


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


def _gap(posterior: Posterior, margin: float) -> Array:
    """How far each mean lies above the incumbent's plus the margin; before any pull the incumbent is the mean's top."""
    mean, pulled = posterior.mean, posterior.pulled
    incumbent = mean[pulled].max() if pulled.size else mean.max()
    return mean - incumbent - margin


def _scores(logarithms: Floats, gap: Floats, std: Floats) -> Floats:
    """The logarithms, finite: the lowest of all numbers where improvement is impossible; the gaps if it always is."""
    possible = (std > 0) | (gap > 0)
    if not possible.any():
        return gap
    return cast(Floats, namespace(gap).where(possible, at_least(logarithms, LOWEST), LOWEST))


def log_expected_improvement(gap: Array, std: Array) -> Array:
    """The logarithm of E max(gap + std N, 0), N standard normal, (n,), (n,) -> (n,)."""
    floored = at_least(std, 1e-50)  # a std of 0 leaves max(gap, 0)
    return namespace(std).log(floored) + _log_improvement(gap / floored)


def _log_improvement(z: Array) -> Array:
    """The logarithm of h(z) = phi(z) + z Phi(z), phi and Phi the standard normal density and distribution function.

    It is ln phi(z) + ln(1 + z Phi(z) / phi(z)) with Phi / phi from erfcx. Below `FARTHEST`, where that sum cancels, it
    is an asymptotic series; above `NEAREST` h(z) is z, to all digits.
    """
    inside = _inside(between(z, FARTHEST, NEAREST))
    if isinstance(z, np.ndarray) and z.min() >= FARTHEST and z.max() <= NEAREST:
        return inside
    where, log = namespace(z).where, namespace(z).log
    above = where(z > NEAREST, log(at_least(z, 1.0)), inside)
    return where(z < FARTHEST, _far_below(between(z, -math.inf, FARTHEST)), above)


def _inside(z: Array) -> Array:
    ratio = math.sqrt(math.pi / 2) * special(z).erfcx(-z * math.sqrt(0.5))
    return -0.5 * z * z - LOG_SQRT_2_PI + namespace(z).log1p(z * ratio)


def _far_below(z: Array) -> Array:
    """The logarithm of phi(z) (1/z^2 - 3/z^4 + 15/z^6 - 105/z^8)."""
    part, xp = 1 / z**2, namespace(z)
    return -0.5 * z * z - LOG_SQRT_2_PI + xp.log(part) + xp.log1p(part * (-3 + part * (15 - 105 * part)))
