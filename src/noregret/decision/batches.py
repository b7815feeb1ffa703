"""Loops that pull many arms before they learn: in adaptive batches, or one arm many times over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.loops import Play, Pull, bounds_of
from noregret.decision.rules import UCB, Band, Rule


@dataclass(frozen=True)
class Batched:
    """Adaptive batches (BBKB, Calandriello et al. 2020), whatever the model and the rule.

    A batch is chosen arm by arm as if each had returned its mean, and ends once 1 + sum s_0(x)^2 / ridge exceeds
    ``growth``, s_0 the std at its start: until then no variance has shrunk by more than that factor. All of it is asked
    for at once, so it is also how to measure in parallel.
    """

    model: Model
    rule: Rule
    growth: float
    band: Band | None = None

    def __post_init__(self) -> None:
        _check_growth(self.growth)

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose a batch, pull it, learn it as one block; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            pulled, rewards = yield Pull(np.array(self._batch(belief, rng), dtype=np.intp), belief, active)
            belief.update(pulled, rewards)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)

    def _batch(self, belief: Posterior, rng: Rng) -> list[int]:
        spent, cost, batch = 1.0, belief.std**2 / belief.ridge, list[int]()
        choose = _lazily(self.rule, belief) if type(self.rule) is UCB else _afresh(self.rule, belief, rng)
        while spent <= self.growth:
            batch.append(next(choose))
            spent += float(cost[batch[-1]])
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
            best = int(np.argmax(self.rule(belief, rng)))
            times = (self.growth**2 - 1) * belief.ridge / max(float(belief.std[best]) ** 2, 1e-300)
            pulled, rewards = yield Pull(np.full(int(min(max(times, 1), belief.rounds + 1)), best), belief, active)
            belief.update(pulled, rewards)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def _afresh(rule: Rule, belief: Posterior, rng: Rng) -> Iterator[int]:
    """The arms that score highest, each scored after those before it were taken for observed."""
    ahead = belief.copy()
    while True:
        best = int(np.argmax(rule(ahead, rng)))
        yield best
        ahead.update(best)


def _lazily(rule: UCB, belief: Posterior) -> Iterator[int]:
    """The same for mean + width * std with mean and width as they are at the start of the batch.

    Scores can only fall, so after a pick only the arms whose old score beats the new score of the arm just picked need
    a new one; all others are below it whatever their own new score is.
    """
    width, ahead = rule.width(belief), _Ahead(belief)
    scores = belief.mean + width * belief.std
    while True:
        best = int(np.argmax(scores))
        yield best
        ahead.pick(best)
        scores[best] = belief.mean[best] + width * ahead.std(np.array([best]))[0]
        stale = np.flatnonzero(scores > scores[best])
        if stale.size:
            scores[stale] = belief.mean[stale] + width * ahead.std(stale)


class _Ahead:
    """The std of a few arms after some picks, from the posterior covariance C: each pick is one more row and column.

    s(x)^2 - C(x, picks) (C(picks, picks) + ridge / counts)^-1 C(picks, x)
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._variance = belief, belief.std**2
        self._counts: dict[int, int] = {}
        self._covariance = np.empty((0, 0))

    def pick(self, arm: int) -> None:
        """Count one more pull of this arm."""
        if arm not in self._counts:
            before = np.array(list(self._counts), dtype=np.intp)
            border = self._belief.covariance(before, np.array([arm]))
            self._covariance = np.block([[self._covariance, border], [border.T, self._variance[arm]]])
        self._counts[arm] = self._counts.get(arm, 0) + 1

    def std(self, arms: Ints) -> Floats:
        """Std of these arms, (n,) -> (n,)."""
        picks = np.array(list(self._counts), dtype=np.intp)
        cross = self._belief.covariance(picks, arms)
        noise = self._belief.ridge / np.array(list(self._counts.values()))
        known = np.linalg.solve(self._covariance + np.diag(noise), cross)
        return np.asarray(np.sqrt(np.maximum(self._variance[arms] - np.einsum("ij,ij->j", cross, known), 0.0)))


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")
