"""Kernels of several parameters: additive, and rough along the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.belief.kernels import Columns, Kernel, Matern, in_pieces
from noregret.belief.posterior import Floats
from scipy.spatial.distance import cdist

FAR = 100.0
"""Products of the exponentials and squares of larger numbers might overflow, and would be rounded too much."""


@dataclass(frozen=True)
class Additive(Kernel):
    """k(x, y) = the average over the parameters of Matern 5/2 of one alone, which has some of the columns of x and y.

    >>> kernel = Additive((0.3, 0.5), ((0,), (1, 2)))
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

    A product over the parameters: f is rough along the axes, as a random forest sees it (a forest of ever deeper trees
    with uniform cuts has this kernel).

    >>> Rough((0.5, 2.0), ((0,), (1,)))(np.zeros((1, 2)), np.array([[0.5, 0.0], [0.5, 2.0]])).round(4)
    array([[0.3679, 0.1353]])
    """

    lengthscales: tuple[float, ...]
    columns: tuple[tuple[int, ...], ...]
    """Those of each parameter, in the order of the lengthscales."""

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        lines = [i for i, columns in enumerate(self.columns) if len(columns) == 1]
        along, units = [self.columns[i][0] for i in lines], np.array(self.lengthscales)[lines]
        total = cdist(X[:, along] / units, Y[:, along] / units, "cityblock") if lines else np.zeros((len(X), len(Y)))
        for i in set(range(len(self.columns))).difference(lines):
            columns = list(self.columns[i])
            total += cdist(X[:, columns], Y[:, columns]) / self.lengthscales[i]
        return np.asarray(np.exp(-total))

    def diag(self, X: Floats) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class Warped(Kernel):
    """The kernel of warped coordinates, with a warp of each column; 0 leaves it as it is."""

    kernel: Kernel
    warps: tuple[float, ...]

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        warps = np.array(self.warps)
        return np.asarray(self.kernel(warped(X, warps), warped(Y, warps)))

    def diag(self, X: Floats) -> Floats:
        return np.asarray(self.kernel.diag(X))


def warped(x: Floats, warps: Floats) -> Floats:
    """ln(1 + (e^a - 1) x) / a, from 0 to 1 like x: it spreads what is near 0 if a > 0, and what is near 1 if a < 0.

    x is (n, d) and a is (d,), or both are of one shape. w_-a(x) = 1 - w_a(1 - x), and w_0(x) = x.

    >>> warped(np.array([[0.0, 0.01, 1.0]]), np.array([5.0, 5.0, 0.0])).round(2)
    array([[0.  , 0.18, 1.  ]])
    """
    small = np.abs(warps) < 1e-4
    rates = np.where(small, 1.0, warps)
    return np.where(small, x, np.log1p(np.expm1(rates) * x) / rates)


def warp_slopes(x: Floats, warp: float) -> Floats:
    """d w_a(x) / d a at coordinates x, (n,)."""
    if abs(warp) < 1e-4:
        return 0.5 * x * (1 - x)
    rise = math.expm1(warp)
    return np.asarray(math.exp(warp) * x / (1 + rise * x) / warp - np.log1p(rise * x) / warp**2)


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
