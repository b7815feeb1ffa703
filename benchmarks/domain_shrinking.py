"""Speed of REDS, BPE and GP-ThreDS on the REDS paper's experiment: ``python -m benchmarks.domain_shrinking``.

Table 1 of the paper with our times beside it, in the default environment, and ratios against plain references that do
the same arithmetic in the same process on one BLAS thread, since machines differ and are noisy. Then how the times grow
with the number of arms.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

from noregret import SquaredExponential, algorithms, run
from noregret.belief.posterior import Floats, Ints, Rng
from noregret.decision.loops import Algorithm
from noregret.problems import Problem, branin, hartmann4, hartmann6, standard

HORIZON, RIDGE = 1000, 0.2
PAPER = {  # seconds, and first epoch, bounds, points per cell, width of BPE
    branin: ({"BPE": 29.84, "GP-ThreDS": 4.37, "REDS": 0.32}, 50, (0.5, 1.2), 100, 1.0),
    hartmann4: ({"BPE": 38.45, "GP-ThreDS": 7.59, "REDS": 0.47}, 100, (0.0, 3.8), 200, 0.75),
    hartmann6: ({"BPE": 119.71, "GP-ThreDS": 19.33, "REDS": 1.19}, 100, (0.0, 3.5), 500, 0.75),
}
TARGETS = {
    branin: {"BPE": 0.2, "GP-ThreDS": 0.3, "REDS": 0.08},
    hartmann4: {"BPE": 0.3, "GP-ThreDS": 0.5, "REDS": 0.1},
    hartmann6: {"BPE": 0.9, "GP-ThreDS": 1.0, "REDS": 0.25},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    table(options.runs)
    with threadpool_limits(1, user_api="blas"):
        references(options.runs)
        more_arms()


def as_in_the_paper(function: Any, problem: Problem) -> dict[str, Algorithm]:
    """The three algorithms as the paper's appendix C sets them up; BPE has REDS's epochs."""
    _, first, bounds, points, width = PAPER[function]
    common: dict[str, Any] = {"constants": "experiment", "horizon": HORIZON}
    return {
        "BPE": algorithms.bpe(problem.kernel, first_epoch=first, scale=width, **common),
        "GP-ThreDS": algorithms.gp_threds(problem.kernel, bounds=bounds, points_per_cell=points, **common),
        "REDS": algorithms.reds(problem.kernel, first_epoch=first, **common),
    }


def table(runs: int) -> None:
    """Seconds per run, ours and the paper's."""
    print(f"T = {HORIZON}, {runs} runs; seconds per run by the clock (at most), of the processor, and the paper's")
    for function, (paper, *_) in PAPER.items():
        print(f"  {function.__name__}")
        ours = {}
        for name, theirs in paper.items():
            clock, processor = np.transpose([one(function, name, seed) for seed in range(runs)])
            ours[name], limit = clock.mean(), TARGETS[function][name]
            print(f"    {name:10}{clock.mean():8.3f} +- {clock.std():5.3f}  (at most {limit:4})", end="")
            print(f"{processor.mean():9.3f}{theirs:9.2f} = {theirs / clock.mean():4.0f} x ours", end="")
            print("" if clock.mean() <= limit else "   MISSED")
        for name in ("BPE", "GP-ThreDS"):
            ratio, theirs = ours[name] / ours["REDS"], paper[name] / paper["REDS"]
            print(f"    {name} / REDS: {ratio:.1f}, in the paper {theirs:.0f}")


def one(function: Any, name: str, seed: int) -> tuple[float, float]:
    """Seconds that one run takes the algorithm of this name: by the clock, and of processor time."""
    problem = standard(function, rng=seed)
    algorithm, start = as_in_the_paper(function, problem)[name], process_time()
    return run(algorithm, problem, HORIZON, rng=seed).seconds, process_time() - start


