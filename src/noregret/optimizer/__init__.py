"""THE OPTIMIZER: good results when the constants of a problem are unknown.

Everything outside of this folder imports from ``noregret.optimizer``, and nothing deeper. The parameters come at once;
the other names of `noregret.optimizer.names` are imported when the first of them is used, because they need SciPy.

======================  ==========================================================================================
`spaces`                describes: parameters, conditions, tables, contexts, as points of the unit cube
`fitting`               from observations to scale, trust, kernel and noise level
`calibration`           these steps and their order, each of them replaceable
`history`, `failures`   observations and failed trials; which settings are hopeless, and which had bad luck
`condensing`            the points that a posterior keeps, when they are many
`tracker`, `asking`     the posterior, kept up to date; the next point, with pending trials
`choosing`              candidates and the rules that choose among them
`constraining`          constraints, the posterior of their margins, and questions under them
`comparing`             when to measure the baseline again, and the gain over it
`drifting`              half-life of observations where f changes
`certifying`            intervals, gap, stopping rule and importance
`trials`                pending trials and their observations
`checking`, `estimate`  checks of the numbers that users give; the estimate of a setting
`conclusions`           recommendation, prediction, gain and stopping
`showing`               data frames and one-line summaries
`optimizer`             `Optimizer`: ask, tell, fail, best, gain, done
======================  ==========================================================================================
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
