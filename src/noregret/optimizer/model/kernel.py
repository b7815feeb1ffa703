"""Kernel: the model of f, given by a few numbers.

The model of standardised measurements z at points x is

    z = c + f(x) + o + e,    c ~ N(0, CENTRE^2),    f ~ GP(0, a^2 k + b^2 k_1),    e ~ N(0, s^2 / w)

with an offset o ~ N(0, t^2) that measurements of one block share, if there are blocks, k Matern 5/2 of all parameters,
k_1 the average over the parameters of Matern 5/2 of one alone, a lengthscale per parameter, which both share, and the
trust w given (see `noise`). Where parameters act one by one, k_1 explains f, and every measurement tells about it
wherever the other parameters were. Where points have an age, f changes: all kernels are multiplied by 2^(-|age - age'|
/ (2 h)), so that half of the variance of f is new after a half-life h. If f is rough along the axes, k is `Rough` and b
is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.kernels import Columns, Kernel, Matern, in_pieces
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.posterior import Offsets, faded

CENTRE = 2.0
"""Prior standard deviation of the mean of f, in units of the measurements' spread. Not measured."""


@dataclass(frozen=True)
class Fit:
    """Fitted numbers, in standardised units.

    ``amplitude`` is a, ``additive`` is b, 0 where there is no such part. ``neg_log_prior`` is the negative log prior,
    relative to its maximum. ``half_life`` is h, in answers, infinite where f stays. ``blocks`` are the t of the factors
    of blocks, 0 for one that nothing can be learnt about.
    """

    lengthscales: tuple[float, ...]
    amplitude: float
    noise: float
    centre: float
    neg_log_prior: float
    additive: float
    half_life: float = math.inf
    is_rough: bool = False
    blocks: tuple[float, ...] = ()

    def kernel(self, groups: Ints) -> Kernel:
        """a^2 k + b^2 k_1, each coordinate with the lengthscale of its group."""
        columns = tuple(tuple(np.flatnonzero(groups == group).tolist()) for group in range(len(self.lengthscales)))
        if self.is_rough:
            return self.amplitude**2 * Rough(self.lengthscales, columns)
        joint = self.amplitude**2 * Matern(2.5, tuple(self.lengthscales[group] for group in groups))
        return joint + self.additive**2 * AdditiveKernel(self.lengthscales, columns) if self.additive else joint

    def covariance(self, evidence: Evidence) -> Floats:
        """Prior covariance of f plus offsets at the points of the evidence, each at its time, (u, u)."""
        matrix, blocks = self.kernel(evidence.groups)(evidence.points, evidence.points), self.blocks_of(evidence)
        if evidence.ages is not None:
            matrix = matrix * faded(evidence.ages[:, None] - evidence.ages, self.half_life)
        return matrix if blocks is None else matrix + blocks.covariance(blocks.levels)

    def blocks_of(self, evidence: Evidence) -> Offsets | None:
        """Offsets of the points of the evidence, None if none has an effect."""
        if evidence.blocks is None or not any(self.blocks):
            return None
        return Offsets(evidence.blocks[:, : len(self.blocks)], np.square(self.blocks))

    @property
    def size(self) -> float:
        """Prior standard deviation of f."""
        return math.hypot(self.amplitude, self.additive)

    def scaled(self, ratio: float, factor: float = 1.0) -> Fit:
        """The same with all lengthscales times ``ratio`` and amplitudes times ``factor``."""
        amplitudes = {name: factor * getattr(self, name) for name in ("amplitude", "additive")}
        return replace(self, lengthscales=tuple(ratio * each for each in self.lengthscales), **amplitudes)

    @property
    def theta(self) -> Floats:
        """Logarithms of what is fitted by descent: lengthscales, a and b, half-life if finite, offsets, noise."""
        amplitudes = [self.amplitude, self.additive] if self.additive else [self.amplitude]
        half_life = [self.half_life] if self.half_life < math.inf else []
        return np.log([*self.lengthscales, *amplitudes, *half_life, *filter(None, self.blocks), self.noise])


