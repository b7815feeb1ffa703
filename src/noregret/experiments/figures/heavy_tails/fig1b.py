"""Fig. 1 (b): squared exponential kernel, Pareto rewards."""

from functools import partial

from noregret.belief.kernels import SquaredExponential
from noregret.experiments.figure import ComparisonPanel, Scale
from noregret.experiments.figures.heavy_tails import ENTRANTS, QFF, figure
from noregret.problems import Pareto, rkhs_sum

FIGURE = figure(
    "b",
    "Pareto rewards, squared exponential kernel",
    ComparisonPanel(
        "pareto",
        "Pareto rewards, shape 2",
        partial(rkhs_sum, SquaredExponential(0.2), payoff=Pareto(2), coefficients=(0.0, 1.0)),
        ENTRANTS | {"ata-gp-ucb-qff": QFF},
    ),
    """
        As (a), with coefficients in [0, 1] so that f > 0, and rewards that are themselves Pareto with shape 2 and
        scale f(x)/2: they have mean f(x) and no variance. alpha = 0.9, v = B^1.9 / (2^0.9 0.1).
    """,
    trials=10,
    minutes=1.6,
    quick=Scale(300, 4),
)
