"""Condensing: from all measurements to a belief, and which points it is made of when they are too many.

A belief on u points costs O(u^3), so it is made of at most ``most`` of them. Half are spread out over all that was
measured, so that the shape of f is known everywhere. The other half are those where f is highest as far as the first
half can tell, since what is asked for and recommended is decided there. Heuristic: measurements of other points are
left out. Of more than 10,000 points only those of 10,000 measurements are considered, evenly spread over their order.
What is chosen depends on the measurements alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from noregret.belief.drift import VaryingGP, VaryingPosterior
from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.questions.candidates import top
from noregret.optimizer.model.evidence import Evidence

CONSIDERED = 10_000
"""Points at the most from which these are chosen, so that the first question after a long history takes bounded time.
To take those with the highest values instead would favour lucky measurements."""

PIECE = 4096
"""Points that are predicted at once, so that the memory is bounded."""

Belief = ExactPosterior | VaryingPosterior
"""About f as it always was, or as it is now."""


class Conditioned(NamedTuple):
    """What standardised measurements amount to.

    The ``values`` less the prior mean of f, and the ``trust`` in each of n measurements, are (n,); ``posterior`` is the
    belief about f less its prior mean at the points that were measured.
    """

    calibrated: FittedModels
    values: Floats
    trust: Floats
    posterior: Belief


def conditioned(fitted: FittedModels, evidence: Evidence) -> Conditioned:
    """The belief at the measured points, each measurement trusted as far as the others bear it out."""
    calibrated, trust = fitted.weighed(evidence)
    fit = calibrated.fit
    values = evidence.values - fit.centre
    noise = evidence.variance(fit.noise**2) / (fit.noise**2 * trust)
    kernel, ridge = fit.kernel(evidence.groups), fit.noise**2
    if evidence.ages is not None:
        model = VaryingGP(kernel, ridge, fit.rate)
        return Conditioned(calibrated, values, trust, _recalled(model, evidence, values, noise))
    posterior = ExactGP(kernel, ridge).prior(evidence.points)
    posterior.update(evidence.where, values, noise=noise)
    return Conditioned(calibrated, values, trust, posterior)


def _recalled(model: VaryingGP, evidence: Evidence, values: Floats, noise: Floats) -> VaryingPosterior:
    """The belief about now at the measured points, each once."""
    assert evidence.ages is not None
    distinct = np.sort(np.unique(evidence.points, axis=0, return_index=True)[1])
    posterior: VaryingPosterior = model.prior(evidence.points[distinct])
    now = int(evidence.ages.max()) + 1
    posterior.recall(evidence.points, values, noise, now - 1 - evidence.ages, now)
    return posterior


def essential(fitted: FittedModels, evidence: Evidence, most: int) -> Ints:
    """At most so many of the points of standardised measurements, in order: what the belief is made of."""
    if len(evidence.points) <= most:
        return np.arange(len(evidence.points))
    if len(evidence.points) > CONSIDERED:
        considered = np.unique(evidence.where[np.linspace(0, len(evidence) - 1, CONSIDERED).astype(np.intp)])
        return np.asarray(considered[essential(fitted, evidence.only(considered), most)])
    lengthscales = np.array(fitted.fit.lengthscales)[evidence.groups]
    cover = spread(evidence.points / lengthscales, most // 2)
    mean, _ = predicted(conditioned(fitted, evidence.only(cover)).posterior, evidence.points)
    return with_best(cover, mean, most)


def predicted(belief: Belief, points: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation at (n, d) points, each (n,), in bounded memory."""
    parts = [belief.predict(points[start : start + PIECE]) for start in range(0, len(points), PIECE)]
    mean, std = (np.concatenate(column) for column in zip(*parts, strict=True))
    return mean, std


def with_best(cover: Ints, means: Floats, most: int) -> Ints:
    """These points and, up to so many in all, those of the others that have the largest means, (u,), ascending."""
    others = means.copy()
    others[cover] = -np.inf
    return np.union1d(cover, top(others, most - cover.size))


def spread(points: Floats, count: int) -> Ints:
    """So many of the (u, d) points: the first one, and again and again the one farthest from those taken.

    >>> spread(np.array([[0.0], [0.1], [1.0], [0.4]]), 3)
    array([0, 2, 3])
    """
    taken = np.zeros(count, dtype=np.intp)
    squares = np.full(len(points), np.inf)
    for i in range(1, count):
        squares = np.minimum(squares, ((points - points[taken[i - 1]]) ** 2).sum(axis=1))
        taken[i] = np.argmax(squares)
    return taken
