"""Names of `noregret.optimizer` that other folders use, imported when the first of them is used."""

from noregret.optimizer.answers.answers import FEWEST
from noregret.optimizer.answers.certificate import LEVEL
from noregret.optimizer.answers.changes import Change
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.answers.front import Gains, Hypervolume, JointEstimate
from noregret.optimizer.answers.importance import Share
from noregret.optimizer.checking import (
    StopRule,
    check_apart,
    checked_baseline,
    checked_confidence,
    checked_safe,
    checked_safe_level,
    checked_tolerance,
    safe_risks,
)
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.model.candidates import unexplored_from
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.drift import LONGEST, checked_drift
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.learning import spread
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.plots import Plots
from noregret.optimizer.questions.explore import Explore
from noregret.optimizer.questions.looks import CheapLooks
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline
from noregret.optimizer.replay import Fits, Remembering, Replay, are_same, is_hopeless, is_same
from noregret.optimizer.rows import Rows, as_frame, joined
from noregret.optimizer.space.contexts import Contexts, Fidelity, FixedContext, checked_contexts, checked_fidelity
from noregret.optimizer.space.space import Product, Space
from noregret.optimizer.space.table import Table, as_space
from noregret.optimizer.standing import Shift, change_in_words

__all__ = [
    "FEWEST",
    "LEVEL",
    "LONGEST",
    "RECOMMEND",
    "Change",
    "CheapLooks",
    "Contexts",
    "Estimate",
    "Explore",
    "Fidelity",
    "Fits",
    "FittedModels",
    "FixedContext",
    "Gain",
    "Gains",
    "Hypervolume",
    "Improve",
    "JointEstimate",
    "Optimizer",
    "OptimizerConfig",
    "Plots",
    "Product",
    "Recheck",
    "RemeasureBaseline",
    "Remembering",
    "Replay",
    "Rows",
    "Share",
    "Shift",
    "Space",
    "StopRule",
    "Table",
    "are_same",
    "as_frame",
    "as_space",
    "change_in_words",
    "check_apart",
    "checked_baseline",
    "checked_confidence",
    "checked_contexts",
    "checked_drift",
    "checked_fidelity",
    "checked_safe",
    "checked_safe_level",
    "checked_tolerance",
    "is_hopeless",
    "is_same",
    "joined",
    "safe_risks",
    "spread",
    "unexplored_from",
]
