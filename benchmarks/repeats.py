"""Repeats of a trial, fixed or decided by the results: ``python -m benchmarks.repeats`` (5 CPU minutes).

A trial runs 1, 3 or 10 times, or 1 to 10 times by the rule of ``repeats = [1, 10]`` in study files. All have the same
budget of runs. With a warm-up, each trial has as many more runs that measure nothing, and these count too. Printed in
Markdown: the true regret of the recommended setting, 0 the best and 1 a random one, its mean and standard error, and
the mean number of trials. Finished runs are kept in a file (``--out``), to which further ones are added.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.development.noises import additive
from benchmarks.stopping import finished, place_of
from noregret import Optimizer
from noregret.tune.repeats import error_of_median, target_of

FUNCTIONS = ("branin", "hartmann3", "random4-new")
NOISES = {
    "Gaussian 0.15": additive(lambda rng: 0.15 * rng.standard_normal()),
    "Gaussian 0.5": additive(lambda rng: 0.5 * rng.standard_normal()),
    "Student-t(2) 0.2": additive(lambda rng: 0.2 * rng.standard_t(2)),
}
"""In units of the 5% to 95% range of the values."""
REPEATS = ("1", "3", "10", "1 to 10")
BUDGET = 150
WARMUPS = (0, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="the number of seeds, 72 runs each")
    parser.add_argument("--quick", action="store_true", help="one seed of one function")
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/repeats.jsonl"))
    options = parser.parse_args()
    seeds, functions = (1, FUNCTIONS[:1]) if options.quick else (options.seeds, FUNCTIONS)
    runs = product(range(seeds), functions, NOISES, REPEATS, WARMUPS)
    found = list(finished(runs, options.out, play))
    print(f"| noise | warm-up | {' | '.join(f'repeats {its}' for its in REPEATS)} |")
    print("|---" * (2 + len(REPEATS)) + "|")
    for warmup, noise in product(WARMUPS, [*NOISES, "all"]):
        cells = [cell(found, noise, repeats, warmup) for repeats in REPEATS]
        print(f"| {noise} | {warmup} | {' | '.join(cells)} |")


def cell(found: list[dict[str, Any]], noise: str, repeats: str, warmup: int) -> str:
    mine = [its for its in found if noise in (its["run"][2], "all") and [*its["run"][3:]] == [repeats, warmup]]
    regrets = np.array([its["regret"] for its in mine])
    error = regrets.std(ddof=1) / np.sqrt(len(regrets)) if len(regrets) > 1 else np.nan
    return f"{regrets.mean():.3f} ± {error:.3f} ({np.mean([its['trials'] for its in mine]):.0f} trials)"


def play(seed: int, name: str, noise_name: str, repeats: str, warmup: int) -> dict[str, Any]:
    """Regret of the recommended setting after `BUDGET` runs, and the number of trials."""
    place, noise = place_of(name), NOISES[noise_name]
    rng, opt = np.random.default_rng([seed, 7]), Optimizer(place.space, goal="maximize", rng=seed)
    left, trials, is_fixed = BUDGET, 0, repeats != "1 to 10"
    while left > 0:
        trial, trials, left = opt.ask(), trials + 1, left - warmup
        regret, values = place.regret(trial.params), list[float]()
        is_enough = fixed(int(repeats)) if is_fixed else decided(opt)
        while not values or (left > 0 and len(values) < 10 and not is_enough(values)):
            values.append(noise.measured(place, regret, rng))
            left -= 1
        if is_fixed:
            opt.tell(trial, median(values), error_of_median(values))
        else:
            for number, value in enumerate(values):
                opt.tell(trial.params if number else trial, value)
    return {"regret": place.regret(opt.best().params), "trials": trials}


def fixed(count: int) -> Callable[[list[float]], bool]:
    return lambda values: len(values) >= count


def decided(opt: Optimizer) -> Callable[[list[float]], bool]:
    """The rule of study files, by what is known now."""
    target = target_of(opt)
    return target.is_out_of_reach if target else fixed(1)


if __name__ == "__main__":
    main()
