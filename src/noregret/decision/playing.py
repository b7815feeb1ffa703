"""A loop under way: what was told to it, what happened to it in order, and the seed it was started from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.belief.box import Box
from noregret.belief.posterior import Floats, Ints, check_finite, check_size
from noregret.decision.arms import checked
from noregret.decision.loops import Algorithm, ThinksAhead, starts_from_belief


class Told(NamedTuple):
    """Rewards of arms, and the factor on the ridge of each, where one is not 1."""

    arms: Any
    rewards: Floats
    noise: Floats | None = None


class Event(NamedTuple):
    """What happened to a run: rewards went to its loop or only to its belief, its loop went on, its arms changed."""

    kind: Literal["send", "learn", "resume", "move"]
    content: Any = None
    """What was told, for 'send' and 'learn'; the new arms, for 'move'."""


class Run:
    """A loop under way on its arms.

    A loop that can start from a belief need not hear of every reward: the belief may learn them behind its back, as
    long as the loop is started again from there before it is asked what to pull.
    """

    def __init__(self, algorithm: Algorithm, arms: Any, seed: np.random.SeedSequence) -> None:
        self.arms, self._algorithm, self._seed = arms, algorithm, seed
        self._rng = np.random.default_rng(seed)
        self._play = algorithm.play(arms, self._rng)
        self.pull = next(self._play)
        self.is_stale = False  # whether the belief has learnt something since the loop made its plan
        self._asks = hashlib.sha256()

    @property
    def name(self) -> str:
        """The name of the loop's class."""
        return type(self._algorithm).__name__

    @property
    def can_resume(self) -> bool:
        """Whether the loop can start from a belief, which is then all that it knows."""
        return starts_from_belief(self._algorithm) and not isinstance(self.arms, Box)

    @property
    def thinks_ahead(self) -> bool:
        """Whether it can choose arms while others are out."""
        return self.can_resume and isinstance(self._algorithm, ThinksAhead)

    def do(self, event: Event) -> None:
        """Let it happen."""
        getattr(self, f"_{event.kind}")(*(() if event.content is None else (event.content,)))

    def ahead(self, out: Ints, given: int) -> Iterator[int]:
        """Arms to pull beyond those that are out; ``given`` were chosen so before. Nothing is changed by it.

        What is random comes from a stream of its own, which is the same whatever the loop has drawn.
        """
        algorithm: Any = self._algorithm
        stream = np.random.default_rng(child(self._seed, given))
        choices: Iterator[int] = algorithm.ahead(self.pull.belief, out, stream)
        return choices

    def digest(self) -> str:
        """A number that tells apart runs whose loops have asked for different arms, up to and with the present plan."""
        asks = self._asks.copy()
        if not self.is_stale:
            asks.update(self._plan())
        return asks.hexdigest()

    def _plan(self) -> bytes:
        """The arms of the plan; points of a box to a millionth of its sides, as rounding differs among machines."""
        arms = self.pull.arms
        places = np.round(arms / self.arms.sides * 1e6) if isinstance(self.arms, Box) else arms
        return bytes(places.astype("<i8").tobytes())

    def _send(self, told: Told) -> None:
        """Tell the loop what was pulled and what came back."""
        self._asks.update(self._plan())
        try:
            self.pull = self._play.send((told.arms, told.rewards))
        except StopIteration:
            raise ValueError(f"{self.name} ended: a loop must go on for ever") from None

    def _learn(self, told: Told) -> None:
        """Let the belief learn rewards, and the loop wait."""
        if not self.is_stale:
            self._asks.update(self._plan())
        self.is_stale = True
        self.pull.belief.update(told.arms, told.rewards, noise=told.noise)

    def _resume(self) -> None:
        """Start the loop again from what the belief has learnt meanwhile."""
        self._start(self.arms, self.pull.belief)

    def _move(self, arms: Floats) -> None:
        """Go on with other arms."""
        self._start(arms, self.pull.belief.at(arms))

    def _start(self, arms: Floats, belief: Any) -> None:
        start: Any = self._algorithm.play
        play = start(arms, self._rng, belief=belief)
        pull = next(play)
        self._play.close()
        self.arms, self._play, self.pull, self.is_stale = arms, play, pull, False


def as_told(run: Run, arms: Any, rewards: Any, noise: Any = None) -> Told:
    """Check what a run is about to be told; ValueError unless it can take it in."""
    told, values = checked(run.arms, arms), _numbers("rewards", rewards)
    if len(told) != values.size:
        raise ValueError(f"arms and rewards must be as many, got {len(told)} arms and {values.size} rewards")
    check_finite(told, values)
    check_size(told, values, run.pull.belief.largest_reward)
    factors = None if noise is None else _factors(noise, len(told))
    if factors is not None and not run.can_resume:
        raise ValueError(
            f"{run.name} cannot weigh rewards by their noise: its loop takes them in by itself. Tell them without "
            "noise, or use a loop that starts from a belief, such as Sequential or Batched"
        )
    return Told(told, values, factors)


def joined(pieces: list[Told]) -> Told:
    """What was told in pieces, as one."""
    if len(pieces) == 1:
        return pieces[0]
    arms, rewards = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
    if all(piece.noise is None for piece in pieces):
        return Told(arms, rewards)
    ones = [np.ones(len(piece.rewards)) if piece.noise is None else piece.noise for piece in pieces]
    return Told(arms, rewards, np.concatenate(ones))


def child(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """A stream of its own for each key, the seed's child at that place; the seed stays as it is."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """A seed that can be written down, from None, an int, a SeedSequence or a Generator (a child of its seed)."""
    if isinstance(rng, np.random.Generator):
        parent: Any = rng.bit_generator.seed_seq
        rng = parent.spawn(1)[0]
    if isinstance(rng, np.random.SeedSequence):
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key)
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        return np.random.SeedSequence(None if rng is None else int(rng))
    raise ValueError(f"rng must be None, a whole number from 0, a SeedSequence or a Generator, got {rng!r}")


def _factors(noise: Any, count: int) -> Floats | None:
    """Factors on the ridge, (n,), from one number or n; None if all are 1."""
    factors = _numbers("noise", noise)
    if factors.size not in (1, count):
        raise ValueError(f"noise must be one number or one per reward, got {factors.size} for {count} rewards")
    fine = (factors > 0) & np.isfinite(factors)
    if not fine.all():
        raise ValueError(f"noise must be positive and finite, a factor on the ridge, got {factors[fine.argmin()]}")
    return None if (factors == 1).all() else np.broadcast_to(factors, (count,)).copy()


def _numbers(what: str, given: Any) -> Floats:
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "biuf":
            raise TypeError
        return values.astype(float).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {given!r}") from None
