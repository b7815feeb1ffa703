"""Sketches, batches and repeated pulls: ``python -m benchmarks.sketching [speed accuracy regret curves million]``.

speed      2,000 arms and 1,500 rounds, 10,000 arms and 100,000 rounds, 100,000 arms and a million rounds
accuracy   Theorem 1 of the BKB paper: variances of the sketch against the exact ones, size of the dictionary
regret     regret against the exact Gaussian process with the same width, over seeds
curves     seconds and memory against rounds and against arms, as a picture (--folder)
million    100,000 arms and a million rounds alone
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from noregret import UCB, ExactGP, Sequential, SquaredExponential, algorithms, run
from noregret.algorithms.sketching import PlainBKBWidth, accuracy
from noregret.algorithms.tighter_widths import AYWidth
from noregret.belief.features.nystrom import Coins
from noregret.decision.loops import Play
from noregret.problems import Gaussian, Problem

NOISE, RIDGE = 0.1, 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["speed", "accuracy", "regret", "curves"])
    parser.add_argument("--folder", type=Path, default=Path("."), help="where the picture goes")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--one", help=argparse.SUPPRESS)  # one measurement, in a separate process
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(**json.loads(options.one))))
        return
    for part in options.parts:
        {"speed": speed, "accuracy": sketch_accuracy, "regret": regret, "curves": curves, "million": million}[part](
            options
        )


def problem(arms: int, dimension: int, lengthscale: float, seed: int = 0) -> Problem:
    """Uniform arms and a function of norm 1, a sum of 30 kernels."""
    rng, kernel = np.random.default_rng(seed), SquaredExponential(lengthscale)
    points, centres, weights = rng.random((arms, dimension)), rng.random((30, dimension)), rng.uniform(-1, 1, 30)
    norm = np.sqrt(weights @ kernel(centres, centres) @ weights)
    return Problem("sum of kernels", points, kernel(points, centres) @ weights / norm, kernel, Gaussian(NOISE), 1.0)


def build(name: str, world: Problem, **settings: Any) -> Any:
    """An algorithm by its name; the exact ones are ``ay-ucb`` and ``exact``, with BKB's experimental width."""
    if name == "exact":
        return Sequential(ExactGP(world.kernel, RIDGE), UCB(PlainBKBWidth(1.0, NOISE, 0.1)))
    if name in ("bkb", "bbkb", "mini-bkb"):
        settings = {"oversampling": 2.0, "constants": "experiment"} | settings
    return algorithms.NAMES[name](world.kernel, norm=1.0, noise=NOISE, ridge=RIDGE, **settings)


class Watched:
    """An algorithm whose pulls are counted and whose clock is read half-way."""

    def __init__(self, algorithm: Any) -> None:
        self.algorithm, self.pulls, self.belief = algorithm, 0, None
        self.seconds: list[float] = []
        self.rounds: list[int] = []

    def play(self, arms: Any, rng: Any) -> Play:
        play = self.algorithm.play(arms, rng)
        pull = next(play)
        while True:
            self.pulls, self.belief = self.pulls + 1, pull.belief
            self.seconds.append(process_time())
            self.rounds.append(pull.belief.rounds)
            pull = play.send((yield pull))


def measure(name: str, arms: int, rounds: int, dimension: int, lengthscale: float, **settings: Any) -> dict[str, Any]:
    """Seconds, memory, pulls and regret of one run, and the relative cost of its second half of rounds."""
    world = problem(arms, dimension, lengthscale)
    before = _megabytes("VmRSS")
    watched = Watched(build(name, world, **settings))
    trace = run(watched, world, rounds, rng=0)
    clock = np.interp([0.1 * rounds, 0.5 * rounds, rounds], watched.rounds, watched.seconds)
    return {
        "seconds": trace.seconds,
        "late": (clock[2] - clock[1]) / max((clock[1] - clock[0]) * 5 / 4, 1e-9),
        "megabytes": _megabytes("VmHWM"),
        "own": _megabytes("VmHWM") - before,
        "pulls": watched.pulls,
        "rank": watched.belief.rank,
        "pulled": len(watched.belief.pulled),
        "regret": trace.cumulative_regret[-1],
    }


def alone(threads: int | None = None, **settings: Any) -> dict[str, Any]:
    """The same in a separate process, with the default threads or a given number."""
    command = [sys.executable, "-m", "benchmarks.sketching", "--one", json.dumps(settings)]
    limit = {} if threads is None else {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | limit)
    return dict(json.loads(done.stdout))


