"""Figures of "Random exploration in Bayesian optimization: order-optimal regret and computational efficiency".

Salgia, Vakili and Zhao, ICML 2024. Fig. 1 and Table 1 share the runs of App. C on three functions. Two studies, which
are ours, test Theorem 3.1 (random exploration) and Theorem 4.3 (regret without noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

from noregret.bandits.algorithms.domain_shrinking import bpe, gp_threds, reds
from noregret.bandits.belief.arms import Box
from noregret.bandits.belief.exact import ExactGP
from noregret.bandits.bounds import random_exploration
from noregret.bandits.decision.designs import MaxVarianceDesign, RandomDesign
from noregret.bandits.lab import plot
from noregret.bandits.lab.figure import (
    TIME,
    Below,
    Claim,
    ComparisonPanel,
    Entrant,
    Figure,
    MeanBelow,
    MeasurementPanel,
    Pictures,
    Results,
    Scale,
    Table,
    axes,
    finished,
    less,
    picture,
    regrets,
    seconds,
)
from noregret.bandits.lab.plot import BLUE, ORANGE, style
from noregret.bandits.lab.run import run
from noregret.bandits.problems import Gaussian, branin, hartmann4, hartmann6, standard
from noregret.bandits.problems.problem import Continuous
from noregret.bandits.problems.synthetic import Function
from noregret.gp.kernels import Matern
from noregret.gp.posterior import Floats, Rng


def _regret_panel(
    key: str,
    title: str,
    function: Function,
    first_epoch: int,
    width: float,
    bounds: tuple[float, float],
    cell: int,
    patience: int | None,
) -> ComparisonPanel:
    common = {"constants": "experiment", "ridge": 0.2}
    entrants = {
        "reds": Entrant(reds, common | {"first_epoch": first_epoch}),
        "bpe": Entrant(bpe, common | {"first_epoch": first_epoch, "scale": width}),
        "gp-threds": Entrant(gp_threds, common | {"bounds": bounds, "points_per_cell": cell, "patience": patience}),
    }
    return ComparisonPanel(key, title, partial(standard, function), entrants, watch=("active",))


PANELS = (
    _regret_panel("reds-branin", "Branin", branin, 50, 1.0, (0.5, 1.2), 100, 50),
    _regret_panel("reds-hartmann4", "Hartmann-4D", hartmann4, 100, 0.75, (0.0, 3.8), 200, None),
    _regret_panel("reds-hartmann6", "Hartmann-6D", hartmann6, 100, 0.75, (0.0, 3.5), 500, None),
)


# Fig. 1 (and 2): regret


def draw_regrets(figure: Figure, results: Results) -> Pictures:
    """Draw the regret and the number of arms still in play."""
    active = {
        f"{panel.key}-active": picture(
            plot.active_arms(results[panel.key], ax=axes(f"{panel.title}: arms in play"), legend="below")
        )
        for panel in PANELS
    }
    return {**regrets(figure, results), **active}


PATIENCE = "GP-ThreDS depends on a patience that the paper does not give; with ours it is ahead of REDS."

FIG1 = Figure(
    name="reds/fig1",
    title="Fig. 1: regret on Branin, Hartmann-4D, Hartmann-6D",
    says="The regret incurred by REDS is comparable to that of BPE and GP-ThreDS, for all benchmark functions.",
    how="""
        2,000, 7,000, 20,000 uniform points as arms; squared exponential kernel, l = 0.2, 1, 1; Gaussian noise of sd
        0.2, ridge 0.2; width 1 (0.75 for BPE on the Hartmann functions); first epoch 50, 100, 100, doubling for BPE
        too. GP-ThreDS has its bounds and points per cell from the paper; its patience, which is not given, is 50 on
        Branin and T / (2^d epochs) else. Regret is against the best arm, which is 0.001, 0.06 and 0.25 below the
        function's maximum. Width 1 is not a confidence width: on the Hartmann functions the best arm is often
        eliminated. 'Comparable' is read as at most 1.5 times the regret.
    """,
    panels=PANELS,
    claims=[
        less(f"{panel.title}: REDS is comparable to {name}", panel, "reds", label, bound=1.5, because=why)
        for panel in PANELS
        for name, label, why in (("BPE", "bpe", ""), ("GP-ThreDS", "gp-threds", PATIENCE))
    ],
    draw=draw_regrets,
    scale=Scale(1000, 10),
    quick=Scale(300, 4),
    minutes=0.1,
)


# Table 1 (and 2): the times of the runs of Fig. 1

PAPER = {
    "bpe": (29.84, 38.45, 119.71),
    "gp-threds": (4.37, 7.59, 19.33),
    "reds": (0.32, 0.47, 1.19),
}
"""Seconds of a run on the three functions, as printed in Tables 1 and 2."""

PAPER_SD = {
    "bpe": (6.13, 3.93, 23.75),
    "gp-threds": (0.28, 0.54, 0.54),
    "reds": (0.08, 0.11, 0.08),
}
"""Standard deviations of these seconds over the 10 runs, as printed in Table 2."""

SAME_PARTS = "The others are fast here too: all three use the same posterior, and BPE plans whole epochs."


def tabulate_times(figure: Figure, results: Results) -> list[Table]:
    """Tables of our seconds beside the paper's, and of the speedup of REDS over each other algorithm."""

    def times(i: int, name: str) -> str:
        ours = [seconds(trial) for trial in results[PANELS[i].key][name]]
        sd = float(np.std(ours, ddof=1)) if len(ours) > 1 else float("nan")
        return f"{np.mean(ours):.2g} ± {sd:.1g} ({PAPER[name][i]:g} ± {PAPER_SD[name][i]:g})"

    def speedup(i: int, name: str) -> str:
        here = _mean_seconds(results, i, name) / _mean_seconds(results, i, "reds")
        return f"{here:.1f} ({PAPER[name][i] / PAPER['reds'][i]:.1f})"

    titles, places = [panel.title for panel in PANELS], range(len(PANELS))
    return [
        Table(
            "Seconds per run here, mean ± sd (in the paper)",
            ("algorithm", *titles),
            [(name, *(times(i, name) for i in places)) for name in PAPER],
        ),
        Table(
            "How many times faster REDS is here (in the paper)",
            ("than", *titles),
            [(name, *(speedup(i, name) for i in places)) for name in ("gp-threds", "bpe")],
        ),
    ]


