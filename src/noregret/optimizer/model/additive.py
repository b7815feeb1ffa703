"""Additive: the kernel of what parameters do one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
