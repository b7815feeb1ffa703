"""Thinking ahead: the next arms of a rule while those before them have not answered yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.decision.rules import UCB, Rule, best_arm

POOL = 64
"""Up to so many arms that are looked at together are kept in the pool of `_Ahead`."""


def afresh(rule: Rule, belief: Posterior, rng: Rng) -> Iterator[int]:
    """The arms that score highest, each scored after those before it were taken for observed."""
    ahead = belief.copy()
    while True:
        best = best_arm(rule, ahead, rng)
        yield best
        ahead.update(best)


def lazily(rule: UCB, belief: Posterior) -> Iterator[int]:
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
            start = self._belief.std[arms] ** 2
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
