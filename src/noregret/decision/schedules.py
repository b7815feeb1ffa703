"""Schedules: numbers that depend on the state of a run (widths, truncation levels, information gains).

A schedule is any callable from a posterior to a number. ``posterior.rounds`` is t, the number of rewards so far, so the
width for the choice of round t + 1 is computed with t. A number is accepted as a schedule and means `Constant`.
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
