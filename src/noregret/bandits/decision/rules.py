"""Rules and schedules: one score per arm, of which the largest is pulled, and the numbers that scores depend on.

A schedule (a width, a truncation level, an information gain) is any callable from a posterior to a number.
``posterior.rounds`` is t, the number of rewards so far, so the width for the choice of round t + 1 is computed with t.
A number is accepted as a schedule and means `Constant`.

A rule is any callable (posterior, rng) -> (N,) scores. Rules that come with confidence bounds also have
``bounds(posterior) -> (lower, upper)``, each (N,), and so are a `Band`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from noregret.bandits.belief.arms import Box
from noregret.bandits.decision.region import highest_point
from noregret.gp.arrays import Array, as_array, at_least, namespace, special, top
from noregret.gp.improvement import log_expected_improvement
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Constant as Constant
from noregret.gp.posterior import Floats, Model, Posterior, Rng, Rule, as_schedule, convert_numbers
from noregret.gp.posterior import Schedule as Schedule


@dataclass(frozen=True)
class Scaled:
    """Another schedule times a factor."""

    schedule: Schedule
    factor: float

    def __post_init__(self) -> None:
        convert_numbers(self, "schedule")

    def __call__(self, posterior: Posterior) -> float:
        return self.factor * self.schedule(posterior)


@dataclass(frozen=True)
class RealisedGain:
    """1/2 ln det(I + K_t / ridge) of the pulled arms: at most gamma_t, and sufficient for the bounds."""

    def __call__(self, posterior: Posterior) -> float:
        return posterior.information_gain


@dataclass(frozen=True)
class RateGain:
    """Known growth rate of gamma_t with constant 1, as in the papers' experiments: a heuristic."""

    kernel: Kernel

    def __post_init__(self) -> None:
        self.kernel.gain_rate(2, 1)  # raises for a kernel without a known rate

    def __call__(self, posterior: Posterior) -> float:
        rounds, dimension = posterior.rounds, posterior.arms.shape[1]
        rate = self.kernel.gain_rate(rounds, dimension) if rounds > 1 else 0.0
        if math.isinf(rate):
            raise ValueError(
                f"the gain's rate must be finite, got (ln {rounds})^{dimension + 1} on arms with {dimension} columns: "
                "pass gain='realised', the gain of the arms that were pulled"
            )
        return rate


@dataclass(frozen=True)
class GreedyGain:
    """Upper bound on gamma_t over the arms: the gain of greedy max-variance pulls divided by 1 - 1/e.

    The gain is submodular, so the greedy choice reaches 1 - 1/e of the largest. One greedy pull is made per round of
    the run, on a separate posterior, which doubles the cost of a run. After a change of arms the bound is for the new
    arms, but at least the realised gain, which suffices for a confidence width.
    """

    model: Model
    _greedy: WeakKeyDictionary[Posterior, Posterior] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __call__(self, posterior: Posterior) -> float:
        if posterior not in self._greedy:
            self._greedy[posterior] = self.model.prior(posterior.arms)
        greedy = self._greedy[posterior]
        while greedy.rounds < posterior.rounds:
            greedy.update(int(greedy.std.argmax()), 0.0)  # the reward does not affect the variance
        return max(greedy.information_gain / (1 - math.exp(-1)), posterior.information_gain)

    def __reduce__(self) -> tuple[type[GreedyGain], tuple[Model]]:
        """Pickle the description only, for other processes."""
        return GreedyGain, (self.model,)


# Rules

LOWEST = float(np.finfo(float).min)

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
        best, highest = highest_point(score, posterior.arms, posterior.mean + half_width, box)
        pulled = posterior.pulled
        if pulled.size:
            again = (posterior.mean + (1 + AGAIN) * half_width)[pulled]
            if again.max() >= highest:
                return np.asarray(posterior.arms[pulled[int(again.argmax())]])
        return best


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
        best, _ = highest_point(draw, posterior.arms, draw(posterior.arms), box)
        return np.asarray(box.on_grid(best[None], posterior.kernel, min(max(fineness, 1.0), FINEST))[0])


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
