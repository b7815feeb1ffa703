"""What the builders' constants mean, and which values of them make sense.

=================  =======================================================================================
keyword            meaning
=================  =======================================================================================
``norm``           B: f has RKHS norm at most B
``noise``          R: the noise is R-sub-Gaussian
``moment, alpha``  v and alpha: E|y|^(1 + alpha) <= v for the reward y, in place of R under heavy tails
``delta``          the bounds hold, at all arms and rounds together, with probability 1 - delta
``horizon``        T: how many rewards the run will have
``ridge``          lambda, added to the kernel matrix of the rewards
``epsilon``        accuracy of a sketch: its variances are right up to the factor (1 + epsilon) / (1 - epsilon)
``constants``      'theory' takes the theorem's width, 'experiment' what the authors ran, which no theorem covers
``scale``          factor on the part of the width that is there for the noise; the part with B stays
=================  =======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np

Constants = Literal["theory", "experiment"]

Limit = tuple[str, Callable[[Any], bool]]
"""What must hold, in words and as a test."""


def _is_number(value: Any) -> bool:
    return False if isinstance(value, bool) else isinstance(value, Real)


def _number(must: str, holds: Callable[[Any], bool]) -> Limit:
    return must, lambda value: _is_number(value) and holds(value)


AT_LEAST_0 = _number("be finite and at least 0", lambda value: 0 <= value < math.inf)
INSIDE_0_1 = _number("be in (0, 1)", lambda value: 0 < value < 1)
WHOLE = _number("be a whole number from 1", lambda value: isinstance(value, int | np.integer) and bool(value >= 1))

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
    "alpha": _number("be in (0, 1] (with more moments than two take alpha = 1)", lambda value: 0 < value <= 1),
    "constants": ("be 'theory' or 'experiment'", lambda value: value in ("theory", "experiment")),
}
"""Of every constant, what must hold."""


def check_constants(**constants: Any) -> None:
    """Raise ValueError unless every constant has a value that makes sense; the horizon and the ridge may be None."""
    for name, value in constants.items():
        check_constant(name, value, optional=name in ("horizon", "ridge"))


def check_constant(name: str, value: Any, *, optional: bool = False) -> None:
    """Raise ValueError unless the value makes sense, or is None and ``optional``."""
    must, holds = LIMITS[name]
    if not (holds(value) or (optional and value is None)):
        raise ValueError(f"{name} must {must}{', or None' if optional else ''}, got {value!r}")
