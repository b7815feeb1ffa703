"""Fig. 1 (a): squared exponential kernel, Student-t noise."""

from functools import partial

from noregret.belief.kernels import SquaredExponential
from noregret.experiments.figure import ComparisonPanel, Scale
from noregret.experiments.figures.heavy_tails import ENTRANTS, QFF, figure
from noregret.problems import StudentT, rkhs_sum

FIGURE = figure(
    "a",
    "Student-t noise, squared exponential kernel",
    ComparisonPanel(
        "student-t",
        "Student-t, 3 degrees of freedom",
        partial(rkhs_sum, SquaredExponential(0.2), payoff=StudentT(3)),
        ENTRANTS | {"ata-gp-ucb-qff": QFF},
    ),
    """
        100 arms 0.01, ..., 1; f a sum of 100 kernels with coefficients in [-1, 1], divided by max |f|, another one in
        every trial; B = 1, alpha = 1, v = B^2 + 3, ridge 1; quadrature of order 32. B = max |f| is no bound on the
        norm, about a quarter too small. With these widths little is learnt before some thousand rounds, and ATA
        overtakes TGP late. The paper has 20 trials in (a), (b) and (c); 10 are run here, unless ``--trials 20`` asks
        for as many.
    """,
    trials=10,
    minutes=2.0,
    quick=Scale(300, 4),
)
