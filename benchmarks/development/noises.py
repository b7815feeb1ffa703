"""Noises: from a true value to a measurement. Random numbers do not depend on the value, so runs are paired."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from numpy.random import Generator

from benchmarks.development.problems import REAL, Problem, problem
from benchmarks.development.tasks import Task

OWN = "own"
"""Noise of the measured and simulated problems."""
STALLS = 0.03


@dataclass(frozen=True)
class Noise:
    """Measurement of a regret in a problem, its mean, which an interval should contain, and which params fail.

    Rare outliers, such as stalls, are not part of the mean.
    """

    measured: Callable[[Problem, float, Generator], float]
    expected: Callable[[Problem, float], float]
    goal: Literal["maximize", "minimize"] = "maximize"
    fails: Callable[[Any, Generator], bool] = lambda params, rng: False


def true_value(problem: Problem, regret: float) -> float:
    return problem.top - regret * (problem.top - problem.mean)


def additive(draw: Callable[[Generator], float]) -> Noise:
    """Noise in units of the 5% to 95% range of the values."""

    def measured(problem: Problem, regret: float, rng: Generator) -> float:
        return true_value(problem, regret) + problem.spread * draw(rng)

    return Noise(measured, true_value)


def flaky(share: float) -> Noise:
    """Weak noise, and a share of the measurements fails."""
    return replace(WEAK, fails=lambda params, rng: rng.random() < share)


def spike(rng: Generator) -> float:
    return 0.05 * rng.standard_normal() + (rng.random() < 0.02) * rng.choice([-20.0, 20.0])


def duration(problem: Problem, regret: float) -> float:
    """A quarter for the best params, 1.25 for random ones."""
    return 0.25 + regret


def timed(problem: Problem, regret: float, rng: Generator) -> float:
    """A duration to minimise: never measured shorter than it is, with rare stalls."""
    slower, stall, stalled = rng.exponential(), rng.exponential(), rng.random() < STALLS
    return duration(problem, regret) * (1 + 0.15 * slower + 10 * stall * stalled)


def lost(problem: Problem, regret: float) -> float:
    """A loss to minimise: 0 for the best params, 50 for random ones."""
    return 50 * max(regret, 0.0)


def lognormal(problem: Problem, regret: float, rng: Generator) -> float:
    """A loss times e^N: the noise vanishes at the optimum."""
    return lost(problem, regret) * math.exp(rng.standard_normal())


def stretched(problem: Problem, regret: float, rng: Generator) -> float:
    """A loss times a log-uniform factor between 0 and a large number, which almost hides it."""
    loss, less, more = lost(problem, regret) + 1e-12, rng.random(), rng.random()
    return loss * less * max(1.0, (1e9 / loss) ** more)


def expected_stretched(problem: Problem, regret: float) -> float:
    loss = lost(problem, regret) + 1e-12
    return loss / 2 * max(1.0, (1e9 / loss - 1) / math.log(1e9 / loss))


WEAK = additive(lambda rng: 0.02 * rng.standard_normal())

NOISES: dict[str, Noise] = {
    "none": additive(lambda rng: 0.0),
    "gaussian-0.02": WEAK,
    "gaussian-0.15": additive(lambda rng: 0.15 * rng.standard_normal()),
    "student-3": additive(lambda rng: 0.1 * rng.standard_t(3)),
    "student-1.5": additive(lambda rng: 0.1 * rng.standard_t(1.5)),
    "spikes": additive(spike),
    "timings": Noise(timed, lambda problem, regret: 1.15 * duration(problem, regret), "minimize"),
    "lognormal": Noise(lognormal, lambda problem, regret: lost(problem, regret) * math.exp(0.5), "minimize"),
    "stretched": Noise(stretched, expected_stretched, "minimize"),
    "failures": flaky(0.3),
    "wall": replace(WEAK, fails=lambda params, rng: next(iter(params.values())) > 0.6),  # of a cube's first parameter
}


class Noisy(Task):
    """Drawn problem under a noise. Regrets are in units of the mean regret of random params."""

    def __init__(self, problem: Problem, noise: Noise) -> None:
        self.space, self.goal, self._problem, self._noise = problem.space, noise.goal, problem, noise

    def measured(self, params: Any, rng: Generator) -> float | None:
        value = self._noise.measured(self._problem, self.regret(params), rng)
        return None if self._noise.fails(params, rng) else value

    def expected(self, params: Any) -> float:
        return self._noise.expected(self._problem, self.regret(params))

    def regret(self, params: Any) -> float:
        return self._problem.regret(params)


def task(name: str, noise: str) -> Task:
    """The problem of this name under this noise."""
    return REAL[name]() if name in REAL else Noisy(problem(name), NOISES[noise])


def noises_of(name: str, noises: list[str]) -> list[str]:
    """The noises that a problem is run with: these, or its own."""
    return [OWN] if name in REAL else noises


def named(beginnings: list[str]) -> list[str]:
    """The noises whose names begin so, in their order: ``student`` is both Student-t noises."""
    unknown = [word for word in beginnings if not any(name.startswith(word) for name in NOISES)]
    if unknown:
        raise ValueError(f"noises must begin like one of {', '.join(NOISES)}, got {', '.join(unknown)}")
    return [name for name in NOISES if name.startswith(tuple(beginnings))]