def _mean_seconds(results: Results, i: int, name: str) -> float:
    return float(np.mean([seconds(trial) for trial in results[PANELS[i].key][name]]))


def draw_times(figure: Figure, results: Results) -> Pictures:
    """Draw our times, and the paper's in pale."""
    ax, places = axes("Seconds per run"), np.arange(len(PANELS))
    for i, (name, printed) in enumerate(PAPER.items()):
        ours = [_mean_seconds(results, place, name) for place in range(len(PANELS))]
        colour = style(name)[0]
        ax.bar(places + 0.27 * (i - 1), printed, 0.24, color=colour, alpha=0.25)
        ax.bar(places + 0.27 * (i - 1), ours, 0.24, color=colour, label=name)
    ax.set(yscale="log", ylabel="seconds (pale: the paper)")
    ax.set_xticks(places, [panel.title for panel in PANELS])
    plot.finish(ax, None, legend="below")
    ax.set_xlim(-0.6, len(PANELS) - 0.4)
    return {"times": picture(ax)}


TABLE1 = Figure(
    name="reds/table1",
    title="Table 1: time taken",
    says="REDS offers about a 15 times and a 100 times speedup over GP-ThreDS and BPE.",
    how="""
        The runs of Fig. 1; the time is that spent in the algorithm, on one BLAS thread. Here all three use the same
        posterior, which learns whole epochs in one block and appends single rewards at O(N u). BPE plans an epoch by
        updating the few most uncertain arms often and the rest only when needed. So it does far less work than the
        paper's implementation, and the lead of REDS, which was fast already, is smaller. 'About 15 times' is read as
        at least 10, 'about 100 times' as at least 50.
    """,
    panels=PANELS,
    claims=[
        claim
        for panel in PANELS
        for claim in (
            less(f"{panel.title}: REDS is the fastest", panel, "reds", "bpe", "gp-threds", **TIME),
            Claim(
                f"{panel.title}: REDS is about 15 times faster than GP-ThreDS",
                Below(panel.key, "reds", ["gp-threds"], 0.1, **TIME),
                because=SAME_PARTS,
            ),
            Claim(
                f"{panel.title}: REDS is about 100 times faster than BPE",
                Below(panel.key, "reds", ["bpe"], 0.02, **TIME),
                because=SAME_PARTS,
            ),
        )
    ],
    draw=draw_times,
    tabulate=tabulate_times,
    scale=Scale(1000, 10),
    quick=Scale(300, 4),
    minutes=0.1,
)


