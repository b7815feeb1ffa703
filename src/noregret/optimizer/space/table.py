"""Tables: candidates that are listed, as an array of numbers, a DataFrame or a list of dicts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.space.parameters import MOST_OPTIONS, Choice, Float, Parameter, axis_of, finite, identity
from noregret.optimizer.space.require import Condition, Restricted, checked_require, none_meets, violated
from noregret.optimizer.space.space import SAME, Bools, ParameterSpace, Space, named

LEAST_SHARE_OF_GRID = 0.01
"""Part of all combinations of values that rows must be to be seen as a grid with exclusions. By taste."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class CandidateTable:
    """A table of candidates: the rows of an array, of a DataFrame, or a list of dicts.

    Columns of numbers are scaled to [0, 1], others are choices. The scale is logarithmic where it spaces the numbers
    more evenly, as it does powers of two. Params are the row: a dict by column, or for an
    array the row itself.

    >>> table = CandidateTable([{"machine": "small", "nodes": 4}, {"machine": "large", "nodes": 2}])
    >>> table.everything()
    array([[0., 1.],
           [1., 0.]])

    Rows that violate a condition of ``require`` are params of the past only: the space does not return them.
    """

    def __init__(self, rows: Any, require: Sequence[str] = ()) -> None:
        self.rows = _read(rows)  # all of them, equal ones too
        columns = self.rows.columns()
        self._columns = ParameterSpace({name: _column(name, values) for name, values in columns.items()})
        self._points = np.hstack(
            [axis_of(self._columns.parameters[name]).encode(values) for name, values in columns.items()]
        )
        self.groups, self.active_together = self._columns.groups, self._columns.active_together
        self._kept = self.rows.distinct()  # of equal rows the first stands for all
        self._conditions = self._required(require) if require else ()

    def _required(self, require: Any) -> tuple[Condition, ...]:
        """The conditions; rows that violate one are not kept."""
        if self.is_array:
            raise ValueError(
                "require needs columns with names, got an array: give the candidates as a DataFrame or a list of dicts"
            )
        conditions, columns = checked_require(require, self._columns.parameters), self.rows.columns()
        each = [condition.holds(columns, len(self.rows))[self._kept] for condition in conditions]
        allowed = np.logical_and.reduce(each)
        if not allowed.any():
            raise none_meets(conditions, each)
        self._kept = self._kept[allowed]
        return conditions

    def __repr__(self) -> str:
        return f"CandidateTable(<{len(self.rows)} rows>)"

    @property
    def count(self) -> float:
        return len(self._kept)

    @property
    def names(self) -> list[Any]:
        return list(self._columns.parameters)

    @property
    def is_array(self) -> bool:
        """True if params are rows of numbers, and no dicts."""
        return isinstance(self.rows, NumberRows)

    @property
    def logarithmic(self) -> None:
        """None: the scale of each column is that on which its values are more even."""
        return

    @cached_property
    def share(self) -> float:
        """Part of all combinations of the columns' values that are rows; 1 if the rows are not part of a grid."""
        sizes = [len(values) for values in self._values]
        share = self.count / math.prod(sizes)
        return share if share >= LEAST_SHARE_OF_GRID and 2 * max(sizes) <= self.count else 1.0

    def placed(self, points: Floats) -> tuple[Floats, Bools]:
        values = [column[(u * len(column)).astype(np.intp)] for column, u in zip(self._values, points.T, strict=True)]
        grid = np.column_stack(values)
        inside = np.asarray(self._tree.query(grid)[0]) <= SAME
        return np.where(inside[:, None], grid, points), inside

    @cached_property
    def _values(self) -> list[Floats]:
        """Different values of each coordinate, in order."""
        return [np.unique(column) for column in self.everything().T]

    def violated(self, params: Any) -> str | None:
        return violated(self._conditions, params)

    def holds(self, points: Floats) -> Bools:
        if not self._conditions:
            return np.ones(len(points), dtype=bool)
        return np.asarray((np.abs(self.snap(points) - points) <= SAME).all(axis=1))

    def checked(self, params: Any) -> Any:
        return self.rows[self.key(params)]

    def key(self, params: Any) -> int:
        """The number of the row."""
        try:
            return self.rows.number(params)
        except NO_ROW:
            raise ValueError(
                f"params must be a row of the table, got {params!r}: give it in the form of ask()"
            ) from None

    def encode(self, params: Sequence[Any]) -> Floats:
        return np.asarray(self._points[[self.key(p) for p in params]])

    def decode(self, points: Floats) -> list[Any]:
        return [self.rows[row] for row in self._nearest(points).tolist()]

    def snap(self, points: Floats) -> Floats:
        return np.asarray(self._points[self._nearest(points)])

    def applying(self, points: Floats) -> Bools:
        return self._columns.applying(points)

    def everything(self) -> Floats:
        return np.asarray(self._points[self._kept])

    def _nearest(self, points: Floats) -> Ints:
        return np.asarray(self._kept[self._tree.query(self._columns.snap(points))[1]])

    @cached_property
    def _tree(self) -> Any:
        return sp.cKDTree(self._points[self._kept])


