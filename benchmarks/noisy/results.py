"""The runs that are kept, in one CSV file: a row for each reading, with gaps to four digits."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from benchmarks.noisy.functions import NoisyFunction
from benchmarks.noisy.ranks import Line
from benchmarks.noisy.running import Cell, Note

Runs = dict[Cell, list[Note]]
KEPT = Path(__file__).parents[1] / "results" / "noisy.csv"


def read(path: Path = KEPT) -> Runs:
    """The notes of every run of the file; none where there is no file."""
    runs: Runs = defaultdict(list)
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                cell = Cell(row["optimiser"], *(int(row[name]) for name in Cell._fields[1:]))
                runs[cell].append(Note(int(row["evaluations"]), *(float(row[name]) for name in Note._fields[1:])))
    return dict(runs)


def write(runs: Runs, path: Path = KEPT) -> None:
    """Write the file, sorted, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Cell._fields, *Note._fields])
        for cell, notes in sorted(runs.items()):
            writer.writerows([*cell, note.evaluations, *(f"{number:.4g}" for number in note[1:])] for note in notes)
    unfinished.rename(path)


def lines(runs: Runs) -> list[Line]:
    """Every reading with what it is a reading of."""
    return [_facts(cell) | note._asdict() for cell, notes in runs.items() for note in notes]


def _facts(cell: Cell) -> Line:
    function = NoisyFunction(cell.number, cell.dimension, cell.instance)
    return cell._asdict() | {"kind": function.kind, "severe": function.severe}
