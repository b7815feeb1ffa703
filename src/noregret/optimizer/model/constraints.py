"""Constraints: the posterior of each constraint's number, and the probability that all are met.

A constraint is measured with noise like the values, so it gets a posterior of the same kind, with its own scale,
kernel, noise and trust, fitted at the same milestones. It has no logarithm, which would look closely at the best
numbers and not where the constraint is just met. Heuristic: constraints are independent, given the observations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats
from noregret.optimizer.model.evidence import CAUTION, LEVEL
from noregret.optimizer.model.posterior import PosteriorAtArms

IGNORE = 0.01
"""A setting that meets all constraints with less probability is no alternative to the recommended one. By taste."""

RECOMMEND = LEVEL
"""A setting that meets all constraints with at least this probability may be recommended."""

SEARCH = 0.5
"""While no measured setting meets all constraints with this probability, questions look for one that does. As likely as
not."""

UNKNOWN_FEASIBLE = math.log(SEARCH)
"""Log probability that a constraint with fewer than two numbers is met: one of these is no reason to search."""

REPEATS = 5.0
"""Number of measurements of a setting that leave little to learn about it: decision 0041."""


class Margin(NamedTuple):
    """Posterior of a constraint's number less its prior mean, and the least that meets it, in standard units."""

    posterior: PosteriorAtArms
    least: float

    def log_probability(self, mean: Floats, std: Floats) -> Floats:
        """Log probability that the constraint is met, (n,)."""
        return np.asarray(sp.log_ndtr((mean - self.least) / np.maximum(std, 1e-12)))


Margins = Sequence[Margin | None]
"""One of each constraint, None where nothing is known."""


def log_feasible(margins: Margins, arms: int) -> Floats:
    """Log probability that all constraints are met at each of the arms, (arms,)."""
    each = [UNKNOWN_FEASIBLE if m is None else m.log_probability(m.posterior.mean, m.posterior.std) for m in margins]
    return np.zeros(arms) + sum(each)


def log_feasible_at(margins: Margins, points: Floats) -> Floats:
    """Log probability that all constraints are met at (n, d) points, (n,)."""
    each = [UNKNOWN_FEASIBLE if m is None else m.log_probability(*m.posterior.predict(points)) for m in margins]
    return np.zeros(len(points)) + sum(each)


def shortfall(margins: Margins, arms: int, width: float) -> Floats:
    """Sum of what is missing of each constraint at mean + width std, in its standard units, at most 0, (arms,)."""
    known = [m for m in margins if m is not None]
    each = [np.minimum(m.posterior.mean + width * m.posterior.std - m.least, 0.0) for m in known]
    return np.asarray(np.zeros(arms) + sum(each))


def search_scores(margins: Margins, log_feasible: Floats) -> Floats:
    """Scores of the arms while no measured one is likely feasible, (N,): the likeliest that still tells something.

    Where no arm has more than a faint chance, the one that comes nearest at its mean + `CAUTION` std.
    """
    if log_feasible.max() < math.log(IGNORE):
        log_feasible = shortfall(margins, len(log_feasible), CAUTION)
    known = [margin.posterior for margin in margins if margin is not None]
    news = [np.minimum(1.0, REPEATS * posterior.variance / posterior.ridge) for posterior in known]
    return np.asarray(log_feasible + (np.log(np.maximum(np.max(news, axis=0), 1e-300)) if news else 0.0))


def recommended(scores: Floats, margins: Margins, log_feasible: Floats) -> int:
    """Arm with the highest score, (N,), of those that are likely feasible, or else the likeliest.

    Where no arm has more than a faint chance it is the one that is expected to come nearest: how faint a chance is says
    more about what has not been measured.
    """
    if not margins:
        return int(np.argmax(scores))
    chances = np.where(np.isfinite(scores), log_feasible, -np.inf)
    if chances.max() < math.log(IGNORE):
        chances = np.where(np.isfinite(scores), shortfall(margins, len(scores), 0.0), -np.inf)
    return int(np.argmax(np.where(chances >= min(math.log(RECOMMEND), chances.max()), scores, -np.inf)))
