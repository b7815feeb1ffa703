"""Schedules: numbers that follow the posterior, such as the width beta_t."""

from noregret.bandits.decision.rules import GreedyGain, RateGain, RealisedGain, Scaled
from noregret.gp.posterior import Constant

__all__ = ["Constant", "GreedyGain", "RateGain", "RealisedGain", "Scaled"]
