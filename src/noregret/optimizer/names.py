"""Names of `noregret.optimizer` that other folders use, imported when the first of them is used."""

from noregret.optimizer.calibration import FittedModels, OptimizerConfig
from noregret.optimizer.certifying.certificate import LEVEL
from noregret.optimizer.certifying.importance import Share
from noregret.optimizer.checking import (
    LARGEST,
    Goal,
    checked_confidence,
    checked_noise,
    checked_tolerance,
    checked_value,
)
from noregret.optimizer.choosing.exploring import unexplored_from
from noregret.optimizer.comparing.baseline import checked_baseline
from noregret.optimizer.comparing.gain import Gain
from noregret.optimizer.conclusions import FEWEST
from noregret.optimizer.condensing import spread
from noregret.optimizer.constraining.constraint import Constraint, checked_constraints, checked_numbers, checked_reading
from noregret.optimizer.constraining.questions import LIKELY
from noregret.optimizer.drifting.fits import fitted_from
from noregret.optimizer.drifting.pace import LONGEST, Drift, checked_drift
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.fitting.evidence import Evidence
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.showing.frames import GIVEN
from noregret.optimizer.showing.words import change_in_words
from noregret.optimizer.spaces.contexts import Contexts, Within, checked_contexts
from noregret.optimizer.spaces.space import Product, Space
from noregret.optimizer.spaces.table import as_space
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
