"""Schedules: numbers that depend on how far the run is (widths, truncation levels, information gains).

A schedule is any callable from a posterior to a number. ``posterior.rounds`` is t, the rewards seen so far, so the
width that chooses round t + 1 sees t. Where a schedule is wanted, a number stands for a `Constant`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from noregret.belief.kernels import Kernel
from noregret.belief.posterior import Constant as Constant
from noregret.belief.posterior import Model, Posterior, convert_numbers
from noregret.belief.posterior import Schedule as Schedule


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
    """1/2 ln det(I + K_t / ridge) of the arms really pulled: never above gamma_t, and enough for the bounds."""

    def __call__(self, posterior: Posterior) -> float:
        return posterior.information_gain


@dataclass(frozen=True)
class RateGain:
    """The known growth rate of gamma_t with constant 1, as the papers' experiments use it: a heuristic."""

    kernel: Kernel

    def __post_init__(self) -> None:
        self.kernel.gain_rate(2, 1)  # a kernel without a known rate says so here, not in the third round

    def __call__(self, posterior: Posterior) -> float:
        rounds, dimension = posterior.rounds, posterior.arms.shape[1]
        rate = self.kernel.gain_rate(rounds, dimension) if rounds > 1 else 0.0
        if math.isinf(rate):
            raise ValueError(
                f"the gain's rate must be finite, got (ln {rounds})^{dimension + 1} on arms with {dimension} columns: "
                "pass gain='realised', which is what the arms pulled really gained"
            )
        return rate


@dataclass(frozen=True)
class GreedyGain:
    """An upper bound on gamma_t over the arms: the gain of greedy max-variance pulls divided by 1 - 1/e.

    The gain is submodular, so greedy reaches 1 - 1/e of the largest. One greedy pull is made per round of the run,
    on a posterior of its own: the cost of a run doubles. After a change of arms the bound is on what the new arms can
    give, but never below the gain that was realised, which is all that a confidence width needs.
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
            greedy.update(int(greedy.std.argmax()), 0.0)  # the reward is of no consequence to the variance
        return max(greedy.information_gain / (1 - math.exp(-1)), posterior.information_gain)

    def __reduce__(self) -> tuple[type[GreedyGain], tuple[Model]]:
        """What is pickled, for other processes: the description alone."""
        return GreedyGain, (self.model,)
