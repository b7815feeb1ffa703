"""What estimators keep of the rewards: sums per arm, sums per group, or each arm's rewards by size.

Arms are known by their slot: their place in the order in which arms were first pulled. A reward y of noise factor n
counts with weight 1 / n, and what is kept of it is y / n.
"""

from __future__ import annotations

import copy
from typing import Protocol, Self

import numpy as np

from noregret.belief.numerics.linalg import enlarged
from noregret.belief.posterior import Floats, Ints


class Memory(Protocol):
    """The part of a belief that its estimator owns."""

    def take(self, slots: Ints, values: Floats) -> None:
        """Take in weighted rewards, (n,), of the arms in these slots, (n,)."""
        ...

    def copy(self) -> Self:
        """An independent memory of the same rewards."""
        ...


class Sums:
    """The sum of each arm's rewards."""

    def __init__(self) -> None:
        self._sums, self._arms = np.empty(0), 0

    @property
    def total(self) -> Floats:
        """The sum of each arm's rewards, (u,)."""
        return self._sums[: self._arms]

    def take(self, slots: Ints, values: Floats) -> None:
        self._arms = max(self._arms, int(slots.max()) + 1)
        self._sums = enlarged(self._sums, self._arms)
        np.add.at(self._sums, slots, values)

    def copy(self) -> Self:
        twin = copy.copy(self)
        twin._sums = self._sums.copy()
        return twin


class GroupSums:
    """The sum of each arm's rewards in each of k groups; an arm's rewards go round the groups."""

    def __init__(self, groups: int) -> None:
        self._sums: Floats = np.empty((0, groups))
        self._turn: Ints = np.empty(0, np.intp)
        self._arms = 0

    @property
    def total(self) -> Floats:
        """The sum of each arm's rewards in each group, (u, k)."""
        return self._sums[: self._arms]

    def take(self, slots: Ints, values: Floats) -> None:
        self._arms, groups = max(self._arms, int(slots.max()) + 1), self._sums.shape[1]
        self._sums, self._turn = enlarged(self._sums, self._arms), enlarged(self._turn, self._arms)
        for slot, value in zip(slots, values, strict=True):
            self._sums[slot, self._turn[slot] % groups] += value
            self._turn[slot] += 1

    def copy(self) -> Self:
        twin = copy.copy(self)
        twin._sums, twin._turn = self._sums.copy(), self._turn.copy()
        return twin


class SortedRewards:
    """Every arm's rewards sorted by size |y|, with running sums: what a cut leaves is looked up, not added up."""

    def __init__(self) -> None:
        self._sizes: list[Floats] = []  # per slot: |y|, ascending; buffers with room to spare
        self._sums: list[Floats] = []  # per slot: sums of the 0, 1, 2, ... smallest rewards
        self._count: list[int] = []
        self._largest, self._total = np.empty(0), np.empty(0)  # per slot: the largest |y|, the sum of all

    def take(self, slots: Ints, values: Floats) -> None:
        arms = int(slots.max()) + 1
        self._largest, self._total = enlarged(self._largest, arms), enlarged(self._total, arms)
        while len(self._count) < arms:
            self._sizes.append(np.empty(4))
            self._sums.append(np.zeros(5))
            self._count.append(0)
        for slot, value in zip(slots.tolist(), values.tolist(), strict=True):
            self._insert(slot, value)

    def reaching(self, weights: Floats, level: float) -> Ints:
        """The slots with a reward y such that |weight y| > level, for one weight per slot, (u,)."""
        return np.flatnonzero(weights * self._largest[: len(self._count)] > level)

    def total(self, leave: Ints) -> Floats:
        """The sum of each arm's rewards, (u,), 0 for the slots to leave out."""
        total = self._total[: len(self._count)].copy()
        total[leave] = 0.0
        return total

    def kept(self, slots: Ints, weights: Floats, level: float) -> Floats:
        """Truncated sums of weighted rewards, each |weight y| > level left out.

        Parameters
        ----------
        slots : (n,) ints
        weights : (m, n) floats
            One weight per direction and slot.
        level : float

        Returns
        -------
        (m,) floats
            sum over the slots a and their rewards y of weights[i, a] y 1{|weights[i, a] y| <= level}.
        """
        size = np.abs(weights)
        cut = size * self._largest[slots] > level
        sums = np.where(cut, 0.0, self._total[slots])
        for place in np.flatnonzero(cut.any(axis=0)):
            rows, slot = np.flatnonzero(cut[:, place]), slots[place]
            bound = _largest_kept(size[rows, place], level)
            found = self._sizes[slot][: self._count[slot]].searchsorted(bound, "right")
            sums[rows, place] = self._sums[slot][found]
        return np.asarray(np.einsum("ij,ij->i", weights, sums))

    def copy(self) -> Self:
        twin = type(self)()
        twin._sizes, twin._sums = [a.copy() for a in self._sizes], [a.copy() for a in self._sums]
        twin._count, twin._largest, twin._total = self._count.copy(), self._largest.copy(), self._total.copy()
        return twin

    def _insert(self, slot: int, value: float) -> None:
        n, size = self._count[slot], abs(value)
        sizes = self._sizes[slot] = enlarged(self._sizes[slot], n + 1)
        sums = self._sums[slot] = enlarged(self._sums[slot], n + 2)
        at = int(sizes[:n].searchsorted(size, "right"))
        sizes[at + 1 : n + 1] = sizes[at:n]
        sizes[at] = size
        sums[at + 1 : n + 2] = sums[at : n + 1] + value
        self._count[slot], self._largest[slot], self._total[slot] = n + 1, sizes[n], sums[n + 1]


def _largest_kept(weight: Floats, level: float) -> Floats:
    """The largest size whose product with the weight, as rounded, is at most the level, (n,) -> (n,)."""
    bound = level / weight
    above = np.nextafter(bound, np.inf)
    bound = np.where(weight * above <= level, above, bound)
    return np.where(weight * bound > level, np.nextafter(bound, 0.0), bound)
