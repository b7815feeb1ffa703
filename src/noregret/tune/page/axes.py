"""Axes: numbers or names along one side of a chart, and the ticks that label them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from noregret.tune.page.words import number
from noregret.tune.study.study import text

FEW = 3
"""A log axis with fewer ticks than this at 1, 2 and 5 has evenly spaced ones."""

SMALLEST = 1e-300
"""A shorter axis has one tick: floating point has no numbers between which to place more."""


@dataclass(frozen=True)
class Axis:
    """Numbers from ``low`` to ``high``, or names, along one side of a chart."""

    low: float
    high: float
    label: str = ""
    log: bool = False
    names: tuple[str, ...] = ()
    whole: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return (value - low) / (high - low) if high > low else 0.5

    def place(self, value: Any) -> float:
        """The number at which a parameter's value stands: itself, or that of its name."""
        return float(self.names.index(text(value))) if self.names else float(value)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Values to label, and their labels: about so many, or twice as many on a log axis, whose labels are short.

        >>> [label for _, label in Axis(1, 64, log=True).ticks(4)]
        ['1', '2', '5', '10', '20', '50']
        """
        if self.names:
            return [(float(i), name) for i, name in enumerate(self.names)]
        powers = _ones_twos_fives(self.low, self.high, 2 * most + 1) if self.log else []
        if len(powers) >= FEW:
            return powers
        return _round_numbers(self.low, self.high, most, self.whole)


def named_axis(names: Sequence[str], label: str = "") -> Axis:
    """An axis of names, each in the middle of its share."""
    return Axis(-0.5, len(names) - 0.5, label, names=tuple(names))


def padded(values: Iterable[float], label: str = "", whole: bool = False) -> Axis:
    """An axis that shows all values, with a margin at both ends."""
    found = list(values) or [0.0, 1.0]
    low, high = min(found), max(found)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return Axis(low - margin, high + margin, label, whole=whole)


def _ones_twos_fives(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """1, 2 and 5 times powers of ten; powers alone, or only some of them, where these are too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors, step in (((1, 2, 5), 1), *(((1,), step) for step in range(1, last - first + 2))):
        values = [factor * 10.0**power for power in range(first, last + 1, step) for factor in factors]
        inside = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(inside) <= most:
            break
    return [(value, number(value) if 1e-4 <= value < 1e6 else _power(value)) for value in inside]


def _round_numbers(low: float, high: float, most: int, whole: bool) -> list[tuple[float, str]]:
    if not high - low > SMALLEST:
        return [(low, number(low))]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    step = max(1.0, math.ceil(step)) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [(step * i, _tick(step * i, step)) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _power(value: float) -> str:
    """A number with its power of ten.

    >>> _power(2.5e7), _power(-1e-6)
    ('2.5e7', '-1e-6')
    """
    factor, power = f"{value:.2e}".split("e")
    return f"{factor.rstrip('0').rstrip('.')}e{int(power)}"


def _tick(value: float, step: float) -> str:
    if not 1e-4 <= max(abs(value), step) < 1e6:
        return _power(value) if value else "0"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += decimals > 0 and round(step * 10**decimals, 6) != round(step * 10**decimals)
    decimals = max(decimals, 1) if step == 2.5 else decimals
    return f"{value:,.{decimals}f}"
