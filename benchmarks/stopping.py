"""Reliability of `Optimizer.done` and of `best().remaining`: ``python -m benchmarks.stopping --seeds 22``.

At most 150 evaluations on twelve functions of one to eight dimensions with much noise on which nothing was chosen, and
with little noise on `HILLS`, `LITTLE` and `LITTLE_NEW`. `best().remaining` is read at the milestones of the fit, where
`done` could first be true, and compared with each tolerance, a part of the difference between the best and a random
point. Printed, in Markdown:

- stopped: runs in which `done` was true before the budget was spent;
- right: of these, those whose recommended setting was as good as promised, with Clopper and Pearson's interval;
- evaluations: the median at the stop, over the runs that stopped;
- saved: the share of all evaluations that stops would have saved;
- held: of all readings, how often no setting was better by more than ``remaining``.

Finished runs are kept in a file (``--out``), to which further runs are added.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.development.classic import random_function
from benchmarks.development.hills import bumps, peaks
from benchmarks.development.noises import NOISES
from benchmarks.development.problems import on_the_cube
from benchmarks.lines import add, stored
from noregret import Optimizer, problems
from noregret.bandits.lab.trace import fraction_interval


def two_hills(number: int) -> Callable[[np.ndarray], np.ndarray]:
    """A hill of deviation 0.18 and height 0.8, and one of deviation 0.08 and height 1, in the unit square."""
    rng, wide, narrow = np.random.default_rng([number, 41]), np.zeros(2), np.zeros(2)
    while np.linalg.norm(wide - narrow) < 0.45:
        wide, narrow = rng.uniform(0.15, 0.85, 2), rng.uniform(0.12, 0.88, 2)

    def value(X: np.ndarray) -> np.ndarray:
        first, second = (((X - centre) ** 2).sum(axis=1) for centre in (wide, narrow))
        return np.maximum(0.8 * np.exp(-first / (2 * 0.18**2)), np.exp(-second / (2 * 0.08**2)))

    return value


MODEL = {
    "bumps1-new": (bumps(51, 1, 0.08), 1),
    "random1-new": (random_function(131, 1, 0.15), 1),
    "rosenbrock2": (problems.rosenbrock, 2),
    "random2-new": (random_function(132, 2, 0.3), 2),
    "peaks2-new": (peaks(52, 2), 2),
    "random3-new": (random_function(133, 3, 0.4), 3),
    "peaks3-new": (peaks(53, 3), 3),
    "random4-new": (random_function(134, 4, 0.5), 4),
    "random5-new": (random_function(145, 5, 0.6), 5),
    "random6-new": (random_function(146, 6, 0.7), 6),
    "random7-new": (random_function(147, 7, 0.8), 7),
    "random8-new": (random_function(148, 8, 0.9), 8),
}
HILLS = {f"hills{number}": (two_hills(number), 2) for number in range(4)}
"""A wide hill of height 0.8 and a narrow one of height 1: `done` must not stop before the second one is found."""
LITTLE = {
    "branin": (problems.branin, 2),
    "rosenbrock2": (problems.rosenbrock, 2),
    "random2-302": (random_function(302, 2, 0.3), 2),
    "random2-303": (random_function(303, 2, 0.2), 2),
    "hartmann4": (problems.hartmann4, 4),
    "random4-304": (random_function(304, 4, 0.5), 4),
    "random4-305": (random_function(305, 4, 0.7), 4),
    "bowl4": (lambda X: -((X - np.array([0.3, 0.6, 0.5, 0.7])) ** 2).sum(axis=1), 4),
}
"""Functions of two and four parameters with little noise, on which and on `HILLS` the numbers were chosen."""
LITTLE_NEW = {
    "random2-502": (random_function(502, 2, 0.25), 2),
    "random2-503": (random_function(503, 2, 0.35), 2),
    "peaks2-504": (peaks(504, 2), 2),
    "hartmann3": (problems.hartmann3, 3),
    "random3-506": (random_function(506, 3, 0.4), 3),
    "random4-507": (random_function(507, 4, 0.6), 4),
    "random4-508": (random_function(508, 4, 0.8), 4),
    "random5-509": (random_function(509, 5, 0.8), 5),
}
"""The same of two to five parameters, on which nothing was chosen."""
MODEL_SETS = {"hills": HILLS, "little": LITTLE, "little, new": LITTLE_NEW}
MODEL_NOISES = ("gaussian-0.15", "student-3", "spikes")
MODEL_PARTS = (0.05, 0.1, 0.2, 0.4)
MODEL_BUDGET = 150
CUBES = MODEL | HILLS | LITTLE | LITTLE_NEW


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[22])
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/stopping_model.jsonl"))
    options = parser.parse_args()
    for name, functions in MODEL_SETS.items():
        print(f"\n{name}, noise of 2%\n")
        report(list(finished(product(options.seeds, functions, ["gaussian-0.02"]), options.out)))
    print("\nmuch noise\n")
    report(list(finished(product(options.seeds, MODEL, MODEL_NOISES), options.out)))


def finished(runs: Iterable[tuple[Any, ...]], out: Path) -> Iterator[dict[str, Any]]:
    """Results of each run, from the file or computed now."""
    known = {tuple(line["run"]): line for line in stored(out)}
    for run in runs:
        if run not in known:
            with threadpool_limits(1, user_api="blas"):
                known[run] = {"run": run, **play(*run)}
            add(known[run], out)
        yield known[run]


def play(seed: int, name: str, noise_name: str) -> dict[str, Any]:
    """At each milestone: evaluations, regret, and what remains, in units of a random point's regret."""
    place, noise = on_the_cube(*CUBES[name]), NOISES[noise_name]
    rng, opt = np.random.default_rng([seed, 13]), Optimizer(place.space, goal=noise.goal, rng=seed)
    unit, read, fitted = place.top - place.mean, [], 0
    for answers in range(1, MODEL_BUDGET + 1):
        trial = opt.ask()
        opt.tell(trial, noise.measured(place, place.regret(trial.params), rng))
        at = opt.calibration.fitted_from(answers, 2, opt.space)
        if at > fitted * 1.4:
            fitted, best = at, opt.best()
            if math.isfinite(best.remaining):
                read.append((answers, place.regret(best.params), best.remaining / unit))
    return {"read": read, "last": place.regret(opt.best().params)}


