"""Fit: kernel, noise and prior mean by maximum of the posterior density of a few numbers.

The model of standardised measurements z at points x is

    z = c + f(x) + e,    c ~ N(0, CENTRE^2),    f ~ GP(0, a^2 k + b^2 k_1),    e ~ N(0, s^2 / w)

with k Matern 5/2 of all parameters, k_1 the average over the parameters of Matern 5/2 of one alone, a lengthscale per
parameter, which both share, and the trust w given (see `weights`). Where parameters act one by one, k_1 explains f,
and every measurement tells about it wherever the other parameters were. The log likelihood of all measurements is
that of the points' pooled averages plus that of the scatter within the points, so its cost is that of the distinct
points: u^3, and u^2 for each parameter. Where points have an age, f changes: both kernels are multiplied by
2^(-|age - age'| / (2 h)), so that half of the variance of f is new after a half-life h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import Bounds, OptimizeResult, minimize
from scipy.spatial.distance import cdist, pdist, squareform

from noregret.belief.kernels import Columns, Kernel, Matern
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.fitting.evidence import Evidence

CENTRE = 2.0
"""Prior standard deviation of the mean of f, in units of the measurements' spread."""

LEAST_NOISE = 1e-3
"""Noise is never taken for less than this part of the amplitude, nor of the unit: matrices stay well-conditioned."""

KNOWN = 1e-6
"""A number whose logarithm has a smaller spread than this is known, and is not fitted."""


@dataclass(frozen=True)
class Fit:
    """What was fitted, in standardised units.

    ``amplitude`` is a, ``additive`` is b, 0 where there is no such part. ``strange`` is how much less likely all this
    is than the priors' medians. ``half_life`` is h, in answers, infinite where f stays as it is.
    """

    lengthscales: tuple[float, ...]
    amplitude: float
    noise: float
    centre: float = 0.0
    strange: float = 0.0
    additive: float = 0.0
    half_life: float = math.inf

    def kernel(self, groups: Ints) -> Kernel:
        """a^2 k + b^2 k_1, each coordinate with the lengthscale of its group."""
        joint = self.amplitude**2 * Matern(2.5, tuple(self.lengthscales[group] for group in groups))
        if not self.additive:
            return joint
        share = self.additive**2 / len(self.lengthscales)
        return sum((share * alone for alone in self._alone(groups)), start=joint)

    def _alone(self, groups: Ints) -> list[Kernel]:
        """Matern 5/2 of each parameter."""
        columns = [tuple(np.flatnonzero(groups == group).tolist()) for group in range(len(self.lengthscales))]
        return [Columns(Matern(2.5, length), its) for length, its in zip(self.lengthscales, columns, strict=True)]

    def covariance(self, evidence: Evidence) -> Floats:
        """Prior covariance of f at the points of the evidence, each at its time, (u, u)."""
        matrix = self.kernel(evidence.groups)(evidence.points, evidence.points)
        return matrix if evidence.ages is None else matrix * fading(apart(evidence.ages), self.half_life)

    @property
    def rate(self) -> float:
        """How much of the variance of f is new after each answer, 1 - 2^(-1 / h)."""
        return -math.expm1(-math.log(2) / self.half_life)

    @property
    def size(self) -> float:
        """Prior standard deviation of f."""
        return math.hypot(self.amplitude, self.additive)

    def scaled(self, ratio: float, factor: float = 1.0) -> Fit:
        """The same with all lengthscales times ``ratio`` and amplitudes times ``factor``."""
        lengthscales = tuple(ratio * each for each in self.lengthscales)
        return replace(
            self, lengthscales=lengthscales, amplitude=factor * self.amplitude, additive=factor * self.additive
        )

    @property
    def theta(self) -> Floats:
        """The logarithms of what is fitted: lengthscales, amplitudes, half-life if it is finite, noise."""
        amplitudes = [self.amplitude, self.additive] if self.additive else [self.amplitude]
        half_life = [self.half_life] if self.half_life < math.inf else []
        return np.log([*self.lengthscales, *amplitudes, *half_life, self.noise])


