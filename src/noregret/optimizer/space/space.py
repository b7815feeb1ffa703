"""Spaces: the settings to choose from, as points of the unit cube.

A space turns params, which the user reads and writes, into points, which the model computes with. Two kinds: named
parameters (`ParameterSpace`) and a table of candidates (`noregret.optimizer.space.table.CandidateTable`).

A parameter with ``when={"model": ["forest"]}`` applies where the parameter above it, ``model``, applies and has one of
these values. What must hold in all is a `Requirement`: a set of values for each parameter above it, however far up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noregret.gp.posterior import Floats
from noregret.optimizer.space.parameters import Axis, Choice, Float, Int, Parameter, axis_of, finite

Bools = NDArray[np.bool_]

SAME = 1e-6
"""Distance by which rounding may move a coordinate: large offsets of a range, such as 1e9 to 1e9 + 1, cost digits."""

MOST_COORDINATES = 2000
"""Coordinates that all parameters of a space may take together, and settings of the parameters above others up to which
it is counted how many params there are. By taste."""

WIDE = 100.0
"""Factor that a range of positive numbers spans at least, so that a logarithmic scale of it is tried. Decision 0248."""

Requirement = Mapping[str, frozenset[Hashable]]
"""The keys that the values of other parameters must have, by name; empty for a parameter that always applies."""

MOST_ABOVE = 100
"""Parameters that one may depend on, through those above it too: the work for a chain grows with its square. By
taste."""


class Space(Protocol):
    """Settings to choose from."""

    @property
    def groups(self) -> tuple[int, ...]:
        """The lengthscale that each coordinate has, by number: coordinates of one parameter share theirs."""

    @property
    def active_together(self) -> tuple[int, ...]:
        """Number of parameters that may apply together with each, itself included."""

    @property
    def count(self) -> float:
        """Number of different params, infinite where a real number is among the parameters."""

    @property
    def names(self) -> list[Any]:
        """The names of the parameters, in order."""

    @property
    def share(self) -> float:
        """Part of the cube that is inside, see `placed`; 1 where nothing is excluded."""

    @property
    def logarithmic(self) -> Space | None:
        """The same params with every range that spans a factor of `WIDE` on a logarithmic scale, None without one."""

    def placed(self, points: Floats) -> tuple[Floats, Bools]:
        """Even points of the cube as evenly on the values that parameters have, (n, d), and a mask of those inside."""

    def violated(self, params: Any) -> str | None:
        """The first condition of ``require`` that params violate, None if they meet all."""

    def holds(self, points: Floats) -> Bools:
        """Mask of the (n, d) points that may be asked for, (n,): in the context, and allowed by ``require``."""

    def checked(self, params: Any) -> Any:
        """The params as the space returns them; ValueError if they are none of its."""

    def key(self, params: Any) -> Hashable:
        """Equal for equal params, and only for these."""

    def encode(self, params: Sequence[Any]) -> Floats:
        """Points of n params, (n, d)."""

    def decode(self, points: Floats) -> list[Any]:
        """The params nearest to these (n, d) points."""

    def snap(self, points: Floats) -> Floats:
        """The points of the space nearest to these (n, d) points of the cube, (n, d)."""

    def applying(self, points: Floats) -> Bools:
        """Mask of the parameters that apply at (n, d) points, (n, parameters); other coordinates say nothing there."""

    def everything(self) -> Floats:
        """All points there are, (count, d), where ``count`` is finite."""


@dataclass(frozen=True)
class ParameterSpace:
    """Named parameters, each free of the others or with a condition on them.

    Where a parameter does not apply, params do not have it, and its coordinates are those of `_middle`: the same
    for all such points, so it makes no two of them look different.

    >>> from noregret import Choice, Float, Int
    >>> layers, kind = Int(1, 3), Choice(["b", "c", "d"])
    >>> space = ParameterSpace({"rate": Float(1e-4, 1e-1, log=True), "layers": layers, "kind": kind})
    >>> space.decode(space.encode([{"kind": "d", "layers": 2, "rate": 0.1}]))
    [{'rate': 0.1, 'layers': 2, 'kind': 'd'}]
    >>> space = ParameterSpace({"model": Choice(["line", "forest"]), "depth": Int(1, 9, when={"model": "forest"})})
    >>> space.decode(space.encode([{"model": "line"}, {"model": "forest", "depth": 3}]))
    [{'model': 'line'}, {'model': 'forest', 'depth': 3}]
    """

    parameters: Mapping[str, Parameter]

    def __post_init__(self) -> None:
        if not self.parameters:
            raise ValueError("a space needs at least one parameter, got none")
        for name, parameter in self.parameters.items():
            if not isinstance(parameter, Float | Int | Choice):
                raise ValueError(
                    f"parameter {name!r} must be a Float, Int or Choice, got {parameter!r}{_advice(parameter)}"
                )
        object.__setattr__(self, "parameters", dict(self.parameters))
        if len(self.groups) > MOST_COORDINATES:
            raise ValueError(
                f"a space may take at most {MOST_COORDINATES} coordinates, got {len(self.groups)}: a choice of more "
                "than two takes one for each of its options, so drop some options"
            )

        self._requirements  # noqa: B018  raises where a condition makes no sense

    @cached_property
    def _axes(self) -> dict[str, Axis]:
        return {name: axis_of(parameter) for name, parameter in self.parameters.items()}

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return tuple(i for i, axis in enumerate(self._axes.values()) for _ in range(axis.width))

    @cached_property
    def active_together(self) -> tuple[int, ...]:
        return tuple(
            sum(map(partial(compatible, needed), self._requirements.values())) for needed in self._requirements.values()
        )

    @cached_property
    def count(self) -> float:
        """Number of different params; infinite, too, where conditions are too many to count them."""
        counts = {name: axis.count for name, axis in self._axes.items()}
        above = {name: self.parameters[name] for name in self._above}
        total = 0.0
        for number, setting in enumerate(settings(above, self._requirements)):
            if number == MOST_COORDINATES or total == math.inf:
                return math.inf
            keys = self._keys(setting)
            free = [name for name in counts if name not in above and applies(self._requirements[name], keys)]
            total += math.prod(counts[name] for name in free)
        return total

    @property
    def names(self) -> list[Any]:
        return list(self.parameters)

    @property
    def share(self) -> float:
        return 1.0

    @cached_property
    def logarithmic(self) -> ParameterSpace | None:
        ranges = {name: parameter for name, parameter in self.parameters.items() if not isinstance(parameter, Choice)}
        wide = {name: replace(parameter, log=True) for name, parameter in ranges.items() if _is_wide(parameter)}
        return replace(self, parameters={**self.parameters, **wide}) if wide else None

    def placed(self, points: Floats) -> tuple[Floats, Bools]:
        return points, self.holds(points)

    def violated(self, params: Any) -> str | None:
        return None

    def holds(self, points: Floats) -> Bools:
        return np.ones(len(points), dtype=bool)

    def checked(self, params: Any, what: str = "params") -> dict[str, Any]:
        """The params as the space returns them; ValueError, which says what they are, if they are none of its."""
        if not isinstance(params, Mapping):
            raise ValueError(f"{what} must be a dict with a value for each parameter, got {params!r}")
        unknown = next((name for name in params if name not in self.parameters), None)
        if unknown is not None:
            raise ValueError(f"{what} must have a value for each of {list(self.parameters)}: unknown {unknown!r}")
        values = {name: axis.checked(name, params[name]) for name, axis in self._axes.items() if name in params}
        self._check_complete(values, what)
        return values

    def _check_complete(self, values: Mapping[str, Any], what: str) -> None:
        """Raise ValueError unless these are values of all parameters that apply, and of no others."""
        needed = self.applicable(values)
        missing = next((name for name in needed if name not in values), None)
        if missing is not None:
            because = self.parameters[missing].when
            why = f", which applies when {in_words(because)}" if because else ""
            raise ValueError(f"{what} must have a value for each of {needed}: {missing!r} is missing{why}")
        extra = next((name for name in values if name not in needed), None)
        if extra is not None:
            raise ValueError(
                f"{what} must have values only for what applies, here {needed}: leave out {extra!r}, which applies "
                f"only when {in_words(self.parameters[extra].when or {})}"
            )

    def applicable(self, params: Mapping[str, Any]) -> list[str]:
        """The names of the parameters that apply, given these values."""
        if not self._is_conditional:
            return list(self.parameters)
        keys = self._keys({name: params[name] for name in self._above if name in params})
        return [name for name, required in self._requirements.items() if applies(required, keys)]

    def key(self, params: Any) -> Hashable:
        return tuple(axis.key(params[name]) if name in params else None for name, axis in self._axes.items())

    def encode(self, params: Sequence[Any]) -> Floats:
        if not self._is_conditional:
            return np.hstack([axis.encode([p[name] for p in params]) for name, axis in self._axes.items()])
        return np.hstack([self._column(name, params) for name in self.parameters])

    def decode(self, points: Floats) -> list[dict[str, Any]]:
        columns = [axis.decode(part) for axis, part in self._parts(points)]
        rows = [dict(zip(self.parameters, values, strict=True)) for values in zip(*columns, strict=True)]
        if not self._is_conditional:
            return rows
        return [dict(compress(row.items(), kept)) for row, kept in zip(rows, self.applying(points), strict=True)]

    def snap(self, points: Floats) -> Floats:
        snapped = np.hstack([axis.snap(part) for axis, part in self._parts(points)])
        if not self._is_conditional:
            return snapped
        return np.where(self.applying(points)[:, self.groups], snapped, self._middle)

    def applying(self, points: Floats) -> Bools:
        present = np.ones((len(points), len(self.parameters)), dtype=bool)
        if self._is_conditional:
            axes = {name: self._axes[name] for name in self._above}
            keys = {n: list(map(axis.key, axis.decode(points[:, self._span(n)]))) for n, axis in axes.items()}
            for column, needed in enumerate(self._requirements.values()):
                for above, allowed in needed.items():
                    present[:, column] &= np.array([key in allowed for key in keys[above]], dtype=bool)
        return present

    def along(self, name: str, count: int, also: Any) -> list[Any]:
        """Values along a parameter, in order: all, or about ``count`` of them with the value ``also`` among them."""
        axis = self._axes[name]
        if isinstance(self.parameters[name], Choice) or axis.count <= count:
            return list(axis.values())
        return sorted({*axis.decode(np.linspace(0.0, 1.0, count)[:, None]), also})

    def around(self, params: Mapping[str, Any], changed: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
        """Params with some parameters changed, each to n values; those that then apply or do not come and go.

        >>> space = ParameterSpace({"model": Choice(["line", "forest"]), "depth": Int(1, 9, when={"model": "forest"})})
        >>> space.around({"model": "line"}, {"model": ["line", "forest"], "depth": [3, 3]})
        [{'model': 'line'}, {'model': 'forest', 'depth': 3}]
        """
        points = np.repeat(self.encode([params]), len(next(iter(changed.values()))), axis=0)
        for name, values in changed.items():
            points[:, self._span(name)] = self._axes[name].encode(values)
        return self.decode(points)

    def everything(self) -> Floats:
        if self._is_conditional:
            return self.encode(list(settings(self.parameters, self._requirements)))
        columns = [axis.encode(axis.values()) for axis in self._axes.values()]
        return np.array([np.concatenate(rows) for rows in itertools.product(*columns)])

    @cached_property
    def _requirements(self) -> dict[str, Requirement]:
        return requirements(self.parameters)

    @cached_property
    def _above(self) -> tuple[str, ...]:
        """The names of the parameters that others have conditions on."""
        return tuple(dict.fromkeys(name for required in self._requirements.values() for name in required))

    @property
    def _is_conditional(self) -> bool:
        return bool(self._above)

    @cached_property
    def _middle(self) -> Floats:
        """The coordinates of parameters that do not apply: the middle of a range or of all options, (d,)."""
        widths = [axis.width for axis in self._axes.values()]
        return np.concatenate([np.full(width, 0.5 if width == 1 else 1 / (width * math.sqrt(2))) for width in widths])

    def _keys(self, params: Mapping[str, Any]) -> dict[str, Hashable]:
        """The keys of the values that there are."""
        return {name: axis.key(params[name]) for name, axis in self._axes.items() if name in params}

    def _column(self, name: str, params: Sequence[Any]) -> Floats:
        """The coordinates of one parameter, (n, width)."""
        rows = [row for row, setting in enumerate(params) if name in setting]
        part = np.tile(self._middle[self._span(name)], (len(params), 1))
        part[rows] = self._axes[name].encode([params[row][name] for row in rows])
        return part

    def _span(self, name: str) -> slice:
        """The columns of a parameter."""
        group = list(self.parameters).index(name)
        start = self.groups.index(group)
        return slice(start, start + self._axes[name].width)

    def _parts(self, points: Floats) -> list[tuple[Axis, Floats]]:
        ends = np.cumsum([axis.width for axis in self._axes.values()])[:-1]
        parts = np.split(np.asarray(points, dtype=float), ends, axis=1)
        return list(zip(self._axes.values(), parts, strict=True))


def _is_wide(its: Float | Int) -> bool:
    is_free = not its.log and (its.step is None or (isinstance(its, Int) and its.step == 1))
    return is_free and its.low > 0 and its.high >= WIDE * its.low


def _advice(given: Any) -> str:
    """Advice for a parameter that is given as something else, such as ": write Int(1, 64)"; empty if there is none."""
    if isinstance(given, range):
        return f": write Int({given[0]}, {given[-1]}{f', step={given.step}' * (given.step != 1)})" if given else ""
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(finite, given)):
        kinds = ["Int", "Float"] if all(isinstance(number, Integral) for number in given) else ["Float"]
        ranges = " or ".join(f"{kind}({given[0]}, {given[1]})" for kind in kinds)
        return f": write {ranges} for a range, Choice([{given[0]}, {given[1]}]) for two options"
    if isinstance(given, tuple | list | np.ndarray):
        return ": write Choice([...]) for options without an order, Int(low, high) or Float(low, high) for a range"
    return ": write Float(low, high), Int(low, high) or Choice([...])"


def named(parameters: Mapping[Any, Any]) -> ParameterSpace:
    """The space of parameters that a user names; ValueError unless each name is text, as pages and files need it."""
    for name in parameters:
        if not isinstance(name, str):
            raise ValueError(f"a parameter's name must be text, got {name!r}: write {str(name)!r}")
    return ParameterSpace(parameters)


def requirements(parameters: Mapping[str, Parameter]) -> dict[str, Requirement]:
    """Requirement of each parameter; ValueError where its condition makes no sense, or rests on too many others."""
    known: dict[str, Requirement] = {}

    def required(name: str, below: tuple[str, ...]) -> Requirement:
        if name in below:
            circle = " -> ".join((*below[below.index(name) :], name))
            raise ValueError(f"the conditions of parameters must not go in a circle, got {circle}: drop one of them")
        if len(below) > MOST_ABOVE:
            raise ValueError(_too_deep(below[0]))
        if name not in known:
            needed: dict[str, frozenset[Hashable]] = {}
            for parent, values in (parameters[name].when or {}).items():
                keys = _keys(name, parent, values, parameters)
                for above, needs in ((parent, keys), *required(parent, (*below, name)).items()):
                    needed[above] = needed.get(above, needs) & needs
            if len(needed) > MOST_ABOVE:
                raise ValueError(_too_deep(name))
            known[name] = needed
            clash = next((above for above, keys in needed.items() if not keys), None)
            if clash is not None:
                raise ValueError(
                    f"parameter {name!r} can never apply: its condition and those of the parameters above it ask for "
                    f"different values of {clash!r}"
                )
        return known[name]

    return {name: required(name, ()) for name in parameters}


def _too_deep(name: str) -> str:
    return f"parameter {name!r} must depend on at most {MOST_ABOVE} others: give it fewer conditions, or shorter chains"


def _keys(name: str, parent: str, values: Sequence[Any], parameters: Mapping[str, Parameter]) -> frozenset[Hashable]:
    """The keys of the values that a condition names."""
    if parent not in parameters:
        raise ValueError(f"parameter {name!r} has a condition on {parent!r}, which is none of {list(parameters)}")
    axis = axis_of(parameters[parent])
    if math.isinf(axis.count):
        raise ValueError(
            f"parameter {name!r} has a condition on {parent!r}, which must have finitely many values: give it a step"
        )
    try:
        return frozenset(axis.key(axis.checked(parent, value)) for value in values)
    except ValueError as error:
        raise ValueError(
            f"parameter {name!r} has a condition on a value that {parent!r} cannot take ({error}); "
            "several values are given as a list"
        ) from None


def applies(requirement: Requirement, keys: Mapping[str, Hashable]) -> bool:
    """Return True if a parameter applies, given the keys of the values that there are."""
    return all(above in keys and keys[above] in allowed for above, allowed in requirement.items())


def compatible(first: Requirement, second: Requirement) -> bool:
    """Return True if two parameters may apply together."""
    return all(allowed & second.get(above, allowed) for above, allowed in first.items())


def settings(parameters: Mapping[str, Parameter], required: Mapping[str, Requirement]) -> Iterator[dict[str, Any]]:
    """Every legal setting of parameters with finitely many values, once; who is above another is among them."""
    names = sorted(parameters, key=lambda name: len(required[name]))  # a parameter comes after those above it

    def completed(setting: dict[str, Any], keys: dict[str, Hashable], rest: Sequence[str]) -> Iterator[dict[str, Any]]:
        if not rest:
            yield setting
        elif not applies(required[rest[0]], keys):
            yield from completed(setting, keys, rest[1:])
        else:
            name, axis = rest[0], axis_of(parameters[rest[0]])
            for value in axis.values():
                yield from completed({**setting, name: value}, {**keys, name: axis.key(value)}, rest[1:])

    return completed({}, {}, names)


def in_words(when: Mapping[str, Sequence[Any]]) -> str:
    """A condition as people say it.

    >>> in_words({"model": ["forest"], "depth": [1, 2]})
    "model is 'forest' and depth is 1 or 2"
    """
    return " and ".join(f"{name} is {' or '.join(map(repr, values))}" for name, values in when.items())
