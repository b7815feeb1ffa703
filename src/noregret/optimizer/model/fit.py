"""Fit: the numbers of a model by maximum of their posterior density.

The log likelihood of all observations is that of the points' pooled averages plus that of the scatter within the
points, so its cost is that of the distinct points: u^3, and u^2 for each parameter. What is symmetric is computed for
pairs of points p < q alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats
from noregret.optimizer.model.evidence import LEAST_NOISE, Evidence
from noregret.optimizer.model.kernel import CENTRE, Fit
from noregret.optimizer.model.posterior import faded
from noregret.optimizer.space.space import SAME

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

LENGTHSCALE = 0.3
"""Median of the prior of a lengthscale in one dimension: decision 0098."""


@dataclass(frozen=True)
class FitMatern:
    """The most probable fit that L-BFGS finds, under priors that are heuristic.

    Medians and spreads (standard deviations of the logarithm) of what is fitted; ``spread`` is that of lengthscales and
    amplitudes. ``lengthscale`` is the one in one
    dimension; with d parameters that apply together it is longer by d^(1/4), half way to how distances in the cube
    grow. If f is rough along the axes, the median is ``lengthscale`` times d: distances along the axes add up.
    The additive part is there from ``enough`` points on: fewer do not tell it from the other. Where most parameters are
    choices, it is there from the start and expected to be as large as the other: a choice has no neighbours from which
    the joint part could learn. The ``half_life`` is fitted where points have an age and it is unknown.
    Offsets of blocks have the prior of the noise.

    The posterior density often has several maxima: at one of them all that varies is noise, with long lengthscales,
    even where repeats agree. So the search starts at the medians with the noise that repeats show, and from ``enough``
    points on with lengthscales times each of the ``length_starts``; the most probable end is taken.
    """

    lengthscale: float = LENGTHSCALE
    amplitude: float = 1.0
    """The unit of the values is their spread."""
    spread: float = 1.0
    """A factor of 2.7; wider ones are worse: decision 0098."""
    additive: float = 0.4
    """1 finds what is additive sooner, and a narrow hill never: decision 0098."""
    enough: int = 50
    """Decision 0098."""
    noise: float = 0.3
    """Not measured."""
    noise_spread: float = 1.5
    """A factor of 4.5; not measured."""
    half_life: float = 50.0
    """Not measured: see decision 0160."""
    half_life_spread: float = 0.7
    """A factor of 2; not measured: see decision 0160."""
    length_starts: tuple[float, ...] = (1.0, 0.25)
    """Decision 0098."""

    def __call__(self, evidence: Evidence, trust: Floats, start: Fit | None = None, is_rough: bool = False) -> Fit:
        """Fit standardised measurements with trust w, (n,), from ``start`` or else from the likeliest start."""
        dimension = int(evidence.groups.max()) + 1
        is_named = _is_mostly_names(evidence)
        likelihood = Likelihood(evidence, trust, is_rough)
        parts = 2 if not is_rough and dimension > 1 and (is_named or len(evidence.points) >= self.enough) else 1
        active_together = evidence.active_together or (dimension,) * dimension
        amplitudes = [self.amplitude, self.amplitude if is_named else self.additive][:parts]
        centre = self._medians(active_together, amplitudes, evidence, is_rough)
        half_life = [] if evidence.ages is None else [SAME if evidence.half_life else self.half_life_spread]
        noises = [self.noise_spread] * (likelihood.factors.size + 1)
        spread = np.array([self.spread] * (dimension + parts) + half_life + noises)

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = likelihood(theta)
            off = (theta - centre) / spread
            return 0.5 * float(off @ off) - value, off / spread - gradient

        reach = np.where(spread <= SAME, 0.0, 4 * spread)
        ends = np.append((centre - reach)[:-1], math.log(LEAST_NOISE)), centre + reach
        is_start = start is not None and len(start.theta) == len(centre)  # the other may have another kind of kernel
        starts = [start.theta] if start and is_start else self._starts(centre, likelihood, len(evidence.points))
        optimum = min((minimised(loss, each, *ends) for each in starts), key=lambda end: float(end.fun))
        return likelihood.fit(optimum.x, 0.5 * float((((optimum.x - centre) / spread) ** 2).sum()))

    def usual(self, evidence: Evidence, is_rough: bool = False) -> Fit:
        """The medians of the prior, whatever the values are, and the mean of f that goes with them."""
        dimension = int(evidence.groups.max()) + 1
        medians = self._medians((dimension,) * dimension, [self.amplitude], evidence, is_rough)
        return Likelihood(evidence, np.ones(len(evidence)), is_rough).fit(medians, 0.0)

    def _starts(self, centre: Floats, likelihood: Likelihood, points: int) -> list[Floats]:
        """Medians with the noise that repeats show and with other lengthscales."""
        start = centre.copy()
        start[-1] = likelihood.log_noise_of_repeats(centre[-1])
        is_length = np.arange(len(centre)) < likelihood.dimension
        ratios = self.length_starts[: None if points >= self.enough else 1]
        return [start + math.log(ratio) * is_length for ratio in ratios]

    def _medians(
        self, together: tuple[int, ...], amplitudes: list[float], evidence: Evidence, is_rough: bool
    ) -> Floats:
        lengthscales = [self.lengthscale * (each if is_rough else each**0.25) for each in together]
        half_life = [] if evidence.ages is None else [evidence.half_life or self.half_life]
        return np.log([*lengthscales, *amplitudes, *half_life, *[self.noise] * (evidence.factors.size + 1)])


def minimised(
    loss: Callable[[Floats], tuple[float, Floats]], first: Floats, lower: Floats, upper: Floats, steps: int = 50
) -> OptimizeResult:
    """Result of L-BFGS-B started at ``first``."""
    from scipy.optimize import Bounds, minimize  # here, as it takes 0.1 s to import

    bounds = Bounds(lower, upper)
    return minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "ftol": 3e-4})


def _is_mostly_names(evidence: Evidence) -> bool:
    """Return True if most parameters are choices: each coordinate has two values, or a third if it is inactive."""
    few = np.count_nonzero(np.diff(np.sort(evidence.points, axis=0), axis=0), axis=0) < 3
    named = np.bincount(evidence.groups, few) == np.bincount(evidence.groups)
    return bool(2 * np.count_nonzero(named) > named.size)


def is_mostly_discrete(evidence: Evidence, first: int = 16, share: float = 0.75) -> bool:
    """Return True if most parameters have few values and most are no choices.

    A parameter has few values if the first points have less than this share of distinct ones.
    """
    if _is_mostly_names(evidence):
        return False
    points = evidence.points[:first]
    distinct = 1 + np.count_nonzero(np.diff(np.sort(points, axis=0), axis=0), axis=0)
    few = distinct < share * len(points)
    discrete = np.bincount(evidence.groups, few) == np.bincount(evidence.groups)
    return bool(2 * np.count_nonzero(discrete) > discrete.size)


NUMBERS_AT_ONCE = 16_384
"""Numbers that are computed at once: what fits into a processor's cache is computed two to three times as fast."""

