"""Logarithm of expected improvement, accurate where the improvement itself underflows."""

from __future__ import annotations

import math

import numpy as np

from noregret.gp.arrays import Array, at_least, between, namespace, special

LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)
FARTHEST, NEAREST = -100.0, 8.0
"""Range of the standardised improvement z in which one formula is accurate."""


def log_expected_improvement(gap: Array, std: Array) -> Array:
    """Logarithm of E max(gap + std N, 0), N standard normal, (n,), (n,) -> (n,)."""
    floored = at_least(std, 1e-50)  # a std of 0 leaves max(gap, 0)
    return namespace(std).log(floored) + _log_improvement(gap / floored)


def _log_improvement(z: Array) -> Array:
    """Logarithm of h(z) = phi(z) + z Phi(z), phi and Phi the standard normal density and distribution function.

    It is ln phi(z) + ln(1 + z Phi(z) / phi(z)) with Phi / phi from erfcx. Below `FARTHEST`, where that sum cancels, it
    is an asymptotic series; above `NEAREST`, h(z) is z to all digits.
    """
    xp, inside = namespace(z), between(z, FARTHEST, NEAREST)
    ratio = math.sqrt(math.pi / 2) * special(z).erfcx(-inside * math.sqrt(0.5))
    middle = -0.5 * inside * inside - LOG_SQRT_2_PI + xp.log1p(inside * ratio)
    if isinstance(z, np.ndarray) and z.min() >= FARTHEST and z.max() <= NEAREST:
        return middle
    above = xp.where(z > NEAREST, xp.log(at_least(z, 1.0)), middle)
    below = between(z, -math.inf, FARTHEST)  # ln of phi(z) (1/z^2 - 3/z^4 + 15/z^6 - 105/z^8)
    part = 1 / below**2
    series = xp.log(part) + xp.log1p(part * (-3 + part * (15 - 105 * part)))
    return xp.where(z < FARTHEST, -0.5 * below * below - LOG_SQRT_2_PI + series, above)
