"""The front of a study with several objectives: its chart, its table and its trade-offs in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from noregret.optimizer import JointEstimate
from noregret.tune import words
from noregret.tune.learning.findings import Findings
from noregret.tune.page.charts import Axis, Chart, padded
from noregret.tune.page.pictures import NARROW, WIDE, thinned

HEIGHT = 380
"""Height of a chart of a front."""
MARGIN = 1.0
"""Measurements this many times the range of their middle 80% beyond it are not shown: they would flatten the rest."""


def pairs(findings: Findings) -> list[tuple[str, str]]:
    """Each two objectives, a chart for each."""
    return list(combinations(findings.study.objectives, 2))


def picture(findings: Findings, across: str, up: str) -> str:
    """The front and all measurements in two objectives, for wide pages and for narrow ones."""
    charts = (_chart(findings, across, up, width) for width in (WIDE, NARROW))
    return "".join(chart.svg(kind) for chart, kind in zip(charts, ("wide", "narrow"), strict=True))


def _chart(findings: Findings, across: str, up: str, width: int) -> Chart:
    x, y = _axis(findings, across), _axis(findings, up)
    chart = Chart(x, y, width, HEIGHT, f"The front in {across} and {up}, and all measurements")
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
            f"{in_words(findings, member)}; {words.params(member.params)}",
        )
    chart.dots([(member.values[across], member.values[up]) for member in findings.front], "front")
    return chart


def _axis(findings: Findings, name: str) -> Axis:
    """Axis of an objective that shows the front with its intervals, and the measurements that are not far off."""
    measured = [value for record in findings.done if (value := findings.value(record, name)) is not None]
    low, high = np.quantile(measured, [0.1, 0.9])
    margin = MARGIN * (high - low) or np.inf
    found = [value for value in measured if low - margin <= value <= high + margin]
    members = [*findings.front, *([findings.picked] if findings.picked else [])]
    found += [end for its in members for end in (its.values[name], its.lower[name], its.upper[name])]
    unit = findings.units()[name]
    label = f"{name} ({unit.strip()})" if unit else name
    goal = "lower is better" if findings.study.goals[name] == "minimize" else "higher is better"
    return padded(filter(math.isfinite, found), f"{label}, {goal}", f"value.{name}")


def in_words(findings: Findings, member: JointEstimate) -> str:
    """The values of a setting of the front."""
    units = findings.units()
    return ", ".join(
        f"{name} {words.with_interval(value, member.lower[name], member.upper[name], units[name])}"
        for name, value in member.values.items()
    )


def about(findings: Findings) -> Iterator[str]:
    """Meaning of the front, and its size."""
    count = len(findings.front)
    level = words.percent(findings.front[0].level)
    yield (
        f"{count} setting{'s' * (count != 1)}: each is best at some trade-off. The bars are the intervals of each "
        f"value ({level}). A setting is here because of the model of all measurements, not because of one lucky one. "
        "The probability is that of belonging to the true front."
    )
    if findings.gains and findings.gains.is_better and not findings.picked:
        yield f"Compared with your settings, one of the front is {findings.gains}."
    if volume := findings.hypervolume:
        size = words.with_interval(volume.estimate, volume.lower, volume.upper)
        yield f"Hypervolume: {size}. It grows as the front gets better in any objective."


def about_pick(findings: Findings) -> Iterator[str]:
    """Gain of the setting that was picked, and whether it meets the wish."""
    if findings.picked and findings.picked.is_likeliest:
        yield "No setting of the front is likely to meet it: this one comes nearest."
    if findings.gains:
        said = str(findings.gains)
        yield f"{said[0].upper()}{said[1:]}."


def table(findings: Findings) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the settings of the front."""
    units = findings.units()
    names = [f"{name} ({unit.strip()})" if unit else name for name, unit in units.items()]
    rows = [
        [
            str(place),
            *(
                words.with_interval(value, member.lower[name], member.upper[name])
                for name, value in member.values.items()
            ),
            words.percent(member.probability),
            *words.cells(member.params, findings.study.names),
        ]
        for place, member in enumerate(findings.front, 1)
    ]
    return ["setting", *names, "probability", *findings.study.names], rows


def trades(findings: Findings) -> list[list[str]]:
    """Rows of the trade-offs: between which settings, and what one gives up for what."""
    return [
        [
            f"{trade.start + 1} to {trade.end + 1}",
            str(trade) + ("" if trade.is_sure else " (the intervals overlap: not certain)"),
        ]
        for trade in findings.trades
    ]
