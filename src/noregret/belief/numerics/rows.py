"""A table that grows by rows, each as long as the arms, where the arms live."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

import numpy as np

from noregret.belief.arrays import Array, empty_rows, joined, numpy_of, on_device
from noregret.belief.posterior import Floats, Ints

BLOCK = 4_000_000
"""Numbers in a block of rows, but for `FEWEST`: no more than a block is copied when a table grows."""

DEVICE_BLOCK = 128_000_000
"""The same for a table on a device, where few large products are faster than many."""

FEWEST = 32
"""Rows that a block has at least, however many the arms."""

EVERYWHERE = slice(None)


class Rows:
    """An (r, N) table in blocks of rows, so that it grows without ever being there twice."""

    def __init__(self, like: Array) -> None:
        self._like = like  # an array, (N,), where the table is to live
        self._most = max(FEWEST, (DEVICE_BLOCK if on_device(like) else BLOCK) // len(like))  # rows of a block
        self._blocks: list[Array] = []
        self.count = 0

    @property
    def last(self) -> Array:
        """The last row, (N,), to be written to."""
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
        """Have so many rows: those that were there stay, new ones hold anything until they are written to."""
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
        """One column, (r,), a copy."""
        if self.count <= self._most:  # read once: its elements lie a whole row apart
            return self._blocks[0][: self.count, arm] + 0.0 if self.count else np.empty(0)
        return joined([part[:, arm] for _, part in self._parts()])

    def some(self, arms: Ints | slice) -> Floats:
        """Some columns as NumPy's, (n,) -> (r, n), a copy."""
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
        """Put (n, m) values into n rows from ``start`` on, at some of the columns."""
        for rows, part in self._parts():
            first, end = max(rows.start, start), min(rows.stop, start + len(values))
            if first < end:
                part[first - rows.start : end - rows.start, columns] = values[first - start : end - start]

    def scale(self, factor: float) -> None:
        """Multiply all by a number, in place."""
        for _, part in self._parts():
            part *= factor

    def copy(self) -> Self:
        """An independent table."""
        twin = copy.copy(self)
        twin._blocks = []
        twin.resize(self.count)
        for rows, part in self._parts():
            twin.write(rows.start, EVERYWHERE, part)
        return twin

    def _parts(self, count: int | None = None) -> Iterator[tuple[slice, Array]]:
        """The first ``count`` rows, all by default, as parts of one block each, and which rows these are."""
        count = self.count if count is None else count
        for start, block in zip(range(0, count, self._most), self._blocks, strict=False):
            end = min(start + self._most, count)
            yield slice(start, end), block[: end - start]
