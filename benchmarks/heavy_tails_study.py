"""Regret, coverage and the effect of truncation under heavy tails: ``python -m benchmarks.heavy_tails_study``.

The heavy-tails paper's synthetic experiments (Fig. 1 a, b, c and f) and a harsher one, over a sweep of the factor
``scale`` on the noise part of the widths. Finished trials are kept in ``--out`` and not run again, so the study can be
stopped, continued and extended; its tables are printed and its pictures drawn there too. Algorithms that cost more per
round (ATA) get ``--dear`` trials, the others ``--trials``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from noregret import UCB, ExactGP, Kernel, Matern, Sequential, SquaredExponential, Trace, algorithms, plot, problems
from noregret.belief.posterior import Floats, Posterior
from noregret.decision.loops import Algorithm
from noregret.experiments.trials import Trial, children, play_all
from noregret.problems import Payoff, Problem

SE, MATERN = SquaredExponential(0.2), Matern(2.5, 0.2)
SCALES: dict[str, dict[str, Any]] = {
    "theory": {"constants": "theory", "scale": 1.0},
    **{f"{scale:g}": {"constants": "experiment", "scale": scale} for scale in (1.0, 0.1, 0.01)},
}


@dataclass(frozen=True)
class Panel:
    """One of the experiments."""

    title: str
    kernel: Kernel
    payoff: Payoff
    coefficients: tuple[float, float] = (-1.0, 1.0)

    def problem(self, rng: Any) -> Problem:
        return problems.rkhs_sum(self.kernel, payoff=self.payoff, coefficients=self.coefficients, rng=rng)


PANELS = {
    "a": Panel("SE kernel, Student-t 3 noise", SE, problems.StudentT(3)),
    "b": Panel("SE kernel, Pareto 2 rewards", SE, problems.Pareto(2), (0.0, 1.0)),
    "c": Panel("Matern 2.5 kernel, Student-t 3 noise", MATERN, problems.StudentT(3)),
    "h": Panel("SE kernel, Student-t 1.5 noise (no variance)", SE, problems.StudentT(1.5)),
}
DEAR = ("ata-qff", "ata-nystrom")


def contender(name: str, settings: dict[str, Any], horizon: int, problem: Problem) -> Algorithm:
    """An algorithm as the paper sets it up: B = 1 in the experiments, the true norm in theory; ridge 1."""
    norm = problem.norm if settings["constants"] == "theory" else 1.0
    facts = {"norm": norm, "moment": problem.facts["moment"], "alpha": problem.facts["alpha"], **settings}
    kernel: Any = problem.kernel
    match name:
        case "tgp-ucb":
            return algorithms.tgp_ucb(kernel, **facts)
        case "ata-qff":
            return algorithms.ata_gp_ucb(kernel, features="qff", order=32, horizon=horizon, **facts)
        case "ata-nystrom":
            return algorithms.ata_gp_ucb(kernel, horizon=horizon, **facts)
        case "hvt-ucb":
            return algorithms.hvt_ucb(kernel, horizon=horizon, **facts)
        case "mom-gp-ucb":
            return algorithms.mom_gp_ucb(kernel, horizon=horizon, **facts)
    noise = problem.facts.get("noise", facts["moment"] ** (1 / (1 + facts["alpha"])))
    return algorithms.igp_ucb(kernel, norm=norm, noise=noise, ridge=1.0, gain="realised", scale=settings["scale"])


def names(panel: Panel) -> list[str]:
    fourier = ["ata-qff"] if panel.kernel == SE else []
    return ["tgp-ucb", *fourier, "ata-nystrom", "hvt-ucb", "mom-gp-ucb", "igp-ucb"]


def regret(options: argparse.Namespace) -> None:
    """Tables of time-average regret, one per panel and scale."""
    for key in options.panels:
        panel = PANELS[key]
        print(f"\n({key}) {panel.title}: regret / T after {options.rounds:,} rounds, and in the last quarter of them")
        for scale in options.scales:
            trials = list(chosen(key, scale, options))
            traces = play_all(trials, jobs=1)
            table(scale, traces)
            shown = {name.replace("ata-", "ata-gp-ucb-"): runs for name, runs in traces.items()}
            plot.regret(shown, average=True, log=True, path=options.out / f"{key}_{scale}.png")


def chosen(key: str, scale: str, options: argparse.Namespace) -> Iterator[Trial]:
    """The trials of one panel and scale; on trial i all algorithms meet the same f and the same noise."""
    panel, seeds = PANELS[key], children(np.random.SeedSequence(0), max(options.trials, options.dear))
    for name in names(panel):
        make = partial(contender, name, SCALES[scale], options.rounds)
        for i, seed in enumerate(seeds[: options.dear if name in DEAR else options.trials]):
            path = options.out / f"{key}_{scale}_{options.rounds}_{name}_{i:03d}"
            yield Trial(name, panel.problem, make, options.rounds, seed, path)


def table(scale: str, traces: dict[str, list[Trace]]) -> None:
    for name, runs in traces.items():
        average = np.array([run.regret.mean() for run in runs])
        late = np.array([run.regret[-len(run.regret) // 4 :].mean() for run in runs])
        print(
            f"  scale {scale:>6}  {name:<12} {average.mean():.3f} +- {spread(average):.3f}   "
            f"{late.mean():.3f} +- {spread(late):.3f}   ({len(runs)} trials){against_tgp(name, traces)}"
        )


def against_tgp(name: str, traces: dict[str, list[Trace]]) -> str:
    """On how many of the trials that both played it had less regret than TGP-UCB."""
    pairs = list(zip(traces[name], traces["tgp-ucb"], strict=False))
    wins = sum(one.regret.sum() < other.regret.sum() for one, other in pairs)
    return "" if name == "tgp-ucb" else f", below tgp-ucb on {wins} of {len(pairs)}"


def spread(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def coverage(options: argparse.Namespace) -> None:
    """Share of runs whose band holds f on all arms at all rounds."""
    rounds = min(options.rounds, 2000)
    print(f"\ncoverage of {options.trials} runs of {rounds:,} rounds, Student-t 3 (a) and 1.5 (h), delta = 0.1")
    for key in ("a", "h"):
        for name in ("tgp-ucb", "ata-qff", "ata-nystrom", "igp-ucb"):
            shares = [np.mean(list(covered(key, name, scale, rounds, options.trials))) for scale in SCALES]
            print(f"  ({key}) {name:<12} " + "  ".join(f"{s} {v:.2f}" for s, v in zip(SCALES, shares, strict=True)))


def covered(key: str, name: str, scale: str, rounds: int, trials: int) -> Iterator[bool]:
    for seed in range(trials):
        problem = PANELS[key].problem(np.random.SeedSequence(seed))
        algorithm, world = contender(name, SCALES[scale], rounds, problem), np.random.default_rng(seed)
        play = algorithm.play(problem.arms, np.random.default_rng(seed))
        pull, held = next(play), True
        for _ in range(rounds):
            lower, upper = algorithm.bounds(pull.belief)
            held = bool((lower <= problem.means + 1e-9).all() and (problem.means <= upper + 1e-9).all())
            if not held:
                break
            pull = play.send((pull.arms, problem.rewards(pull.arms, world)))
        yield held


def truncation(options: argparse.Namespace) -> None:
    """Fig. 1 (f): GP-UCB with beta_t = ln t, with and without truncation at t^(1/4), bands averaged over the noises."""
    rounds = min(options.rounds, 10_000)
    base = problems.rkhs_sum(SE, rng=1)
    f = (base.means - base.means.min()) / np.ptp(base.means)
    print(f"\n(f) one arm's reward is f +- 10; {rounds:,} rounds, {options.noises} noises; bands mean +- std, averaged")
    bands = {}
    for ridge in (1.0, 0.01):
        for name, level in (("without", None), ("with", quarter_root)):
            model = ExactGP(SE, ridge, level)
            mean, std = glitched(model, base.arms, f, rounds, options.noises)
            inside = (np.abs(f - mean) <= std).mean()
            print(
                f"  ridge {ridge:<5} {name:<8} truncation: error of the mean {np.abs(mean - f).max():.2f} at most, "
                f"{np.sqrt(((mean - f) ** 2).mean()):.3f} rms; the band holds f on {100 * inside:.0f}% of the arms"
            )
            bands[ridge, name] = (mean, std)
    draw(base.arms[:, 0], f, bands, options.out / "f_truncation.png")


def quarter_root(posterior: Posterior) -> float:
    return float(posterior.rounds**0.25)


def log_rounds(posterior: Posterior) -> float:
    return float(np.log(posterior.rounds + 1))


def glitched(model: ExactGP, arms: Floats, f: Floats, rounds: int, noises: int) -> tuple[Floats, Floats]:
    """Mean and std after the rounds, (N,) each, averaged over noises that hit a random arm each."""
    total = np.zeros((2, len(arms)))
    for seed in range(noises):
        rng = np.random.default_rng(seed)
        payoff = problems.Glitch(int(rng.integers(len(arms))), 10.0)
        problem = Problem("glitch", arms, f, SE, payoff)
        play = Sequential(model, UCB(log_rounds)).play(arms, rng)
        pull = next(play)
        for _ in range(rounds):
            pull = play.send((pull.arms, problem.rewards(pull.arms, rng)))
        total += pull.belief.mean, pull.belief.std
    mean, std = total / noises
    return mean, std


def draw(x: Floats, f: Floats, bands: dict[tuple[float, str], tuple[Floats, Floats]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for ax, ridge in zip(figure.subplots(1, 2, sharey=True), (1.0, 0.01), strict=True):
        for name, colour in (("without", "#D55E00"), ("with", "#0072B2")):
            mean, std = bands[ridge, name]
            ax.fill_between(x, mean - std, mean + std, color=colour, alpha=0.25, lw=0)
            ax.plot(x, mean, color=colour, label=f"{name} truncation: mean ± std")
        ax.plot(x, f, color="black", ls="--", label="f")
        ax.set(title=f"ridge {ridge:g}", xlabel="x")
        ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.savefig(path, dpi=150)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "regret": regret,
    "coverage": coverage,
    "truncation": truncation,
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--dear", type=int, default=10, help="trials of ATA")
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=list(PANELS))
    parser.add_argument("--scales", nargs="+", choices=SCALES, default=list(SCALES))
    parser.add_argument("--noises", type=int, default=50, help="noises averaged over in (f)")
    parser.add_argument("--out", type=Path, default=Path("heavy_tails_study"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        for part in options.parts or PARTS:
            PARTS[part](options)


if __name__ == "__main__":
    main()
