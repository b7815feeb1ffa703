"""Functions whose cost varies 100-fold over the space: ``python -m benchmarks.costs --seeds 10``.

The cost of a setting is 100^u, u uniform over random settings: low where f is good, high where f is good, or along a
random direction that has nothing to do with f. Costs and values are noisy. All methods have the same budget of cost,
that of 15 to 40 random settings on average, and 100 trials at most. A trial that exceeds it ends the run and does not
count.

- ignored: the optimizer does not know the costs;
- per cost: expected improvement divided by the cost;
- cooled: every second question divides by the cost to a power that falls from 1 to 0 (``Optimizer(budget=...)``);
- every question: the same, for every question;
- unknown: it knows the costs and not the budget.

Printed in Markdown: the mean regret of the recommended setting by true values, 0 the best and 1 the mean of random
settings, the mean difference to "ignored" on the same seeds with its standard error, and the number of trials.
Results are kept in ``--out``, so that a run that was interrupted continues. ``--quick`` is a small version.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown
from benchmarks.lines import add, stored
from noregret import Float, Optimizer, problems
from noregret.optimizer import Improve, OptimizerConfig, Recheck, RemeasureBaseline

Array = np.ndarray[Any, Any]

FUNCTIONS: dict[str, tuple[Callable[[Array], Array], int]] = {
    "branin, 2-d": (problems.branin, 2),
    "hartmann, 4-d": (problems.hartmann4, 4),
    "hartmann, 6-d": (problems.hartmann6, 6),
}
COSTS = "cheap where good", "expensive where good", "unrelated"
NOISES: dict[str, Callable[[np.random.Generator], float]] = {
    "Gaussian": lambda rng: float(rng.standard_normal()),
    "Student-t(2)": lambda rng: float(rng.standard_t(2)),
}
METHODS = "ignored", "per cost", "every question", "cooled", "unknown"
RATIO = 100.0
"""Largest cost divided by the smallest."""
TRIALS = {"cheap where good": 15, "expensive where good": 40, "unrelated": 30}
"""The budget is the mean cost of this number of random settings: enough for some 30 to 60 trials."""
MOST = 100
"""A run ends after this number of trials too."""
NOISE = 0.1
"""Scale of the noise, as a part of the distance between the best value and the mean of random settings."""
COST_NOISE = 0.2
"""Standard deviation of the noise of ln cost."""
DRAWN = 100_000
MEAN_COST = (RATIO - 1) / np.log(RATIO)


@cache
def drawn(name: str) -> tuple[Array, float, float]:
    """Sorted values of random settings, the best value and the mean."""
    f, dimension = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    points = rng.random((DRAWN, dimension))
    values = f(points)
    best = points[np.argsort(-values)[:20]]
    for radius in np.repeat([0.05, 0.02, 0.01, 0.003, 0.001], 20):
        near = np.clip(np.repeat(best, 50, axis=0) + radius * rng.standard_normal((1000, dimension)), 0, 1)
        near = np.vstack([best, near])
        best = near[np.argsort(-f(near))[:20]]
    return np.sort(values), float(f(best).max()), float(values.mean())


@cache
def directions(dimension: int, seed: int) -> tuple[Array, Array]:
    """A random direction, and the sorted positions of random settings along it."""
    rng = np.random.default_rng([seed, 7])
    direction = rng.standard_normal(dimension)
    return direction, np.sort(rng.random((DRAWN, dimension)) @ direction)


def log_cost(name: str, kind: str, point: Array, seed: int) -> float:
    """The ln cost of a (d,) point without noise, uniform over random settings."""
    f, dimension = FUNCTIONS[name]
    if kind == "unrelated":
        direction, positions = directions(dimension, seed)
        share = np.searchsorted(positions, point @ direction) / DRAWN
    else:
        share = np.searchsorted(drawn(name)[0], f(point[None])[0]) / DRAWN
        share = share if kind == "expensive where good" else 1 - share
    return float(np.log(RATIO) * share)


def optimizer(method: str, dimension: int, budget: float, seed: int) -> Optimizer:
    exponent = {"per cost": 1.0, "every question": None}
    questions = Recheck(), RemeasureBaseline(), Improve(cost_exponent=exponent.get(method), weighed_every=1)
    config = OptimizerConfig(questions=questions) if method in exponent else None
    space = {f"x{i}": Float(0, 1) for i in range(dimension)}
    known = budget if method not in ("ignored", "unknown") else None
    return Optimizer(space, goal="maximize", rng=seed, budget=known, calibration=config)


def run(name: str, kind: str, noise: str, method: str, seed: int) -> dict[str, float]:
    """Regret of the recommended setting, the number of trials, and the CPU seconds."""
    (f, dimension), (_, best, mean) = FUNCTIONS[name], drawn(name)
    world, budget, spent, count = np.random.default_rng([seed, 1]), TRIALS[kind] * MEAN_COST, 0.0, 0
    opt, begun = optimizer(method, dimension, budget, seed), time.process_time()
    while True:
        trial = opt.ask()
        point = np.array(list(trial.params.values()))
        cost = float(np.exp(log_cost(name, kind, point, seed) + COST_NOISE * world.standard_normal()))
        value = float(f(point[None])[0] + NOISE * (best - mean) * NOISES[noise](world))
        if spent + cost > budget or count == MOST:
            break
        spent, count = spent + cost, count + 1
        opt.tell(trial, value, cost=None if method == "ignored" else cost)
    chosen = np.array(list(opt.best().params.values()))
    regret = (best - float(f(chosen[None])[0])) / (best - mean)
    return {"regret": regret, "trials": count, "cpu": time.process_time() - begun}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="3 seeds, two dimensions")
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/costs.jsonl"))
    args = parser.parse_args()
    functions = args.functions[: 1 if args.quick else None]
    seeds = range(3 if args.quick else args.seeds)
    done = {tuple(entry["key"]): entry for entry in stored(args.out)}
    for seed in seeds:
        for key in ((n, k, z, m, seed) for n in functions for k in COSTS for z in NOISES for m in args.methods):
            if key not in done:
                done[key] = {"key": key, **run(*key)}
                add(done[key], args.out)
    rows = []
    for noise in NOISES:
        for kind in COSTS:
            for name in [*functions, "all"]:
                part = functions if name == "all" else [name]
                rows += [[noise, kind, name, *row(done, part, kind, noise, seeds, args.methods)]]
    print(markdown.table(["noise", "cost", "function", *args.methods], rows))


def row(done: Any, functions: Any, kind: str, noise: str, seeds: Any, methods: Any) -> list[str]:
    """A cell of each method: mean regret, paired difference to "ignored" with its standard error, trials."""
    found = {
        method: [done[name, kind, noise, method, seed] for name in functions for seed in seeds] for method in methods
    }
    regrets = {method: np.array([its["regret"] for its in found[method]]) for method in methods}
    cells = []
    for method in methods:
        text = f"{regrets[method].mean():.3f}"
        if method != "ignored":
            apart = regrets[method] - regrets["ignored"]
            text += f" ({apart.mean():+.3f} ± {apart.std(ddof=1) / np.sqrt(apart.size):.3f})"
        cells.append(f"{text}, {np.mean([its['trials'] for its in found[method]]):.0f} trials")
    return cells


if __name__ == "__main__":
    main()
