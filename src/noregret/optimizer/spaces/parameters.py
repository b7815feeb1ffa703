"""Parameters: how the values of one named thing to choose become coordinates in [0, 1], and back.

A parameter takes ``width`` columns of the unit cube and one lengthscale. Numbers take one column; a choice of k > 2
options takes k, so that any two options lie equally far apart.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.spaces.parameter import checked_when
from noregret.optimizer.spaces.scales import (
    EXACT,
    Steps,
    check_bounds,
    checked_inside,
    checked_number,
    finite,
    from_unit,
    to_unit,
)

MOST_OPTIONS = 1000
"""Options that a `Choice` may have: each takes a coordinate, and the cost of a question grows with these."""


@dataclass(frozen=True)
class Float:
    """A real number from ``low`` to ``high``, both included; ``log`` for one whose size spans orders of magnitude.

    With a ``step`` it is one of low, low + step, ..., high. ``when`` says which values other parameters must have for
    it to apply: ``when={"model": "forest"}``, or a list of values.

    >>> Float(0.001, 1000, log=True).decode(np.array([[0.0], [0.5], [1.0]]))
    [0.001, 1.0, 1000.0]
    >>> list(Float(0, 1, step=0.25).values())
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high, self.log)
        object.__setattr__(self, "when", checked_when(self.when))
        if self.step is not None and self.log:
            raise ValueError(f"a range has a step or a log scale, not both, got step {self.step}: drop one of the two")
        self._steps  # noqa: B018  raises where the step does not fit

    @cached_property
    def _steps(self) -> Steps | None:
        return None if self.step is None else Steps(self.low, self.high, self.step)

    def __repr__(self) -> str:
        return described(self)

    @property
    def width(self) -> int:
        return 1

    @property
    def count(self) -> float:
        if self._steps:
            return len(self._steps)
        return math.inf if self.low < self.high else 1

    def values(self) -> Sequence[float]:
        return self._steps or [self.low]

    def checked(self, name: str, value: Any) -> float:
        number = checked_number(name, value)
        if self._steps:
            return self._steps.checked(name, float(number))
        return float(checked_inside(name, number, self.low, self.high))

    def key(self, value: Any) -> Hashable:
        return float(value)

    def encode(self, values: Sequence[Any]) -> Floats:
        numbers = np.asarray(values, dtype=float)
        return self._steps.to_unit(numbers) if self._steps else to_unit(numbers, self.low, self.high, self.log)

    def decode(self, coordinates: Floats) -> list[float]:
        if self._steps:
            return [self._steps[int(place)] for place in self._steps.nearest(coordinates[:, 0])]
        numbers = from_unit(coordinates[:, 0], self.low, self.high, self.log)
        return [float(number) for number in np.clip(numbers, self.low, self.high)]

    def snap(self, coordinates: Floats) -> Floats:
        if self._steps:
            return to_unit(self._steps.nearest(coordinates[:, 0]), 0, len(self._steps) - 1, False)
        return np.clip(coordinates, 0.0, 1.0) if self.low < self.high else np.zeros_like(coordinates)


@dataclass(frozen=True)
class Int:
    """A whole number from ``low`` to ``high``, both included; ``log``, ``step`` and ``when`` as for `Float`.

    >>> Int(1, 4).decode(np.array([[0.0], [0.3], [0.9], [1.0]]))
    [1, 2, 4, 4]
    >>> list(Int(16, 64, step=16).values())
    [16, 32, 48, 64]
    """

    low: int
    high: int
    log: bool = False
    step: int | None = None
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        check_bounds(self.low, self.high, self.log)
        object.__setattr__(self, "when", checked_when(self.when))
        if self.low != int(self.low) or self.high != int(self.high):
            raise ValueError(f"bounds of an Int must be whole numbers, got {self.low} and {self.high}: use Float")
        if max(-self.low, self.high) > EXACT:
            raise ValueError(
                f"bounds of an Int must be from -2**53 to 2**53, where floating point is exact, got {self.low} and "
                f"{self.high}: tune an offset or a multiple instead"
            )
        if self.step is not None and (not finite(self.step) or self.step != int(self.step)):
            raise ValueError(f"step of an Int must be a whole number, got {self.step!r}: use Float")
        if self._steps and self.log:
            raise ValueError(f"a range has a step or a log scale, not both, got step {self.step}: drop one of the two")

    @cached_property
    def _steps(self) -> Steps | None:
        return None if self.step in (None, 1) else Steps(self.low, self.high, self.step)

    def __repr__(self) -> str:
        return described(self)

    @property
    def width(self) -> int:
        return 1

    @property
    def count(self) -> float:
        return (int(self.high) - int(self.low)) // int(self.step or 1) + 1

    def values(self) -> Sequence[int]:
        return range(int(self.low), int(self.high) + 1, int(self.step or 1))

    def checked(self, name: str, value: Any) -> int:
        number = checked_number(name, value)
        if number != int(number):
            raise ValueError(f"{name} must be a whole number, got {value!r}")
        if self._steps:
            return int(self._steps.checked(name, int(number)))
        return int(checked_inside(name, int(number), self.low, self.high))

    def key(self, value: Any) -> Hashable:
        return int(value)

    def encode(self, values: Sequence[Any]) -> Floats:
        numbers = np.asarray(values, dtype=float)
        return self._steps.to_unit(numbers) if self._steps else to_unit(numbers, self.low, self.high, self.log)

    def decode(self, coordinates: Floats) -> list[int]:
        return [int(number) for number in self._nearest(coordinates)]

    def snap(self, coordinates: Floats) -> Floats:
        return self.encode(list(self._nearest(coordinates)))

    def _nearest(self, coordinates: Floats) -> Floats:
        column = coordinates[:, 0]
        if self._steps:
            return np.asarray(self.low + self._steps.step * self._steps.nearest(column), dtype=float)
        if not self.log:  # so that the two ends get as much of the cube as the others
            column = (column * self.count - 0.5) / max(self.count - 1, 1)
        return np.clip(np.rint(from_unit(column, self.low, self.high, self.log)), self.low, self.high)


