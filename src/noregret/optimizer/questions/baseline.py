"""Baseline: when the setting that others are compared with is worth another measurement.

The gain is the difference between the recommended setting and the baseline. What one more measurement of the baseline
takes off its variance is (v - c)^2 / (v + s^2), v the baseline's variance, c the covariance of the two and s the noise.
Heuristic: that must be a good part of the variance, the gain must not be known well already, and few of the questions
may go there. With contexts the two are compared in the one that a question comes with, and the few are those of all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from noregret.optimizer.model.condensing import Belief
from noregret.optimizer.space.space import Space

WORTH = 0.1
"""A measurement of the baseline must take at least this part off the variance of the gain."""

PRECISE = 0.05
"""A gain is known well enough when two standard deviations are less than this part of it."""

SHARE = 1 / 8
"""At most this part of the questions goes to the baseline."""


def is_worth_measuring(belief: Belief, best: int, baseline: int) -> bool:
    """Whether the gain of the arm ``best`` over the arm ``baseline`` hinges on the baseline's own noise."""
    if best == baseline:
        return False
    pair = np.array([best, baseline])
    (own, shared), (_, variance) = belief.covariance(pair, pair)
    total = max(float(own + variance - 2 * shared), 1e-300)
    taken = float(variance - shared) ** 2 / (float(variance) + belief.ridge)
    gain = abs(float(belief.mean[best] - belief.mean[baseline]))
    return taken >= WORTH * total and 2 * math.sqrt(total) > PRECISE * gain


def checked_baseline(space: Space, baseline: Any) -> Any:
    """The baseline as params of the space; ValueError if it is none."""
    try:
        return space.checked(baseline)
    except ValueError as error:
        raise ValueError(f"baseline must be params of the space: {error}") from None
