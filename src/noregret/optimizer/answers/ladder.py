"""Ladder: models of f near the fitted one that the measurements do not refute.

The fit is one of many models that explain the measurements about as well. A statement with a level must hold under all
of them, so each alternative that is not refuted is kept, and the worst one counts. Two kinds of alternatives are tried:
f may be rougher or larger than fitted, and more of what was measured may be noise. The second kind matters most while
few settings have been repeated, when only the priors separate noise from signal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import solve_lower
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.model.fit import CENTRE, Fit, apart, fading

RATIOS = (1.0, 0.5, 0.25, 0.125)
"""Factors on the fitted lengthscales."""

AMPLITUDES = (1.0, 2.0)
"""Factors on the fitted amplitude, tried with each lengthscale and the fitted noise."""

NOISES = (1.0, 1.4, 2.0, 4.0, 8.0)
"""Factors on the fitted noise, tried with the fitted lengthscales and amplitude, and on that of noise alone."""

NATS = 6.0
"""A model is refuted if its log likelihood is this much less than that of the best one."""

LEAST = 1e-5
"""The noise of a point is at least this part of the amplitude, so that rounding does no harm."""


@dataclass(frozen=True, eq=False)
class Rung:
    """Posterior of c + a f under one model, given pooled measurements y with noise D at (u, d) points.

    c ~ N(0, CENTRE^2), f ~ GP(0, kernel), and a is the factor ``amplitude``. With root root' = CENTRE^2 + a^2 K + D,
    ``whitened`` is root^-1 y, (u,). If f changes, ``faded`` is the correlation of f now with f at the time of each
    measurement, (u,). ``likelihood`` is the log density of all measurements, up to a constant that all rungs share.
    """

    ratio: float
    amplitude: float
    kernel: Kernel
    points: Floats
    root: Floats
    whitened: Floats
    likelihood: float
    faded: Floats | None = None

    def explained(self, points: Floats) -> Floats:
        """root^-1 Cov(measured, points), (u, n); the sums of its squares are the variances that are explained."""
        shared = self.amplitude**2 * self.kernel(self.points, points)
        shared = shared if self.faded is None else shared * self.faded[:, None]
        return solve_lower(self.root, CENTRE**2 + shared)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std of c + a f at (n, d) points, two (n,)."""
        explained = self.explained(points)
        prior = CENTRE**2 + self.amplitude**2 * self.kernel.diag(points)
        variance = prior - np.einsum("ij,ij->j", explained, explained)
        return explained.T @ self.whitened, np.sqrt(np.maximum(variance, 0.0))

    def joint(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) of c + a f at (n, d) points."""
        explained = self.explained(points)
        prior = CENTRE**2 + self.amplitude**2 * self.kernel(points, points)
        return explained.T @ self.whitened, prior - explained.T @ explained


@dataclass(frozen=True, eq=False)
class Pooled:
    """Measurements of (u, d) points: their averages, the noise variances of these, and the scatter around them.

    ``scatter`` is the sum over all measurements of (value - average)^2 / noise variance, and has ``freedom`` degrees of
    freedom. The noise variances are estimates, unless ``is_noise_known``. ``ages`` is given if f changes.
    """

    points: Floats
    values: Floats
    noise: Floats
    scatter: float = 0.0
    freedom: int = 0
    is_noise_known: bool = False
    ages: Floats | None = None

    def only(self, kept: Ints) -> Pooled:
        """Some of the points; the scatter is still that of all, since the noise is one for all."""
        ages = None if self.ages is None else self.ages[kept]
        return replace(self, points=self.points[kept], values=self.values[kept], noise=self.noise[kept], ages=ages)

    def noise_alone(self) -> float:
        """Factor on the noise with which a constant f explains the measurements best."""
        centre = np.average(self.values, weights=1 / self.noise)
        squares = float(((self.values - centre) ** 2 / self.noise).sum()) + self.scatter
        return max(math.sqrt(squares / (len(self.values) + self.freedom)), 1.0)


def ladder(fit: Fit, groups: Ints, pooled: Pooled) -> list[Rung]:
    """The models that the measurements do not refute; the fitted one if they refute all that differ from noise.

    Of the models with one lengthscale and the fitted noise only the one with the largest amplitude is kept: it leaves
    most open. The half-life is not doubted.
    """
    rougher = [made for ratio in RATIOS for made in rungs(fit, groups, pooled, ratio, product(AMPLITUDES, [1.0]))]
    if pooled.is_noise_known:
        noisier = rungs(fit, groups, pooled, 1.0, [(0.0, 1.0)])
    else:
        alone = pooled.noise_alone()
        factors = [(1.0, noise) for noise in NOISES[1:]] + [(0.0, alone * noise) for noise in NOISES]
        noisier = rungs(fit, groups, pooled, 1.0, factors)
    least = max(made.likelihood for made in rougher + noisier) - NATS
    largest = {made.ratio: made for made in rougher if made.likelihood >= least} or {1.0: rougher[0]}
    return list(largest.values()) + [made for made in noisier if made.likelihood >= least]


def rungs(fit: Fit, groups: Ints, pooled: Pooled, ratio: float, factors: Iterable[tuple[float, float]]) -> list[Rung]:
    """The fit with one factor on its lengthscales, and with each pair of factors on its amplitude and noise."""
    points, values, ages = pooled.points, pooled.values, pooled.ages
    kernel = fit.scaled(ratio).kernel(groups)
    prior, faded = kernel(points, points), None
    if ages is not None:
        prior, faded = prior * fading(apart(ages), fit.half_life), fading(ages, fit.half_life)
    made = []
    for amplitude, noise in factors:
        variances = np.maximum(noise**2 * pooled.noise, (LEAST * amplitude * fit.size) ** 2)
        root = np.linalg.cholesky(CENTRE**2 + amplitude**2 * prior + np.diag(variances))
        whitened = solve_lower(root, values[:, None].copy())[:, 0]
        likelihood = -0.5 * float(whitened @ whitened) - float(np.log(root.diagonal()).sum())
        likelihood -= 0.5 * pooled.scatter / noise**2 + pooled.freedom * math.log(noise)
        made.append(Rung(ratio, amplitude, kernel, points, root, whitened, likelihood, faded))
    return made
