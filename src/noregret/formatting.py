"""Numbers as text for people."""

from __future__ import annotations

import math


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


def digits_apart(lower: float, upper: float) -> int:
    """Digits enough to tell two numbers apart, and the numbers between them; at least four.

    >>> digits_apart(9999.7, 10000.3), digits_apart(0.5, 3.4), digits_apart(-1e308, 1e308)
    (7, 4, 4)
    """
    size, width = max(abs(lower), abs(upper)), upper - lower
    return 4 if not 0 < width < math.inf else min(max(4, math.ceil(math.log10(size) - math.log10(width)) + 2), 17)


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
