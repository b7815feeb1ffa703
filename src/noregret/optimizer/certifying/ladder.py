"""Ladder: models of f with shorter lengthscales or a larger amplitude than the fitted ones, as far as they are tenable.

The fit is one model of many that explain the measurements about as well. What is said with a stated level must hold
under all of them, so the rungs that the measurements do not refute are kept, and the worst of them counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import solve_lower
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.fitting.fit import CENTRE, Fit, apart, fading

RATIOS = (1.0, 0.5, 0.25, 0.125)
"""The lengthscales of the rungs are these parts of the fitted ones."""

AMPLITUDES = (1.0, 2.0)
"""The amplitudes that are tried on each rung are these multiples of the fitted one."""

NATS = 6.0
"""A model is refuted if the log likelihood of the measurements under it is so much less than under the best one."""

LEAST = 1e-5
"""Noise of a point is never taken for less than this part of the amplitude, so that rounding does no harm."""


@dataclass(frozen=True, eq=False)
class Rung:
    """The belief about f under one model, given pooled measurements y with noise D at (u, d) points.

    With root root' = K + D and the prior mean c, ``whitened`` is root^-1 (y - c), (u,). Where f changes, ``faded`` is
    how much of it is the same now as at the time of each measurement, (u,).
    """

    ratio: float
    kernel: Kernel
    points: Floats
    root: Floats
    centre: float
    whitened: Floats
    faded: Floats | None = None

    @property
    def likelihood(self) -> float:
        """Log density of the measurements and of c ~ N(0, CENTRE^2), up to a constant."""
        misfit = float(self.whitened @ self.whitened) + (self.centre / CENTRE) ** 2
        return -0.5 * misfit - float(np.log(self.root.diagonal()).sum())

    def explained(self, points: Floats) -> Floats:
        """root^-1 K(measured, points), (u, n): the sum of its squares is the variance that the measurements explain."""
        shared = self.kernel(self.points, points)
        return solve_lower(self.root, shared if self.faded is None else shared * self.faded[:, None])

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std of c + f at (n, d) points, two (n,)."""
        explained = self.explained(points)
        variance = self.kernel.diag(points) - np.einsum("ij,ij->j", explained, explained)
        return self.centre + explained.T @ self.whitened, np.sqrt(np.maximum(variance, 0.0))

    def joint(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) of c + f at (n, d) points."""
        explained = self.explained(points)
        return self.centre + explained.T @ self.whitened, self.kernel(points, points) - explained.T @ explained


def ladder(
    fit: Fit, groups: Ints, points: Floats, values: Floats, noise: Floats, ages: Floats | None = None
) -> list[Rung]:
    """The rungs that values at (u, d) points, with noise of these variances, do not refute, the longest first.

    Of each lengthscale the one with the largest amplitude: it leaves most open. The half-life is not doubted.
    """
    tried = []
    for ratio, factor in product(RATIOS, AMPLITUDES):
        its = fit.scaled(ratio, factor)
        least_noise = np.maximum(noise, (LEAST * its.size) ** 2)
        tried.append(rung(ratio, its.kernel(groups), points, values, least_noise, ages, fit.half_life))
    least = max(made.likelihood for made in tried) - NATS
    return list({made.ratio: made for made in tried if made.likelihood >= least}.values())


def rung(
    ratio: float,
    kernel: Kernel,
    points: Floats,
    values: Floats,
    noise: Floats,
    ages: Floats | None = None,
    half_life: float = math.inf,
) -> Rung:
    """The belief under this kernel, with the most probable prior mean."""
    prior, faded = kernel(points, points), None
    if ages is not None:
        prior, faded = prior * fading(apart(ages), half_life), fading(ages, half_life)
    root = np.asarray(np.linalg.cholesky(prior + np.diag(noise)), dtype=float)
    ones, whitened = solve_lower(root, np.column_stack([np.ones_like(values), values])).T
    centre = float(ones @ whitened / (ones @ ones + CENTRE**-2))
    return Rung(ratio, kernel, points, root, centre, whitened - centre * ones, faded)