IMPOSSIBLE = -1e10
"""The log likelihood under a covariance that is not positive definite after rounding. It is finite, so that a search
goes back from there; not measured."""


def log_likelihood(evidence: Evidence, trust: Floats, fit: Fit) -> float:
    """Log density of standardised measurements with trust w, (n,), under the model with these numbers."""
    return Likelihood(evidence, trust).at(fit)[0]


class _Solved(NamedTuple):
    """A log likelihood and what it is made of: root root' = M, M^-1 y, and of each point noise, share and between."""

    value: float
    root: Floats
    solved: Floats
    noise: Floats
    share: Floats
    between: Floats


class Likelihood:
    """Log likelihood of theta and its gradient.

    Theta is log(lengthscales, amplitudes, half-life if points have an age, offsets of blocks, noise). If f
    ``is_rough``, there is one amplitude.
    """

    def __init__(self, evidence: Evidence, trust: Floats, is_rough: bool = False) -> None:
        self.evidence, self.is_rough = evidence, is_rough
        self.dimension = int(evidence.groups.max()) + 1
        self.answers_apart = None if evidence.ages is None else sp.pdist(evidence.ages[:, None])  # of pairs
        self.factors = evidence.factors
        unknown = np.isnan(evidence.noise)
        known = np.where(unknown, 0.0, trust / np.where(unknown, 1.0, evidence.noise) ** 2)
        self.own = evidence.summed(np.where(unknown, trust, 0.0))  # precision in units of 1 / s^2
        self.told = evidence.summed(known)  # precision of known noise
        precision = np.where(unknown, trust, known)
        own_average, told_average = _averages(evidence, np.where(unknown, trust, 0.0), known)
        self.told_average, self.between = told_average, own_average - told_average
        centres = np.where(unknown, own_average[evidence.where], told_average[evidence.where])
        squares = precision * (evidence.values - centres) ** 2
        self.scatter, self.told_scatter = float(squares[unknown].sum()), float(squares[~unknown].sum())
        self.unknown = int(np.count_nonzero(unknown)) - evidence.agreement()
        self.constant = 0.5 * float(np.log(precision).sum()) - 0.5 * len(evidence) * math.log(2 * math.pi)

    @cached_property
    def apart(self) -> Floats:
        """Distances in each parameter, of all pairs of points, (d, pairs)."""
        evidence = self.evidence
        return np.array([sp.pdist(evidence.points[:, evidence.groups == group]) for group in range(self.dimension)])

    @cached_property
    def _shared(self) -> Floats:
        """1 where two points share a level of a factor that is fitted, 0 elsewhere, (k, u, u)."""
        blocks = self.evidence.blocks
        levels = np.zeros((0, len(self.own))) if blocks is None else blocks.T[self.factors]
        return np.asarray((levels[:, :, None] == levels[:, None]) & (levels >= 0)[:, None], dtype=float)

    @cached_property
    def _room(self) -> Floats:
        """Memory for what every call computes: see `_kernels`."""
        return np.empty((3 + self.dimension, self.apart.shape[1]))

    def at(self, fit: Fit) -> tuple[float, Fit]:
        """The value at a fit, and the fit with the most probable mean of f."""
        solved = self._solved(CENTRE**2 + fit.covariance(self.evidence), fit.noise**2)
        return solved.value, replace(fit, centre=CENTRE**2 * float(solved.solved.sum()))

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        lengthscales, amplitudes, half_life, offsets, variance = self._split(theta)
        kernels, slope, slopes = self._kernels(lengthscales, amplitudes.size)
        fading = 1.0 if self.answers_apart is None else faded(self.answers_apart, half_life)
        kernels *= fading
        prior = sp.squareform(amplitudes @ kernels + CENTRE**2, checks=False)
        prior = _with_diagonal(prior, np.full(len(prior), amplitudes.sum() + CENTRE**2))
        for offset, shared in zip(offsets, self._shared, strict=True):
            prior += offset * shared
        value, root, solved, noise, share, between = self._solved(prior, variance)
        if value == IMPOSSIBLE:
            return value, np.zeros_like(theta)

        # 2 d value / d matrix, where p <= q
        gap = np.outer(solved, solved) - sp.dpotri(root, lower=1, overwrite_c=1)[0].T
        pairs = sp.squareform(gap, checks=False)
        by_lengthscale = amplitudes[0] * self._lengthscale_part(pairs * fading * slope, lengthscales)
        if amplitudes.size > 1:
            by_lengthscale += amplitudes[1] * (slopes @ (pairs * fading)) / (3 * self.dimension)
        by_amplitude = amplitudes * (2 * (kernels @ pairs) + gap.trace())
        twice = 2 * np.triu(gap, 1) + np.diag(gap.diagonal()) if offsets.size else gap
        by_offset = [offset * float((twice * each).sum()) for offset, each in zip(offsets, self._shared, strict=True)]
        by_noise = float((gap.diagonal() * noise + 1) @ share) - self.unknown + self.scatter / variance
        by_noise += float((1 - share) @ (2 * solved * share * self.between + between))
        aged = [] if self.answers_apart is None else [pairs * self.answers_apart]
        by_half_life = [float(each @ (amplitudes @ kernels)) * math.log(2) / (2 * half_life) for each in aged]
        return value, np.array([*by_lengthscale, *by_amplitude, *by_half_life, *by_offset, by_noise])

    def log_noise_of_repeats(self, expected: float) -> float:
        """Log noise that observations of one point show, shrunk towards this one as if it were one more of them."""
        repeats = self.unknown - int(np.count_nonzero(self.own))
        if repeats == 0:
            return expected
        shown = 0.5 * math.log(max(self.scatter / repeats, LEAST_NOISE**2))
        return (expected + repeats * shown) / (1 + repeats)

    def _split(self, theta: Floats) -> tuple[Floats, Floats, float, Floats, float]:
        """Lengthscales, squared amplitudes, half-life, variances of offsets and of noise."""
        offsets = len(theta) - 1 - self.factors.size
        is_aged = self.answers_apart is not None
        amplitudes = theta[self.dimension : offsets - 1 if is_aged else offsets]
        half_life = math.exp(theta[offsets - 1]) if is_aged else math.inf
        variances = np.exp(2 * theta[offsets:-1]), math.exp(2 * theta[-1])
        return np.exp(theta[: self.dimension]), np.exp(2 * amplitudes), half_life, *variances

    def _solved(self, prior: Floats, variance: float) -> _Solved:
        """Solve for a prior covariance of the points' values, (u, u), which is overwritten, and a noise variance."""
        noise = 1 / (self.own / variance + self.told)
        share, average = self._pooled(noise, variance)
        between = self.told * share * self.between**2
        root, bad = sp.dpotrf(_with_diagonal(prior, noise), lower=1, overwrite_a=1)
        if bad:
            return _Solved(IMPOSSIBLE, root, average, noise, share, between)
        solved = sp.dpotrs(root, average, lower=1)[0]
        value = -0.5 * float(average @ solved) - float(np.log(root.diagonal()).sum())
        value += 0.5 * float(np.log(noise).sum()) - 0.5 * self.unknown * math.log(variance)
        value += self.constant - 0.5 * (self.scatter / variance + self.told_scatter + float(between.sum()))
        return _Solved(value, root, solved, noise, share, between)

    def _pooled(self, noise: Floats, variance: float) -> tuple[Floats, Floats]:
        """Share of the precision that is estimated, and average of the measurements, of each point, two (u,)."""
        share = self.own * noise / variance
        return share, self.told_average + share * self.between

    def _kernels(self, lengthscales: Floats, parts: int) -> tuple[Floats, Floats, Floats]:
        """The first one or two parts of the kernel for all pairs, and what the slopes by log lengthscales are made of.

        Of the first part (l / |x_p - x_q|)^2 times it, or l / |x_p - x_q| times it if f is rough; of the second, if it
        is there, 3 d times the slope by each, (d, pairs). All of it is written over by the next call.
        """
        kernels, slope, slopes = self._room[:parts], self._room[2], self._room[3:]
        if self.is_rough:
            np.exp((-1 / lengthscales) @ self.apart, out=kernels[0])
            slope[:] = kernels[0]
            return kernels, slope, slopes
        units = math.sqrt(5) / lengthscales
        for piece in self._pieces():
            z = self.apart[:, piece] * units[:, None]
            squares = z * z
            kernels[0, piece], slope[piece] = _matern(np.sqrt(squares.sum(axis=0)))
            if parts > 1:
                alone, derivative = _matern(z)
                kernels[1, piece] = alone.mean(axis=0)
                np.multiply(derivative, squares, out=slopes[:, piece])
        slope *= 5 / 3
        return kernels, slope, slopes

    def _lengthscale_part(self, weights: Floats, lengthscales: Floats) -> Floats:
        """Sum over the pairs of weight (x_p - x_q)^2 / l^2, or of weight |x_p - x_q| / l if f is rough, for each l."""
        if self.is_rough:
            return np.asarray(self.apart @ weights / lengthscales)
        sums = sum((self.apart[:, piece] ** 2 @ weights[piece] for piece in self._pieces()), np.zeros(self.dimension))
        return np.asarray(sums / lengthscales**2)

    def _pieces(self) -> Iterator[slice]:
        """Parts of the pairs, see `NUMBERS_AT_ONCE`."""
        step = max(NUMBERS_AT_ONCE // self.dimension, 1)
        return (slice(start, start + step) for start in range(0, self.apart.shape[1], step))

    def fit(self, theta: Floats, neg_log_prior: float) -> Fit:
        """The fit with these numbers, and the mean of f that goes with them."""
        lengthscales, amplitudes, half_life, offsets, variance = self._split(theta)
        amplitude, *additive = np.sqrt(amplitudes).tolist()
        noise = max(math.sqrt(variance), LEAST_NOISE * math.sqrt(amplitudes.sum()))
        blocks = np.zeros(self.factors.max(initial=-1) + 1)
        blocks[self.factors] = np.sqrt(offsets)
        more = half_life, self.is_rough, tuple(blocks.tolist())
        numbers = amplitude, noise, 0.0, neg_log_prior, sum(additive), *more
        return self.at(Fit(tuple(lengthscales.tolist()), *numbers))[1]


def _averages(evidence: Evidence, own: Floats, told: Floats) -> tuple[Floats, Floats]:
    """Averages of each point's measurements with these two (n,) precisions, the other one where all of its are 0."""
    sums = [(evidence.summed(each * evidence.values), evidence.summed(each)) for each in (own, told)]
    ours, theirs = (total / np.where(weight > 0, weight, np.nan) for total, weight in sums)
    return np.where(np.isnan(ours), theirs, ours), np.where(np.isnan(theirs), ours, theirs)


def _matern(z: Floats) -> tuple[Floats, Floats]:
    """Matern 5/2 of distances in lengthscales / sqrt(5), and 3 / z^2 times its derivative by log l."""
    decay = np.exp(-z)
    slope = (1 + z) * decay
    decay *= z
    decay *= z
    decay /= 3
    decay += slope
    return decay, slope


def _with_diagonal(matrix: Floats, diagonal: Floats) -> Floats:
    np.einsum("ii->i", matrix)[:] += diagonal  # a view of the diagonal
    return matrix
