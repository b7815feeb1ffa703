"""Search for the best settings of the simulated problems, which normalise their regrets.

    python -m benchmarks.development.simulated_best SAN-1 MM1-1

prints the numbers of `benchmarks.development.simulated.DEFINITIONS`: the best setting found, its value and the mean
measurement of 2,000 random settings. The search is the cross-entropy method. It starts from 200 random settings per
dimension, with 10 replications each. Every generation then draws 12 settings per dimension from normal distributions
that are fitted to the best settings of the previous one, three per dimension. They are ranked by the mean of 25
replications, with the same random numbers for all. The number of generations is five, and two for each dimension. The
result is the best of five settings by the mean of 500 new replications: four of the last generation and the mean of its
best ones.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.development.problems import random_params
from benchmarks.development.simulated import DEFINITIONS, REPLICATIONS, TRUTH, Simulation, simulation
from noregret import Int

SEARCH, COMPARISON = 2, 3
"""Streams of random numbers of the search and of its last comparison, none of those of the problems."""


def main() -> None:
    for name in sys.argv[1:] or DEFINITIONS:
        place = simulation(name)
        best = searched(place)
        value = place.replications(best, TRUTH, 0, REPLICATIONS)
        rng = np.random.default_rng(1)
        random = [place.measured(params, rng) for params in random_params(place.space, 2000, rng)]
        errors = [np.std(sample) / np.sqrt(len(sample)) for sample in (value, random)]
        print(
            f"{name}: best {best}, value {value.mean():.6g} ± {errors[0]:.2g}, "
            f"random value {np.mean(random):.6g} ± {errors[1]:.2g}",
            flush=True,
        )


def searched(place: Simulation) -> tuple[float, ...]:
    rng, dimension = np.random.default_rng(0), len(place.space)
    low, high = np.array([[parameter.low, parameter.high] for parameter in place.space.values()], dtype=float).T
    is_whole = np.array([isinstance(parameter, Int) for parameter in place.space.values()])
    sign = 1 if place.goal == "maximize" else -1

    def settings(points: np.ndarray) -> list[tuple[float, ...]]:
        inside = np.clip(points, low, high)
        return [tuple(setting) for setting in np.where(is_whole, np.rint(inside), inside).tolist()]

    def ranked(points: np.ndarray, stream: int, start: int, count: int) -> np.ndarray:
        values = [place.replications(setting, stream, start, count).mean() for setting in settings(points)]
        return points[np.argsort(-sign * np.array(values))]

    points = np.array([list(p.values()) for p in random_params(place.space, 200 * dimension, rng)])
    points = ranked(points, SEARCH, 0, 10)
    for generation in range(1, 6 + 2 * dimension):
        elite = points[: 3 * dimension + 1]
        centre, spread = elite.mean(axis=0), elite.std(axis=0) + 1e-4 * (high - low) + 0.4 * is_whole
        points = np.vstack([centre, rng.normal(centre, spread, (12 * dimension, dimension))])
        points = ranked(points, SEARCH, 25 * generation, 25)
    finalists = np.vstack([points[:4], points[: 3 * dimension + 1].mean(axis=0)])
    return settings(np.round(ranked(finalists, COMPARISON, 0, 500)[:1], 6))[0]


if __name__ == "__main__":
    main()
