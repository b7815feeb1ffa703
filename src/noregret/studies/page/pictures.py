"""The charts of a report, as SVG drawn by hand: they need no package, scale with the page and follow its colours.

Marks outside a chart's range are drawn at its edge as an arrowhead, so that one outlier does not squeeze everything
else into a line. All dots of a kind are one path of lines without length and with round ends: a tenth of the size of
circles, and as round after zooming. ``charts.js`` reads the axes from the chart, for zoom and values under the pointer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Concatenate, ParamSpec

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer import VALUE, Choice, Estimate, Int, Reading, Share, Trial, is_same_setting
from noregret.studies import words
from noregret.studies.learning.findings import MOST_DOTS, Effect, Findings, Point, Surface
from noregret.studies.study.study import text
from noregret.studies.words import html, number

Subject = ParamSpec("Subject")

WIDE, NARROW, HEIGHT = 880, 380, 260
"""The widths of charts for desks, of charts for phones and small charts, and the height of all."""
COLOURS = 8
"""The number of shades of a surface."""
FINENESS = 4
"""Number of cells of a surface between two values of a parameter."""

FRONT_HEIGHT = 380
"""Height of a chart of a front."""
FRONT_MARGIN = 1.0
"""Measurements this many times the range of their middle 80% beyond it are not shown: they would flatten the rest."""
UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}
"""Units of the timeline, in seconds."""
MOST_NAMED = 20
"""Largest number of workers that are all named on the timeline."""
MOST_BARS = 2000
"""Largest number of trials in the timeline."""
ROW, MARGIN = 56, 18
"""The height of an axis with its name and labels, and the space at both sides."""
MOST_AXES = 12
"""Largest number of parameters that are shown, the most important ones."""
MOST_LINES = 60
"""Largest number of the best lines, and of the others."""
EFFECT_DOTS = 4200
"""Largest number of drawn measurements of all effects together, if that is at least `FEWEST_DOTS` in each."""
FEWEST_DOTS = 200
BEST = 0.1
"""The share of the measurements that are called the best."""

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


def in_both_widths(draw: Callable[Concatenate[int, Subject], Chart]) -> Callable[Subject, str]:
    """Make a function that draws a chart of a width return it for wide pages and for narrow ones."""

    def drawn(*args: Subject.args, **named: Subject.kwargs) -> str:
        return draw(WIDE, *args, **named).svg("wide") + draw(NARROW, *args, **named).svg("narrow")

    return drawn


@in_both_widths
def history(width: int, findings: Findings) -> Chart:
    """Every measurement and the best so far, in the order of trials."""
    numbers = [record.number for record in findings.records] or [0]
    first, last = min(numbers), max(numbers)
    trials = Axis(first - 0.5, last + 0.5, "trial", whole=True, column="trial")
    chart = Chart(trials, _results(findings), width, HEIGHT, "Result of each trial, and the best so far")
    steps = findings.best_so_far
    along = [*(float(step.trial) for step in steps), last + 0.5]
    kept = [step.estimate for step in [*steps, *steps[-1:]]]
    if steps:
        chart.step_band(along, [estimate.lower for estimate in kept], [estimate.upper for estimate in kept])
    for kind, records in _kinds(findings).items():
        _dots(chart, [(record.number, record) for record in records], kind)
    failed = [(float(record.number), chart.y.low) for record in thinned(findings.failed)]
    chart.dots(failed, "failed")
    if steps:
        chart.steps(along, [estimate.estimate for estimate in kept])
    return chart


def effect(findings: Findings, found: Effect) -> str:
    """Effect of one parameter: estimate, band, and the measurements themselves."""
    axis = parameter_axis(findings, found.name)
    extra = [*found.estimate, *found.lower, *found.upper]
    chart = Chart(axis, _results(findings, extra), NARROW, HEIGHT, f"Effect of {found.name}")
    assert findings.best
    if axis.names:
        for i, (middle, low, high) in enumerate(zip(found.estimate, found.lower, found.upper, strict=True)):
            said = words.likely(Estimate({}, middle, low, high, findings.best.level), findings.unit)
            chart.interval(i, low, high, f"{axis.names[i]}: about {words.number(middle)}{findings.unit}, {said}")
            chart.level(i, middle)
    else:
        chart.band(found.values, list(found.lower), list(found.upper))
        chart.line(found.values, list(found.estimate))
    chart.mark(axis.place(findings.best.params[found.name]))
    for kind, records in _kinds(findings).items():
        having = [record for record in records if found.name in record.params]
        most = min(MOST_DOTS, max(FEWEST_DOTS, EFFECT_DOTS // len(findings.effects)))
        _dots(chart, [(axis.place(record.params[found.name]), record) for record in having], kind, most)
    return chart.svg("small")


def time_unit(findings: Findings) -> tuple[str, float]:
    """Unit of the timeline, and its seconds."""
    return _unit_of(max(span.end for span in findings.spans.values()))


def _unit_of(seconds: float) -> tuple[str, float]:
    return next(((name, size) for name, size in UNITS.items() if seconds >= 2 * size), ("seconds", 1.0))


@in_both_widths
def front(width: int, findings: Findings, across: str, up: str) -> Chart:
    """The front and all measurements in two objectives."""
    x, y = _objective_axis(findings, across), _objective_axis(findings, up)
    chart = Chart(x, y, width, FRONT_HEIGHT, f"The front in {across} and {up}, and all measurements")
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for record in thinned(findings.done):
        left, height = findings.value(record, across), findings.value(record, up)
        if left is not None and height is not None and x.low <= left <= x.high:
            by_kind.setdefault(findings.kinds[record.number], []).append((left, height))
    for kind, points in by_kind.items():
        chart.dots(points, kind)
    if findings.picked:
        chart.dots([(findings.picked.values[across], findings.picked.values[up])], "recommended")
    for member in findings.front:
        chart.cross(
            (member.values[across], member.lower[across], member.upper[across]),
            (member.values[up], member.lower[up], member.upper[up]),
            f"{findings.in_words(member)}; {words.params(member.params)}",
        )
    chart.dots([(member.values[across], member.values[up]) for member in findings.front], "front")
    return chart


def _objective_axis(findings: Findings, name: str) -> Axis:
    """Axis of an objective that shows the front with its intervals, and the measurements that are not far off."""
    measured = [value for record in findings.done if (value := findings.value(record, name)) is not None]
    low, high = np.quantile(measured, [0.1, 0.9])
    margin = FRONT_MARGIN * (high - low) or np.inf
    numbers = [value for value in measured if low - margin <= value <= high + margin]
    members = [*findings.front, *([findings.picked] if findings.picked else [])]
    numbers += [end for member in members for end in (member.values[name], member.lower[name], member.upper[name])]
    unit = findings.units()[name]
    label = f"{name} ({unit.strip()})" if unit else name
    goal = "lower is better" if findings.study.goals[name] == "minimize" else "higher is better"
    return padded(filter(math.isfinite, numbers), f"{label}, {goal}", f"value.{name}")


@in_both_widths
def timeline(width: int, findings: Findings) -> Chart:
    """Start and end of every trial, a row for each worker."""
    name, size = time_unit(findings)
    workers = 1 + max(span.worker for span in findings.spans.values())
    end = max(span.end for span in findings.spans.values()) / size
    row = min(20, 400 / workers)
    numbers = [str(i + 1) for i in range(workers)] if workers <= MOST_NAMED else []
    rows = Axis(-0.5, workers - 0.5, "worker", names=tuple(numbers), whole=True, column="worker")
    height = TOP + BOTTOM + max(round(row * workers), 40)
    chart = Chart(Axis(0.0, end, name, column="span"), rows, width, height, "Trials in time, by worker")
    places: dict[str, list[tuple[float, float, float]]] = {}
    for record in thinned([trial for trial in findings.records if trial.number in findings.spans], MOST_BARS):
        span = findings.spans[record.number]
        kind = {"failed": "lost", "done": "ran", "withdrawn": "ran"}.get(record.state, "runs")
        places.setdefault(kind, []).append((span.start / size, span.end / size, float(span.worker)))
    for kind, spans in places.items():
        chart.bars(spans, kind, 0.7 * min(row, 20))
    return chart


@in_both_widths
def spent(width: int, findings: Findings) -> Chart:
    """The best so far by the cost of the trials up to then."""
    total = sum(findings.costs.values())
    name, size = _unit_of(total) if findings.timed else ("cost", 1.0)
    steps, costs = findings.best_so_far, sorted(findings.costs.items())
    ends = [end for step in steps for end in (step.estimate.lower, step.estimate.upper) if math.isfinite(end)]
    spending = Axis(0.0, total / size, f"{name} spent")
    chart = Chart(spending, padded(ends, findings.label), width, HEIGHT, "Best so far by what was spent")
    along = [sum(cost for number, cost in costs if number <= step.trial) / size for step in steps]
    kept = [step.estimate for step in [*steps, steps[-1]]]
    chart.step_band([*along, total / size], [point.lower for point in kept], [point.upper for point in kept])
    chart.steps([*along, total / size], [point.estimate for point in kept])
    return chart


@in_both_widths
def against(width: int, findings: Findings, other: Findings) -> Chart:
    """The best so far of two studies."""
    estimates = [step.estimate for side in (findings, other) for step in side.best_so_far]
    ends = [end for estimate in estimates for end in (estimate.lower, estimate.upper) if math.isfinite(end)]
    last = max(record.number for side in (findings, other) for record in side.records)
    trials = Axis(-0.5, last + 0.5, "trial", whole=True)
    chart = Chart(trials, padded(ends, findings.label), width, HEIGHT, "Best so far of both studies")
    for side, kind in ((other, "other"), (findings, "")):
        steps = side.best_so_far
        along = [*(float(step.trial) for step in steps), max(record.number for record in side.records) + 0.5]
        kept = [step.estimate for step in [*steps, *steps[-1:]]]
        if steps:
            chart.step_band(along, [each.lower for each in kept], [each.upper for each in kept], f"band{kind}")
            chart.steps(along, [each.estimate for each in kept], f"line{kind}", side.study.name)
    return chart


def share(whole: Share, better: Share) -> str:
    """Bars as long as a parameter's shares of the variance, with their intervals as lines."""
    rails, bars, lines = "", "", ""
    for part, kind, top in ((whole, "", 0), (better, " better", 11)):
        low, middle, high = (f"{100 * end:.1f}" for end in (part.lower, part.estimate, part.upper))
        rails += f'<rect class="rail" y="{top}" width="100" height="10"/>'
        bars += f'<rect class="bar{kind}" y="{top + 1}" width="{middle}" height="8"/>'
        lines += f"M{low} {top + 5}H{high}M{low} {top + 2}v6M{high} {top + 2}v6"
    return (
        '<svg class="share" viewBox="0 0 100 21" preserveAspectRatio="none" aria-hidden="true">'
        f'{rails}{bars}<path class="whisker" d="{lines}"/></svg>'
    )


