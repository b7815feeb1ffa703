"""Search for the best settings of the simulated problems, which normalise their regrets.

    python -m benchmarks.development.simulated_best SAN-1 MM1-1

prints the numbers of `benchmarks.development.simulated.DEFINITIONS`: the best setting found, its value and the mean
value of random settings. The search is the cross-entropy method. It starts from 200 random settings per dimension.
Each of 15 generations then draws 20 settings per dimension from normal distributions, fitted to the best settings of
the previous one: four per dimension. A setting is ranked by the mean of 50 replications, with the same random numbers
for all of a generation. The result is the best of 11 settings by the mean of 500 new replications: the ten best of the
last generation and the centre of its best.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.development.problems import random_params
from benchmarks.development.simulated import DEFINITIONS, REPLICATIONS, TRUTH, Simulation, simulation
from noregret import Int

SEARCH, COMPARISON = 2, 3
"""Streams of random numbers of the search and of its last comparison."""


def main() -> None:
    for name in sys.argv[1:] or DEFINITIONS:
        place = simulation(name)
        best = searched(place)
        value = place.replications(best, TRUTH, 0, REPLICATIONS)
        random = [
            place.replications(tuple(params.values()), TRUTH, 0, 10).mean()
            for params in random_params(place.space, 1000, np.random.default_rng(1))
        ]
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
    for generation in range(16):
        points = ranked(points, SEARCH, 50 * generation, 50)
        elite = points[: max(4, 4 * dimension)]
        if generation < 15:
            spread = 1.1 * elite.std(axis=0) + 1e-4 * (high - low) + 0.4 * is_whole
            points = np.vstack(
                [elite.mean(axis=0), rng.normal(elite.mean(axis=0), spread, (20 * dimension, dimension))]
            )
    finalists = np.vstack([points[:10], elite.mean(axis=0)])
    digits = 6
    return settings(np.round(ranked(finalists, COMPARISON, 0, 500)[:1], digits))[0]


if __name__ == "__main__":
    main()
