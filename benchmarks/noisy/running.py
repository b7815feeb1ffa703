"""One run of one optimiser on one function, and the small file that keeps it."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.noisy.functions import NoisyFunction
from benchmarks.noisy.optimisers import ON_A_PART, PART, Optimiser, Point, optimiser

PER_DIMENSION = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Evaluations per dimension at which a run is read."""


class Cell(NamedTuple):
    """Which run."""

    optimiser: str
    number: int
    dimension: int
    instance: int

    @property
    def file(self) -> str:
        return f"{self.optimiser}.f{self.number}.d{self.dimension}.i{self.instance}.json"

    def readings(self, longest: int) -> list[int]:
        """Evaluations per dimension at which it is read, up to the longest; none where it is left out."""
        if self.optimiser in ON_A_PART:
            longest = min(longest, PART.get(self.dimension, 0))
        return [reading for reading in PER_DIMENSION if reading <= longest]


class Spent(Exception):
    """All evaluations have been made."""


@dataclass
class Recorder:
    """Measures points for an optimiser, and notes at some numbers of evaluations what it has come to."""

    function: NoisyFunction
    optimiser: Optimiser
    readings: list[int]
    rng: np.random.Generator
    evaluations: int = 0
    best_evaluated: float = math.inf
    seconds: float = 0.0
    notes: list[dict[str, float]] = field(default_factory=list)
    since: float = field(default_factory=time.process_time)

    def __call__(self, point: Point) -> float:
        """The noisy value. What was told before this call counts for the note of the evaluation before it."""
        self.seconds += time.process_time() - self.since
        if self.evaluations in self.readings:
            self._note()
        if self.evaluations == self.readings[-1]:
            raise Spent
        gap = self.function.gap(np.asarray(point))
        self.evaluations += 1
        self.best_evaluated = min(self.best_evaluated, gap)
        value = self.function.measured(gap, self.rng)
        self.since = time.process_time()
        return value

    def _note(self) -> None:
        recommended = self.function.gap(self.optimiser.recommended())
        note = {"evaluations": self.evaluations, "recommended": recommended, "evaluated": self.best_evaluated}
        self.notes.append(note | {"seconds": self.seconds})


def play(cell: Cell, longest: int) -> list[dict[str, float]]:
    """The notes of one run."""
    function = NoisyFunction(cell.number, cell.dimension, cell.instance)
    chosen = optimiser(cell.optimiser, function, cell.instance)
    rng = np.random.default_rng([cell.number, cell.dimension, cell.instance])
    readings = [cell.dimension * reading for reading in cell.readings(longest)]
    recorder = Recorder(function, chosen, readings, rng)
    try:
        chosen.optimise(recorder)
    except Spent:
        return recorder.notes
    raise RuntimeError(f"{cell.optimiser} stopped after {recorder.evaluations} evaluations of {readings[-1]}")


def keep(folder: Path, cell: Cell, longest: int) -> None:
    """Play a run and write it to its file, whole or not at all."""
    record = cell._asdict() | {"longest": longest, "notes": play(cell, longest)}
    unfinished = (folder / cell.file).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(record), encoding="utf-8")
    unfinished.rename(folder / cell.file)


def is_kept(folder: Path, cell: Cell, longest: int) -> bool:
    """Whether this run is there, at least as long."""
    file = folder / cell.file
    return file.exists() and json.loads(file.read_text(encoding="utf-8"))["longest"] >= longest


def read(folder: Path) -> list[dict[str, Any]]:
    """Every reading of every run that is there, with what it is a reading of."""
    records = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]
    return [_facts(record) | note for record in records for note in record["notes"]]


def _facts(record: dict[str, Any]) -> dict[str, Any]:
    function = NoisyFunction(record["number"], record["dimension"], record["instance"])
    names = ("optimiser", "number", "dimension", "instance")
    return {name: record[name] for name in names} | {"kind": function.kind, "severe": function.severe}
