"""Regret when constants are unknown, as Markdown: ``python -m benchmarks.unknown_constants``.

- valley: a broad hill, and a narrow higher one in a broad valley. A lengthscale four times too long hides the narrow
  one.
- rough and smooth: sums of kernels with lengthscale 0.03 and 0.1.
- corrupted: a sum of kernels, 3% of whose rewards are off by 30 either way.

The oracle knows lengthscale and norm. The ladders start from a lengthscale four times too long, and from a norm that
gives the right rung the oracle's; with norms, from a quarter of that norm. A run is stuck if its last 200 rounds have a
mean regret above 0.2, half the difference of the hills. The runs of all rows have the same functions and noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from noregret import SquaredExponential, algorithms, run
from noregret.belief.posterior import Floats, Rng
from noregret.decision.loops import Algorithm
from noregret.experiments.figures.beyond import valley
from noregret.problems import Gaussian, Problem
from noregret.problems.problem import rkhs_norm

ARMS = np.linspace(0, 1, 200)[:, None]
LAST, STUCK = 200, 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--part", choices=PROBLEMS, help="one of the four")
    options = parser.parse_args()
    for part in [options.part] if options.part else PROBLEMS:
        names = CORRUPTED if part == "corrupted" else UNKNOWN
        scales = (1.0, 0.2)
        print(f"\n{part}, T = {options.horizon}, {options.runs} runs\n")
        print("| | " + " | ".join(f"scale={scale:g} | worst | stuck" for scale in scales) + " |")
        print("|---" * (1 + 3 * len(scales)) + "|")
        for name in names:
            cells = [cell(part, name, scale, options) for scale in scales]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def cell(part: str, name: str, scale: float, options: argparse.Namespace) -> str:
    """Mean and worst cumulative regret, and how many runs are stuck."""
    todo = (delayed(outcome)(part, name, scale, seed, options.horizon) for seed in range(options.runs))
    regrets, stuck = np.transpose(Parallel(options.jobs)(todo))
    return f"{regrets.mean():.0f} | {regrets.max():.0f} | {int(stuck.sum())}"


def outcome(part: str, name: str, scale: float, seed: int, horizon: int) -> tuple[float, bool]:
    """Cumulative regret of one run, and whether it is stuck."""
    problem = PROBLEMS[part](seed)
    build = (CORRUPTED if part == "corrupted" else UNKNOWN)[name]
    with threadpool_limits(1, user_api="blas"):
        trace = run(build(problem, scale), problem, horizon, rng=seed)
    return float(trace.cumulative_regret[-1]), bool(trace.regret[-LAST:].mean() > STUCK)


def rough(seed: int) -> Problem:
    return problem_of("rough", hills(seed, 0.03), 0.03)


def smooth(seed: int) -> Problem:
    return problem_of("smooth", hills(seed, 0.1), 0.1)


def corrupted(seed: int) -> Problem:
    clean = problem_of("clean", hills(seed, 0.1), 0.1, noise=0.1)
    return Spiked("corrupted", ARMS, clean.means, clean.kernel, clean.payoff, clean.norm)


def hills(seed: int, lengthscale: float) -> Floats:
    """A sum of 30 kernels with coefficients uniform on [-1, 1], scaled so that the best arm is 1 above the mean arm."""
    rng = np.random.default_rng(seed)
    weights, centres = rng.uniform(-1, 1, 30), rng.random(30)
    means = np.sum(
        [weight * bump(centre, lengthscale) for weight, centre in zip(weights, centres, strict=True)], axis=0
    )
    return np.asarray(means / (means.max() - means.mean()))


@dataclass(frozen=True, eq=False)
class Spiked(Problem):
    """A problem some of whose rewards are corrupted."""

    share: float = 0.03
    size: float = 30.0

    def rewards(self, arms: Any, rng: Rng) -> Floats:
        """Rewards as they come, spikes among them."""
        clean = super().rewards(arms, rng)
        spikes = rng.choice([-self.size, self.size], clean.shape) * (rng.random(clean.shape) < self.share)
        return np.asarray(clean + spikes)


def bump(centre: float, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((ARMS[:, 0] - centre) / width) ** 2))


def problem_of(name: str, means: Floats, lengthscale: float, noise: float = 0.03) -> Problem:
    kernel = SquaredExponential(lengthscale)
    return Problem(name, ARMS, means, kernel, Gaussian(noise), rkhs_norm(kernel(ARMS, ARMS), means))


def facts(problem: Problem, scale: float, share: float = 1.0) -> dict[str, float]:
    """Noise, scale and this share of the norm."""
    return {"noise": problem.facts["noise"], "scale": scale, "norm": share * float(problem.norm or 0)}


def igp(factor: float) -> Callable[[Problem, float], Algorithm]:
    """IGP-UCB with ridge R^2, the width of the rungs, and a lengthscale ``factor`` times too long."""

    def build(problem: Problem, scale: float) -> Algorithm:
        known = facts(problem, scale)
        return algorithms.igp_ucb(longer(problem, factor), ridge=known["noise"] ** 2, **known)

    return build


def longer(problem: Any, factor: float = 4.0) -> SquaredExponential:
    return SquaredExponential(factor * problem.kernel.lengthscale)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "valley": lambda seed: valley(rng=seed),
    "rough": rough,
    "smooth": smooth,
    "corrupted": corrupted,
}

UNKNOWN: dict[str, Callable[[Problem, float], Algorithm]] = {
    "IGP-UCB, all known (the oracle)": igp(1.0),
    "IGP-UCB, 4 times too long": igp(4.0),
    "LB-GP-UCB": lambda p, scale: algorithms.lb_gp_ucb(longer(p), **facts(p, scale, 1 / 2)),
    "LB-GP-UCB with norms": lambda p, scale: algorithms.lb_gp_ucb(longer(p), norms=True, **facts(p, scale, 1 / 8)),
    "A-GP-UCB": lambda p, scale: algorithms.a_gp_ucb(longer(p), **facts(p, scale, 1 / 4)),
    "random": lambda p, scale: algorithms.random(p.kernel, noise=p.facts["noise"]),
}

CORRUPTED: dict[str, Callable[[Problem, float], Algorithm]] = {
    "AY-UCB (least squares)": lambda p, scale: algorithms.ay_ucb(p.kernel, **facts(p, scale)),
    "RCGP-UCB": lambda p, scale: algorithms.rcgp_ucb(p.kernel, **facts(p, scale)),
    "TGP-UCB": lambda p, scale: algorithms.tgp_ucb(
        p.kernel, moment=float((p.means**2).max()) + 0.01 + 0.03 * 900, norm=float(p.norm or 0), scale=scale
    ),
    "random": lambda p, scale: algorithms.random(p.kernel, noise=p.facts["noise"]),
}


if __name__ == "__main__":
    main()
