"""Elimination: epochs planned at once, and after each the arms dropped that can no longer be the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from noregret.belief.arrays import numpy_of
from noregret.belief.box import Box
from noregret.belief.kernels import Kernel
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Model, Posterior, Rng, Schedule, convert_numbers
from noregret.decision.arms import Bools, among, remaining
from noregret.decision.designs import Design, Doubling, Lengths, left_before
from noregret.decision.loops import Best, Play, Pull
from noregret.decision.region import CLOUD, Region, climb, tops


@dataclass(frozen=True)
class Elimination:
    """The loop of REDS (Alg. 1) and BPE, which differ by their design.

    Every epoch has a plan, made before any of its rewards is known, and a fresh posterior of the plan's rewards. It
    ends when all of the plan has been pulled. Rewards beyond the plan, a warm start among them, are not used: they may
    have been chosen by looking at rewards, and the widths hold only for points chosen without. Of an arm that is told
    more often than it is planned, the first rewards count. An epoch that the run leaves unfinished eliminates nothing.

    On a `noregret.Box` the arms are points, and what is in play is a `Region`: see `noregret.decision.elimination`.

    Parameters
    ----------
    model : Model
    design : Design
        The arms of an epoch.
    width : Schedule
        w: the bounds are mean -+ (w std + slack).
    first_epoch : int
        N_1, the length of the first epoch.
    slack : float
        c.
    lengths : callable int -> int
        The length of the next epoch.
    keep : 'upper' or 'mean'
        Keep the arms whose upper bound reaches the largest lower bound (line 10), or those whose mean reaches the
        largest mean minus 2 (w max std + slack) (App. D.1).
    first_level : float, optional
        c0 of App. D.2, in (0, 1): lengthen the first epoch, by N_1 at a time, until every arm that is kept must have
        f >= c0 max f + (1 - c0) min f. The width must hold at all of these tests together.
    separate : bool
        On a box, give every connected piece of what is left its own epoch's points, or all of them together one.
    horizon : int, optional
        The epoch that would go beyond so many rewards is cut there. It eliminates nothing until it is finished, for
        those who go on.
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
        _ = self.survival  # which refuses a bad slack, keep or first_level

    @property
    def survival(self) -> Survival:
        """What decides who stays in play."""
        return Survival(self.width, self.slack, self.keep, self.first_level)

    def play(self, arms: Floats | Box, rng: Rng) -> Play:
        """Plan, pull, eliminate; for ever."""
        if isinstance(arms, Box):
            epochs = self.first_epoch, self.lengths, self.separate, self.horizon
            return ShrinkingBox(self.model, self.design, self.survival, *epochs).play(arms, rng)
        return self._play(arms, rng)

    def _play(self, arms: Floats, rng: Rng) -> Play:
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
            belief, about, done = epoch, active, 0
            active, length = active[survival.kept(belief)], self.lengths(length)  # lines 10-11
            epoch = self.model.prior(arms[active], rng)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ (width * std + slack), each (N,)."""
        return self.survival.bounds(belief)


Keep = Literal["upper", "mean"]


@dataclass(frozen=True)
class Survival:
    """The bounds mean -+ (width std + slack), and what they keep; see `noregret.Elimination` for the fields."""

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
        half_width = belief.std * self.width(belief) + self.slack
        return belief.mean - half_width, belief.mean + half_width

    def kept(self, belief: Posterior) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which arms of the belief stay in play, (N,)."""
        lower, upper = self.bounds(belief)
        if self.keep == "mean":
            return np.asarray(numpy_of(belief.mean >= belief.mean.max() - (upper - lower).max()))
        return np.asarray(numpy_of(upper >= lower.max()))

    def resolved(self, belief: Posterior) -> bool:
        """Whether c0 max UCB + (1 - c0) min UCB <= max LCB - 2 max(w std + slack) (App. D.2)."""
        if self.first_level is None:
            return True
        lower, upper = self.bounds(belief)
        level = self.first_level * upper.max() + (1 - self.first_level) * upper.min()
        return bool(level <= lower.max() - (upper - lower).max())


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
