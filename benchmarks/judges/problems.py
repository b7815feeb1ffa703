"""Problems of three libraries, each with a starting setting, one measurement at a time, and the truth.

Problems that `benchmarks.development` uses are marked: the defaults of `Optimizer` were chosen with a look at them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.development import measured, simulated
from benchmarks.development.measured import MeasuredTable
from benchmarks.development.simulated import Definition, Simulation
from benchmarks.development.tasks import Task
from noregret import Choice, Float, Int

DATA = Path(__file__).resolve().parent / "data"
TIMINGS = 7
"""Timings of which Kernel Tuner takes the mean for one evaluation (``iterations``), its default."""
POST_REPLICATIONS = 200
"""Replications of which the mean is the truth of a recommended setting; the same random numbers for all settings."""
CHECK_REPLICATIONS = 1000
"""Replications of the truth that an interval should contain: its own error must be small beside the interval."""
CHECK = 5
"""Stream of random numbers of those replications; `simulated` uses 0 to 4."""

Params = dict[str, Any]


class Judged(NamedTuple):
    """Problem of one of the groups.

    ``used``: whether it was used in development. ``is_smooth``: whether all parameters are floats, as SimOpt's
    ASTRODF and Nelder-Mead require.
    """

    group: str
    name: str
    used: bool
    make: Callable[[], Task]
    is_smooth: bool = False


def start(task: Task, seed: int) -> Params:
    """SimOpt's initial solution; a random setting that runs for a table, which has none."""
    if isinstance(task, Simulation):
        return dict(zip(task.space, task.problem.factors["initial_solution"], strict=True))
    assert isinstance(task, MeasuredTable)
    running = np.flatnonzero(np.isfinite(task.means))
    number = int(np.random.default_rng([seed, 11]).choice(running))
    return dict(zip(task.space[0] if isinstance(task.space, list) else task.space, task.rows[number], strict=True))


def truth(task: Task, params: Params) -> float:
    """Value by which a recommendation is judged."""
    if isinstance(task, Simulation):
        return _replicated(task, tuple(params.values()), simulated.TRUTH, POST_REPLICATIONS)
    return task.expected(params)


def checked(task: Task, params: Params) -> float:
    """Value that an interval should contain."""
    if isinstance(task, Simulation):
        return _replicated(task, tuple(params.values()), CHECK, CHECK_REPLICATIONS)
    return task.expected(params)


@cache
def _replicated(task: Simulation, setting: tuple[float, ...], stream: int, count: int) -> float:
    return float(task.replications(setting, stream, 0, count).mean())


class Kernel(MeasuredTable):
    """Timings of a GPU kernel; a measurement is the mean of `TIMINGS` of them, and None if the setting does not run."""

    def __init__(self, name: str) -> None:
        folder = measured.DATA if name.startswith("convolution") else DATA
        settings, times = measured.timings(folder / f"gpu_{name}.csv.gz")
        super().__init__(settings, times, "minimize")
        self.means = np.where(np.isnan(self.means), math.inf, self.means)
        self.best, self.rows = float(self.means.min()), [tuple(setting.values()) for setting in settings]

    def measured(self, params: Params, rng: Generator) -> float | None:
        times = self.measurements[self._number(params)]
        value = float(times[rng.integers(len(times), size=TIMINGS)].mean())
        return None if math.isnan(value) else value


