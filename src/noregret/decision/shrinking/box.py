"""Elimination on a box: REDS as Alg. 1 states it, without a grid.

The active region X_r is the set of points that passed the test of line 10 in every epoch so far, each with that epoch's
own posterior. Three things that a finite set of arms gives for free are found by search:

- uniform points of X_r, by rejection (`noregret.decision.shrinking.region`);
- the supremum of the lower bound over X_r, by a pattern search from those of the points pulled and of 1000 uniform
  points that stand out, down to steps of 1e-4 of the box's sides. A search that falls short gives too low a
  threshold, which keeps too much: it never drops the best point;
- the connected pieces of X_r, each of which gets its own N_r points, as Lemma 4.6 asks. They are told apart by those
  1000 points, so a piece with less than 2 % of the volume counts with its neighbour. A rough kernel's upper bound has
  a bulge between any two points, and so very many pieces: ``separate=False`` samples them together.

What App. D.1 and D.2 ask about the largest and smallest values is answered by the same search and the same points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from noregret.belief.box import Box
from noregret.belief.kernels import Kernel
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Model, Posterior, Rng
from noregret.decision.arms import Bools, among, remaining
from noregret.decision.designs import Design, Lengths, left_before
from noregret.decision.loops import Best, Play, Pull
from noregret.decision.schedules import Schedule
from noregret.decision.shrinking.region import CLOUD, Region, climb, tops
from noregret.decision.shrinking.survival import Survival

STARTS = 10
"""Points at the most from which a largest value is searched: those that stand out among their neighbours."""

PROPOSALS = 20_000
"""About as many points are tested in an epoch."""


@runtime_checkable
class BoxWidth(Protocol):
    """A width that is different on a box, where it must hold at infinitely many points."""

    def on(self, box: Box, kernel: Kernel) -> Schedule:
        """The width for this box."""
        ...

    def slack(self, ridge: float) -> float:
        """What is added to it, the price of a grid."""
        ...


@dataclass(frozen=True, eq=False)
class Reaches:
    """The test mean + width std + slack >= threshold."""

    belief: Posterior
    width: float
    slack: float
    threshold: float

    def __call__(self, points: Floats) -> Bools:
        mean, std = self.belief.predict(points)
        return np.asarray(mean + self.width * std + self.slack >= self.threshold)


@dataclass(frozen=True)
class ShrinkingBox:
    """Elimination on a box: `Pull.arms` are (n, d) points, `Pull.active` is the `Region`.

    The fields are those of `noregret.Elimination`.
    """

    model: Model
    design: Design
    survival: Survival
    first_epoch: int
    lengths: Lengths
    separate: bool
    horizon: int | None = None

    def play(self, box: Box, rng: Rng) -> Play:
        """Plan, pull, shrink the region; for ever."""
        survival, region = _on(box, self.model, self.survival), Region(box).surveyed(rng)
        length, done, spent = self.first_epoch, 0, 0
        points, rewards = np.empty((0, box.dimension)), np.empty(0)
        belief, first = self._learnt(region, points, rewards, rng), True
        best = _vouched(survival, belief)
        while True:
            with threads_for(PROPOSALS * len(points) ** 2):
                pieces, left = region.pieces() if self.separate else [region], left_before(self.horizon, spent)
                count = min(length - done, -(-left // len(pieces)) if left else length)
                plan = self.plan(pieces, count, left, rng)
            while len(plan):  # Alg. 1, lines 3-8
                pulled, arrived = yield Pull(plan, belief, region, belief.arms, best)
                planned = among(pulled, plan)
                points, rewards = np.vstack([points, pulled[planned]]), np.concatenate([rewards, arrived[planned]])
                plan, spent = remaining(plan, pulled), spent + len(pulled)
                if first:
                    belief = self._learnt(region, points, rewards, rng)
                    best = _vouched(survival, belief)
            done += count
            if done < length:  # cut by the horizon
                continue
            if first and not survival.resolved(belief):  # App. D.2
                length += self.first_epoch
                continue
            with threads_for(PROPOSALS * len(points) ** 2):
                belief = self._learnt(region, points, rewards, rng)  # line 9
                best = _summit(survival, belief, region)
                test = _test(survival, belief, region, best)
                region = region.shrunk(test, _witnesses(belief, region, test, best), rng)  # line 10
            length, done, first = self.lengths(length), 0, False  # line 11
            points, rewards = points[:0], rewards[:0]

    def plan(self, pieces: list[Region], count: int, left: int | None, rng: Rng) -> Floats:
        """``count`` points in each piece, (n, d), or as many as are ``left``, from the pieces in turn."""
        draws = [partial(piece.sample, rng=rng) for piece in pieces]
        plans = [self.design.points(self.model, draw, count, rng) for draw in draws]
        if left is None or count * len(pieces) <= left:
            return np.vstack(plans)
        return np.stack(plans, axis=1).reshape(-1, plans[0].shape[1])[:left]

    def _learnt(self, region: Region, points: Floats, rewards: Floats, rng: Rng) -> Posterior:
        """The belief about the points pulled and the region's known points."""
        belief = self.model.prior(np.vstack([points, region.known[:CLOUD]]), rng)
        if len(points):
            belief.update(np.arange(len(points)), rewards)
        return belief


def _on(box: Box, model: Any, survival: Survival) -> Survival:
    """The same with the width for this box, and with at least the slack that is the price of its grid."""
    if not isinstance(survival.width, BoxWidth):
        return survival
    kernel = model.kernel if hasattr(model, "kernel") else model.features.kernel
    slack = max(survival.slack, survival.width.slack(model.ridge))
    return replace(survival, width=survival.width.on(box, kernel), slack=slack)


def _vouched(survival: Survival, belief: Posterior) -> Best:
    """The arm of the belief with the largest lower bound."""
    lower, upper = survival.bounds(belief)
    i = int(np.argmax(lower))
    return Best(belief.arms[i], float(belief.mean[i]), float(lower[i]), float(upper[i]))


def _summit(survival: Survival, belief: Posterior, region: Region) -> Best:
    """The point of the region with the largest lower bound."""
    width, slack = survival.width(belief), survival.slack
    points, lower = _climb(belief, region, lambda mean, std: mean - width * std - slack)
    i = int(np.argmax(lower))
    mean, std = belief.predict(points[i][None])
    return Best(points[i], float(mean[0]), float(lower[i]), float(mean[0] + width * std[0] + slack))


def _test(survival: Survival, belief: Posterior, region: Region, best: Best) -> Reaches:
    """Line 10, or App. D.1; a hair wider, as a std is the root of a difference and not known to less than 1e-7."""
    width, slack = survival.width(belief), survival.slack
    hair = 1e-7 * width + 1e-12 * float(np.abs(belief.mean).max())
    if survival.keep == "upper":
        return Reaches(belief, width, slack, best.lower - hair)
    mean = _climb(belief, region, lambda mean, std: mean)[1].max()
    std = _climb(belief, region, lambda mean, std: std)[1].max()
    return Reaches(belief, 0.0, 0.0, float(mean - 2 * (width * std + slack) - hair))


def _witnesses(belief: Posterior, region: Region, test: Reaches, best: Best) -> Floats:
    """Where the tested bound has its peaks: pieces of what is left that no known point may have hit."""
    points, values = _climb(belief, region, lambda mean, std: mean + test.width * std + test.slack)
    return np.vstack([best.arm, points[values >= test.threshold]])


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
