"""Fourier features: cosines and sines of x at some frequencies, by quadrature or at random."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import qr
from scipy.special import roots_hermite

from noregret.belief.arrays import (
    Array,
    at_least,
    beside,
    column_squares,
    empty_rows,
    is_tensor,
    namespace,
    numpy_of,
    slabs,
    zeros_like,
)
from noregret.belief.features import LOW_RANK
from noregret.belief.kernels import Matern, RationalQuadratic, SquaredExponential
from noregret.belief.numerics.draws import spectral_frequencies
from noregret.belief.posterior import Floats, Ints, Rng

MOST_FEATURES = 20_000
"""Largest number of Fourier features: the state of the belief has their number squared."""

MOST_ON_HOST = 100_000_000
"""Numbers of a table on a device that is copied to the host to find its span; larger tables get no basis."""

ROUNDING = 1e-13
"""Share of the largest value below which a value is treated as a rounding error."""


@dataclass(frozen=True)
class QuadratureFourier:
    """Fourier features of the SE kernel on the unit cube by Gauss-Hermite quadrature (heavy-tails paper, eq. 1).

    With nodes z and weights w of ``order`` points per axis, k(x, y) is close to the sum over the grid of the
    w cos(sqrt(2) z'(x - y) / lengthscale). Each frequency gives a cosine and a sine.

    Parameters
    ----------
    kernel : SquaredExponential
    order : int
        Nodes per axis. For an error near 1e-10: 16 at lengthscale 0.5, 32 at 0.2, 64 at 0.1.
    folded : bool
        Join z and -z, which are equivalent, into one frequency of twice the weight: order^d features instead of
        2 order^d, with the same mean and variance under least squares. The paper does not fold; truncation per
        direction on folded features equals truncation on the paper's with the level times sqrt(2).
    tolerance : float
        Largest accepted error along one axis.

    Examples
    --------
    >>> from noregret import QuadratureFourier, SquaredExponential
    >>> QuadratureFourier(SquaredExponential(0.2), order=16)
    Traceback (most recent call last):
    ...
    ValueError: order 16 is too small for lengthscale 0.2: it misses the kernel by 0.0042; order 24 would do
    """

    kernel: SquaredExponential
    order: int
    folded: bool = True
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SquaredExponential):
            raise ValueError(
                f"QuadratureFourier needs a SquaredExponential kernel, got {self.kernel!r}: take Nystrom features"
            )
        if self.order != int(self.order) or self.order < 1:
            raise ValueError(f"order must be a whole number from 1, got {self.order}")
        shortest = float(np.min(self.kernel.lengthscale))
        error = quadrature_error(shortest, self.order)
        if error > self.tolerance:
            raise ValueError(
                f"order {self.order} is too small for lengthscale {shortest:g}: it misses the kernel by {error:.2g}; "
                f"order {sufficient_order(shortest, self.tolerance)} would do"
            )

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FourierMap:
        """Features of these arms, which must lie in the unit cube."""
        dimension = arms.shape[1]
        _check_size((1 if self.folded else 2) * self.order**dimension, "lower the order or take Nystrom features")
        nodes, weights = (_grid(axis, dimension) for axis in _axis(self.order))
        weights = weights.prod(axis=1)
        if self.folded:  # the grid is symmetric: its j-th point from the end is minus the j-th from the start
            half = len(nodes) // 2
            nodes, weights = nodes[half:], 2 * weights[half:]
            weights[: len(nodes) - half] /= 2  # the zero node of an odd order is its own mirror image
        return FourierMap(arms, math.sqrt(2) / np.asarray(self.kernel.lengthscale) * nodes, weights, in_cube=True)


@dataclass(frozen=True)
class RandomFourier:
    """Cosines and sines at ``count`` frequencies drawn from the kernel's spectral density (2 ``count`` features).

    Rahimi and Recht (2007). For comparison only: the error falls as 1 / sqrt(count), which is too slow for the
    theorems, and the variance is too small away from the data.
    """

    kernel: SquaredExponential | Matern | RationalQuadratic
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SquaredExponential | Matern | RationalQuadratic):
            raise ValueError(
                "RandomFourier needs a SquaredExponential, Matern or RationalQuadratic kernel, "
                f"got {self.kernel!r}: take Nystrom features"
            )
        if self.count != int(self.count) or self.count < 1:
            raise ValueError(f"count must be a whole number from 1, got {self.count}")
        _check_size(2 * self.count, "lower the count")

    def on(self, arms: Floats, ridge: float, rng: Rng) -> FourierMap:
        """Features of these arms, at newly drawn frequencies."""
        frequencies = spectral_frequencies(self.kernel, self.count, arms.shape[1], rng)
        return FourierMap(arms, frequencies, np.full(self.count, 1 / self.count))


class FourierMap:
    """sqrt(w) cos(frequency'x) and sqrt(w) sin(frequency'x) for every frequency, (F, d), and weight w, (F,)."""

    def __init__(self, arms: Floats, frequencies: Floats, weights: Floats, in_cube: bool = False) -> None:
        self._frequencies, self._weights, self._in_cube = frequencies, weights, in_cube
        self.span: Floats | None = None
        self.table, self.unexplained = self.at(arms)
        if not is_tensor(arms) or math.prod(self.table.shape) <= MOST_ON_HOST:
            self.span = _basis(numpy_of(self.table))
        if self.span is not None:
            self.table, unexplained = self.at(arms)
            self.unexplained = zeros_like(unexplained)  # up to rounding

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        if self._in_cube and (points.min() < -1e-9 or points.max() > 1 + 1e-9):
            raise ValueError(
                f"points must lie in the unit cube for QuadratureFourier, got values from {points.min():g} to "
                f"{points.max():g}: scale every column of the arms to [0, 1]"
            )
        table = self._table(points)
        if self.span is None:
            return table, 0.0 * points[:, 0]
        inside = beside(table, self.span.T) @ table
        return inside, at_least(column_squares(table) - column_squares(inside), 0.0)

    def _table(self, points: Array) -> Array:
        """Features in the unit vectors, (m, n)."""
        moving = np.flatnonzero(self._frequencies.any(axis=1))  # the sine of frequency 0 is 0
        cosines, sines = len(self._weights), len(moving)
        sizes, xp = np.sqrt(self._weights)[:, None], namespace(points)
        table = empty_rows(points[:, 0], cosines + sines)
        for slab in slabs(points[:, 0], len(table)):
            angles = beside(points, self._frequencies) @ points[slab].T
            table[:cosines, slab] = beside(points, sizes) * xp.cos(angles)
            table[cosines:, slab] = beside(points, sizes[moving]) * xp.sin(angles[beside(points, moving)])
        return table

    def redraw(self, pulled: Ints, precision: Floats, variance: Floats, last: int) -> int:
        return len(self.table)

    def unexplained_covariance(self, first: Ints, second: Ints, left: Floats, right: Floats) -> Floats:
        return np.zeros((len(first), len(second)))

    def unexplained_draw(self, rng: Rng) -> Array:
        return self.unexplained

    def move(self, arms: Floats, index: Ints) -> Self:
        return type(self)(arms, self._frequencies, self._weights, self._in_cube)

    def copy(self) -> Self:
        return self  # never changes


def _basis(table: Floats) -> Floats | None:
    """Orthonormal basis, (m, r), of the columns of an (m, N) table; None if r is not well below m."""
    vectors, upper, _ = qr(table, mode="economic", pivoting=True)
    size = np.abs(upper.diagonal())
    rank = np.count_nonzero(size > ROUNDING * size.max())
    return np.ascontiguousarray(vectors[:, :rank]) if rank < LOW_RANK * len(table) else None


def quadrature_error(lengthscale: float, order: int) -> float:
    """Largest error of the quadrature along one axis of the unit cube, |k - phi'phi| over distances in [0, 1]."""
    nodes, weights = _axis(order)
    distance = np.linspace(0, 1, 513) / lengthscale
    return float(np.abs(np.exp(-0.5 * distance**2) - np.cos(np.outer(distance, math.sqrt(2) * nodes)) @ weights).max())


def sufficient_order(lengthscale: float, tolerance: float = 1e-6) -> int:
    """Smallest order whose `quadrature_error` is within the tolerance."""
    most = 8
    while quadrature_error(lengthscale, most) > tolerance:
        most *= 2
        if most > MOST_FEATURES:
            raise ValueError(f"lengthscale {lengthscale:g} is too short for Fourier features: take Nystrom features")
    least = most // 2 if most > 8 else 1
    while least < most:
        middle = (least + most) // 2
        least, most = (middle + 1, most) if quadrature_error(lengthscale, middle) > tolerance else (least, middle)
    return most


def _axis(order: int) -> tuple[Floats, Floats]:
    """Gauss-Hermite nodes and weights, the weights 2^(n-1) n! / (n H_(n-1)(z))^2 of sum 1."""
    nodes, weights = roots_hermite(int(order))
    return (nodes - nodes[::-1]) / 2, weights / weights.sum()


def _grid(axis: Floats, dimension: int) -> Floats:
    """All combinations of an axis with itself, (n^d, d); a reversed axis gives the reversed order."""
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def _check_size(features: int, advice: str) -> None:
    if features > MOST_FEATURES:
        raise ValueError(f"there can be at most {MOST_FEATURES} features, got {features}: {advice}")
