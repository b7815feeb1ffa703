"""Spaces: what there is to choose from, as points of the unit cube.

A space turns params, which the user reads and writes, into points, which the belief computes with. Two kinds: named
parameters (`Product`) and a table of candidates (`Table`). `as_space` makes the right one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.spatial import cKDTree

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.spaces.parameters import MOST_OPTIONS, Choice, Float, Parameter, finite, identity

MOST_COORDINATES = 2000
"""Coordinates that all parameters of a space may take together."""


class Space(Protocol):
    """What there is to choose from."""

    @property
    def groups(self) -> tuple[int, ...]:
        """The lengthscale that each coordinate has, by number: coordinates of one parameter share theirs."""
        ...

    @property
    def count(self) -> float:
        """How many different params there are, infinite where a real number is among the parameters."""
        ...

    def checked(self, params: Any) -> Any:
        """The params as the space returns them; ValueError if they are none of its."""
        ...

    def key(self, params: Any) -> Hashable:
        """Equal for equal params, and only for these."""
        ...

    def encode(self, params: Sequence[Any]) -> Floats:
        """Points of n params, (n, d)."""
        ...

    def decode(self, points: Floats) -> list[Any]:
        """The params nearest to these (n, d) points."""
        ...

    def snap(self, points: Floats) -> Floats:
        """The points of the space nearest to these (n, d) points of the cube, (n, d)."""
        ...

    def everything(self) -> Floats:
        """All points there are, (count, d), where ``count`` is finite."""
        ...


@dataclass(frozen=True)
class Product:
    """Named parameters, each free of the others.

    >>> from noregret.optimizer.spaces.parameters import Int
    >>> space = Product({"rate": Float(1e-4, 1e-1, log=True), "layers": Int(1, 3), "kind": Choice(["b", "c", "d"])})
    >>> space.decode(space.encode([{"kind": "d", "layers": 2, "rate": 0.1}]))
    [{'rate': 0.1, 'layers': 2, 'kind': 'd'}]
    """

    parameters: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise ValueError("a space needs at least one parameter, got none")
        for name, parameter in self.parameters.items():
            if isinstance(parameter, type) or not isinstance(parameter, Parameter):
                raise ValueError(f"parameter {name!r} must be a Float, Int or Choice, got {parameter!r}")
        object.__setattr__(self, "parameters", dict(self.parameters))
        if len(self.groups) > MOST_COORDINATES:
            raise ValueError(
                f"a space may take at most {MOST_COORDINATES} coordinates, got {len(self.groups)}: a choice of more "
                "than two takes one for each of its options, so drop some options"
            )

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(i for i, parameter in enumerate(self.parameters.values()) for _ in range(parameter.width))

    @cached_property
    def count(self) -> float:
        return math.prod(parameter.count for parameter in self.parameters.values())

    def checked(self, params: Any) -> dict[str, Any]:
        if not isinstance(params, Mapping):
            raise ValueError(f"params must be a dict with a value for each parameter, got {params!r}")
        unknown = [name for name in params if name not in self.parameters]
        missing = [name for name in self.parameters if name not in params]
        if unknown or missing:
            wrong = f"unknown {unknown[0]!r}" if unknown else f"{missing[0]!r} is missing"
            raise ValueError(f"params must have a value for each of {list(self.parameters)}: {wrong}")
        return {name: parameter.checked(name, params[name]) for name, parameter in self.parameters.items()}

    def key(self, params: Any) -> Hashable:
        return tuple(parameter.key(params[name]) for name, parameter in self.parameters.items())

    def encode(self, params: Sequence[Any]) -> Floats:
        return np.hstack([parameter.encode([p[name] for p in params]) for name, parameter in self.parameters.items()])

    def decode(self, points: Floats) -> list[dict[str, Any]]:
        columns = [parameter.decode(part) for parameter, part in self._parts(points)]
        return [dict(zip(self.parameters, values, strict=True)) for values in zip(*columns, strict=True)]

    def snap(self, points: Floats) -> Floats:
        return np.hstack([parameter.snap(part) for parameter, part in self._parts(points)])

    def everything(self) -> Floats:
        columns = [parameter.encode(parameter.values()) for parameter in self.parameters.values()]
        return np.array([np.concatenate(rows) for rows in itertools.product(*columns)])

    def _parts(self, points: Floats) -> list[tuple[Parameter, Floats]]:
        ends = np.cumsum([parameter.width for parameter in self.parameters.values()])[:-1]
        parts = np.split(np.asarray(points, dtype=float), ends, axis=1)
        return list(zip(self.parameters.values(), parts, strict=True))


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
        self._rows, columns = _read(rows)
        self._columns = Product({name: _column(name, values) for name, values in columns.items()})
        self._points = np.hstack([self._columns.parameters[name].encode(values) for name, values in columns.items()])
        self.groups = self._columns.groups
        first: dict[Hashable, int] = {}
        for i, row in enumerate(self._rows):
            first.setdefault(_row_key(row), i)  # of equal rows the first stands for all
        self._first, self._kept = first, np.array(list(first.values()), dtype=np.intp)

    def __repr__(self) -> str:
        return f"Table(<{len(self._rows)} rows>)"

    @property
    def count(self) -> float:
        return len(self._kept)

    def checked(self, params: Any) -> Any:
        return _copied(self._rows[self.key(params)])

    def key(self, params: Any) -> int:
        """The number of the row."""
        try:
            return self._first[_row_key(params)]
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"params must be a row of the table, got {params!r}: give it in the form of ask()"
            ) from None

    def encode(self, params: Sequence[Any]) -> Floats:
        return np.asarray(self._points[[self.key(p) for p in params]])

    def decode(self, points: Floats) -> list[Any]:
        return [_copied(self._rows[row]) for row in self._nearest(points)]

    def snap(self, points: Floats) -> Floats:
        return np.asarray(self._points[self._nearest(points)])

    def everything(self) -> Floats:
        return np.asarray(self._points[self._kept])

    def _nearest(self, points: Floats) -> Ints:
        return np.asarray(self._kept[self._tree.query(self._columns.snap(points))[1]])

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._points[self._kept])


def as_space(space: Any) -> Space:
    """Named parameters from a dict, candidates from anything else that is a table."""
    return Product(space) if isinstance(space, Mapping) else Table(space)


def _read(rows: Any) -> tuple[list[Any], dict[Any, list[Any]]]:
    """The rows as params, and the values by column."""
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a DataFrame, of whichever library
        rows = rows.to_dict("records") if hasattr(rows, "iloc") else rows.to_dicts()
    if isinstance(rows, Sequence) and len(rows) and all(isinstance(row, Mapping) for row in rows):
        return _read_dicts([dict(row) for row in rows])
    try:
        array = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            "space must be a dict of Float, Int and Choice, or a table with at least one row: a DataFrame, a list of "
            f"dicts or an (N, d) array of numbers, got {type(rows).__name__}"
        )
    return list(array), {i: column.tolist() for i, column in enumerate(array.T)}


def _read_dicts(rows: list[dict[Any, Any]]) -> tuple[list[Any], dict[Any, list[Any]]]:
    names = list(rows[0])
    for i, row in enumerate(rows):
        if row.keys() != rows[0].keys() or not names:
            raise ValueError(f"every row of a table must have the same columns: row {i} has {list(row)}, not {names}")
    return rows, {name: [row[name] for row in rows] for name in names}


def _column(name: Any, values: list[Any]) -> Parameter:
    """Numbers from the least to the largest, or a choice."""
    row = next((i for i, value in enumerate(values) if _missing(value)), None)
    if row is not None:
        raise ValueError(f"column {name!r} of the table is missing in row {row}: fill it or drop the row")
    if not all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        return _choice(name, values)
    ends = min(values), max(values)
    for end in ends:
        if not finite(end):
            raise ValueError(f"column {name!r} of the table must hold finite numbers, got {end!r}")
    return Float(float(ends[0]), float(ends[1]))


def _missing(value: Any) -> bool:
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


def _row_key(params: Any) -> Hashable:
    if isinstance(params, Mapping):
        return frozenset((name, identity(value)) for name, value in params.items())
    return tuple(np.asarray(params, dtype=float).tolist())


def _copied(row: Any) -> Any:
    return dict(row) if isinstance(row, dict) else row.copy()
