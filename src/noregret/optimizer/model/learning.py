"""Learning: from fitted models and observations to a posterior, made of a bounded number of points.

Conditioning on u points costs O(u^3), so at most ``most`` of them are kept (`representative`). Observations of other
points are left out. Which points are kept depends on the observations alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.checking import LONGEST_HALF_LIFE
from noregret.optimizer.model import censoring
from noregret.optimizer.model.candidates import top
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.posterior import Conditioned, ObservationRows, condition
from noregret.optimizer.space.space import Bools

CONSIDERED = int(LONGEST_HALF_LIFE)
"""Points at the most from which the representative ones are chosen, so that the first question after a long history
takes bounded time. They are those of evenly spaced observations: the best measured would be the luckiest. Decision
0080."""


@dataclass(frozen=True, eq=False)
class Learnt:
    """Posterior of f given observations, in standardised units.

    Parameters
    ----------
    models : FittedModels
        With the noise model first that explains these observations best.
    process : Conditioned
        Gaussian process of f less its prior mean. A row is a point, or where f changes an observation.
    trust : (n,) floats
        Of each observation, relative to the noise level of its setting.
    scatter : float
        Sum over the observations of (value - average of its point)^2 / noise variance.
    freedom : int
        Degrees of freedom of the scatter.
    """

    models: FittedModels
    process: Conditioned
    trust: Floats
    scatter: float
    freedom: int


def learn(fitted: FittedModels, evidence: Evidence, certain: Bools | None = None) -> Learnt:
    """Condition on standardised observations, each trusted as far as the others agree with it.

    Those that are ``certain``, (n,), are not taken for outliers.
    """
    told = evidence
    if told.bounds is not None:
        evidence, _, doubt, _ = censoring.resolved(told, fitted.fit, fitted.noise)
    models, trust = fitted.weighed(evidence)
    if told.bounds is not None:
        trust = np.where(told.bounds != 0, 1.0, trust)
    if certain is not None and not models.noise.varies:
        trust = np.where(certain, np.maximum(trust, 1.0), trust)
    fit = models.fit
    precision = trust / evidence.variance(fit.noise**2)
    averages, total = evidence.pooled(precision)
    scatter = float((precision * (evidence.values - averages[evidence.where]) ** 2).sum())
    times = None if evidence.ages is None else -evidence.ages
    rows = ObservationRows(evidence.points, averages - fit.centre, 1 / total, times, fit.blocks_of(evidence))
    process = condition(fit.kernel(evidence.groups), rows, fit.half_life, now=1.0)  # the next answer's time
    relative = trust * models.noise.levels(evidence.points)[evidence.where] if models.noise.varies else trust
    if told.bounds is not None:
        relative = np.where(told.bounds != 0, doubt, relative)
    freedom = len(told.exact) - len(told.exact.points) - told.exact.agreement()
    return Learnt(models, process, relative, scatter, freedom)


def representative(fitted: FittedModels, evidence: Evidence, most: int) -> Ints:
    """At most ``most`` points of standardised observations, in order.

    Half are spread out over all that was measured, so that f is known everywhere. The others are those where f is
    highest as far as the first half can tell, since that is where questions and recommendations are decided.
    """
    if len(evidence.points) <= most:
        return np.arange(len(evidence.points))
    if len(evidence.points) > CONSIDERED:
        considered = np.unique(evidence.where[np.linspace(0, len(evidence) - 1, CONSIDERED).astype(np.intp)])
        return np.asarray(considered[representative(fitted, evidence.only(considered), most)])
    cover = spread(evidence.points / np.array(fitted.fit.lengthscales)[evidence.groups], most // 2)
    cover = cover if evidence.blocks is None else np.unique(cover)  # rows of one point in several blocks
    mean, _ = learn(fitted, evidence.only(cover)).process.predict(evidence.points)
    return with_best(cover, mean, most)


def with_best(cover: Ints, means: Floats, most: int) -> Ints:
    """These points and those of the others with the largest means, (u,), up to ``most`` in all, ascending."""
    others = means.copy()
    others[cover] = -math.inf
    return np.union1d(cover, top(others, most - cover.size))


def spread(points: Floats, count: int) -> Ints:
    """Indices of ``count`` of the (u, d) points: the first, then always the one farthest from those taken.

    >>> spread(np.array([[0.0], [0.1], [1.0], [0.4]]), 3)
    array([0, 2, 3])
    """
    taken = np.zeros(count, dtype=np.intp)
    squares = np.full(len(points), np.inf)
    for i in range(1, count):
        squares = np.minimum(squares, ((points - points[taken[i - 1]]) ** 2).sum(axis=1))
        taken[i] = np.argmax(squares)
    return taken
