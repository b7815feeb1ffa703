"""Checks of one's own kernels, models, rules, algorithms and problems against the contracts."""

from noregret.bandits.testing import *  # noqa: F403
from noregret.bandits.testing import __all__ as __all__
