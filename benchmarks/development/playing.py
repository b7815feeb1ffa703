"""One run of `Optimizer` on one problem, and the process that does many of them for one source tree."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.development.noises import task
from benchmarks.development.tasks import Task
from noregret import Optimizer


class Run(NamedTuple):
    """Key of a run. On one seed every source tree gets the same noise."""

    problem: str
    noise: str
    seed: int


class Reading(NamedTuple):
    """State of a run after some evaluations.

    Regrets are in units of a random point's. On the GPU tables of the group ``real`` they are relative instead: the
    mean time of a setting divided by the best mean time, less 1. The means of random points are 2.5, 35 and 3.1 there.
    """

    evaluations: int
    recommended: float  # regret of best().params
    on_the_way: float  # mean regret of all trials
    held: bool  # whether the interval of best() contains the expected measurement
    seconds: float  # CPU time of asking, telling and recommending


def played(
    search: Callable[..., Any], place: Task, seed: int, budgets: list[int], **options: Any
) -> Iterator[tuple[Any, Any, float, list[Any]]]:
    """The search, its recommendation, its CPU seconds without those of measurements, and all params, at each budget."""
    rng, seconds, tried, start = np.random.default_rng([seed, 7]), 0.0, [], time.process_time()
    opt = search(place.space, goal=place.goal, rng=seed, **options)
    for evaluation in range(1, max(budgets, default=0) + 1):
        trial = opt.ask()
        seconds += time.process_time() - start
        tried.append(trial.params)
        value = place.measured(trial.params, rng)
        start = time.process_time()
        if value is None:
            opt.fail(trial)
        else:
            opt.tell(trial, value)
        if evaluation in budgets:
            best = opt.best()
            seconds += time.process_time() - start
            yield opt, best, seconds, tried
            start = time.process_time()


def play(run: Run, budgets: list[int], search: Callable[..., Any] = Optimizer, **options: Any) -> list[Reading]:
    """Readings at every budget of one run to the largest; the search takes the options."""
    place, regrets, readings = task(run.problem, run.noise), list[float](), []
    for _, best, seconds, tried in played(search, place, run.seed, budgets, **options):
        regrets += map(place.trial_regret, tried[len(regrets) :])
        held = bool(best.lower <= place.expected(best.params) <= best.upper)
        readings.append(Reading(len(tried), place.regret(best.params), sum(regrets) / len(tried), held, seconds))
    return readings


def main() -> None:
    """Play the runs of ``{"runs": [...], "budgets": [...]}`` from standard input; one line of JSON per run."""
    asked = json.load(sys.stdin)
    for run in asked["runs"]:
        print(json.dumps([run, play(Run(*run), asked["budgets"])]), flush=True)


if __name__ == "__main__":
    main()
