"""Fit: kernel, noise and prior mean by maximum of the posterior density of a few numbers.

The model of standardised measurements z at points x is

    z = c + f(x) + e,    c ~ N(0, CENTRE^2),    f ~ GP(0, a^2 Matern 5/2),    e ~ N(0, s^2 / w)

with a lengthscale per parameter, and the trust w given (see `weights`). The log likelihood of all measurements is that
of the points' pooled averages plus that of the scatter within the points, so its cost is that of the distinct points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import Bounds, minimize
from scipy.spatial.distance import cdist

from noregret.belief.kernels import Kernel, Matern
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.fitting.evidence import Evidence

CENTRE = 2.0
"""Prior standard deviation of the mean of f, in units of the measurements' spread."""

LEAST_NOISE = 1e-3
"""Noise is never taken for less than this part of the amplitude, nor of the unit: matrices stay well-conditioned."""


@dataclass(frozen=True)
class Fit:
    """What was fitted, in standardised units; ``strange`` is how much less likely it is than the priors' medians."""

    lengthscales: tuple[float, ...]
    amplitude: float
    noise: float
    centre: float = 0.0
    strange: float = 0.0

    def kernel(self, groups: Ints) -> Kernel:
        """a^2 Matern 5/2, each coordinate with the lengthscale of its group."""
        return self.amplitude**2 * Matern(2.5, tuple(self.lengthscales[group] for group in groups))


@dataclass(frozen=True)
class FitMatern:
    """The most probable fit, by L-BFGS, under priors that are habits and not knowledge.

    Medians and spreads (standard deviations of the logarithm) of what is fitted. ``lengthscale`` is the one in one
    dimension; with d parameters that apply together it is longer by d^(1/4), half way to how distances in the cube
    grow.
    """

    lengthscale: float = 0.3
    lengthscale_spread: float = 1.0
    amplitude: float = 1.0
    amplitude_spread: float = 1.0
    noise: float = 0.3
    noise_spread: float = 1.5

    def __call__(self, evidence: Evidence, trust: Floats, start: Fit | None = None) -> Fit:
        """Fit standardised measurements with trust w, (n,), from ``start`` or from the priors' medians."""
        dimension = int(evidence.groups.max()) + 1
        likelihood = _Likelihood(evidence, trust)
        centre, spread = self._medians(evidence.company or (dimension,) * dimension), self._spreads(dimension)

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = likelihood(theta)
            off = (theta - centre) / spread
            return 0.5 * float(off @ off) - value, off / spread - gradient

        bounds = Bounds(np.append((centre - 4 * spread)[:-1], math.log(LEAST_NOISE)), centre + 4 * spread)
        first = centre if start is None else np.log([*start.lengthscales, start.amplitude, start.noise])
        found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50, "ftol": 1e-5})
        return likelihood.fit(found.x, 0.5 * float((((found.x - centre) / spread) ** 2).sum()))

    def _medians(self, company: tuple[int, ...]) -> Floats:
        return np.log([*(self.lengthscale * together**0.25 for together in company), self.amplitude, self.noise])

    def _spreads(self, dimension: int) -> Floats:
        return np.array([self.lengthscale_spread] * dimension + [self.amplitude_spread, self.noise_spread])


def log_likelihood(evidence: Evidence, trust: Floats, fit: Fit) -> float:
    """Log density of standardised measurements with trust w, (n,), under the model with these numbers."""
    return _Likelihood(evidence, trust)(np.log([*fit.lengthscales, fit.amplitude, fit.noise]))[0]


