"""Constants of the builders: their meaning, and the checks of their values.

=================  =======================================================================================
keyword            meaning
=================  =======================================================================================
``norm``           B: f has RKHS norm at most B
``noise``          R: the noise is R-sub-Gaussian
``moment, alpha``  v and alpha: E|y|^(1 + alpha) <= v for the reward y, in place of R under heavy tails
``delta``          the bounds hold, at all arms and rounds together, with probability 1 - delta
``horizon``        T: the number of rewards of the run
``ridge``          lambda, added to the kernel matrix of the rewards
``epsilon``        accuracy of a sketch: its variances are right up to the factor (1 + epsilon) / (1 - epsilon)
``constants``      'theory' for the theorem's width, 'experiment' for the authors' one, which no theorem covers
``scale``          factor on the part of the width that accounts for the noise; the part with B does not change
=================  =======================================================================================
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import WRAPPER_ASSIGNMENTS, wraps
from numbers import Real
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

Constants = Literal["theory", "experiment"]
Keywords = ParamSpec("Keywords")
Built = TypeVar("Built")

Limit = tuple[str, Callable[[Any], bool]]
"""Condition on a value, in words and as a test."""


def _is_number(value: Any) -> bool:
    return False if isinstance(value, bool) else isinstance(value, Real)


def _one_of(*words: str) -> Limit:
    return f"be {' or '.join(map(repr, words))}", lambda value: isinstance(value, str) and value in words


def _is_gain(value: Any) -> bool:
    if _is_number(value):
        return bool(0 <= value < math.inf)
    return value in ("realised", "greedy", "rate") if isinstance(value, str) else callable(value)


def _is_interval(value: Any) -> bool:
    try:
        low, high = value
        return _is_number(low) and _is_number(high) and bool(-math.inf < low < high < math.inf)
    except (TypeError, ValueError):
        return False


def _number(must: str, holds: Callable[[Any], bool]) -> Limit:
    return must, lambda value: _is_number(value) and holds(value)


AT_LEAST_0 = _number("be finite and at least 0", lambda value: 0 <= value < math.inf)
INSIDE_0_1 = _number("be in (0, 1)", lambda value: 0 < value < 1)
WHOLE = _number("be a whole number from 1", lambda value: isinstance(value, int | np.integer) and bool(value >= 1))

TRUE_OR_FALSE: Limit = ("be True or False", lambda value: isinstance(value, bool))

LIMITS: dict[str, Limit] = {
    "norm": AT_LEAST_0,
    "noise": AT_LEAST_0,
    "scale": AT_LEAST_0,
    "bias": AT_LEAST_0,
    "delta": INSIDE_0_1,
    "epsilon": INSIDE_0_1,
    "horizon": WHOLE,
    "ridge": _number("be positive, or 0 for noise-free rewards", lambda value: 0 <= value < math.inf),
    "moment": _number("be positive", lambda value: 0 < value < math.inf),
    "noise_moment": AT_LEAST_0,
    "recentre": TRUE_OR_FALSE,
    "alpha": _number("be in (0, 1] (with more moments than two take alpha = 1)", lambda value: 0 < value <= 1),
    "constants": _one_of("theory", "experiment"),
    "slack": _number("be at least 0", lambda value: 0 <= value < math.inf),
    "margin": _number("be finite", math.isfinite),
    "oversampling": _number("be positive", lambda value: value > 0),
    "growth": _number("be above 1", lambda value: 1 < value < math.inf),
    "size": WHOLE,
    "first_epoch": WHOLE,
    "points_per_cell": WHOLE,
    "patience": WHOLE,
    "groups": WHOLE,
    "order": WHOLE,
    "first_level": INSIDE_0_1,
    "keep": _one_of("upper", "mean"),
    "root": _one_of("symmetric", "cholesky"),
    "coins": _one_of("fresh", "kept", "greedy"),
    "width": _one_of("certified", "tight", "paper"),
    "separate": TRUE_OR_FALSE,
    "truncation": (
        "be a positive number or a schedule",
        lambda value: callable(value) or (_is_number(value) and bool(0 < value < math.inf)),
    ),
    "weights": ("be a function from (n, d) points to their densities, (n,)", callable),
    "gain": ("be 'realised', 'greedy', 'rate', a number or a schedule", _is_gain),
    "features": (
        "be 'nystrom', 'qff' or such as RandomFourier(kernel, 50)",
        lambda value: value in ("nystrom", "qff") if isinstance(value, str) else hasattr(value, "on"),
    ),
    "lengthscale_power": AT_LEAST_0,
    "norm_power": AT_LEAST_0,
    "norms": TRUE_OR_FALSE,
    "start": _number(
        "be finite and at least 1: rungs down to l_0 / start are in from the first round",
        lambda value: 1 <= value < math.inf,
    ),
    "threshold": AT_LEAST_0,
    "softness": _number("be positive", lambda value: 0 < value < math.inf),
    "rate": INSIDE_0_1,
    "discount": INSIDE_0_1,
    "window": WHOLE,
    "period": WHOLE,
    "variation": AT_LEAST_0,
    "bounds": ("be two numbers a < b with a <= max f <= b", _is_interval),
}
"""Condition on each keyword of the builders."""


ABSENT = ("horizon", "first_level", "size")
"""Constants that are optional for a run; for others None means that the builder chooses."""


@dataclass(frozen=True)
class Checked:
    """Base of widths and levels: those of their fields that have a condition are checked; None is valid if default."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in LIMITS:
                check_constant(field.name, getattr(self, field.name), optional=field.default is None)


def check_constant(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise ValueError unless the value is valid, or is None and ``optional``."""
    must, holds = LIMITS[name]
    if not (holds(value) or (optional and value is None)):
        none = ", or None" if optional and name in ABSENT else ""
        raise ValueError(f"{name} must {must}{none}, got {value!r}")


def checks_constants(build: Callable[Keywords, Built]) -> Callable[Keywords, Built]:
    """Decorator of a builder that checks its keywords first; None is valid if it is the default."""
    parameters = inspect.signature(build).parameters

    @wraps(build, (*WRAPPER_ASSIGNMENTS, "__kwdefaults__"))
    def checked(*args: Keywords.args, **keywords: Keywords.kwargs) -> Built:
        for name, value in keywords.items():
            if name in parameters and name != "kernel":  # an unknown name is a TypeError below
                check_constant(name, value, optional=parameters[name].default is None)
                hint = get_type_hints(build)[name] if isinstance(value, str) else None
                if get_origin(hint) is Literal and value not in get_args(hint):  # a word of another builder
                    raise ValueError(f"{name} must {_one_of(*get_args(hint))[0]}, got {value!r}")
        return build(*args, **keywords)

    return checked


def ridge_of(noise: float, ridge: float | None) -> float:
    """Ridge of a model that needs a positive one: R^2 unless given."""
    if ridge is None and not noise:
        raise ValueError("noise must be positive where no ridge is given, got 0: pass ridge=")
    return noise**2 if ridge is None else ridge
