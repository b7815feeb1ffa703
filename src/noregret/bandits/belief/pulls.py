"""Pulls: the checks of an update, counts and sums per distinct arm, and the search for points among the arms."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from noregret.gp.arrays import Array, beside, namespace, numpy_of
from noregret.gp.linalg import enlarged
from noregret.gp.posterior import HUGE, Copyable, Floats, Ints, Slot


def check_finite(arms: Any, rewards: Floats) -> None:
    """Raise ValueError if one of the (n,) rewards is nan or infinite."""
    fine = np.isfinite(rewards)
    if not fine.all():
        i = int(fine.argmin())
        raise ValueError(f"reward of arm {arms[i]} is {rewards[i]}: drop it or pass a finite value")


def check_size(arms: Any, rewards: Floats, largest: float) -> None:
    """Raise ValueError if one of the (n,) rewards is larger than the belief accepts."""
    large = np.abs(rewards) > largest
    if large.any():
        i = int(np.argmax(large))
        raise ValueError(
            f"reward of arm {arms[i]} is {rewards[i]:g}: least squares takes rewards up to {largest:g} in size; drop "
            "it, or use a robust algorithm such as tgp_ucb"
        )


def as_pulls(
    arms: Any, rewards: Any, noise: Any, count: int, largest: float
) -> tuple[Ints, Floats | None, Floats | None]:
    """Check the arguments of an update and convert them to arrays: arms, rewards, noise factors, each (n,) or None.

    ``count`` is the number of arms, ``largest`` the largest accepted size of a reward.
    """
    places = _as_indices(arms, count)
    values = None if rewards is None else _as_rewards(rewards, places, largest)
    return places, values, None if noise is None else _as_noise(noise, places.size)


def _as_indices(arms: Any, count: int) -> Ints:
    places = np.asarray(arms).reshape(-1)
    kind = places.dtype.kind
    if kind == "b":
        raise ValueError("arms must be indices, got a mask: pass np.flatnonzero(mask)")
    if kind not in "iu" and places.size:
        raise ValueError(f"arms must be whole numbers, got {places.tolist()[0]!r}: name arms by their index")
    if places.size == 1:  # in scalars: this is the hot path
        inside = 0 <= int(places[0]) < count
    else:
        inside = not places.size or (int(places.min()) >= 0 and int(places.max()) < count)
    if not inside:
        raise ValueError(f"arms must be in 0..{count - 1}, got {places[(places < 0) | (places >= count)][0]}")
    return places.astype(np.intp, copy=False)


def _as_rewards(rewards: Any, arms: Ints, largest: float) -> Floats:
    values = np.asarray(rewards)
    if values.dtype.kind not in "fiubO":
        raise ValueError(f"rewards must be real numbers, got {rewards!r}")
    values = values.astype(float, copy=False).reshape(-1)
    if values.size != arms.size:
        raise ValueError(
            f"rewards must be one per arm, got {_plural(arms.size, 'arm')} and {_plural(values.size, 'reward')}"
        )
    if values.size != 1 or not abs(float(values[0])) <= HUGE:  # one reward in scalars: this is the hot path
        check_finite(arms, values)
        check_size(arms, values, largest)
    return values


def _as_noise(noise: Any, count: int) -> Floats:
    factors = np.asarray(noise, dtype=float)
    if factors.ndim > 1 or factors.size not in (1, count):
        raise ValueError(f"noise must be one number or one per arm, got {factors.size} for {_plural(count, 'arm')}")
    factors = np.broadcast_to(factors, (count,))
    fine = (factors > 0) & np.isfinite(factors)
    if not fine.all():
        raise ValueError(f"noise must be positive and finite, got {factors[fine.argmin()]}")
    return factors


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


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
        numbers = [numpy_of(self._order[start:end]) for start, end in zip(first, last, strict=True)]
        return np.asarray(np.sort(np.concatenate(numbers)), dtype=np.intp)


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
