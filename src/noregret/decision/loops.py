"""Loops: generators that read like the papers' boxes.

A loop yields a `Pull`, the arms to pull next, and is sent what was actually pulled and what came back. It owns
the belief of the run; whoever drives it (`noregret.Policy`, `noregret.run`) owns the rewards.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.ahead import ahead
from noregret.decision.rules import UCB, Band, Rule, best_arm
from noregret.decision.schedules import Constant

Play = Generator["Pull", tuple[Any, Floats], None]


class Best(NamedTuple):
    """The arm with the largest lower confidence bound, and what is believed about it."""

    arm: Any
    """Its index; on a box its coordinates, (d,)."""
    mean: float
    lower: float
    upper: float

    @property
    def empty(self) -> bool:
        """Whether the lower bound lies above the upper: no function fits, so norm or noise is wrong."""
        return self.lower > self.upper


class Pull(NamedTuple):
    """What a loop asks for, and for whoever looks on, why."""

    arms: Any
    """The arms to pull, in order, (n,); repetitions mean repeated pulls. On a box, (n, d) points."""
    belief: Posterior
    """The posterior they were chosen by; its i-th arm is ``about[i]``, by default ``active[i]``."""
    active: Any
    """The arms still in play, ascending; on a box, a `Region`."""
    about: Any = None
    """The arms that the belief is about, where these are not the active ones."""
    best: Best | None = None
    """The arm with the largest lower bound, where the belief does not hold all that the loop has learnt."""


class Algorithm(Protocol):
    """A frozen description of an algorithm; its repr is the record of the experiment."""

    def play(self, arms: Any, rng: Rng) -> Play:
        """Start a run on these (N, d) arms, or on a `Box` if the algorithm can.

        A loop that also takes ``belief``, what is known about the arms already, lets them change during a run, and
        lets rewards come with a noise of their own. It must know nothing else: it may be started anew at any time.
        """
        ...

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bound of every arm of the belief, each (N,)."""
        ...


@runtime_checkable
class ThinksAhead(Protocol):
    """An algorithm that can choose arms while others are out; its ``play`` must take a ``belief``."""

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """Arms to pull, one after another for ever, beyond the (k,) arms that are ``out``; the belief stays as it is.

        `noregret.decision.ahead.ahead` is this for a rule.
        """
        ...


@dataclass(frozen=True)
class Sequential:
    """One arm at a time: the one that scores highest, the lowest index on ties.

    ``band`` gives the bounds that `Policy.best` reports. By default it is the rule's own where the rule has one
    (UCB, Thompson) and otherwise mean +- 2 std, which is a habit and not a guarantee. ``times`` is how often the arm is
    pulled in a row before anything is learnt.
    """

    model: Model
    rule: Rule
    band: Band | None = None
    times: int = 1

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Score, pull, learn; for ever. ``belief`` is what is known about these arms already."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            pulled, rewards = yield Pull(np.array([best] * self.times, np.intp), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean.

        Each comes ``times`` in a row, so whoever asks for a multiple of that gets whole rows.
        """
        if self.times == 1:
            yield from ahead(self.rule, belief, rng, out)
        while True:
            row = [next(ahead(self.rule, belief, rng, out))] * self.times
            yield from row
            out = np.append(out, row)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def starts_from_belief(algorithm: Algorithm) -> bool:
    """Whether its loop can start from a belief, which is then all that it knows."""
    return "belief" in inspect.signature(algorithm.play).parameters


def recommended(algorithm: Algorithm, pull: Pull) -> Best:
    """The arm with the largest lower confidence bound, by the belief of a pull."""
    if pull.best is not None:
        return pull.best
    lower, upper = algorithm.bounds(pull.belief)
    i = int(lower.argmax())
    about = pull.active if pull.about is None else pull.about
    return Best(int(about[i]), float(pull.belief.mean[i]), float(lower[i]), float(upper[i]))


def bounds_of(rule: Rule, band: Band | None, belief: Posterior) -> tuple[Floats, Floats]:
    """Bounds of the band, or of the rule if it has any, or else mean +- 2 std."""
    chosen: Any = band or rule
    return (chosen if isinstance(chosen, Band) else UCB(Constant(2.0))).bounds(belief)
