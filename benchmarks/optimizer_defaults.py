"""The development suite on which the defaults of `Optimizer` were chosen: ``python -m benchmarks.optimizer_defaults``.

It shares no function with `benchmarks.peers`. Every variant is a `Calibration`; add one to `VARIANTS` and run

    python -m benchmarks.optimizer_defaults default least-squares --functions camel levy5 --noises spikes

Regrets are in units of a random point's. The same noise meets every variant.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  after the threads are set

from noregret import UCB, Constant, ExpectedImprovement, Float, Optimizer  # noqa: E402
from noregret.belief.posterior import Floats, Rng  # noqa: E402
from noregret.optimizer.calibration import Calibration  # noqa: E402
from noregret.optimizer.fit import FitMatern  # noqa: E402
from noregret.optimizer.improvement import SaturatedImprovement  # noqa: E402
from noregret.optimizer.scaling import RobustScale  # noqa: E402
from noregret.optimizer.weights import Equal, StudentT  # noqa: E402
from noregret.optimizer.widths import FittedWidth  # noqa: E402

VARIANTS = {
    "default": Calibration(),
    "least-squares": Calibration(weighings=(Equal(),)),
    "always-student": Calibration(weighings=(StudentT(4.0),)),
    "ucb-1": Calibration(rule=UCB(Constant(1.0))),
    "ucb-2": Calibration(rule=UCB(Constant(2.0))),
    "fitted-width": Calibration(rule=UCB(FittedWidth(0.15))),
    "improvement": Calibration(rule=ExpectedImprovement()),
    "saturated-5": Calibration(rule=SaturatedImprovement(early=0.0)),
    "long-lengthscales": Calibration(fit=FitMatern(lengthscale=0.5, lengthscale_spread=0.8)),
    "no-bend": Calibration(scale=RobustScale(math.inf)),
    "initial-3": Calibration(initial=3),
    "initial-5": Calibration(initial=5),
    "initial-12": Calibration(initial=12),
    "exact-50": Calibration(exact=50),
    "exact-100": Calibration(exact=100),
    "unbounded": Calibration(exact=10**9),
}


def gramacy(X: Floats) -> Floats:
    x = 0.5 + 2 * X[:, 0]
    return -(np.sin(10 * np.pi * x) / (2 * x) + (x - 1) ** 4)


def camel(X: Floats) -> Floats:
    x, y = 6 * X[:, 0] - 3, 4 * X[:, 1] - 2
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def goldstein(X: Floats) -> Floats:
    x, y = (4 * X - 2).T
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    second = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return -first * second


def levy(X: Floats) -> Floats:
    u = 1 + (20 * X - 11) / 4
    middle = ((u[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * u[:, :-1] + 1) ** 2)).sum(axis=1)
    last = (u[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * u[:, -1]) ** 2)
    return -(np.sin(np.pi * u[:, 0]) ** 2 + middle + last)


def griewank(X: Floats) -> Floats:
    u = 20 * X - 8
    return -((u**2).sum(axis=1) / 400 - np.cos(u / np.sqrt(np.arange(1, X.shape[1] + 1))).prod(axis=1) + 1)


def michalewicz(X: Floats) -> Floats:
    u = np.pi * X
    return (np.sin(u) * np.sin(np.arange(1, X.shape[1] + 1) * u**2 / np.pi) ** 4).sum(axis=1)


def styblinski(X: Floats) -> Floats:
    u = 10 * X - 5
    return -0.5 * (u**4 - 16 * u**2 + 5 * u).sum(axis=1)


def dixon(X: Floats) -> Floats:
    u = 10 * X - 5
    steps = np.arange(2, X.shape[1] + 1) * (2 * u[:, 1:] ** 2 - u[:, :-1]) ** 2
    return -((u[:, 0] - 1) ** 2 + steps.sum(axis=1))


def additive(X: Floats) -> Floats:
    centres = np.array([0.3, 0.7, 0.2, 0.5, 0.9, 0.4])
    return (np.cos(3 * (X - centres)) * np.linspace(1, 0.2, 6)).sum(axis=1) + 0.3 * np.sin(9 * X[:, 0])


def random_function(seed: int, dimension: int, lengthscale: float) -> Callable[[Floats], Floats]:
    """A random function with the spectrum of a Matern 5/2 kernel."""
    rng, terms = np.random.default_rng(seed), 300
    tails = np.sqrt(5 / rng.chisquare(5, (terms, 1)))
    waves = rng.standard_normal((terms, dimension)) / lengthscale * tails
    phases, sizes = 2 * np.pi * rng.random(terms), rng.standard_normal(terms) * math.sqrt(2 / terms)
    return lambda X: np.cos(X @ waves.T + phases) @ sizes


FUNCTIONS: dict[str, tuple[Callable[[Floats], Floats], int]] = {
    "gramacy": (gramacy, 1),
    "random1": (random_function(5, 1, 0.1), 1),
    "camel": (camel, 2),
    "goldstein": (goldstein, 2),
    "levy2": (levy, 2),
    "random2": (random_function(1, 2, 0.2), 2),
    "random2-long": (random_function(6, 2, 0.35), 2),
    "griewank": (griewank, 3),
    "dixon": (dixon, 3),
    "random3": (random_function(7, 3, 0.3), 3),
    "styblinski4": (styblinski, 4),
    "random4": (random_function(2, 4, 0.5), 4),
    "levy5": (levy, 5),
    "michalewicz5": (michalewicz, 5),
    "additive": (additive, 6),
    "styblinski6": (styblinski, 6),
    "random6": (random_function(3, 6, 0.7), 6),
}


def spike(rng: Rng) -> float:
    return 0.05 * rng.standard_normal() + (rng.random() < 0.02) * rng.choice([-20.0, 20.0])


NOISES: dict[str, Callable[[Rng], float]] = {  # in units of the 5 % to 95 % range of the function
    "gaussian-0.02": lambda rng: 0.02 * rng.standard_normal(),
    "gaussian-0.15": lambda rng: 0.15 * rng.standard_normal(),
    "student-3": lambda rng: 0.1 * rng.standard_t(3),
    "student-1.5": lambda rng: 0.1 * rng.standard_t(1.5),
    "spikes": spike,
}


FAILURES: dict[str, Callable[[dict[str, float], Rng], bool]] = {
    "none": lambda params, rng: False,
    "random": lambda params, rng: rng.random() < 0.3,
    "wall": lambda params, rng: params["x0"] > 0.6,
    "both": lambda params, rng: params["x0"] > 0.6 or rng.random() < 0.3,
}


@dataclass(frozen=True)
class Field:
    """A function and its facts."""

    function: Callable[[Floats], Floats]
    dimension: int
    top: float
    mean: float
    spread: float

    def regret(self, params: dict[str, float]) -> float:
        value = float(self.function(np.array([list(params.values())]))[0])
        return (self.top - value) / (self.top - self.mean)


def field(name: str) -> Field:
    function, dimension = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    points = rng.random((40_000, dimension))
    values = function(points)
    best = points[np.argsort(-values)[:20]]
    for radius in (0.1, 0.03, 0.01, 0.003, 0.001):
        near = np.clip(np.repeat(best, 200, axis=0) + radius * rng.standard_normal((4000, dimension)), 0, 1)
        near = np.vstack([best, near])
        best = near[np.argsort(-function(near))[:20]]
    low, high = np.quantile(values, [0.05, 0.95])
    return Field(function, dimension, float(function(best).max()), float(values.mean()), float(high - low))


def run(
    calibration: Calibration, place: Field, noise: str, failure: str, seed: int, rounds: int
) -> tuple[float, float, bool, float]:
    """Regret of the recommended point, mean regret of all, whether the interval holds, and the share of failures."""
    rng, luck = np.random.default_rng([seed, 7]), np.random.default_rng([seed, 8])
    space = {f"x{i}": Float(0, 1) for i in range(place.dimension)}
    opt, total, failed = Optimizer(space, goal="maximize", rng=seed, calibration=calibration), 0.0, 0
    for _ in range(rounds):
        trial = opt.ask()
        regret = place.regret(trial.params)
        total += regret
        value = place.top - regret * (place.top - place.mean) + place.spread * NOISES[noise](rng)
        if FAILURES[failure](trial.params, luck):
            failed += 1
            opt.fail(trial)
        else:
            opt.tell(trial, value)
    best = opt.best()
    regret = place.regret(best.params)
    truth = place.top - regret * (place.top - place.mean)
    return regret, total / rounds, best.lower <= truth <= best.upper, failed / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", default=["default"], help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--failures", nargs="+", default=["none"], choices=list(FAILURES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=80)
    options = parser.parse_args()
    fields = {name: field(name) for name in options.functions}
    print("| variant | failures | runs | recommended | mean of all | intervals that hold | failed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for variant, failure in product(options.variants, options.failures):
        grid = product(options.functions, options.noises, range(options.seeds))
        runs = [run(VARIANTS[variant], fields[f], noise, failure, seed, options.rounds) for f, noise, seed in grid]
        recommended, total, held, failed = np.mean(runs, axis=0)
        means = f"{recommended:.3f} | {total:.3f} | {held:.2f} | {failed:.2f}"
        print(f"| {variant} | {failure} | {len(runs)} | {means} |", flush=True)


if __name__ == "__main__":
    main()
