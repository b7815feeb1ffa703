"""Noise models, and the trust in each measurement: the farther it lies from the others, the smaller.

A Student-t likelihood with few degrees of freedom is Gaussian noise whose precision is multiplied by a trust of each
measurement's own, with a Gamma distribution; given the rest, the expectation of the trust is

    w = (dof + 1) / (dof + (r^2 + std(x)^2) / s^2),    r the residual, s the noise.

Alternating between w and the posterior of f (variational expectation maximisation) makes a measurement count for less
the less it agrees with the rest, and for nothing if it is absurd. Measurements of one point that agree with each other
are trusted, however far they lie from the rest: noise does not repeat itself. So are values that many measurements
share, such as rounded or counted ones, 0 and 1: outliers do not repeat. A heuristic without a bound.

`LocalNoise` multiplies the precision by exp(-g(x)) instead, g a smooth function of the setting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from noregret.gp import functions as sp
from noregret.gp.kernels import Matern
from noregret.gp.posterior import Floats
from noregret.optimizer.model.evidence import ABSURD, LEAST_NOISE, SURPRISING, UNLIKELY, Evidence
from noregret.optimizer.model.kernel import Fit

COMMON, COMMON_COUNT = 0.05, 3
"""A value that at least this part of all measurements have, and at least this number of them, is no outlier."""

ITERATIONS = 4
"""Times that the trust in measurements, or the level of their noise, and the posterior of f are found in turn. Not
measured."""

STEPS, PRECISE = 50, 0.01
"""Newton steps at the most for log noise levels, and the step below which they are precise enough."""


class NoiseModel(Protocol):
    """Distribution of the noise: the trust in each measurement under it, and its evidence."""

    @property
    def heavy(self) -> bool:
        """True if trust differs between measurements."""

    @property
    def varies(self) -> bool:
        """True if the noise level varies with the setting."""

    def first(self, evidence: Evidence) -> Floats:
        """Trust in each measurement before anything is fitted, (n,)."""

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        """Factor on the precision of each measurement, (n,)."""

    def learnt(self, evidence: Evidence, fit: Fit) -> NoiseModel:
        """The same with the noise levels that these measurements suggest."""

    def levels(self, points: Floats) -> Floats:
        """Variance of the noise at (n, d) points, as a multiple of the fitted one, (n,)."""

    def arriving(self, residual: float, std: float, noise: float) -> float:
        """Trust in one new measurement with this residual, under a posterior with this std."""

    def distance(self, deviations: float) -> float:
        """The standard deviations of a Gaussian that are as rare as this number of units of this noise."""

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        """Nats to subtract from the log likelihood under this trust, since the trust was chosen."""


class _OneLevel:
    """Noise that is the same at all settings."""

    varies: ClassVar[bool] = False

    def learnt(self, evidence: Evidence, fit: Fit) -> Self:
        return self

    def levels(self, points: Floats) -> Floats:
        return np.ones(len(points))


@dataclass(frozen=True)
class GaussianNoise(_OneLevel):
    """Gaussian noise: every measurement is trusted alike, which is least squares."""

    heavy: ClassVar[bool] = False

    def first(self, evidence: Evidence) -> Floats:
        return np.ones(len(evidence))

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        return np.ones(len(evidence))

    def arriving(self, residual: float, std: float, noise: float) -> float:
        """1, unless Gaussian noise is out of the question: then what a heavier tail would say, for now."""
        wild = abs(residual) > SURPRISING * math.hypot(std, noise)
        return StudentNoise().arriving(residual, std, noise) if wild else 1.0

    def distance(self, deviations: float) -> float:
        return deviations

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        return 0.0


@dataclass(frozen=True)
class StudentNoise(_OneLevel):
    """Heavy-tailed noise: trust by a Student-t likelihood with ``dof`` degrees of freedom.

    At a point measured n times they grow to dof + growth (n - 1): the more measurements share the load, the farther out
    one may lie before it is doubted. So the estimate moves from the middle of the noise to its mean as repeats come in,
    which differ if the noise is skewed, while one absurd value among few is still ignored.
    """

    dof: float = 4.0
    """2 as well made no difference: decision 0189."""
    growth: float = 0.5
    """For skewed noise: decision 0192."""
    iterations: int = ITERATIONS
    heavy: ClassVar[bool] = True

    def first(self, evidence: Evidence) -> Floats:
        return _expected(self._dofs(evidence), evidence.values**2)

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        kernel = fit.covariance(evidence)
        dofs, variances, trust = self._dofs(evidence), evidence.variance(fit.noise**2), self.first(evidence)
        own, shared = _disagreement(evidence), are_shared(evidence)
        for _ in range(self.iterations):
            mean, variance, _ = smoothed(kernel, evidence, trust / variances, fit.centre)
            squares = (evidence.values - mean[evidence.where]) ** 2 + variance[evidence.where]
            trust = _expected(dofs, np.minimum(squares, own) / variances)
            trust = np.where(shared, np.maximum(trust, 1.0), trust)
        return trust

    def arriving(self, residual: float, std: float, noise: float) -> float:
        dof, trust = self.dof + self.growth * noise**2 / max(std, 1e-3 * noise) ** 2, 1.0
        for _ in range(2 * self.iterations):
            kept = noise**2 / (noise**2 + trust * std**2)  # the share of residual and variance that stays
            trust = (dof + 1) / (dof + kept * (kept * residual**2 + std**2) / noise**2)
        return trust

    def distance(self, deviations: float) -> float:
        return float(-sp.ndtri(sp.stdtr(self.dof, -deviations)))

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        """KL(q || prior) - (E ln u - ln w) / 2 summed over the trusts u ~ q = Gamma(a, a / w), prior Gamma(b, b)."""
        dofs = self._dofs(evidence)
        a, b = (dofs + 1) / 2, dofs / 2
        spread = (sp.digamma(a) - np.log(a)) / 2  # (E ln u - ln w) / 2
        divergence = (
            (a - b) * sp.digamma(a) - sp.gammaln(a) + sp.gammaln(b) + b * np.log(a / (trust * b)) + b * trust - a
        )
        return float((divergence - spread).sum())

    def _dofs(self, evidence: Evidence) -> Floats:
        """Degrees of freedom of each measurement, (n,)."""
        return np.asarray(self.dof + self.growth * (evidence.summed(np.ones(len(evidence))) - 1)[evidence.where])


@dataclass(frozen=True)
class LocalNoise:
    """Gaussian noise whose level varies with the setting: its variance is s^2 exp(g(x)), and g a smooth function.

    g ~ GP(0, amplitude^2 k), k Matern 5/2 with one lengthscale for all coordinates. Given the posterior of f, the most
    probable g is found (`log_levels`), and the other way round, in turn: expectation maximisation, as for Student-t
    noise. A point measured n times counts as n measurements of the level there. The model is that of Goldberg, Williams
    and Bishop (1998), and g is fitted as by Kersting, Plagemann, Pfaff and Burgard (2007), without sampling.
    """

    amplitude: float = 3.0
    """Prior standard deviation of g: 3 is a factor of 4.5 on the standard deviation of the noise. Not measured."""
    lengthscale: float = 0.5
    """Lengthscale of g in units of sqrt(d), the diagonal of the cube. Of 0.25, 0.5, 1 and 2 it was the one that told
    two halves with different noise apart from the fewest measurements, and not heavy tails from Gaussian noise."""
    fitted: LogLevel | None = None
    """g as it was fitted; None before that, when it counts as 0."""
    heavy: ClassVar[bool] = True
    varies: ClassVar[bool] = True

    def first(self, evidence: Evidence) -> Floats:
        return np.ones(len(evidence))

    def learnt(self, evidence: Evidence, fit: Fit) -> LocalNoise:
        kernel, prior = fit.covariance(evidence), self._prior(evidence.points)
        own = np.isnan(evidence.noise).astype(float)  # others say nothing about the level
        counts, variance, variances = evidence.summed(own), fit.noise**2, evidence.variance(fit.noise**2)
        lowest = 2 * math.log(min(LEAST_NOISE * max(fit.size, 1.0) / fit.noise, 1.0))
        g = weights = np.zeros(len(counts))
        for _ in range(ITERATIONS):
            precision = np.exp(-np.maximum(g, lowest))[evidence.where] / variances
            mean, spread, _ = smoothed(kernel, evidence, precision, fit.centre)
            squares = evidence.summed(own * (evidence.values - mean[evidence.where]) ** 2) + counts * spread
            g, weights = log_levels(prior, counts, squares / variance, g)
        return replace(self, fitted=LogLevel(evidence.points, weights, lowest))

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        """The inverse of the level at each measurement, (n,); the level is fitted to them if it is not yet."""
        known = self if self.fitted else self.learnt(evidence, fit)
        return np.asarray(1 / known.levels(evidence.points)[evidence.where])

    def levels(self, points: Floats) -> Floats:
        if self.fitted is None:
            return np.ones(len(points))
        logarithms = self._kernel(points, self.fitted.points) @ self.fitted.weights
        return np.asarray(np.exp(np.maximum(logarithms, self.fitted.lowest)))

    def arriving(self, residual: float, std: float, noise: float) -> float:
        return GaussianNoise().arriving(residual, std, noise)

    def distance(self, deviations: float) -> float:
        return deviations

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        """(g' P^-1 g + ln det(I + P W)) / 2 + `UNLIKELY`, P the prior covariance of g at the points, W its information.

        Laplace's approximation. The information of n measurements about the log variance of their noise is n / 2.
        """
        prior, information = self._prior(evidence.points), evidence.summed(np.ones(len(evidence))) / 2
        g = np.zeros(len(prior))
        g[evidence.where] = -np.log(trust)
        odd = float(g @ sp.dpotrs(sp.dpotrf(prior, lower=1)[0], g, lower=1)[0])
        return 0.5 * odd + float(np.log(_root(prior, information).diagonal()).sum()) + UNLIKELY

    def _kernel(self, first: Floats, second: Floats) -> Floats:
        lengthscale = self.lengthscale * math.sqrt(first.shape[1])
        return np.asarray(self.amplitude**2 * Matern(2.5, lengthscale)(first, second))

    def _prior(self, points: Floats) -> Floats:
        """Prior covariance of g at (u, d) points, (u, u), with a nugget so that it can be factorised."""
        return self._kernel(points, points) + (LEAST_NOISE * self.amplitude) ** 2 * np.eye(len(points))


@dataclass(frozen=True, eq=False)
class LogLevel:
    """g(x) = sum of weights_j k(x, points_j), at least ``lowest``."""

    points: Floats
    weights: Floats
    lowest: float


def log_levels(
    prior: Floats, counts: Floats, squares: Floats, start: Floats, precise: float = PRECISE
) -> tuple[Floats, Floats]:
    """Most probable log noise variances g at u points, (u,), and P^-1 g, for the (u, u) prior covariance P.

    ``counts`` are the measurements of each point, ``squares`` the sums of their squared noise. g is the maximum of
    -sum(counts g + squares exp(-g)) / 2 - g' P^-1 g / 2, which is concave. Newton's method from ``start``; the
    curvature counts as no less than its expectation counts / 2, so that each step is at most about 1.
    """
    g, weights = start, start
    for _ in range(STEPS):
        ratio = squares * np.exp(-g)
        information = np.maximum(counts, ratio) / 2
        wanted = information * g + (ratio - counts) / 2
        scaled = np.sqrt(information)
        solved = sp.dpotrs(_root(prior, information), scaled * (prior @ wanted), lower=1)[0]
        weights = wanted - scaled * solved  # (I + W P)^-1 wanted
        step = prior @ weights - g
        g = g + step
        if np.abs(step).max() < precise:
            break
    return g, weights


def _root(prior: Floats, information: Floats) -> Floats:
    """Cholesky factor of I + W^(1/2) P W^(1/2), W = diag(information)."""
    scaled = np.sqrt(information)
    matrix = scaled[:, None] * prior * scaled
    matrix[np.diag_indices_from(matrix)] += 1
    return np.asarray(sp.dpotrf(matrix, lower=1, overwrite_a=1)[0])  # cannot fail: no eigenvalue is below 1


def are_shared(evidence: Evidence) -> NDArray[np.bool_]:
    """Mask of the measurements whose value many have, (n,), and is not absurd."""
    _, which, counts = np.unique(evidence.values, return_inverse=True, return_counts=True)
    return np.asarray(
        (counts[which] >= max(COMMON_COUNT, COMMON * len(evidence))) & (np.abs(evidence.values) <= ABSURD)
    )


def _disagreement(evidence: Evidence) -> Floats:
    """Squared distance of each measurement from the middle of those of its point, (n,); infinite for a single one.

    It is as large on average as the noise's variance, since the middle of two is half way to each.
    """
    counts = evidence.summed(np.ones(len(evidence)))[evidence.where]
    squares = (evidence.values - evidence.medians()[evidence.where]) ** 2
    return np.where(counts > 1, squares * counts / np.maximum(counts - 1, 1), np.inf)


def _expected(dofs: Floats, squares: Floats) -> Floats:
    return np.asarray((dofs + 1) / (dofs + squares))


def surprising(evidence: Evidence, fit: Fit) -> bool:
    """Return True if some point's average is out of the question if all others are right and the noise is Gaussian."""
    surprise = smoothed(fit.covariance(evidence), evidence, 1 / evidence.variance(fit.noise**2), fit.centre)[2]
    return bool(np.abs(surprise).max() > SURPRISING)


def smoothed(kernel: Floats, evidence: Evidence, precision: Floats, centre: float) -> tuple[Floats, Floats, Floats]:
    """Posterior mean and variance at the measured points, and the surprise of each, three (u,).

    With a the pooled averages of measurements with these (n,) precisions, D = diag(1 / pooled precision) and A = K + D,
    the residuals are D A^-1 (a - c), the variances D - D diag(A^-1) D, and A^-1 (a - c) / sqrt(diag(A^-1)) is how many
    standard deviations each average lies from what all others predict.
    """
    average, total = evidence.pooled(precision)
    noise = 1 / total
    matrix = kernel.copy()
    matrix[np.diag_indices_from(matrix)] += noise
    root, bad = sp.dpotrf(matrix, lower=1, overwrite_a=1)
    if bad:
        raise ValueError(f"kernel matrix of {len(noise)} points is not positive definite: noise is too small for it")
    inverse = sp.dtrtri(root, lower=1, overwrite_c=1)[0]  # dpotrf has put zeros above the diagonal
    solved = inverse.T @ (inverse @ (average - centre))
    diagonal = np.einsum("ij,ij->j", inverse, inverse)
    variance = np.maximum(noise - noise**2 * diagonal, 0.0)
    return average - noise * solved, variance, solved / np.sqrt(diagonal)
