"""One run of `Optimizer` on one problem, and the process that does many of them for one source tree."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.development.noises import NOISES
from benchmarks.development.problems import problem
from noregret import Optimizer


class Run(NamedTuple):
    """Key of a run. On one seed every source tree gets the same noise."""

    problem: str
    noise: str
    seed: int


class Reading(NamedTuple):
    """State of a run after some evaluations. Regrets are in units of a random point's."""

    evaluations: int
    recommended: float  # regret of best().params
    on_the_way: float  # mean regret of all trials
    held: bool  # whether the interval of best() contains the expected measurement
    seconds: float  # CPU time of asking, telling and recommending


def play(run: Run, budgets: list[int], **options: Any) -> list[Reading]:
    """Readings at every budget of one run to the largest; the optimizer takes the options."""
    place, noise = problem(run.problem), NOISES[run.noise]
    rng, total, clock = np.random.default_rng([run.seed, 7]), 0.0, time.process_time()
    opt, readings = Optimizer(place.space, goal=noise.goal, rng=run.seed, **options), []
    for evaluation in range(1, max(budgets) + 1):
        trial = opt.ask()
        regret = place.regret(trial.params)
        total += regret
        value = noise.measured(place, regret, rng)
        if noise.fails(trial.params, rng):
            opt.fail(trial)
        else:
            opt.tell(trial, value)
        if evaluation in budgets:
            best = opt.best()
            regret = place.regret(best.params)
            held = bool(best.lower <= noise.expected(place, regret) <= best.upper)
            readings.append(Reading(evaluation, regret, total / evaluation, held, time.process_time() - clock))
    return readings


def main() -> None:
    """Play the runs of ``{"runs": [...], "budgets": [...]}`` from standard input; one line of JSON per run."""
    asked = json.load(sys.stdin)
    for run in asked["runs"]:
        print(json.dumps([run, play(Run(*run), asked["budgets"])]), flush=True)


if __name__ == "__main__":
    main()
