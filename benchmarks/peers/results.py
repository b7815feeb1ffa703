"""Stored results: for each optimiser, problem, noise and budget the means over seeds, in one CSV file."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

Line = dict[str, Any]
"""Results of one run at one budget."""
Row = dict[str, Any]
"""The mean of such lines over seeds, with the half-width of its 95% interval, and the number of runs."""
KEPT = Path(__file__).parents[1] / "results" / "peers.csv"
MEASURES = ("recommended", "cumulative", "seconds")
NAMES = ("peer", "problem", "noise", "budget")
COLUMNS = (*NAMES, "on", "runs", *(name for measure in MEASURES for name in (measure, f"{measure}_half")))


def summarised(lines: Iterable[Line], on: str) -> list[Row]:
    """One row for all seeds of a cell, with the day of the runs; regrets under 0.0005 count as none."""
    cells: dict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for line in lines:
        cells[_cell(line)].append(line)
    return [dict(zip(NAMES, cell, strict=True)) | {"on": on} | _means(group) for cell, group in cells.items()]


def _means(lines: list[Line]) -> Row:
    found: Row = {"runs": len(lines)}
    for measure in MEASURES:
        values = np.array([line[measure] for line in lines])
        found[measure] = round(float(values.mean()), 3)
        found[f"{measure}_half"] = round(_half_width(values), 3) if len(values) > 1 else math.nan
    return found


def _half_width(values: Any) -> float:
    return float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))


def replaced(rows: Iterable[Row], newer: Iterable[Row]) -> list[Row]:
    """All rows, sorted; if both have a cell, the newer one with at least as many runs is used."""
    found = {_cell(row): row for row in rows}
    for row in newer:
        if row["runs"] >= found.get(_cell(row), row)["runs"]:
            found[_cell(row)] = row
    return [found[cell] for cell in sorted(found)]


def _cell(line: Line | Row) -> tuple[Any, ...]:
    return tuple(line[name] for name in NAMES)


def read(path: Path = KEPT) -> list[Row]:
    """The rows of the file; empty without a file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [_typed(row) for row in csv.DictReader(file)]


def _typed(row: dict[str, str]) -> Row:
    texts = {name: row[name] for name in (*NAMES, "on")}
    numbers = {name: float(row[name] or "nan") for name in COLUMNS if name not in (*texts, "runs")}
    return texts | numbers | {"budget": int(row["budget"]), "runs": int(row["runs"])}


def write(rows: Iterable[Row], path: Path = KEPT) -> None:
    """Write the file; an interval that one run cannot give is left empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: "" if value != value else value for name, value in row.items()} for row in rows)
