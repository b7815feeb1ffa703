"""Pulls of a run: counts and reward sums per distinct arm, and the search for points among the arms."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from noregret.belief.arrays import Array, beside, namespace, numpy_of
from noregret.belief.numerics.linalg import enlarged
from noregret.belief.posterior import Copyable, Floats, Ints, Slot


class Pulls(Copyable):
    """Counts and sums per distinct arm, in the order of first pulls. The position of an arm in that order is its slot.

    A pull with noise factor n has weight 1 / n.
    """

    OWN = ("_slot", "_arms", "_weights", "_sums")

    def __init__(self) -> None:
        self._slot: dict[int, Slot] = {}
        self._arms: Ints = np.empty(0, np.intp)
        self._weights, self._sums = np.empty(0), np.empty(0)
        self.scatter = 0.0  # sum over all pulls of weight (reward - average of its arm)^2

    def __len__(self) -> int:
        return len(self._slot)

    def __contains__(self, arm: int) -> bool:
        return arm in self._slot

    @property
    def arms(self) -> Ints:
        """Distinct arms, (u,)."""
        return self._arms[: len(self._slot)]

    @property
    def weights(self) -> Floats:
        """Sum of the weights of each arm's pulls, (u,): their number if all have noise factor 1."""
        return self._weights[: len(self._slot)]

    @property
    def averages(self) -> Floats:
        """Weighted average of each arm's rewards, (u,)."""
        return np.asarray(self._sums[: len(self._slot)] / self.weights)

    def slots(self, arms: Ints) -> Ints:
        """Slots of arms, (n,) -> (n,); a new arm gets the next slot."""
        count, slot = len(self._slot), self._slot
        slots = [slot.setdefault(arm, Slot(len(slot))) for arm in arms.tolist()]
        if len(slot) > count:
            self._arms = enlarged(self._arms, len(slot))
            self._weights, self._sums = enlarged(self._weights, len(slot)), enlarged(self._sums, len(slot))
            self._arms[count : len(slot)] = list(slot)[count:]
        return np.array(slots, np.intp)

    def slot(self, arm: int) -> Slot:
        """Slot of an arm; the next free one if the arm is new."""
        return self._slot.get(arm, Slot(len(self._slot)))

    def add(self, block: Pooled) -> None:
        """Count a block of pulls."""
        if block.arms.size == 1:
            self.add_one(int(block.arms[0]), float(block.values[0]), float(block.noise[0]))
            self.scatter += block.scatter
            return
        slots, weights = self.slots(block.arms), 1 / block.noise
        before, sums = self._weights[slots], self._sums[slots]
        again = before > 0
        surprise = block.values[again] - sums[again] / before[again]
        shared = before[again] * weights[again] / (before[again] + weights[again])
        self.scatter += block.scatter + float(shared @ surprise**2)
        self._weights[slots], self._sums[slots] = before + weights, sums + weights * block.values

    def add_one(self, arm: int, value: float, noise: float) -> None:
        """Count one pull, in scalars: faster than `add`."""
        slot, weight = self.slot(arm), 1 / noise
        if arm not in self._slot:
            self.slots(np.array([arm], np.intp))
        else:
            before = float(self._weights[slot])
            surprise = value - float(self._sums[slot]) / before
            self.scatter += before * weight / (before + weight) * surprise**2
        self._weights[slot] += weight
        self._sums[slot] += weight * value

    def moved(self, places: Ints) -> Self:
        """Return the same counts with other indices for the arms: ``places``, (u,)."""
        other = self.copy()
        other._slot, other._arms = {arm: Slot(slot) for slot, arm in enumerate(places.tolist())}, places.copy()
        return other


class Pooled(NamedTuple):
    """One observation per distinct arm, in the order of first pulls, equivalent to a block of pulls."""

    arms: Ints
    values: Floats
    """Weighted average of each arm's rewards, (n,)."""
    noise: Floats
    """Noise factor of this average, (n,): 1 / n for n pulls of noise factor 1."""
    scatter: float
    """Sum over the block's pulls of (reward - average of its arm)^2 / noise factor."""


