"""Parameters: `Float`, `Int` and `Choice`, and their coordinates in [0, 1].

A parameter describes its values. Its `Axis` turns values into coordinates and back, in ``width`` columns of the unit
cube with one lengthscale. Numbers take one column; a choice of k > 2 options takes k, so that any two options have the
same distance.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias, overload

import numpy as np

from noregret.gp.posterior import Floats, Ints

EXACT = 2**53
"""Whole numbers up to here are floating-point numbers, all of them. IEEE 754."""
ROUNDING = 1e-9
"""Part of a number by which rounding may move it, after thousands of operations with 16 digits. A range may have no
shorter step."""
MOST_OPTIONS = 1000
"""Options that a `Choice` may have: each takes a coordinate, and the cost of a question grows with these. By taste."""


def described(parameter: Any) -> str:
    """The parameter as it is written, without the step and the condition that it does not have.

    Stored studies are compared by it: those stored before there were steps and conditions still match.
    """
    shown = {slot.name: getattr(parameter, slot.name) for slot in fields(parameter)}
    given = [f"{name}={value!r}" for name, value in shown.items() if value is not None]
    return f"{type(parameter).__name__}({', '.join(given)})"


@dataclass(frozen=True)
class Float:
    """A real number from ``low`` to ``high``, both included; ``log`` for one whose size spans orders of magnitude.

    With a ``step`` it is one of low, low + step, ..., high. ``when`` gives the values that other parameters must have
    for it to apply: ``when={"model": "forest"}``, or a list of values.

    >>> Float(0.001, 1000, log=True)
    Float(low=0.001, high=1000, log=True)
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
        self._axis  # noqa: B018  raises where the step does not fit

    @cached_property
    def _axis(self) -> Axis:
        return FloatAxis(self)

    __repr__ = described


