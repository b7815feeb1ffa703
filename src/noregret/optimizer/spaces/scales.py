"""Scales: numbers with bounds, checked, as coordinates in [0, 1] and back."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats


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


def finite(value: Any) -> bool:
    """Whether this is a real number that a float can hold."""
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
        raise ValueError(f"{name} must be from {low} to {high}, got {value}: widen the bounds or drop this measurement")
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