@dataclass(frozen=True)
class FitMatern:
    """The most probable fit that L-BFGS finds, under priors that are habits and not knowledge.

    Medians and spreads (standard deviations of the logarithm) of what is fitted. ``lengthscale`` is the one in one
    dimension; with d parameters that apply together it is longer by d^(1/4), half way to how distances in the cube
    grow. The additive part is there from ``enough`` points on: fewer do not tell it from the other. Where most
    parameters are choices, it is there from the start and expected to be ``additive_names``: a choice has no neighbours
    from which the joint part could learn. The ``half_life`` is fitted where points have an age and nobody knows it.

    Where f has many hills, there is often another maximum at which they all count as noise, with long lengthscales. So
    from ``enough`` points on the search starts from the medians with lengthscales times each of the ``starts``, and the
    most probable end is taken.
    """

    lengthscale: float = 0.3
    lengthscale_spread: float = 1.0
    amplitude: float = 1.0
    amplitude_spread: float = 1.0
    additive: float = 0.4
    additive_names: float = 1.0
    enough: int = 50
    noise: float = 0.3
    noise_spread: float = 1.5
    half_life: float = 50.0
    half_life_spread: float = 0.7
    starts: tuple[float, ...] = (1.0, 0.25)

    def __call__(self, evidence: Evidence, trust: Floats, start: Fit | None = None) -> Fit:
        """Fit standardised measurements with trust w, (n,), from ``start`` or, without one, from ``starts``."""
        dimension = int(evidence.groups.max()) + 1
        likelihood = _Likelihood(evidence, trust)
        is_named = _is_mostly_names(evidence)
        parts = 2 if dimension > 1 and (is_named or len(evidence.points) >= self.enough) else 1
        company = evidence.company or (dimension,) * dimension
        amplitudes = [self.amplitude, self.additive_names if is_named else self.additive][:parts]
        centre, spread = self._medians(company, amplitudes, evidence), self._spreads(dimension, parts, evidence)

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = likelihood(theta)
            off = (theta - centre) / spread
            return 0.5 * float(off @ off) - value, off / spread - gradient

        reach = np.where(spread < KNOWN, 0.0, 4 * spread)
        bounds = Bounds(np.append((centre - reach)[:-1], math.log(LEAST_NOISE)), centre + reach)
        firsts = self._firsts(centre, dimension, len(evidence.points)) if start is None else [start.theta]
        found = min((_minimised(loss, first, bounds) for first in firsts), key=lambda end: float(end.fun))
        return likelihood.fit(found.x, 0.5 * float((((found.x - centre) / spread) ** 2).sum()))

    def _firsts(self, centre: Floats, dimension: int, points: int) -> list[Floats]:
        """Where the search starts."""
        is_length = np.arange(len(centre)) < dimension
        return [centre + math.log(ratio) * is_length for ratio in self.starts[: None if points >= self.enough else 1]]

    def _medians(self, company: tuple[int, ...], amplitudes: list[float], evidence: Evidence) -> Floats:
        lengthscales = [self.lengthscale * together**0.25 for together in company]
        half_life = [] if evidence.ages is None else [evidence.half_life or self.half_life]
        return np.log([*lengthscales, *amplitudes, *half_life, self.noise])

    def _spreads(self, dimension: int, parts: int, evidence: Evidence) -> Floats:
        amplitudes, known = [self.amplitude_spread] * parts, KNOWN / 2 if evidence.half_life else self.half_life_spread
        half_life = [] if evidence.ages is None else [known]
        return np.array([self.lengthscale_spread] * dimension + amplitudes + half_life + [self.noise_spread])


def _minimised(loss: Callable[[Floats], tuple[float, Floats]], first: Floats, bounds: Bounds) -> OptimizeResult:
    """Where a descent from there ends."""
    return minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50, "ftol": 3e-4})


def fading(ages: Floats, half_life: float) -> Floats:
    """2^(-age / 2h), the correlation of f with f that many answers ago: its square is 1/2 at the half-life h."""
    return np.asarray(np.exp2(-ages / (2 * half_life)))


def apart(ages: Floats) -> Floats:
    """How many answers lie between each two, (u,) -> (u, u)."""
    return np.asarray(np.abs(ages[:, None] - ages))


def _is_mostly_names(evidence: Evidence) -> bool:
    """Whether most parameters are choices: each coordinate has two values, or a third where it does not apply."""
    few = [len(np.unique(column)) <= 3 for column in evidence.points.T]
    named = np.bincount(evidence.groups, few) == np.bincount(evidence.groups)
    return bool(2 * np.count_nonzero(named) > named.size)


