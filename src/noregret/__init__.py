"""noregret: find the best of many options from noisy measurements, with confidence bounds that hold."""

from importlib.metadata import version

from noregret import algorithms, problems
from noregret.belief.exact import ExactGP
from noregret.belief.kernels import Kernel, Linear, Matern, RationalQuadratic, SquaredExponential, Tabular
from noregret.decision.loops import Pull, Sequential
from noregret.decision.policy import Best, Policy
from noregret.decision.rules import (
    UCB,
    ExpectedImprovement,
    MaxVariance,
    ProbabilityOfImprovement,
    Thompson,
    Uniform,
)
from noregret.decision.schedules import Constant, GreedyGain, RateGain, RealisedGain, Scaled
from noregret.experiments.run import run
from noregret.experiments.trace import Trace

__version__ = version("noregret")

__all__ = [
    "UCB",
    "Best",
    "Constant",
    "ExactGP",
    "ExpectedImprovement",
    "GreedyGain",
    "Kernel",
    "Linear",
    "Matern",
    "MaxVariance",
    "Policy",
    "ProbabilityOfImprovement",
    "Pull",
    "RateGain",
    "RationalQuadratic",
    "RealisedGain",
    "Scaled",
    "Sequential",
    "SquaredExponential",
    "Tabular",
    "Thompson",
    "Trace",
    "Uniform",
    "algorithms",
    "problems",
    "run",
]
