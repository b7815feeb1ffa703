"""Columns of the kernel matrix of all arms, each computed once."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import enlarged
from noregret.belief.posterior import Floats, Ints


class KernelColumns:
    """k(x, all N points) for the points x that were asked for so far."""

    def __init__(self, kernel: Kernel, points: Floats) -> None:
        self._kernel, self._points = kernel, points
        self._place: dict[int, int] = {}
        self._columns: Floats = np.empty((0, len(points)))

    def of(self, arms: Ints) -> Floats:
        """K(arms, all points), (n,) -> (n, N), not to be written to; the arms must be distinct."""
        places = self._places(arms)
        start, end = (places[0], places[0] + len(places)) if places else (0, 0)
        if places == list(range(start, end)):
            return self._columns[start:end]
        return np.asarray(self._columns[places])

    def among(self, arms: Ints) -> Floats:
        """K(arms, arms), (n,) -> (n, n)."""
        places = np.array(self._places(arms), np.intp)
        return np.asarray(self._columns[np.ix_(places, arms)])

    def of_one(self, arm: int) -> Floats:
        """K(arm, all points), (N,), not to be written to."""
        if arm not in self._place:
            self._compute(np.array([arm], np.intp))
        return np.asarray(self._columns[self._place[arm]])

    def _places(self, arms: Ints) -> list[int]:
        """Which of the columns each of these arms has, computed if it has none."""
        names = arms.tolist()
        new = [arm for arm in names if arm not in self._place]
        if new:
            self._compute(np.array(new, np.intp))
        return [self._place[arm] for arm in names]

    def _compute(self, arms: Ints) -> None:
        start, end = len(self._place), len(self._place) + arms.size
        columns = self._kernel(self._points[arms], self._points)
        self._columns = enlarged(self._columns, end)
        self._columns[start:end] = columns
        self._place.update(zip(arms.tolist(), range(start, end), strict=True))

    def copy(self) -> Self:
        """Columns that grow on their own; those known so far are shared."""
        twin = copy.copy(self)
        twin._place = self._place.copy()
        twin._columns = self._columns[: len(self._place)]  # full, so what the twin adds goes to an array of its own
        return twin
