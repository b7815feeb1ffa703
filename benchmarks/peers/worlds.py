"""The problems and noises on which `benchmarks.peers` compares optimisers. Everything is to be maximised.

Values are divided by the gap between the maximum and the mean over the space, so a regret of 1 is that of a random
point. Noise is in units of the standard deviation of the values over the space.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from noregret import Matern, SquaredExponential, problems
from noregret.gp.posterior import Floats, Rng


@dataclass(frozen=True)
class World:
    """A function of the unit cube (``rows`` None), a table of rows with features, or a table of names."""

    dimension: int
    value: Callable[[Any], float]  # of a point (d,), or of the number of a row
    top: float
    mean: float
    sd: float
    low: float
    spread: float
    rows: Floats | None = None  # (N, d) features
    named: bool = False  # rows are names without features
    draw: Callable[[Any, Rng], float] | None = field(default=None, repr=False)  # a measurement, where noise is given
    goal: Literal["maximize", "minimize"] = "maximize"

    def regret(self, where: Any) -> float:
        """Regret, in units of the gap to the mean."""
        return (self.top - self.value(where)) / (self.top - self.mean)


def measured(world: World, noise: str, where: Any, rng: Rng) -> float:
    """One noisy value; the random numbers do not depend on the point."""
    if world.draw is not None:
        return world.draw(where, rng)
    return NOISES[noise](world, world.value(where), rng)


def _spikes(world: World, value: float, rng: Rng) -> float:
    u, sign, normal = rng.random(), rng.choice([-1.0, 1.0]), rng.standard_normal()
    return value + 0.1 * world.sd * normal + (20 * world.spread * sign if u < 0.02 else 0.0)


def _pareto(world: World, value: float, rng: Rng) -> float:
    """The reward itself is Pareto with shape 2, its mean the value shifted so that the least one is one sd."""
    return (value - world.low + world.sd) / 2 * (1 + rng.pareto(2.0))


NOISES: dict[str, Callable[[World, float, Rng], float]] = {
    "gaussian-0.1": lambda world, value, rng: value + 0.1 * world.sd * rng.standard_normal(),
    "gaussian-0.5": lambda world, value, rng: value + 0.5 * world.sd * rng.standard_normal(),
    "student-3": lambda world, value, rng: value + 0.25 * world.sd * rng.standard_t(3),
    "student-1.5": lambda world, value, rng: value + 0.25 * world.sd * rng.standard_t(1.5),
    "pareto": _pareto,
    "spikes": _spikes,
}


def _cube(function: Callable[[Floats], Floats], dimension: int, top: float | None = None) -> World:
    points = np.random.default_rng(0).random((100_000, dimension))
    values = np.concatenate([function(part) for part in np.array_split(points, 50)])
    highest = _climbed(function, points[np.argsort(-values)[:20]]) if top is None else top
    return World(
        dimension,
        lambda x: float(function(np.asarray(x)[None])[0]),
        highest,
        float(values.mean()),
        float(values.std()),
        float(values.min()),
        float(highest - values.min()),
    )


def _climbed(function: Callable[[Floats], Floats], best: Floats) -> float:
    """The maximum, by random steps of shrinking size from the best of many points."""
    rng = np.random.default_rng(1)
    for radius in 0.3 ** np.arange(1, 11):
        near = np.repeat(best, 100, axis=0)
        tried = np.vstack([best, np.clip(near + radius * rng.standard_normal(near.shape), 0, 1)])
        best = tried[np.argsort(-function(tried))[:20]]
    return float(function(best).max())


def _rkhs(dimension: int, seed: int) -> World:
    """A sum of 30 d kernels with random centres and weights: SE in 1-d, Matern 5/2 beyond, lengthscale 0.2 d^(1/2)."""
    rng = np.random.default_rng([seed, dimension])
    kernel = SquaredExponential(0.2) if dimension == 1 else Matern(2.5, 0.2 * math.sqrt(dimension))
    centres, weights = rng.random((30 * dimension, dimension)), rng.uniform(-1, 1, 30 * dimension)
    return _cube(lambda X: kernel(X, centres) @ weights, dimension)


def _table(problem: problems.Problem, named: bool) -> World:
    means = problem.means
    scatter = (float(means.max()), float(means.mean()), float(means.std()), float(means.min()), float(np.ptp(means)))
    draw = (lambda row, rng: float(problem.rewards(np.array([row]), rng)[0])) if named else None
    return World(problem.arms.shape[1], lambda row: float(means[row]), *scatter, np.asarray(problem.arms), named, draw)


@cache
def world(name: str, seed: int) -> World:
    """A problem by name; only the RKHS draws depend on the seed."""
    if name.startswith("rkhs"):
        return _rkhs(int(name[4:]), seed)
    return FIXED[name]()


FIXED: dict[str, Callable[[], World]] = {
    "branin": lambda: _cube(problems.branin, 2, 1.0473939),
    "hartmann4": lambda: _cube(problems.hartmann4, 4, 3.7298407),
    "hartmann6": lambda: _cube(problems.hartmann6, 6, 3.3223680),
    "rosenbrock": lambda: _cube(problems.rosenbrock, 2, 0.0),
    "cloud": lambda: _table(problems.cloud(), named=False),
    "latency29": lambda: _table(problems.latency(node=29), named=True),
    "latency54": lambda: _table(problems.latency(node=54), named=True),
}
PROBLEMS = (
    "branin",
    "hartmann4",
    "hartmann6",
    "rosenbrock",
    "rkhs1",
    "rkhs2",
    "rkhs3",
    "cloud",
    "latency29",
    "latency54",
)


def noises_of(problem: str, noises: list[str]) -> list[str]:
    """The noises a problem is run with: the latencies have their own, as measured."""
    return ["measured"] if problem.startswith("latency") else noises
