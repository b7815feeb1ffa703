"""Elimination: epochs planned at once, after each of which arms that can no longer be the best are dropped.

`Elimination` is the loop, on finitely many arms; `Survival` decides which arms stay; `ShrinkingBox` is the same loop on
a box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from noregret.bandits.belief.arms import Bools, Box, among, remaining
from noregret.bandits.decision.designs import Design, Doubling, Lengths, left_before
from noregret.bandits.decision.loops import Best, Play, Pull, vouched
from noregret.bandits.decision.region import CLOUD, Region, climb, tops
from noregret.gp.arrays import numpy_of
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Floats, Model, Posterior, Rng, Schedule, convert_numbers
from noregret.gp.threads import threads_for


@dataclass(frozen=True)
class Elimination:
    """Loop of REDS (Alg. 1) and BPE, which differ by their design.

    Every epoch has a plan, made before any of its rewards is known, and a new posterior from the plan's rewards. It
    ends when the whole plan has been pulled. Rewards outside the plan, such as a warm start, are not used: they may
    depend on earlier rewards, and the widths hold only for points chosen independently of them. If an arm has more
    rewards than planned pulls, the first ones count. An unfinished epoch eliminates nothing.

    On a `noregret.Box` the arms are points, and the active set is a `Region`: see `ShrinkingBox`.

    Parameters
    ----------
    model : Model
        A posterior with a method ``follow(last, kept)`` is given the last epoch's posterior and the mask of its arms
        that stay, before any reward.
    design : Design
        Choice of the arms of an epoch.
    width : Schedule
        w: the bounds are mean -+ (w std + slack). If it has a method ``half_widths(posterior)``, w std is that, (N,).
    first_epoch : int
        N_1, the length of the first epoch.
    slack : float
        c.
    lengths : callable int -> int
        Length of the next epoch, given that of the last.
    keep : 'upper' or 'mean'
        Keep the arms whose upper bound reaches the largest lower bound (line 10), or those whose mean reaches the
        largest mean minus 2 (w max std + slack) (App. D.1).
    first_level : float, optional
        c0 of App. D.2, in (0, 1): lengthen the first epoch, by N_1 at a time, until every arm that is kept must have
        f >= c0 max f + (1 - c0) min f. The width must hold at all of these tests together.
    separate : bool
        On a box, plan an epoch's number of points for every connected piece of the region, or for all together.
    horizon : int, optional
        Planned number of rewards: the epoch that would exceed it is cut there. A run that continues finishes the epoch
        before it eliminates.
    """

    model: Model
    design: Design
    width: Schedule
    first_epoch: int
    slack: float = 0.0
    lengths: Lengths = field(default_factory=Doubling)
    keep: Keep = "upper"
    first_level: float | None = None
    separate: bool = True
    horizon: int | None = None

    def __post_init__(self) -> None:
        convert_numbers(self, "width")
        length: Any = self.first_epoch
        if not (isinstance(length, int | np.integer) and length >= 1):
            raise ValueError(f"first_epoch must be a whole number from 1, got {self.first_epoch!r}")
        _ = self.survival  # raises for an invalid slack, keep or first_level

    @property
    def survival(self) -> Survival:
        """Rule that decides which arms stay in play."""
        return Survival(self.width, self.slack, self.keep, self.first_level)

    def play(self, arms: Floats | Box, rng: Rng) -> Play:
        """Plan, pull, eliminate; for ever."""
        if isinstance(arms, Box):
            yield from ShrinkingBox(self).play(arms, rng)
            return
        survival, active, length = self.survival, np.arange(len(arms)), self.first_epoch
        belief = epoch = self.model.prior(arms, rng)
        about, done, spent = active, 0, 0
        while True:
            count = min(length - done, left_before(self.horizon, spent) or length)
            plan = active[self.design(self.model, arms[active], count, rng)]
            while plan.size:  # lines 3-8
                pulled, rewards = yield Pull(plan, belief, active, about)
                planned = among(pulled, plan)
                places = np.searchsorted(active, pulled[planned])
                with threads_for(places.size**2 * active.size):
                    epoch.update(places, rewards[planned])  # line 9
                plan, spent = remaining(plan, pulled), spent + len(pulled)
            done += count
            if done < length:  # cut by the horizon
                continue
            if belief is epoch and not survival.resolved(epoch):  # App. D.2
                length += self.first_epoch
                continue
            belief, about, done, kept = epoch, active, 0, survival.kept(epoch)
            active, length = active[kept], self.lengths(length)  # lines 10-11
            epoch = self.model.prior(arms[active], rng)
            if hasattr(epoch, "follow"):
                epoch.follow(belief, kept)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ (width * std + slack), each (N,)."""
        return self.survival.bounds(belief)