def contour(findings: Findings, surface: Surface) -> str:
    """Joint effect of two parameters, darker for better, and the measurements."""
    across, down = parameter_axis(findings, surface.across), parameter_axis(findings, surface.down)
    chart = Chart(across, down, NARROW, 320, f"Estimate by {surface.across} and {surface.down}")
    shades = _shades(surface.estimate, findings.study.goal == "minimize")
    lefts, xs = _cells(across, surface.across_values)
    lows, ys = _cells(down, surface.down_values)
    places: dict[int, list[tuple[float, float, float, float]]] = {}
    for row, bottom, top in zip(_smooth(shades, ys, xs), lows, lows[1:], strict=False):
        for first, end, shade in _runs(row):
            places.setdefault(shade, []).append((lefts[first], lefts[end], bottom, top))
    for shade in sorted(places):
        chart.cells(places[shade], f"shade{shade}")
    names = (surface.across, surface.down)
    for kind, records in _kinds(findings).items():
        having = [record for record in records if all(name in record.params for name in names)]
        points = [(across.place(r.params[names[0]]), down.place(r.params[names[1]])) for r in thinned(having)]
        chart.dots(points, kind)
    assert findings.best
    best = (across.place(findings.best.params[across.label]), down.place(findings.best.params[down.label]))
    chart.dots([best], "recommended")
    return chart.svg("map")


