"""Loops: the algorithms of the papers as generators of pulls."""

from noregret.bandits.decision.breakdown import Breakdown
from noregret.bandits.decision.elimination import Elimination
from noregret.bandits.decision.loops import Batched, Best, Pull, Repeated, Sequential
from noregret.bandits.decision.trees import AdaptivePartition, ThresholdTree

__all__ = [
    "AdaptivePartition",
    "Batched",
    "Best",
    "Breakdown",
    "Elimination",
    "Pull",
    "Repeated",
    "Sequential",
    "ThresholdTree",
]
