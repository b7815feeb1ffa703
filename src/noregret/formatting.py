"""Numbers as text for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: float, digits: int = 4) -> str:
    """Number with ``digits`` significant digits.

    >>> number(1234567.0), number(0.000123456), number(12.0), number(1e-12)
    ('1,235,000', '0.0001235', '12', '1e-12')
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size < 9:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - size
    written = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return written.rstrip("0").rstrip(".") if decimals > 0 else written


def finite(value: float) -> float | None:
    """Number as JSON, which has no infinity: None stands for it."""
    return value if math.isfinite(value) else None


def digits_apart(lower: float, upper: float) -> int:
    """Digits enough to tell two numbers apart, and the numbers between them; at least four.

    >>> digits_apart(9999.7, 10000.3), digits_apart(0.5, 3.4), digits_apart(-1e308, 1e308)
    (7, 4, 4)
    """
    size, width = max(abs(lower), abs(upper)), upper - lower
    return 4 if not 0 < width < math.inf else min(max(4, math.ceil(math.log10(size) - math.log10(width)) + 2), 17)


def as_precise_as(lower: float, upper: float, value: float, digits: int = 3) -> str:
    """Number with the decimals that an interval supports: ``digits`` digits of its width.

    >>> [as_precise_as(0.0612345, 0.1671234, value) for value in (0.12, 0.0612345, 0.1671234, -1e-9)]
    ['0.120', '0.061', '0.167', '0.000']
    >>> as_precise_as(10_000, 90_000, 43_217.123), as_precise_as(1.0, 1.0, 1 / 3), as_precise_as(0, 1e-9, 1e-9)
    ('43,200', '0.3333', '1e-09')
    """
    width = upper - lower
    if not 0 < width < math.inf:
        return number(value)
    decimals = digits - 1 - math.floor(math.log10(width))
    if not -8 < decimals < 8 or not abs(value) < 1e9:
        return number(value)
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def shown(value: Any) -> str:
    """Params or a value of one, with floats to four digits.

    >>> shown({"rate": 0.012345678, "kind": "gated"})
    '{rate: 0.01235, kind: gated}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return number(value) if isinstance(value, float) else str(value)


def between(lower: float, upper: float, digits: int = 3) -> tuple[str, str]:
    """Two ends of an interval, with decimals enough to tell them apart.

    >>> between(12.3456, 12.3466)
    ('12.3456', '12.3466')
    """
    for more in range(digits, 18):
        low, high = number(lower, more), number(upper, more)
        if low != high and abs(_read(low) - lower) + abs(_read(high) - upper) < 0.05 * (upper - lower):
            break
    return low, high


def _read(written: str) -> float:
    return float(written.replace(",", ""))