def speed(options: argparse.Namespace) -> None:
    print("2,000 arms, 1,500 rounds, SE l = 0.2 in 2-d, ridge 0.01, one thread")
    small = {"arms": 2_000, "rounds": 1_500, "dimension": 2, "lengthscale": 0.2}
    against(
        alone(1, name="exact", **small),
        ("bkb", {}, "at most 5 x exact, and 3 s"),
        ("bkb", {"coins": "fresh"}, ""),
        ("bbkb", {}, "at most 2 s"),
        ("mini-bkb", {}, ""),
        ("mini-gp-ucb", {}, ""),
        **small,
    )
    print("5,000 arms, 10,000 rounds, SE l = 0.3 in 2-d, ridge 0.01, one thread")
    long = {"arms": 5_000, "rounds": 10_000, "dimension": 2, "lengthscale": 0.3}
    against(alone(1, name="exact", **long), ("bkb", {}, "at most 1 x exact"), **long)
    print("10,000 arms, 30,000 rounds, SE l = 0.5 in 3-d, the theorem's width and oversampling")
    theory = {"constants": "theory", "oversampling": None, "horizon": 30_000}
    case = {"name": "bbkb", "arms": 10_000, "rounds": 30_000, "dimension": 3, "lengthscale": 0.5}
    show("bbkb, theory", alone(**case, **theory), "at most 60 s")
    print("10,000 arms, 100,000 rounds, SE in 3-d, growth 1.5")
    for name, lengthscale, target in (
        ("mini-gp-ucb", 0.5, "about 3 s"),
        ("mini-gp-ucb", 0.2, "about 45 s"),
        ("bbkb", 0.5, "at most 300 s"),
    ):
        case = {
            "name": name,
            "arms": 10_000,
            "rounds": 100_000,
            "dimension": 3,
            "lengthscale": lengthscale,
            "growth": 1.5,
        }
        show(f"{name}, l = {lengthscale}", alone(**case), target)
    million(options)


def against(exact: dict[str, Any], *cases: tuple[str, dict[str, Any], str], **setting: Any) -> None:
    """Show the exact posterior, and others in the same setting with their time as a multiple of its."""
    show("exact", exact)
    for name, settings, target in cases:
        result = alone(1, name=name, **setting, **settings)
        times = f"{result['seconds'] / exact['seconds']:.2f} x exact, {result['pulled']} arms pulled"
        show(" ".join([name, *settings.values()]), result, f"{times}; {target}" if target else times)


def million(options: argparse.Namespace) -> None:
    print("100,000 arms, 1,000,000 rounds, SE l = 0.5 in 3-d, growth 1.5")
    case = {
        "name": "mini-gp-ucb",
        "arms": 100_000,
        "rounds": 1_000_000,
        "dimension": 3,
        "lengthscale": 0.5,
        "growth": 1.5,
    }
    show("mini-gp-ucb", alone(**case), "about 10 s, under 1,500 MB")


def show(name: str, result: dict[str, Any], target: str = "") -> None:
    print(
        f"  {name:22s} {result['seconds']:8.2f} s {result['megabytes']:6.0f} MB {result['pulls']:7d} choices "
        f"{result['rank']:5d} features, regret {result['regret']:8.1f}, second half {result['late']:.2f} x   {target}",
        flush=True,
    )


def sketch_accuracy(options: argparse.Namespace) -> None:
    """Thm 1: s^2 / a <= sketched s^2 <= a s^2 on all arms at all rounds, and the dictionary's size."""
    a = accuracy(0.5)
    print(f"Theorem 1 (a = {a:g}), 200 arms in 1-d, 150 rounds, {options.seeds} runs")
    print("  coins     q  smallest ratio  largest ratio  runs within a   dictionary  distinct arms  bound")
    for coins, q in product(("fresh", "kept"), (2, 3, 5, 10)):
        rows = [_theorem(q, coins, seed) for seed in range(options.seeds)]
        low, high, size, distinct, bound = np.array(rows).T
        within = np.mean((low >= 1 / a) & (high <= a))
        print(
            f"  {coins:5s} {q:5d} {low.min():15.5f} {high.max():14.5f} {within:14.0%} {size.mean():12.1f} "
            f"{distinct.mean():14.1f} {bound.mean():8.0f}",
            flush=True,
        )


