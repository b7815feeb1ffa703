"""Dynamic regret of algorithms that forget, as Markdown: ``python -m benchmarks.drift``.

Four problems that change and one that does not, all draws from a squared exponential kernel on 50 arms of [0, 1], which
the algorithms know, as they know noise and norm.

- still: nothing changes.
- motion: the function slides past the arms, by the whole range in all rounds.
- jump: another function from the middle on.
- day and night: from one function to another and back, every 200 rounds.
- walk: a random walk as large as the function itself, 1% of the variance new in every round.

``--memory M`` sets how long those that forget remember: window and period M, rate 2 / M, discount 1 - 2 / M. The runs
of all rows meet the same functions and noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from noregret import algorithms, problems, run
from noregret.decision.loops import Algorithm

SCALES = (1.0, 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=600)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--memory", type=int, nargs="+", default=[200, 50])
    options = parser.parse_args()
    for memory in options.memory:
        for scale in SCALES:
            print(f"\nmemory {memory}, scale={scale:g}, T = {options.horizon}, {options.runs} runs\n")
            print("| | " + " | ".join(WORLDS) + " |")
            print("|---" * (1 + len(WORLDS)) + "|")
            for name in ALGORITHMS:
                cells = [cell(world, name, memory, scale, options) for world in WORLDS]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def cell(world: str, name: str, memory: int, scale: float, options: argparse.Namespace) -> str:
    """Mean dynamic regret of all rounds, and the least and most of the runs."""
    todo = (delayed(outcome)(world, name, memory, scale, seed, options.horizon) for seed in range(options.runs))
    regrets = np.array(Parallel(options.jobs)(todo))
    return f"{regrets.mean():.0f} ({regrets.min():.0f} to {regrets.max():.0f})"


def outcome(world: str, name: str, memory: int, scale: float, seed: int, horizon: int) -> float:
    """Cumulative regret of one run."""
    problem = WORLDS[world](horizon, seed)
    algorithm = ALGORITHMS[name](problem, memory, scale)
    with threadpool_limits(1, user_api="blas"):
        return float(run(algorithm, problem, horizon, rng=seed).cumulative_regret[-1])


def still(horizon: int, seed: int) -> problems.Changing:
    """The first function of the jump, without the jump."""
    return problems.jump(rounds=1, rng=seed)


WORLDS: dict[str, Callable[[int, int], problems.Changing]] = {
    "still": still,
    "motion": lambda horizon, seed: problems.motion(rounds=horizon, rng=seed),
    "jump": lambda horizon, seed: problems.jump(rounds=horizon, rng=seed),
    "day and night": lambda horizon, seed: problems.day_and_night(rounds=horizon, rng=seed),
    "walk": lambda horizon, seed: problems.walk(rounds=horizon, rng=seed),
}


def facts(problem: Any, scale: float) -> dict[str, float]:
    return {"noise": problem.facts["noise"], "norm": problem.facts["norm"], "scale": scale}


ALGORITHMS: dict[str, Callable[[Any, int, float], Algorithm]] = {
    "AY-UCB (remembers all)": lambda p, memory, scale: algorithms.ay_ucb(p.kernel, **facts(p, scale)),
    "TV-GP-UCB": lambda p, memory, scale: algorithms.tv_gp_ucb(
        p.kernel, rate=2 / memory, noise=p.facts["noise"], scale=scale
    ),
    "SW-GP-UCB": lambda p, memory, scale: algorithms.sw_gp_ucb(p.kernel, window=memory, **facts(p, scale)),
    "R-GP-UCB": lambda p, memory, scale: algorithms.r_gp_ucb(p.kernel, period=memory, **facts(p, scale)),
    "WGP-UCB": lambda p, memory, scale: algorithms.wgp_ucb(p.kernel, discount=1 - 2 / memory, **facts(p, scale)),
    "random": lambda p, memory, scale: algorithms.random(p.kernel, noise=p.facts["noise"]),
}


if __name__ == "__main__":
    main()