def references(runs: int) -> None:
    """The same plans and posteriors in a few plain lines, and BPE that recomputes everything at every step."""
    print("against plain references in the same process, one BLAS thread (best of runs)")
    for function, (_, first, *_) in PAPER.items():
        problem = standard(function, rng=0)
        ours = {name: min(one(function, name, 0)[0] for _ in range(runs)) for name in ("REDS", "BPE")}
        reds = min(timed(lambda: plain(problem, first, 1.0, draw)) for _ in range(runs))  # noqa: B023
        width = PAPER[function][4]
        bpe = timed(lambda: plain(problem, first, width, incremental))  # noqa: B023
        print(
            f"  {function.__name__}: REDS {ours['REDS'] / reds:.2f} x plain, BPE {ours['BPE'] / bpe:.2f} x plain",
            end="",
        )
        print(f" (plain {reds:.3f} s and {bpe:.3f} s: ratio {bpe / reds:.1f})")
    problem = standard(branin, rng=0)
    afresh = timed(lambda: plain(problem, 50, 1.0, refitted))
    print(f"  branin, BPE whose every step factorises and solves afresh: {afresh:.1f} s (the paper: 29.84 s)")


Design = Callable[[SquaredExponential, Floats, int, Rng], Ints]


def plain(problem: Problem, first: int, width: float, design: Design) -> Ints:
    """Elimination with fresh posteriors, in a plain implementation."""
    rng, kernel = np.random.default_rng(0), problem.kernel
    active, length, done = np.arange(len(problem.arms)), first, 0
    while done < HORIZON:
        plan = active[design(kernel, problem.arms[active], min(length, HORIZON - done), rng)]
        rewards, done = problem.rewards(plan, rng), done + len(plan)
        if len(plan) < length:
            break
        pulled = problem.arms[plan]
        factor = cho_factor(kernel(pulled, pulled) + RIDGE * np.eye(length), lower=True)
        cross = kernel(pulled, problem.arms[active])
        centre = cross.T @ cho_solve(factor, rewards)
        lifted = solve_triangular(factor[0], cross, lower=True)
        half = width * np.sqrt(1 - (lifted**2).sum(axis=0))
        active, length = active[centre + half >= (centre - half).max()], 2 * length
    return active


def draw(kernel: SquaredExponential, arms: Floats, count: int, rng: Rng) -> Ints:
    """Uniformly at random."""
    return rng.integers(len(arms), size=count)


def incremental(kernel: SquaredExponential, arms: Floats, count: int, rng: Rng) -> Ints:
    """The largest variance, all arms' updated by one row of a growing Cholesky factor at every step."""
    rows, variance, plan = np.empty((count, len(arms))), np.ones(len(arms)), []
    for step in range(count):
        arm = int(np.argmax(variance))
        column = kernel(arms[arm][None], arms)[0] - rows[:step, arm] @ rows[:step]
        rows[step] = column / math.sqrt(column[arm] + RIDGE)
        variance = variance - rows[step] ** 2
        plan.append(arm)
    return np.array(plan)


def refitted(kernel: SquaredExponential, arms: Floats, count: int, rng: Rng) -> Ints:
    """The largest variance, with a new factorisation and a new solve for all arms at every step."""
    plan = [0]
    while len(plan) < count:
        pulled = arms[plan]
        factor = np.linalg.cholesky(kernel(pulled, pulled) + RIDGE * np.eye(len(plan)))
        lifted = solve_triangular(factor, kernel(pulled, arms), lower=True)
        plan.append(int(np.argmin((lifted**2).sum(axis=0))))
    return np.array(plan)


def more_arms() -> None:
    """Hartmann-6 on more and more points; the width is so large that no arm is eliminated."""
    print("growth with the number of arms (Hartmann-6, nothing eliminated, processor seconds; 2 means linear)")
    for name, builder in (("REDS", algorithms.reds), ("BPE", algorithms.bpe)):
        seconds = [spent(builder, size) for size in (5_000, 10_000, 20_000, 40_000)]
        growth = " ".join(f"{b / a:.2f}" for a, b in pairwise(seconds))
        print(f"  {name:5}" + " ".join(f"{s:.3f}" for s in seconds) + f"   doubling: {growth}")


def spent(builder: Callable[..., Algorithm], points: int) -> float:
    """Processor time of the best of three runs."""
    problem, times = standard(hartmann6, points=points, rng=0), []
    algorithm = builder(problem.kernel, constants="experiment", scale=100.0, first_epoch=100)
    for _ in range(3):
        start = process_time()
        run(algorithm, problem, HORIZON, rng=0)
        times.append(process_time() - start)
    return min(times)


def timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    main()
