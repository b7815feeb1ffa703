"""Cost and gain of `Optimizer(drift="auto")`: ``python -m benchmarks.drifting_optimizer --seeds 5``.

Settings are points of the unit square, a value is the squared distance from the best one plus noise, and the best one
stays, jumps half way, or moves. "branin" is constant and not a bowl. The noise is Gaussian, Student-t, or that of
timings, which are longer than they should be by a part with a Pareto tail of exponent 1.5: it has no variance. Printed
in Markdown, each with drift=None and with drift="auto": the mean regret of all trials; the mean regret of the last
quarter; the number of evaluations until `best` stays nearer to the new best than to the old one (jump only, - if
never); CPU seconds; and in how many runs with drift="auto" f was found to change, for how many rounds on average.

``python -m benchmarks.drifting_optimizer long`` prints CPU milliseconds a round and the memory of the process, every
5,000 of 100,000 rounds in which the best setting goes round in a circle; ``--worlds still`` for one that stays.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from noregret import Float, Optimizer, problems

ROUNDS = 180
SQUARE = {"x": Float(0, 1), "y": Float(0, 1)}
BEFORE, AFTER = np.array([0.2, 0.3]), np.array([0.8, 0.7])
EVERY = 5000
CIRCLE = 1000
"""Rounds after which the best setting is back where it started."""


def gaussian(regret: float, rng: np.random.Generator) -> float:
    return regret + 0.05 * float(rng.standard_normal())


def student(dof: float) -> Callable[[float, np.random.Generator], float]:
    return lambda regret, rng: regret + 0.05 * float(rng.standard_t(dof))


def timing(regret: float, rng: np.random.Generator) -> float:
    """A duration of 0.25 for the best setting, never measured shorter than it is and sometimes much longer."""
    return (0.25 + regret) * (1 + 0.15 * float(rng.pareto(1.5)))


@dataclass(frozen=True)
class World:
    """Regret of a point in a round, and its measurement."""

    regret: Callable[[np.ndarray, int], float]
    measured: Callable[[float, np.random.Generator], float] = gaussian


def around(best: Callable[[int], np.ndarray]) -> Callable[[np.ndarray, int], float]:
    """The squared distance from the best point of the round."""
    return lambda point, round: float(((point - best(round)) ** 2).sum())


def branin(point: np.ndarray, _: int) -> float:
    """Branin's function below its maximum."""
    return 1.04739 - float(problems.branin(point[None])[0])


def on_circle(round: int) -> np.ndarray:
    angle = 2 * math.pi * round / CIRCLE
    return 0.5 + 0.3 * np.array([math.cos(angle), math.sin(angle)])


STILL = around(lambda round: BEFORE)
JUMP = around(lambda round: BEFORE if round < ROUNDS // 2 else AFTER)
MOTION = around(lambda round: BEFORE + round / ROUNDS * (AFTER - BEFORE))
WORLDS = {
    "still": World(STILL),
    "still, t(3)": World(STILL, student(3)),
    "still, t(1.5)": World(STILL, student(1.5)),
    "still, timings": World(STILL, timing),
    "still, branin": World(branin),
    "still, branin, t(1.5)": World(branin, student(1.5)),
    "jump": World(JUMP),
    "jump, t(3)": World(JUMP, student(3)),
    "jump, t(1.5)": World(JUMP, student(1.5)),
    "jump, timings": World(JUMP, timing),
    "motion": World(MOTION),
    "motion, t(1.5)": World(MOTION, student(1.5)),
    "circle": World(around(on_circle)),
}


class Run(NamedTuple):
    """Results of a run, and the number of rounds in which change was found."""

    regret: float
    late: float
    recovered: float
    seconds: float
    changing: int


def played(world: World, drift: str | None, seed: int) -> Run:
    """One run."""
    opt, rng, regret, lost = Optimizer(SQUARE, rng=seed, drift=drift), np.random.default_rng(seed), [], -1
    begun, changing = time.process_time(), 0
    for round in range(ROUNDS):
        trial = opt.ask()
        regret.append(world.regret(np.array(list(trial.params.values())), round))
        opt.tell(trial, world.measured(regret[-1], rng))
        changing += opt.half_life < math.inf
        if round >= ROUNDS // 2 and world.regret is JUMP:
            best = np.array(list(opt.best().params.values()))
            lost = round if np.linalg.norm(best - AFTER) > np.linalg.norm(best - BEFORE) else lost
    recovered = lost + 2 - ROUNDS // 2 if lost < ROUNDS - 1 else math.inf
    seconds = time.process_time() - begun
    return Run(float(np.mean(regret)), float(np.mean(regret[-ROUNDS // 4 :])), recovered, seconds, changing)


def cell(runs: list[Run], is_jump: bool) -> str:
    """Cell of the table for the runs of one problem."""
    after = sorted(run.recovered for run in runs)
    shown = ", ".join("-" if math.isinf(each) else f"{each:.0f}" for each in after) if is_jump else ""
    means = np.mean([run[:2] for run in runs], axis=0)
    return f"{means[0]:.4f}, {means[1]:.4f}{f' ({shown})' if shown else ''}; {np.mean([r.seconds for r in runs]):.1f} s"


def table(names: list[str], seeds: int) -> None:
    """Print each problem without drift and with it."""
    print("| problem | drift=None | drift='auto' | change found |\n|---|---|---|---|", flush=True)
    for name in names:
        world = WORLDS[name]
        plain, auto = ([played(world, drift, seed) for seed in range(seeds)] for drift in (None, "auto"))
        is_jump, changing = world.regret is JUMP, [run.changing for run in auto if run.changing]
        found = f"in {len(changing)} of {seeds} runs" + (f", {np.mean(changing):.0f} evaluations" if changing else "")
        print(f"| {name} | {cell(plain, is_jump)} | {cell(auto, is_jump)} | {found} |", flush=True)


def long(name: str, rounds: int) -> None:
    """CPU time and memory of many rounds."""
    world, opt, rng = WORLDS[name], Optimizer(SQUARE, rng=0, drift="auto"), np.random.default_rng(0)
    print(f"{name}\n| rounds | CPU ms a round | MiB | mean regret | half-life |\n|---|---|---|---|---|", flush=True)
    begun, regret = time.process_time(), []
    for round in range(rounds):
        trial = opt.ask()
        regret.append(world.regret(np.array(list(trial.params.values())), round))
        opt.tell(trial, world.measured(regret[-1], rng))
        if len(regret) == EVERY or round == rounds - 1:
            spent = 1000 * (time.process_time() - begun) / len(regret)
            row = f"{round + 1:,} | {spent:.1f} | {mebibytes():.0f} | {np.mean(regret):.4f} | {opt.half_life:.0f}"
            print(f"| {row} |", flush=True)
            begun, regret = time.process_time(), []


def mebibytes() -> float:
    """The memory that this process has now (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["table", "long"], default="table")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--worlds", nargs="*", choices=list(WORLDS))
    given = parser.parse_args()
    with threadpool_limits(1):
        if given.what == "table":
            table(given.worlds or [name for name in WORLDS if name != "circle"], given.seeds)
        for name in (given.worlds or ["circle"]) if given.what == "long" else []:
            long(name, given.rounds)


if __name__ == "__main__":
    main()