# Theorem 3.1: the worst variance after random points and after the points of largest variance

GRID = 4000
FIRST = 16


def worst_variance(model: ExactGP, random: bool, rounds: int, rng: Rng) -> Mapping[str, Floats]:
    """Largest posterior variance on 4,000 points of the unit square after 16, 32, 64, ... points."""
    arms = rng.random((GRID, 2))
    design = RandomDesign() if random else MaxVarianceDesign()
    plan, belief, done = design(model, arms, rounds, rng), model.prior(arms), 0
    counts, largest = FIRST * 2 ** np.arange(int(np.log2(max(rounds / FIRST, 1))) + 1), []
    for count in counts.tolist():
        belief.update(plan[done:count])
        largest.append(belief.std.max() ** 2)
        done = count
    points = counts.astype(float)
    return {"points": points, "effective": points / np.log(points) if random else points, "variance": np.array(largest)}


def decay(trial: Any) -> float:
    """Minus the slope of the worst variance on logarithmic axes, over the last three counts."""
    x, y = np.log(trial["effective"][-3:]), np.log(trial["variance"][-3:])
    return -float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else 1.0


def _exploration_panel(nu: float, ridge: float) -> MeasurementPanel:
    model = ExactGP(Matern(nu, 0.5), ridge)
    measures = {
        "random": partial(worst_variance, model, True),
        "largest variance": partial(worst_variance, model, False),
    }
    noise = "noisy, ridge 0.2" if ridge else "noise-free"
    return MeasurementPanel(f"exploration-{nu:g}-{'noisy' if ridge else 'free'}", f"Matérn {nu:g}, {noise}", measures)


EXPLORATION_PANELS = tuple(_exploration_panel(nu, ridge) for ridge in (0.0, 0.2) for nu in (1.5, 2.5))


def draw_variances(figure: Figure, results: Results) -> Pictures:
    """Draw the worst variance against the number of points."""
    pictures = {}
    for panel in EXPLORATION_PANELS:
        ax = axes(panel.title)
        for label, colour in (("random", ORANGE), ("largest variance", BLUE)):
            trials = results[panel.key][label]
            curves = np.array([trial["variance"] for trial in trials])
            rate = np.mean([decay(trial) for trial in trials])
            ax.fill_between(trials[0]["points"], curves.min(axis=0), curves.max(axis=0), color=colour, alpha=0.2, lw=0)
            law = f"(n / ln n)^-{rate:.2f}" if label == "random" else f"n^-{rate:.2f}"
            ax.plot(trials[0]["points"], curves.mean(axis=0), "o-", color=colour, label=f"{label} ~ {law}")
        ax.set(xscale="log", yscale="log", xlabel="points", ylabel="largest posterior variance")
        ax.set_xticks(trials[0]["points"], [f"{count:g}" for count in trials[0]["points"]])
        ax.set_xticks([], minor=True)
        pictures[panel.key] = finished(ax, f"mean and range of {len(curves)} trials")
    return pictures


