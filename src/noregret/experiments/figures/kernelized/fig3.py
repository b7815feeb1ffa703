"""Fig. 3: standard test functions, which the kernel does not fit."""

from __future__ import annotations

from functools import partial

from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, ComparisonPanel, Figure, Scale, regret_tables, regrets
from noregret.experiments.figures.kernelized import ENTRANTS
from noregret.problems import hartmann3, rosenbrock, standard

PANELS = (
    ComparisonPanel("rosenbrock", "(a) Rosenbrock", partial(standard, rosenbrock), ENTRANTS),
    ComparisonPanel("hartmann3", "(b) Hartman3", partial(standard, hartmann3), ENTRANTS),
)
REST = ("igp-ucb", "gp-ucb", "gp-ts")


def _claims(panel: ComparisonPanel) -> list[Claim]:
    where = panel.title
    return [
        Claim(f"{where}: GP-EI performs better than the rest", Below(panel.key, "gp-ei", REST)),
        Claim(f"{where}: GP-PI performs better than the rest", Below(panel.key, "gp-pi", REST)),
        Claim(f"{where}: IGP-UCB is competitive: below GP-UCB", Below(panel.key, "igp-ucb", ["gp-ucb"])),
        Claim(f"{where}: GP-TS is competitive: below GP-UCB", Below(panel.key, "gp-ts", ["gp-ucb"])),
    ]


FIGURE = Figure(
    name="kernelized/fig3",
    title="Fig. 3: Rosenbrock and Hartman3",
    says="GP-EI and GP-PI perform better than the rest, while IGP-UCB and GP-TS show competitive performance.",
    how="""
        100 d uniform points of the domain as arms; squared exponential kernel, l = 0.2 on the unit cube; everything
        else as in Fig. 1. Rosenbrock's domain is not given: [-5, 10]^2 here, and its values are divided by their
        range, 1,102,581. B is the norm of the smallest function through all points.
    """,
    panels=PANELS,
    claims=[claim for panel in PANELS for claim in _claims(panel)],
    draw=partial(regrets, log=True),
    tabulate=regret_tables,
    scale=Scale(30_000, 10),
    quick=Scale(500, 4),
    minutes=2.1,
)