class Training(MeasuredTable):
    """Neural networks trained several times under every setting; a measurement is the result of one training.

    Numbers are on grids, and the parameter is the place on the grid.
    """

    def __init__(self, suite: str, dataset: str) -> None:
        grids, table = measured.hpo_table(suite, dataset)
        is_name = [isinstance(grid[0], str) for grid in grids.values()]
        self.rows = [
            tuple(
                grid[int(d)] if named else int(d) for d, grid, named in zip(key, grids.values(), is_name, strict=True)
            )
            for key in table
        ]
        metric = "val_loss" if suite == "HPOLib" else "val_acc"
        trainings = [runs[metric] for runs in table.values()]
        most = math.lcm(*{len(runs) for runs in trainings})  # of NASBench201 some were trained once or twice
        values = np.array([runs * (most // len(runs)) for runs in trainings])
        super().__init__(
            [dict(zip(grids, row, strict=True)) for row in self.rows],
            values,
            "minimize" if metric == "val_loss" else "maximize",
        )
        self.space = {
            name: Choice(grid) if named else Int(0, len(grid) - 1)
            for (name, grid), named in zip(grids.items(), is_name, strict=True)
        }


_simulated = {
    "AMBULANCE-1": ("ambulance", "AmbulanceMinAvgResponse", {f"base{i}": Float(0, 20) for i in range(1, 5)}),
    "PARAMESTI-1": ("paramesti", "ParamEstiMaxLogLik", {"x1": Float(0.1, 10), "x2": Float(0.1, 10)}),
    "FIXEDSAN-1": ("fixedsan", "FixedSANLongestPath", {f"mean{i}": Float(0.01, 20) for i in range(1, 14)}),
    "DUALSOURCING-1": ("dualsourcing", "DualSourcingMinCost", {"express": Int(0, 200), "regular": Int(0, 200)}),
    "IRONORE-1": (
        "ironore",
        "IronOreMaxRev",
        {"start": Float(0, 200), "stock": Int(0, 10_000), "stop": Float(0, 200), "sell": Float(0, 200)},
    ),
}
"""SimOpt's bounds where it has some. FIXEDSAN-1: to twice the initial solution; DUALSOURCING-1: to more than twice;
IRONORE-1: the range of prices, and the upper end of SimOpt's random stocks."""


@cache
def _simulation(name: str) -> Simulation:
    return Simulation(Definition(*_simulated[name], (), math.nan, math.nan))


def _is_smooth(space: dict[str, Any]) -> bool:
    return all(isinstance(parameter, Float) for parameter in space.values())


_simopt = [
    Judged("simopt", name, False, partial(_simulation, name), _is_smooth(space))
    for name, (_, _, space) in _simulated.items()
]
_simopt += [
    Judged("simopt", name, True, partial(simulated.simulation, name), _is_smooth(definition.space))
    for name, definition in simulated.DEFINITIONS.items()
]
_kernels = [
    Judged("kernels", name, used, cache(partial(Kernel, name)))
    for name, used in {
        "pnpoly_2080ti": False,
        "dedispersion_w7800": False,
        "pnpoly_3090": False,
        "gemm_3090": False,
        "dedispersion_a4000": False,
        "convolution_a4000": True,
        "convolution_mi250x": True,
        "convolution_a100": True,
    }.items()
]
_training = [
    Judged("training", name, used, cache(partial(Training, suite, name)))
    for suite, name, used in (
        ("HPOBench", "segment", False),
        ("HPOLib", "slice_localization", False),
        ("NASBench201", "cifar100", False),
        ("HPOBench", "phoneme", False),
        ("HPOLib", "protein_structure", False),
        ("NASBench201", "imagenet", False),
        ("HPOBench", "australian", False),
        ("HPOLib", "naval_propulsion", False),
        ("NASBench201", "cifar10", False),
        ("HPOBench", "credit_g", False),
        ("HPOLib", "parkinsons_telemonitoring", False),
        ("HPOBench", "car", True),
        ("HPOBench", "vehicle", True),
        ("HPOBench", "blood_transfusion", True),
        ("HPOBench", "kc1", True),
    )
]
PROBLEMS: list[Judged] = sorted([*_kernels, *_training, *_simopt], key=lambda problem: problem.used)
"""In the order in which they are run with each seed: the fast ones first, those of development last."""
BUDGETS = {"simopt": (200, 1000), "kernels": (50, 200), "training": (50, 200)}
"""Replications or evaluations in all, by group."""