FAR = 100.0
"""Products of the exponentials and squares of larger numbers might overflow, and would be rounded too much. Of these
two are of the order of e^200."""


@dataclass(frozen=True)
class AdditiveKernel(Kernel):
    """k(x, y) = the average over the parameters of Matern 5/2 of one alone, which has some of the columns of x and y.

    >>> kernel = AdditiveKernel((0.3, 0.5), ((0,), (1, 2)))
    >>> kernel(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])).round(4)
    array([[1. , 0.5]])
    """

    lengthscales: tuple[float, ...]
    columns: tuple[tuple[int, ...], ...]
    """Those of each parameter, in the order of the lengthscales."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        return np.asarray(in_pieces(self._piece, X, Y))

    def _piece(self, X: Floats, Y: Floats) -> Floats:
        total = np.zeros((len(X), len(Y)))

        lines = [i for i, columns in enumerate(self.columns) if len(columns) == 1]
        along, units = [self.columns[i][0] for i in lines], math.sqrt(5) / np.array(self.lengthscales)[lines, None]
        x, y = (X.T[along] - 0.5) * units, (Y.T[along] - 0.5) * units
        if max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)) <= FAR:
            _add_along_lines(total, x, y)
        else:
            lines = []
        for i in set(range(len(self.columns))).difference(lines):
            total += Columns(Matern(2.5, self.lengthscales[i]), self.columns[i])(X, Y)
        total /= len(self.columns)
        return total

    def diag(self, X: Floats) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class Rough(Kernel):
    """k(x, y) = exp(-sum_j |x_j - y_j| / l_j), |x_j - y_j| the distance in the columns of parameter j.

    f is rough along the axes. This is the kernel of a forest of deep trees with uniform random cuts.

    >>> Rough((0.5, 2.0), ((0,), (1,)))(np.zeros((1, 2)), np.array([[0.5, 0.0], [0.5, 2.0]])).round(4)
    array([[0.3679, 0.1353]])
    """

    lengthscales: tuple[float, ...]
    columns: tuple[tuple[int, ...], ...]
    """Those of each parameter, in the order of the lengthscales."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        lines = [i for i, columns in enumerate(self.columns) if len(columns) == 1]
        along, units = [self.columns[i][0] for i in lines], np.array(self.lengthscales)[lines]
        total = sp.cdist(X[:, along] / units, Y[:, along] / units, "cityblock") if lines else np.zeros((len(X), len(Y)))
        for i in set(range(len(self.columns))).difference(lines):
            columns = list(self.columns[i])
            total += sp.cdist(X[:, columns], Y[:, columns]) / self.lengthscales[i]
        return np.asarray(np.exp(-total))

    def diag(self, X: Floats) -> Floats:
        return np.ones(len(X))


def _add_along_lines(total: Floats, x: Floats, y: Floats) -> None:
    """Add Matern 5/2 of the numbers in each of p rows to the total, (p, n), (p, m), (n, m), in lengthscales / sqrt(5).

    It is (1 + z + z^2 / 3) exp(-z) at z = |x - y|. Without the bars it is right where x > y, and too large elsewhere;
    and it is a sum of three products of a number of x and one of y: n + m exponentials for n m of them.
    """
    x, y, both = np.stack([x, -x], axis=1), np.stack([y, -y], axis=1), np.empty((2, *total.shape))
    for of_x, of_y in zip(_left(x), _right(y), strict=True):
        np.matmul(of_x, of_y, out=both)
        total += np.minimum(both[0], both[1], out=both[0])


def _left(x: Floats) -> Floats:
    """The factors of (1 + z + z^2 / 3) exp(-z) at z = x - y that x has, (..., n) -> (..., n, 3)."""
    return np.stack([1 + x + x * x / 3, -1 - x * (2 / 3), np.full_like(x, 1 / 3)], axis=-1) * np.exp(-x)[..., None]


def _right(y: Floats) -> Floats:
    """Those that y has, (..., m) -> (..., 3, m)."""
    return np.stack([np.ones_like(y), y, y * y], axis=-2) * np.exp(y)[..., None, :]
