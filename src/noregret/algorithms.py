"""Algorithms of the papers, by name: builders that take a kernel and constants named in words."""

from noregret.bandits.algorithms import *  # noqa: F403
from noregret.bandits.algorithms import __all__ as __all__

__path__: list[str] = []
