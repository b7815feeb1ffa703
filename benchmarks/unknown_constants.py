"""Regret when constants are unknown, as Markdown: ``python -m benchmarks.unknown_constants``.

1. valley: a broad hill, and a narrow higher one in a broad valley. A lengthscale four times too long hides the narrow
   one. ``ordinary``: sums of kernels with the true lengthscale, where it does no harm. The oracle knows lengthscale and
   norm; the ladders start from the lengthscale that is four times too long, and with a norm from which the right rung
   gets the oracle's; with norms, from a quarter of that norm.
2. corrupted: a share of the rewards is off by 30 either way.

A run is stuck if its last 200 rounds have a mean regret above 0.2, half of what the broad hill is lower. The runs of
all rows meet the same functions and noise.
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
from noregret.problems import Gaussian, Problem
from noregret.problems.problem import rkhs_norm

ARMS = np.linspace(0, 1, 200)[:, None]
TRUE, LONG = 0.03, 0.12
LAST, STUCK = 200, 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--part", choices=["valley", "ordinary", "corrupted"], help="one of the three")
    options = parser.parse_args()
    for part in [options.part] if options.part else ["valley", "ordinary", "corrupted"]:
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
    problem = {"valley": valley, "ordinary": ordinary, "corrupted": corrupted}[part](seed)
    build = (CORRUPTED if part == "corrupted" else UNKNOWN)[name]
    with threadpool_limits(1, user_api="blas"):
        trace = run(build(problem, scale), problem, horizon, rng=seed)
    return float(trace.cumulative_regret[-1]), bool(trace.regret[-LAST:].mean() > STUCK)


def valley(seed: int) -> Problem:
    """A hill of height 0.6, 4 times as broad as one of height 1 which stands in a valley as broad."""
    rng = np.random.default_rng(seed)
    broad, narrow = rng.uniform(0.1, 0.3), rng.uniform(0.65, 0.9)
    means = 0.6 * bump(broad, LONG) - bump(narrow, LONG) + 2 * bump(narrow, TRUE)
    return problem_of("valley", means if rng.random() < 0.5 else means[::-1])


def ordinary(seed: int) -> Problem:
    """A sum of 30 kernels with coefficients uniform on [-1, 1], scaled so that the best arm is 1 above the mean arm."""
    rng = np.random.default_rng(seed)
    means = sum(
        weight * bump(centre, TRUE) for weight, centre in zip(rng.uniform(-1, 1, 30), rng.random(30), strict=True)
    )
    return problem_of("ordinary", means / (means.max() - means.mean()))


def corrupted(seed: int) -> Problem:
    """A sum of kernels with lengthscale 0.12 under noise of deviation 0.1, 3% of the rewards off by 30 either way."""
    rng = np.random.default_rng(seed)
    means = sum(
        weight * bump(centre, LONG) for weight, centre in zip(rng.uniform(-1, 1, 30), rng.random(30), strict=True)
    )
    means = means / (means.max() - means.mean())
    kernel = SquaredExponential(LONG)
    return Spiked("corrupted", ARMS, means, kernel, Gaussian(0.1), rkhs_norm(kernel(ARMS, ARMS), means))


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


def problem_of(name: str, means: Floats) -> Problem:
    kernel = SquaredExponential(TRUE)
    return Problem(name, ARMS, means, kernel, Gaussian(0.03), rkhs_norm(kernel(ARMS, ARMS), means))


def facts(problem: Problem, scale: float, share: float = 1.0) -> dict[str, float]:
    """Noise, scale and this share of the norm."""
    return {"noise": problem.facts["noise"], "scale": scale, "norm": share * float(problem.norm or 0)}


def igp(lengthscale: float) -> Callable[[Problem, float], Algorithm]:
    """IGP-UCB with ridge R^2, the width of the rungs."""

    def build(problem: Problem, scale: float) -> Algorithm:
        known = facts(problem, scale)
        return algorithms.igp_ucb(SquaredExponential(lengthscale), ridge=known["noise"] ** 2, **known)

    return build


UNKNOWN: dict[str, Callable[[Problem, float], Algorithm]] = {
    "IGP-UCB, all known (the oracle)": igp(TRUE),
    "IGP-UCB, 4 times too long": igp(LONG),
    "LB-GP-UCB": lambda p, scale: algorithms.lb_gp_ucb(SquaredExponential(LONG), **facts(p, scale, 1 / 2)),
    "LB-GP-UCB with norms": lambda p, scale: algorithms.lb_gp_ucb(
        SquaredExponential(LONG), norms=True, **facts(p, scale, 1 / 8)
    ),
    "A-GP-UCB": lambda p, scale: algorithms.a_gp_ucb(SquaredExponential(LONG), **facts(p, scale, 1 / 4)),
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
