"""Problems: one description for all doors.

An option of a problem is a field of `ProblemDescription`, an argument of `Optimizer`, and an entry of `Options`. Study
files, the service, `connect`, `minimize`, stores and pages get it from here. It needs no package but NumPy: pydantic
reads the types, where it is installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from noregret.optimizer.checking import (
    LONGEST_HALF_LIFE,
    Check,
    check_apart,
    checked_baseline,
    checked_drift,
    checked_safe,
    without_name,
)
from noregret.optimizer.measures import Constraint, Goal, Measures, checked_constraints, checked_possible
from noregret.optimizer.space.contexts import Contexts, Fidelity, checked_contexts, checked_fidelity
from noregret.optimizer.space.parameters import Choice, Float, Int
from noregret.optimizer.space.space import Space
from noregret.optimizer.space.table import as_space
from noregret.optimizer.trial import VALUE

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = Mapping[str, Float | Int | Choice]
HalfLife = Annotated[
    float | Literal["auto"],
    Check(
        without_name("drift", checked_drift),
        {
            "anyOf": [
                {"type": "number", "minimum": 1.0, "maximum": LONGEST_HALF_LIFE},
                {"type": "string", "const": "auto"},
            ]
        },
    ),
]


class BadOption(ValueError):
    """An option of a problem is bad."""

    def __init__(self, option: str, error: ValueError) -> None:
        super().__init__(str(error))
        self.option = option


@contextmanager
def option(name: str) -> Iterator[None]:
    """Raise a ValueError of the block as BadOption."""
    try:
        yield
    except ValueError as error:
        raise BadOption(name, error) from None


class Options(TypedDict, total=False):
    """Options that are keywords of `minimize` and of `connect`; `ProblemDescription` describes them."""

    baseline: Any
    constraints: Any
    require: Any
    safe: Any
    goals: Any
    fidelity: Any
    drift: Any
    possible: Any


@dataclass(frozen=True, kw_only=True)
class ProblemDescription:
    """Description of a problem: the best params of a space are wanted, for one goal or several.

    Text beside a type describes the option in forms and schemas.

    >>> problem = ProblemDescription(space={"x": Float(0, 1)}, constraints={"memory": ("<=", 512)})
    >>> problem.for_optimizer()["goal"], list(problem.measures)
    ('minimize', ['cost', 'memory', 'value'])
    """

    space: Annotated[Any, "Parameters by name"]
    goal: Annotated[Goal, "Whether small or large results are wanted"] = "minimize"
    baseline: Annotated[Any, "The settings of today: asked for first, compared with"] = None
    context: Annotated[Parameters | None, "What is given, not chosen: each ask names its values"] = None
    drift: Annotated[HalfLife | None, "Half-life of observations in evaluations, if the best setting changes"] = None
    constraints: Annotated[
        Mapping[str, tuple[str, float] | Constraint], "Limits on further numbers that are measured, by name"
    ] = field(default_factory=dict)
    require: Annotated[Sequence[str], "At most 50 conditions on params, such as threads * batch <= 4096"] = ()
    safe: Annotated[float | dict[str, float] | None, "Probability with which each trial must meet all constraints"] = (
        None
    )
    fidelity: Annotated[
        Mapping[str, Float | Int] | None, "A parameter that makes trials cheaper and less exact where it is low"
    ] = None
    goals: Annotated[Mapping[str, Goal], "Several objectives by name, in place of goal"] = field(default_factory=dict)
    possible: Annotated[
        Any, "Least and largest value there can be, by objective if there are several; null for no end"
    ] = None
    tracked: Mapping[str, str] = field(default_factory=dict)
    """Units of further numbers, by name, that are kept and shown, and are no part of any decision."""

    @property
    def options(self) -> dict[str, Any]:
        """All options by name, as another problem takes them."""
        return {slot.name: getattr(self, slot.name) for slot in fields(ProblemDescription)}

    def for_optimizer(self) -> dict[str, Any]:
        """Arguments of an `Optimizer`."""
        options = self.options | {"goals": self.goals or None, "possible": self.value_range}
        del options["tracked"]
        return options | ({"goal": None} if self.goals else {})

    @property
    def value_range(self) -> Any:
        """Least and largest value that there can be, as ``possible``."""
        return self.possible

    @cached_property
    def settings(self) -> Space:
        """The space as an Optimizer has it."""
        return as_space(self.space, self.require)

    @cached_property
    def contexts(self) -> Contexts:
        """Params and contexts as an Optimizer has them, without a fidelity."""
        return checked_contexts(self.settings, self.context)

    @cached_property
    def levels(self) -> Fidelity | None:
        """The fidelity as an Optimizer has it, None if there is none."""
        names = self.space if isinstance(self.space, Mapping) else self.settings.names
        return checked_fidelity(self.fidelity, [*names, *(self.context or ())])

    @cached_property
    def measures(self) -> Measures:
        """The names of the numbers of a trial, and their roles."""
        goals = self.goals or {VALUE: self.goal}
        ranges = checked_possible(self.value_range, dict(self.goals) or None)
        return Measures(goals, checked_constraints(self.constraints), ranges, self.tracked)

    def check_apart(self) -> None:
        """Raise ValueError if two options are given that do not go together."""
        check_apart(fidelity=self.fidelity, drift=self.drift, safe=self.safe)

    def checked(self) -> ProblemDescription:
        """The problem as an Optimizer has it; BadOption, with the first option that is bad, if it takes none such.

        Checks of conditions may take a second.
        """
        if self.require:
            with option("space"):
                as_space(self.space)
        with option("require" if self.require else "space"):
            space = self.settings
        with option("constraints"):
            constraints = checked_constraints(self.constraints)
        with option("drift"):
            drift = checked_drift(self.drift)
        with option("safe"):
            safe = checked_safe(self.safe, constraints, self.baseline, drift)
        with option("context"):
            self.contexts  # noqa: B018
        with option("fidelity"):
            self.levels  # noqa: B018
        with option("fidelity" if self.fidelity else "safe"):
            self.check_apart()
        with option("baseline"):
            baseline = None if self.baseline is None else checked_baseline(space, self.baseline)
        with option("possible"):
            self.measures  # noqa: B018
        description = replace(self, baseline=baseline, constraints=constraints, drift=drift, safe=safe)
        vars(description).update((name, vars(self)[name]) for name in ("settings", "contexts", "levels", "measures"))
        return description


def problem_of(optimizer: Any, space: Any) -> ProblemDescription:
    """Problem of an `Optimizer`, with its space as it is given."""
    options = {name: getattr(optimizer, name) for name in Options.__annotations__}
    options |= {"goals": optimizer.goals or {}, "goal": optimizer.goal or "minimize", "context": optimizer.context}
    return ProblemDescription(**options | {"space": space})


def takes_options(function: Function) -> Function:
    """The function, with `Options` in its signature in place of ``**options``."""
    given = inspect.signature(function)
    own = [parameter for parameter in given.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, kind, default=None) for name in Options.__annotations__]
    function.__signature__ = given.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


def check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError if a function with `Options` got another keyword."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
