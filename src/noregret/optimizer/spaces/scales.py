"""Scales: numbers with bounds, checked, as coordinates in [0, 1] and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, overload

import numpy as np

from noregret.belief.posterior import Floats

EXACT = 2**53
"""Whole numbers up to here are floating-point numbers, all of them."""
MOST_STEPS = 1e9
"""Steps that a range may have: the numbers of more could not be told apart for sure."""


def check_bounds(low: Any, high: Any, log: bool) -> None:
    """Raise ValueError unless these are bounds of a range, on a log scale or not."""
    for bound in (low, high):
        if not finite(bound):
            raise ValueError(f"bounds must be finite numbers, got {low!r} and {high!r}")
    if low > high:
        raise ValueError(f"low must not be above high, got {low} and {high}: swap them")
    if log and low <= 0:
        raise ValueError(f"low must be above 0 on a log scale, got {low}")
    if not math.isfinite(float(high) - float(low)):
        raise ValueError(f"the range from {low} to {high} is too wide for floating point: narrow it")
    if log and low < high and math.log(low) == math.log(high):
        raise ValueError(f"the range from {low} to {high} is too narrow for a log scale: leave log out")


def finite(value: Any) -> bool:
    """Whether this is a real number that a float can hold."""
    if type(value) is float:  # to ask `Real` takes ten times as long
        return math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def checked_number(name: str, value: Any) -> Any:
    """The value; ValueError unless it is a finite number."""
    if not finite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return value


def checked_inside(name: str, value: Any, low: float, high: float) -> Any:
    """The value; ValueError unless it is from low to high."""
    if not low <= value <= high:
        advice = "widen the bounds, or pass only what lies inside them"
        raise ValueError(f"{name} must be from {low} to {high}, got {value}: {advice}")
    return value


def to_unit(values: Floats, low: float, high: float, log: bool) -> Floats:
    """Coordinates of (n,) values, (n, 1)."""
    if low == high:
        return np.zeros((len(values), 1))
    if log:
        values, low, high = np.log(values), math.log(low), math.log(high)
    return np.clip((values - low) / (high - low), 0.0, 1.0)[:, None]


def from_unit(column: Floats, low: float, high: float, log: bool) -> Floats:
    """The values at (n,) coordinates, (n,)."""
    if log:
        inside = np.exp(from_unit(column, math.log(low), math.log(high), False))
        return np.where(column <= 0, low, np.where(column >= 1, high, inside))  # the ends are exact
    return np.asarray(low * (1 - column) + high * column)


@dataclass(frozen=True)
class Steps(Sequence[float]):
    """The numbers low, low + step, ..., high, as people write them: 0.1, 0.2, 0.3, not 0.30000000000000004.

    They take equal shares of [0, 1], and number k of n lies at k / (n - 1).

    >>> list(Steps(0.1, 0.5, 0.1))
    [0.1, 0.2, 0.3, 0.4, 0.5]
    """

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        low, high, step = self.low, self.high, self.step
        if not finite(step) or step <= 0:
            raise ValueError(f"step must be a number above 0, got {step!r}")
        if (high - low) / step > MOST_STEPS:
            raise ValueError(f"step must divide the range from {low} to {high} into at most 1e9 steps, got {step}")
        if not _is_whole((high - low) / step) or (low < high and len(self) == 1):
            raise ValueError(
                f"high must be low plus a whole number of steps, got low {low}, high {high} and step {step}: "
                f"take {' or '.join(self._around(high))} as high, or another step"
            )

    def __len__(self) -> int:
        return round((self.high - self.low) / self.step) + 1

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...

    def __getitem__(self, index: int | slice) -> float | list[float]:
        found = range(len(self))[index]
        return [self[place] for place in found] if isinstance(found, range) else self._number(found)

    def _number(self, index: int) -> float:
        return float(self.high) if index == len(self) - 1 else self._decimal(index)

    def _decimal(self, index: int) -> float:
        return float(Decimal(str(float(self.low))) + index * Decimal(str(float(self.step))))

    def checked(self, name: str, value: float) -> float:
        """The number that a value is but for rounding; ValueError, with the parameter's name, if it is none."""
        steps = (value - self.low) / self.step
        if _is_whole(steps) and 0 <= round(steps) < len(self):
            return self[round(steps)]
        checked_inside(name, value, self.low, self.high)
        raise ValueError(
            f"{name} must be {self.low} plus a whole number of steps of {self.step}, got {value}: "
            f"{' and '.join(self._around(value))} are next to it"
        )

    def _around(self, value: float) -> list[str]:
        """The numbers below and above a value, as people write them."""
        below = math.floor((value - self.low) / self.step)
        return [f"{self._decimal(index):.15g}" for index in (below, below + 1)]

    def to_unit(self, values: Floats) -> Floats:
        """Coordinates of (n,) values, (n, 1)."""
        return to_unit(np.rint((values - self.low) / self.step), 0, len(self) - 1, False)

    def nearest(self, column: Floats) -> Floats:
        """The indices of the numbers that (n,) coordinates belong to, (n,)."""
        return np.asarray(np.clip(np.rint(column * len(self) - 0.5), 0, len(self) - 1) + 0.0)  # no -0.0


def _is_whole(number: float) -> bool:
    """Whether a number is whole but for rounding."""
    return abs(number - round(number)) <= 1e-6