def report(runs: list[dict[str, Any]]) -> None:
    print("| within | runs | stopped | right | evaluations | saved |")
    print("|---" * 6 + "|")
    noises = sorted({run["run"][2] for run in runs})
    kinds = {"all": runs} | {noise: [run for run in runs if run["run"][2] == noise] for noise in noises}
    kinds |= {
        f"{d} parameters": [run for run in runs if CUBES[run["run"][1]][1] in d] for d in ((1, 2), (3, 4, 5), (6, 7, 8))
    }
    for part, (kind, mine) in product(MODEL_PARTS, kinds.items()):
        stops = [next((each for each in run["read"] if each[2] <= part), None) for run in mine]
        made = [each for each in stops if each]
        right, saved = sum(each[1] <= part for each in made), sum(MODEL_BUDGET - each[0] for each in made)
        median = f"{np.median([each[0] for each in made]):.0f}" if made else "-"
        share_saved = saved / (MODEL_BUDGET * max(len(mine), 1))
        row = f"{kind} ({len(mine)}) | {len(made)} | {share(right, len(made))} | {median} | {share_saved:.2f} |"
        print(f"| {part} | {row}")
        if kind == "all":
            for run, stop in zip(mine, stops, strict=True):
                if stop and stop[1] > part:
                    print(f"wrong: {run['run']} at {stop[0]}: regret {stop[1]:.3f}, last {run['last']:.3f}")
    readings = [each for run in runs for each in run["read"]]
    print(f"\nheld: {share(sum(regret <= left for _, regret, left in readings), len(readings))}")


def share(yes: int, n: int) -> str:
    """Count of n, and Clopper and Pearson's 95% interval for the share."""
    if not n:
        return "-"
    _, low, high = fraction_interval(yes, n)
    return f"{yes} of {n} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
