"""Rules: one score per arm; the largest is pulled.

A rule is any callable (posterior, rng) -> (N,) scores. Rules that come with confidence bounds also have
``bounds(posterior) -> (lower, upper)``, each (N,), and so are a `Band`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from noregret.belief.arrays import Array, as_array, at_least, between, namespace, special, top
from noregret.belief.box import Box
from noregret.belief.posterior import Floats, Posterior, Rng, Schedule, as_schedule
from noregret.decision.region import highest_point

Rule = Callable[[Posterior, Rng], Floats]

LOWEST = float(np.finfo(float).min)
LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
FARTHEST, NEAREST = -100.0, 8.0
"""Range of the standardised improvement z in which one formula is accurate."""


AGAIN = 0.05
"""On a box, share of width * std by which the score of a pulled point may be below the highest one."""
FINEST = 1e7
"""On a box, largest fineness of a decision set: functions of norm 1 change by 1e-7 from a point to the nearest of the
set. Double precision does not resolve the kernel's distances much better."""


def best_arm(rule: Rule, posterior: Posterior, rng: Rng) -> int:
    """Arm with the highest score, the lowest index on ties; ValueError unless there is one number per arm."""
    scores: Array = rule(posterior, rng)
    return best_of(scores if isinstance(scores, np.ndarray) else as_array(scores), rule, posterior)


def best_of(scores: Array, rule: Rule, posterior: Posterior) -> int:
    """`best_arm`, given the scores of the rule."""
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
class ChoosesPoints(Protocol):
    """Rule that can choose among all points of a box."""

    def point(self, posterior: Posterior, box: Box, rng: Rng) -> Floats:
        """Point of the box to pull next, (d,)."""


@runtime_checkable
class Band(Protocol):
    """Confidence bounds for every arm."""

    def bounds(self, posterior: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper bound, each (N,)."""


@dataclass(frozen=True)
class UCB:
    """mean + width * std; a number as width is the same in every round.

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

    def point(self, posterior: Posterior, box: Box, rng: Rng) -> Floats:
        """Point of the box with the highest score, by search (`highest_point`).

        A point x that was pulled before is pulled again if its score is within `AGAIN` width std(x) of the highest one
        found. Then f* - f(x) <= (2 + AGAIN) width std(x) where the band holds: regret bounds grow by 2.5%, and far
        fewer points are distinct.
        """
        width = self.width(posterior)

        def score(points: Floats) -> Floats:
            mean, std = posterior.predict(points)
            return mean + width * std

        half_width = width * posterior.std
        found, highest = highest_point(score, posterior.arms, posterior.mean + half_width, box)
        pulled = posterior.pulled
        if pulled.size:
            again = (posterior.mean + (1 + AGAIN) * half_width)[pulled]
            if again.max() >= highest:
                return np.asarray(posterior.arms[pulled[int(again.argmax())]])
        return found


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

    def point(self, posterior: Any, box: Box, rng: Rng) -> Floats:
        """Highest point of a function drawn from GP(mean, width^2 cov), by search, on the decision set D_t, (d,).

        D_t is a grid with |f(x) - f(nearest of D_t)| <= 1/t^2 for all f of norm at most B, the ``norm`` of the width
        (kernelized-bandits paper, Alg. 2, line 5, and Sec. 4.2), but no finer than `FINEST`.
        """
        if not hasattr(posterior, "sample_function"):
            raise ValueError(
                f"Thompson sampling on a Box needs ExactGP, got {type(posterior).__name__}: take that model, or pass "
                "finitely many arms"
            )
        draw = posterior.sample_function(rng, self.width(posterior))
        fineness = getattr(self.width, "norm", 1.0) * (posterior.rounds + 1) ** 2
        found, _ = highest_point(draw, posterior.arms, draw(posterior.arms), box)
        return np.asarray(box.on_grid(found[None], posterior.kernel, min(max(fineness, 1.0), FINEST))[0])


@dataclass(frozen=True)
class ExpectedImprovement:
    """ln E max(f - incumbent - margin, 0), where the incumbent is the best mean among the pulled arms.

    The logarithm distinguishes arms even if the expectation underflows to 0. If no arm can improve, the scores are
    mean - incumbent - margin: the arm with the best mean is pulled.
    """

    margin: float = 0.0

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        return _scores(log_expected_improvement(gap, std), gap, std)


@dataclass(frozen=True)
class ProbabilityOfImprovement:
    """ln P(f > incumbent + margin), where the incumbent is the best mean among the pulled arms.

    The logarithm distinguishes arms even if the probability underflows to 0. A margin of 0 is greedy and gets stuck.
    For a std of 0 the probability is 0 or 1. If no arm can improve, the scores are mean - incumbent - margin: the arm
    with the best mean is pulled.
    """

    margin: float = 0.01

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        gap, std = _gap(posterior, self.margin), posterior.std
        return _scores(special(std).log_ndtr(gap / at_least(std, 1e-50)), gap, std)


@dataclass(frozen=True)
class MaxVariance:
    """std: the most uncertain arm."""

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return posterior.std


@dataclass(frozen=True)
class Uniform:
    """Independent uniform scores: a random arm."""

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return rng.random(len(posterior.mean))


def _gap(posterior: Posterior, margin: float) -> Array:
    """Mean minus incumbent minus margin, (N,); before any pull the incumbent is the largest mean."""
    mean, pulled = posterior.mean, posterior.pulled
    incumbent = mean[pulled].max() if pulled.size else mean.max()
    return mean - incumbent - margin


def _scores(logarithms: Floats, gap: Floats, std: Floats) -> Floats:
    """Finite scores: the lowest float for arms that cannot improve; the gaps if no arm can."""
    possible = (std > 0) | (gap > 0)
    if not possible.any():
        return gap
    return cast(Floats, namespace(gap).where(possible, at_least(logarithms, LOWEST), LOWEST))


def log_expected_improvement(gap: Array, std: Array) -> Array:
    """Logarithm of E max(gap + std N, 0), N standard normal, (n,), (n,) -> (n,)."""
    floored = at_least(std, 1e-50)  # a std of 0 leaves max(gap, 0)
    return namespace(std).log(floored) + _log_improvement(gap / floored)


def _log_improvement(z: Array) -> Array:
    """Logarithm of h(z) = phi(z) + z Phi(z), phi and Phi the standard normal density and distribution function.

    It is ln phi(z) + ln(1 + z Phi(z) / phi(z)) with Phi / phi from erfcx. Below `FARTHEST`, where that sum cancels, it
    is an asymptotic series; above `NEAREST`, h(z) is z to all digits.
    """
    xp, inside = namespace(z), between(z, FARTHEST, NEAREST)
    ratio = math.sqrt(math.pi / 2) * special(z).erfcx(-inside * math.sqrt(0.5))
    middle = -0.5 * inside * inside - LOG_SQRT_2_PI + xp.log1p(inside * ratio)
    if isinstance(z, np.ndarray) and z.min() >= FARTHEST and z.max() <= NEAREST:
        return middle
    above = xp.where(z > NEAREST, xp.log(at_least(z, 1.0)), middle)
    below = between(z, -math.inf, FARTHEST)  # ln of phi(z) (1/z^2 - 3/z^4 + 15/z^6 - 105/z^8)
    part = 1 / below**2
    series = xp.log(part) + xp.log1p(part * (-3 + part * (15 - 105 * part)))
    return xp.where(z < FARTHEST, -0.5 * below * below - LOG_SQRT_2_PI + series, above)
