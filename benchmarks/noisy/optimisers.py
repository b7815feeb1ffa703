"""The optimisers that are run on the suite, each as a loop that calls ``measure`` until that raises, and recommends."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.noisy.functions import NoisyFunction
from benchmarks.peers.adapters import PEERS, Peer

Point = NDArray[np.float64]
Measure = Callable[[Point], float]


class Optimiser(Protocol):
    """An optimiser that minimises over the unit cube."""

    def optimise(self, measure: Measure) -> None:
        """Measure points without end."""
        ...

    def recommended(self) -> Point:
        """The recommended point after the measurements so far."""
        ...


class AskTell:
    """An optimiser that is asked for one point at a time."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def optimise(self, measure: Measure) -> None:
        while True:
            point = self.peer.ask()
            self.peer.tell(point, measure(point))

    def recommended(self) -> Point:
        return np.asarray(self.peer.best())


class CMA:
    """CMA-ES, with its noise handling (Hansen et al. 2009) as documented. It recommends its mean.

    It starts at a random point with a step of a fifth of the box, as in published runs on the suite, and again from
    another point when it stops, with twice the population.
    """

    def __init__(self, function: NoisyFunction, seed: int) -> None:
        import cma

        self.cma, self.dimension, self.seed = cma, function.dimension, seed
        self.rng = np.random.default_rng([seed, 5])
        self.favourite = self._start()

    def optimise(self, measure: Measure) -> None:
        warnings.simplefilter("ignore")
        population = 4 + int(3 * np.log(self.dimension))
        while True:
            options = {"bounds": [0, 1], "seed": self.seed + 1, "popsize": population, "verbose": -9}
            strategy = self.cma.CMAEvolutionStrategy(self.favourite, 0.2, options)
            noise = self.cma.NoiseHandler(self.dimension, maxevals=[1, 1, 30])
            while not strategy.stop():
                points, values = strategy.ask_and_eval(measure, evaluations=noise.evaluations)
                strategy.tell(points, values)
                strategy.sigma *= noise(points, values, measure, strategy.ask)
                self.favourite = np.clip(strategy.result.xfavorite, 0, 1)
            population, self.favourite = 2 * population, self._start()

    def recommended(self) -> Point:
        return self.favourite

    def _start(self) -> Point:
        return 0.1 + 0.8 * self.rng.random(self.dimension)


def optimiser(name: str, function: NoisyFunction, seed: int) -> Optimiser:
    """One of `OPTIMISERS`."""
    if name == "cma-es":
        return CMA(function, seed)
    return AskTell(PEERS[name](function, seed))


ON_ALL = ("noregret", "cma-es", "optuna-tpe", "random")
ON_A_PART = ("botorch-lognei", "botorch-ucb", "optuna-gp")
OPTIMISERS = (*ON_ALL, *ON_A_PART)
PART = {2: 50, 5: 10}
"""Evaluations per dimension up to which the slow ones are run, by dimension; other dimensions are left out."""
