"""The Cholesky factor of the exact posterior: it grows by rows, and its rows are carried to all N points.

    root root' = K(rows, rows) + diag(noise),    whitened = root^-1 K(rows, points),    scores = root^-1 y
    mean = scores' whitened,                     variance = k(x, x) - column sums of whitened^2

Here is all the work on arrays as long as the arms that the exact posterior does in a round.
"""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from noregret.belief.numerics.linalg import enlarged, lower_root, solve_lower
from noregret.belief.posterior import Floats, Ints, Rng


class Factor:
    """The belief about N points after some observations y of them, each a row."""

    def __init__(self, prior_variance: Floats) -> None:
        n = len(prior_variance)
        self._prior_variance = prior_variance
        self.mean, self.variance = np.zeros(n), prior_variance  # (N,), replaced and never written to
        self.gain = 0.0  # 1/2 ln det(I + K(rows, rows) / noise)
        self.misfit = 0.0  # y' (K(rows, rows) + diag(noise))^-1 y
        self.rows = 0
        self.last_arm = -1  # the point of the last row, -1 if there is no row
        self._arms: Ints = np.empty(0, np.intp)
        self._noise, self._scores = np.empty(0), np.empty(0)
        self._whitened, self._root = np.empty((0, n)), np.empty((0, 0))

    @property
    def arms(self) -> Ints:
        """The point that each row is an observation of, (r,)."""
        return self._arms[: self.rows]

    @property
    def last_noise(self) -> float:
        """The noise of the last row."""
        return float(self._noise[self.rows - 1])

    def append(self, arms: Ints, columns: Floats, values: Floats, noise: Floats) -> bool:
        """Take in one observation of each of b distinct points, at O(r b N).

        Parameters
        ----------
        arms : (b,) ints
        columns : (b, N) floats
            K(arms, all points).
        values, noise : (b,) floats
            The observations, and their variances given f.

        Returns
        -------
        bool
            False, and nothing is changed, if rounding has eaten a pivot: each is at least the noise, but for rounding.
        """
        return self._put(self.rows, arms, columns, values, noise)

    def refactor(self, arms: Ints, columns: Floats, values: Floats, noise: Floats) -> bool:
        """Put one observation of each of these distinct points in the place of all rows; otherwise like `append`."""
        return self._put(0, arms, columns, values, noise)

    def append_one(
        self, arm: int, column: Floats, value: float, noise: float, covariance: Floats | None = None
    ) -> bool:
        """What `append` does for one point, in scalars: a third of the time where calls cost more than arithmetic.

        ``covariance`` is that of the point with all points given the rows, (N,), where the caller knows it.
        """
        row = self.rows
        border = self._whitened[:row, arm].copy()  # read once: its elements lie a whole row apart
        if covariance is None:
            covariance = column - border @ self._whitened[:row]
        pivot = float(covariance[arm]) + noise
        if not pivot >= 0.5 * noise:
            return False
        corner = math.sqrt(pivot)
        whitened = covariance / corner
        score = (value - float(self.mean[arm])) / corner
        if row == len(self._scores):
            self._make_room(row + 1)
        self._whitened[row], self._scores[row] = whitened, score
        self._root[row, :row], self._root[row, row] = border, corner
        self._arms[row], self._noise[row] = arm, noise
        self.rows, self.last_arm = row + 1, arm
        self.mean = self.mean + score * whitened
        self.variance = self.variance - whitened * whitened
        self.gain += 0.5 * math.log(pivot / noise)
        self.misfit += score * score
        return True

    def last_covariance(self) -> Floats:
        """The covariance of the last row's point with all points, (N,): the row, scaled."""
        last = self.rows - 1
        return np.asarray((float(self._noise[last]) / float(self._root[last, last])) * self._whitened[last])

    def observe_again(self, value: float, noise: float) -> None:
        """Pool one more observation of the last row's point into that row, at O(N): the row is only scaled."""
        last = self.rows - 1
        row, arm = self._whitened[last], self.last_arm
        corner, row_noise = float(self._root[last, last]), float(self._noise[last])
        at_arm, share = max(float(row[arm]), 0.0), row_noise / corner  # share times row is the covariance with the arm
        pivot = share * at_arm + noise
        score = (value - float(self.mean[arm])) / math.sqrt(pivot)
        change = (share / math.sqrt(pivot)) * row
        self.mean = self.mean + score * change
        self.variance = self.variance - change * change
        self.gain += 0.5 * math.log(pivot / noise)
        self.misfit += score * score

        pooled = row_noise * noise / (row_noise + noise)
        pooled_corner = math.sqrt(corner * at_arm + pooled)
        self._scores[last] = (float(self._scores[last]) + score * share / math.sqrt(pivot)) * pooled_corner / corner
        row *= corner / pooled_corner
        self._root[last, last], self._noise[last] = pooled_corner, pooled

    def explained(self, columns: Floats) -> tuple[Floats, Floats]:
        """The mean, and by how much the variance is below the prior's, each (n,), at points with K(rows, points)."""
        lifted = solve_lower(self._root[: self.rows, : self.rows], columns)
        return self._scores[: self.rows] @ lifted, np.einsum("ij,ij->j", lifted, lifted)

    def explained_covariance(self, first: Ints, second: Ints) -> Floats:
        """By how much the covariance of some points with others is below the prior's, (n,), (m,) -> (n, m)."""
        return np.asarray(self._whitened[: self.rows, first].T @ self._whitened[: self.rows, second])

    def explained_draw(self, draw: Floats, rng: Rng) -> Floats:
        """What observing a draw from the prior, (N,), with the rows' noise would have told about it, (N,)."""
        seen = draw[self.arms] + np.sqrt(self._noise[: self.rows]) * rng.standard_normal(self.rows)
        lifted = solve_lower(self._root[: self.rows, : self.rows], seen[:, None])[:, 0]
        return np.asarray(lifted @ self._whitened[: self.rows])

    def copy(self) -> Self:
        """An independent factor with the same rows."""
        twin = copy.copy(self)
        for name in ("_arms", "_noise", "_scores", "_whitened", "_root"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def _put(self, rows: int, arms: Ints, columns: Floats, values: Floats, noise: Floats) -> bool:
        """Append to the first ``rows`` rows, all or none of them, and forget the others."""
        end = rows + arms.size
        border = self._whitened[:rows, arms].T
        covariance = columns - border @ self._whitened[:rows] if rows else columns.copy()
        corner = lower_root(covariance[:, arms] + np.diag(noise))
        if corner is None or (corner.diagonal() ** 2 < 0.5 * noise).any():
            return False
        self._make_room(end)
        if not rows:
            self.mean, self.variance = np.zeros(len(self.mean)), self._prior_variance
            self.gain = self.misfit = 0.0
        whitened = solve_lower(corner, covariance)
        scores = solve_lower(corner, (values - self.mean[arms])[:, None])[:, 0]
        self._whitened[rows:end], self._scores[rows:end] = whitened, scores
        self._root[rows:end, :rows], self._root[rows:end, rows:end] = border, corner
        self._arms[rows:end], self._noise[rows:end] = arms, noise
        self.rows, self.last_arm = end, int(arms[-1])
        self.mean = self.mean + scores @ whitened
        self.variance = self.variance - np.einsum("ij,ij->j", whitened, whitened)
        self.gain += float(np.log(corner.diagonal()).sum() - 0.5 * np.log(noise).sum())
        self.misfit += float(scores @ scores)
        return True

    def _make_room(self, rows: int) -> None:
        if rows > len(self._scores):
            whitened, scores = enlarged(self._whitened, rows), enlarged(self._scores, rows)
            noise, arms = enlarged(self._noise, rows), enlarged(self._arms, rows)
            root = np.zeros((len(scores), len(scores)))
            root[: len(self._root), : len(self._root)] = self._root
            self._whitened, self._scores, self._noise, self._arms, self._root = whitened, scores, noise, arms, root