def pooled(arms: Ints, values: Floats, noise: Floats) -> Pooled:
    """One observation per distinct arm, from pulls with these rewards and noise factors, each (n,)."""
    if arms.size == 1:
        return Pooled(arms, values, noise, 0.0)
    distinct, first, inverse = np.unique(arms, return_index=True, return_inverse=True)
    weights = np.bincount(inverse, 1 / noise)
    averages = np.bincount(inverse, values / noise) / weights
    scatter = float(((values - averages[inverse]) ** 2 / noise).sum())
    order = np.argsort(first)
    return Pooled(distinct[order], averages[order], 1 / weights[order], scatter)


def first_of_each(arms: Ints) -> Ints:
    """Positions of the first occurrence of each distinct arm, (n,) -> (u,), ascending."""
    return np.sort(np.unique(arms, return_index=True)[1])


class Directory:
    """Index of (N, d) arms by their first coordinate.

    The first search reads all arms, O(N log u). Later searches use the sorted first coordinates, O(u log N).
    """

    def __init__(self, arms: Floats) -> None:
        self.arms, self._asked = arms, 0
        self._order: Array = None
        self._sorted: Array = None

    def rows_with(self, values: Floats) -> Ints:
        """Rows whose first coordinate is one of these ascending values, ascending."""
        self._asked += 1
        column, xp = self.arms[:, 0], namespace(self.arms)
        known = beside(column, values)
        if self._asked == 1:
            nearest = known[xp.searchsorted(known[:-1], column)] if len(values) > 1 else known
            return np.asarray(numpy_of(xp.nonzero(nearest == column)[0]), dtype=np.intp)
        if self._order is None:
            self._order = xp.argsort(column)
            self._sorted = column[self._order]
        first = numpy_of(xp.searchsorted(self._sorted, known, side="left")).tolist()
        last = numpy_of(xp.searchsorted(self._sorted, known, side="right")).tolist()
        found = [numpy_of(self._order[start:end]) for start, end in zip(first, last, strict=True)]
        return np.asarray(np.sort(np.concatenate(found)), dtype=np.intp)


def places_among(arms: Floats | Directory, points: Floats) -> Ints:
    """Row of each of the (u, d) points among the (N, d) arms; points without one get N, N + 1, ... in order.

    No two points get the same row: among equal points, the first gets the lowest. Only the first column of the arms is
    read in full, and no table of all arms is made.
    """
    directory = arms if isinstance(arms, Directory) else Directory(arms)
    arms = directory.arms
    rows = directory.rows_with(np.unique(points[:, 0])) if len(points) else np.empty(0, np.intp)
    if not rows.size:
        return len(arms) + np.arange(len(points))
    rows, kinds, point_kinds = _equal_rows(rows, numpy_of(arms[rows]), points)
    order = np.argsort(kinds, kind="stable")
    queue = np.searchsorted(
        kinds[order], np.arange(len(points) + 1)
    ).tolist()  # per kind: position of the next free arm
    ends, places, missing = queue[1:], np.empty(len(points), np.intp), len(arms)
    for i, kind in enumerate(point_kinds.tolist()):
        if queue[kind] < ends[kind]:
            places[i] = rows[order[queue[kind]]]
            queue[kind] += 1
        else:
            places[i], missing = missing, missing + 1
    return places


def _equal_rows(rows: Ints, arms: Floats, points: Floats) -> tuple[Ints, Ints, Ints]:
    """Rows, of (k,) rows with (k, d) arms, that equal a point; the kind of each; and the kind of each point.

    Equal points have the same kind, a number below u.
    """
    left, kinds, point_kinds = np.arange(len(rows)), np.zeros(len(rows), np.intp), np.zeros(len(points), np.intp)
    for arm_column, point_column in zip(arms.T, points.T, strict=True):
        values, ranks = np.unique(point_column, return_inverse=True)
        known, point_kinds = np.unique(point_kinds * len(values) + ranks, return_inverse=True)
        column = arm_column[left]
        places = np.searchsorted(values[:-1], column)
        codes = kinds * len(values) + places
        kinds = np.searchsorted(known[:-1], codes)
        equal = (values[places] == column) & (known[kinds] == codes)
        left, kinds = left[equal], kinds[equal]
    return rows[left], kinds, point_kinds


def arms_of(arms: Floats, points: Floats) -> Ints:
    """Index of the arm that equals each of (n, d) points, -1 if there is none, (n,)."""
    if not len(points):
        return np.empty(0, np.intp)
    distinct, kinds = np.unique(points + 0.0, axis=0, return_inverse=True)
    places = places_among(arms, distinct)
    return np.where(places < len(arms), places, -1)[kinds.reshape(-1)]
