"""Noise-free rewards (Thm 4.3, Cor. 4.4): REDS on the unit square, without a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from noregret.algorithms.domain_shrinking import reds
from noregret.belief.box import Box
from noregret.belief.kernels import Matern
from noregret.belief.posterior import Floats, Rng
from noregret.experiments import plot
from noregret.experiments.claims import MeanBelow
from noregret.experiments.figure import Claim, Figure, MeasurementPanel, Results, Scale, axes, picture
from noregret.experiments.plot import style
from noregret.experiments.run import run
from noregret.problems import Gaussian
from noregret.problems.continuous import Continuous

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

BOX, CENTRES, FIRST_EPOCH = Box([[0, 1], [0, 1]]), 20, 50


def instance(kernel: Matern, rng: Rng) -> tuple[Continuous, float]:
    """A sum of 20 kernels on the unit square, of range about 2, and its norm."""
    centres, weights = rng.random((CENTRES, 2)), rng.uniform(-1, 1, CENTRES)
    norm = math.sqrt(weights @ kernel(centres, centres) @ weights)

    def function(points: Floats) -> Floats:
        return np.asarray(kernel(points, centres) @ weights)

    cloud = BOX.sample(4000, rng)
    starts = cloud[np.argsort(-function(cloud))[:20]]
    maximum = max(_climbed(function, start) for start in starts)
    return Continuous("sum of kernels", BOX, function, maximum, kernel, Gaussian(0.0)), norm


def _climbed(function: Callable[[Floats], Floats], start: Floats) -> float:
    """Value of the local maximum near a point."""

    def depth(x: Floats) -> float:
        return -float(function(x[None])[0])

    return -float(minimize(depth, start, bounds=list(BOX.bounds), method="Nelder-Mead", tol=1e-10).fun)


def regret(kernel: Matern, rounds: int, rng: Rng) -> Mapping[str, Floats]:
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

PANELS = tuple(
    MeasurementPanel(f"noise-free-{nu:g}", f"Matérn {nu:g}: T^{rate:g}", {"reds": partial(regret, Matern(nu, 0.5))})
    for nu, rate in RATES.items()
)


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """Regret of every trial, and the bound's rate."""
    pictures, colour = {}, style("reds")[0]
    for panel, rate in zip(PANELS, RATES.values(), strict=True):
        ax, trials = axes(panel.title), results[panel.key]["reds"]
        rounds, curves = trials[0]["rounds"], np.array([trial["regret"] for trial in trials])
        ax.plot(rounds, curves.T, color=colour, alpha=0.3, lw=0.8)
        ax.plot(rounds, curves.mean(axis=0), color=colour, label=f"reds ~ T^{np.mean([growth(t) for t in trials]):.2f}")
        top = curves.mean(axis=0)[-1]
        ax.plot(rounds[-60:], top * (rounds[-60:] / rounds[-1]) ** rate, color="black", ls=":", label=f"T^{rate:g}")
        ax.set(xscale="log", yscale="log", xlabel="round", ylabel="cumulative regret")
        plot.finish(ax, f"mean and each of {len(trials)} trials", legend="below")
        pictures[panel.key] = picture(ax)
    return pictures


FIGURE = Figure(
    name="reds/noise-free",
    title="Theorem 4.3: regret without noise",
    says="""
        Under noise-free feedback REDS has regret of order max{T^((3 - beta)/2), 1} up to logarithms: T^(1 - nu/d) for
        Matérn kernels of smoothness nu < d, and a power of ln T for nu >= d.
    """,
    how="""
        f is a sum of 20 Matérn kernels on the unit square, l = 0.5, of known norm B; width B, ridge 0, first epoch
        50; the region that is left is kept as such, without a grid, as Algorithm 1 has it. The paper has no such
        experiment. The exponent is the slope of the last ten-fold of rounds, and it may exceed the bound's by 0.15,
        which is what a logarithm adds there.
    """,
    panels=PANELS,
    claims=[
        Claim(
            f"Matérn {nu:g}: the regret grows no faster than T^{rate:g}",
            MeanBelow(f"noise-free-{nu:g}", "reds", growth, rate + 0.15, "exponent"),
        )
        for nu, rate in RATES.items()
    ],
    draw=draw,
    scale=Scale(4000, 10),
    quick=Scale(400, 4),
    minutes=0.8,
)
