"""Public names of `noregret`, imported when the first of them is used."""

from noregret import algorithms, problems
from noregret.belief.box import Box
from noregret.belief.estimators import (
    ClippedResiduals,
    Estimator,
    LeastSquares,
    MedianOfMeans,
    TruncatedDirections,
    TruncatedRewards,
)
from noregret.belief.exact import ExactGP
from noregret.belief.features.fourier import QuadratureFourier, RandomFourier
from noregret.belief.features.nystrom import Nystrom
from noregret.belief.kernels import Columns, Kernel, Linear, Matern, RationalQuadratic, SquaredExponential, Tabular
from noregret.belief.sparse import SparseGP
from noregret.decision.designs import MaxVarianceDesign, RandomDesign
from noregret.decision.elimination import Elimination
from noregret.decision.loops import Batched, Best, Pull, Repeated, Sequential
from noregret.decision.policy import Policy
from noregret.decision.rules import (
    UCB,
    ExpectedImprovement,
    MaxVariance,
    ProbabilityOfImprovement,
    Thompson,
    Uniform,
)
from noregret.decision.schedules import Constant, GreedyGain, RateGain, RealisedGain, Scaled
from noregret.decision.threshold_tree import ThresholdTree
from noregret.diagnosis import Diagnosis, diagnose
from noregret.experiments import plot
from noregret.experiments.compare import Comparison, compare
from noregret.experiments.run import run
from noregret.experiments.trace import Trace
from noregret.optimizer import Choice, Float, Int, Optimizer, Trial
from noregret.tune.page.reporting import report
from noregret.tune.service.client import connect

__all__ = [
    "UCB",
    "Batched",
    "Best",
    "Box",
    "Choice",
    "ClippedResiduals",
    "Columns",
    "Comparison",
    "Constant",
    "Diagnosis",
    "Elimination",
    "Estimator",
    "ExactGP",
    "ExpectedImprovement",
    "Float",
    "GreedyGain",
    "Int",
    "Kernel",
    "LeastSquares",
    "Linear",
    "Matern",
    "MaxVariance",
    "MaxVarianceDesign",
    "MedianOfMeans",
    "Nystrom",
    "Optimizer",
    "Policy",
    "ProbabilityOfImprovement",
    "Pull",
    "QuadratureFourier",
    "RandomDesign",
    "RandomFourier",
    "RateGain",
    "RationalQuadratic",
    "RealisedGain",
    "Repeated",
    "Scaled",
    "Sequential",
    "SparseGP",
    "SquaredExponential",
    "Tabular",
    "Thompson",
    "ThresholdTree",
    "Trace",
    "Trial",
    "TruncatedDirections",
    "TruncatedRewards",
    "Uniform",
    "algorithms",
    "compare",
    "connect",
    "diagnose",
    "plot",
    "problems",
    "report",
    "run",
]