def log_likelihood(evidence: Evidence, trust: Floats, fit: Fit) -> float:
    """Log density of standardised measurements with trust w, (n,), under the model with these numbers."""
    return _Likelihood(evidence, trust)(fit.theta)[0]


class _Likelihood:
    """Log likelihood of theta = log(lengthscales, amplitudes, half-life if points have an age, noise), its gradient."""

    def __init__(self, evidence: Evidence, trust: Floats) -> None:
        self.evidence = evidence
        self.dimension = int(evidence.groups.max()) + 1
        self.answers_apart = None if evidence.ages is None else apart(evidence.ages)
        self.apart = [pdist(evidence.points[:, evidence.groups == group]) for group in range(self.dimension)]
        unknown = np.isnan(evidence.noise)
        known = np.where(unknown, 0.0, trust / np.where(unknown, 1.0, evidence.noise) ** 2)
        self.own = evidence.summed(np.where(unknown, trust, 0.0))  # precision in units of 1 / s^2
        self.told = evidence.summed(known)  # precision as told
        precision = np.where(unknown, trust, known)
        own_average, told_average = _averages(evidence, np.where(unknown, trust, 0.0), known)
        self.told_average, self.between = told_average, own_average - told_average
        centres = np.where(unknown, own_average[evidence.where], told_average[evidence.where])
        squares = precision * (evidence.values - centres) ** 2
        self.scatter, self.told_scatter = float(squares[unknown].sum()), float(squares[~unknown].sum())
        self.unknown = int(np.count_nonzero(unknown))
        self.constant = 0.5 * float(np.log(precision).sum()) - 0.5 * len(evidence) * math.log(2 * math.pi)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        lengthscales, amplitudes, half_life, variance = self._split(theta)
        kernels, slope, slopes = self._kernels(lengthscales, amplitudes.size)
        faded = self._faded(half_life)
        kernels = [kernel * faded for kernel in kernels]
        noise = 1 / (self.own / variance + self.told)
        root, bad = dpotrf(_with_diagonal(_mixed(amplitudes, kernels), noise), lower=1, overwrite_a=1)
        if bad:
            return -1e10, np.zeros_like(theta)
        share, average = self._pooled(noise, variance)
        solved = dpotrs(root, average, lower=1)[0]
        value = -0.5 * float(average @ solved) - float(np.log(root.diagonal()).sum())
        value += 0.5 * float(np.log(noise).sum()) - self.unknown * float(theta[-1])
        between = self.told * share * self.between**2
        value += self.constant - 0.5 * (self.scatter / variance + self.told_scatter + float(between.sum()))

        gap = np.outer(solved, solved) - _symmetric(dpotri(root, lower=1, overwrite_c=1)[0])  # 2 d value / d matrix
        by_lengthscale = 0.5 * amplitudes[0] * self._lengthscale_part(gap * faded * slope, lengthscales)
        if slopes:
            pairs = squareform(gap * faded, checks=False)
            by_lengthscale += amplitudes[1] * np.array([pairs @ each for each in slopes])
        by_amplitude = amplitudes * [float(np.einsum("pq,pq->", gap, kernel)) for kernel in kernels]
        by_noise = float((gap.diagonal() * noise + 1) @ share) - self.unknown + self.scatter / variance
        by_noise += float((1 - share) @ (2 * solved * share * self.between + between))
        by_half_life = self._half_life_part(gap, amplitudes, kernels, half_life)
        return value, np.array([*by_lengthscale, *by_amplitude, *by_half_life, by_noise])

    def _split(self, theta: Floats) -> tuple[Floats, Floats, float, float]:
        """Lengthscales, squared amplitudes, half-life and noise variance."""
        is_aged = self.answers_apart is not None
        amplitudes = theta[self.dimension : -2 if is_aged else -1]
        half_life = math.exp(theta[-2]) if is_aged else math.inf
        return np.exp(theta[: self.dimension]), np.exp(2 * amplitudes), half_life, math.exp(2 * theta[-1])

    def _pooled(self, noise: Floats, variance: float) -> tuple[Floats, Floats]:
        """Of each point, the share of the precision that nobody told, and the average of its measurements, two (u,)."""
        share = self.own * noise / variance
        return share, self.told_average + share * self.between

    def _faded(self, half_life: float) -> Floats | float:
        """How much of f is the same at the times of each two points, (u, u)."""
        return 1.0 if self.answers_apart is None else fading(self.answers_apart, half_life)

    def _half_life_part(self, gap: Floats, amplitudes: Floats, kernels: list[Floats], half_life: float) -> list[float]:
        """The slope by the log half-life, of which there is one if points have an age."""
        if self.answers_apart is None:
            return []
        slopes = gap * self.answers_apart * (math.log(2) / (2 * half_life))
        parts = [float(np.einsum("pq,pq->", slopes, kernel)) for kernel in kernels]
        return [0.5 * float(amplitudes @ parts)]

    def _kernels(self, lengthscales: Floats, parts: int) -> tuple[list[Floats], Floats, list[Floats]]:
        """The first one or two parts of the kernel, (u, u) each, and what the slopes by log lengthscales are made of.

        Of the first part l^2 / (x_p - x_q)^2 times it, (u, u); of the second the slope by each, for all pairs p < q.
        """
        scaled = self.evidence.points / lengthscales[self.evidence.groups]
        joint, slope = _matern(cdist(scaled, scaled))
        if parts == 1:
            return [joint], slope, []
        total, slopes = np.zeros_like(self.apart[0]), []
        for apart, lengthscale in zip(self.apart, lengthscales, strict=True):
            distance = apart / lengthscale
            alone, its = _matern(distance)
            total += alone
            slopes.append(its * distance**2 / self.dimension)
        average = squareform(total / self.dimension, checks=False)
        return [joint, _with_diagonal(average, np.ones(len(average)))], slope, slopes

    def _lengthscale_part(self, weighted: Floats, lengthscales: Floats) -> Floats:
        """Sum over pairs p, q of weighted_pq (x_p - x_q)^2 / l^2, for each lengthscale."""
        columns = self.evidence.points.T
        squares = 2 * (columns**2 @ weighted.sum(axis=1) - ((columns @ weighted) * columns).sum(axis=1))
        return np.asarray(np.bincount(self.evidence.groups, squares, len(lengthscales))) / lengthscales**2

    def fit(self, theta: Floats, strange: float) -> Fit:
        """The fit with these numbers, and the mean of f that goes with them."""
        lengthscales, amplitudes, half_life, variance = self._split(theta)
        noise, faded = 1 / (self.own / variance + self.told), self._faded(half_life)
        kernels = [kernel * faded for kernel in self._kernels(lengthscales, amplitudes.size)[0]]
        matrix = _with_diagonal(_mixed(amplitudes, kernels), noise)
        centre = CENTRE**2 * float(np.linalg.solve(matrix, self._pooled(noise, variance)[1]).sum())
        least = LEAST_NOISE * math.sqrt(amplitudes.sum())
        amplitude, *additive = np.sqrt(amplitudes).tolist()
        noise_std, both = max(math.sqrt(variance), least), sum(additive)
        return Fit(tuple(lengthscales.tolist()), amplitude, noise_std, centre, strange, both, half_life)


