"""Regret balancing: a ladder of guesses at unknown constants, each played as often as its regret bound allows.

A. Pacchiano, C. Dann, C. Gentile, P. Bartlett. Regret bound balancing and elimination for model selection in bandits
and RL. 2020, in the form of J. Ziomek, M. Adachi, M. A. Osborne. Bayesian optimisation with unknown hyperparameters:
regret bounds logarithmically closer to optimal. NeurIPS 2024.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from noregret.bandits.belief.model_set import SharedPosterior
from noregret.bandits.decision.loops import Play, Pull
from noregret.bandits.decision.rules import UCB
from noregret.gp.arrays import namespace, top
from noregret.gp.posterior import Floats, Model, Rng, Schedule, convert_numbers


@dataclass(frozen=True)
class Rung:
    """One guess: a model, the width that makes its band valid if the guess is right, and its regret in that case.

    ``regret(n, d)`` is the suspected regret, a bound on the regret of n rounds on arms with d columns.
    """

    model: Model
    width: Schedule
    regret: Callable[[int, int], float]

    def __post_init__(self) -> None:
        convert_numbers(self, "width")


Ladder = Callable[[int, int], tuple[Rung, ...]]
"""Rungs in play after t rewards on arms with d columns, (t, d) -> rungs; the same rung must compare equal."""


@dataclass
class _OwnRounds:
    """Sums over the rounds that a rung played itself."""

    rounds: int = 0
    rewards: float = 0.0
    half_widths: float = 0.0
    """width * std of the arms that the rung chose."""


@dataclass(frozen=True)
class Balanced:
    """Loop in which the rung with the smallest suspected regret plays its own UCB choice; every rung learns the reward.

    A rung is dropped once its own rewards refute it: if its band were valid, each of its rounds would be within 2 width
    std of the best arm. With avg and n the average reward and number of its own rounds, and xi = 2 R^2 ln(rungs pi^2
    t^2 / (6 delta)), it is dropped when

        avg + sqrt(xi / n) + (allowance / n) sum of its own width * std < the largest avg' - sqrt(xi / n') of any rung.

    All rungs learn the rewards of arms that were not asked for, but these count as no rung's own. The belief is that of
    the rung that chose; `bounds` is the lowest lower and the highest upper bound of all remaining rungs, so it is valid
    if one of them is.
    """

    ladder: Ladder
    noise: float
    delta: float
    allowance: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise ValueError(f"delta must be in (0, 1), got {self.delta}")
        for name in ("noise", "allowance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and at least 0, got {getattr(self, name)}")

    @property
    def model(self) -> Model:
        """Model of the first rung, before any reward."""
        return self.ladder(0, 1)[0].model

    def play(self, arms: Floats, rng: Rng) -> Play:
        """Pick the rung, then its arm; pull, learn in every rung, drop the refuted; for ever."""
        belief, active, own = SharedPosterior(arms), np.arange(len(arms)), dict[Any, _OwnRounds]()
        rungs: tuple[Rung, ...] = ()

        def suspected(rung: Any) -> tuple[float, int]:  # the regret after one more round; on ties, the rounds
            return rung.regret(own[rung].rounds + 1, arms.shape[1]), own[rung].rounds

        while True:
            before, rungs = rungs, self.ladder(belief.rounds, arms.shape[1])
            if rungs != before:
                for rung in rungs:
                    if rung not in own:
                        own[rung] = _OwnRounds()
                        belief.admit(rung, rung.model, rng)
                for gone in [rung for rung in belief.members if rung not in rungs]:
                    belief.dismiss(gone)
            belief.leader = rung = min(belief.members, key=suspected)
            width = rung.width(belief)
            best = top(belief.mean + belief.std * width)[0]
            half_width = float(belief.std[best]) * width
            pulled, rewards = yield Pull(np.array([best]), belief, active)
            belief.update(pulled, rewards)
            rewards = rewards[pulled == best]
            own[rung].rounds += rewards.size
            own[rung].rewards += float(rewards.sum())
            own[rung].half_widths += rewards.size * half_width
            for refuted in self._refuted(belief, own):
                belief.dismiss(refuted)

    def bounds(self, belief: Any) -> tuple[Floats, Floats]:
        """Lowest lower and highest upper bound of the remaining rungs, each (N,)."""
        lower, upper = zip(*(UCB(rung.width).bounds(fit) for rung, fit in belief.members.items()), strict=True)
        xp = namespace(lower[0])
        return reduce(xp.minimum, lower), reduce(xp.maximum, upper)

    def _refuted(self, belief: SharedPosterior, own: dict[Any, _OwnRounds]) -> list[Rung]:
        """Rungs whose own average plus its allowance is below the lower bound of another rung's average."""
        rungs: list[Any] = list(belief.members)
        rounds = np.array([own[rung].rounds for rung in rungs])
        if not rounds.all():
            return []
        average = np.array([own[rung].rewards for rung in rungs]) / rounds
        events = len(own) * math.pi**2 * belief.rounds**2 / (6 * self.delta)
        error = self.noise * np.sqrt(2 * math.log(events) / rounds)
        short = self.allowance * np.array([own[rung].half_widths for rung in rungs]) / rounds
        refuted = average + error + short < (average - error).max()
        return [rung for rung, gone in zip(rungs, refuted, strict=True) if gone]
