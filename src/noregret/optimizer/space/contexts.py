"""Contexts: given with every question and not chosen, and the space of params in a context.

The model is about params in a context, so observations in one context tell about the others. A question is about one
context (`FixedContext`): the coordinates of the context are fixed.

A fidelity is the parameter that says how much one measurement costs and how well it tells about the highest value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer.space.parameters import Float, Int
from noregret.optimizer.space.space import Bools, ParameterSpace, Space, named

FIRST = (2, 0, 4, 1, 3)
"""Order in which the initial design goes through the rungs, so that every part of it is about all of them. By taste."""

RUNGS = len(FIRST)
"""Fidelities, evenly spaced on the parameter's own scale, at which questions are asked and reports are kept: a run
adds at most this many points to the model. In steps of three they span a factor of 81, as successive halving does."""

WARP = 3.0
"""Steepness of the fidelity's coordinate: a step at the lowest fidelity is exp(WARP) times as long as at the highest.
Of 0, 1, 2, 3 and 4 the one that predicts curves best, see decision 0210."""
SPAN = 0.5
"""Coordinate of the highest fidelity: the middle of the cube, as explorers avoid edges. Fits hardly depend on it.
Decision 0210."""


class InContext(NamedTuple):
    """Params, and the context they are for, which the fidelity is part of."""

    params: Any
    context: Any


class SettingInContext(NamedTuple):
    """Params, context and fidelity as a user sees them, None where there are none."""

    params: Any
    context: Any = None
    fidelity: Any = None


@dataclass(frozen=True)
class ContextSpace:
    """All params of a space in all contexts: the coordinates of the params come first."""

    space: Space
    contexts: ParameterSpace

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return *self.space.groups, *(max(self.space.groups) + 1 + group for group in self.contexts.groups)

    @cached_property
    def active_together(self) -> tuple[int, ...]:
        first, second = self.space.active_together, self.contexts.active_together
        return *(number + max(second) for number in first), *(number + max(first) for number in second)

    @property
    def count(self) -> float:
        return self.space.count * self.contexts.count

    @property
    def names(self) -> list[Any]:
        return [*self.space.names, *self.contexts.names]

    @property
    def share(self) -> float:
        return self.space.share

    @cached_property
    def logarithmic(self) -> ContextSpace | None:
        chosen = self.space.logarithmic  # contexts keep their scales
        return None if chosen is None else replace(self, space=chosen)

    def placed(self, points: Floats) -> tuple[Floats, Bools]:
        chosen, given = self._parts(points)
        placed, inside = self.space.placed(chosen)
        return np.hstack([placed, given]), inside

    def violated(self, params: InContext) -> str | None:
        return self.space.violated(params.params)

    def holds(self, points: Floats) -> Bools:
        return self.space.holds(self._parts(points)[0])

    def checked(self, params: InContext) -> InContext:
        return InContext(self.space.checked(params.params), self.contexts.checked(params.context, "context"))

    def key(self, params: InContext) -> Hashable:
        return self.space.key(params.params), self.contexts.key(params.context)

    def encode(self, params: Sequence[InContext]) -> Floats:
        chosen, given = (list(column) for column in zip(*params, strict=True))
        return np.hstack([self.space.encode(chosen), self.contexts.encode(given)])

    def decode(self, points: Floats) -> list[InContext]:
        chosen, given = self._parts(points)
        return list(map(InContext, self.space.decode(chosen), self.contexts.decode(given)))

    def snap(self, points: Floats) -> Floats:
        chosen, given = self._parts(points)
        return np.hstack([self.space.snap(chosen), self.contexts.snap(given)])

    def applying(self, points: Floats) -> Bools:
        chosen, given = self._parts(points)
        return np.hstack([self.space.applying(chosen), self.contexts.applying(given)])

    def everything(self) -> Floats:
        given = self.contexts.everything()
        return np.vstack([np.hstack([np.tile(row, (len(given), 1)), given]) for row in self.space.everything()])

    def _parts(self, points: Floats) -> tuple[Floats, Floats]:
        width = len(self.space.groups)
        return points[:, :width], points[:, width:]


@dataclass(frozen=True)
class FixedContext(ContextSpace):
    """All params in one context."""

    context: dict[str, Any]

    @property
    def count(self) -> float:
        return self.space.count

    def decode(self, points: Floats) -> list[InContext]:
        return [InContext(params, self.context) for params in self.space.decode(self._parts(points)[0])]

    def snap(self, points: Floats) -> Floats:
        return self._here(self.space.snap(self._parts(points)[0]))

    def everything(self) -> Floats:
        return self._here(self.space.everything())

    def holds(self, points: Floats) -> Bools:
        """Mask of the (n, d) points that are in this context and allowed, (n,)."""
        is_here = (self._parts(points)[1] == self._place).all(axis=1)
        return np.asarray(is_here & super().holds(points))

    @cached_property
    def _place(self) -> Floats:
        """The coordinates of the context, (1, width)."""
        return self.contexts.encode([self.context])

    def _here(self, chosen: Floats) -> Floats:
        return np.hstack([chosen, np.repeat(self._place, len(chosen), axis=0)])


@dataclass(frozen=True)
class LevelledOff(ParameterSpace):
    """Contexts, the last of which is a fidelity: its coordinate u becomes a (1 - exp(-c u)) / (1 - exp(-c)).

    c is `WARP` and a is `SPAN`.
    Curves level off, so equal steps matter less and less towards the highest fidelity; with this coordinate a
    stationary kernel says so.
    """

    def encode(self, params: Sequence[Any]) -> Floats:
        return _bent(super().encode(params))

    def decode(self, points: Floats) -> list[dict[str, Any]]:
        return super().decode(_straight(points))

    def snap(self, points: Floats) -> Floats:
        return _bent(super().snap(_straight(points)))

    def everything(self) -> Floats:
        return _bent(super().everything())


def _bent(points: Floats) -> Floats:
    return np.hstack([points[:, :-1], SPAN * np.expm1(-WARP * points[:, -1:]) / np.expm1(-WARP)])


def _straight(points: Floats) -> Floats:
    return np.hstack([points[:, :-1], -np.log1p(np.minimum(points[:, -1:] / SPAN, 1.0) * np.expm1(-WARP)) / WARP])


@dataclass(frozen=True)
class Fidelity:
    """One numeric parameter, such as the number of epochs. A measurement costs in proportion to its value."""

    name: str
    parameter: Float | Int

    @cached_property
    def product(self) -> ParameterSpace:
        """Space of this one parameter."""
        return ParameterSpace({self.name: self.parameter})

    @property
    def highest(self) -> dict[str, Any]:
        """The fidelity that recommendations are about."""
        return {self.name: self.parameter.high}

    @cached_property
    def rungs(self) -> list[dict[str, Any]]:
        """At most `RUNGS` fidelities from the lowest to the highest, ascending."""
        settings = self.product.decode(np.linspace(0.0, 1.0, RUNGS)[:, None])
        return [{self.name: value} for value in sorted({setting[self.name] for setting in settings})]

    def rung(self, fidelity: Mapping[str, Any]) -> int:
        """Number of rungs that are not above this fidelity."""
        return sum(rung[self.name] <= fidelity[self.name] for rung in self.rungs)

    def cost(self, fidelity: Mapping[str, Any]) -> float:
        """Cost of a measurement, in units of one at the highest fidelity."""
        return float(fidelity[self.name] / self.parameter.high)

    def checked(self, fidelity: Any, what: str = "fidelity") -> dict[str, Any]:
        """A fidelity as the optimizer returns it; ValueError if it is none."""
        return self.product.checked(fidelity, what)


@dataclass(frozen=True)
class Contexts:
    """Params and contexts as a user gives them, and the one space that both are part of.

    A fidelity is a further context, which the optimizer chooses itself; everything is about the highest.

    Parameters
    ----------
    space : Space
    contexts : ParameterSpace or None
        None where there is no context: then the space is that of the params alone.
    fidelity : Fidelity, optional
    """

    space: Space
    contexts: ParameterSpace | None
    fidelity: Fidelity | None = None

    @cached_property
    def whole(self) -> Space:
        """Space that the model is about."""
        return self.space if self._given is None else ContextSpace(self.space, self._given)

    @cached_property
    def _given(self) -> ParameterSpace | None:
        """Contexts, and fidelity."""
        if self.fidelity is None:
            return self.contexts
        return LevelledOff({**(self.contexts.parameters if self.contexts else {}), **self.fidelity.product.parameters})

    def within(self, context: Any, fidelity: Any = None) -> Space:
        """Part of it that a question in this context is about; ValueError if the context is missing or bad.

        At the highest fidelity, or at this checked one, if there is a fidelity.
        """
        if self.contexts is None and context is not None:
            raise ValueError(
                f"there must be no context, as the optimizer was made without one, got {context!r}: leave it out, "
                "or make Optimizer(..., context={...})"
            )
        if self.contexts is not None and context is None:
            raise ValueError(f"context must have a value for each of {self.contexts.names}, got none: pass context=")
        if self._given is None:
            return self.space
        context = {} if self.contexts is None else self.contexts.checked(context, "context")
        if self.fidelity is not None:
            context |= self.fidelity.highest if fidelity is None else fidelity
        return FixedContext(self.space, self._given, context)

    def checked(self, params: Any, context: Any, fidelity: Any = None) -> Any:
        """Params of the whole space; ValueError if params, context or fidelity are bad."""
        part = self.within(context, self.checked_fidelity(fidelity))
        checked = self.space.checked(params)
        return InContext(checked, part.context) if isinstance(part, FixedContext) else checked

    def checked_fidelity(self, fidelity: Any) -> Any:
        """A fidelity, None if it is not given; ValueError if it is bad, or there is none."""
        if fidelity is None:
            return None
        if self.fidelity is None:
            raise ValueError(
                f"there must be no fidelity, as the optimizer was made without one, got {fidelity!r}: leave it out, or "
                "make Optimizer(..., fidelity={...})"
            )
        return self.fidelity.checked(fidelity)

    def at_fidelity(self, params: Any, fidelity: Mapping[str, Any]) -> InContext:
        """Params of the whole space, at this checked fidelity instead of theirs."""
        return InContext(params.params, params.context | fidelity)

    def without_context(self, params: Any) -> SettingInContext:
        """The params that a user sees, their context and fidelity, as copies that may be changed."""
        if not isinstance(params, InContext):
            return SettingInContext(self.space.checked(params))
        context, fidelity = dict(params.context), None
        if self.fidelity is not None:
            fidelity = {self.fidelity.name: context.pop(self.fidelity.name)}
        return SettingInContext(self.space.checked(params.params), None if self.contexts is None else context, fidelity)


def with_context(params: Any, space: Space) -> Any:
    """Params that a user gives, as params of a part of the whole space: in its context, if it has one."""
    return InContext(params, space.context) if isinstance(space, FixedContext) else params


def is_setting(space: Space, params: Any, setting: Any) -> bool:
    """Return True if params of the whole space are this setting, in whatever context."""
    if isinstance(space, ContextSpace):
        return space.space.key(params.params) == space.space.key(setting)
    return space.key(params) == space.key(setting)


def checked_contexts(space: Space, context: Any, fidelity: Any = None) -> Contexts:
    """Contexts of an optimizer; ValueError if they make no sense."""
    given = None
    if context is not None:
        if not isinstance(context, Mapping) or not context:
            raise ValueError(
                f"context must be a dict of Float, Int and Choice with at least one entry, got {context!r}"
            )
        try:
            given = named(context)
        except ValueError as error:
            raise ValueError(f"context must be a dict of Float, Int and Choice: {error}") from None
    return Contexts(space, given, checked_fidelity(fidelity, [*space.names, *(context or ())]))


def checked_fidelity(given: Any, taken: list[Any]) -> Fidelity | None:
    """Fidelity from ``{"epochs": Int(1, 81)}``; ValueError if it is none, or has one of the ``taken`` names."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"fidelity must be a dict with one Int or Float, like {{'epochs': Int(1, 81)}}, got {given!r}")
    name, parameter = next(iter(given.items()))
    if not isinstance(name, str) or name in taken:
        raise ValueError(f"the fidelity's name must be text that no parameter or context has, got {name!r}: rename it")
    if not isinstance(parameter, Int | Float) or parameter.when:
        raise ValueError(f"fidelity {name!r} must be an Int or Float without a condition, got {parameter!r}")
    if parameter.low <= 0:
        raise ValueError(
            f"fidelity {name!r} must begin above 0, as a measurement costs in proportion to it, got {parameter!r}"
        )
    return Fidelity(name, parameter)
