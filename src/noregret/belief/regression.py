"""The ridge regression on features behind the sparse posterior: V, its inverse, and the variance of all arms.

With the (r, N) table of features phi, and the u distinct arms pulled so far with their weights,

    V = ridge I + seen diag(weights) seen',    s^2 = unexplained + ridge phi' V^-1 phi

A pull changes V^-1 and s^2 by a rank-one term, O(r N), and so does one more feature.
"""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from noregret.belief.arrays import Array, beside, column_squares, numpy_of
from noregret.belief.estimators.roots import InverseRoot
from noregret.belief.numerics.linalg import BLOCK, REFRESH, product_squares, solve_lower
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints

BLUR = 1e-12
"""What rounding may have added to or taken from a variance, as a share of the largest."""


class FeatureRegression:
    """V and all that follows from it, for a table of features and the variance they leave unexplained."""

    gram: Floats  # V, (r, r)
    inverse: Floats  # V^-1, (r, r)
    variance: Array  # s^2 of all arms, (N,), replaced and never written to; may be below 0 by rounding
    gain: float  # 1/2 ln det(V / ridge)
    blur: float  # what rounding may have added to or taken from a variance
    _changes: int  # since V^-1 was last made afresh
    _inverse_root: InverseRoot | None  # of V, once somebody wants it
    _last_row: tuple[int, Array] | None  # the arm of the last pull, and its phi' V^-1 phi with all arms

    def __init__(self, ridge: float, table: Array, unexplained: Array, seen: Floats, weights: Floats) -> None:
        self._ridge, self._table, self._unexplained = ridge, table, unexplained
        self.gram = ridge * np.eye(len(table)) + (weights * seen) @ seen.T
        self._refresh()

    def inverse_root_times(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,), with the symmetric root."""
        if self._inverse_root is None:
            self._inverse_root = InverseRoot(self.gram)
        return self._inverse_root @ right

    def grow(self, table: Array, unexplained: Array, seen: Floats, weights: Floats) -> None:
        """Take a table with b more features at its end; ``seen`` are all features of the arms pulled, (r + b, u).

        With G the block of V between the old features and the new, H = V^-1 G, and D = ridge I + new diag(weights) new'
        - G'H, the inverse gains the terms of |D^-1/2 (H'phi - new)|^2.
        """
        size = len(self.gram)
        new = table[size:]
        with threads_for(len(new) * table.size):
            weighted = weights * seen[size:]
            between, corner = seen[:size] @ weighted.T, weighted @ seen[size:].T + self._ridge * np.eye(len(new))
            lifted = self.inverse @ between
            root = np.asarray(np.linalg.cholesky(corner - between.T @ lifted), dtype=float)
            border = solve_lower(root, np.hstack([lifted.T, -np.eye(len(new))]))
            carried = self._ridge * column_squares(solve_lower(root, lifted.T @ table[:size] - new))
        inverse = border.T @ border
        inverse[:size, :size] += self.inverse
        self.gram, self.inverse = np.block([[self.gram, between], [between.T, corner]]), inverse
        self.variance = self.variance + (unexplained - self._unexplained) + carried
        self.gain += float(np.log(root.diagonal()).sum() - 0.5 * len(new) * math.log(self._ridge))
        self._table, self._unexplained, self._changes = table, unexplained, self._changes + len(new)
        self._inverse_root = self._last_row = None

    def learn(self, arms: Ints, weights: Floats) -> None:
        """Take in pulls of distinct arms."""
        size = len(self.gram)
        with threads_for(size * (size + min(arms.size, BLOCK) * self._table.shape[1])):
            features, self._last_row = numpy_of(self._table[:, arms]), None
            self.gram += (weights * features) @ features.T
            if 2 * arms.size > size or self._changes >= REFRESH:
                self._refresh()
                return
            for start in range(0, arms.size, BLOCK):
                self._pull(features[:, start : start + BLOCK], weights[start : start + BLOCK])

    def learn_one(self, arm: int, weight: float) -> Array:
        """Take in a pull of one arm, at O(N) for the arm of the pull before.

        Returns what least squares adds to the mean of all arms per unit of the reward's surprise, (N,); None if
        everything was made afresh.
        """
        if self._changes >= REFRESH:
            self.learn(np.array([arm]), np.array([weight]))
            return None
        features, size = np.array(numpy_of(self._table[:, arm])), len(self.gram)
        with threads_for(size * (size + self._table.shape[1])):
            direction = self.inverse @ features
            row = self._row(arm, direction)
            pivot = 1 + weight * float(features @ direction)
            self.gram += np.outer(weight * features, features)
            self.inverse -= np.outer(direction, (weight / pivot) * direction)
        self.variance = self.variance - (self._ridge * weight / pivot) * (row * row)
        self.gain += 0.5 * math.log(pivot)
        self._changes, self._last_row = self._changes + 1, (arm, row / pivot)
        self._follow(math.sqrt(weight) * features)
        return weight * self._last_row[1]

    def copy(self) -> Self:
        """Independent, with the same pulls and features."""
        twin = copy.copy(self)
        twin.gram, twin.inverse, twin._inverse_root = self.gram.copy(), self.inverse.copy(), None
        return twin

    def _row(self, arm: int, direction: Floats) -> Array:
        """The products phi' V^-1 phi of this arm with all arms, (N,), from its V^-1 phi."""
        if self._last_row is not None and self._last_row[0] == arm:
            return self._last_row[1]
        return beside(self._table, direction) @ self._table

    def _pull(self, features: Floats, weights: Floats) -> None:
        """V^-1, the variance and the gain after pulls of b distinct arms with these features, (r, b)."""
        directions = self.inverse @ features
        root = np.asarray(np.linalg.cholesky(np.diag(1 / weights) + features.T @ directions), dtype=float)
        directions = solve_lower(root, directions.T)
        self.inverse -= directions.T @ directions
        self.variance = self.variance - self._ridge * product_squares(directions, self._table)
        self.gain += float(np.log(root.diagonal()).sum() + 0.5 * np.log(weights).sum())
        self._changes += weights.size
        for column in (np.sqrt(weights) * features).T:
            self._follow(column)

    def _follow(self, column: Floats) -> None:
        """Let the root of V, if there is one, follow V + column column'."""
        if self._inverse_root is not None and not self._inverse_root.add(column):
            self._inverse_root = None

    def _refresh(self) -> None:
        """V^-1, variance and gain afresh from V."""
        root, size = np.asarray(np.linalg.cholesky(self.gram), dtype=float), len(self.gram)
        lower = solve_lower(root, np.eye(size)) if size else np.eye(0)
        self.inverse = lower.T @ lower
        # V is well-conditioned, and a product is faster than a solve
        self.variance = self._unexplained + self._ridge * product_squares(lower, self._table, lower=True)
        self.blur = BLUR * float(self.variance.max())
        self.gain = float(np.log(root.diagonal()).sum() - 0.5 * size * math.log(self._ridge))
        self._changes, self._inverse_root, self._last_row = 0, None, None
