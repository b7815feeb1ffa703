"""Problems of SimOpt, a library of simulations: ``pip install simoptlib==1.2.4``.

SimOpt leaves most variables without an upper bound, so every problem has a finite box here:

- SAN-1, mean durations of 13 tasks: from SimOpt's lower bound of 0.01 to 10, the upper end of its random solutions
  (default 8);
- CNTNEWS-1, an order quantity: 0 to 1, five times the median demand;
- SSCONT-1, an inventory's threshold and the difference to its maximum: 0 to 2,000 (default 600 each);
- IRONORECONT-1, prices at which to start and stop production and to sell: 0 to 200, the range of prices;
- MM1-1, a service rate: 0.5 to 10 (default 5; the queue grows without end below 1.5);
- DYNAMNEWS-1, stocks of ten products: whole numbers from 0 to 10, the range of SimOpt's random solutions (default 3).
  A fraction of a product would be sold as a whole one. Each of the 30 customers buys whatever is left, so that the
  profit depends on the sum of the stocks only, is largest at 30, and has no noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.development.tasks import Task
from noregret import Float, Int

TRUTH, MEASUREMENTS, TRIALS = 0, 1, 4
"""Streams of random numbers. All settings share those of the truth, so that their differences have less noise."""
REPLICATIONS = 200
"""Replications of which the mean is the truth of a setting."""
TRIAL_REPLICATIONS = 20
"""Replications for the regret of a trial, with other random numbers for each setting, so that errors average out."""


class Definition(NamedTuple):
    """Problem of SimOpt with its box, and the values that normalise regrets.

    The best setting was found by ``git show 1b0e9b9c:benchmarks/development/simulated_best.py``. Its value is its
    truth, and the random value is the mean measurement of random settings.
    """

    module: str
    problem: str
    space: dict[str, Any]
    best: tuple[float, ...]
    value: float
    random_value: float


class Simulation(Task):
    """Simulated problem: a measurement is one replication with random numbers of its own.

    Regrets are differences to the value of the best setting known, in units of the mean regret of random settings.
    Settings that are better than it have negative regrets.
    """

    def __init__(self, definition: Definition) -> None:
        self.space, self.definition = definition.space, definition
        try:
            from mrg32k3a.mrg32k3a import MRG32k3a
            from simopt.base import Solution

            module = import_module(f"simopt.models.{definition.module}")
        except ImportError as error:
            raise ImportError(
                f"simopt is missing, which has the problem {definition.problem}: pip install simoptlib==1.2.4"
            ) from error
        self._stream, self._solution = MRG32k3a, Solution
        self.problem = getattr(module, definition.problem)()
        self.goal = "maximize" if self.problem.minmax[0] > 0 else "minimize"
        self._truths: dict[tuple[float, ...], float] = {}

    def measured(self, params: dict[str, float], rng: Generator) -> float:
        start = int(rng.integers(2**31))
        return float(self.replications(tuple(params.values()), MEASUREMENTS, start, 1)[0])

    def expected(self, params: dict[str, float]) -> float:
        return self._truth(tuple(params.values()))

    def regret(self, params: dict[str, float]) -> float:
        return self._regret(self.expected(params))

    def trial_regret(self, params: dict[str, float]) -> float:
        setting = tuple(params.values())
        return self._regret(self.replications(setting, TRIALS, hash(setting) % 2**31, TRIAL_REPLICATIONS).mean())

    def _regret(self, value: float) -> float:
        lost = value - self._truth(self.definition.best)
        return float(lost / (self.definition.random_value - self.definition.value))

    def _truth(self, setting: tuple[float, ...]) -> float:
        if setting not in self._truths:
            self._truths[setting] = float(self.replications(setting, TRUTH, 0, REPLICATIONS).mean())
        return self._truths[setting]

    def replications(self, setting: tuple[float, ...], stream: int, start: int, count: int) -> np.ndarray:
        """Values of successive replications on a stream, from the one with the number ``start``."""
        solution = self._solution(setting, self.problem)
        substreams = range(self.problem.model.n_rngs)
        solution.attach_rngs(
            [self._stream(s_ss_sss_index=[stream, number, start]) for number in substreams], copy=False
        )
        self.problem.simulate(solution, count)
        return np.asarray(solution.objectives[:, 0])


DEFINITIONS = {
    "SAN-1": Definition(
        "san",
        "SANLongestPath",
        {f"mean{i}": Float(0.01, 10) for i in range(1, 14)},
        (
            *(1.080549, 2.186318, 2.185444, 1.248081, 2.373953, 1.573996, 1.336129),
            *(1.544721, 1.671128, 1.657068, 1.263906, 1.584923, 1.285586),
        ),
        18.322,
        44.0475,
    ),
    "CNTNEWS-1": Definition("cntnv", "CntNVMaxProfit", {"quantity": Float(0, 1)}, (0.193891,), 0.510139, -0.563709),
    "SSCONT-1": Definition(
        "sscont",
        "SSContMinCost",
        {"threshold": Float(0, 2000), "more": Float(0, 2000)},
        (583.592575, 150.857328),
        519.194,
        1165.58,
    ),
    "IRONORECONT-1": Definition(
        "ironore",
        "IronOreMaxRevCnt",
        {"start": Float(0, 200), "stop": Float(0, 200), "sell": Float(0, 200)},
        (99.996386, 100.003832, 63.128147),
        241078,
        -585635,
    ),
    "MM1-1": Definition("mm1queue", "MM1MinMeanSojournTime", {"rate": Float(0.5, 10)}, (2.806476,), 1.55246, 10.7367),
    "DYNAMNEWS-1": Definition(
        "dynamnews",
        "DynamNewsMaxProfit",
        {f"stock{i}": Int(0, 10) for i in range(1, 11)},
        (0, 0, 0, 0, 0, 0, 0, 10, 10, 10),
        120,
        20.094,
    ),
}


@cache
def simulation(name: str) -> Simulation:
    """The problem of this name."""
    return Simulation(DEFINITIONS[name])


SIMULATED: dict[str, Callable[[], Simulation]] = {name: partial(simulation, name) for name in DEFINITIONS}
