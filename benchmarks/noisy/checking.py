"""Checks that the true values and the noise of `functions` are those of the suite itself, number for number."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.noisy.functions import FUNCTIONS, NoisyFunction

SAME_IN_BBOB = {"sphere": 1, "Rosenbrock": 8, "step ellipsoid": 7, "different powers": 14, "Schaffer F7": 17}
SAME_IN_BBOB |= {"Gallagher": 21}
"""The function of the noise-free suite that is the same; the other two have other constants there."""


class SuiteDraws:
    """The random numbers of the suite's noise since the last suite object was created.

    Every number is the first of a Lehmer generator whose seed is one more than that of the last one. That is a poor
    generator: the first 40,000 uniform numbers have mean 0.485. It serves only to compare values.
    """

    def __init__(self) -> None:
        self.uniform_seed = self.normal_seed = 30

    def random(self, size: int | None = None) -> float | list[float]:
        if size is not None:
            return [self.random() for _ in range(size)]
        self.uniform_seed += 1
        return lehmer(self.uniform_seed, 1)[0]

    def standard_normal(self, size: int | None = None) -> float | list[float]:
        if size is not None:
            return [self.standard_normal() for _ in range(size)]
        self.normal_seed += 1
        first, second = lehmer(self.normal_seed, 2)
        return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)


def lehmer(seed: int, count: int) -> list[float]:
    """Numbers in (0, 1) from the minimal standard generator with a shuffle of 32 (Park, Miller; Bays, Durham)."""
    states = [seed]
    for _ in range(40 + count):
        states.append(16807 * states[-1] % 2147483647)
    shuffled, drawn, last = states[40:8:-1], [], states[40]
    for state in states[41:]:
        place = last // 67108865
        last, shuffled[place] = shuffled[place], state
        drawn.append(last / 2147483647)
    return drawn


def check(dimension: int, instance: int, points: int = 20) -> Iterator[str]:
    """A line per function: the largest relative differences from bbob's true values and from the suite's noisy ones."""
    for number in FUNCTIONS:
        function = NoisyFunction(number, dimension, instance)
        places = np.random.default_rng(number).random((points, dimension))
        off = f"{_off_bbob(function, places)}, noisy ones off by {_off_the_suite(function, places):.0e}"
        yield f"f{number} {function.family}, {function.kind}: {off}"


def _off_bbob(function: NoisyFunction, places: np.ndarray) -> str:
    if function.family not in SAME_IN_BBOB:
        return "not in bbob"
    number = SAME_IN_BBOB[function.family]
    ours = [function.least + function.gap(place) for place in places]
    return f"true values off bbob's f{number} by {_off(ours, _values('bbob', number, function, places)):.0e}"


def _off_the_suite(function: NoisyFunction, places: np.ndarray) -> float:
    gaps, draws = [function.gap(place) for place in places], SuiteDraws()
    ours = [function.measured(gap, draws) for gap in gaps]
    return _off(ours, _values("bbob-noisy", function.number, function, places))


def _values(name: str, number: int, function: NoisyFunction, places: np.ndarray) -> list[float]:
    """Values of a new suite object, which restarts its random numbers, at these points of the unit cube."""
    import cocoex

    suite = cocoex.Suite(name, "", f"instance_indices:{function.instance} dimensions:{function.dimension}")
    problem = suite.get_problem_by_function_dimension_instance(number, function.dimension, function.instance)
    return [problem(10 * place - 5) for place in places]


def _off(ours: list[float], theirs: list[float]) -> float:
    return float(np.max(np.abs(np.subtract(ours, theirs)) / (1 + np.abs(theirs))))