Keep = Literal["upper", "mean"]


@dataclass(frozen=True)
class Survival:
    """Bounds mean -+ (width std + slack), and the arms they keep; see `Elimination` for the fields."""

    width: Schedule
    slack: float = 0.0
    keep: Keep = "upper"
    first_level: float | None = None

    def __post_init__(self) -> None:
        convert_numbers(self, "width")
        if not 0 <= self.slack < np.inf:
            raise ValueError(f"slack must be at least 0, got {self.slack}")
        if self.keep not in ("upper", "mean"):
            raise ValueError(f"keep must be 'upper' or 'mean', got {self.keep!r}")
        if self.first_level is not None and not 0 < self.first_level < 1:
            raise ValueError(f"first_level must be in (0, 1), or None, got {self.first_level}")

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ (width * std + slack), each (N,)."""
        own = getattr(self.width, "half_widths", None)
        half_width = (own(belief) if own else belief.std * self.width(belief)) + self.slack
        return belief.mean - half_width, belief.mean + half_width

    def kept(self, belief: Posterior) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of the arms of the belief that stay in play, (N,)."""
        lower, upper = self.bounds(belief)
        if self.keep == "mean":
            return np.asarray(numpy_of(belief.mean >= belief.mean.max() - (upper - lower).max()))
        return np.asarray(numpy_of(upper >= lower.max()))

    def resolved(self, belief: Posterior) -> bool:
        """True if c0 max UCB + (1 - c0) min UCB <= max LCB - 2 max(w std + slack) (App. D.2)."""
        if self.first_level is None:
            return True
        lower, upper = self.bounds(belief)
        level = self.first_level * upper.max() + (1 - self.first_level) * upper.min()
        return bool(level <= lower.max() - (upper - lower).max())


STARTS = 10
"""Largest number of starting points of a search for a maximum: those above their neighbours."""

PROPOSALS = 20_000
"""Approximate number of points tested in an epoch."""


@runtime_checkable
class BoxWidth(Protocol):
    """Width that is different on a box, where it must hold at infinitely many points."""

    def on(self, box: Box, kernel: Kernel) -> Schedule:
        """Width for this box."""

    def slack(self, ridge: float) -> float:
        """Slack that accounts for the grid."""


@dataclass(frozen=True, eq=False)
class Reaches:
    """Test mean + width std + slack >= threshold."""

    belief: Posterior
    width: float
    slack: float
    threshold: float

    def __call__(self, points: Floats) -> Bools:
        return self.bound(*self.belief.predict(points)) >= self.threshold

    def bound(self, mean: Floats, std: Floats) -> Floats:
        """Return the left side of the test."""
        return np.asarray(mean + self.width * std + self.slack)


