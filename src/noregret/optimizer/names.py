"""Names of `noregret.optimizer` that other folders use, imported when the first of them is used."""

from noregret.optimizer.answers.certificate import apart
from noregret.optimizer.answers.changes import ChangedParameter
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.answers.front import Gains, Hypervolume, JointEstimate
from noregret.optimizer.answers.importance import Share
from noregret.optimizer.answers.paired import MeasuredGain, Percent
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.model.candidates import unexplored_from
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS, LEVEL
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.learning import spread
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.plots import Plots
from noregret.optimizer.questions.explore import Explore
from noregret.optimizer.questions.looks import CheapLooks
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline
from noregret.optimizer.replay import Fits, Remembering, Replay, are_same, is_same, is_to_stop
from noregret.optimizer.rows import TrialRows, as_frame, joined
from noregret.optimizer.space.contexts import FixedContext
from noregret.optimizer.space.table import CandidateTable
from noregret.optimizer.standing import Doubt, Shift, change_in_words

__all__ = [
    "FEWEST_OBSERVATIONS",
    "LEVEL",
    "RECOMMEND",
    "CandidateTable",
    "ChangedParameter",
    "CheapLooks",
    "Doubt",
    "Estimate",
    "Explore",
    "Fits",
    "FittedModels",
    "FixedContext",
    "Gain",
    "Gains",
    "Hypervolume",
    "Improve",
    "JointEstimate",
    "MeasuredGain",
    "Optimizer",
    "OptimizerConfig",
    "Percent",
    "Plots",
    "Recheck",
    "RemeasureBaseline",
    "Remembering",
    "Replay",
    "Share",
    "Shift",
    "TrialRows",
    "apart",
    "are_same",
    "as_frame",
    "change_in_words",
    "is_same",
    "is_to_stop",
    "joined",
    "spread",
    "unexplored_from",
]
