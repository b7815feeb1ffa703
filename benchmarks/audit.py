"""Audits of stored studies: ``python -m benchmarks.audit --seeds 2``.

Studies of five samplers of Optuna over tables of GPU kernels, each of 100 trials. A measurement is one timing of the
table, or its mean with 10% of normal noise. A sampler sees the places on the grids, and the nearest row is measured.
Printed, in Markdown, by noise: how often the interval of the reported and of the recommended setting contains the mean
of the table, the median width of the latter over that of ``Optimizer.best`` with the same trials, the median optimism
of the report, and how often the recommended setting is truly better than the luckiest one, the same, or worse.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import optuna
from scipy.spatial import cKDTree

from benchmarks.judges.problems import PROBLEMS, Kernel
from noregret.studies.audit import audited

SAMPLERS = ("random", "TPE", "QMC", "NSGA-II", "grid")
NOISES = {"as measured": 0.0, "10%": 0.1}
TRIALS = 100


class Audited(NamedTuple):
    """One study: whether the intervals hold, ratio of widths, share that the report is too good by, and the choice.

    ``choice`` is 1 if the recommended setting is truly better than the luckiest one, 0 if it is the same, -1 if worse.
    """

    reported: bool
    recommended: bool
    width: float
    optimism: float
    choice: int
    seconds: float


def sampler(name: str, grids: dict[str, list[Any]], seed: int) -> Any:
    if name == "grid":
        few = {n: np.unique(np.linspace(0, len(g) - 1, 3).astype(int)).tolist() for n, g in grids.items()}
        return optuna.samplers.GridSampler(few, seed=seed)
    samplers = optuna.samplers
    made = {"random": samplers.RandomSampler, "TPE": samplers.TPESampler, "QMC": samplers.QMCSampler}
    return made.get(name, samplers.NSGAIISampler)(seed=seed)


def one(table: Kernel, name: str, noise: float, seed: int) -> Audited:
    """Run a study and audit it."""
    grids = {column: sorted({row[column] for row in table.space}) for column in table.space[0]}
    sizes = np.array([max(len(grid) - 1, 1) for grid in grids.values()])
    tree = cKDTree(np.array([[grids[n].index(v) for n, v in row.items()] for row in table.space]) / sizes)
    rng = np.random.default_rng([seed, 23])

    def row(params: dict[str, int]) -> int:
        return int(tree.query(np.array([params[column] for column in grids]) / sizes)[1])

    def value(trial: Any) -> float:
        place = row({n: trial.suggest_int(n, 0, len(grid) - 1) for n, grid in grids.items()})
        times, normal = table.measurements[place], rng.standard_normal()
        return float(table.means[place] * (1 + noise * normal) if noise else times[rng.integers(len(times))])

    study = optuna.create_study(sampler=sampler(name, grids, seed))
    study.optimize(lambda trial: value(trial), n_trials=TRIALS)
    began = time.process_time()
    found = audited(study)
    best, worth, luckiest = found.best, found.worth, found.reported.params
    assert str(found)
    seconds = time.process_time() - began
    own = found.optimizer.best()
    true, lucky = (float(table.means[row(params)]) for params in (best.params, luckiest))
    return Audited(
        worth.lower <= lucky <= worth.upper,
        best.lower <= true <= best.upper,
        (best.upper - best.lower) / (own.upper - own.lower),
        found.optimism[0] / lucky,
        int(np.sign(lucky - true)),
        seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds, tables = parser.parse_args().seeds, [its for its in PROBLEMS if its.group == "kernels"]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    print(
        "| noise | studies | reported holds | recommended holds | width | too good by | better, same, worse | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for noise, size in NOISES.items():
        found = [one(t.make(), s, size, seed) for t in tables for s in SAMPLERS for seed in range(seeds)]
        each = Audited(*map(np.array, zip(*found, strict=True)))
        held = f"{each.reported.mean():.1%} | {each.recommended.mean():.1%} | {np.median(each.width):.2f}"
        choices = ", ".join(str((each.choice == sign).sum()) for sign in (1, 0, -1))
        more = f"{np.median(each.optimism):.1%} | {choices} | {np.median(each.seconds):.1f}"
        print(f"| {noise} | {len(found)} | {held} | {more} |", flush=True)


if __name__ == "__main__":
    main()
