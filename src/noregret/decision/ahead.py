"""Thinking ahead: the next arms of a rule while those before them have not answered yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.decision.rules import UCB, Rule, best_arm, best_of

POOL = 64
"""Up to so many arms that are looked at together are kept in the pool of `_Ahead`."""

LOOK = 512
"""So many arms are scored anew at first, then twice as many, and so on, as long as one may lead."""


def ahead(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """The arms that score highest, one after another, each as if those before it had returned their mean.

    So have the arms that are ``out``: asked for, and not answered. The belief stays as it is. Under UCB, for k arms
    out and a belief of rank r, it takes O(N) for every arm, and O(k (r + k)) for each of those that scored higher than
    the arm that comes next before the arms out were counted. Other rules work on a copy of the belief.
    """
    return lazily(rule, belief, out) if type(rule) is UCB else afresh(rule, belief, rng, out)


def afresh(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for any rule, which scores a copy of the belief."""
    thought = belief.copy()
    if len(out):
        thought.update(np.asarray(out))
    while True:
        best = best_arm(rule, thought, rng)
        yield best
        thought.update(best)


def lazily(rule: UCB, belief: Posterior, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for mean + width * std, with mean and width as the belief has them.

    Scores can only fall, so after a pick only the arms whose old score beats the new score of the one that leads need
    a new one; all others are below it whatever their own new score is. The highest old scores are looked at first.
    """
    width, thought = rule.width(belief), _Ahead(belief)
    scores = belief.mean + width * belief.std

    def refresh(arms: Ints) -> float:
        scores[arms] = belief.mean[arms] + width * thought.std(arms)
        return float(scores[arms].max())

    picked, best = np.asarray(out, dtype=np.intp), best_of(scores, rule, belief)
    while True:
        if picked.size:
            thought.pick(picked)
            highest, look = refresh(np.array([best])), LOOK
            stale = np.flatnonzero(scores > highest)
            while stale.size:
                order = np.argpartition(-scores[stale], min(look, stale.size) - 1)
                highest, rest = max(highest, refresh(stale[order[:look]])), stale[order[look:]]
                stale, look = rest[scores[rest] > highest], 2 * look
            best = int(np.argmax(scores))
        yield best
        picked = np.array([best])


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

    def pick(self, arms: Ints) -> None:
        """Count one more pull of each of these arms, (n,)."""
        self._enter(np.unique(arms))
        for place in self._place[arms].tolist():
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