@dataclass(frozen=True)
class Int:
    """A whole number from ``low`` to ``high``, both included; ``log``, ``step`` and ``when`` as for `Float`.

    >>> Int(16, 64, step=16)
    Int(low=16, high=64, log=False, step=16)
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
        self._axis  # noqa: B018  raises where the step does not fit
        if self.step not in (None, 1) and self.log:
            raise ValueError(f"a range has a step or a log scale, not both, got step {self.step}: drop one of the two")

    @cached_property
    def _axis(self) -> Axis:
        return IntAxis(self)

    __repr__ = described


@dataclass(frozen=True)
class Choice:
    """One of several options without an order; numbers among them too are just names. ``when`` as for `Float`.

    >>> Choice(["adam", "sgd"])
    Choice(options=('adam', 'sgd'))
    """

    options: tuple[Any, ...]
    when: Mapping[str, Any] | None = field(default=None, hash=False)

    def __init__(self, options: Sequence[Any], when: Mapping[str, Any] | None = None) -> None:
        if isinstance(options, str | bytes | Set) or not isinstance(options, Iterable):
            raise ValueError(f"options of a Choice must be a list, got {options!r}")
        object.__setattr__(self, "when", checked_when(when))
        plain = (option.item() if isinstance(option, np.number | np.bool_ | np.str_) else option for option in options)
        object.__setattr__(self, "options", tuple(plain))
        if not self.options:
            raise ValueError("options of a Choice must be at least one, got none")
        if len(self.options) > MOST_OPTIONS:
            raise ValueError(
                f"options of a Choice must be at most {MOST_OPTIONS}, got {len(self.options)}: drop some, or put a "
                "number that says something about them in its place"
            )
        axis = ChoiceAxis(self)
        for i, option in enumerate(self.options):
            if axis.index("option", option) < i:
                raise ValueError(f"options of a Choice must differ, got {option!r} twice")

    @cached_property
    def _axis(self) -> Axis:
        return ChoiceAxis(self)

    __repr__ = described


Parameter: TypeAlias = Float | Int | Choice


def checked_when(when: Any) -> dict[str, list[Any]] | None:
    """The values that other parameters must have, a list for each of them; None for no condition.

    >>> checked_when({"model": "forest", "depth": [1, 2]})
    {'model': ['forest'], 'depth': [1, 2]}
    """
    if when is not None and not isinstance(when, Mapping):
        raise ValueError(f"when must be a dict from a parameter's name to a value or a list of values, got {when!r}")
    lists = {name: list(option) if isinstance(option, list) else [option] for name, option in (when or {}).items()}
    for name, values in lists.items():
        if not values:
            raise ValueError(f"when must have at least one value for {name!r}, got none: drop the condition")
    return lists or None


class NumberAxis:
    """Coordinate of a range of numbers, or of the steps in it."""

    width = 1

    def __init__(self, parameter: Float | Int, steps: Steps | None) -> None:
        self.low, self.high, self.log, self.steps = parameter.low, parameter.high, parameter.log, steps

    def encode(self, values: Sequence[Any]) -> Floats:
        numbers = np.asarray(values, dtype=float)
        return self.steps.to_unit(numbers) if self.steps else to_unit(numbers, self.low, self.high, self.log)


class FloatAxis(NumberAxis):
    """Axis of a `Float`.

    >>> axis_of(Float(0.001, 1000, log=True)).decode(np.array([[0.0], [0.5], [1.0]]))
    [0.001, 1.0, 1000.0]
    """

    def __init__(self, parameter: Float) -> None:
        low, high, step = parameter.low, parameter.high, parameter.step
        super().__init__(parameter, None if step is None else Steps(low, high, step))

    @property
    def count(self) -> float:
        if self.steps:
            return len(self.steps)
        return math.inf if self.low < self.high else 1

    def values(self) -> Sequence[float]:
        return self.steps or [self.low]

    def checked(self, name: str, value: Any) -> float:
        number = checked_number(name, value)
        if self.steps:
            return self.steps.checked(name, float(number))
        return float(checked_inside(name, number, self.low, self.high))

    def key(self, value: Any) -> Hashable:
        return float(value)

    def decode(self, coordinates: Floats) -> list[float]:
        if self.steps:
            return [self.steps[int(place)] for place in self.steps.nearest(coordinates[:, 0])]
        numbers = from_unit(coordinates[:, 0], self.low, self.high, self.log)
        return [float(number) for number in np.clip(numbers, self.low, self.high)]

    def snap(self, coordinates: Floats) -> Floats:
        if self.steps:
            return to_unit(self.steps.nearest(coordinates[:, 0]), 0, len(self.steps) - 1, False)
        return np.clip(coordinates, 0.0, 1.0) if self.low < self.high else np.zeros_like(coordinates)


class IntAxis(NumberAxis):
    """Axis of an `Int`.

    >>> axis_of(Int(1, 4)).decode(np.array([[0.0], [0.3], [0.9], [1.0]]))
    [1, 2, 4, 4]
    """

    def __init__(self, parameter: Int) -> None:
        low, high, step = parameter.low, parameter.high, parameter.step
        super().__init__(parameter, None if step in (None, 1) else Steps(low, high, step))
        self.step = int(step or 1)

    @property
    def count(self) -> float:
        return (int(self.high) - int(self.low)) // self.step + 1

    def values(self) -> Sequence[int]:
        return range(int(self.low), int(self.high) + 1, self.step)

    def checked(self, name: str, value: Any) -> int:
        number = checked_number(name, value)
        if number != int(number):
            raise ValueError(f"{name} must be a whole number, got {value!r}")
        if self.steps:
            return int(self.steps.checked(name, int(number)))
        return int(checked_inside(name, int(number), self.low, self.high))

    def key(self, value: Any) -> Hashable:
        return int(value)

    def decode(self, coordinates: Floats) -> list[int]:
        return [int(number) for number in self._nearest(coordinates)]

    def snap(self, coordinates: Floats) -> Floats:
        return self.encode(list(self._nearest(coordinates)))

    def _nearest(self, coordinates: Floats) -> Floats:
        column = coordinates[:, 0]
        if self.steps:
            return np.asarray(self.low + self.steps.step * self.steps.nearest(column), dtype=float)
        if not self.log:  # so that the two ends get as much of the cube as the others
            column = (column * self.count - 0.5) / max(self.count - 1, 1)
        return np.clip(np.rint(from_unit(column, self.low, self.high, self.log)), self.low, self.high)


class ChoiceAxis:
    """Axis of a `Choice`.

    >>> axis_of(Choice(["adam", "sgd"])).decode(np.array([[0.2], [0.9]]))
    ['adam', 'sgd']
    """

    def __init__(self, parameter: Choice) -> None:
        self.options = parameter.options
        self.count: float = len(self.options)
        self.width = 1 if len(self.options) <= 2 else len(self.options)

    def values(self) -> Sequence[Any]:
        return self.options

    def checked(self, name: str, value: Any) -> Any:
        return self.options[self.index(name, value)]

    def key(self, value: Any) -> Hashable:
        return self.index("value", value)

    def encode(self, values: Sequence[Any]) -> Floats:
        return self._corners(np.array([self.index("value", value) for value in values], dtype=np.intp))

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
        """Index of the first option of each hashable value."""
        numbers: dict[Hashable, int] = {}
        for i, option in enumerate(self.options):
            with suppress(TypeError):
                numbers.setdefault(identity(option), i)
        return numbers

    def index(self, name: str, value: Any) -> int:
        """Index of an option; ValueError, with the parameter's name, if there is no such option."""
        with suppress(TypeError, KeyError):
            return self._numbers[identity(value)]
        for i, option in enumerate(self.options):
            if option is value or _same(option, value):
                return i
        raise ValueError(f"{name} must be one of {list(self.options)}, got {value!r}")


