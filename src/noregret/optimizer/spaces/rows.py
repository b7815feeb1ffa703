"""Rows of a table of candidates, and which of them are equal."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Protocol

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.spaces.parameters import identity

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


NO_ROW = LookupError, TypeError, ValueError, AttributeError, StopIteration
"""What is raised for params that are no row."""


class Rows(Protocol):
    """The rows of a table, in order."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int) -> Any:
        """A copy of a row."""
        ...

    def columns(self) -> dict[Any, Any]:
        """The values by column."""
        ...

    def number(self, params: Any) -> int:
        """The number of the first row that equals these params; one of `NO_ROW` if none does."""
        ...

    def distinct(self) -> Ints:
        """The first of each set of equal rows, ascending."""
        ...


class DictRows:
    """Rows that are dicts, all with the same keys."""

    def __init__(self, rows: list[dict[Any, Any]]) -> None:
        names = list(rows[0])
        for i, row in enumerate(rows):
            if row.keys() != rows[0].keys() or not names:
                raise ValueError(
                    f"every row of a table must have the same columns: row {i} has {list(row)}, not {names}"
                )
        self._rows, self._first = rows, dict[Hashable, int]()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> dict[Any, Any]:
        return dict(self._rows[row])

    def columns(self) -> dict[Any, list[Any]]:
        """The values by column."""
        return {name: [row[name] for row in self._rows] for name in self._rows[0]}

    def number(self, params: Any) -> int:
        """The number of the first row that equals these params."""
        return self._numbers()[_key(params)]

    def distinct(self) -> Ints:
        """The first of each set of equal rows, ascending."""
        return np.array(list(self._numbers().values()), dtype=np.intp)

    def _numbers(self) -> dict[Hashable, int]:
        if not self._first:
            for i, row in enumerate(self._rows):
                self._first.setdefault(_key(row), i)
        return self._first


class NumberRows:
    """Rows of an (N, d) array of numbers. Equal ones are found by a hash, so no object is made for each of millions."""

    def __init__(self, array: Floats) -> None:
        self._array = array
        hashes = _hashes(array)
        self._order: Ints = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: int) -> Floats:
        return np.array(self._array[row])

    def columns(self) -> dict[int, Floats]:
        """The values by column."""
        return dict(enumerate(self._array.T))

    def number(self, params: Any) -> int:
        """The number of the first row that equals these params."""
        row = np.asarray(params, dtype=float)
        if row.shape != self._array.shape[1:]:
            raise ValueError("a row has a number for every column")
        hashed = _hashes(row[None])[0]
        start, end = np.searchsorted(self._sorted, hashed, "left"), np.searchsorted(self._sorted, hashed, "right")
        return next(int(i) for i in self._order[start:end] if np.array_equal(self._array[i], row))

    def distinct(self) -> Ints:
        """The first of each set of equal rows, ascending."""
        same = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        again, before = self._order[same + 1], self._order[same]
        repeated = again[(self._array[again] == self._array[before]).all(axis=1)]
        return np.delete(np.arange(len(self)), repeated)


def _hashes(rows: Floats) -> Hashes:
    """A number for each of (n, d) rows, equal for equal rows and hardly ever else, (n,)."""
    mixed = np.zeros(len(rows), np.uint64)
    for column in (rows + 0.0).T:  # -0.0 becomes 0.0: equal bits
        mixed = _mixed(mixed * np.uint64(31) + np.ascontiguousarray(column).view(np.uint64))
    return mixed


def _mixed(numbers: Hashes) -> Hashes:
    """Every bit made to depend on all: a multiplication alone leaves the low bits of round numbers alike."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _key(params: Mapping[Any, Any]) -> Hashable:
    return frozenset((name, identity(value)) for name, value in params.items())
