"""Importance: how much of the difference between settings each parameter accounts for.

With the parameters x_1, ..., x_d drawn independently, each evenly over its range, the share of parameter i is its total
Sobol index

    S_i = E[Var(f(x) | all but x_i)] / Var(f(x)) = E[(f(x) - f(x'))^2] / (2 Var f(x)),

where x' is x with parameter i drawn again (Jansen 1999). It counts what a parameter does alone and with others, so the
shares of parameters that act together add up to more than 1. f is not known: the estimate is the share in the posterior
mean. Each joint draw from the posterior has a share of its own, and the interval holds most of them, under every model
that the observations do not refute. No draw is without a trace of any parameter, so draws alone would never say that a
parameter may do nothing: the interval reaches as far below the estimate as above, as a factor, and down to 0 if noise
alone may explain the observations. Heuristic. Very bad values count as less bad than they are, as everywhere (`Scale`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from noregret.belief.numerics.linalg import pivoted_root
from noregret.belief.posterior import Floats, Rng
from noregret.optimizer.answers.certificate import LEVEL, Certificate, Tenable
from noregret.optimizer.model.candidates import sobol

PLACES = 256
"""Settings at which a parameter is drawn again."""

DRAWS = 200
"""Draws of f."""


class Share(NamedTuple):
    """A share of the variance between settings, from 0 to 1, and where it lies with probability ``level``."""

    estimate: float
    lower: float
    upper: float
    level: float = LEVEL


def shares(certificate: Certificate) -> list[Share]:
    """The share of each parameter, in the order of the space."""
    groups = np.array(certificate.space.groups)
    drawn = sobol(PLACES, 2 * len(groups), 0)
    places, others = drawn[:, : len(groups)], drawn[:, len(groups) :]
    changed = [np.where(groups == group, others, places) for group in range(groups.max() + 1)]
    snap, rng = certificate.space.snap, np.random.default_rng(certificate.seed)
    found = [_share(certificate.tenable, snap(np.vstack([places, each])), rng) for each in changed]
    if certificate.may_be_noise:
        found = [share._replace(lower=0.0) for share in found]
    return found


def _share(models: Sequence[Tenable], points: Floats, rng: Rng) -> Share:
    """Share of the parameter that the second half of the points has drawn again."""
    found = np.array([_indices(model, points, rng) for model in models if model.amplitude > 0])
    ends = np.quantile(found[:, 1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    estimate = float(found[0, 0])
    upper = max(float(ends[1].max()), estimate)
    mirrored = estimate**2 / upper if upper else 0.0
    return Share(estimate, min(float(ends[0].min()), mirrored), upper)


def _indices(model: Tenable, points: Floats, rng: Rng) -> Floats:
    """The total index of the mean of f at (2n, d) points, and of each of `DRAWS` draws of f, none of them above 1."""
    mean, covariance = model.process.joint(points)
    root = pivoted_root(covariance)
    weights = np.column_stack([np.zeros(root.shape[1]), rng.standard_normal((root.shape[1], DRAWS))])
    values = replace(model.fitted.scale, bend=math.inf).original(mean[:, None] + root @ weights)
    sizes = np.abs(values).max(axis=0)
    values = values / np.where(sizes > 0, sizes, 1.0)  # so that squares are neither 0 nor infinite
    first, second = np.split(values, 2)
    variance, within = values.var(axis=0), 0.5 * np.mean((first - second) ** 2, axis=0)
    return np.asarray(np.clip(np.divide(within, variance, out=np.zeros_like(within), where=variance > 0), 0.0, 1.0))
