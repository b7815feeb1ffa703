"""Regret bounds of the theorems with their constants, and the rounds until a bound says something."""

from noregret.bandits.bounds import *  # noqa: F403
from noregret.bandits.bounds import __all__ as __all__
