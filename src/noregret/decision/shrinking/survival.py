"""Survival: which arms may still be the best after an epoch, by its confidence bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from noregret.belief.arrays import numpy_of
from noregret.belief.posterior import Floats, Posterior
from noregret.belief.schedule import Schedule, convert_numbers

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
