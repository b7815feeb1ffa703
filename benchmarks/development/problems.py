"""The problems of the development suite, in groups, each with the facts that normalise its regrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.development.classic import CLASSIC, Floats, Function, dixon, griewank, levy, styblinski
from benchmarks.development.hills import HILLS, ackley, rastrigin, schwefel, steep_griewank, waves
from benchmarks.development.measured import MEASURED
from benchmarks.development.simulated import SIMULATED
from benchmarks.development.spaces import MIXED, NAMED
from benchmarks.development.tasks import Task
from benchmarks.development.wide import WIDE, chain, ellipsoid
from noregret import Choice, Float, Int

CUBES = {**CLASSIC, **HILLS, **WIDE}
SPACES = {**MIXED, **NAMED}
REAL: dict[str, Callable[[], Task]] = {**MEASURED, **SIMULATED}
"""Problems that bring their own noise."""
GROUPS: dict[str, list[str]] = {
    "classic": list(CLASSIC),
    "hills": list(HILLS),
    "wide": list(WIDE),
    "mixed": list(MIXED),
    "named": list(NAMED),
    "real": list(REAL),
}
ZERO_AT_BEST = (ackley, chain, dixon, ellipsoid, griewank, levy, rastrigin, steep_griewank, waves)
TOP_PER_DIMENSION = dict.fromkeys(ZERO_AT_BEST, 0.0) | {styblinski: 39.16616570377142, schwefel: 418.9828872724339}
"""Known maxima; the others are computed by a search."""


@dataclass(frozen=True)
class Problem:
    """Objective to maximise, its best value, its mean over random params, and its 5% to 95% range there."""

    space: dict[str, Any]
    value: Callable[[dict[str, Any]], float]
    top: float
    mean: float
    spread: float

    def regret(self, params: dict[str, Any]) -> float:
        """Regret, in units of the mean regret of random params."""
        return (self.top - self.value(params)) / (self.top - self.mean)


@cache
def problem(name: str) -> Problem:
    """The drawn problem of this name, one of `CUBES` or `SPACES`."""
    if name in CUBES:
        return on_the_cube(*CUBES[name])
    space, value, top = SPACES[name]()
    values = np.array([value(params) for params in random_params(space, 20_000, np.random.default_rng(0))])
    return Problem(space, value, top, float(values.mean()), _range(values))


def random_params(space: dict[str, Any], count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Params drawn uniformly, on a log scale where the parameter has one."""
    columns = [_random_values(parameter, count, rng) for parameter in space.values()]
    return [dict(zip(space, row, strict=True)) for row in zip(*columns, strict=True)]


def _random_values(parameter: Any, count: int, rng: np.random.Generator) -> list[Any]:
    if isinstance(parameter, Choice):
        return [parameter.options[i] for i in rng.integers(len(parameter.options), size=count)]
    ends = np.array([parameter.low, parameter.high], dtype=float)
    if isinstance(parameter, Int):
        ends += [-0.5, 0.5]
    low, high = np.log(ends) if parameter.log else ends
    numbers = low + (high - low) * rng.random(count)
    numbers = np.exp(numbers) if parameter.log else numbers
    return np.rint(numbers).astype(int).tolist() if isinstance(parameter, Int) else numbers.tolist()


def on_the_cube(function: Function, dimension: int) -> Problem:
    rng = np.random.default_rng(0)
    points = rng.random((40_000, dimension))
    values = np.concatenate([function(part) for part in np.array_split(points, 40)])
    space = {f"x{i}": Float(0, 1) for i in range(dimension)}
    top = TOP_PER_DIMENSION[function] * dimension if function in TOP_PER_DIMENSION else _climbed(function, points, rng)
    return Problem(space, lambda p: _at(function, p), top, float(values.mean()), _range(values))


def _at(function: Function, params: dict[str, float]) -> float:
    return float(function(np.array([list(params.values())]))[0])


def _climbed(function: Function, points: Floats, rng: np.random.Generator) -> float:
    """The maximum, by random steps of shrinking size from the best of many points."""
    best = points
    for radius in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001):
        best = best[np.argsort(-function(best))[:20]]
        near = np.repeat(best, 100, axis=0)
        best = np.vstack([best, np.clip(near + radius * rng.standard_normal(near.shape), 0, 1)])
    return float(function(best).max())


def _range(values: Floats) -> float:
    low, high = np.quantile(values, [0.05, 0.95])
    return float(high - low)
