"""Kernels of several parameters: additive, rough along the axes, and of warped coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from noregret.belief.kernels import Columns, Kernel, Matern, in_pieces
from noregret.belief.posterior import Floats

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
        total = cdist(X[:, along] / units, Y[:, along] / units, "cityblock") if lines else np.zeros((len(X), len(Y)))
        for i in set(range(len(self.columns))).difference(lines):
            columns = list(self.columns[i])
            total += cdist(X[:, columns], Y[:, columns]) / self.lengthscales[i]
        return np.asarray(np.exp(-total))

    def diag(self, X: Floats) -> Floats:
        return np.ones(len(X))


@dataclass(frozen=True)
class Warped(Kernel):
    """Kernel of coordinates that are warped first, see `warped`, with a warp of each column."""

    kernel: Kernel
    warps: tuple[float, ...]

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        warps = np.array(self.warps)
        return np.asarray(self.kernel(warped(X, warps), warped(Y, warps)))

    def diag(self, X: Floats) -> Floats:
        return np.asarray(self.kernel.diag(X))


STRAIGHT = 1e-4
"""A warp this small is none: its formula would lose digits."""


def warped(x: Floats, warps: Floats) -> Floats:
    """Coordinates w_a(x) = ln(1 + (e^a - 1) x) / a, from 0 to 1 like x, for (n, d) coordinates and (d,) warps a.

    A positive warp spreads the coordinates near 0, as a logarithm does, and a negative one those near 1:
    w_-a(x) = 1 - w_a(1 - x). A warp of 0 leaves them as they are.

    >>> warped(np.array([[0.0, 0.01, 0.01, 1.0]]), np.array([5.0, 5.0, 0.0, 5.0])).round(2)
    array([[0.  , 0.18, 0.01, 1.  ]])
    """
    is_straight = np.abs(warps) < STRAIGHT
    rates = np.where(is_straight, 1.0, warps)
    return np.where(is_straight, x, np.log1p(np.expm1(rates) * x) / rates)


def warp_slopes(x: Floats, warps: Floats) -> Floats:
    """Derivatives of warped coordinates by their warps, (n, d) for (n, d) coordinates and (d,) warps."""
    is_straight = np.abs(warps) < STRAIGHT
    rates = np.where(is_straight, 1.0, warps)
    rise = np.expm1(rates)
    slopes = np.exp(rates) * x / (1 + rise * x) / rates - np.log1p(rise * x) / rates**2
    return np.where(is_straight, 0.5 * x * (1 - x), slopes)


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
