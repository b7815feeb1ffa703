"""Intervals of pairs of runs at the end of studies, on problems of other libraries: ``python -m benchmarks.pairs``.

Each study has a baseline, SimOpt's initial solution or a random setting of a table, and 100 evaluations; of these at
most 20 are pairs. Printed, in Markdown: the share of studies with an interval from pairs, how often it contains the
true median difference of a pair, wrong verdicts, how often the model's interval contains the difference of the true
values, and the median width of the former over that of the latter.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

from benchmarks.judges.problems import CHECK as STREAM
from benchmarks.judges.problems import PROBLEMS, Judged, Simulation, checked, start
from noregret import maximize, minimize

EVALUATIONS, DRAWS = 100, 1000


def draws(task: Any, params: dict[str, Any], count: int, rng: np.random.Generator) -> np.ndarray:
    if isinstance(task, Simulation):
        return np.asarray(task.replications(tuple(params.values()), STREAM, int(rng.integers(2**30)), count))
    return np.array([np.nan if (y := task.measured(params, rng)) is None else y for _ in range(count)])


def study(problem: Judged, seed: int) -> list[float]:
    task, rng = problem.make(), np.random.default_rng([seed, 29])
    baseline, sign = start(task, seed), 1 if task.goal == "minimize" else -1
    run = (lambda row: draws(task, row, 1, rng)[0]) if isinstance(task.space, list) else None
    run = run or (lambda **params: draws(task, params, 1, rng)[0])
    gain = (minimize if sign > 0 else maximize)(
        run,
        task.space,
        evaluations=EVALUATIONS,
        baseline=baseline,
        rng=seed,
        progress=False,
    ).gain
    its = gain.measured if gain else None
    if its is None:
        return [0, *[np.nan] * 4]
    both = baseline, gain.best.params
    old, new = (draws(task, params, DRAWS, np.random.default_rng([seed, k])) for k, params in enumerate(both))
    true = float(np.nanmedian(sign * (old - new)))
    mean = sign * (checked(task, baseline) - checked(task, gain.best.params))
    wrong = its.lower > max(true, 0) or its.upper < min(true, 0)
    width = (its.upper - its.lower) / (gain.upper - gain.lower)
    return [1, its.lower <= true <= its.upper, wrong, gain.lower <= mean <= gain.upper, width]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--groups", nargs="+", default=["training", "kernels", "simopt"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| problems | studies | measured | interval holds | wrong verdicts | the model's holds | width |")
    print("|---|---|---|---|---|---|---|")
    for group in args.groups:
        rows = [study(its, seed) for its in PROBLEMS if its.group == group for seed in range(args.seeds)]
        count, (has, holds, wrong, model, width) = len(rows), np.array(rows, dtype=float).T
        shares = (
            f"{np.nanmean(holds):.0%} | {np.nansum(wrong):.0f} | {np.nanmean(model):.0%} | {np.nanmedian(width):.2f}"
        )
        print(f"| {group} | {count} | {has.sum():.0f} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
