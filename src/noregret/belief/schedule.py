"""Schedule: a number that depends on how far the run is. Where one is wanted, a number stands for a `Constant`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from noregret.belief.posterior import Posterior

Schedule = Callable[[Posterior], float]


@dataclass(frozen=True)
class Constant:
    """The same number at every round."""

    value: float

    def __call__(self, posterior: Posterior) -> float:
        return self.value


def as_schedule(name: str, given: object) -> Schedule:
    """Return the schedule, or for a number a `Constant`; ValueError, with the field's name, for anything else.

    >>> as_schedule("width", 2)
    Constant(value=2.0)
    """
    if isinstance(given, float | int | np.number) and not isinstance(given, bool) and not np.isnan(given):
        return Constant(float(given))
    if not callable(given) or isinstance(given, type):
        raise ValueError(f"{name} must be a number or a schedule such as Constant(2.0), got {given!r}")
    return cast(Schedule, given)


def convert_numbers(owner: Any, *names: str) -> None:
    """Turn numbers in these fields of a frozen dataclass into schedules."""
    for name in names:
        object.__setattr__(owner, name, as_schedule(name, getattr(owner, name)))
