"""Loops: generators that read like the papers' boxes.

A loop yields a `Pull`, the arms to pull next, and is sent what was actually pulled and what came back. It owns
the belief of the run; whoever drives it (`noregret.Policy`, `noregret.run`) owns the rewards.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.rules import UCB, Band, Rule
from noregret.decision.schedules import Constant

Play = Generator["Pull", tuple[Ints, Floats], None]


class Pull(NamedTuple):
    """What a loop asks for, and for whoever looks on, why."""

    arms: Ints
    """The arms to pull, in order; repetitions mean repeated pulls."""
    belief: Posterior
    """The posterior they were chosen by; its i-th arm is ``about[i]``, by default ``active[i]``."""
    active: Ints
    """The arms still in play, ascending."""
    about: Ints | None = None
    """The arms that the belief is about, where these are not the active ones."""


class Algorithm(Protocol):
    """A frozen description of an algorithm; its repr is the record of the experiment."""

    def play(self, arms: Floats, rng: Rng) -> Play:
        """Start a run on these (N, d) arms."""
        ...

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bound of every arm of the belief, each (N,)."""
        ...


@dataclass(frozen=True)
class Sequential:
    """One arm at a time: the one that scores highest, the lowest index on ties.

    ``band`` gives the bounds that `Policy.best` reports. By default it is the rule's own where the rule has one
    (UCB, Thompson) and otherwise mean +- 2 std, which is a habit and not a guarantee.
    """

    model: Model
    rule: Rule
    band: Band | None = None

    def play(self, arms: Floats, rng: Rng) -> Play:
        """Score, pull, learn; for ever."""
        belief, active = self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = np.argmax(self.rule(belief, rng))
            pulled, rewards = yield Pull(best.reshape(1), belief, active)
            belief.update(pulled, rewards)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        band: Any = self.band or self.rule
        return (band if isinstance(band, Band) else UCB(Constant(2.0))).bounds(belief)
