"""Problems whose best setting depends on a context: ``python -m benchmarks.contextual --seeds 5``.

Each trial has a random context and returns a noisy value of its params in that context. Three
ways to use the `Optimizer`: with the context, without it, and one optimizer without a context for each bin, which is an
option of a choice and a quarter of a range. All problems are to be minimised. Printed in Markdown, in units of the
regret of random params: the average regret of the trials, against the best params for each context, and the regret
of the final recommendation, over new random contexts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import markdown
from benchmarks.development.problems import random_params
from noregret import Choice, Float, Int, Optimizer, problems

Params = dict[str, Any]
BINS = 4
LOOKED_AT = 30
"""Number of contexts for the final recommendation."""


@dataclass(frozen=True)
class Place:
    """Regret of params in their context, and noise: Gaussian or Student-t."""

    space: Params
    context: Params
    regret: Callable[[Params, Params], float]
    noise: float
    dof: float = math.inf

    def draw(self, rng: np.random.Generator) -> float:
        return self.noise * float(rng.standard_normal() if math.isinf(self.dof) else rng.standard_t(self.dof))


def moving_hill(p: Params, c: Params) -> float:
    """The best place moves along a curve with the load."""
    return (p["x"] - 0.2 - 0.6 * c["load"]) ** 2 + (p["y"] - 0.5 - 0.4 * math.sin(6 * c["load"])) ** 2


def regions(p: Params, c: Params) -> float:
    """Each region has another best place, and one setting does not depend on it."""
    place = {"eu": 0.2, "us": 0.5, "as": 0.8}[c["region"]]
    return abs(p["x"] - place) + 0.5 * (p["kind"] == "plain") + 0.1 * abs(p["layers"] - 5)


@cache
def highest(y: float) -> float:
    """Maximum of Branin for a fixed second argument."""
    return float(problems.branin(np.column_stack([np.linspace(0, 1, 2001), np.full(2001, y)])).max())


def branin(p: Params, c: Params) -> float:
    """Branin's first argument is chosen, the second is given."""
    return max(0.0, highest(c["y"]) - float(problems.branin(np.array([[p["x"], c["y"]]]))[0]))


def threads(p: Params, c: Params) -> float:
    """A service that needs more threads and larger batches under more load, on every day."""
    return (math.log2(p["threads"]) - 5 * c["load"]) ** 2 / 10 + abs(math.log10(p["batch"]) - 3 * c["load"]) / 3


PLACES = {
    "moving hill": Place({"x": Float(0, 1), "y": Float(0, 1)}, {"load": Float(0, 1)}, moving_hill, 0.05),
    "regions": Place(
        {"x": Float(0, 1), "layers": Int(1, 8), "kind": Choice(["plain", "gated"])},
        {"region": Choice(["eu", "us", "as"])},
        regions,
        0.1,
    ),
    "branin": Place({"x": Float(0, 1)}, {"y": Float(0, 1)}, branin, 0.05),
    "threads, t(2)": Place(
        {"threads": Int(1, 32, log=True), "batch": Float(1, 1000, log=True)},
        {"load": Float(0, 1), "weekday": Int(0, 6)},
        threads,
        0.05,
        2.0,
    ),
    "no matter": Place(
        {"x": Float(0, 1), "y": Float(0, 1)}, {"load": Float(0, 1)}, lambda p, c: moving_hill(p, {"load": 0.3}), 0.05
    ),
}


@dataclass
class Ours:
    """One optimizer that uses the context."""

    place: Place
    seed: int

    def __post_init__(self) -> None:
        self.optimizer = Optimizer(self.place.space, rng=self.seed, context=self.place.context)

    def ask(self, context: Params) -> Any:
        return self.optimizer.ask(context=context)

    def tell(self, trial: Any, value: float, context: Params) -> None:
        self.optimizer.tell(trial, value)

    def best(self, context: Params) -> Params:
        return dict(self.optimizer.best(context).params)


@dataclass
class Binned:
    """One optimizer without a context for each bin of the contexts."""

    place: Place
    seed: int
    bins: int = BINS

    def __post_init__(self) -> None:
        self.optimizers: dict[tuple[Any, ...], Optimizer] = {}

    def _its(self, context: Params) -> Optimizer:
        key = tuple(self._bin(self.place.context[name], value) for name, value in context.items())
        if key not in self.optimizers:
            self.optimizers[key] = Optimizer(self.place.space, rng=100 * self.seed + len(self.optimizers))
        return self.optimizers[key]

    def _bin(self, parameter: Any, value: Any) -> Any:
        if self.bins == 1:
            return 0
        if isinstance(parameter, Choice):
            return value
        return min(int(self.bins * (value - parameter.low) / (parameter.high - parameter.low)), self.bins - 1)

    def ask(self, context: Params) -> Any:
        return self._its(context).ask()

    def tell(self, trial: Any, value: float, context: Params) -> None:
        self._its(context).tell(trial, value)

    def best(self, context: Params) -> Params:
        optimizer = self._its(context)
        return dict(optimizer.best().params if optimizer.measurements else optimizer.ask().params)


WAYS: dict[str, Callable[[Place, int], Any]] = {
    "with the context": Ours,
    "one per bin": Binned,
    "ignoring it": lambda place, seed: Binned(place, seed, bins=1),
}


@cache
def scale(name: str) -> float:
    """The mean regret of random params in random contexts."""
    place, rng = PLACES[name], np.random.default_rng(0)
    pairs = zip(random_params(place.space, 2000, rng), random_params(place.context, 2000, rng), strict=True)
    return float(np.mean([place.regret(p, c) for p, c in pairs]))


def played(name: str, way: str, seed: int, rounds: int) -> tuple[float, float]:
    """Average regret of the trials and of the final recommendation."""
    place, rng = PLACES[name], np.random.default_rng([seed, 1])
    player, regrets = WAYS[way](place, seed), []
    for context in random_params(place.context, rounds, np.random.default_rng([seed, 2])):
        trial = player.ask(context)
        regrets.append(place.regret(trial.params, context))
        player.tell(trial, regrets[-1] + place.draw(rng), context)
    later = random_params(place.context, LOOKED_AT, np.random.default_rng([seed, 3]))
    final = [place.regret(player.best(context), context) for context in later]
    return float(np.mean(regrets)) / scale(name), float(np.mean(final)) / scale(name)


def table(seeds: int, rounds: int, names: Iterable[str]) -> str:
    rows = []
    for name in names:
        means = [np.mean([played(name, way, seed, rounds) for seed in range(seeds)], axis=0) for way in WAYS]
        rows.append([name, *(f"{asked:.2f} · {recommended:.3f}" for asked, recommended in means)])
    return markdown.table(["regret asked · recommended", *WAYS], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--problems", nargs="+", default=list(PLACES), choices=list(PLACES))
    args = parser.parse_args()
    with threadpool_limits(1):
        print(table(args.seeds, args.rounds, args.problems))


if __name__ == "__main__":
    main()