def tabulate_beginning(figure: Figure, results: Results) -> list[Table]:
    """Table of Nbar, from which the theorem holds, with 1,000 points as the domain."""
    points, rows = np.random.default_rng(0).random((1000, 2)), []
    for nu in (1.5, 2.5):
        drawn = random_exploration(Matern(nu, 0.5), points, 0.2)
        numbers = (drawn.chosen, drawn.heads[drawn.chosen - 1], drawn.concentrated, drawn.largest, drawn.flat)
        rows.append((f"Matérn {nu:g}, ridge 0.2", *(f"{number:,.0f}" for number in numbers)))
    header = ("kernel", "R", "N(R)", "least n by N(R), T(R)", "F^2", "729 F^4 ln(12 / delta)")
    return [Table("Where the theorem begins: Nbar, the larger of both n, on 1,000 points, delta = 0.1", header, rows)]


RANDOM_EXPLORATION = Figure(
    name="reds/random-exploration",
    title="Theorem 3.1: random exploration",
    says="""
        The worst-case posterior variance after n random points falls at the same rate, up to logarithms, as after n
        points of the largest posterior variance: like gamma_n / n with noise and like n^(-2 nu / d) without.
    """,
    how="""
        4,000 uniform points of the unit square represent the domain; up to 1,024 of them are chosen at random with
        replacement, or each where the variance is largest. Matérn kernels, nu = 1.5 and 2.5, l = 0.5; ridge 0 and
        0.2. The paper has no such experiment. The rate is the slope over the last four-fold of points, in n / ln n for
        random points: the largest gap between n random points is as large as that between n / ln n evenly spaced ones,
        which is the logarithm in the theorem. 'The same' is read as rates whose ratio is between 0.75 and 1.25. The
        theorem begins far later, for no kernel or domain before 27,856 points (N(R) >= 1, delta = 0.1).
    """,
    panels=EXPLORATION_PANELS,
    claims=[
        Claim(
            f"{panel.title}: the worst variance falls at the same rate",
            Below(panel.key, "random", ["largest variance"], 1.25, 0.75, of=decay, what="rate"),
            because="The interval exceeds the margin: a slope over a four-fold of points is a rough estimate.",
        )
        for panel in EXPLORATION_PANELS
    ],
    draw=draw_variances,
    tabulate=tabulate_beginning,
    scale=Scale(1024, 20),
    quick=Scale(128, 5),
    minutes=1.3,
)


# Theorem 4.3 and Corollary 4.4: regret without noise on the unit square, without a grid

BOX, CENTRES, FIRST_EPOCH = Box([[0, 1], [0, 1]]), 20, 50


def instance(kernel: Matern, rng: Rng) -> tuple[Continuous, float]:
    """Problem with a sum of 20 kernels on the unit square, of range about 2, and the norm of that sum."""
    centres, weights = rng.random((CENTRES, 2)), rng.uniform(-1, 1, CENTRES)
    norm = math.sqrt(weights @ kernel(centres, centres) @ weights)

    def function(points: Floats) -> Floats:
        return np.asarray(kernel(points, centres) @ weights)

    cloud = BOX.sample(4000, rng)
    starts = cloud[np.argsort(-function(cloud))[:20]]
    maximum = max(_climbed(function, start) for start in starts)
    return Continuous("sum of kernels", BOX, function, maximum, kernel, Gaussian(0.0)), norm


def _climbed(function: Callable[[Floats], Floats], start: Floats) -> float:
    """Value of the local maximum found from a point."""

    def depth(x: Floats) -> float:
        return -float(function(x[None])[0])

    return -float(minimize(depth, start, bounds=list(BOX.bounds), method="Nelder-Mead", tol=1e-10).fun)