def _theorem(q: float, coins: Coins, seed: int) -> tuple[float, ...]:
    world, stream = problem(200, 1, 0.2, seed), np.random.default_rng(seed)
    algorithm = algorithms.bkb(world.kernel, noise=NOISE, ridge=RIDGE, oversampling=q, coins=coins, scale=0.3)
    play, exact = (
        algorithm.play(world.arms, np.random.default_rng(seed)),
        ExactGP(world.kernel, RIDGE).prior(world.arms),
    )
    pull, low, high = next(play), np.inf, 0.0
    for _ in range(150):
        rewards = world.rewards(pull.arms, stream)
        exact.update(pull.arms, rewards)
        pull = play.send((pull.arms, rewards))
        ratio = pull.belief.std**2 / exact.std**2
        low, high = min(low, ratio.min()), max(high, ratio.max())
    bound = 3 * (1 + 1 / RIDGE) * accuracy(0.5) * q * exact.effective_dimension
    return low, high, len(pull.belief.dictionary), exact.rank, bound


def regret(options: argparse.Namespace) -> None:
    """Ratios of cumulative regret to the exact posterior with the same width, paired by seed."""
    print(f"regret against the exact posterior of the same width, 500 arms in 2-d, 1,000 rounds, {options.seeds} seeds")
    for name, settings in (
        ("bkb", {"oversampling": 2.0}),
        ("bkb", {"oversampling": 2.0, "coins": "fresh"}),
        ("bkb", {"oversampling": 5.0}),
        ("bbkb", {"oversampling": 5.0}),
        ("mini-bkb", {"oversampling": 5.0}),
        ("mini-gp-ucb", {}),
    ):
        ratios = [_ratio(name, settings, seed) for seed in range(options.seeds)]
        label = " ".join([name, *(f"{value}" for value in settings.values())])
        print(
            f"  {label:16s} {np.mean(ratios):5.2f} (sd {np.std(ratios, ddof=1):.2f}, "
            f"{np.min(ratios):.2f} to {np.max(ratios):.2f})",
            flush=True,
        )


def _ratio(name: str, settings: dict[str, Any], seed: int) -> float:
    world = problem(500, 2, 0.2, seed)
    algorithm = build(name, world, **settings)
    width = AYWidth(1.0, NOISE, 0.1) if name == "mini-gp-ucb" else PlainBKBWidth(1.0, NOISE, 0.1)
    exact = Sequential(ExactGP(world.kernel, RIDGE), UCB(width))
    one, other = (run(each, world, 1_000, rng=seed).cumulative_regret[-1] for each in (algorithm, exact))
    return float(one / other)


def curves(options: argparse.Namespace) -> None:
    """Cost against rounds and against arms, each run in a separate process; a picture of both."""
    import matplotlib.pyplot as plt

    from noregret.experiments.plot import style

    names = ("exact", "bkb", "bbkb", "mini-gp-ucb")
    most = {"exact": 1e8, "bkb": 3e6, "bbkb": 1e8, "mini-gp-ucb": 1e12}  # rounds times arms that a minute allows
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharex="col", layout="constrained")
    cases = {
        "rounds": [{"arms": 1_000, "rounds": n} for n in (300, 1_000, 3_000, 10_000, 30_000, 100_000)],
        "arms": [{"arms": n, "rounds": 2_000} for n in (300, 1_000, 3_000, 10_000, 30_000, 100_000)],
    }
    for column, (axis, points) in enumerate(cases.items()):
        for name in names:
            fitting = [point for point in points if point["arms"] * point["rounds"] <= most[name]]
            results = [alone(name=name, dimension=2, lengthscale=0.3, **point) for point in fitting]
            colour, line = style("ay-ucb" if name == "exact" else name)
            for row, quantity in enumerate(("seconds", "own")):
                values = [max(result[quantity], 1e-2) for result in results]
                axes[row, column].loglog(
                    [p[axis] for p in fitting], values, color=colour, ls=line, marker="o", ms=3, label=name
                )
            print(
                axis,
                name,
                [(p[axis], round(r["seconds"], 2), round(r["own"])) for p, r in zip(fitting, results, strict=True)],
            )
        axes[1, column].set_xlabel(axis + (" (1,000 arms)" if axis == "rounds" else " (2,000 rounds)"))
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("memory of the run, MB")
    axes[0, 1].legend(frameon=False)
    for panel in axes.flat:
        panel.grid(alpha=0.3)
    figure.savefig(options.folder / "cost_curves.svg")


def _megabytes(kind: str) -> float:
    """Memory of this process: ``VmHWM``, the most it has had, or ``VmRSS``, what it has now (Linux)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[kind].split()[0]) / 1024


if __name__ == "__main__":
    main()
