"""Public names of `noregret`, imported when the first of them is used.

Most people need eighteen of them: `minimize`, `maximize`, `Optimizer`, `Float`, `Int`, `Choice`, `Trial`, `Reading`,
`report` and `connect` to tune something; `versus` and `Suite` to compare two options; `Policy`, `run`, `compare`,
`diagnose`, `algorithms` and `problems` to work with the algorithms. The parts that algorithms are made of are in
`kernels`, `models`, `rules`, `loops` and `schedules`.
"""

from noregret import algorithms, bounds, kernels, loops, models, problems, rules, schedules
from noregret.bandits.decision.policy import Policy
from noregret.bandits.lab import plot
from noregret.bandits.lab.run import run
from noregret.bandits.lab.trace import Trace
from noregret.bandits.lab.trials import Ranking, compare
from noregret.comparison import Ledger, Suite, versus
from noregret.diagnosis import Diagnosis, diagnose
from noregret.kernels import *  # noqa: F403
from noregret.loops import *  # noqa: F403
from noregret.models import *  # noqa: F403
from noregret.optimizer import (
    Choice,
    Estimate,
    Float,
    Gain,
    Int,
    Observation,
    Optimizer,
    OptimizerConfig,
    Reading,
    Trial,
)
from noregret.rules import *  # noqa: F403
from noregret.schedules import *  # noqa: F403
from noregret.service.client import connect
from noregret.studies.function import TuningResult, maximize, minimize
from noregret.studies.page.reporting import report

__all__ = [
    "Choice",
    "Diagnosis",
    "Estimate",
    "Float",
    "Gain",
    "Int",
    "Ledger",
    "Observation",
    "Optimizer",
    "OptimizerConfig",
    "Policy",
    "Ranking",
    "Reading",
    "Suite",
    "Trace",
    "Trial",
    "TuningResult",
    "algorithms",
    "bounds",
    "compare",
    "connect",
    "diagnose",
    "kernels",
    "loops",
    "maximize",
    "minimize",
    "models",
    "plot",
    "problems",
    "report",
    "rules",
    "run",
    "schedules",
    "versus",
]
__all__ += kernels.__all__ + loops.__all__ + models.__all__ + rules.__all__ + schedules.__all__
