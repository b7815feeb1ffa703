"""Fig. 1 (d): which stock has the largest mean price."""

from noregret.experiments.figure import ComparisonPanel, Scale
from noregret.experiments.figures.heavy_tails import ENTRANTS, figure
from noregret.problems import Problem, stocks
from noregret.problems.problem import Seed
from noregret.problems.tables import Folder


def problem(folder: Folder = None, *, rng: Seed = None) -> Problem:
    """The problem, which has the same arms and means in every trial; only the rewards differ."""
    return stocks(folder)


FIGURE = figure(
    "d",
    "stock prices",
    ComparisonPanel("stocks", "Stock prices, dollars", problem, ENTRANTS, files=("stocks_dow29.csv",)),
    """
        29 stocks; a pull returns the price of a random day; the kernel is the correlation of the prices; B = max f =
        237, alpha = 1, v = the mean squared price. The paper rejects normality and takes that for heavy tails. Price
        levels do fail the test, because they trend, but their tails are light: the excess kurtosis is between -1.5
        and 0.6.
    """,
    trials=10,
    minutes=0.9,
    quick=Scale(300, 4),
)
