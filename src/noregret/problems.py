"""Problems with known truth: reward models, test functions, functions drawn from a kernel, and measured data."""

from noregret.bandits.problems import *  # noqa: F403
from noregret.bandits.problems import __all__ as __all__

__path__: list[str] = []
