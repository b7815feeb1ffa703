"""THE OPTIMIZER: good results when the constants of a problem are unknown.

Everything outside of this folder imports from ``noregret.optimizer``, and nothing deeper. Parameters, trials and
measures come at once; the other names of `noregret.optimizer.names` when the first of them is used: they need SciPy.

================  ================================================================================================
`space`           describes: parameters, conditions, tables and contexts, as points of the unit cube
`model`           believes: history, hypotheses, fit, posterior, candidates; failures, bounds, constraints, drift
`questions`       asks: opening, exploring by regret balancing, rechecking, improving
`answers`         says: estimate, gain, certificate (intervals, gap, stopping rule) and importance
`config`          `OptimizerConfig`: all steps, each of them replaceable
`trial`           `Trial` and `Reading`: the one form of a measurement, and its JSON
`problem`         `ProblemDescription`: what is to be found, in one description for all doors
`measures`        what a problem says of the names of readings
`rows`            trials as rows of a table, and back
`log`             all trials of an optimizer, and their history
`checking`        checks of what users give
`standing`        one-line summaries
`saving`          JSON files of optimizers
`plots`           pictures with matplotlib
`optimizer`       `Optimizer`: ask, tell, fail, best, gain, done
================  ================================================================================================
"""

from typing import TYPE_CHECKING, Any

from noregret.optimizer.checking import (
    Check,
    StopRule,
    checked_confidence,
    checked_safe_level,
    checked_tolerance,
    without_name,
)
from noregret.optimizer.measures import (
    LARGEST_VALUE,
    BadReading,
    Constraint,
    Goal,
    Measures,
    checked_bound,
    checked_constraints,
    checked_cost,
    checked_goal,
    checked_noise,
    checked_possible,
    checked_value,
)
from noregret.optimizer.problem import (
    BadOption,
    Options,
    ProblemDescription,
    check_names,
    problem_of,
    takes_options,
)
from noregret.optimizer.space.contexts import Fidelity, checked_fidelity
from noregret.optimizer.space.parameters import (
    EXACT,
    MOST_OPTIONS,
    Choice,
    Float,
    Int,
    axis_of,
    checked_when,
    identity,
    is_same_setting,
)
from noregret.optimizer.space.space import ParameterSpace
from noregret.optimizer.space.space import in_words as condition_in_words
from noregret.optimizer.trial import (
    COST,
    MACHINE,
    OUTLYING,
    VALUE,
    Block,
    Bound,
    Measurement,
    Observation,
    Reading,
    Readings,
    State,
    Trial,
    checked_block,
    corrected,
    dump,
    dump_readings,
    key,
    load,
    load_readings,
    middle,
    withdrawn,
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
    "COST",
    "EXACT",
    "LARGEST_VALUE",
    "MACHINE",
    "MOST_OPTIONS",
    "OUTLYING",
    "VALUE",
    "BadOption",
    "BadReading",
    "Block",
    "Bound",
    "Check",
    "Choice",
    "Constraint",
    "Fidelity",
    "Float",
    "Goal",
    "Int",
    "Measurement",
    "Measures",
    "Observation",
    "Options",
    "ParameterSpace",
    "ProblemDescription",
    "Reading",
    "Readings",
    "State",
    "StopRule",
    "Trial",
    "axis_of",
    "check_names",
    "checked_block",
    "checked_bound",
    "checked_confidence",
    "checked_constraints",
    "checked_cost",
    "checked_fidelity",
    "checked_goal",
    "checked_noise",
    "checked_possible",
    "checked_safe_level",
    "checked_tolerance",
    "checked_value",
    "checked_when",
    "condition_in_words",
    "corrected",
    "dump",
    "dump_readings",
    "identity",
    "is_same_setting",
    "key",
    "load",
    "load_readings",
    "middle",
    "problem_of",
    "takes_options",
    "withdrawn",
    "without_name",
]
