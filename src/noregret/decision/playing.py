"""A loop under way, and the seed it was started from."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from noregret.belief.box import Box
from noregret.belief.posterior import Floats
from noregret.decision.loops import Algorithm


class Run:
    """A loop under way on its arms."""

    def __init__(self, algorithm: Algorithm, arms: Any, seed: np.random.SeedSequence) -> None:
        self.arms, self._algorithm, self._rng = arms, algorithm, np.random.default_rng(seed)
        self._play = algorithm.play(arms, self._rng)
        self.pull = next(self._play)
        self._asks = hashlib.sha256()

    def digest(self) -> str:
        """A number that tells apart runs which have asked for different arms, up to and with this round."""
        asks = self._asks.copy()
        asks.update(self._asked())
        return asks.hexdigest()

    def _asked(self) -> bytes:
        """The arms of this round; points of a box to a millionth of its sides, as rounding differs among machines."""
        arms = self.pull.arms
        places = np.round(arms / self.arms.sides * 1e6) if isinstance(self.arms, Box) else arms
        return bytes(places.astype("<i8").tobytes())

    def send(self, arms: Any, rewards: Floats) -> None:
        """What was pulled and what came back."""
        self._asks.update(self._asked())
        try:
            self.pull = self._play.send((arms, rewards))
        except StopIteration:
            raise ValueError(f"{type(self._algorithm).__name__} ended: a loop must go on for ever") from None

    def move(self, arms: Floats) -> None:
        """Go on with other arms."""
        start: Any = self._algorithm.play
        play = start(arms, self._rng, belief=self.pull.belief.at(arms))
        pull = next(play)
        self._play.close()
        self.arms, self._play, self.pull = arms, play, pull


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
