"""Fig. 2: functions drawn from the Gaussian process itself."""

from __future__ import annotations

from functools import partial

from noregret.belief.kernels import Matern, SquaredExponential
from noregret.experiments.figure import ComparisonPanel, Figure, Scale, regret_tables, regrets
from noregret.experiments.figures.kernelized import ENTRANTS
from noregret.experiments.figures.kernelized.fig1 import claims
from noregret.problems import gp_draw

PANELS = (
    ComparisonPanel("gp-se", "(a) squared exponential", partial(gp_draw, SquaredExponential(0.2)), ENTRANTS),
    ComparisonPanel("gp-matern", "(b) Matérn", partial(gp_draw, Matern(2.5, 0.2)), ENTRANTS),
)

FIGURE = Figure(
    name="kernelized/fig2",
    title="Fig. 2: functions drawn from the GP",
    says="The relative performance of all methods is similar to that in Fig. 1.",
    how="""
        As Fig. 1, with f itself drawn from the GP on the 100 arms. On these arms its norm is finite, and B is this
        norm: about 10 for the Matérn kernel. Fig. 1's claims are tested again.
    """,
    panels=PANELS,
    claims=[claim for panel in PANELS for claim in claims(panel)],
    draw=partial(regrets, log=True),
    tabulate=regret_tables,
    scale=Scale(30_000, 10),
    quick=Scale(1000, 4),
    minutes=1.5,
)
