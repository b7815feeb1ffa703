"""Figures of the kernelized-bandits paper, and what they have in common: the five algorithms as its Section 6 ran them.

``constants="experiment"``: ridge R^2, delta = 0.1, gamma_t by its growth rate with constant 1. The theorem has ridge
1 + 2/T, so none of the widths is covered by it.
"""

from noregret import algorithms
from noregret.experiments.figure import Entrant

SETTINGS = {"constants": "experiment", "delta": 0.1}
NAMES = ("igp-ucb", "gp-ucb", "gp-ts", "gp-ei", "gp-pi")
ENTRANTS = {name: Entrant(algorithms.NAMES[name], SETTINGS) for name in NAMES}
