"""Conditions that tie parameters to each other, such as ``threads * batch <= 4096``: every question meets them.

A condition is an expression with names of parameters, numbers, text in quotes, ``+ - * / // % **``, comparisons,
``and or not``, ``min max abs`` and parentheses. It is parsed with Python's `ast` and computed here, for many settings
at once; it is never run as code. It holds where a parameter that it names does not apply. A comparison with a number
that cannot be computed, such as 1 / 0, is false.

`Restricted` is the space of named parameters that meet such conditions. All questions are points that a space has
snapped, so the conditions hold wherever a question comes from.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats
from noregret.optimizer.space.parameters import Choice, Parameter, finite
from noregret.optimizer.space.space import SAME, Bools, ParameterSpace

if TYPE_CHECKING:
    pass

LONGEST_CONDITION = 1000
"""Characters that a condition may have. By taste."""

MOST_LISTED = 20_000
"""Settings up to which all are listed to find those that meet the conditions. Not measured."""

MOST_SETTINGS_TRIED = 1 << 17
"""Random settings that are tried at most, in larger spaces. Decision 0206."""

ENOUGH = 512
"""Allowed settings after which no more random ones are tried. Not measured."""

MOST_WORK = 1 << 26
"""Numbers that are computed at most to find settings, by all conditions together: with long ones fewer are tried. Not
measured."""

LEAST_SHARE = 1e-4
"""Part of the settings that must meet the conditions: fewer are not found by trying. Decision 0206."""

HALVINGS = math.ceil(-math.log2(SAME))
"""Steps by which a point outside is moved towards one inside: it ends within `SAME` of the way from the edge."""

Column = Any
"""Values of a part of an expression: an array of (n,) numbers, truths or objects, or one constant."""

ARITHMETIC: dict[type[ast.operator], Callable[[Column, Column], Column]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Pow: np.power,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Column, Column], Column]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS: dict[str, Callable[[Column, Column], Column]] = {"min": np.minimum, "max": np.maximum}

NUMBER, TRUTH, TEXT = "a number", "true or false", "text"
"""Kinds of values; truths count as 0 and 1 in arithmetic."""
Part = tuple[ast.expr, str]
"""A part of an expression, and the kind of its values."""


@dataclass(frozen=True)
class Condition:
    """A condition on parameters, see the grammar above. ValueError, which quotes it, if it is none.

    >>> from noregret import Choice, Int
    >>> condition = Condition("a * 2 <= 8 or kind == 'x'", {"a": Int(1, 9), "kind": Choice(["x", "y"])})
    >>> condition.holds({"a": [4, 5, 5], "kind": ["y", "x", "y"]}, 3).tolist()
    [True, True, False]
    """

    text: Any
    parameters: Mapping[Any, Parameter]

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip() or len(self.text) > LONGEST_CONDITION:
            raise ValueError(
                f"a condition of require must be text like 'a <= b', of at most {LONGEST_CONDITION} characters, got "
                f"{repr(self.text)[:80]}"
            )
        try:
            if self._kind(self._tree) is not TRUTH:
                raise ValueError("must be true or false: compare it with something, as in 'a <= b'")
            if not self.names:
                raise ValueError(f"must name a parameter, one of {list(self.parameters)}: it is always the same")
        except SyntaxError as error:
            raise ValueError(f"require {self.text!r} is not an expression: {error.msg}") from None
        except (RecursionError, MemoryError):
            raise ValueError(f"require {self.text[:80]!r} is nested too deeply: split it into several") from None
        except ValueError as error:
            raise ValueError(f"require {self.text!r} {error}") from None

    @cached_property
    def _tree(self) -> ast.expr:
        tree: ast.expr = ast.parse(self.text.strip(), mode="eval").body
        return tree

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parameters that it names."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        nodes = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called]
        return tuple(dict.fromkeys(node.id for node in nodes))

    @cached_property
    def size(self) -> int:
        """Number of its parts: the work that it takes for one setting."""
        return sum(isinstance(node, ast.expr) for node in ast.walk(self._tree))

    def holds(self, columns: Mapping[str, Sequence[Any]], count: int) -> Bools:
        """Mask of the ``count`` settings that meet it, given the values of each parameter that it names."""
        return self.holds_for(columns_of(self.parameters, {name: columns[name] for name in self.names}), count)

    def holds_for(self, columns: Mapping[str, Column], count: int) -> Bools:
        """As `holds`, of columns that `columns_of` made."""
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(_computed(self._tree, columns), count), dtype=bool)

    def is_met_by(self, params: Mapping[str, Any]) -> bool:
        """Return True if params meet it, or lack a parameter that it names."""
        if any(name not in params for name in self.names):
            return True
        return bool(self.holds({name: [params[name]] for name in self.names}, 1)[0])

    def _kind(self, node: ast.expr) -> str:
        """Kind of the values of a part; ValueError if it is not allowed."""
        match node:
            case ast.Name(id=name):
                if name not in self.parameters:
                    raise ValueError(f"names {name!r}, which is none of the parameters {list(self.parameters)}")
                return _kind_of(self.parameters[name])
            case ast.Constant(value=bool()):
                return TRUTH
            case ast.Constant(value=str()):
                return TEXT
            case ast.Constant(value=number) if finite(number):
                return NUMBER
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._all_of(TRUTH, [operand])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self._all_of(NUMBER, [operand])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                return self._all_of(NUMBER, [left, right])
            case ast.BoolOp(values=values):
                return self._all_of(TRUTH, values)
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in COMPARISONS for op in ops):
                parts = [(part, self._kind(part)) for part in (left, *others)]
                for (first, second), comparison in zip(pairwise(parts), ops, strict=True):
                    self._check_comparable(first, second, comparison)
                return TRUTH
            case ast.Call(func=ast.Name(id="abs"), args=[operand], keywords=[]):
                return self._all_of(NUMBER, [operand])
            case ast.Call(func=ast.Name(id=name), args=[_, _, *_], keywords=[]) if name in FUNCTIONS:
                return self._all_of(NUMBER, node.args)
        raise ValueError(
            "may have names of parameters, numbers, text, + - * / // % **, comparisons, and, or, not, min, max, abs "
            f"and nothing else, got {ast.unparse(node)!r}"
        )

    def _all_of(self, kind: str, nodes: Sequence[ast.expr]) -> str:
        """The kind; ValueError unless all parts are of it."""
        for node in nodes:
            came = self._kind(node)
            if came is not kind and (kind, came) != (NUMBER, TRUTH):
                raise ValueError(f"needs {kind} where it has {ast.unparse(node)!r}, which is {came}")
        return kind

    def _check_comparable(self, one_side: Part, other_side: Part, op: ast.cmpop) -> None:
        (first, one_kind), (second, other_kind) = one_side, other_side
        kinds = one_kind, other_kind
        if TEXT not in kinds:
            return
        if not isinstance(op, ast.Eq | ast.NotEq):
            raise ValueError(f"may compare {ast.unparse(first)!r} and {ast.unparse(second)!r} by == and != only")
        for one, other in ((first, second), (second, first)):
            parameter = self.parameters.get(one.id) if isinstance(one, ast.Name) else None
            if isinstance(parameter, Choice) and isinstance(other, ast.Constant):
                if other.value not in parameter.options:
                    raise ValueError(
                        f"compares {ast.unparse(one)} with {other.value!r}, which is none of its options "
                        f"{list(parameter.options)}"
                    )
                return
        if kinds != (TEXT, TEXT):
            raise ValueError(f"compares {ast.unparse(first)!r}, {kinds[0]}, with {ast.unparse(second)!r}, {kinds[1]}")


def _kind_of(parameter: Parameter) -> str:
    if not isinstance(parameter, Choice):
        return NUMBER
    if all(isinstance(option, bool | np.bool_) for option in parameter.options):
        return TRUTH
    return NUMBER if all(map(finite, parameter.options)) else TEXT


def columns_of(parameters: Mapping[Any, Parameter], values: Mapping[str, Sequence[Any]]) -> dict[str, Column]:
    """Columns that conditions are computed from, of the values of each parameter."""
    return {name: _column(parameters[name], each) for name, each in values.items()}


def _column(parameter: Parameter, values: Sequence[Any]) -> Column:
    kind = _kind_of(parameter)
    if kind is TEXT:
        return np.fromiter(values, dtype=object, count=len(values))
    return np.array(values, dtype=bool if kind is TRUTH else float)


def _computed(node: ast.expr, columns: Mapping[str, Column]) -> Column:
    """Values of a part of an expression whose kinds were checked; nan where a number cannot be computed."""
    match node:
        case ast.Name(id=name):
            return columns[name]
        case ast.Constant(value=value):
            return value if isinstance(value, str | bool) else float(value)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return np.logical_not(_computed(operand, columns))
        case ast.UnaryOp(op=op, operand=operand):
            number = 1.0 * _computed(operand, columns)
            return -number if isinstance(op, ast.USub) else number
        case ast.BinOp(left=left, op=op, right=right):
            result = ARITHMETIC[type(op)](1.0 * _computed(left, columns), 1.0 * _computed(right, columns))
            return np.where(np.isfinite(result), result, np.nan)
        case ast.BoolOp(op=op, values=values):
            joined = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return reduce(joined, [_computed(each, columns) for each in values])
        case ast.Compare(left=left, ops=ops, comparators=others):
            parts = [_computed(each, columns) for each in (left, *others)]
            truths = [_compared(op, *pair) for op, pair in zip(ops, pairwise(parts), strict=True)]
            return reduce(np.logical_and, truths)
        case ast.Call(func=ast.Name(id=name), args=args):
            numbers = [1.0 * _computed(each, columns) for each in args]
            return np.abs(numbers[0]) if name == "abs" else reduce(FUNCTIONS[name], numbers)
    raise AssertionError(ast.unparse(node))


def _compared(op: ast.cmpop, first: Column, second: Column) -> Column:
    """Truth of a comparison: false if one side is nan, in whichever way they are compared."""
    holds = COMPARISONS[type(op)](first, second)
    return holds & (first == first) & (second == second) if isinstance(op, ast.NotEq) else holds


def checked_require(require: Any, parameters: Mapping[Any, Parameter]) -> tuple[Condition, ...]:
    """The conditions on these parameters; ValueError, with the condition at fault, if one makes no sense."""
    if isinstance(require, str) or not isinstance(require, Sequence):
        raise ValueError(f"require must be a list of conditions like ['a <= b'], got {require!r}")
    return tuple(Condition(text, parameters) for text in require)


def violated(conditions: Sequence[Condition], params: Any) -> str | None:
    """Text of the first condition that params violate, None if they meet all."""
    return next((condition.text for condition in conditions if not condition.is_met_by(params)), None)


def none_meets(conditions: Sequence[Condition], each: Sequence[Bools]) -> ValueError:
    """Error that no setting meets all conditions, given which of the tried ones meet each."""
    advice = "change it, or the ranges of its parameters"
    for condition, met in zip(conditions, each, strict=True):
        if not met.any():
            return ValueError(f"no setting meets require {condition.text!r}, of {len(met):,} tried: {advice}")
    texts = " and ".join(repr(condition.text) for condition in conditions)
    return ValueError(f"no setting meets require {texts} together, of {len(each[0]):,} tried: drop one of them")


class _AllowedSettings(NamedTuple):
    """Settings that meet all conditions, (n, d), and the part of all settings that do."""

    points: Floats
    tree: Any
    share: float


@dataclass(frozen=True)
class Restricted(ParameterSpace):
    """Named parameters that meet all conditions of ``require``.

    A point that violates one is snapped to the edge of what is allowed, on the straight way to the nearest allowed
    point that is known. Params of the past that violate one are still params, but none that the space returns.

    >>> from noregret import Float
    >>> space = Restricted({"a": Float(0, 1), "b": Float(0, 1)}, require=("a <= b",))
    >>> points = np.array([[0.2, 0.6], [0.6, 0.2]])
    >>> space.holds(points).tolist(), space.holds(space.snap(points)).tolist()
    ([True, False], [True, True])
    """

    require: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "require", tuple(condition.text for condition in self._conditions))
        self._inside  # noqa: B018  raises where no setting meets the conditions

    @cached_property
    def count(self) -> float:
        """Number of different params; that of all, conditions or not, where they are too many to list."""
        return len(self.everything()) if self._is_listed else self._all.count

    @property
    def share(self) -> float:
        return self._inside.share

    def violated(self, params: Any) -> str | None:
        return violated(self._conditions, params)

    def holds(self, points: Floats) -> Bools:
        return np.asarray(np.logical_and.reduce(self._each(points)))

    def snap(self, points: Floats) -> Floats:
        snapped = self._all.snap(points)
        outside = np.flatnonzero(~self.holds(snapped))
        if outside.size:
            snapped[outside] = self._moved_inside(snapped[outside])
        return snapped

    def everything(self) -> Floats:
        points = self._all.everything()
        return np.asarray(points[self.holds(points)])

    def _each(self, points: Floats) -> list[Bools]:
        """Mask of the (n, d) points that meet each condition."""
        axes, applying = self._axes, self.applying(points)
        named = dict.fromkeys(name for condition in self._conditions for name in condition.names)
        values = {name: axes[name].decode(points[:, self._span(name)]) for name in named}
        columns = columns_of(self.parameters, values)
        absent = {name: ~applying[:, place] for place, name in enumerate(self.parameters) if name in named}
        return [
            reduce(np.logical_or, [absent[name] for name in each.names], each.holds_for(columns, len(points)))
            for each in self._conditions
        ]

    def _moved_inside(self, points: Floats) -> Floats:
        """Last point that meets all conditions, by halving, on the way from the nearest known one to each point."""
        start = self._inside.points[self._inside.tree.query(points)[1]]
        moved, good, bad = start.copy(), np.zeros(len(points)), np.ones(len(points))
        for _ in range(HALVINGS):
            middle = 0.5 * (good + bad)
            tried = self._all.snap(start + middle[:, None] * (points - start))
            holds = self.holds(tried)
            moved[holds] = tried[holds]
            good, bad = np.where(holds, middle, good), np.where(holds, bad, middle)
        return np.asarray(moved)

    @cached_property
    def _conditions(self) -> tuple[Condition, ...]:
        return checked_require(self.require, self.parameters)

    @cached_property
    def _inside(self) -> _AllowedSettings:
        tried, lots, each = 0, [], []
        for points in self._settings():
            each.append(self._each(points))
            lots.append(points[np.logical_and.reduce(each[-1])])
            tried += len(points)
            if sum(map(len, lots)) >= ENOUGH and not self._is_listed:
                break
        inside = np.vstack(lots)
        if not len(inside):
            raise none_meets(self._conditions, [np.concatenate(masks) for masks in zip(*each, strict=True)])
        if not self._is_listed and len(inside) < LEAST_SHARE * tried:
            raise ValueError(
                f"require must leave at least 1 of {1 / LEAST_SHARE:,.0f} settings, got {len(inside)} of {tried:,} "
                f"tried ({', '.join(map(repr, self.require))}): narrow the ranges, or compute one parameter from the "
                "others"
            )
        return _AllowedSettings(inside, sp.cKDTree(inside), len(inside) / tried)

    @cached_property
    def _all(self) -> ParameterSpace:
        """The space without the conditions."""
        return ParameterSpace(self.parameters)

    @property
    def _is_listed(self) -> bool:
        return self._all.count <= MOST_LISTED

    def _settings(self) -> Iterator[Floats]:
        """All settings, or random ones, in blocks of (n, d) points."""
        if self._is_listed:
            yield self._all.everything()
            return
        rng, width = np.random.default_rng(0), len(self.groups)
        block = 4 * ENOUGH
        work = sum(condition.size for condition in self._conditions)
        for _ in range(math.ceil(min(MOST_SETTINGS_TRIED, MOST_WORK / work) / block)):
            yield self._all.snap(rng.random((block, width)))
