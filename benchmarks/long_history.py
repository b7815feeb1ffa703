"""Cost of a suggestion after a long history: ``python -m benchmarks.long_history [measurements ...]``.

Every row is a separate process with this number of different observations of a function of six parameters with
heavy-tailed noise, in one of three ways: `Optimizer`, what `noregret tune` suggests with, and the sampler on a study in
memory. Seconds are CPU seconds: of the first suggestion, with all that a new process must do for it but imports, and of
the slowest and the mean of those that follow, each with one more result. The memory is the most that the process had.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  after the threads are set

SIZES = (500, 1000, 2000, 5000, 10_000)
NAMES = [f"x{i}" for i in range(6)]
FOLLOWING = 30

Params = dict[str, float]
Step = Callable[[], Any]


def value(params: Params, rng: np.random.Generator) -> float:
    return sum((x - 0.4) ** 2 for x in params.values()) + 0.1 * float(rng.standard_t(2))


def history(count: int, rng: np.random.Generator) -> list[tuple[Params, float]]:
    points = [dict(zip(NAMES, row, strict=True)) for row in rng.random((count, len(NAMES))).tolist()]
    return [(params, value(params, rng)) for params in points]


def optimizer(past: list[tuple[Params, float]], rng: np.random.Generator) -> Step:
    from noregret import Float, Optimizer

    opt = Optimizer({name: Float(0, 1) for name in NAMES}, rng=0)

    def step() -> None:
        while past:
            opt.tell(*past.pop(0))
        params = opt.ask().params
        past.append((params, value(params, rng)))

    return step


def tune(past: list[tuple[Params, float]], rng: np.random.Generator) -> Step:
    from noregret import Float, Reading
    from noregret.studies.running import suggester_of
    from noregret.studies.store.records import Record
    from noregret.studies.study.study import Study

    space = {name: Float(0, 1) for name in NAMES}
    suggester = suggester_of(Study(Path("study.toml"), ("true",), space=space))
    records: list[Record] = []

    def add(params: Params, result: float, told: tuple[int, ...] = ()) -> None:
        readings = {"value": (Reading(result),)}
        records.append(Record(len(records), params, state="done", readings=readings, told=told))

    for params, result in past:
        add(params, result)

    def step() -> None:
        found = suggester(records)
        add(found.params, value(found.params, rng), found.told)

    return step


def sampler(past: list[tuple[Params, float]], rng: np.random.Generator) -> Step:
    import optuna

    from noregret.integrations.optuna import NoRegretSampler

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space: Any = {name: optuna.distributions.FloatDistribution(0, 1) for name in NAMES}
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    study.add_trials([optuna.create_trial(params=dict(p), distributions=space, value=v) for p, v in past])

    def step() -> None:
        trial = study.ask(space)
        study.tell(trial, value(trial.params, rng))

    return step


WAYS = {"optimizer": optimizer, "tune": tune, "sampler": sampler}


def measure(way: str, count: int) -> None:
    """Print one row of the table."""
    rng = np.random.default_rng(0)
    step, seconds = WAYS[way](history(count, rng), rng), []
    for _ in range(1 + FOLLOWING):
        start = time.process_time()
        step()
        seconds.append(time.process_time() - start)
    first, *rest = seconds
    print(f"| {count} | {way} | {first:.2f} | {max(rest):.2f} | {np.mean(rest):.3f} | {memory():.0f} |", flush=True)


def memory() -> float:
    """The most that the process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)


def main() -> None:
    if sys.argv[1:2] == ["--row"]:
        return measure(sys.argv[2], int(sys.argv[3]))
    print("| measurements | way | first, s | slowest of the next 30, s | mean of these, s | memory, MiB |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for count in map(int, sys.argv[1:] or SIZES):
        for way in WAYS:
            row = [sys.executable, "-m", "benchmarks.long_history", "--row", way, str(count)]
            subprocess.run(row, check=True)


if __name__ == "__main__":
    main()
