"""The charts of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from noregret.optimizer.spaces.parameters import Choice
from noregret.tune.learning.findings import Effect, Findings, Point
from noregret.tune.page import words
from noregret.tune.page.charts import Axis, Chart, named_axis, padded
from noregret.tune.store.records import Record
from noregret.tune.study.study import text

WIDE, NARROW, HEIGHT = 880, 380, 260
"""The widths of charts for desks, of charts for phones and small charts, and the height of all."""


def history(findings: Findings) -> str:
    """Every measurement in the order of trials, for wide pages and for narrow ones."""
    return _history(findings, WIDE).svg("wide") + _history(findings, NARROW).svg("narrow")


def _history(findings: Findings, width: int) -> Chart:
    last = max((record.number for record in findings.records), default=0)
    chart = Chart(
        Axis(-0.5, last + 0.5, "trial", whole=True), _results(findings), width, HEIGHT, "Result of each trial"
    )
    if findings.best:
        chart.band([-0.5, last + 0.5], [findings.best.lower] * 2, [findings.best.upper] * 2)
    for kind, records in _kinds(findings).items():
        _dots(chart, [(record.number, record) for record in records], kind)
    foot = [(float(record.number), chart.y.low) for record in findings.failed]
    chart.dots(foot, [f"trial {record.number}: {record.failure}" for record in findings.failed], "failed")
    return chart


def effect(findings: Findings, found: Effect) -> str:
    """What one parameter does: estimate, band, and the measurements themselves."""
    axis = _parameter_axis(findings, found)
    place = _place(axis)
    extra = [*found.estimate, *found.lower, *found.upper]
    chart = Chart(axis, _results(findings, extra), NARROW, HEIGHT, f"Effect of {found.name}")
    if axis.names:
        for i, (middle, low, high) in enumerate(zip(found.estimate, found.lower, found.upper, strict=True)):
            chart.interval(i, low, high)
            chart.level(i, middle)
    else:
        chart.band(found.values, list(found.lower), list(found.upper))
        chart.line(found.values, list(found.estimate))
    assert findings.best
    chart.mark(place(findings.best.params[found.name]))
    for kind, records in _kinds(findings).items():
        having = [record for record in records if found.name in record.params]
        _dots(chart, [(place(record.params[found.name]), record) for record in having], kind)
    return chart.svg("small")


def settings(findings: Findings, points: Sequence[Point]) -> str:
    """Some points side by side: estimates, intervals and measurements."""
    estimate, lower, upper = findings.predicted([point.params for point in points])
    odd = {record.number for record in findings.outliers}
    usual = [record.value or 0.0 for point in points for record in point.records if record.number not in odd]
    axis = padded([*usual, *lower, *upper], findings.label)
    numbers = [str(i + 1) for i in range(len(points))]
    chart = Chart(named_axis(numbers, "setting"), axis, NARROW, HEIGHT, "Settings side by side")
    for i, point in enumerate(points):
        chart.interval(i, lower[i], upper[i])
        chart.level(i, estimate[i])
        _dots(chart, [(i, record) for record in point.records if record.number not in odd], "dot")
        _dots(chart, [(i, record) for record in point.records if record.number in odd], "odd")
    return chart.svg("small")


def _kinds(findings: Findings) -> dict[str, list[Record]]:
    """Measurements by how they are drawn."""
    chosen = [record for record in findings.done if findings.best and record.params == findings.best.params]
    odd = findings.outliers
    return {
        "dot": [record for record in findings.done if record not in odd and record not in chosen],
        "chosen": [record for record in chosen if record not in odd],
        "odd": odd,
    }


def _dots(chart: Chart, places: Iterable[tuple[float, Record]], kind: str) -> None:
    found = list(places)
    titles = [f"trial {r.number}: {words.number(r.value or 0.0)} ({words.params(r.params)})" for _, r in found]
    chart.dots([(x, r.value or 0.0) for x, r in found], titles, kind)


def _results(findings: Findings, extra: Sequence[float] = ()) -> Axis:
    """An axis for results that shows all but the far-off ones, and the ``extra`` values as far as they are near."""
    odd = {record.number for record in findings.outliers}
    usual = _near(findings, [record.value or 0.0 for record in findings.done if record.number not in odd])
    if findings.best:
        usual += [findings.best.lower, findings.best.upper]
    low, high = min(usual, default=0.0), max(usual, default=1.0)
    margin = 0.3 * (high - low)
    usual += [float(value) for value in np.clip(extra, low - margin, high + margin)]
    return padded(usual, findings.label)


def _near(findings: Findings, values: Sequence[float]) -> list[float]:
    """The values, those of a few settings far worse than most moved closer: they would flatten all else into a line."""
    low, high = np.quantile([np.median(point.values) for point in findings.points], [0.1, 0.9])
    margin = 3 * (high - low) or np.inf
    return [float(value) for value in np.clip(values, low - margin, high + margin)]


def _parameter_axis(findings: Findings, found: Effect) -> Axis:
    space = findings.study.space
    parameter = space[found.name] if isinstance(space, Mapping) else None
    if parameter is None or isinstance(parameter, Choice):
        return named_axis([text(value) for value in found.values], found.name)
    whole = all(isinstance(value, int) for value in found.values)
    return Axis(parameter.low, parameter.high, found.name, parameter.log, whole=whole)


def _place(axis: Axis) -> Callable[[Any], float]:
    """Where a value stands on the axis."""
    return (lambda value: float(axis.names.index(text(value)))) if axis.names else float
