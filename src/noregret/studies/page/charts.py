"""Small charts as SVG, drawn by hand: they need no package, scale with the page and follow its colours.

Marks outside a chart's range are drawn at its edge as an arrowhead, so that one outlier does not squeeze everything
else into a line. All dots of a kind are one path of lines without length and with round ends: a tenth of the size of
circles, and as round after zooming. ``charts.js`` reads the axes from the chart, for zoom and values under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from noregret.studies.study.study import text
from noregret.studies.words import html, number

LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 40
"""The margins around the plot, which hold the labels."""
TEXT_WIDTH = 6.6
"""The approximate width of a digit, in pixels of the page."""


RINGS = dict.fromkeys(("failed", "broken", "recommended", "cut"), ("ring", "core"))
"""Kinds of dots that are drawn twice, the core over the ring."""
FEWEST_TICKS = 3
"""A log axis with fewer ticks than this at 1, 2 and 5 has evenly spaced ones."""
SMALLEST = 1e-300
"""A shorter axis has one tick: floating point has no numbers between which to place more."""


class Chart:
    """One chart: marks on two axes.

    Width and height are in units of the page's pixels at full size. The label is a description, for screen readers.
    """

    def __init__(self, x: Axis, y: Axis, width: int, height: int, label: str) -> None:
        self.x, self.y, self.width, self.height, self.label = x, y, width, height, label
        self._marks: list[str] = []
        self._edge: list[str] = []

    def across(self, value: float) -> float:
        return LEFT + self.x.share(value) * (self.width - LEFT - RIGHT)

    def up(self, value: float) -> float:
        return self.height - BOTTOM - self.y.share(value) * (self.height - TOP - BOTTOM)

    def dots(self, points: Iterable[tuple[float, float]], kind: str = "dot") -> None:
        """A dot for each point, to the nearest pixel; an arrowhead at the edge for one above or below the chart."""
        inside, outside = "", ""
        for x, y in points:
            left, share = self.across(x), self.y.share(y)
            if 0 <= share <= 1:
                inside += f"M{left:.0f} {self.up(y):.0f}h0"
            else:
                edge, tip = (TOP, -7) if share > 1 else (self.height - BOTTOM, 7)
                outside += f"M{left - 4.5:.1f} {edge - tip / 7:.1f}h9l-4.5 {tip}z"
        if inside:
            self._marks += [f'<path class="{kind} {part}" d="{inside}"/>' for part in RINGS.get(kind, ("point",))]
        if outside:
            self._edge.append(f'<path class="{kind} beyond" d="{outside}"/>')

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str = "line", name: str = "") -> None:
        """A line through points, kept inside the plot; of several, each has a name."""
        points = " ".join(f"{self.across(x):.1f},{self._inside(y):.1f}" for x, y in zip(xs, ys, strict=True))
        named = f' data-name="{html(name)}"' if name else ""
        self._marks.append(f'<polyline class="{kind}"{named} points="{points}"/>')

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], kind: str = "band") -> None:
        """The area between two lines."""
        corners = [*zip(xs, highs, strict=True), *reversed(list(zip(xs, lows, strict=True)))]
        points = " ".join(f"{self.across(x):.1f},{self._inside(y):.1f}" for x, y in corners)
        self._marks.append(f'<polygon class="{kind}" points="{points}"/>')

    def steps(self, xs: Sequence[float], ys: Sequence[float], kind: str = "line", name: str = "") -> None:
        """A line that keeps the height of each point until the next one."""
        self.line(*_stairs(xs, ys), kind, name)

    def step_band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], kind: str = "band") -> None:
        """The area between two lines that go in steps."""
        along, high = _stairs(xs, highs)
        self.band(along, _stairs(xs, lows)[1], high, kind)

    def cells(self, places: Iterable[tuple[float, float, float, float]], kind: str) -> None:
        """Filled rectangles of one kind: left, right, bottom and top of each, as shares of the plot from 0 to 1."""
        across, down = self.width - LEFT - RIGHT, self.height - TOP - BOTTOM
        path = "".join(
            f"M{LEFT + left * across:.1f} {TOP + (1 - top) * down:.1f}H{LEFT + right * across:.1f}"
            f"V{TOP + (1 - bottom) * down:.1f}H{LEFT + left * across:.1f}z"
            for left, right, bottom, top in places
        )
        self._marks.append(f'<path class="{kind}" d="{path}"/>')

    def bars(self, places: Iterable[tuple[float, float, float]], kind: str, thickness: float) -> None:
        """Level bars: start, end and height of each, with a gap after it."""
        path = ""
        for start, end, y in places:
            left, right = self.across(start), self.across(end)
            path += f"M{left:.1f} {self.up(y):.0f}H{max(right - 0.8, left + 0.4):.1f}"
        self._marks.append(f'<path class="{kind}" stroke-width="{thickness:.1f}" d="{path}"/>')

    def interval(self, x: float, low: float, high: float, title: str = "") -> None:
        """An upright bar from low to high, with a title for the pointer."""
        left, top, bottom = self.across(x), self._inside(high), self._inside(low)
        self._marks.append(
            f'<path class="band" d="M{left - 7:.1f} {top:.1f}h14v{max(bottom - top, 1):.1f}h-14z">'
            f"<title>{html(title)}</title></path>"
        )

    def cross(self, x: tuple[float, float, float], y: tuple[float, float, float], title: str = "") -> None:
        """A level and an upright line through a point: its place and the ends of its interval on each axis."""
        (left, *across), (height, *up) = x, y
        start, end = (min(max(self.across(its), LEFT), self.width - RIGHT) for its in across)
        low, high = map(self._inside, up)
        self._marks.append(
            f'<path class="cross" d="M{start:.1f} {self._inside(height):.1f}H{end:.1f}'
            f'M{self.across(left):.1f} {low:.1f}V{high:.1f}"><title>{html(title)}</title></path>'
        )

    def level(self, x: float, y: float) -> None:
        """A short level line, for an estimate."""
        left, height = self.across(x), self._inside(y)
        self._marks.append(f'<path class="line" d="M{left - 9:.1f} {height:.1f}h18"/>')

    def mark(self, x: float) -> None:
        """An upright line through the whole plot."""
        left = self.across(x)
        self._marks.append(f'<path class="mark" d="M{left:.1f} {TOP}V{self.height - BOTTOM}"/>')

    def svg(self, kind: str = "") -> str:
        """The chart."""
        plot = LEFT, TOP, self.width - LEFT - RIGHT, self.height - TOP - BOTTOM
        return (
            f'<svg class="chart {kind}" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{html(self.label)}" data-plot="{" ".join(map(str, plot))}" '
            f'data-x="{html(self.x.json())}" data-y="{html(self.y.json())}">'
            f'<g class="ticks">{self._upright()}{self._level()}</g>{self._labels()}'
            f'<g class="marks">{"".join(self._marks)}</g><g class="edge">{"".join(self._edge)}</g></svg>'
        )

    def _inside(self, y: float) -> float:
        return min(max(self.up(y), TOP), self.height - BOTTOM)

    def _upright(self) -> str:
        ticks = self.y.ticks(max(2, (self.height - TOP - BOTTOM) // 40))
        lines = "".join(f"M{LEFT} {self.up(v):.1f}H{self.width - RIGHT}" for v, _ in ticks)
        names = "".join(
            f'<text x="{LEFT - 6}" y="{self.up(v) + 4:.1f}" text-anchor="end">{html(cut(name, 7))}</text>'
            for v, name in ticks
        )
        return f'<path class="grid" d="{lines}"/>{names}'

    def _level(self) -> str:
        plot_width = self.width - LEFT - RIGHT
        ticks = self.x.ticks(max(2, plot_width // 70))
        longest = max((len(name) for _, name in ticks), default=0)
        fits = int(plot_width / max(len(ticks), 1) / TEXT_WIDTH)
        foot = self.height - BOTTOM
        labels, end = "", -math.inf
        for v, name in ticks:
            shown = cut(name, fits) if self.x.names and longest > fits else name
            half = len(shown) * TEXT_WIDTH / 2
            if self.across(v) - half > end:
                labels += f'<text x="{self.across(v):.1f}" y="{foot + 15}" text-anchor="middle">{html(shown)}</text>'
                end = self.across(v) + half + 3
        return f'<path class="axis" d="M{LEFT} {foot}H{self.width - RIGHT}"/>{labels}'

    def _labels(self) -> str:
        """The names of the axes."""
        middle, centre = (LEFT + self.width - RIGHT) / 2, (TOP + self.height - BOTTOM) / 2
        turned = f'transform="translate(11 {centre:.0f}) rotate(-90)" text-anchor="middle"'
        place = f'x="{middle:.0f}" y="{self.height - 6}" text-anchor="middle"'
        fits = int((self.height - TOP - BOTTOM) / TEXT_WIDTH), int((self.width - LEFT - RIGHT) / TEXT_WIDTH)
        return (
            f'<text class="label y" {turned}>{html(cut(self.y.label, fits[0]))}</text>'
            f'<text class="label x" {place}>{html(cut(self.x.label, fits[1]))}</text>'
        )


def _stairs(xs: Sequence[float], ys: Sequence[float]) -> tuple[list[float], list[float]]:
    """The corners of a line in steps.

    >>> _stairs([0, 1, 2], [5, 3, 2])
    ([0, 1, 1, 2, 2], [5, 5, 3, 3, 2])
    """
    along = [xs[0], *(x for x in xs[1:] for _ in range(2))]
    return along, [ys[0], *(y for pair in pairwise(ys) for y in pair)]


def cut(name: str, length: int) -> str:
    """A name that is no longer than this, with an ellipsis if it was."""
    return name if len(name) <= length else name[: max(length - 1, 1)] + "…"


@dataclass(frozen=True)
class Axis:
    """Numbers from ``low`` to ``high``, or names, along one side of a chart."""

    low: float
    high: float
    label: str = ""
    log: bool = False
    names: tuple[str, ...] = ()
    whole: bool = False
    column: str = ""
    """Origin of the values in the trials: "trial", "value", "span", "worker", or a parameter after a colon."""

    def json(self) -> str:
        """The axis for ``charts.js``, without what is empty."""
        return json.dumps({name: its for name, its in vars(self).items() if its is not False and its not in ("", ())})

    def share(self, value: float) -> float:
        """Position of a value, 0 at the low end and 1 at the high end; a value that is not finite is at an end."""
        if math.isinf(value):
            return float(value > 0)
        low, high, value = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return (value - low) / (high - low) if high > low else 0.5

    def place(self, value: Any) -> float:
        """Number of a parameter's value on the axis: itself, or the place of its name."""
        return float(self.names.index(text(value))) if self.names else float(value)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Values to label, and their labels: about ``most``, or twice as many on a log axis, whose labels are short.

        >>> [label for _, label in Axis(1, 64, log=True).ticks(4)]
        ['1', '2', '5', '10', '20', '50']
        """
        if self.names:
            return [(float(i), name or "(empty)") for i, name in enumerate(self.names)]
        powers = _ones_twos_fives(self.low, self.high, 2 * most + 1) if self.log else []
        if len(powers) >= FEWEST_TICKS:
            return powers
        return _round_numbers(self.low, self.high, most, self.whole)


def named_axis(names: Sequence[str], label: str = "", column: str = "") -> Axis:
    """An axis of names, each in the middle of its share."""
    return Axis(-0.5, len(names) - 0.5, label, names=tuple(names), column=column)


def padded(values: Iterable[float], label: str = "", column: str = "") -> Axis:
    """An axis that shows all values, with a margin at both ends."""
    found = [float(value) for value in values] or [0.0, 1.0]
    low, high = min(found), max(found)
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return Axis(low - margin, high + margin, label, column=column)


def _ones_twos_fives(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """1, 2 and 5 times powers of ten; powers alone, or only some of them, if these are too many."""
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
