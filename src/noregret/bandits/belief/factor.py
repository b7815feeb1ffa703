"""Cholesky factor of the exact posterior: one row per observation, and the value of each row at all N arms.

    root root' = K(rows, rows) + diag(noise),    whitened = root^-1 K(rows, arms),    scores = root^-1 y
    mean = scores' whitened,                     variance = k(x, x) - column sums of whitened^2

All work of a round on arrays as long as the arms is in this file. Matrices of rows x rows are NumPy arrays; arrays as
long as the arms stay in the place of the arms. Each row is an observation of a point, which need not be an arm; its
``slot`` identifies the point. `KernelColumns` caches and checks the columns of the kernel matrix.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from noregret.gp.arrays import (
    Array,
    beside,
    column_squares,
    empty_rows,
    is_tensor,
    joined,
    numbers_of,
    numpy_of,
    on_device,
    slabs,
    zeros_like,
)
from noregret.gp.kernels import Kernel
from noregret.gp.linalg import enlarged, lower_root, solve_lower
from noregret.gp.posterior import Copyable, Floats, Ints, Slot

# Columns of the kernel matrix

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


# The factor

BLOCK = 4_000_000
"""Numbers in a block of rows, unless `FEWEST` needs more: at most one block is copied when a table grows."""

DEVICE_BLOCK = 128_000_000
"""As `BLOCK`, for a table on a device, where few large products are faster than many small ones."""

FEWEST = 32
"""Least number of rows of a block."""

EVERYWHERE = slice(None)


class Rows:
    """(r, N) table in blocks of rows, which grows without a second copy of itself."""

    def __init__(self, like: Array) -> None:
        self._like = like  # an (N,) array in the place of the table
        self._most = max(FEWEST, (DEVICE_BLOCK if on_device(like) else BLOCK) // len(like))  # rows of a block
        self._blocks: list[Array] = []
        self.count = 0

    @property
    def last(self) -> Array:
        """Last row, (N,), writable."""
        return self._blocks[-1][(self.count - 1) % self._most]

    def append(self, row: Array) -> None:
        """Add one row, (N,)."""
        place = self.count % self._most
        if not place or place == len(self._blocks[-1]):
            self.resize(self.count + 1)
        else:
            self.count += 1
        self._blocks[-1][place] = row

    def resize(self, count: int) -> None:
        """Set the number of rows; old rows stay, new ones are uninitialised."""
        blocks = -(-count // self._most)
        grown = self._blocks[:blocks]
        while len(grown) < blocks:
            grown.append(empty_rows(self._like, self._most if grown else 0))
        if blocks and len(grown[0]) < min(count, self._most):
            first = empty_rows(self._like, min(max(count, 2 * len(grown[0])), self._most))
            first[: len(grown[0])] = grown[0]
            grown[0] = first
        self._blocks, self.count = grown, count

    def at(self, arm: int) -> Array:
        """Copy of one column, (r,)."""
        if self.count <= self._most:  # read once: its elements are a whole row apart
            return self._blocks[0][: self.count, arm] + 0.0 if self.count else np.empty(0)
        return joined([part[:, arm] for _, part in self._parts()])

    def some(self, arms: Ints | slice) -> Floats:
        """Copy of some columns as a NumPy array, (n,) -> (r, n)."""
        none = np.empty((0, len(self._like)))[:, arms]
        return np.concatenate([none, *(numpy_of(part[:, arms]) for _, part in self._parts())])

    def times(self, left: Array, columns: slice = EVERYWHERE) -> Array:
        """Product of (r,) or (n, r) with the first r rows at some of the columns, (N,) or (n, N); r must not be 0."""
        count = left.shape[-1]
        if count <= self._most:
            return left @ self._blocks[0][:count, columns]
        total, *others = (left[..., rows] @ part[:, columns] for rows, part in self._parts(count))
        for product in others:
            total += product
        return total

    def write(self, start: int, columns: slice, values: Array) -> None:
        """Write (n, m) values into n rows from ``start`` on, at some of the columns."""
        for rows, part in self._parts():
            first, end = max(rows.start, start), min(rows.stop, start + len(values))
            if first < end:
                part[first - rows.start : end - rows.start, columns] = values[first - start : end - start]

    def scale(self, factor: float) -> None:
        """Multiply the table by a number, in place."""
        for _, part in self._parts():
            part *= factor

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin._blocks = []
        twin.resize(self.count)
        for rows, part in self._parts():
            twin.write(rows.start, EVERYWHERE, part)
        return twin

    def _parts(self, count: int | None = None) -> Iterator[tuple[slice, Array]]:
        """First ``count`` rows, all by default, as (rows, part of a block) pairs."""
        count = self.count if count is None else count
        for start, block in zip(range(0, count, self._most), self._blocks, strict=False):
            end = min(start + self._most, count)
            yield slice(start, end), block[: end - start]


Columns = Callable[[slice], Floats]
"""K(points, arms[slab]), (b, n), for a slab of n arms, as a new array."""


class Factor(Copyable):
    """Belief about N arms after some observations y, one per row."""

    OWN = ("_slots", "_noise", "_scores", "_whitened", "_root")

    def __init__(self, prior_variance: Floats) -> None:
        self._prior_variance = prior_variance
        self.mean, self.variance = zeros_like(prior_variance), prior_variance  # (N,), replaced, never changed in place
        self.gain = 0.0  # 1/2 ln det(I + K(rows, rows) / noise)
        self.misfit = 0.0  # y' (K(rows, rows) + diag(noise))^-1 y
        self.rows = 0
        self.last = -1  # name of the last row's point: the index of an arm, or N or more; -1 without rows
        self._slots: Ints = np.empty(0, np.intp)
        self._noise, self._scores, self._root = np.empty(0), np.empty(0), np.empty((0, 0))
        self._whitened = Rows(prior_variance)

    @property
    def slots(self) -> Ints:
        """Slot of the point of each row, (r,)."""
        return self._slots[: self.rows]

    @property
    def last_noise(self) -> float:
        """Noise variance of the last row."""
        return float(self._noise[self.rows - 1])

    def border(self, arms: Ints | slice) -> Floats:
        """root^-1 K(rows, arms), (n,) -> (r, n)."""
        return self._whitened.some(arms)

    def lifted(self, columns: Floats) -> Floats:
        """root^-1 K(rows, points), (r, n), from K(rows, points), which may be overwritten."""
        return solve_lower(self._root[: self.rows, : self.rows], columns)

    def append(
        self, slots: Ints, inner: Floats, border: Floats, columns: Columns, values: Floats, noise: Floats, last: int
    ) -> bool:
        """Append one observation of each of b distinct points, at O(r b N).

        ``inner`` is K(points, points), ``border`` (r, b) is root^-1 K(rows, points), and ``columns`` returns K(points,
        arms[slice]). With r = 0 all present rows are replaced. ``values`` are the observations, ``noise`` their
        variances given f, ``slots`` the slots of the points, each (b,), and ``last`` is the name of the last point.
        Return False, and change nothing, if a pivot is lost to rounding: each is at least the noise, up to rounding.
        """
        rows = len(border)
        corner = lower_root(inner - border.T @ border + np.diag(noise))
        if corner is None or (corner.diagonal() ** 2 < 0.5 * noise).any():
            return False
        scores = solve_lower(corner, (values - self._scores[:rows] @ border)[:, None])[:, 0]
        self._carry(rows, border, corner, scores, columns)
        if not rows:
            self.gain = self.misfit = 0.0
        end = rows + slots.size
        self._make_room(end)
        self._scores[rows:end], self._slots[rows:end], self._noise[rows:end] = scores, slots, noise
        self._root[rows:end, :rows], self._root[rows:end, rows:end] = border.T, corner
        self.rows, self.last = end, last
        self.gain += float(np.log(corner.diagonal()).sum() - 0.5 * np.log(noise).sum())
        self.misfit += float(scores @ scores)
        return True

    def refactor(self, slots: Ints, inner: Floats, columns: Columns, values: Floats, noise: Floats, last: int) -> bool:
        """Replace all rows by one observation of each of these distinct points; otherwise like `append`."""
        return self.append(slots, inner, np.empty((0, slots.size)), columns, values, noise, last)

    def append_one(
        self, arm: int, slot: Slot, column: Floats, value: float, noise: float, covariance: Floats | None = None
    ) -> bool:
        """`append` for one arm, in scalars, which takes a third of the time on few arms.

        ``column`` is K(arm, arms), (N,). ``covariance`` is the posterior covariance of the arm with all arms, (N,), if
        the caller knows it.
        """
        border = self._whitened.at(arm)
        if covariance is None:
            covariance = column - self._whitened.times(border) if self.rows else column
        variance_there, mean_there = numbers_of(covariance[arm], self.mean[arm])
        return self._append_row(arm, slot, border, covariance, variance_there, mean_there, value, noise)

    def append_point(
        self, name: int, slot: Slot, inner: float, border: Floats, column: Floats, value: float, noise: float
    ) -> bool:
        """`append_one` for a point that is not an arm: ``border`` is root^-1 K(rows, point), (r,)."""
        covariance = column - self._whitened.times(beside(column, border)) if self.rows else column
        variance_there, mean_there = inner - float(border @ border), float(self._scores[: self.rows] @ border)
        return self._append_row(name, slot, border, covariance, variance_there, mean_there, value, noise)

    def _append_row(
        self,
        name: int,
        slot: Slot,
        border: Array,
        covariance: Array,
        variance_there: float,
        mean_there: float,
        value: float,
        noise: float,
    ) -> bool:
        """Append the row of a point, given its covariance with all arms and its own variance and mean."""
        row, pivot = self.rows, variance_there + noise
        if not pivot >= 0.5 * noise:
            return False
        corner = math.sqrt(pivot)
        whitened = covariance / corner
        score = (value - mean_there) / corner
        mean, variance = self.mean + score * whitened, self.variance - whitened * whitened
        if row == len(self._scores):
            self._make_room(row + 1)
        self._whitened.append(whitened)  # the last step that can fail on a device without memory
        self._scores[row], self._slots[row], self._noise[row] = score, slot, noise
        self._root[row, :row], self._root[row, row] = numpy_of(border), corner
        self.rows, self.last, self.mean, self.variance = row + 1, name, mean, variance
        self.gain += 0.5 * math.log(pivot / noise)
        self.misfit += score * score
        return True

    def last_covariance(self) -> Array:
        """Covariance of the last row's arm with all arms, (N,): the row, scaled."""
        last = self.rows - 1
        return (float(self._noise[last]) / float(self._root[last, last])) * self._whitened.last

    def observe_again(self, value: float, noise: float) -> None:
        """Pool one more observation of the last row's point into that row, at O(N): the row is scaled."""
        last, row = self.rows - 1, self._whitened.last
        corner, row_noise = float(self._root[last, last]), float(self._noise[last])
        if self.last < len(self.mean):
            row_there, mean_there = numbers_of(row[self.last], self.mean[self.last])
        else:  # corner^2 is the variance there before the row, plus its noise
            row_there = corner - row_noise / corner
            mean_there = float(self._root[last, :last] @ self._scores[:last] + row_there * self._scores[last])
        at_arm, share = max(row_there, 0.0), row_noise / corner  # share times row is the covariance with the arm
        pivot = share * at_arm + noise
        score = (value - mean_there) / math.sqrt(pivot)
        change = (share / math.sqrt(pivot)) * row
        self.mean, self.variance = self.mean + score * change, self.variance - change * change
        self.gain += 0.5 * math.log(pivot / noise)
        self.misfit += score * score

        pooled = row_noise * noise / (row_noise + noise)
        pooled_corner = math.sqrt(corner * at_arm + pooled)
        self._scores[last] = (float(self._scores[last]) + score * share / math.sqrt(pivot)) * pooled_corner / corner
        row *= corner / pooled_corner
        self._root[last, last], self._noise[last] = pooled_corner, pooled

    def fade(self, share: float) -> None:
        """Multiply every covariance of a row with an arm by ``share``, at O(r N); the rows do not change.

        This moves the arms to a later time, with which the function at the rows has less correlation.
        """
        self._whitened.scale(share)
        self.mean = share * self.mean
        self.variance = self._prior_variance + share**2 * (self.variance - self._prior_variance)

    def explained(self, columns: Floats) -> tuple[Floats, Floats]:
        """Mean, and reduction of the prior variance, each (n,), at points with K(rows, points), (r, n)."""
        return self.told(self.lifted(columns))

    def told(self, lifted: Floats) -> tuple[Floats, Floats]:
        """`explained`, given root^-1 K(rows, points), (r, n)."""
        return beside(lifted, self._scores[: self.rows]) @ lifted, column_squares(lifted)

    def explained_covariance(self, first: Ints, second: Ints) -> Floats:
        """Reduction of the prior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        return self.border(first).T @ self.border(second)

    def explained_draw(self, observed: Floats) -> Array:
        """Posterior mean at all arms, (N,), if the rows had observed these values, (r,)."""
        lifted = self.lifted(observed[:, None])[:, 0]
        return self._whitened.times(beside(self.mean, lifted)) if self.rows else zeros_like(self.mean)

    def coefficients(self, observed: Floats) -> Floats:
        """(K(rows, rows) + diag(noise))^-1 (y - observed), (r,) -> (r,)."""
        root = self._root[: self.rows, : self.rows]
        scores = self._scores[: self.rows] - self.lifted(observed[:, None])[:, 0]
        return np.asarray(solve_triangular(root, scores, lower=True, trans=1, check_finite=False))

    def noise_draw(self, rng: np.random.Generator) -> Floats:
        """Draw the noise of the rows, (r,); rows of one point share the noise of their average.

        The law of a posterior draw is then right, and equal random numbers give equal draws, independent of the pooling
        of pulls into rows.
        """
        precision = np.bincount(self.slots, 1 / self._noise[: self.rows])
        return np.asarray((rng.standard_normal(precision.size) / np.sqrt(precision))[self.slots])

    def moved(self, prior_variance: Floats, columns: Columns, last: int) -> Factor:
        """Return the same rows for other arms, at O(r^2 N): ``columns`` is K(rows, other arms)."""
        other, rows = self._emptied(prior_variance, last), self.rows
        other._carry(0, np.empty((0, rows)), self._root[:rows, :rows], self._scores[:rows], columns)
        return other

    def moved_with(self, prior_variance: Floats, lifted: Floats, last: int) -> Factor:
        """`moved` at O(r N), given root^-1 K(rows, other arms), (r, N)."""
        other = self._emptied(prior_variance, last)
        other._whitened.resize(self.rows)
        other._whitened.write(0, slice(None), lifted)
        mean, explained = self.told(lifted)
        other.mean, other.variance = mean, prior_variance - explained
        return other

    def _emptied(self, prior_variance: Floats, last: int) -> Factor:
        """Same rows for other arms, without mean, variance and whitened rows."""
        other, rows = Factor(prior_variance), self.rows
        other._slots, other._noise, other._scores = self._slots.copy(), self._noise.copy(), self._scores.copy()
        other._root, other.gain, other.misfit = np.zeros(self._root.shape), self.gain, self.misfit
        other._root[:rows, :rows] = self._root[:rows, :rows]
        other.rows, other.last = rows, last
        return other

    def _carry(self, rows: int, border: Floats, corner: Floats, scores: Floats, columns: Columns) -> None:
        """Compute new rows at all arms, below the first ``rows`` rows, a slab of arms at a time.

        With ``rows`` 0 the old rows are overwritten, to avoid a second table. If a slab fails then, mean and variance
        become nan rather than wrong. Otherwise, new rows are dropped on failure.
        """
        size = len(corner)
        parts = slabs(self.mean, size)
        first = columns(parts[0])  # a kernel that fails does so here, before anything changes
        mean, variance = (self.mean, self.variance) if rows else (zeros_like(self.mean), self._prior_variance)
        mean, variance = mean + 0.0, variance + 0.0
        left, weights = beside(mean, border.T), beside(mean, scores)
        self._whitened.resize(rows + size)
        try:
            for slab in parts:
                covariance = columns(slab) if slab.start else first
                if rows:
                    covariance = covariance - self._whitened.times(left, slab)
                whitened = solve_lower(corner, covariance)
                self._whitened.write(rows, slab, whitened)
                mean[slab] += weights @ whitened
                variance[slab] -= column_squares(whitened)
        except BaseException:
            self._whitened.resize(rows)
            if not rows:
                self.mean, self.variance = math.nan * mean, math.nan * variance
            raise
        self.mean, self.variance = mean, variance

    def _make_room(self, rows: int) -> None:
        if rows > len(self._scores):
            scores, noise = (enlarged(old, rows) for old in (self._scores, self._noise))
            root = np.zeros((len(scores), len(scores)))
            root[: len(self._root), : len(self._root)] = self._root
            self._slots = enlarged(self._slots, rows)
            self._scores, self._noise, self._root = scores, noise, root
