"""Thinking ahead: the next arms of a rule while those before them have not answered yet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from noregret.belief.arrays import Array, largest, numpy_of
from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.decision.rules import UCB, Rule, best_arm, best_of

GLANCE = 8
"""At least so many arms are looked at together; a look at one costs nearly as much."""

LISTED = 1000
"""So many arms are listed at first; four times as many when all of them were looked at."""


def ahead(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """The arms that score highest, one after another, each as if those before it had returned their mean.

    So have the arms that are ``out``: asked for, and not answered. The belief stays as it is. Under UCB, for k arms
    out and a belief of rank r, it takes O(N) at the start, and O(k (r + k)) for each of those that scored higher than
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

    Scores can only fall, so an old score is an upper bound. Arms are listed by their scores at the start, more of them
    when the list is used up. The best of those that were looked at is picked if no other on the list may score higher;
    if one may, the next few on the list are looked at. No other arm is ever looked at.
    """
    width, thought = rule.width(belief), _Ahead(belief)
    start = belief.mean + belief.std * width
    best_of(start, rule, belief)
    for arm in np.asarray(out, dtype=np.intp).tolist():
        thought.pick(arm)
    listed, scores = _listed(start, LISTED)
    first = 0  # those on the list before were looked at
    while True:
        while first < len(listed) and listed[first] in thought:
            first += 1
        if first == len(listed) < len(start):
            listed, scores = _listed(start, 4 * len(listed))
            continue
        best, score = thought.best(width)
        if first < len(listed) and (-scores[first], listed[first]) < (-score, best):
            if not thought.is_empty:
                thought.look(np.array(listed[first : first + thought.glance]))
                continue
            best = listed[first]
        yield best
        thought.pick(best)


def _listed(scores: Array, count: int) -> tuple[list[int], list[float]]:
    """So many of the arms that score highest, in falling order, and their scores."""
    arms, highest = largest(scores, count)
    return arms.tolist(), highest.tolist()


class _Ahead:
    """The std of the arms that were looked at after some picks, from the posterior covariance C at the start.

    With k distinct picks P and the noise R = ridge / counts, their covariance with x is now R (C(P, P) + R)^-1 C(P, x),
    and the variance of x has lost C(x, P) (C(P, P) + R)^-1 C(P, x). Another pick changes both by a rank-one term.
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._ridge = belief, belief.ridge
        self.arms = np.empty(0, np.intp)  # those that were looked at, (n,)
        self._mean, self._variance = np.empty(0), np.empty(0)  # of these arms, the variance of now
        self._place: dict[int, int] = {}  # of these arms, by name: where among them it is
        self._start = np.empty((0, 0))  # C(picks, arms), (k, n)
        self._picked, self._counts = np.empty(0, np.intp), np.empty(0)  # places of the picks, and how often
        self._now = np.empty((0, 0))  # covariance of the picks with these arms, now, (k, n)

    def __contains__(self, arm: int) -> bool:
        """Whether the arm was looked at."""
        return arm in self._place

    @property
    def is_empty(self) -> bool:
        """Whether nothing was picked yet."""
        return not self._counts.size

    @property
    def glance(self) -> int:
        """How many arms to look at next."""
        return max(GLANCE, self.arms.size // 4)

    def best(self, width: float) -> tuple[int, float]:
        """Of the arms that were looked at the one with the highest mean + width * std, and this score."""
        if not self.arms.size:
            return -1, -math.inf
        scores = self._mean + width * np.sqrt(np.maximum(self._variance, 0.0))
        highest = scores.max()
        return int(self.arms[scores == highest].min()), float(highest)

    def look(self, arms: Ints) -> None:
        """Keep the std of these arms up to date from now on."""
        arms = np.unique([arm for arm in arms.tolist() if arm not in self._place])
        self._place |= zip(arms.tolist(), range(self.arms.size, self.arms.size + arms.size), strict=True)
        self.arms = np.append(self.arms, arms)
        noise, cross = self._ridge / self._counts, self._covariance(self.arms[self._picked], arms)
        self._start = np.hstack([self._start, cross])
        weights = np.linalg.solve(self._start[:, self._picked] + np.diag(noise), cross)
        self._now = np.hstack([self._now, noise[:, None] * weights])
        self._mean = np.append(self._mean, numpy_of(self._belief.mean[arms]))
        start = numpy_of(self._belief.std[arms]) ** 2
        self._variance = np.append(self._variance, start - np.einsum("ij,ij->j", cross, weights))

    def pick(self, arm: int) -> None:
        """Count one more pull of this arm."""
        if arm not in self._place:
            self.look(np.array([arm]))
        place = self._place[arm]
        if place not in self._picked:
            start, weights = self._covariance([arm], self.arms), self._counts / self._ridge * self._start[:, place]
            self._start, self._now = (
                np.vstack([self._start, start]),
                np.vstack([self._now, start - weights @ self._now]),
            )
            self._picked, self._counts = np.append(self._picked, place), np.append(self._counts, 0.0)
        which = int(np.flatnonzero(self._picked == place)[0])
        row, pivot = self._now[which].copy(), float(self._now[which, place]) + self._ridge
        self._variance -= row * row / pivot
        self._now -= np.outer(self._now[:, place] / pivot, row)
        self._counts[which] += 1

    def _covariance(self, picks: Sequence[int] | Ints, arms: Ints) -> Floats:
        """C(picks, arms), which is empty if nothing was picked."""
        picks = np.asarray(picks, dtype=np.intp)
        return self._belief.covariance(picks, arms) if picks.size else np.empty((0, arms.size))
