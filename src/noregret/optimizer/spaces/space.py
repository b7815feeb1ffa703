"""Spaces: what there is to choose from, as points of the unit cube.

A space turns params, which the user reads and writes, into points, which the belief computes with. Two kinds: named
parameters (`Product`) and a table of candidates (`noregret.optimizer.spaces.table.Table`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from noregret.belief.posterior import Floats
from noregret.optimizer.spaces.parameters import Parameter

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

    @property
    def names(self) -> list[Any]:
        """The names of the parameters, in order."""
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

    >>> from noregret import Choice, Float, Int
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

    @property
    def names(self) -> list[Any]:
        return list(self.parameters)

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
