"""Random exploration (Thm 3.1): random points lower the worst variance at the rate of the most uncertain points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from noregret.belief.exact import ExactGP
from noregret.belief.kernels import Matern
from noregret.belief.posterior import Floats, Rng
from noregret.decision.designs import MaxVarianceDesign, RandomDesign
from noregret.experiments import plot
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, Figure, MeasurementPanel, Results, Scale, axes, picture
from noregret.experiments.plot import BLUE, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

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


def _panel(nu: float, ridge: float) -> MeasurementPanel:
    model = ExactGP(Matern(nu, 0.5), ridge)
    measures = {
        "random": partial(worst_variance, model, True),
        "largest variance": partial(worst_variance, model, False),
    }
    noise = "noisy, ridge 0.2" if ridge else "noise-free"
    return MeasurementPanel(f"exploration-{nu:g}-{'noisy' if ridge else 'free'}", f"Matérn {nu:g}, {noise}", measures)


PANELS = tuple(_panel(nu, ridge) for ridge in (0.0, 0.2) for nu in (1.5, 2.5))


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """The worst variance against the number of points."""
    pictures = {}
    for panel in PANELS:
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
        plot.finish(ax, f"mean and range of {len(curves)} trials", legend="below")
        pictures[panel.key] = picture(ax)
    return pictures


FIGURE = Figure(
    name="reds/random-exploration",
    title="Theorem 3.1: random exploration",
    says="""
        The worst-case posterior variance after n random points falls at the same rate, up to logarithms, as after n
        points of the largest posterior variance: like gamma_n / n with noise and like n^(-2 nu / d) without.
    """,
    how="""
        4,000 uniform points of the unit square stand for the domain; up to 1,024 of them are taken at random with
        replacement, or each where the variance is largest. Matérn kernels, nu = 1.5 and 2.5, l = 0.5; ridge 0 and
        0.2. The paper has no such experiment. The rate is the slope over the last four-fold of points, for random
        ones in n / ln n: the largest hole that n random points leave is as large as that of n / ln n even ones, and
        this is the logarithm in the theorem. 'The same' is taken for rates whose ratio is between 0.75 and 1.25.
    """,
    panels=PANELS,
    claims=[
        Claim(
            f"{panel.title}: the worst variance falls at the same rate",
            Below(panel.key, "random", ["largest variance"], 1.25, 0.75, of=decay, what="rate"),
            because="The interval reaches beyond the margin: a slope over a four-fold of points is a rough rate.",
        )
        for panel in PANELS
    ],
    draw=draw,
    scale=Scale(1024, 20),
    quick=Scale(128, 5),
    minutes=1.3,
)
