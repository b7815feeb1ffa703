"""Names of `noregret.optimizer` that other folders use, imported when the first of them is used."""

from noregret.optimizer.model.hypotheses import FittedModels, OptimizerConfig
from noregret.optimizer.answers.certificate import LEVEL
from noregret.optimizer.answers.importance import Share
from noregret.optimizer.checking import (
    LARGEST,
    Goal,
    checked_confidence,
    checked_noise,
    checked_tolerance,
    checked_value,
)
from noregret.optimizer.questions.explore import unexplored_from
from noregret.optimizer.questions.baseline import checked_baseline
from noregret.optimizer.answers.gain import Gain
from noregret.optimizer.answers.conclusions import FEWEST
from noregret.optimizer.model.condensing import spread
from noregret.optimizer.constraint import Constraint, checked_constraints, checked_numbers, checked_reading
from noregret.optimizer.questions.feasible import LIKELY
from noregret.optimizer.model.milestones import fitted_from
from noregret.optimizer.model.drift import LONGEST, Drift, checked_drift
from noregret.optimizer.answers.estimate import Estimate
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.frames import GIVEN
from noregret.optimizer.words import change_in_words
from noregret.optimizer.space.contexts import Contexts, Within, checked_contexts
from noregret.optimizer.space.space import Product, Space
from noregret.optimizer.space.table import as_space
from noregret.optimizer.trials import Measurement, Observation, Trial

__all__ = [
    "FEWEST",
    "GIVEN",
    "LARGEST",
    "LEVEL",
    "LIKELY",
    "LONGEST",
    "Constraint",
    "Contexts",
    "Drift",
    "Estimate",
    "Evidence",
    "FittedModels",
    "Gain",
    "Goal",
    "Measurement",
    "Observation",
    "Optimizer",
    "OptimizerConfig",
    "Product",
    "Share",
    "Space",
    "Trial",
    "Within",
    "as_space",
    "change_in_words",
    "checked_baseline",
    "checked_confidence",
    "checked_constraints",
    "checked_contexts",
    "checked_drift",
    "checked_noise",
    "checked_numbers",
    "checked_reading",
    "checked_tolerance",
    "checked_value",
    "fitted_from",
    "spread",
    "unexplored_from",
]
