"""The charts of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer import VALUE, Choice, Estimate, Int, Reading, Share, Trial, is_same_setting
from noregret.studies import words
from noregret.studies.learning.findings import MOST_DOTS, Effect, Findings, Point, Surface
from noregret.studies.page.charts import BOTTOM, TEXT_WIDTH, TOP, Axis, Chart, cut, named_axis, padded
from noregret.studies.study.study import text

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
        chart.step_band(along, [its.lower for its in kept], [its.upper for its in kept])
    for kind, records in _kinds(findings).items():
        _dots(chart, [(record.number, record) for record in records], kind)
    failed = [(float(record.number), chart.y.low) for record in thinned(findings.failed)]
    chart.dots(failed, "failed")
    if steps:
        chart.steps(along, [its.estimate for its in kept])
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
    found = [value for value in measured if low - margin <= value <= high + margin]
    members = [*findings.front, *([findings.picked] if findings.picked else [])]
    found += [end for its in members for end in (its.values[name], its.lower[name], its.upper[name])]
    unit = findings.units()[name]
    label = f"{name} ({unit.strip()})" if unit else name
    goal = "lower is better" if findings.study.goals[name] == "minimize" else "higher is better"
    return padded(filter(math.isfinite, found), f"{label}, {goal}", f"value.{name}")


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
    for record in thinned([its for its in findings.records if its.number in findings.spans], MOST_BARS):
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
    ends = [end for its in steps for end in (its.estimate.lower, its.estimate.upper) if math.isfinite(end)]
    spending = Axis(0.0, total / size, f"{name} spent")
    chart = Chart(spending, padded(ends, findings.label), width, HEIGHT, "Best so far by what was spent")
    along = [sum(cost for number, cost in costs if number <= step.trial) / size for step in steps]
    kept = [step.estimate for step in [*steps, steps[-1]]]
    chart.step_band([*along, total / size], [its.lower for its in kept], [its.upper for its in kept])
    chart.steps([*along, total / size], [its.estimate for its in kept])
    return chart


@in_both_widths
def against(width: int, findings: Findings, other: Findings) -> Chart:
    """The best so far of two studies."""
    found = [step.estimate for its in (findings, other) for step in its.best_so_far]
    ends = [end for its in found for end in (its.lower, its.upper) if math.isfinite(end)]
    last = max(record.number for its in (findings, other) for record in its.records)
    trials = Axis(-0.5, last + 0.5, "trial", whole=True)
    chart = Chart(trials, padded(ends, findings.label), width, HEIGHT, "Best so far of both studies")
    for its, kind in ((other, "other"), (findings, "")):
        steps = its.best_so_far
        along = [*(float(step.trial) for step in steps), max(record.number for record in its.records) + 0.5]
        kept = [step.estimate for step in [*steps, *steps[-1:]]]
        if steps:
            chart.step_band(along, [each.lower for each in kept], [each.upper for each in kept], f"band{kind}")
            chart.steps(along, [each.estimate for each in kept], f"line{kind}", its.study.name)
    return chart


def share(whole: Share, better: Share) -> str:
    """Bars as long as a parameter's shares of the variance, with their intervals as lines."""
    rails, bars, lines = "", "", ""
    for found, kind, top in ((whole, "", 0), (better, " better", 11)):
        low, middle, high = (f"{100 * end:.1f}" for end in (found.lower, found.estimate, found.upper))
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
    names = dict.fromkeys(name for its in findings.surfaces for name in (its.across, its.down))
    assert findings.best
    return {
        "axes": {name: parameter_axis(findings, name).json() for name in names},
        "best": {name: text(findings.best.params[name]) for name in names},
        "minimize": findings.study.goal == "minimize",
        "unit": findings.unit,
        "surfaces": [
            {
                "across": its.across,
                "down": its.down,
                "x": [text(value) for value in its.across_values],
                "y": [text(value) for value in its.down_values],
                "z": [[float(f"{value:.4g}") for value in row] for row in its.estimate.tolist()],
            }
            for its in findings.surfaces
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
        for its in points
        for r, value in zip(its.records, its.values.tolist(), strict=True)
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
    found = -estimate if minimize else estimate
    return np.asarray(COLOURS * (found - found.min()) / (np.ptp(found) or 1.0))


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
    found = np.array([np.interp(rows, np.arange(len(along)), column) for column in along.T]).T
    return [[int(shade) for shade in row] for row in np.clip(found, 0, COLOURS - 1).astype(int)]


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
