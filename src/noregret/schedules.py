"""Schedules: numbers that follow the posterior, such as the width beta_t."""

from noregret.decision.schedules import Constant, GreedyGain, RateGain, RealisedGain, Scaled

__all__ = ["Constant", "GreedyGain", "RateGain", "RealisedGain", "Scaled"]
