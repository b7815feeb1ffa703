"""Columns of the kernel matrix of all arms, cached while there is room, and the checks of their values."""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from noregret.belief.arrays import Array, is_tensor, numbers_of, numpy_of
from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import enlarged
from noregret.belief.posterior import Floats, Ints

SAME = 1e-6
"""Largest accepted difference of k(x, x) and diag(x), as a share of the largest variance: rounding."""

COLUMNS_KEPT = 4_000_000
"""Size of the cache of the exact posteriors, in numbers. With few arms it saves computing columns again; with many
arms it would double the memory, and the columns are the smaller part of the work."""


class KernelColumns:
    """Columns k(x, all N arms). Those of arms are cached up to ``most`` numbers in total; beyond, none is."""

    def __init__(self, kernel: Kernel, arms: Array, most: float = math.inf) -> None:
        self._kernel, self._arms = kernel, arms
        self._most = most
        if is_tensor(arms):
            self._most = 0
            if not is_tensor(kernel(arms[:1], arms[:1])):
                raise ValueError(
                    f"{kernel} must give a tensor for arms that are one: pass arms.cpu().numpy(), or fix it"
                )
        self.variance = _checked_variance(kernel.diag(arms), len(arms))  # k(x, x) of every arm, (N,)
        self._tolerance = SAME * float(self.variance.max())
        self._columns = np.empty((0, len(arms)))
        self._place: dict[int, int] = {}  # by arm: the position of its cached column

    def keeps(self, arms: Ints) -> bool:
        """True if the columns of these distinct arms fit into the cache."""
        new = sum(arm not in self._place for arm in arms.tolist())
        return (len(self._place) + new) * len(self._arms) <= self._most

    def copies_of(self, arms: Ints) -> Floats:
        """Writable copy of K(arms, all arms), (n,) -> (n, N); the arms must be distinct and fit into the cache."""
        return np.asarray(self._columns[self._places(arms)])

    def among(self, arms: Ints) -> Floats:
        """K(arms, arms), (n,) -> (n, n); the arms must be distinct and fit into the cache."""
        places = self._places(arms)
        return np.asarray(self._columns[np.ix_(places, arms)])

    def of_one(self, arm: int) -> Array:
        """K(arm, all arms), (N,), read-only."""
        if arm in self._place:
            return np.asarray(self._columns[self._place[arm]])
        columns = self._computed(np.array([arm], np.intp))
        if (len(self._place) + 1) * len(self._arms) <= self._most:
            self._keep([arm], columns)
        elif self._place:  # full: the cache is given up
            self._most, self._place, self._columns = 0, {}, self._columns[:0].copy()
        return columns[0]

    def at(self, names: Ints, points: Floats, slab: slice) -> Floats:
        """K(points, arms[slab]) of (n, d) points, (n, m), not cached; ``names`` are for error messages."""
        arms = self._arms[slab]
        columns = self._kernel(points, arms)
        self._check(columns, names, len(arms), slab.start)
        return columns

    def between(self, names: Ints, points: Floats) -> Floats:
        """K(points, points) of (n, d) points, (n, n); ``names`` are for error messages."""
        inner = self._kernel(points, points)
        self._check(inner, names, len(points), 0)
        self._check_diagonals(names, inner.diagonal(), self._kernel.diag(points))
        return inner

    def _places(self, arms: Ints) -> Ints:
        """Positions of the columns of these arms in the cache, computed if missing."""
        new = [arm for arm in arms.tolist() if arm not in self._place]
        if new:
            self._keep(new, self._computed(np.array(new)))
        return np.array([self._place[arm] for arm in arms.tolist()], np.intp)

    def _keep(self, arms: list[int], columns: Floats) -> None:
        start, end = len(self._place), len(self._place) + len(arms)
        self._columns = enlarged(self._columns, end)
        self._columns[start:end] = columns
        self._place |= zip(arms, range(start, end), strict=True)

    def _computed(self, arms: Ints) -> Floats:
        if arms.size > 1:
            columns = self._kernel(self._arms[arms], self._arms)
            self._check(columns, arms, len(self._arms), 0)
            self._check_diagonals(arms, columns[np.arange(arms.size), arms], self.variance[arms])
            return columns
        arm = int(arms[0])
        columns = self._kernel(self._arms[arm : arm + 1], self._arms)  # a slice stays in its place
        self._check_shape(columns, 1, len(self._arms))
        # all checked numbers in one transfer: a device is waited for
        total, there, diagonal = numbers_of(columns.sum(), columns[0, arm], self.variance[arm])
        self._check_finite(total, columns, arms, 0)
        self._check_diagonals(arms, np.array([there]), np.array([diagonal]))
        return columns

    def _check(self, columns: Floats, names: Ints, count: int, start: int) -> None:
        """Raise ValueError unless these are finite kernel values of points and ``count`` arms from ``start`` on."""
        self._check_shape(columns, names.size, count)
        self._check_finite(columns.sum(), columns, names, start)

    def _check_shape(self, columns: Floats, points: int, count: int) -> None:
        if tuple(columns.shape) != (points, count):
            raise ValueError(
                f"the kernel of {points} points and {count} must be an array of this shape, "
                f"got shape {tuple(columns.shape)}"
            )

    def _check_finite(self, total: float, columns: Floats, names: Ints, start: int) -> None:
        """Raise ValueError unless all values are finite; ``total`` is their sum."""
        if not math.isfinite(total) and not np.isfinite(values := numpy_of(columns)).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"the kernel must be finite, got {values[i, j]} for arms {names[i]} and {start + j}: fix the kernel, "
                "or drop an arm it cannot take"
            )

    def _check_diagonals(self, arms: Ints, there: Array, diagonal: Array) -> None:
        there, diagonal = numpy_of(there), numpy_of(diagonal)
        worst = int(np.argmax(np.abs(there - diagonal)))
        if abs(there[worst] - diagonal[worst]) > self._tolerance:
            raise ValueError(
                f"the kernel's diag gives {diagonal[worst]:g} at arm {arms[worst]}, but k(x, x) there is "
                f"{there[worst]:g}: leave noise (WhiteKernel) to the ridge, and let diag(X) be the diagonal of k(X, X)"
            )

    def extended(self, arms: Floats) -> Self:
        """Return the same columns for NumPy arms that begin with the present ones."""
        twin, new = self.copy(), arms[len(self._arms) :]
        members = np.fromiter(self._place, np.intp, len(self._place))
        twin._arms, twin._columns = arms, np.hstack([twin._columns, self._kernel(self._arms[members], new)])
        twin.variance = np.concatenate([self.variance, _checked_variance(self._kernel.diag(new), len(new))])
        return twin

    def copy(self) -> Self:
        """Return a copy with its own cache; the columns known so far are shared."""
        twin = copy.copy(self)
        twin._place = self._place.copy()
        twin._columns = self._columns[: len(self._place)]  # full, so the twin adds to its own array
        return twin


def _checked_variance(variance: Floats, count: int) -> Floats:
    if tuple(variance.shape) != (count,):
        raise ValueError(f"the kernel's diag of {count} points must have shape ({count},), got {tuple(variance.shape)}")
    least = float(variance.min())
    if not (least >= 0 and math.isfinite(float(variance.max()))):  # nan is neither
        values = numpy_of(variance)
        arm = int((np.isfinite(values) & (values >= 0)).argmin())
        raise ValueError(
            f"the kernel's variance must be finite and at least 0, got {values[arm]} at arm {arm}: fix the kernel, "
            "or drop the arm"
        )
    return variance