def noise_free_regret(kernel: Matern, rounds: int, rng: Rng) -> Mapping[str, Floats]:
    """Cumulative regret of REDS, width B and ridge 0, at 200 rounds evenly spaced in the logarithm."""
    problem, norm = instance(kernel, rng)
    trace = run(reds(kernel, norm=norm, noise=0.0, first_epoch=FIRST_EPOCH), problem, rounds, rng=rng)
    shown = np.unique(np.geomspace(1, rounds, 200).round().astype(np.intp))
    return {"rounds": shown.astype(float), "regret": trace.cumulative_regret[shown - 1]}


def growth(trial: Any) -> float:
    """Slope of the regret on logarithmic axes over the last ten-fold of rounds."""
    late = trial["rounds"] >= trial["rounds"][-1] / 10
    return float(np.polyfit(np.log(trial["rounds"][late]), np.log(trial["regret"][late]), 1)[0])


RATES = {0.5: 0.75, 1.5: 0.25, 2.5: 0.0}
"""Exponent 1 - nu / d of the bound by smoothness nu, in d = 2; 0 stands for a power of ln T."""

NOISE_FREE_PANELS = tuple(
    MeasurementPanel(
        f"noise-free-{nu:g}", f"Matérn {nu:g}: T^{rate:g}", {"reds": partial(noise_free_regret, Matern(nu, 0.5))}
    )
    for nu, rate in RATES.items()
)


def draw_noise_free(figure: Figure, results: Results) -> Pictures:
    """Draw the regret of every trial, and the rate of the bound."""
    pictures, colour = {}, style("reds")[0]
    for panel, rate in zip(NOISE_FREE_PANELS, RATES.values(), strict=True):
        ax, trials = axes(panel.title), results[panel.key]["reds"]
        rounds, curves = trials[0]["rounds"], np.array([trial["regret"] for trial in trials])
        ax.plot(rounds, curves.T, color=colour, alpha=0.3, lw=0.8)
        ax.plot(rounds, curves.mean(axis=0), color=colour, label=f"reds ~ T^{np.mean([growth(t) for t in trials]):.2f}")
        top = curves.mean(axis=0)[-1]
        ax.plot(rounds[-60:], top * (rounds[-60:] / rounds[-1]) ** rate, color="black", ls=":", label=f"T^{rate:g}")
        ax.set(xscale="log", yscale="log", xlabel="round", ylabel="cumulative regret")
        pictures[panel.key] = finished(ax, f"mean and each of {len(trials)} trials")
    return pictures


NOISE_FREE = Figure(
    name="reds/noise-free",
    title="Theorem 4.3: regret without noise",
    says="""
        Under noise-free feedback REDS has regret of order max{T^((3 - beta)/2), 1} up to logarithms: T^(1 - nu/d) for
        Matérn kernels of smoothness nu < d, and a power of ln T for nu >= d.
    """,
    how="""
        f is a sum of 20 Matérn kernels on the unit square, l = 0.5, of known norm B; width B, ridge 0, first epoch
        50; the remaining region is represented without a grid, as in Algorithm 1. The paper has no such experiment.
        The exponent is the slope of the last ten-fold of rounds, and it may exceed that of the bound by 0.15, which is
        about what a logarithm adds there.
    """,
    panels=NOISE_FREE_PANELS,
    claims=[
        Claim(
            f"Matérn {nu:g}: the regret grows no faster than T^{rate:g}",
            MeanBelow(f"noise-free-{nu:g}", "reds", growth, rate + 0.15, "exponent"),
        )
        for nu, rate in RATES.items()
    ],
    draw=draw_noise_free,
    scale=Scale(4000, 10),
    quick=Scale(400, 4),
    minutes=0.8,
)

FIGURES = (FIG1, TABLE1, RANDOM_EXPLORATION, NOISE_FREE)
