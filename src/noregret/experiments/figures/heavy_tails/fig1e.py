"""Fig. 1 (e): which light sensor reads the most on average."""

import math
from functools import partial

from noregret.algorithms.heavy_tails import ata_gp_ucb
from noregret.belief.features.fourier import QuadratureFourier
from noregret.belief.kernels import SquaredExponential
from noregret.experiments.figure import ComparisonPanel, Entrant, Scale
from noregret.experiments.figures.heavy_tails import ENTRANTS, SETTINGS, figure
from noregret.problems import Problem, light_sensors
from noregret.problems.problem import Seed
from noregret.problems.tables import Folder


def problem(folder: Folder = None, *, located: bool = False, rng: Seed = None) -> Problem:
    """The problem, which has the same arms and means in every trial; only the rewards differ."""
    return light_sensors(folder, located=located)


FEATURES = QuadratureFourier(SquaredExponential(math.sqrt(0.1)), order=16)
QFF = Entrant(ata_gp_ucb, SETTINGS | {"features": FEATURES}, partial(problem, located=True))

FIGURE = figure(
    "e",
    "light sensors",
    ComparisonPanel(
        "light",
        "Light sensors, counts",
        problem,
        ENTRANTS | {"ata-gp-ucb-qff": QFF},
        files=("light_train.csv", "light_test.csv", "light_locations.csv"),
    ),
    """
        41 sensors; a pull returns the reading of a random one of the 192 test rows; the kernel is the correlation of
        the training rows; B = max f = 946, alpha = 1, v = the mean squared reading. QFF: squared exponential kernel,
        l^2 = 0.1, on the sensors' positions, 16^2 = 256 features. The number of trials is not given; 10, as for (d).
        The readings fail a test of normality, but most have two humps rather than heavy tails: the median excess
        kurtosis of the test rows is -1.4.
    """,
    trials=10,
    minutes=1.4,
    quick=Scale(200, 4),
)
