"""One run of `Optimizer` on one problem, and the process that does many of them for one source tree."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.development.noises import task
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
    search: Callable[[], Any], measure: Callable[[Any], float | None], budgets: Collection[int]
) -> Iterator[tuple[int, Any, Any, float]]:
    """Evaluations, the search, its recommendation and its CPU seconds without those of ``measure``, at every budget."""
    seconds, start = 0.0, time.process_time()
    opt = search()
    for evaluation in range(1, max(budgets, default=0) + 1):
        trial = opt.ask()
        seconds += time.process_time() - start
        value = measure(trial.params)
        start = time.process_time()
        if value is None:
            opt.fail(trial)
        else:
            opt.tell(trial, value)
        if evaluation in budgets:
            best = opt.best()
            seconds += time.process_time() - start
            yield evaluation, opt, best, seconds
            start = time.process_time()


def play(run: Run, budgets: list[int], search: Callable[..., Any] = Optimizer, **options: Any) -> list[Reading]:
    """Readings at every budget of one run to the largest; the search takes the options."""
    place, rng = task(run.problem, run.noise), np.random.default_rng([run.seed, 7])
    total, readings = 0.0, []

    def measure(params: Any) -> float | None:
        nonlocal total
        total += place.trial_regret(params)
        return place.measured(params, rng)

    opt = partial(search, place.space, goal=place.goal, rng=run.seed, **options)
    for evaluation, _, best, seconds in played(opt, measure, budgets):
        held = bool(best.lower <= place.expected(best.params) <= best.upper)
        readings.append(Reading(evaluation, place.regret(best.params), total / evaluation, held, seconds))
    return readings


def main() -> None:
    """Play the runs of ``{"runs": [...], "budgets": [...]}`` from standard input; one line of JSON per run."""
    asked = json.load(sys.stdin)
    for run in asked["runs"]:
        print(json.dumps([run, play(Run(*run), asked["budgets"])]), flush=True)


if __name__ == "__main__":
    main()
