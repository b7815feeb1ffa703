"""Designs, which choose the arms of a whole epoch before any of its rewards is known, and the lengths of epochs.

A design is any callable (model, arms, count, rng) -> (count,) indices into the arms. On a continuous `noregret.Box` its
method ``points(model, draw, count, rng) -> (count, d)`` is called, where ``draw(n)`` returns n uniform points of the
remaining region.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from noregret.belief.arrays import largest, rows
from noregret.belief.numerics.threads import one_thread
from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng

Draw = Callable[[int], Floats]
Lengths = Callable[[int], int]
"""Function from the length of an epoch to the length of the next."""


class Design(Protocol):
    """Choice of the arms of an epoch."""

    def __call__(self, model: Model, arms: Floats, count: int, rng: Rng, /) -> Ints:
        """Indices of ``count`` of these (N, d) arms; repetitions mean repeated pulls."""
        ...

    def points(self, model: Model, draw: Draw, count: int, rng: Rng, /) -> Floats:
        """(count, d) points of a region, from the uniform points that ``draw`` returns."""
        ...


@dataclass(frozen=True)
class RandomDesign:
    """Uniformly random arms, with replacement (REDS, Alg. 1, line 4)."""

    def __call__(self, model: Model, arms: Floats, count: int, rng: Rng) -> Ints:
        return rng.integers(len(arms), size=count)

    def points(self, model: Model, draw: Draw, count: int, rng: Rng) -> Floats:
        """As many points as asked for, fresh from the region."""
        return draw(count)


@dataclass(frozen=True)
class MaxVarianceDesign:
    """The arm of the largest posterior variance, given the arms chosen so far (BPE); the lowest index on ties.

    A variance never grows, so an earlier value is an upper bound. Only the ``shortlist`` of the most uncertain arms is
    updated at every step; when its largest variance falls below the bound of another arm, all arms are updated at once.
    The plan equals that of updating all arms at every step.

    Parameters
    ----------
    shortlist : int
        Number of arms that are updated at every step. It changes the time, not the plan.
    candidates : int
        Number of uniform points of a box to choose from.
    """

    shortlist: int = 128
    candidates: int = 2000

    def __call__(self, model: Model, arms: Floats, count: int, rng: Rng) -> Ints:
        if len(arms) == 1:
            return np.zeros(count, dtype=np.intp)
        size = self.shortlist if len(arms) > 8 * self.shortlist else len(arms)
        plan: list[int] = []
        if size == len(arms):
            arms = rows(arms, np.arange(size))  # few arms are copied here, wherever they are
        with one_thread():  # many small steps, each too small for a second thread
            whole = model.prior(arms, rng)
            while len(plan) < count:
                plan += _greedy(model, whole, plan, count, size, rng)
        return np.array(plan, dtype=np.intp)

    def points(self, model: Model, draw: Draw, count: int, rng: Rng) -> Floats:
        """Plan among ``candidates`` uniform points, or 4 ``count`` if that is more."""
        cloud = draw(max(self.candidates, 4 * count))
        return np.asarray(cloud[self(model, cloud, count, rng)])


def _greedy(model: Model, whole: Posterior, plan: list[int], count: int, size: int, rng: Rng) -> list[int]:
    """Next arms of a plan, at least one: as many as follow from the ``size`` most uncertain arms alone."""
    if size == len(whole.arms):
        return _steps(whole, size, count - len(plan), -math.inf)
    order, stds = largest(whole.std, size + 1)
    listed, limit = np.sort(order[:size]), float(stds[size])
    followed = np.concatenate([listed, np.setdiff1d(plan, listed).astype(np.intp)])
    close = model.prior(rows(whole.arms, followed), rng)
    if plan:
        place = np.empty(len(whole.arms), dtype=np.intp)
        place[followed] = np.arange(followed.size)
        close.update(place[plan], None)
    chosen = listed[_steps(close, size, count - len(plan), limit)].tolist()
    if len(plan) + len(chosen) < count:
        whole.update(chosen, None)
    return list(chosen)


def _steps(belief: Posterior, size: int, count: int, limit: float) -> list[int]:
    """Pick the most uncertain of the first ``size`` arms up to ``count`` times, while its std is at least the limit."""
    chosen: list[int] = []
    while len(chosen) < count:
        arm = int(belief.std[:size].argmax())
        if chosen and belief.std[arm] < limit:
            break
        belief.update(arm, None)
        chosen.append(arm)
    return chosen


def left_before(horizon: int | None, spent: int) -> int | None:
    """Number of rewards left before the horizon after ``spent`` ones; None without a horizon or beyond it."""
    return horizon - spent if horizon and spent < horizon else None


@dataclass(frozen=True)
class Doubling:
    """N_{r+1} = 2 N_r (REDS, Alg. 1, line 11)."""

    def __call__(self, length: int) -> int:
        return 2 * length


@dataclass(frozen=True)
class SquareRootLengths:
    """N_{i+1} = ceil(sqrt(T N_i)), N_0 = 1 (BPE)."""

    horizon: int

    def __call__(self, length: int) -> int:
        return math.isqrt(self.horizon * length - 1) + 1
