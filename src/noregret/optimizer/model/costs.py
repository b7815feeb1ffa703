"""Costs: the posterior of the logarithm of what a measurement costs, and the prices of settings that come from it.

ln cost gets a Gaussian process of the same kind as the values, robust to outliers, without a logarithm of its own. It
is fitted when there are half as many answers again, so that it adds little to the CPU time of a question. Failures that
have a cost count too: asking there costs as much.

The score of a setting is ln(expected improvement) - kappa E[ln cost]. kappa is 1 at first and falls to 0 with the
second half of the budget: improvement per cost, then plain improvement, so that an expensive best is still found. Only
every second question is weighed, see `Improve`.

E. H. Lee, V. Perrone, C. Archambeau, M. Seeger. Cost-aware Bayesian optimization. arXiv:2003.10870, 2020 (EI-cool).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS, subset
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import FittedModels, ModelConfig, milestone
from noregret.optimizer.model.learning import Learnt, learn
from noregret.optimizer.model.transforms import Logarithms, RobustScale
from noregret.optimizer.space.space import Bools, Space

REFIT = 10, 1.5
"""When to repeat the fit of the costs: see `milestone`. Half as many answers again, so that it adds little to the time
of a question: decision 0214."""

COOLED_FROM = 0.5
"""Part of the budget that is left when the exponent of the cost begins to fall from 1 to 0. Lee et al. let it fall from
the end of the initial design on. Decision 0214."""

NO_BUDGET = 0.5
"""The exponent if no budget is known: half way between improvement per cost and plain improvement. Decision 0214."""


@dataclass(frozen=True, eq=False)
class CostModel:
    """Posterior of -ln cost."""

    learnt: Learnt

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the ln cost of one measurement at (n, d) points, noise included."""
        models, (mean, std) = self.learnt.models, self.learnt.process.predict(points)
        unit, noise = models.scale.unit, models.noise_variance(points)
        return -(models.scale.centre + unit * (models.fit.centre + mean)), unit * np.sqrt(std**2 + noise)

    def likely_at_most(self, points: Floats) -> Floats:
        """The ln cost, mean + std, that a measurement at each of (n, d) points likely does not exceed, (n,)."""
        mean, std = self.predict(points)
        return np.asarray(mean + std)


@dataclass(frozen=True, eq=False)
class Prices:
    """Predicted costs of the arms of a snapshot, and what is left to spend.

    Parameters
    ----------
    model : CostModel
    mean : (N,) floats
        Expected ln cost of each arm.
    affordable : (N,) bools
        True for the arms that likely fit into what is left.
    left : float
        Cost that is left to spend; infinite if no budget is known.
    share : float or None
        Part of the budget that is left; None if no budget is known.
    """

    model: CostModel
    mean: Floats
    affordable: Bools
    left: float
    share: float | None

    def weighed(self, scores: Floats, exponent: float | None) -> Floats:
        """Logarithmic scores less the exponent times ln cost, -inf for arms that do not fit into what is left.

        Without an exponent it is cooled as the budget is spent, or `NO_BUDGET`.
        """
        if exponent is None:
            exponent = NO_BUDGET if self.share is None else min(1.0, self.share / COOLED_FROM)
        return np.where(self.affordable, scores - exponent * self.mean, -np.inf)

    def fits(self, asked: int | Floats) -> bool:
        """Return True if an arm, or the point with (d,) coordinates, fits into what is left."""
        if isinstance(asked, int):
            return bool(self.affordable[asked])
        return bool(self.model.likely_at_most(asked[None])[0] <= math.log(self.left))


def prices_of(model: CostModel, arms: Floats, allowed: Bools, left: float | None, budget: float) -> Prices:
    """Prices of (N, d) arms, given what is left of a budget, None if that is unknown.

    If nothing of what is allowed fits into what is left, the cheapest does.
    """
    mean, highest = model.predict(arms)[0], model.likely_at_most(arms)
    if left is None:
        return Prices(model, mean, np.ones(len(arms), dtype=bool), math.inf, None)
    limit = max(math.log(left) if left > 0 else -math.inf, float(highest[allowed].min()))
    return Prices(model, mean, highest <= limit, math.exp(limit), min(left / budget, 1.0))


class CurrentCosts:
    """Computes the posterior of the costs at milestones; its fields cache the last result."""

    def __init__(self, config: ModelConfig) -> None:
        plain = RobustScale(bend=math.inf)
        self._config = replace(config, scale=plain, logarithms=Logarithms(gaps=()), local_noise=None)
        self._fitted: tuple[int, Space, FittedModels] | None = None
        self._model: tuple[int, CostModel] | None = None

    def model(self, history: History) -> CostModel | None:
        """Model of the costs so far; None if there are too few."""
        answers, config = len(history), self._config
        if history.costs(answers) < FEWEST_OBSERVATIONS:
            return None
        at = milestone(answers, FEWEST_OBSERVATIONS, *REFIT)
        if history.costs(at) < FEWEST_OBSERVATIONS:
            at = answers
        stop = max(at, milestone(answers, FEWEST_OBSERVATIONS, *config.refresh, config.longest))
        if self._fitted is None or self._fitted[:2] != (at, history.space):
            self._fitted = at, history.space, config.calibrated(history.log_costs(at))
            self._model = None
        if self._model is None or self._model[0] != stop:
            models = self._fitted[2]
            evidence = subset(models.scale.standardised(history.log_costs(stop)), config.most)
            self._model = stop, CostModel(learn(models, evidence))
        return self._model[1]
