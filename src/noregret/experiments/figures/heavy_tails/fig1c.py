"""Fig. 1 (c): Matérn kernel, Student-t noise."""

from functools import partial

from noregret.belief.kernels import Matern
from noregret.experiments.figure import ComparisonPanel, Scale
from noregret.experiments.figures.heavy_tails import ENTRANTS, figure
from noregret.problems import StudentT, rkhs_sum

FIGURE = figure(
    "c",
    "Student-t noise, Matérn kernel",
    ComparisonPanel(
        "student-t-matern",
        "Student-t, Matérn 2.5",
        partial(rkhs_sum, Matern(2.5, 0.2), payoff=StudentT(3)),
        ENTRANTS,
    ),
    """
        As (a), with a Matérn kernel, nu = 2.5 and l = 0.2, for which there are no quadrature features.
    """,
    trials=10,
    minutes=3.0,
    quick=Scale(300, 4),
)