def _averages(evidence: Evidence, own: Floats, told: Floats) -> tuple[Floats, Floats]:
    """Averages of each point's measurements with these two (n,) precisions, the other one where all of its are 0."""
    sums = [(evidence.summed(each * evidence.values), evidence.summed(each)) for each in (own, told)]
    ours, theirs = (total / np.where(weight > 0, weight, np.nan) for total, weight in sums)
    return np.where(np.isnan(ours), theirs, ours), np.where(np.isnan(theirs), ours, theirs)


def _matern(distances: Floats) -> tuple[Floats, Floats]:
    """Matern 5/2 of distances r in lengthscales, and 1 / r^2 times its derivative by log l."""
    z = math.sqrt(5) * distances
    decay = np.exp(-z)
    slope = (1 + z) * decay
    return slope + z * z * decay / 3, slope * (5 / 3)


def _mixed(amplitudes: Floats, kernels: list[Floats]) -> Floats:
    """Prior covariance of the points' values, (u, u): of f, and of the mean c."""
    return sum((a * kernel for a, kernel in zip(amplitudes, kernels, strict=True)), start=np.array(CENTRE**2))


def _with_diagonal(matrix: Floats, diagonal: Floats) -> Floats:
    np.einsum("ii->i", matrix)[:] += diagonal  # a view of the diagonal
    return matrix


def _symmetric(lower: Floats) -> Floats:
    """The symmetric matrix with this lower triangle, whose upper one is zero."""
    full = lower + lower.T
    np.einsum("ii->i", full)[:] *= 0.5
    return np.asarray(full)
