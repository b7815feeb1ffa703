"""All parameters at once: an axis for each, one above the other, and a line through them for each measurement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from noregret.optimizer.spaces.parameters import is_same_setting
from noregret.tune.learning.findings import Findings
from noregret.tune.page import words
from noregret.tune.page.axes import Axis, padded
from noregret.tune.page.charts import TEXT_WIDTH, cut
from noregret.tune.page.pictures import NARROW, WIDE, parameter_axis, thinned
from noregret.tune.store.records import Record

ROW, MARGIN = 56, 18
"""The height of an axis with its name and labels, and the space at both sides."""
MOST_AXES = 12
"""At most so many parameters are shown, the most important ones."""
MOST_LINES = 150
"""At most so many of the best lines are drawn, and so many of the others."""
BEST = 0.1
"""The share of the measurements that are called the best."""


def parallel(findings: Findings) -> str:
    """The chart, for wide pages and for narrow ones."""
    return _drawn(findings, WIDE, "wide") + _drawn(findings, NARROW, "narrow")


def _drawn(findings: Findings, width: int, kind: str) -> str:
    names = list(findings.importance)[:MOST_AXES]
    axes = [padded(findings.usual, findings.label), *(parameter_axis(findings, name) for name in names)]
    lines = [
        _line(record, names, axes, width, kind) for kind, records in _kinds(findings).items() for record in records
    ]
    rows = [_row(axis, i, width) for i, axis in enumerate(axes)]
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {ROW * len(axes)}" role="img" '
        f'aria-label="All parameters of the measurements">{"".join([*lines, *rows])}</svg>'
    )


def _kinds(findings: Findings) -> dict[str, Sequence[Record]]:
    """Measurements by how their lines are drawn, the last on top: all but outliers and what breaks a constraint."""
    left_out = {record.number for record in findings.outliers} | findings.infeasible
    sign = 1 if findings.study.goal == "minimize" else -1
    ranked = sorted((r for r in findings.done if r.number not in left_out), key=lambda r: -sign * (r.value or 0.0))
    few = round(BEST * len(ranked))
    best = findings.best
    chosen = [r for r in ranked if best and is_same_setting(r.params, best.params)]
    others, good = ranked[: len(ranked) - few], ranked[len(ranked) - few :]
    if best and not chosen:
        chosen = [Record(-1, best.params, "done", best.estimate)]
    return {"thread": thinned(others, MOST_LINES), "good": thinned(good, MOST_LINES), "pick": chosen[-1:]}


def _line(record: Record, names: Sequence[str], axes: Sequence[Axis], width: int, kind: str) -> str:
    """A line through the values of a measurement, broken where it has none."""
    values = [record.value, *(record.params.get(name) for name in names)]
    path, pen = "", "M"
    for i, (axis, value) in enumerate(zip(axes, values, strict=True)):
        present = i == 0 or names[i - 1] in record.params
        path += f"{pen}{_across(axis, axis.place(value), width):.1f} {_height(i)}" if present else ""
        pen = "L" if present else "M"
    title = "the best setting" if record.number < 0 else f"trial {record.number}"
    shown = f"{title}: {words.number(record.value or 0.0)} ({words.params(record.params)})"
    return f'<path class="{kind}" d="{path}"><title>{words.html(shown)}</title></path>'


def _row(axis: Axis, index: int, width: int) -> str:
    """An axis with its name and labels."""
    height, plot = _height(index), width - 2 * MARGIN
    ticks = axis.ticks(max(2, plot // 80))
    fits = max(int(plot / max(len(ticks), 1) / TEXT_WIDTH) - 1, 1)
    labels = "".join(
        f'<path class="axis" d="M{_across(axis, value, width):.1f} {height - 3}v6"/>'
        f'<text x="{_across(axis, value, width):.1f}" y="{height + 15}" text-anchor="middle">'
        f"{words.html(cut(label, fits))}</text>"
        for value, label in ticks
    )
    shown = words.html(cut(axis.label, int(plot / TEXT_WIDTH)))
    name = f'<text class="label" x="{MARGIN}" y="{height - 8}">{shown}</text>'
    return f'<path class="axis" d="M{MARGIN} {height}H{width - MARGIN}"/>{labels}{name}'


def _across(axis: Axis, value: float, width: int) -> float:
    return MARGIN + float(np.clip(axis.share(value), 0.0, 1.0)) * (width - 2 * MARGIN)


def _height(index: int) -> int:
    return ROW * index + 28