def maps(findings: Findings) -> dict[str, Any]:
    """The surfaces as ``charts.js`` draws them, with the axes of their parameters."""
    names = dict.fromkeys(name for surface in findings.surfaces for name in (surface.across, surface.down))
    assert findings.best
    return {
        "axes": {name: parameter_axis(findings, name).json() for name in names},
        "best": {name: text(findings.best.params[name]) for name in names},
        "minimize": findings.study.goal == "minimize",
        "unit": findings.unit,
        "surfaces": [
            {
                "across": surface.across,
                "down": surface.down,
                "x": [text(value) for value in surface.across_values],
                "y": [text(value) for value in surface.down_values],
                "z": [[float(f"{value:.4g}") for value in row] for row in surface.estimate.tolist()],
            }
            for surface in findings.surfaces
        ],
    }


def shades() -> str:
    """The shades of a surface side by side, from the worst to the best."""
    boxes = "".join(f'<rect class="shade{i}" x="{12 * i}" width="12" height="12"/>' for i in range(COLOURS))
    return f'<svg class="scale" viewBox="0 0 {12 * COLOURS} 12" aria-hidden="true">{boxes}</svg>'


def settings(findings: Findings, points: Sequence[Point]) -> str:
    """Some points side by side: estimates, intervals and measurements."""
    estimate, lower, upper = findings.predicted([point.params for point in points])
    odd = {record.number for record in findings.outliers}
    usual = [
        value
        for point in points
        for r, value in zip(point.records, point.values.tolist(), strict=True)
        if r.number not in odd
    ]
    axis = padded([*usual, *lower, *upper], findings.label)
    numbers = [str(i + 1) for i in range(len(points))]
    chart = Chart(named_axis(numbers, "setting"), axis, NARROW, HEIGHT, "Settings side by side")
    for i, point in enumerate(points):
        chart.interval(i, lower[i], upper[i], f"setting {i + 1}: {' to '.join(words.between(lower[i], upper[i]))}")
        chart.level(i, estimate[i])
        for kind, records in _kinds(findings, point.records).items():
            _dots(chart, [(i, record) for record in records], kind)
    return chart.svg("small")