Axis: TypeAlias = FloatAxis | IntAxis | ChoiceAxis
"""Values of one parameter as coordinates in [0, 1], and back. All three have the same members.

``width`` is the number of columns of the unit cube, and ``count`` that of the values, infinite for real numbers.
``values`` returns all of them where there are finitely many. ``checked`` returns a value in the parameter's own type;
ValueError, with the parameter's name, if it has no such value. ``key`` is equal for equal values, and only for these.
``encode`` returns the coordinates of n values, (n, width), all in [0, 1]; ``decode`` the values nearest to such
coordinates; ``snap`` the coordinates of those.
"""


def axis_of(parameter: Parameter) -> Axis:
    """The axis of a parameter; each parameter has one."""
    return parameter._axis


@dataclass(frozen=True)
class Steps(Sequence[float]):
    """The numbers low, low + step, ..., high, as people write them: 0.1, 0.2, 0.3, not 0.30000000000000004.

    They take equal shares of [0, 1], and number k of n lies at k / (n - 1).

    >>> list(Steps(0.1, 0.5, 0.1))
    [0.1, 0.2, 0.3, 0.4, 0.5]
    """

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        low, high, step = self.low, self.high, self.step
        if not finite(step) or step <= 0:
            raise ValueError(f"step must be a number above 0, got {step!r}")
        if (high - low) * ROUNDING > step:
            raise ValueError(f"step must divide the range from {low} to {high} into at most 1e9 steps, got {step}")
        if not _is_whole((high - low) / step) or (low < high and len(self) == 1):
            raise ValueError(
                f"high must be low plus a whole number of steps, got low {low}, high {high} and step {step}: "
                f"take {' or '.join(self._around(high))} as high, or another step"
            )

    def __len__(self) -> int:
        return round((self.high - self.low) / self.step) + 1

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...

    def __getitem__(self, index: int | slice) -> float | list[float]:
        found = range(len(self))[index]
        if isinstance(found, range):
            return [self[place] for place in found]
        return float(self.high) if found == len(self) - 1 else self._decimal(found)

    def _decimal(self, index: int) -> float:
        return float(Decimal(str(float(self.low))) + index * Decimal(str(float(self.step))))

    def checked(self, name: str, value: float) -> float:
        """The number that a value is but for rounding; ValueError, with the parameter's name, if it is none."""
        steps = (value - self.low) / self.step
        if _is_whole(steps) and 0 <= round(steps) < len(self):
            return self[round(steps)]
        checked_inside(name, value, self.low, self.high)
        raise ValueError(
            f"{name} must be {self.low} plus a whole number of steps of {self.step}, got {value}: "
            f"{' and '.join(self._around(value))} are next to it"
        )

    def _around(self, value: float) -> list[str]:
        """The numbers below and above a value, as people write them."""
        below = math.floor((value - self.low) / self.step)
        return [f"{self._decimal(index):.15g}" for index in (below, below + 1)]

    def to_unit(self, values: Floats) -> Floats:
        """Coordinates of (n,) values, (n, 1)."""
        return to_unit(np.rint((values - self.low) / self.step), 0, len(self) - 1, False)

    def nearest(self, column: Floats) -> Floats:
        """The indices of the numbers that (n,) coordinates belong to, (n,)."""
        return np.asarray(np.clip(np.rint(column * len(self) - 0.5), 0, len(self) - 1) + 0.0)  # no -0.0


