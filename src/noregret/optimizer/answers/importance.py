"""Importance: how much of the difference between settings each parameter accounts for.

With the parameters x_1, ..., x_d drawn independently, each evenly over its range, the share of parameter i is its total
Sobol index

    S_i = E[Var(f(x) | all but x_i)] / Var(f(x)) = E[(f(x) - f(x'))^2] / (2 Var f(x)),

where x' is x with parameter i drawn again (Jansen 1999). It counts what a parameter does alone and with others, so the
shares of parameters that act together add up to more than 1. f is not known: the estimate is the share in the posterior
mean. Each joint draw from the posterior has a share of its own, and the interval holds most of them, under every model
that the observations do not refute. No draw is without a trace of any parameter, so draws alone would never say that a
parameter may do nothing: the interval reaches as far below the estimate as above, as a factor, and down to 0 if noise
alone may explain the observations. Heuristic. Very bad values count as less bad than they are, as everywhere
(`ValueScale`).

A parameter with one value that spoils everything has nearly all of the variance, though other parameters matter more
for the choice. So there is a second share: that of max(f, median f), in which the settings of the worse half are all
equal, as bad as the median (Hutter, Hoos and Leyton-Brown 2014 cap f at the default's value in the same way). It costs
no further draws.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from noregret.gp.linalg import pivoted_root
from noregret.gp.posterior import Floats, Rng
from noregret.optimizer.answers.certificate import AVERAGED, Certificate
from noregret.optimizer.model.evidence import LEVEL
from noregret.optimizer.model.sobol import sobol
from noregret.optimizer.model.tenable import Tenable
from noregret.optimizer.space.space import Space

DRAWS_OF_SHARES = 200
"""Draws of f. With these it takes 0.1 to 0.3 s, and its time is proportional to them."""

FEWEST_PAIRS = 16
"""Pairs of settings that must meet all conditions, so that only such pairs count. Not measured."""


class Share(NamedTuple):
    """A share of the variance between settings, from 0 to 1, and where it lies with probability ``level``."""

    estimate: float
    lower: float
    upper: float
    level: float = LEVEL

    def __repr__(self) -> str:
        """As ``88% (66% to 98%)``."""
        middle, low, high = (f"{100 * part:.2g}" if part < 0.01 else f"{100 * part:.0f}" for part in self[:3])
        return f"{middle}% ({low}% to {high}%)"


class Importance(dict[str, Share]):
    """The share of each parameter, by name; a table where it is printed."""

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join(f"{name:{width}}  {share}" for name, share in self.items())


def shares(certificate: Certificate, space: Space) -> tuple[list[Share], list[Share]]:
    """The share of each parameter over the whole space and among the better half, in the order of the space.

    Settings are even on the scales of this space, which need not be the one that the models are about.
    """
    groups = np.array(certificate.space.groups)
    drawn = sobol(AVERAGED, 2 * len(groups), 0)
    places, others = drawn[:, : len(groups)], drawn[:, len(groups) :]
    changed = [np.where(groups == group, others, places) for group in range(groups.max() + 1)]
    pairs = [_allowed(space, places, each) for each in changed]
    snap, rng = space.snap, np.random.default_rng(certificate.seed)
    if certificate.space != space:
        snap = lambda points: certificate.space.encode(space.decode(points))  # noqa: E731
    models = [model for model in certificate.tenable if model.amplitude > 0]
    indices = [
        [_indices(model, snap(np.vstack(pair)), rng) for model in models]  # (models, 2, 1 + draws)
        for pair in pairs
    ]
    whole, better = ([_share(np.array(each)[:, i]) for each in indices] for i in range(2))
    if certificate.may_be_noise:
        whole, better = ([share._replace(lower=0.0) for share in part] for part in (whole, better))
    return whole, better


def _allowed(space: Space, places: Floats, changed: Floats) -> tuple[Floats, Floats]:
    """The pairs of which both meet ``require``; all, to be snapped, if they are too few to tell anything."""
    both = space.holds(places) & space.holds(changed)
    return (places[both], changed[both]) if np.count_nonzero(both) >= FEWEST_PAIRS else (places, changed)


def _share(found: Floats) -> Share:
    """Share by (models, 1 + draws) indices, those of the means first."""
    ends = np.quantile(found[:, 1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    estimate = float(found[0, 0])
    upper = max(float(ends[1].max()), estimate)
    mirrored = estimate**2 / upper if upper else 0.0
    return Share(estimate, min(float(ends[0].min()), mirrored), upper)


def _indices(model: Tenable, points: Floats, rng: Rng) -> Floats:
    """The total index of the mean of f at (2n, d) points, and of each draw of f, none of them above 1.

    There are `DRAWS_OF_SHARES` draws. Of the parameter that the second half of the points has drawn again; (2, 1 +
    draws), the second for the better half.
    """
    mean, covariance = model.process.joint(points)
    root = pivoted_root(covariance)
    weights = np.column_stack([np.zeros(root.shape[1]), rng.standard_normal((root.shape[1], DRAWS_OF_SHARES))])
    values = replace(model.fitted.scale, bend=math.inf).original(mean[:, None] + root @ weights)
    sizes = np.abs(values).max(axis=0)
    values = values / np.where(sizes > 0, sizes, 1.0)  # so that squares are neither 0 nor infinite
    both = np.array([values, np.maximum(values, np.median(values, axis=0))])
    first, second = np.split(both, 2, axis=1)
    variance, within = both.var(axis=1), 0.5 * np.mean((first - second) ** 2, axis=1)
    return np.asarray(np.clip(np.divide(within, variance, out=np.zeros_like(within), where=variance > 0), 0.0, 1.0))
