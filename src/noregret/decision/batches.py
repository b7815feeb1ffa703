"""Loops that pull many arms before they learn: in adaptive batches, or one arm many times over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noregret.belief.arrays import numpy_of
from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.loops import Play, Pull, bounds_of
from noregret.decision.rules import UCB, Band, Rule, best_arm

POOL = 64
"""Up to so many arms that are looked at together are kept in the pool of `_Ahead`."""


@dataclass(frozen=True)
class Batched:
    """Adaptive batches (BBKB, Calandriello et al. 2020), whatever the model and the rule.

    A batch is chosen arm by arm as if each had returned its mean, and ends once 1 + sum s_0(x)^2 / ridge exceeds
    ``growth``, s_0 the std at its start: until then no variance has shrunk by more than that factor. It also ends when
    it gets long beside all rewards before, which happens only where an arm has hardly anything to tell. All of it is
    asked for at once, so it is also how to measure in parallel.

    Under UCB the arms picked are conditioned on through the posterior covariance, so on a sketch also where it has no
    features; the authors' code leaves that part of the variance as it is until the batch is over.
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
        spent, cost, batch = 1.0, _costs(belief), list[int]()
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
            best = best_arm(self.rule, belief, rng)
            times = (self.growth**2 - 1) * belief.ridge / max(float(belief.std[best]) ** 2, 1e-300)
            pulled, rewards = yield Pull(np.full(int(min(max(times, 1), belief.rounds + 1)), best), belief, active)
            belief.update(pulled, rewards)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def _costs(belief: Posterior) -> Floats:
    """s(x)^2 / ridge, (N,), but never below half of 1 / (t + 1/c), c the largest of them.

    On a stationary kernel t pulls leave every arm at least 1 / (t + ridge / k(x, x)), so that the limit changes nothing
    there. It ends the batches in which the arm on top has a std of 0, or one that is tiny from the start.
    """
    costs = numpy_of(belief.std) ** 2 / belief.ridge
    largest = float(costs.max())
    return np.asarray(np.maximum(costs, 0.5 / (belief.rounds + 1 / largest) if largest else math.inf))


def _afresh(rule: Rule, belief: Posterior, rng: Rng) -> Iterator[int]:
    """The arms that score highest, each scored after those before it were taken for observed."""
    ahead = belief.copy()
    while True:
        best = best_arm(rule, ahead, rng)
        yield best
        ahead.update(best)


def _lazily(rule: UCB, belief: Posterior) -> Iterator[int]:
    """The same for mean + width * std with mean and width as they are at the start of the batch.

    Scores can only fall, so after a pick only the arms whose old score beats the new score of the arm just picked need
    a new one; all others are below it whatever their own new score is.
    """
    width, ahead = rule.width(belief), _Ahead(belief)
    mean = numpy_of(belief.mean)
    scores = mean + width * numpy_of(belief.std)
    while True:
        best = int(np.argmax(scores))
        yield best
        ahead.pick(best)
        scores[best] = mean[best] + width * ahead.std(np.array([best]))[0]
        stale = np.flatnonzero(scores > scores[best])
        if stale.size:
            scores[stale] = mean[stale] + width * ahead.std(stale)


class _Ahead:
    """The std of a few arms after some picks, from the posterior covariance C at the start.

    s(x)^2 - C(x, picks) (C(picks, picks) + ridge / counts)^-1 C(picks, x). For the arms in a small pool, those picked
    and those looked at, the whole covariance is kept and a pick changes it by a rank-one term, so that a long batch on
    few arms costs little more than its length.
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._ridge = belief, belief.ridge
        self._place = np.full(len(belief.mean), -1)  # of every arm: where in the pool it is
        self._pool, self._counts = np.empty(0, np.intp), np.empty(0)
        self._start, self._now = np.empty((0, 0)), np.empty((0, 0))

    def pick(self, arm: int) -> None:
        """Count one more pull of this arm."""
        self._enter(np.array([arm]))
        place = self._place[arm]
        column = self._now[place]
        self._now -= np.outer(column, column / (column[place] + self._ridge))
        self._counts[place] += 1

    def std(self, arms: Ints) -> Floats:
        """Std of these arms, (n,) -> (n,)."""
        new = arms[self._place[arms] < 0]
        if new.size > POOL:
            start = numpy_of(self._belief.std[arms]) ** 2
            variance = start - self._explained(self._belief.covariance(self._pool, arms))
        else:
            self._enter(new)
            variance = self._now.diagonal()[self._place[arms]]
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def _enter(self, arms: Ints) -> None:
        """Take arms into the pool."""
        arms = arms[self._place[arms] < 0]
        if not arms.size:
            return
        before, self._pool = len(self._pool), np.concatenate([self._pool, arms])
        self._place[arms] = np.arange(before, len(self._pool))
        columns = self._belief.covariance(self._pool, arms)
        self._start = np.block([[self._start, columns[:before]], [columns.T]])
        self._counts = np.concatenate([self._counts, np.zeros(arms.size)])
        picked = self._counts > 0
        cross = self._start[picked]
        self._now = self._start - cross.T @ self._solve(cross)

    def _explained(self, covariance: Floats) -> Floats:
        """The variance that the picks take from n arms, whose covariance with the pool this is, (pool, n) -> (n,)."""
        cross = covariance[self._counts > 0]
        return np.asarray(np.einsum("ij,ij->j", cross, self._solve(cross)))

    def _solve(self, cross: Floats) -> Floats:
        picked = self._counts > 0
        noise = np.diag(self._ridge / self._counts[picked])
        return np.asarray(np.linalg.solve(self._start[np.ix_(picked, picked)] + noise, cross))


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")
