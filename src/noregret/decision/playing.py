"""Run of a loop: the events that happened to it, in order, and the seed it started from."""

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
    """Rewards of arms, and the factor on the ridge of each; None if all factors are 1."""

    arms: Any
    rewards: Floats
    noise: Floats | None = None


class Event(NamedTuple):
    """Change of a run.

    ``send`` passes rewards to the loop, ``learn`` passes them to the belief only, ``resume`` restarts the loop from the
    belief, ``move`` changes the arms.
    """

    kind: Literal["send", "learn", "resume", "move"]
    content: Any = None
    """The `Told` rewards for 'send' and 'learn', the new arms for 'move'."""


class Run:
    """Loop in progress on its arms.

    If a loop can start from a belief, the belief may learn rewards that the loop does not see. The loop is then
    restarted from the belief before its next plan.
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
        """Name of the loop's class."""
        return type(self._algorithm).__name__

    @property
    def can_resume(self) -> bool:
        """True if the loop can start from a belief, which then holds all of its state."""
        return starts_from_belief(self._algorithm) and not isinstance(self.arms, Box)

    @property
    def thinks_ahead(self) -> bool:
        """True if the loop can choose arms while others are pending."""
        return self.can_resume and isinstance(self._algorithm, ThinksAhead)

    def do(self, event: Event) -> None:
        """Apply an event."""
        told = event.content
        match event.kind:
            case "send":
                self._asks.update(self._plan())
                try:
                    self.pull = self._play.send((told.arms, told.rewards))
                except StopIteration:
                    raise ValueError(f"{self.name} ended: a loop must run for ever") from None
            case "learn":
                if not self.is_stale:
                    self._asks.update(self._plan())
                self.is_stale = True
                self.pull.belief.update(told.arms, told.rewards, noise=told.noise)
            case "resume":
                self._start(self.arms, self.pull.belief)
            case "move":
                self._start(event.content, self.pull.belief.at(event.content))

    def ahead(self, pending: Ints, given: int) -> Iterator[int]:
        """Arms to pull beyond those that are pending; ``given`` arms were chosen this way before.

        Nothing changes. Random numbers come from a separate stream, which does not depend on the loop's draws.
        """
        algorithm: Any = self._algorithm
        stream = np.random.default_rng(child(self._seed, given))
        choices: Iterator[int] = algorithm.ahead(self.pull.belief, pending, stream)
        return choices

    def digest(self) -> str:
        """Hash of all arms that the loop has asked for, the present plan included."""
        asks = self._asks.copy()
        if not self.is_stale:
            asks.update(self._plan())
        return asks.hexdigest()

    def _plan(self) -> bytes:
        """Arms of the plan; points of a box in millionths of its sides, since rounding differs between machines."""
        arms = self.pull.arms
        places = np.round(arms / self.arms.sides * 1e6) if isinstance(self.arms, Box) else arms
        return bytes(places.astype("<i8").tobytes())

    def _start(self, arms: Floats, belief: Any) -> None:
        """Restart the loop on these arms from this belief."""
        start: Any = self._algorithm.play
        play = start(arms, self._rng, belief=belief)
        pull = next(play)
        self._play.close()
        self.arms, self._play, self.pull, self.is_stale = arms, play, pull, False


def as_told(run: Run, arms: Any, rewards: Any, noise_factor: Any = None) -> Told:
    """Check rewards before a run receives them; ValueError if it cannot take them."""
    told, values = checked(run.arms, arms), _numbers("rewards", rewards)
    if len(told) != values.size:
        raise ValueError(f"there must be one reward per arm, got {len(told)} arms and {values.size} rewards")
    check_finite(told, values)
    check_size(told, values, run.pull.belief.largest_reward)
    if noise_factor is None:
        return Told(told, values)
    factors = _numbers("noise_factor", noise_factor)
    if factors.size not in (1, values.size):
        raise ValueError(
            f"noise_factor must be one number or one per reward, got {factors.size} for {values.size} rewards"
        )
    fine = (factors > 0) & np.isfinite(factors)
    if not fine.all():
        raise ValueError(
            f"noise_factor must be positive and finite, a factor on the ridge, got {factors[fine.argmin()]}"
        )
    if (factors == 1).all():
        return Told(told, values)
    if not run.can_resume:
        raise ValueError(
            f"{run.name} cannot weigh rewards by their noise: its loop takes them in by itself. Tell them without "
            "noise_factor, or use a loop that starts from a belief, such as Sequential or Batched"
        )
    return Told(told, values, np.broadcast_to(factors, values.shape).copy())


def joined(pieces: list[Told]) -> Told:
    """Concatenate pieces of a round."""
    if len(pieces) == 1:
        return pieces[0]
    arms, rewards = (np.concatenate([piece[i] for piece in pieces]) for i in (0, 1))
    if all(piece.noise is None for piece in pieces):
        return Told(arms, rewards)
    ones = [np.ones(len(piece.rewards)) if piece.noise is None else piece.noise for piece in pieces]
    return Told(arms, rewards, np.concatenate(ones))


def child(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Child of a seed at this key, an independent stream; the seed does not change."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def seed_sequence(rng: Any) -> np.random.SeedSequence:
    """Seed that can be saved, from None, an int, a SeedSequence or a Generator (a child of its seed)."""
    if isinstance(rng, np.random.Generator):
        parent: Any = rng.bit_generator.seed_seq
        rng = parent.spawn(1)[0]
    if isinstance(rng, np.random.SeedSequence):
        return np.random.SeedSequence(rng.entropy, spawn_key=rng.spawn_key)
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        return np.random.SeedSequence(None if rng is None else int(rng))
    raise ValueError(f"rng must be None, a whole number from 0, a SeedSequence or a Generator, got {rng!r}")


def _numbers(what: str, given: Any) -> Floats:
    """Numbers as a flat array of floats; ValueError if they are not numbers."""
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "biuf":
            raise TypeError
        return values.astype(float).reshape(-1)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, got {given!r}") from None
