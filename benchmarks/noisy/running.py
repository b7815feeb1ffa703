"""One run of one optimiser on one function, and the readings on its way."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from benchmarks.noisy.functions import NoisyFunction
from benchmarks.noisy.optimisers import ON_A_PART, PART, Optimiser, Point, optimiser

PER_DIMENSION = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Evaluations per dimension at which a run is read."""


class Cell(NamedTuple):
    """Key of a run."""

    optimiser: str
    number: int
    dimension: int
    instance: int

    def __str__(self) -> str:
        return f"{self.optimiser} on f{self.number}, d = {self.dimension}, instance {self.instance}"

    def readings(self, longest: int) -> list[int]:
        """Evaluations per dimension at which it is read, up to the longest; empty if it is left out."""
        if self.optimiser in ON_A_PART:
            longest = min(longest, PART.get(self.dimension, 0))
        return [reading for reading in PER_DIMENSION if reading <= longest]


class Note(NamedTuple):
    """State of a run: the gaps of the recommended and of the best measured point, and CPU seconds so far."""

    evaluations: int
    recommended: float
    evaluated: float
    seconds: float


class Spent(Exception):
    """All evaluations have been made."""


@dataclass
class Recorder:
    """Measures points for an optimiser, and records its state at some numbers of evaluations."""

    function: NoisyFunction
    optimiser: Optimiser
    readings: list[int]
    rng: np.random.Generator
    evaluations: int = 0
    best_evaluated: float = math.inf
    seconds: float = 0.0
    notes: list[Note] = field(default_factory=list)
    since: float = field(default_factory=time.process_time)

    def __call__(self, point: Point) -> float:
        """The noisy value. The state before this call belongs to the evaluation before it."""
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
        self.notes.append(Note(self.evaluations, recommended, self.best_evaluated, self.seconds))


def play(cell: Cell, longest: int) -> list[Note]:
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
