"""Audits of stored studies: ``python -m benchmarks.audit --seeds 2``.

Studies of 100 trials by five samplers of Optuna, on tables of neural networks and of GPU kernels: see
`benchmarks.judges.problems`. A measurement is one training, or one timing; "and 0.5 sd" adds normal noise of half of
the standard deviation of the table. On kernels a sampler sees the places on the grids, and the nearest row is measured.
Printed, in Markdown: how often the interval of the reported and of the recommended setting contains the mean of the
table, the median width of the latter over that of ``Optimizer.best`` with the same trials, the median of what the
report is too good by, in standard deviations of the table, and how often the recommended setting is truly better than
the luckiest one, the same, or worse.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import optuna
from scipy.spatial import cKDTree

from benchmarks.judges.problems import PROBLEMS
from noregret import Choice, Int
from noregret.studies.audit import audited

SAMPLERS = ("random", "TPE", "QMC", "NSGA-II", "grid")
GROUPS = (("training", 0.0), ("training", 0.5), ("kernels", 0.0), ("kernels", 0.5))
TRIALS = 100


class Search:
    """A table as Optuna's samplers see it: named parameters, and the row that a trial measures."""

    def __init__(self, table: Any) -> None:
        self.table, self.space = table, table.space
        self.sd = float(table.means[np.isfinite(table.means)].std())
        self.params = lambda params: {name: params[name] for name in table.space}
        if isinstance(table.space, list):
            grids = {name: sorted({row[name] for row in table.space}) for name in table.space[0]}
            self.space = {name: Int(0, len(grid) - 1) for name, grid in grids.items()}
            sizes = np.array([max(len(grid) - 1, 1) for grid in grids.values()])
            tree = cKDTree(np.array([[grids[n].index(v) for n, v in row.items()] for row in table.space]) / sizes)
            self.params = lambda params: table.space[tree.query(np.array([params[n] for n in grids]) / sizes)[1]]

    def suggested(self, trial: Any) -> dict[str, Any]:
        return {
            name: trial.suggest_categorical(name, its.options)
            if isinstance(its, Choice)
            else trial.suggest_int(name, its.low, its.high)
            for name, its in self.space.items()
        }

    def sampler(self, name: str, seed: int) -> Any:
        ends = {
            n: its.options[:3] if isinstance(its, Choice) else (its.low, its.high // 2, its.high)
            for n, its in self.space.items()
        }
        few = {n: list(dict.fromkeys(each)) for n, each in ends.items()}
        kinds = optuna.samplers
        made = {"random": kinds.RandomSampler, "TPE": kinds.TPESampler, "QMC": kinds.QMCSampler}
        made |= {"NSGA-II": kinds.NSGAIISampler, "grid": partial(kinds.GridSampler, few)}
        return made[name](seed=seed)

    def audited(self, name: str, noise: float, seed: int) -> list[float]:
        """Numbers of one study: the columns of the table that is printed."""
        rng, table = np.random.default_rng([seed, 23]), self.table

        def value(trial: Any) -> float:
            found = table.measured(self.params(self.suggested(trial)), rng)
            return float("nan") if found is None else found + noise * self.sd * rng.standard_normal()

        study = optuna.create_study(direction=table.goal, sampler=self.sampler(name, seed))
        study.optimize(value, n_trials=TRIALS)
        began = time.process_time()
        found = audited(study)
        assert str(found)
        seconds, best, worth, own = time.process_time() - began, found.best, found.worth, found.optimizer.best()
        true, lucky = (table.expected(self.params(its.params)) for its in (best, worth))
        held = [its.lower <= value <= its.upper for its, value in ((worth, lucky), (best, true))]
        choice = np.sign(true - lucky) * (1 if table.goal == "maximize" else -1)
        return [
            *held,
            (best.upper - best.lower) / (own.upper - own.lower),
            found.optimism[0] / self.sd,
            choice,
            seconds,
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    print(
        "| tables | studies | reported holds | recommended holds | width | too good by | better, same, worse | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for group, noise in GROUPS:
        tables = [Search(its.make()) for its in PROBLEMS if its.group == group]
        found = [table.audited(s, noise, seed) for table in tables for s in SAMPLERS for seed in range(args.seeds)]
        reported, recommended, width, optimism, choice, seconds = np.array(found, dtype=float).T
        choices = ", ".join(str((choice == sign).sum()) for sign in (1, 0, -1))
        print(
            f"| {group}{f' and {noise} sd' if noise else ''} | {len(found)} | {reported.mean():.1%} | "
            f"{recommended.mean():.1%} | {np.median(width):.2f} | {np.median(optimism):.2f} sd | {choices} | "
            f"{np.median(seconds):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