def as_space(space: Any, require: Any = None) -> Space:
    """Named parameters from a dict, candidates from anything else that is a table; those that meet ``require``."""
    if not isinstance(space, Mapping):
        return CandidateTable(space, require or ())
    return Restricted(named(space).parameters, require) if require else named(space)


def _read(rows: Any) -> Rows:
    """The rows of whatever a table comes as."""
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame, of whichever library
        rows = rows.to_dict("records") if hasattr(rows, "iloc") else rows.to_dicts()
    if isinstance(rows, Sequence) and len(rows) and all(isinstance(row, Mapping) for row in rows):
        return DictRows([dict(row) for row in rows])
    if hasattr(rows, "detach") and hasattr(rows, "cpu"):  # a tensor, wherever it lives: what looks rows up lives here
        rows = rows.detach().cpu()
    try:
        array = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or not array.size:
        came = type(rows).__name__
        if hasattr(rows, "__len__") and len(rows) == 0:
            came = "no rows"
        elif isinstance(rows, Iterable) and not isinstance(rows, str) and isinstance(next(iter(rows)), str | Number):
            came += " with one value per row: name it, as in [{'x': value} for value in values]"
        raise ValueError(
            "space must be a dict of Float, Int and Choice, or a table with at least one row: a DataFrame, a list of "
            f"dicts or an (N, d) array of numbers, got {came}"
        )
    return NumberRows(array)


def _column(name: Any, values: Any) -> Parameter:
    """Numbers from the least to the largest, or a choice."""
    numbers = isinstance(values, np.ndarray)
    missing = np.flatnonzero(np.isnan(values)) if numbers else [i for i, v in enumerate(values) if is_missing(v)]
    if len(missing):
        raise ValueError(f"column {name!r} of the table is missing in row {missing[0]}: fill it or drop the row")
    if numbers:
        return _numbers(name, np.unique(values).tolist())
    if not all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        return _choice(name, values)
    return _numbers(name, sorted(set(values)))


def _numbers(name: Any, values: list[Any]) -> Float:
    """Parameter of a column with these distinct numbers, ascending."""
    least, largest = values[0], values[-1]
    for end in (least, largest):
        if not finite(end):
            raise ValueError(f"column {name!r} of the table must hold finite numbers, got {end!r}")
    return Float(float(least), float(largest), log=_is_geometric(np.array(values, dtype=float)))


def _is_geometric(values: Floats) -> bool:
    """Return whether these numbers, ascending and at least four, are positive and more even on a logarithmic scale."""
    if len(values) < 4 or values[0] <= 0:
        return False
    steps, factors = np.diff(values / values[-1]), np.diff(np.log(values))
    return bool(np.std(factors) / np.mean(factors) < np.std(steps) / np.mean(steps))


def is_missing(value: Any) -> bool:
    """Return True if this stands for no value, in whichever library's way."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal to itself nor not
        return True
    except ValueError:  # an array
        return False


def _choice(name: Any, values: list[Any]) -> Choice:
    try:
        options = [value for _, value in dict.fromkeys(map(identity, values))]
    except TypeError:
        odd = next((value for value in values if not isinstance(value, Hashable)), values[0])
        raise ValueError(f"column {name!r} of the table must hold numbers, text or the like, got {odd!r}") from None
    if len(options) > MOST_OPTIONS:
        raise ValueError(
            f"column {name!r} of the table must have at most {MOST_OPTIONS} different options, got {len(options)}: "
            "drop it if it merely names the rows, or put numbers in its place"
        )
    return Choice(options)


NO_ROW = LookupError, TypeError, ValueError, AttributeError, StopIteration
"""Raised for params that are no row."""


class DictRows:
    """Rows that are dicts, all with the same keys."""

    def __init__(self, rows: list[dict[Any, Any]]) -> None:
        names = list(rows[0])
        for i, row in enumerate(rows):
            if row.keys() != rows[0].keys() or not names:
                raise ValueError(
                    f"every row of a table must have the same columns: row {i} has {list(row)}, not {names}"
                )
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> Any:
        return dict(self._rows[row])

    def columns(self) -> dict[Any, Any]:
        """The values by column."""
        return {name: [row[name] for row in self._rows] for name in self._rows[0]}

    def number(self, params: Any) -> int:
        """The number of the first row that equals these params; one of `NO_ROW` if none does."""
        return self._numbers[_key(params)]

    def distinct(self) -> Ints:
        """The first of each set of equal rows, ascending."""
        return np.array(list(self._numbers.values()), dtype=np.intp)

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        first: dict[Hashable, int] = {}
        for i, row in enumerate(self._rows):
            first.setdefault(_key(row), i)
        return first


class NumberRows:
    """Rows of an (N, d) array of numbers. Equal ones are found by a hash, so no object is made for each of millions."""

    def __init__(self, array: Floats) -> None:
        self._array = array
        hashes = _hashes(array)
        self._order: Ints = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, row: int) -> Any:
        return np.array(self._array[row])

    def columns(self) -> dict[Any, Any]:
        """The values by column."""
        return dict(enumerate(self._array.T))

    def number(self, params: Any) -> int:
        """The number of the first row that equals these params; one of `NO_ROW` if none does."""
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


Rows: TypeAlias = DictRows | NumberRows
"""The rows of a table, in order; equal rows have one number."""


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
