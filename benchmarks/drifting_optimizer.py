"""What `Optimizer(drift="auto")` costs and gains: ``python -m benchmarks.drifting_optimizer --seeds 5``.

Settings are points of the unit square, a value is the squared distance from the best one plus noise, and the best one
stays, jumps half way, or moves. "branin" stands still and is no bowl. Printed in Markdown, each with drift=None and
with drift="auto": the mean regret of all questions; the mean regret of the last quarter; after how many evaluations
`best` is nearer to the new best than to the old one for good (jump only, - if never); CPU seconds.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from noregret import Float, Optimizer, problems

ROUNDS = 160
SQUARE = {"x": Float(0, 1), "y": Float(0, 1)}
BEFORE, AFTER = np.array([0.2, 0.3]), np.array([0.8, 0.7])


@dataclass(frozen=True)
class World:
    """How far a point is above the best one in a round, and the noise: Gaussian, or Student-t."""

    regret: Callable[[np.ndarray, int], float]
    noise: float = 0.05
    dof: float = math.inf

    def drawn(self, rng: np.random.Generator) -> float:
        """Noise of one measurement."""
        return self.noise * float(rng.standard_normal() if math.isinf(self.dof) else rng.standard_t(self.dof))


def around(best: Callable[[int], np.ndarray]) -> Callable[[np.ndarray, int], float]:
    """The squared distance from the best point of the round."""
    return lambda point, round: float(((point - best(round)) ** 2).sum())


def branin(point: np.ndarray, _: int) -> float:
    """Branin's function below its maximum."""
    return 1.04739 - float(problems.branin(point[None])[0])


JUMP = around(lambda round: BEFORE if round < ROUNDS // 2 else AFTER)
WORLDS = {
    "still": World(around(lambda round: BEFORE)),
    "still, t(3)": World(around(lambda round: BEFORE), dof=3),
    "still, branin": World(branin),
    "jump": World(JUMP),
    "jump, t(3)": World(JUMP, dof=3),
    "motion": World(around(lambda round: BEFORE + round / ROUNDS * (AFTER - BEFORE))),
}


class Run(NamedTuple):
    """What a run cost."""

    regret: float
    late: float
    recovered: float
    seconds: float


def played(world: World, drift: str | None, seed: int) -> Run:
    """One run."""
    opt, rng, regret, lost = Optimizer(SQUARE, rng=seed, drift=drift), np.random.default_rng(seed), [], -1
    begun = time.process_time()
    for round in range(ROUNDS):
        trial = opt.ask()
        regret.append(world.regret(np.array(list(trial.params.values())), round))
        opt.tell(trial, regret[-1] + world.drawn(rng))
        if round >= ROUNDS // 2 and world.regret is JUMP:
            best = np.array(list(opt.best().params.values()))
            lost = round if np.linalg.norm(best - AFTER) > np.linalg.norm(best - BEFORE) else lost
    recovered = lost + 2 - ROUNDS // 2 if lost < ROUNDS - 1 else math.inf
    return Run(float(np.mean(regret)), float(np.mean(regret[-ROUNDS // 4 :])), recovered, time.process_time() - begun)


def cell(runs: list[Run], is_jump: bool) -> str:
    """The runs of one world in words."""
    after = sorted(run.recovered for run in runs)
    shown = ", ".join("-" if math.isinf(each) else f"{each:.0f}" for each in after) if is_jump else ""
    means = np.mean([run[:2] for run in runs], axis=0)
    return f"{means[0]:.4f}, {means[1]:.4f}{f' ({shown})' if shown else ''}; {np.mean([r.seconds for r in runs]):.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    given = parser.parse_args()
    print("| world | drift=None | drift='auto' | questions that are the same |\n|---|---|---|---|", flush=True)
    with threadpool_limits(1):
        for name in given.worlds:
            world, seeds = WORLDS[name], range(given.seeds)
            plain, auto = ([played(world, drift, seed) for seed in seeds] for drift in (None, "auto"))
            same = sum(a.regret == b.regret for a, b in zip(plain, auto, strict=True))
            is_jump = world.regret is JUMP
            print(
                f"| {name} | {cell(plain, is_jump)} | {cell(auto, is_jump)} | in {same} of {given.seeds} runs |",
                flush=True,
            )


if __name__ == "__main__":
    main()