def _is_whole(number: float) -> bool:
    """Return True if a number is whole but for rounding."""
    return abs(number - round(number)) <= 1e-6


def check_bounds(low: Any, high: Any, log: Any) -> None:
    """Raise ValueError unless these are bounds of a range, on a log scale or not."""
    if not isinstance(log, bool | np.bool_):
        raise ValueError(f"log must be True or False, got {log!r}: name a step, as in step={log!r}")
    for bound in (low, high):
        if not finite(bound):
            raise ValueError(f"bounds must be finite numbers, got {low!r} and {high!r}")
    if low > high:
        raise ValueError(f"low must not be above high, got {low} and {high}: swap them")
    if log and low <= 0:
        raise ValueError(f"low must be above 0 on a log scale, got {low}")
    if not math.isfinite(float(high) - float(low)):
        raise ValueError(f"the range from {low} to {high} is too wide for floating point: narrow it")
    if log and low < high and math.log(low) == math.log(high):
        raise ValueError(f"the range from {low} to {high} is too narrow for a log scale: leave log out")


def finite(value: Any) -> bool:
    """Return True for a real number that a float can hold."""
    if type(value) is float:  # to ask `Real` takes ten times as long
        return math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def checked_number(name: str, value: Any) -> Any:
    """The value; ValueError unless it is a finite number."""
    if not finite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return value


def checked_inside(name: str, value: Any, low: float, high: float) -> Any:
    """The value; ValueError unless it is from low to high."""
    if not low <= value <= high:
        advice = "widen the bounds, or pass only what lies inside them"
        raise ValueError(f"{name} must be from {low} to {high}, got {value}: {advice}")
    return value


def to_unit(values: Floats, low: float, high: float, log: bool) -> Floats:
    """Coordinates of (n,) values, (n, 1)."""
    if low == high:
        return np.zeros((len(values), 1))
    if log:
        values, low, high = np.log(values), math.log(low), math.log(high)
    return np.clip((values - low) / (high - low), 0.0, 1.0)[:, None]


def from_unit(column: Floats, low: float, high: float, log: bool) -> Floats:
    """The values at (n,) coordinates, (n,)."""
    if log:
        inside = np.exp(from_unit(column, math.log(low), math.log(high), False))
        return np.where(column <= 0, low, np.where(column >= 1, high, inside))  # the ends are exact
    return np.asarray(low * (1 - column) + high * column)


def identity(value: Any) -> tuple[bool, Any]:
    """Equal for equal values of one kind only: True is not 1, but 1 is 1.0."""
    return isinstance(value, bool | np.bool_), value


def is_same_setting(params: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Return True if two params have the same names and values. ``==`` would take True for 1.

    >>> is_same_setting({"x": 1}, {"x": 1.0}), is_same_setting({"x": 1}, {"x": True})
    (True, False)
    """
    if params is None or other is None:
        return params is other
    return {n: identity(value) for n, value in params.items()} == {n: identity(value) for n, value in other.items()}


def _same(first: Any, second: Any) -> bool:
    """Return True if both have one `identity`. Arrays, which compare to neither yes nor no, have none."""
    try:
        return identity(first)[0] == identity(second)[0] and bool(first == second)
    except ValueError:
        return False
