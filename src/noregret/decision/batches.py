"""Loops that pull many arms before they learn: in adaptive batches, or one arm many times over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.ahead import ahead
from noregret.decision.loops import Play, Pull, bounds_of
from noregret.decision.rules import Band, Rule, best_arm


@dataclass(frozen=True)
class Batched:
    """Adaptive batches (BBKB, Calandriello et al. 2020), whatever the model and the rule.

    A batch is chosen arm by arm as if each had returned its mean. It ends with its ``size``-th arm, or once
    1 + sum s_0(x)^2 / ridge exceeds ``growth``, s_0 the std at its start, whichever comes first. One of the two must be
    given, or both. With ``growth``, no variance shrinks by more than that factor before the batch's last arm; and a
    batch also ends when it gets long beside all rewards before, which happens only where an arm has hardly anything to
    tell. All of it is asked for at once, so it is also how to measure in parallel.

    Under UCB the arms picked are conditioned on through the posterior covariance, so on a sketch also where it has no
    features; the authors' code leaves that part of the variance as it is until the batch is over.
    """

    model: Model
    rule: Rule
    growth: float | None = None
    size: int | None = None
    band: Band | None = None

    def __post_init__(self) -> None:
        if self.growth is None and self.size is None:
            raise ValueError("growth or size must be given, got neither: pass growth=2, or size= the arms of a batch")
        if self.growth is not None:
            _check_growth(self.growth)
        _check_size(self.size)

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose a batch, pull it, learn it as one block; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            pulled, rewards = yield Pull(np.array(self._batch(belief, rng), dtype=np.intp), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean."""
        return ahead(self.rule, belief, rng, out)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)

    def _batch(self, belief: Posterior, rng: Rng) -> list[int]:
        spent, least, batch = 1.0, _least_cost(belief), list[int]()
        choose, growth, size = ahead(self.rule, belief, rng), self.growth or math.inf, self.size or math.inf
        while spent <= growth and len(batch) < size:
            batch.append(next(choose))
            spent += max(float(belief.std[batch[-1]]) ** 2 / belief.ridge, least)
        return batch


@dataclass(frozen=True)
class Repeated:
    """The chosen arm again and again, until its variance has shrunk (mini-GP-UCB, Calandriello et al. 2022).

    The arm is pulled floor((growth^2 - 1) ridge / s(x)^2) times in a row, at least once and never more often than all
    pulls before together plus one. No variance shrinks by more than growth^2 meanwhile. The number of choices grows
    like the information gain, not like the rounds.
    """

    model: Model
    rule: Rule
    growth: float
    band: Band | None = None

    def __post_init__(self) -> None:
        _check_growth(self.growth)

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose an arm, pull it so often that choosing again is worth it, learn; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            times = (self.growth**2 - 1) * belief.ridge / max(float(belief.std[best]) ** 2, 1e-300)
            pulled, rewards = yield Pull(np.full(int(min(max(times, 1), belief.rounds + 1)), best), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean."""
        return ahead(self.rule, belief, rng, out)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def _least_cost(belief: Posterior) -> float:
    """What an arm costs at least, whose cost is s(x)^2 / ridge: half of 1 / (t + 1/c), c the largest cost of all.

    On a stationary kernel t pulls leave every arm at least 1 / (t + ridge / k(x, x)), so that the limit changes nothing
    there. It ends the batches in which the arm on top has a std of 0, or one that is tiny from the start.
    """
    largest = float(belief.std.max()) ** 2 / belief.ridge
    return 0.5 / (belief.rounds + 1 / largest) if largest else math.inf


def _check_size(size: Any) -> None:
    """Raise ValueError unless size is None or a whole number from 1."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
        raise ValueError(f"size must be a whole number from 1, the arms of a batch, got {size!r}")


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")
