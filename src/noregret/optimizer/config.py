"""OptimizerConfig: every step from observations to the next question, each replaceable. All of it is heuristic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from noregret.gp.posterior import convert_numbers
from noregret.optimizer.model.evidence import CAUTION, LEVEL
from noregret.optimizer.model.hypotheses import ModelConfig
from noregret.optimizer.questions.explore import AroundSurprise, Explore
from noregret.optimizer.questions.looks import CheapLooks
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline
from noregret.optimizer.questions.state import Question


@dataclass(frozen=True)
class SimultaneousWidth:
    """sqrt(2 ln(d / (1 - level))), d the effective dimension: d Gaussians all lie so near, with this probability.

    What looks best is the luckiest of about d guesses, so its interval must hold for all of them. Heuristic: the
    posterior is taken at its word, and the guesses for independent.
    """

    level: float = LEVEL

    def __call__(self, posterior: Any) -> float:
        return math.sqrt(2 * math.log(max(posterior.effective_dimension, 1.0) / (1 - self.level)))


@dataclass(frozen=True)
class OptimizerConfig(ModelConfig):
    """Steps of an `Optimizer` from observations to a posterior (`ModelConfig`), and on to questions and answers.

    Parameters
    ----------
    explore : Explore
        The first question once the design is done, when it is the turn of an explorer.
    questions : tuple of Question
        Asked after that in this order; the first one that names a setting decides.
    caution : float
        `Optimizer.best` recommends the largest mean - caution * std.
    as_good : float
        Or, of the measured settings whose mean - caution * std is less than this many std below that, the one that was
        measured most often.
    interval : Posterior -> float
        The interval of an `Estimate` is mean +- interval * std.
    looks : CheapLooks
        Fidelity of each question, and when a run is stopped, where there is a fidelity.
    """

    explore: Explore = field(default_factory=Explore)
    questions: tuple[Question, ...] = (Recheck(), RemeasureBaseline(), AroundSurprise(), Improve())
    caution: float = CAUTION
    as_good: float = 0.0
    """None by default; 0.25 where the recommendation is measured, see decision 0199."""
    interval: Callable[[Any], float] = field(default_factory=SimultaneousWidth)
    looks: CheapLooks = field(default_factory=CheapLooks)

    def __post_init__(self) -> None:
        convert_numbers(self, "interval")
