"""The command ``noregret bound``: what a theorem promises before a run, and what a run does."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from noregret import algorithms, bounds, problems
from noregret.belief.kernels import Kernel, Matern, SquaredExponential
from noregret.belief.posterior import Floats
from noregret.experiments.reproduce_command import Refused, check_files
from noregret.experiments.run import run
from noregret.experiments.trials import build, keywords
from noregret.extra import extra
from noregret.terminal import say

READINGS = 9
"""Rows of the table at most."""
RUNS = 5
"""Functions that are drawn and played with ``--run``."""


def bound(args: argparse.Namespace) -> None:
    """Run the command."""
    if args.algorithm not in bounds.NAMES:
        known = ", ".join(bounds.NAMES)
        raise Refused(f"{args.algorithm!r} has no bound that can be computed: there is one for {known}")
    check_files(args.plot)
    settings, kernel, arms = dict(args.set), _kernel(args), _arms(args)
    readings = sorted({max(1, round(args.rounds * 10 ** (-each / 3))) for each in range(READINGS)})
    promise = bounds.NAMES[args.algorithm]
    try:
        promised = [promise(kernel, rounds, arms=arms, **settings) for rounds in readings]
        regrets = _played(args, kernel, arms, settings, readings) if args.run else []
        until = bounds.rounds_until(lambda rounds: promise(kernel, rounds, arms=arms, **settings), args.within)
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
    say(f"{args.algorithm}, {kernel!r}, {len(arms)} arms: regret per round, with probability 1 - delta at most")
    say(f"{'rounds':>10} {'bound':>10}" + (f" {'runs':>10} {'ratio':>8}" if regrets else ""))
    for place, each in enumerate(promised):
        ran = f" {regrets[place]:10.4g} {each.per_round / regrets[place]:8.3g}" if regrets else ""
        say(f"{each.rounds:10d} {each.per_round:10.4g}{ran}" + ("  (no more than |f| <= B)" if each.is_trivial else ""))
    needed = "more than 10^12" if until is None else f"{until:,}"
    say(f"at most {args.within:g} per round after {needed} rounds; largest width {promised[-1].width:.4g}")
    if not promised[-1].is_proved:
        say("the proof of this theorem has a gap (docs/guarantees_details.md), so the bound is not proved")
    if args.plot:
        _draw(args, promised, readings, regrets)


def _kernel(args: argparse.Namespace) -> Kernel:
    name, _, nu = args.kernel.partition("-")
    try:
        if name == "matern":
            return Matern(float(nu or 2.5), args.lengthscale)
        if args.kernel == "se":
            return SquaredExponential(args.lengthscale)
    except ValueError as error:
        raise Refused(str(error)) from error
    raise Refused(f"--kernel must be se or matern-NU, such as matern-2.5, got {args.kernel!r}")


def _arms(args: argparse.Namespace) -> Floats:
    """A grid on [0, 1], or points spread over the unit cube."""
    if args.dimension == 1:
        return np.linspace(0, 1, args.arms)[:, None]
    qmc = extra("scipy.stats.qmc")
    return np.asarray(qmc.Sobol(args.dimension, rng=0).random(1 << (args.arms - 1).bit_length())[: args.arms])


def _played(
    args: argparse.Namespace, kernel: Kernel, arms: Floats, settings: Mapping[str, Any], readings: list[int]
) -> list[float]:
    """Regret per round of runs on functions with norm B, on average, at these rounds."""
    norm, noise = settings.get("norm", 1.0), settings.get("noise", 0.1)
    K, totals = kernel(arms, arms), np.zeros(len(readings))
    builder = algorithms.NAMES[args.algorithm]
    for seed in range(RUNS):
        weights = np.random.default_rng(seed).uniform(-1, 1, len(arms))
        means = K @ weights * norm / np.sqrt(weights @ K @ weights)
        payoff: Any = problems.Gaussian(noise)
        if "moment" in keywords(builder):
            spare = settings.get("moment", 1.0) - float((means**2).max())
            if settings.get("alpha", 1.0) != 1.0 or spare <= 0:
                raise ValueError("--run needs alpha = 1 and a moment above max f^2: pass --set moment=4, for instance")
            payoff = problems.StudentT(3.0, float(np.sqrt(spare / 3)))  # of variance 3 scale^2
        problem = problems.Problem("drawn", arms, means, kernel, payoff, norm)
        trace = run(build(builder, problem, args.rounds, settings), problem, args.rounds, rng=seed)
        totals += trace.cumulative_regret[np.array(readings) - 1] / readings
    return list(totals / RUNS)


def _draw(args: argparse.Namespace, promised: list[bounds.Bound], readings: list[int], regrets: list[float]) -> None:
    figure = extra("matplotlib.figure").Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(readings, [each.per_round for each in promised], "k-", label="bound")
    if regrets:
        axes.loglog(readings, regrets, "C0o-", label=f"mean of {RUNS} runs")
    axes.set(xlabel="rounds", ylabel="regret per round", title=args.algorithm)
    axes.legend()
    figure.savefig(args.plot)
