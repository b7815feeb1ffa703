"""Checking: the numbers that a user gives, or an error that says what must hold."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from noregret.optimizer.history import UNKNOWN
from noregret.optimizer.spaces.parameters import finite


def checked_value(value: Any) -> float:
    """The value that was told, as a float; ValueError unless it is a finite number."""
    value = _unwrapped(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"value must be a number, got {value!r}")
    if not finite(value):
        raise ValueError(f"value is {value}: pass a finite number, or fail(trial) if there is none")
    return float(value)


def checked_noise(noise: Any) -> float:
    """The standard deviation that was told, UNKNOWN for None; ValueError unless it is above 0."""
    if noise is None:
        return UNKNOWN
    noise = _unwrapped(noise)
    if not finite(noise) or noise <= 0:
        raise ValueError(
            f"noise must be the value's standard deviation, above 0, got {noise!r}: leave it out if unknown"
        )
    return float(noise)


def _unwrapped(value: Any) -> Any:
    """The number in an array of no dimensions."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