@dataclass(frozen=True)
class Choice:
    """One of several options without an order; numbers among them too are just names. ``when`` as for `Float`.

    >>> Choice(["adam", "sgd"]).decode(np.array([[0.2], [0.9]]))
    ['adam', 'sgd']
    """

    options: tuple[Any, ...]
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __init__(self, options: Sequence[Any], when: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "when", checked_when(when))
        if isinstance(options, str | bytes | Set) or not isinstance(options, Iterable):
            raise ValueError(f"options of a Choice must be a list, got {options!r}")
        object.__setattr__(self, "options", tuple(options))
        if not self.options:
            raise ValueError("options of a Choice must be at least one, got none")
        if len(self.options) > MOST_OPTIONS:
            raise ValueError(
                f"options of a Choice must be at most {MOST_OPTIONS}, got {len(self.options)}: drop some, or put a "
                "number that says something about them in its place"
            )
        for i, option in enumerate(self.options):
            if self._index("option", option) < i:
                raise ValueError(f"options of a Choice must differ, got {option!r} twice")

    def __repr__(self) -> str:
        return described(self)

    @property
    def width(self) -> int:
        return 1 if len(self.options) <= 2 else len(self.options)

    @property
    def count(self) -> float:
        return len(self.options)

    def values(self) -> Sequence[Any]:
        return self.options

    def checked(self, name: str, value: Any) -> Any:
        return self.options[self._index(name, value)]

    def key(self, value: Any) -> Hashable:
        return self._index("value", value)

    def encode(self, values: Sequence[Any]) -> Floats:
        return self._corners(np.array([self._index("value", value) for value in values], dtype=np.intp))

    def decode(self, coordinates: Floats) -> list[Any]:
        return [self.options[i] for i in self._nearest(coordinates)]

    def snap(self, coordinates: Floats) -> Floats:
        return self._corners(self._nearest(coordinates))

    def _corners(self, index: Ints) -> Floats:
        if self.width == 1:
            return index[:, None].astype(float)
        return np.eye(self.width)[index] / math.sqrt(2)  # any two options at distance 1

    def _nearest(self, coordinates: Floats) -> Ints:
        if self.width > 1:
            return np.asarray(np.argmax(coordinates, axis=1))
        return np.asarray((coordinates[:, 0] >= 0.5) & (len(self.options) == 2), dtype=np.intp)

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        """The first number of each option that can be looked up."""
        numbers: dict[Hashable, int] = {}
        for i, option in enumerate(self.options):
            with suppress(TypeError):
                numbers.setdefault(identity(option), i)
        return numbers

    def _index(self, name: str, value: Any) -> int:
        with suppress(TypeError, KeyError):
            return self._numbers[identity(value)]
        for i, option in enumerate(self.options):
            if option is value or _same(option, value):
                return i
        raise ValueError(f"{name} must be one of {list(self.options)}, got {value!r}")


def described(parameter: Float | Int | Choice) -> str:
    """The parameter as it is written, without the step and the condition that it does not have.

    Studies are told apart by it: those that were stored before there were steps and conditions are still the same.
    """
    shown = {its.name: getattr(parameter, its.name) for its in fields(parameter)}
    given = [f"{name}={value!r}" for name, value in shown.items() if value is not None]
    return f"{type(parameter).__name__}({', '.join(given)})"


def identity(value: Any) -> tuple[bool, Any]:
    """Equal for equal values of one kind only: True is not 1, but 1 is 1.0."""
    return isinstance(value, bool | np.bool_), value


def is_same_setting(params: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether two params have the same names and values. ``==`` would take True for 1.

    >>> is_same_setting({"x": 1}, {"x": 1.0}), is_same_setting({"x": 1}, {"x": True})
    (True, False)
    """
    if params is None or other is None:
        return params is other
    return {n: identity(value) for n, value in params.items()} == {n: identity(value) for n, value in other.items()}


def _same(first: Any, second: Any) -> bool:
    """Whether they have one `identity`. What compares to no yes or no, like an array, is not."""
    try:
        return identity(first)[0] == identity(second)[0] and bool(first == second)
    except ValueError:
        return False
