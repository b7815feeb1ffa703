"""Regret of REDS, BPE and GP-ThreDS: ``python -m benchmarks.shrinking_regret --folder pictures``.

1. Figure 1 of the REDS paper, with IGP-UCB and AMM-UCB as baselines. Regret is against the best of the arms, not the
   maximum over the cube, which lies about 0.001, 0.06 and 0.25 higher.
2. How often the best arm has been eliminated at the end, with the theory's widths and with the experiments'.
3. REDS with truncated rewards against plain REDS under Student-t noise, on the same problems and noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.domain_shrinking import HORIZON, PAPER, as_in_the_paper
from noregret import Constant, SquaredExponential, algorithms, run
from noregret.algorithms.heavy_tails import Tail, TGPLevel
from noregret.belief.posterior import Floats
from noregret.decision.loops import Algorithm
from noregret.problems import Gaussian, Payoff, Problem, StudentT, rkhs, rkhs_sum, standard

KERNEL = SquaredExponential(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the picture goes; none without it")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--part", choices=["figure", "survival", "tails"], help="one of the three studies")
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    if options.part in (None, "figure"):
        figure(options.folder, options.runs, options.jobs)
    if options.part in (None, "survival"):
        survival(options.runs, options.jobs)
    if options.part in (None, "tails"):
        tails(5 * options.runs, options.jobs)


def contenders(function: Any, problem: Problem) -> dict[str, Algorithm]:
    """The three algorithms of the paper, GP-ThreDS also with a width of 4, and two baselines."""
    _, _, bounds, points, _ = PAPER[function]
    wide = algorithms.gp_threds(
        problem.kernel, bounds=bounds, points_per_cell=points, constants="experiment", scale=4.0, horizon=HORIZON
    )
    return as_in_the_paper(function, problem) | {
        "GP-ThreDS, width 4": wide,
        "IGP-UCB": algorithms.igp_ucb(problem.kernel, noise=0.2, constants="experiment"),
        "AMM-UCB": algorithms.amm_ucb(problem.kernel, noise=0.2),
        "random": algorithms.random(problem.kernel, noise=0.2),
    }


def figure(folder: Path | None, runs: int, jobs: int) -> None:
    """Cumulative regret against t: mean and standard deviation."""
    print(f"cumulative regret at T = {HORIZON} against the best arm, mean +- sd of {runs} runs")
    picture, axes = plt.subplots(1, 3, figsize=(16, 5))
    for axis, function in zip(axes, PAPER, strict=True):
        print(f"  {function.__name__}")
        for name in contenders(function, standard(function, points=10, rng=0)):
            curves = np.array(Parallel(jobs)(delayed(regret)(function, name, seed) for seed in range(runs)))
            middle, spread = curves.mean(axis=0), curves.std(axis=0)
            print(f"    {name:20}{middle[-1]:9.1f} +- {spread[-1]:.1f}", flush=True)
            if name != "random":
                (line,) = axis.plot(np.arange(1, HORIZON + 1), middle, label=name)
                low, high = middle - spread, middle + spread
                axis.fill_between(np.arange(1, HORIZON + 1), low, high, color=line.get_color(), alpha=0.2, lw=0)
        axis.set(title=function.__name__, xlabel="t", ylabel="cumulative regret")
        axis.legend(fontsize=8)
    if folder:
        picture.tight_layout()
        picture.savefig(folder / "domain_shrinking_regret.png", dpi=110)
    plt.close(picture)


def regret(function: Any, name: str, seed: int) -> Floats:
    """Cumulative regret of one run, (T,)."""
    with threadpool_limits(1, user_api="blas"):
        problem = standard(function, rng=seed)
        return run(contenders(function, problem)[name], problem, HORIZON, rng=seed).cumulative_regret


def survival(runs: int, jobs: int) -> None:
    """Runs that lose the best arm, and how many arms are left."""
    print(f"runs in which the best arm is eliminated by T = {HORIZON}")
    for function in PAPER:
        for name in ("BPE", "REDS"):
            ends = Parallel(jobs)(delayed(paper_end)(function, name, seed) for seed in range(runs))
            show_survival(f"{name} on {function.__name__}, width of the experiments", ends)
    for name, build in theory().items():
        ends = Parallel(jobs)(delayed(rkhs_end)(build, seed) for seed in range(10 * runs))
        show_survival(f"{name} on 100 arms of known norm", ends)


def theory() -> dict[str, Callable[..., Algorithm]]:
    """Algorithms for functions of known norm, all at delta = 0.1."""
    return {
        "REDS, theory's width": lambda **facts: algorithms.reds(KERNEL, horizon=HORIZON, **facts),
        "REDS, theory's without slack": lambda **facts: algorithms.reds(KERNEL, horizon=HORIZON, slack=0.0, **facts),
        "BPE, theory's width": lambda **facts: algorithms.bpe(KERNEL, horizon=HORIZON, **facts),
        "REDS, width of the experiments": lambda **facts: algorithms.reds(KERNEL, constants="experiment"),
    }


def paper_end(function: Any, name: str, seed: int) -> tuple[bool, int]:
    problem = standard(function, rng=seed)
    return end(as_in_the_paper(function, problem)[name], problem, seed)


def rkhs_end(build: Callable[..., Algorithm], seed: int) -> tuple[bool, int]:
    problem = rkhs(KERNEL, rng=seed)
    return end(build(norm=problem.norm, noise=problem.facts["noise"]), problem, seed)


def end(algorithm: Algorithm, problem: Problem, seed: int) -> tuple[bool, int]:
    """Test whether the best arm is gone after the last whole epoch, and number of arms left."""
    active = list(actives(algorithm, problem, seed))[-1]
    return int(np.argmax(problem.means)) not in active, len(active)


def actives(algorithm: Algorithm, problem: Problem, seed: int) -> Iterator[Any]:
    """The arms in play in each epoch of a run."""
    policy, world = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    with threadpool_limits(1, user_api="blas"):
        play = algorithm.play(problem.arms, policy)
        pull, done = next(play), 0
        while done < HORIZON:
            yield pull.active
            done += len(pull.arms)
            pull = play.send((pull.arms, problem.rewards(pull.arms, world)))


def show_survival(title: str, ends: list[tuple[bool, int]]) -> None:
    lost, left = np.transpose(ends)
    print(f"  {title:55}{lost.sum():4} of {len(ends):4}, arms left {np.median(left):.0f} (median)", flush=True)


def tails(runs: int, jobs: int, horizon: int = 2000) -> None:
    """Paired regret with and without truncation."""
    print(f"REDS (width 1) under Student-t noise, T = {horizon}, {runs} paired runs: mean regret +- standard error")
    for payoff in (StudentT(1.2, 0.3), StudentT(1.5), StudentT(1.5, 0.3), StudentT(2.1), StudentT(3), Gaussian(0.5)):
        results = np.array(Parallel(jobs)(delayed(paired)(payoff, horizon, seed) for seed in range(runs)))
        print(f"  {payoff}")
        for name, column in zip(LEVELS, results.T, strict=True):
            gain = results[:, 0] - column
            error, wins, losses = gain.std() / np.sqrt(runs), (gain > 0).sum(), (gain < 0).sum()
            print(
                f"    {name:22}{column.mean():8.1f} +- {column.std() / np.sqrt(runs):5.1f}"
                f"   less than plain by {gain.mean():7.1f} +- {error:5.1f}, better in {wins}, worse in {losses}",
                flush=True,
            )


LEVELS: dict[str, Callable[[Problem], Any]] = {
    "plain": lambda problem: None,
    "at 2 max |f|": lambda problem: Constant(2.0 * float(np.abs(problem.means).max())),
    "at 4 max |f|": lambda problem: Constant(4.0 * float(np.abs(problem.means).max())),
    "at TGP-UCB's level": lambda problem: TGPLevel(Tail(problem.facts["moment"], problem.facts["alpha"])),
}


def paired(payoff: Payoff, horizon: int, seed: int) -> list[float]:
    """Regret at every level of truncation, on one problem and the same noise."""
    problem = rkhs_sum(KERNEL, payoff=payoff, rng=seed)
    with threadpool_limits(1, user_api="blas"):
        return [
            float(run(truncated(level(problem)), problem, horizon, rng=seed).cumulative_regret[-1])
            for level in LEVELS.values()
        ]


def truncated(level: Any) -> Algorithm:
    return algorithms.reds(KERNEL, constants="experiment", truncation=level)


if __name__ == "__main__":
    main()
