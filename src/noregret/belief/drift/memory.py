"""Memories: how many of the last rewards count, and how much each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from noregret.belief.posterior import Floats, Ints

TINY = 1e-8
"""A reward whose weight has fallen below this is forgotten."""


class Memory(Protocol):
    """What is remembered of a run."""

    def kept(self, rounds: int) -> int:
        """How many of the last rewards count after so many in all."""
        ...

    def noise(self, ages: Ints) -> Floats | None:
        """The factor on the ridge of rewards of these ages, (n,), 0 for the last one; None if all are 1 for ever."""
        ...


@dataclass(frozen=True)
class Window:
    """The last ``size`` rewards."""

    size: int

    def __post_init__(self) -> None:
        _check_count("size", self.size)

    def kept(self, rounds: int) -> int:
        """As many as there are, up to the window's size."""
        return min(rounds, self.size)

    def noise(self, ages: Ints) -> None:
        """All in the window count alike."""


@dataclass(frozen=True)
class Restarts:
    """The rewards since the last multiple of ``period``: everything is forgotten after every so many."""

    period: int

    def __post_init__(self) -> None:
        _check_count("period", self.period)

    def kept(self, rounds: int) -> int:
        """None right after a restart, then one more in every round."""
        return rounds % self.period

    def noise(self, ages: Ints) -> None:
        """All since the restart count alike."""


@dataclass(frozen=True)
class Discount:
    """A reward of age a, 0 for the last one, counts with weight ``factor``^a, until this is below 1e-8."""

    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < 1:
            raise ValueError(f"factor must be in (0, 1), got {self.factor}")

    def kept(self, rounds: int) -> int:
        """Those whose weight is not tiny."""
        return min(rounds, 1 + math.floor(math.log(TINY) / math.log(self.factor)))

    def noise(self, ages: Ints) -> Floats:
        """One over the weight."""
        return np.asarray(self.factor ** -ages.astype(float))


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