@dataclass(frozen=True)
class ShrinkingBox:
    """Loop of `Elimination` on a box: REDS as Alg. 1 states it, without a grid.

    `Pull.arms` are (n, d) points, `Pull.active` is the `Region`. The active region X_r is the set of points that passed
    the test of line 10 in every epoch so far, each with that epoch's own posterior. Three things that are trivial for
    finitely many arms are found by search:

    - uniform points of X_r, by rejection (`noregret.bandits.decision.region`);
    - the supremum of the lower bound over X_r, by a pattern search from the local maxima among the pulled points and
      1000 uniform points, down to steps of 1e-4 of the box's sides. A search that misses the maximum gives too low a
      threshold, which keeps too much: it never drops the best point;
    - the connected pieces of X_r, each of which gets its own N_r points, as Lemma 4.6 requires. They are identified by
      those 1000 points, so a piece with less than 2% of the volume counts with its neighbour. The upper bound of a
      rough kernel has a bulge between any two points, and so very many pieces: ``separate=False`` samples them
      together.

    The largest and smallest values of App. D.1 and D.2 come from the same search and the same points.
    """

    loop: Elimination

    def play(self, box: Box, rng: Rng) -> Play:
        """Plan, pull, shrink the region; for ever."""
        loop, survival, region = self.loop, self.loop.survival, Region(box).surveyed(rng)
        if isinstance(survival.width, BoxWidth):
            model: Any = loop.model
            kernel = model.kernel if hasattr(model, "kernel") else model.features.kernel
            slack = max(survival.slack, survival.width.slack(model.ridge))
            survival = replace(survival, width=survival.width.on(box, kernel), slack=slack)
        length, done, spent = loop.first_epoch, 0, 0
        points, rewards = np.empty((0, box.dimension)), np.empty(0)
        belief, first = self._learnt(region, points, rewards, rng), True
        best = vouched(belief, survival.bounds(belief), belief.arms)
        while True:
            with threads_for(PROPOSALS * len(points) ** 2):
                pieces, left = region.pieces() if loop.separate else [region], left_before(loop.horizon, spent)
                count = min(length - done, -(-left // len(pieces)) if left else length)
                plan = self.plan(pieces, count, left, rng)
            while len(plan):  # Alg. 1, lines 3-8
                pulled, arrived = yield Pull(plan, belief, region, belief.arms, best)
                planned = among(pulled, plan)
                points, rewards = np.vstack([points, pulled[planned]]), np.concatenate([rewards, arrived[planned]])
                plan, spent = remaining(plan, pulled), spent + len(pulled)
                if first:
                    belief = self._learnt(region, points, rewards, rng)
                    best = vouched(belief, survival.bounds(belief), belief.arms)
            done += count
            if done < length:  # cut by the horizon
                continue
            if first and not survival.resolved(belief):  # App. D.2
                length += loop.first_epoch
                continue
            with threads_for(PROPOSALS * len(points) ** 2):
                belief = self._learnt(region, points, rewards, rng)  # line 9
                best = _summit(survival, belief, region)
                test = _test(survival, belief, region, best)
                # local maxima of the tested bound may lie in pieces of the region without a known point
                peaks, values = _climb(belief, region, test.bound)
                witnesses = np.vstack([best.arm, peaks[values >= test.threshold]])
                region = region.shrunk(test, witnesses, rng)  # line 10
            length, done, first = loop.lengths(length), 0, False  # line 11
            points, rewards = points[:0], rewards[:0]

    def plan(self, pieces: list[Region], count: int, left: int | None, rng: Rng) -> Floats:
        """``count`` points in each piece, (n, d), or only ``left`` points, from the pieces in turn."""
        draws = [partial(piece.sample, rng=rng) for piece in pieces]
        plans = [self.loop.design.points(self.loop.model, draw, count, rng) for draw in draws]
        if left is None or count * len(pieces) <= left:
            return np.vstack(plans)
        return np.stack(plans, axis=1).reshape(-1, plans[0].shape[1])[:left]

    def _learnt(self, region: Region, points: Floats, rewards: Floats, rng: Rng) -> Posterior:
        """Belief about the pulled points and the region's known points."""
        belief = self.loop.model.prior(np.vstack([points, region.known[:CLOUD]]), rng)
        if len(points):
            belief.update(np.arange(len(points)), rewards)
        return belief


def _summit(survival: Survival, belief: Posterior, region: Region) -> Best:
    """Point of the region with the largest lower bound."""
    width, slack = survival.width(belief), survival.slack
    points, lower = _climb(belief, region, lambda mean, std: mean - width * std - slack)
    i = int(np.argmax(lower))
    mean, std = belief.predict(points[i][None])
    return Best(points[i], float(mean[0]), float(lower[i]), float(mean[0] + width * std[0] + slack))


def _test(survival: Survival, belief: Posterior, region: Region, best: Best) -> Reaches:
    """Test of line 10, or of App. D.1; 1e-7 wider, since a std is the root of a difference and no more accurate."""
    width, slack = survival.width(belief), survival.slack
    hair = 1e-7 * width + 1e-12 * float(np.abs(belief.mean).max())
    if survival.keep == "upper":
        return Reaches(belief, width, slack, best.lower - hair)
    mean = _climb(belief, region, lambda mean, std: mean)[1].max()
    std = _climb(belief, region, lambda mean, std: std)[1].max()
    return Reaches(belief, 0.0, 0.0, float(mean - 2 * (width * std + slack) - hair))


def _climb(belief: Posterior, region: Region, score: Callable[[Floats, Floats], Floats]) -> tuple[Floats, Floats]:
    """Local maxima, (n, d), of a score of mean and std over the region, and the scores there, (n,)."""

    def value(points: Floats) -> Floats:
        inside, values = region.contains(points), np.full(len(points), -np.inf)
        if inside.any():
            values[inside] = score(*belief.predict(points[inside]))
        return values

    box, known = region.box, score(belief.mean, belief.std)
    starts = tops(belief.arms, known, box, STARTS)
    step = region.cover.reach if region.cover else box.sides * CLOUD ** (-1 / box.dimension)
    return climb(value, belief.arms[starts], known[starts], box, step)
