"""Rules and designs: the score of every arm, and the arms of a whole epoch."""

from noregret.bandits.decision.designs import MaxVarianceDesign, RandomDesign
from noregret.bandits.decision.rules import (
    UCB,
    ExpectedImprovement,
    MaxVariance,
    ProbabilityOfImprovement,
    Thompson,
    Uniform,
)

__all__ = [
    "UCB",
    "ExpectedImprovement",
    "MaxVariance",
    "MaxVarianceDesign",
    "ProbabilityOfImprovement",
    "RandomDesign",
    "Thompson",
    "Uniform",
]