def thinned(found: Sequence[Any], most: int | None = None) -> Sequence[Any]:
    """At most ``most`` of these, or `MOST_DOTS`, evenly spread, with the first and the last."""
    most = MOST_DOTS if most is None else most
    if len(found) <= most:
        return found
    return [found[i] for i in np.linspace(0, len(found) - 1, most).astype(int)]


def parameter_axis(findings: Findings, name: str) -> Axis:
    """The axis of a parameter."""
    assert isinstance(findings.study.space, Mapping)
    parameter = findings.study.space[name]
    if isinstance(parameter, Choice):
        return named_axis([text(value) for value in parameter.options], name, f":{name}")
    whole = isinstance(parameter, Int)
    return Axis(parameter.low, parameter.high, name, parameter.log, whole=whole, column=f":{name}")


def _kinds(findings: Findings, records: Iterable[Trial] | None = None) -> dict[str, list[Trial]]:
    """Measurements by kind of mark; all if none are given."""
    kinds: dict[str, list[Trial]] = {kind: [] for kind in ("early", "cut", "dot", "broken", "yours", "chosen", "odd")}
    for record in (*findings.done, *findings.cut) if records is None else records:
        kinds[findings.kinds[record.number]].append(record)
    return kinds


def _dots(chart: Chart, places: Sequence[tuple[float, Trial]], kind: str, most: int | None = None) -> None:
    chart.dots([(x, record.value() or 0.0) for x, record in thinned(places, most)], kind)


def _results(findings: Findings, extra: Sequence[float] = ()) -> Axis:
    """Axis of results without far outliers, and of the ``extra`` values near them."""
    low, high = findings.usual
    margin = 0.3 * (high - low)
    return padded([low, high, *map(float, np.clip(extra, low - margin, high + margin))], findings.label, "value")


def _shades(estimate: Floats, minimize: bool) -> Floats:
    """Estimates from 0 at the worst to `COLOURS` at the best."""
    height = -estimate if minimize else estimate
    return np.asarray(COLOURS * (height - height.min()) / (np.ptp(height) or 1.0))


def _cells(axis: Axis, values: Sequence[object]) -> tuple[list[float], Floats]:
    """The ends of the cells along an axis, as shares of it, and the place of each cell among the values."""
    if axis.names:
        return [i / len(values) for i in range(len(values) + 1)], np.arange(len(values), dtype=float)
    shares = np.array([axis.share(float(value)) for value in values])  # type: ignore[arg-type]
    count = FINENESS * (len(values) - 1)
    middles = (np.arange(count) + 0.5) / count
    return [float(end) for end in np.linspace(0, 1, count + 1)], np.interp(middles, shares, np.arange(len(values)))


def _smooth(shades: Floats, rows: Floats, columns: Floats) -> list[list[int]]:
    """Whole shades at fractional rows and columns of a grid, bilinear."""
    along = np.array([np.interp(columns, np.arange(shades.shape[1]), row) for row in shades])
    smooth = np.array([np.interp(rows, np.arange(len(along)), column) for column in along.T]).T
    return [[int(shade) for shade in row] for row in np.clip(smooth, 0, COLOURS - 1).astype(int)]


