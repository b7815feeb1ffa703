"""Loops that pull many arms before they learn: in adaptive batches, or one arm many times over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.loops import Play, Pull, bounds_of
from noregret.decision.rules import UCB, Band, Rule, best_arm

GLANCE = 8
"""At least so many arms are looked at together; a look at one costs nearly as much."""


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
    costs = belief.std**2 / belief.ridge
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

    Scores can only fall, so an old score is an upper bound. The arm on top is picked if its score is up to date; if
    not, those nearest to the top are looked at, until an arm that was is on top. No other arm is ever looked at.
    """
    mean, width, ahead = belief.mean, rule.width(belief), _Ahead(belief)
    scores = np.asarray(mean + width * belief.std)
    while True:
        best = int(np.argmax(scores))
        while ahead.is_stale(best):
            count = min(max(GLANCE, ahead.arms.size // 4), scores.size)
            ahead.look(np.append(best, np.argpartition(scores, -count)[-count:]))
            scores[ahead.arms] = mean[ahead.arms] + width * ahead.std
            best = int(np.argmax(scores))
        yield best
        ahead.pick(best)
        scores[ahead.arms] = mean[ahead.arms] + width * ahead.std


class _Ahead:
    """The std of the arms that were looked at after some picks, from the posterior covariance C at the start.

    With k distinct picks P and the noise R = ridge / counts, their covariance with x is now R (C(P, P) + R)^-1 C(P, x),
    and the variance of x has lost C(x, P) (C(P, P) + R)^-1 C(P, x). Another pick changes both by a rank-one term.
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._ridge = belief, belief.ridge
        self.arms = np.empty(0, np.intp)  # those that were looked at, (n,)
        self._variance = np.empty(0)  # of these arms, now
        self._place = np.full(len(belief.mean), -1)  # of every arm: where among them it is
        self._start = np.empty((0, 0))  # C(arms, arms)
        self._picked, self._counts = np.empty(0, np.intp), np.empty(0)  # places of the picks, and how often
        self._now = np.empty((0, 0))  # covariance of the picks with these arms, now, (k, n)

    @property
    def std(self) -> Floats:
        """Std of the arms that were looked at, (n,)."""
        return np.sqrt(np.maximum(self._variance, 0.0))

    def is_stale(self, arm: int) -> bool:
        """Whether the arm has not been looked at since the start, and something was picked."""
        return self._counts.size > 0 and self._place[arm] < 0

    def look(self, arms: Ints) -> None:
        """Keep the std of these arms up to date from now on."""
        arms = np.unique(arms[self._place[arms] < 0])
        self._place[arms] = self.arms.size + np.arange(arms.size)
        self.arms = np.append(self.arms, arms)
        columns = self._belief.covariance(self.arms, arms)
        self._start = np.block([[self._start, columns[: -arms.size]], [columns.T]])
        noise, cross = self._ridge / self._counts, columns[self._picked]
        weights = np.linalg.solve(self._start[np.ix_(self._picked, self._picked)] + np.diag(noise), cross)
        self._now = np.hstack([self._now, noise[:, None] * weights])
        start = self._belief.std[arms] ** 2
        self._variance = np.append(self._variance, start - np.einsum("ij,ij->j", cross, weights))

    def pick(self, arm: int) -> None:
        """Count one more pull of this arm."""
        if self._place[arm] < 0:
            self.look(np.array([arm]))
        place = self._place[arm]
        if place not in self._picked:
            weights = self._counts / self._ridge * self._start[self._picked, place]
            self._now = np.vstack([self._now, self._start[place] - weights @ self._now])
            self._picked, self._counts = np.append(self._picked, place), np.append(self._counts, 0.0)
        which = int(np.flatnonzero(self._picked == place)[0])
        row, pivot = self._now[which].copy(), float(self._now[which, place]) + self._ridge
        self._variance -= row * row / pivot
        self._now -= np.outer(self._now[:, place] / pivot, row)
        self._counts[which] += 1


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")
