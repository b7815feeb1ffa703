"""Tables: candidates that are listed, as an array of numbers, a DataFrame or a list of dicts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.spaces.parameter import Parameter
from noregret.optimizer.spaces.parameters import MOST_OPTIONS, Choice, Float, identity
from noregret.optimizer.spaces.rows import NO_ROW, DictRows, NumberRows, Rows
from noregret.optimizer.spaces.scales import finite
from noregret.optimizer.spaces.space import Bools, Product, Space, named


class Table:
    """A table of candidates: the rows of an array, of a DataFrame, or a list of dicts.

    Columns of numbers are scaled to [0, 1], others are choices. Params are the row: a dict by column, or for an
    array the row itself.

    >>> table = Table([{"machine": "small", "nodes": 4}, {"machine": "large", "nodes": 2}])
    >>> table.everything()
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, rows: Any) -> None:
        self._rows = _read(rows)
        columns = self._rows.columns()
        self._columns = Product({name: _column(name, values) for name, values in columns.items()})
        self._points = np.hstack([self._columns.parameters[name].encode(values) for name, values in columns.items()])
        self.groups, self.company = self._columns.groups, self._columns.company
        self._kept = self._rows.distinct()  # of equal rows the first stands for all

    def __repr__(self) -> str:
        return f"Table(<{len(self._rows)} rows>)"

    @property
    def count(self) -> float:
        return len(self._kept)

    @property
    def names(self) -> list[Any]:
        return list(self._columns.parameters)

    @property
    def is_array(self) -> bool:
        """Whether params are rows of numbers, and no dicts."""
        return isinstance(self._rows, NumberRows)

    def checked(self, params: Any) -> Any:
        return self._rows[self.key(params)]

    def key(self, params: Any) -> int:
        """The number of the row."""
        try:
            return self._rows.number(params)
        except NO_ROW:
            raise ValueError(
                f"params must be a row of the table, got {params!r}: give it in the form of ask()"
            ) from None

    def encode(self, params: Sequence[Any]) -> Floats:
        return np.asarray(self._points[[self.key(p) for p in params]])

    def decode(self, points: Floats) -> list[Any]:
        return [self._rows[row] for row in self._nearest(points).tolist()]

    def snap(self, points: Floats) -> Floats:
        return np.asarray(self._points[self._nearest(points)])

    def applying(self, points: Floats) -> Bools:
        return self._columns.applying(points)

    def everything(self) -> Floats:
        return np.asarray(self._points[self._kept])

    def _nearest(self, points: Floats) -> Ints:
        return np.asarray(self._kept[self._tree.query(self._columns.snap(points))[1]])

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._points[self._kept])


def as_space(space: Any) -> Space:
    """Named parameters from a dict, candidates from anything else that is a table."""
    return named(space) if isinstance(space, Mapping) else Table(space)


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
        raise ValueError(
            "space must be a dict of Float, Int and Choice, or a table with at least one row: a DataFrame, a list of "
            f"dicts or an (N, d) array of numbers, got {type(rows).__name__}"
        )
    return NumberRows(array)


def _column(name: Any, values: Any) -> Parameter:
    """Numbers from the least to the largest, or a choice."""
    numbers = isinstance(values, np.ndarray)
    missing = np.flatnonzero(np.isnan(values)) if numbers else [i for i, v in enumerate(values) if is_missing(v)]
    if len(missing):
        raise ValueError(f"column {name!r} of the table is missing in row {missing[0]}: fill it or drop the row")
    if numbers:
        return _numbers(name, float(values.min()), float(values.max()))
    if not all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        return _choice(name, values)
    return _numbers(name, min(values), max(values))


def _numbers(name: Any, least: Any, largest: Any) -> Float:
    for end in (least, largest):
        if not finite(end):
            raise ValueError(f"column {name!r} of the table must hold finite numbers, got {end!r}")
    return Float(float(least), float(largest))


def is_missing(value: Any) -> bool:
    """Whether this stands for no value, in whichever library's way."""
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
