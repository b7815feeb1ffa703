"""Weights: how far each measurement is trusted, from how far it lies from what the others say.

A Student-t likelihood with few degrees of freedom is Gaussian noise whose precision is multiplied by a trust of each
measurement's own, with a Gamma distribution; given the rest, the expectation of the trust is

    w = (dof + 1) / (dof + (r^2 + std(x)^2) / s^2),    r the residual, s the noise.

Alternating between w and the posterior of f (variational expectation maximisation) makes a measurement count for less
the less it agrees with the rest, and for nothing if it is absurd. Measurements of one point that agree with each other
are trusted, however far they lie from the rest: noise does not repeat itself, so f is like that there. So are values
that many measurements share: rounded or counted values repeat themselves, as do 0 and 1, accidents do not. A heuristic
without a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import digamma, gammaln, ndtri, stdtr

from noregret.belief.posterior import Floats
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.fit import Fit

SURPRISING = 5.0
"""Standard deviations from the prediction beyond which Gaussian noise is out of the question."""

COMMON, FEW = 0.05, 3
"""A value that this part of all measurements have, and at least so many, is no accident."""

ABSURD = 10.0
"""A value that lies more than so many units from the centre is one, however many have it."""


class Weighing(Protocol):
    """A view of the noise: how far measurements are trusted under it, and how well it explains them."""

    @property
    def heavy(self) -> bool:
        """Whether trust differs between measurements."""
        ...

    def first(self, evidence: Evidence) -> Floats:
        """Trust in each measurement before anything is fitted, (n,)."""
        ...

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        """Trust in each measurement, (n,)."""
        ...

    def arriving(self, residual: float, std: float, noise: float) -> float:
        """Trust in one new measurement that lies so far from the mean of a belief with this std."""
        ...

    def distance(self, deviations: float) -> float:
        """The standard deviations of a Gaussian that are as rare as so many units of this noise."""
        ...

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        """What this view must take off the log likelihood that the trust gives, for having chosen the trust."""
        ...


@dataclass(frozen=True)
class Equal:
    """Gaussian noise: every measurement is trusted alike, which is least squares."""

    heavy: ClassVar[bool] = False

    def first(self, evidence: Evidence) -> Floats:
        return np.ones(len(evidence))

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        return np.ones(len(evidence))

    def arriving(self, residual: float, std: float, noise: float) -> float:
        """1, unless Gaussian noise is out of the question: then what a heavier tail would say, for now."""
        wild = abs(residual) > SURPRISING * math.hypot(std, noise)
        return StudentT().arriving(residual, std, noise) if wild else 1.0

    def distance(self, deviations: float) -> float:
        return deviations

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        return 0.0


@dataclass(frozen=True)
class StudentT:
    """Heavy-tailed noise: trust by a Student-t likelihood with ``dof`` degrees of freedom.

    At a point measured n times they grow to dof + growth (n - 1): the more measurements share the load, the farther out
    one may lie before it is doubted. So the estimate moves from the middle of the noise to its mean as repeats come in,
    which differ if the noise is skewed, while one absurd value among few is still ignored.
    """

    dof: float = 4.0
    growth: float = 0.5
    iterations: int = 4
    heavy: ClassVar[bool] = True

    def first(self, evidence: Evidence) -> Floats:
        return _expected(self._dofs(evidence), evidence.values**2)

    def trust(self, evidence: Evidence, fit: Fit) -> Floats:
        kernel = fit.covariance(evidence)
        dofs, variances, trust = self._dofs(evidence), evidence.variance(fit.noise**2), self.first(evidence)
        own, shared = _disagreement(evidence), _are_shared(evidence)
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
        return float(-ndtri(stdtr(self.dof, -deviations)))

    def cost(self, evidence: Evidence, trust: Floats) -> float:
        """KL(q || prior) - (E ln u - ln w) / 2 summed over the trusts u ~ q = Gamma(a, a / w), prior Gamma(b, b)."""
        dofs = self._dofs(evidence)
        a, b = (dofs + 1) / 2, dofs / 2
        spread = (digamma(a) - np.log(a)) / 2  # (E ln u - ln w) / 2
        divergence = (a - b) * digamma(a) - gammaln(a) + gammaln(b) + b * np.log(a / (trust * b)) + b * trust - a
        return float((divergence - spread).sum())

    def _dofs(self, evidence: Evidence) -> Floats:
        """Degrees of freedom of each measurement, (n,)."""
        return np.asarray(self.dof + self.growth * (evidence.summed(np.ones(len(evidence))) - 1)[evidence.where])


def _are_shared(evidence: Evidence) -> NDArray[np.bool_]:
    """Whether each measurement has a value that many have, (n,), and that is not absurd."""
    _, which, counts = np.unique(evidence.values, return_inverse=True, return_counts=True)
    return np.asarray((counts[which] >= max(FEW, COMMON * len(evidence))) & (np.abs(evidence.values) <= ABSURD))


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
    """Whether some point's average is out of the question if all others are right and the noise is Gaussian."""
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
    root, bad = dpotrf(matrix, lower=1, overwrite_a=1)
    if bad:
        raise ValueError(f"kernel matrix of {len(noise)} points is not positive definite: noise is too small for it")
    inverse = dtrtri(root, lower=1, overwrite_c=1)[0]  # dpotrf has put zeros above the diagonal
    solved = inverse.T @ (inverse @ (average - centre))
    diagonal = np.einsum("ij,ij->j", inverse, inverse)
    variance = np.maximum(noise - noise**2 * diagonal, 0.0)
    return average - noise * solved, variance, solved / np.sqrt(diagonal)
