"""THE OPTIMIZER: good results when the constants of a problem are unknown.

Everything outside of this folder imports from ``noregret.optimizer``, and nothing deeper. The parameters come at once;
the other names of `noregret.optimizer.names` are imported when the first of them is used, because they need SciPy.

================  ================================================================================================
`space`           describes: parameters, conditions, tables and contexts, as points of the unit cube
`model`           believes: history, hypotheses, fit, posterior, candidates; failures, bounds, constraints, drift
`questions`       asks: opening, exploring by regret balancing, rechecking, improving
`answers`         says: estimate, gain, certificate (intervals, gap, stopping rule) and importance
`config`          `OptimizerConfig`: all steps, each of them replaceable
`trials`          pending trials and their observations
`checking`        checks of the numbers that users give
`show`            data frames and one-line summaries
`saving`          JSON files of optimizers
`plots`           pictures with matplotlib
`optimizer`       `Optimizer`: ask, tell, fail, best, gain, done
================  ================================================================================================
"""

from typing import TYPE_CHECKING, Any

from noregret.optimizer.space.conditions import in_words as condition_in_words
from noregret.optimizer.space.parameters import (
    EXACT,
    MOST_OPTIONS,
    Choice,
    Float,
    Int,
    Parameter,
    axis_of,
    checked_when,
    identity,
    is_same_setting,
)

if TYPE_CHECKING:
    from noregret.optimizer.names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        names = import_module("noregret.optimizer.names")
        if name in names.__all__:
            return getattr(names, name)
        raise AttributeError(f"module 'noregret.optimizer' has no attribute {name!r}")


__all__ = [
    "EXACT",
    "MOST_OPTIONS",
    "Choice",
    "Float",
    "Int",
    "Parameter",
    "axis_of",
    "checked_when",
    "condition_in_words",
    "identity",
    "is_same_setting",
]
