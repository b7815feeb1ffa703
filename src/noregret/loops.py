"""Loops: the algorithms of the papers as generators of pulls."""

from noregret.decision.elimination import Elimination
from noregret.decision.loops import Batched, Best, Pull, Repeated, Sequential
from noregret.decision.partition import AdaptivePartition
from noregret.decision.threshold_tree import ThresholdTree

__all__ = ["AdaptivePartition", "Batched", "Best", "Elimination", "Pull", "Repeated", "Sequential", "ThresholdTree"]
