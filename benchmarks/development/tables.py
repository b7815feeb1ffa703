"""Tables of readings in Markdown, and of paired differences between two source trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks import markdown
from benchmarks.development.playing import Reading, Run

Readings = dict[Run, list[Reading]]
STUCK = 0.05
"""A run that ends with a larger regret is stuck."""
MEASURES: dict[str, Callable[[Reading], float]] = {
    "recommended": lambda reading: reading.recommended,
    "on the way": lambda reading: reading.on_the_way,
    "stuck": lambda reading: reading.recommended > STUCK,
    "held": lambda reading: reading.held,
    "seconds": lambda reading: reading.seconds,
}


def table(
    this: Readings,
    other: Readings | None,
    part: Callable[[Run], str],
    head: str,
    names: Sequence[str] = tuple(MEASURES),
) -> str:
    """A row per part of the runs and budget, and one of all: means of the measures, or this tree against the other."""
    cells = [f"{name}: this, other, difference" if other else name for name in names]
    rows = []
    parts = list(dict.fromkeys(map(part, this)))
    budgets = [reading.evaluations for reading in next(iter(this.values()))]
    for number, budget in enumerate(budgets):
        for name in [*parts, "all"] if len(parts) > 1 else parts:
            runs = [run for run in this if name in (part(run), "all")]
            row = [_cell(this, other, runs, number, measure) for measure in map(MEASURES.get, names)]
            rows.append([name, str(budget), str(len(runs)), *row])
    return markdown.table([head, "evaluations", "runs", *cells], rows)


def _cell(
    this: Readings, other: Readings | None, runs: list[Run], number: int, measure: Callable[[Reading], float]
) -> str:
    ours = np.array([measure(this[run][number]) for run in runs], dtype=float)
    if other is None:
        return f"{ours.mean():.3f} ± {_error(ours):.3f}"
    theirs = np.array([measure(other[run][number]) for run in runs], dtype=float)
    difference = ours - theirs
    return f"{ours.mean():.3f}, {theirs.mean():.3f}, {difference.mean():+.3f} ± {_error(difference):.3f}"


def _error(values: np.ndarray) -> float:
    """The standard error of the mean of runs, nan for a single one."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
