"""Joint draws from a Gaussian on all arms."""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np
from scipy.linalg.blas import dger

from noregret.belief.numerics.linalg import pivoted_root
from noregret.belief.posterior import Floats, Rng

FEW_ARMS = 500
"""Up to so many arms, draws come from a root of the posterior covariance, which a pull changes at O(N^2)."""


class CovarianceRoot:
    """S, (r, N), with S'S the covariance of N numbers."""

    def __init__(self, covariance: Floats) -> None:
        self._root = pivoted_root(covariance).T.copy()

    @property
    def size(self) -> int:
        """Multiply-adds of a draw, r N."""
        return self._root.size

    def draw(self, rng: Rng) -> Floats:
        """N numbers of mean 0 and this covariance, (N,)."""
        return np.asarray(rng.standard_normal(len(self._root)) @ self._root)

    def row(self, place: int) -> Floats:
        """The covariance of one of the numbers with all, (N,)."""
        return np.asarray(self._root[:, place] @ self._root)

    def condition(self, place: int, row: Floats, noise: float) -> None:
        """Make the covariance C what it is after one number was seen with this noise: C - c c' / (c_a + noise).

        ``row`` is c = C[a], a the place.
        """
        variance = float(row[place])
        if variance <= 0:
            return
        shrink = (1 - math.sqrt(noise / (variance + noise))) / variance
        direction = self._root[:, place].copy()
        self._root = np.asarray(dger(-shrink, row, direction, a=self._root.T, overwrite_a=1)).T

    def copy(self) -> Self:
        """An independent root of the same covariance."""
        twin = copy.copy(self)
        twin._root = self._root.copy()
        return twin