class _Likelihood:
    """Log likelihood of theta = log(lengthscales, amplitude, noise), and its gradient."""

    def __init__(self, evidence: Evidence, trust: Floats) -> None:
        self.evidence = evidence
        unknown = np.isnan(evidence.noise)
        known = np.where(unknown, 0.0, trust / np.where(unknown, 1.0, evidence.noise) ** 2)
        self.own = evidence.summed(np.where(unknown, trust, 0.0))  # precision in units of 1 / s^2
        self.told = evidence.summed(known)  # precision as told
        precision = np.where(unknown, trust, known)
        self.average, _ = evidence.pooled(precision)
        squares = precision * (evidence.values - self.average[evidence.where]) ** 2
        self.scatter, self.told_scatter = float(squares[unknown].sum()), float(squares[~unknown].sum())
        self.unknown = int(np.count_nonzero(unknown))
        self.constant = 0.5 * float(np.log(precision).sum()) - 0.5 * len(evidence) * math.log(2 * math.pi)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        amplitude, variance = math.exp(2 * theta[-2]), math.exp(2 * theta[-1])
        kernel, slope = _matern(self.evidence, np.exp(theta[:-2]))
        noise = 1 / (self.own / variance + self.told)
        root, bad = dpotrf(_with_diagonal(amplitude * kernel + CENTRE**2, noise), lower=1, overwrite_a=1)
        if bad:
            return -1e10, np.zeros_like(theta)
        solved = dpotrs(root, self.average, lower=1)[0]
        value = -0.5 * float(self.average @ solved) - float(np.log(root.diagonal()).sum())
        value += 0.5 * float(np.log(noise).sum()) - self.unknown * float(theta[-1])
        value += self.constant - 0.5 * (self.scatter / variance + self.told_scatter)

        gap = np.outer(solved, solved) - _symmetric(dpotri(root, lower=1, overwrite_c=1)[0])  # 2 d value / d matrix
        share = self.own * noise / variance
        gradient = np.empty_like(theta)
        gradient[:-2] = 0.5 * amplitude * self._lengthscale_part(gap * slope, np.exp(theta[:-2]))
        gradient[-2] = amplitude * float(np.einsum("pq,pq->", gap, kernel))
        gradient[-1] = float((gap.diagonal() * noise + 1) @ share) - self.unknown + self.scatter / variance
        return value, gradient

    def _lengthscale_part(self, weighted: Floats, lengthscales: Floats) -> Floats:
        """Sum over pairs p, q of weighted_pq (x_p - x_q)^2 / l^2, for each lengthscale."""
        columns = self.evidence.points.T
        squares = 2 * (columns**2 @ weighted.sum(axis=1) - ((columns @ weighted) * columns).sum(axis=1))
        return np.asarray(np.bincount(self.evidence.groups, squares, len(lengthscales))) / lengthscales**2

    def fit(self, theta: Floats, strange: float) -> Fit:
        """The fit with these numbers, and the mean of f that goes with them."""
        *lengthscales, amplitude, noise = np.exp(theta).tolist()
        variances = 1 / (self.own / noise**2 + self.told)
        matrix = amplitude**2 * _matern(self.evidence, np.array(lengthscales))[0] + CENTRE**2
        centre = CENTRE**2 * float(np.linalg.solve(_with_diagonal(matrix, variances), self.average).sum())
        return Fit(tuple(lengthscales), amplitude, max(noise, LEAST_NOISE * amplitude), centre, strange)


def _matern(evidence: Evidence, lengthscales: Floats) -> tuple[Floats, Floats]:
    """Matern 5/2 of all pairs of points, and l^2 / (x_p - x_q)^2 times its derivative by log l, both (u, u)."""
    scaled = evidence.points / lengthscales[evidence.groups]
    z = cdist(scaled, scaled)
    z *= math.sqrt(5)
    decay = np.exp(-z)
    slope = (1 + z) * decay
    return slope + z * z * decay / 3, slope * (5 / 3)


def _with_diagonal(matrix: Floats, diagonal: Floats) -> Floats:
    matrix[np.diag_indices_from(matrix)] += diagonal
    return matrix


def _symmetric(lower: Floats) -> Floats:
    """The symmetric matrix with this lower triangle, whose upper one is zero."""
    full = lower + lower.T
    full[np.diag_indices_from(full)] *= 0.5
    return np.asarray(full)
