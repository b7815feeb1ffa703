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

from noregret.gp.arrays import largest, numpy_of, rows
from noregret.gp.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.gp.threads import one_thread

Draw = Callable[[int], Floats]
Lengths = Callable[[int], int]
"""Function from the length of an epoch to the length of the next."""


BLOCKS, FEWEST = 1000, 500
"""Largest number of blocks of proposals for a design under a measure, and the least number of points in one."""


class Design(Protocol):
    """Choice of the arms of an epoch."""

    def __call__(self, model: Model, arms: Floats, count: int, rng: Rng, /) -> Ints:
        """Indices of ``count`` of these (N, d) arms; repetitions mean repeated pulls."""

    def points(self, model: Model, draw: Draw, count: int, rng: Rng, /) -> Floats:
        """(count, d) points of a region, from the uniform points that ``draw`` returns."""


@dataclass(frozen=True)
class RandomDesign:
    """Random arms, with replacement: uniform (REDS, Alg. 1, line 4), or under any measure (Remark 3.5).

    Parameters
    ----------
    weights : callable (n, d) -> (n,), optional
        Density of the measure at some points, up to a factor: finite, at least 0 and above 0 nearly everywhere. An arm
        is drawn with probability proportional to it. On a box points are accepted by their density over the largest
        one seen, of at least 500 points. Bounds that hold for points chosen independently of their rewards hold under
        any measure; Thm 3.1 too, with a constant that depends on it.

    Examples
    --------
    >>> import numpy as np
    >>> design = RandomDesign(lambda points: 1 + 9 * (points[:, 0] > 0.5))
    >>> arms, rng = np.linspace(0, 1, 100)[:, None], np.random.default_rng(0)
    >>> chosen = arms[design(None, arms, 1000, rng), 0]
    >>> float((chosen > 0.5).mean().round(2))
    0.92
    """

    weights: Callable[[Floats], Floats] | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and not callable(self.weights):
            raise ValueError(
                f"weights must be a function from (n, d) points to their (n,) densities, got {self.weights!r}: for "
                "a table of weights, look the points up in it"
            )

    def __call__(self, model: Model, arms: Floats, count: int, rng: Rng) -> Ints:
        if self.weights is None:
            return rng.integers(len(arms), size=count)
        density = self._densities(numpy_of(arms))
        if not density.any():
            raise ValueError("weights must be positive at some of the arms in play, got 0 at all of them")
        return rng.choice(len(arms), size=count, p=density / density.sum())

    def points(self, model: Model, draw: Draw, count: int, rng: Rng) -> Floats:
        """As many points as asked for, fresh from the region."""
        if self.weights is None:
            return draw(count)
        kept, highest = draw(0), 0.0
        for _ in range(BLOCKS):
            proposed = draw(max(count, FEWEST))
            density = self._densities(proposed)
            before, highest = highest, max(highest, float(density.max()))
            kept = kept[rng.random(len(kept)) * highest < before]  # what a lower density had accepted too often
            kept = np.vstack([kept, proposed[rng.random(len(proposed)) * highest < density]])
            if len(kept) >= count:
                return np.asarray(kept[:count])
        raise ValueError(
            f"weights must accept points of the region, got {len(kept)} of {count} points after {BLOCKS} blocks of "
            "proposals: add a constant to the density"
        )

    def _densities(self, points: Floats) -> Floats:
        """Densities at (n, d) points, (n,); ValueError if they are not valid."""
        assert self.weights is not None
        density = np.asarray(self.weights(points), dtype=float)
        if density.shape != (len(points),) or not (np.isfinite(density) & (density >= 0)).all():
            raise ValueError(
                f"weights must return one finite number, at least 0, for each of {len(points)} points, got {density}"
            )
        return density


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