def _runs(row: Sequence[int]) -> Iterable[tuple[int, int, int]]:
    """Stretches of one shade: first cell, the one after the last, shade.

    >>> list(_runs([3, 3, 4]))
    [(0, 2, 3), (2, 3, 4)]
    """
    ends = [i for i in range(1, len(row)) if row[i] != row[i - 1]]
    return [(first, end, row[first]) for first, end in zip([0, *ends], [*ends, len(row)], strict=True)]


def parallel(findings: Findings) -> str:
    """The chart, for wide pages and for narrow ones."""
    return _parallel(findings, WIDE, "wide") + _parallel(findings, NARROW, "narrow")


def _parallel(findings: Findings, width: int, kind: str) -> str:
    names = list(findings.importance)[:MOST_AXES]
    axes = [padded(findings.usual, findings.label), *(parameter_axis(findings, name) for name in names)]
    lines = [
        _thread(findings, record, names, axes, width, kind)
        for kind, records in _threads(findings).items()
        for record in records
    ]
    rows = [_axis_row(axis, i, width) for i, axis in enumerate(axes)]
    return (
        f'<svg class="chart parallel {kind}" viewBox="0 0 {width} {ROW * len(axes)}" role="img" '
        f'aria-label="All parameters of the measurements">{"".join([*lines, *rows])}</svg>'
    )


def _threads(findings: Findings) -> dict[str, Sequence[Trial]]:
    """Measurements by kind of line, the last on top: all but outliers and those that break a constraint."""
    left_out = {record.number for record in findings.outliers} | findings.infeasible
    sign = 1 if findings.study.goal == "minimize" else -1
    ranked = sorted(
        (r for r in findings.done if r.number not in left_out), key=lambda r: -sign * (findings.value(r) or 0.0)
    )
    few = round(BEST * len(ranked))
    best = findings.best
    chosen = [r for r in ranked if best and is_same_setting(r.params, best.params)]
    others, good = ranked[: len(ranked) - few], ranked[len(ranked) - few :]
    if best and not chosen:
        chosen = [Trial(-1, best.params, state="done", readings={VALUE: (Reading(best.estimate),)})]
    return {"thread": thinned(others, MOST_LINES), "good": thinned(good, MOST_LINES), "pick": chosen[-1:]}


def _thread(
    findings: Findings, record: Trial, names: Sequence[str], axes: Sequence[Axis], width: int, kind: str
) -> str:
    """A line through the values of a measurement, broken where it has none."""
    values = [findings.value(record), *(record.params.get(name) for name in names)]
    path, pen = "", "M"
    for i, (axis, value) in enumerate(zip(axes, values, strict=True)):
        present = i == 0 or names[i - 1] in record.params
        path += f"{pen}{_across(axis, axis.place(value), width):.0f} {_height(i)}" if present else ""
        pen = "L" if present else "M"
    return f'<path class="{kind}" data-trial="{record.number}" d="{path}"/>'


def _axis_row(axis: Axis, index: int, width: int) -> str:
    """An axis with its name and labels."""
    height, plot = _height(index), width - 2 * MARGIN
    ticks = axis.ticks(max(2, plot // 80))
    fits = max(int(plot / max(len(ticks), 1) / TEXT_WIDTH) - 1, 1)
    marks = "".join(f"M{_across(axis, value, width):.1f} {height - 3}v6" for value, _ in ticks)
    labels = "".join(
        f'<text x="{_across(axis, value, width):.1f}" y="{height + 15}" text-anchor="middle">'
        f"{words.html(cut(label, fits))}</text>"
        for value, label in ticks
    )
    shown = words.html(cut(axis.label, int(plot / TEXT_WIDTH)))
    name = f'<text class="label" x="{MARGIN}" y="{height - 8}">{shown}</text>'
    return f'<path class="axis" d="M{MARGIN} {height}H{width - MARGIN}{marks}"/>{labels}{name}'


def _across(axis: Axis, value: float, width: int) -> float:
    return MARGIN + float(np.clip(axis.share(value), 0.0, 1.0)) * (width - 2 * MARGIN)


def _height(index: int) -> int:
    return ROW * index + 28


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
        start, end = (min(max(self.across(value), LEFT), self.width - RIGHT) for value in across)
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
        return json.dumps({key: part for key, part in vars(self).items() if part is not False and part not in ("", ())})

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
    numbers = [float(value) for value in values] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
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
