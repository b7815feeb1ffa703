"""The functions f101 to f130 of bbob-noisy on the unit cube: exact true values, noise from a separate generator.

The suite's own noise comes from a generator that the whole process shares and that restarts with every suite
object. So the noise is drawn here, by the suite's formulas, and the true values come from the suite: under its Cauchy
noise an evaluation is f + 1000 alpha + 1.01e-8 exactly, unless it is one of the few that are disturbed, so the first
value that comes twice gives f. The three functions of a family, one for each kind of noise, have the same f.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Kind = Literal["gauss", "uniform", "cauchy"]
KINDS: tuple[Kind, ...] = ("gauss", "uniform", "cauchy")
FUNCTIONS = range(101, 131)
FIRST_SEVERE = 107
SMALLEST = 1.01e-8
"""Constant that the suite adds to every noisy value."""
FAMILIES = {
    101: "sphere",
    104: "Rosenbrock",
    107: "sphere",
    110: "Rosenbrock",
    113: "step ellipsoid",
    116: "ellipsoid",
    119: "different powers",
    122: "Schaffer F7",
    125: "Griewank-Rosenbrock",
    128: "Gallagher",
}
"""Names by the first of the three functions that differ only in the kind of noise."""


@dataclass(frozen=True)
class NoisyFunction:
    """One function of the suite, to be minimised over the unit cube, which stands for [-5, 5]^d."""

    number: int
    dimension: int
    instance: int
    rows = None
    named = False
    goal = "minimize"

    @property
    def kind(self) -> Kind:
        return KINDS[(self.number - 101) % 3]

    @property
    def family(self) -> str:
        return FAMILIES[self.number - (self.number - 101) % 3]

    @property
    def severe(self) -> bool:
        return self.number >= FIRST_SEVERE

    def gap(self, point: NDArray[np.float64]) -> float:
        """The true value of a point of the unit cube less the least one."""
        return max(self._true(10 * np.clip(point, 0, 1) - 5) - self.least, 0.0)

    def measured(self, gap: float, rng: Generator) -> float:
        """A noisy value; random numbers do not depend on the gap, so all optimisers get the same noise."""
        return self.least + NOISES[self.kind](gap, self.dimension, self.severe, rng) + SMALLEST

    @cached_property
    def least(self) -> float:
        """The least true value. The suite gives it two decimals, and its location only in a file."""
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            self._undisturbed._best_parameter("print")
            (name,) = os.listdir()
            return round(self._true(np.loadtxt(name)), 2)

    @cached_property
    def _undisturbed(self) -> Any:
        """The function of the same family that has Cauchy noise."""
        import cocoex

        number = self.number - (self.number - 101) % 3 + 2
        suite = cocoex.Suite("bbob-noisy", "", f"instance_indices:{self.instance} dimensions:{self.dimension}")
        return suite.get_problem_by_function_dimension_instance(number, self.dimension, self.instance)

    def _true(self, x: NDArray[np.float64]) -> float:
        seen: set[float] = set()
        while (value := float(self._undisturbed(x))) not in seen:
            seen.add(value)
        return value - 1000 * _cauchy_size(self.severe) - SMALLEST


def gauss(gap: float, dimension: int, severe: bool, rng: Generator) -> float:
    """Noise gap e^(beta N), beta 0.01 or 1: it vanishes at the optimum."""
    return float(gap * np.exp((1.0 if severe else 0.01) * rng.standard_normal()))


def uniform(gap: float, dimension: int, severe: bool, rng: Generator) -> float:
    """Noise gap U^beta max(1, (1e9 / gap)^(alpha U')), alpha = 0.49 + 1 / d and beta = 1, or a hundredth of both."""
    first, second = rng.random(2)
    strength = 1.0 if severe else 0.01
    growth = (1e9 / (gap + 1e-99)) ** (strength * (0.49 + 1 / dimension) * second)
    return float(gap * first**strength * max(1.0, growth))


def cauchy(gap: float, dimension: int, severe: bool, rng: Generator) -> float:
    """Noise gap + alpha max(0, 1000 + 1{U < p} N / |N'|), alpha = 0.01 and p = 0.05, or 1 and 0.2."""
    disturbed, above, below = rng.random() < (0.2 if severe else 0.05), *rng.standard_normal(2)
    return float(gap + _cauchy_size(severe) * max(0.0, 1000 + disturbed * above / abs(below)))


def _cauchy_size(severe: bool) -> float:
    return 1.0 if severe else 0.01


NOISES: dict[Kind, Callable[[float, int, bool, Generator], float]] = {
    "gauss": gauss,
    "uniform": uniform,
    "cauchy": cauchy,
}
