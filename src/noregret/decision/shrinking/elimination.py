"""Elimination: epochs planned at once, and after each the arms dropped that can no longer be the best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from noregret.belief.box import Box
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Model, Posterior, Rng
from noregret.belief.schedule import Schedule, convert_numbers
from noregret.decision.arms import among, remaining
from noregret.decision.designs import Design, Doubling, Lengths, left_before
from noregret.decision.loops import Play, Pull
from noregret.decision.shrinking.box import ShrinkingBox
from noregret.decision.shrinking.survival import Keep, Survival


@dataclass(frozen=True)
class Elimination:
    """The loop of REDS (Alg. 1) and BPE, which differ by their design.

    Every epoch has a plan, made before any of its rewards is known, and a fresh posterior of the plan's rewards. It
    ends when all of the plan has been pulled. Rewards beyond the plan, a warm start among them, are not used: they may
    have been chosen by looking at rewards, and the widths hold only for points chosen without. Of an arm that is told
    more often than it is planned, the first rewards count. An epoch that the run leaves unfinished eliminates nothing.

    On a `noregret.Box` the arms are points, and what is in play is a `Region`: see `noregret.decision.shrinking.box`.

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
