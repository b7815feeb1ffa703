"""Columns of the kernel matrix of all arms, each computed once."""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import enlarged
from noregret.belief.posterior import Floats, Ints

SAME = 1e-6
"""k(x, x) and diag(x) may differ by rounding, by up to this share of the largest variance."""


class KernelColumns:
    """k(x, all N points) for the points x that were asked for so far."""

    def __init__(self, kernel: Kernel, points: Floats) -> None:
        self._kernel, self._points = kernel, points
        self.variance = _checked_variance(kernel.diag(points), len(points))  # k(x, x) of every point, (N,)
        self._tolerance = SAME * float(self.variance.max())
        self._count, self._columns = 0, np.empty((0, len(points)))
        self._place = np.full(len(points), -1)  # which of the columns a point has, (N,)

    def of(self, arms: Ints) -> Floats:
        """K(arms, all points), (n,) -> (n, N), not to be written to; the arms must be distinct."""
        places = self._places(arms)
        if (np.diff(places) == 1).all():  # a slice needs no copy
            start = int(places[0]) if places.size else 0
            return self._columns[start : start + places.size]
        return np.asarray(self._columns[places])

    def copies_of(self, arms: Ints) -> Floats:
        """K(arms, all points), (n,) -> (n, N), to be written over at will."""
        places = self._places(arms)
        return np.asarray(self._columns[places])

    def among(self, arms: Ints) -> Floats:
        """K(arms, arms), (n,) -> (n, n)."""
        places = self._places(arms)
        return np.asarray(self._columns[np.ix_(places, arms)])

    def of_one(self, arm: int) -> Floats:
        """K(arm, all points), (N,), not to be written to."""
        if self._place[arm] < 0:
            self._compute(np.array([arm], np.intp))
        return np.asarray(self._columns[self._place[arm]])

    def _places(self, arms: Ints) -> Ints:
        """Which of the columns each of these arms has, computed if it has none."""
        new = arms[self._place[arms] < 0]
        if new.size:
            self._compute(new)
        return np.asarray(self._place[arms])

    def _compute(self, arms: Ints) -> None:
        columns = self._kernel(self._points[arms], self._points)
        self._check(arms, columns)
        start, end = self._count, self._count + arms.size
        self._columns = enlarged(self._columns, end)
        self._columns[start:end] = columns
        self._place[arms], self._count = np.arange(start, end), end

    def _check(self, arms: Ints, columns: Floats) -> None:
        """Raise ValueError unless these are columns of a kernel with this diagonal."""
        if columns.shape != (arms.size, len(self._points)):
            raise ValueError(
                f"the kernel of {arms.size} points and {len(self._points)} must be an array of this shape, "
                f"got shape {columns.shape}"
            )
        if not math.isfinite(columns.sum()) and not np.isfinite(columns).all():
            i, j = np.argwhere(~np.isfinite(columns))[0]
            raise ValueError(
                f"the kernel must be finite, got {columns[i, j]} for arms {arms[i]} and {j}: mend the kernel, or drop "
                "an arm it cannot take"
            )
        for i, arm in enumerate(arms.tolist()):
            there, diagonal = float(columns[i, arm]), float(self.variance[arm])
            if abs(there - diagonal) > self._tolerance:
                raise ValueError(
                    f"the kernel's diag gives {diagonal:g} at arm {arm}, but k(x, x) there is {there:g}: leave noise "
                    "(WhiteKernel) to the ridge, and let diag(X) be the diagonal of k(X, X)"
                )

    def copy(self) -> Self:
        """Columns that grow on their own; those known so far are shared."""
        twin = copy.copy(self)
        twin._place = self._place.copy()
        twin._columns = self._columns[: self._count]  # full, so what the twin adds goes to an array of its own
        return twin


def _checked_variance(variance: Floats, count: int) -> Floats:
    if variance.shape != (count,):
        raise ValueError(f"the kernel's diag of {count} points must have shape ({count},), got {variance.shape}")
    fine = np.isfinite(variance) & (variance >= 0)
    if not fine.all():
        arm = int(fine.argmin())
        raise ValueError(
            f"the kernel's variance must be finite and at least 0, got {variance[arm]} at arm {arm}: mend the kernel, "
            "or drop the arm"
        )
    return variance
