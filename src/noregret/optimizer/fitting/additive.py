"""Additive: the kernel of what parameters do one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.belief.distances import in_pieces
from noregret.belief.kernels import Columns, Kernel, Matern
from noregret.belief.posterior import Floats

FAR = 300.0
"""Exponentials of larger numbers might overflow when they are multiplied."""


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
        total, room = np.zeros((len(X), len(Y))), np.empty((3, len(X), len(Y)))
        for lengthscale, columns in zip(self.lengthscales, self.columns, strict=True):
            if len(columns) == 1:
                total += _along_a_line(X[:, columns[0]], Y[:, columns[0]], lengthscale, room)
            else:
                total += Columns(Matern(2.5, lengthscale), columns)(X, Y)
        total /= len(self.columns)
        return total

    def diag(self, X: Floats) -> Floats:
        return np.ones(len(X))


def _along_a_line(x: Floats, y: Floats, lengthscale: float, room: Floats) -> Floats:
    """Matern 5/2 of numbers, (n,), (m,) -> (n, m) or (n, 1) if all y are one, by n + m exponentials instead of n m.

    With x and y in lengthscales over sqrt(5) it is (1 + z + z^2 / 3) exp(-z) at z = |x - y|, and exp(-z) is the smaller
    one of exp(x) exp(-y) and exp(y) exp(-x). ``room`` is for the steps, (3, n, m).
    """
    x, y = x * (math.sqrt(5) / lengthscale), y * (math.sqrt(5) / lengthscale)
    if len(y) > 1 and (y == y[0]).all():  # as a context is, of all candidates
        y, room = y[:1], room[:, :, :1]
    if max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)) > FAR:
        return np.asarray(Matern(2.5, math.sqrt(5))(x[:, None], y[:, None]))
    z, faded, other = room
    grown, other_grown = np.exp(x)[:, None], np.exp(y)
    np.multiply(grown, 1 / other_grown, out=faded)
    np.multiply(1 / grown, other_grown, out=other)
    np.minimum(faded, other, out=faded)
    np.subtract(x[:, None], y, out=z)
    np.abs(z, out=z)
    np.multiply(z, 1 / 3, out=other)
    other += 1
    other *= z
    other += 1
    faded *= other
    return np.asarray(faded)
