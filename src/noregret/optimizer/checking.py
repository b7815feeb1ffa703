"""Checking: the numbers that a user gives, or an error that says what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, cast, get_args

import numpy as np

from noregret.optimizer.history import UNKNOWN
from noregret.optimizer.space.parameters import finite

Goal = Literal["minimize", "maximize"]

LARGEST = 1e300
"""Larger values are taken for this one, so that differences of values are finite."""


def checked_goal(goal: Any) -> Goal:
    """The goal; ValueError if it is none."""
    if goal not in get_args(Goal):
        raise ValueError(f"goal must be 'minimize' or 'maximize', got {goal!r}")
    return cast(Goal, goal)


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


def checked_tolerance(within: Any) -> Callable[[float], float]:
    """A tolerance given as a number, or as a part such as "2%" of the best estimate; from that estimate, the number."""
    is_part = isinstance(within, str) and within.strip().endswith("%")
    number = _number(within.strip()[:-1]) if is_part else _number(within, but=str)
    if not 0 < number < math.inf:
        raise ValueError(f"within must be a number above 0, or a part of the best estimate like '2%', got {within!r}")
    return lambda estimate: abs(estimate) * number / 100 if is_part else number


def checked_confidence(confidence: Any) -> float:
    """The confidence as a float; ValueError unless it is between 0 and 1."""
    number = _number(confidence, but=str)
    if not 0 < number < 1:
        raise ValueError(f"confidence must be a probability between 0 and 1, like 0.95, got {confidence!r}")
    return number


def _number(given: Any, but: type = bool) -> float:
    """What is given as a float, nan if it is none or a bool or of the type ``but``."""
    try:
        return math.nan if isinstance(given, bool | but) else float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _unwrapped(value: Any) -> Any:
    """The number in an array of no dimensions."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
