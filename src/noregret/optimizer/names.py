"""Names of `noregret.optimizer` that other folders use, imported when the first of them is used."""

from noregret.optimizer.answers.answers import FEWEST
from noregret.optimizer.answers.certificate import LEVEL
from noregret.optimizer.answers.changes import Change
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.answers.front import Gains, Hypervolume, JointEstimate
from noregret.optimizer.answers.importance import Share
from noregret.optimizer.checking import (
    LARGEST,
    Bound,
    Constraint,
    Goal,
    StopRule,
    check_apart,
    checked_baseline,
    checked_bound,
    checked_confidence,
    checked_constraints,
    checked_cost,
    checked_goal,
    checked_noise,
    checked_numbers,
    checked_reading,
    checked_safe,
    checked_safe_level,
    checked_stop_rule,
    checked_tolerance,
    checked_value,
    safe_risks,
)
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.model.candidates import unexplored_from
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.drift import LONGEST, Drift, checked_drift
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.learning import spread
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.plots import Plots
from noregret.optimizer.questions.explore import Explore
from noregret.optimizer.questions.looks import CheapLooks
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline
from noregret.optimizer.show import GIVEN, Shift, change_in_words
from noregret.optimizer.space.contexts import Contexts, FixedContext, checked_contexts
from noregret.optimizer.space.fidelity import Fidelity, checked_fidelity
from noregret.optimizer.space.space import Product, Space
from noregret.optimizer.space.table import Table, as_space
from noregret.optimizer.trials import Measurement, Observation, Trial

__all__ = [
    "FEWEST",
    "GIVEN",
    "LARGEST",
    "LEVEL",
    "LONGEST",
    "RECOMMEND",
    "Bound",
    "Change",
    "CheapLooks",
    "Constraint",
    "Contexts",
    "Drift",
    "Estimate",
    "Evidence",
    "Explore",
    "Fidelity",
    "FittedModels",
    "FixedContext",
    "Gain",
    "Gains",
    "Goal",
    "Hypervolume",
    "Improve",
    "JointEstimate",
    "Measurement",
    "Observation",
    "Optimizer",
    "OptimizerConfig",
    "Plots",
    "Product",
    "Recheck",
    "RemeasureBaseline",
    "Share",
    "Shift",
    "Space",
    "StopRule",
    "Table",
    "Trial",
    "as_space",
    "change_in_words",
    "check_apart",
    "checked_baseline",
    "checked_bound",
    "checked_confidence",
    "checked_constraints",
    "checked_contexts",
    "checked_cost",
    "checked_drift",
    "checked_fidelity",
    "checked_goal",
    "checked_noise",
    "checked_numbers",
    "checked_reading",
    "checked_safe",
    "checked_safe_level",
    "checked_stop_rule",
    "checked_tolerance",
    "checked_value",
    "safe_risks",
    "spread",
    "unexplored_from",
]
