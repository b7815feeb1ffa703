"""Checking: what a user gives, or an error that says what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast, get_args

import numpy as np

from noregret.optimizer.space.parameters import finite
from noregret.optimizer.space.space import Space

Goal = Literal["minimize", "maximize"]
StopRule = Literal["model", "certificate"]
Bound = Literal["at_least", "at_most"]
"""Direction in which a value lies beyond a bound."""

UNKNOWN = float("nan")
"""Stands for an unknown noise, and for the value of a failure."""

LARGEST = 1e300
"""Larger values are taken for this one, so that differences of values are finite."""


def checked_goal(goal: Any) -> Goal:
    """The goal; ValueError if it is none."""
    if goal not in get_args(Goal):
        raise ValueError(f"goal must be 'minimize' or 'maximize', got {goal!r}")
    return cast(Goal, goal)


Goals = dict[str, Goal]
Possible = dict[str, tuple[float, float]]
"""Goal of each objective by its name, where there are several."""


APART = {"fidelity": ("drift", "goals", "safe"), "safe": ("goals",)}
"""Arguments of an Optimizer that do not go together yet."""


def check_apart(**given: Any) -> None:
    """Raise ValueError if two of drift, fidelity, goals and safe are given that do not go together."""
    for name, others in APART.items():
        clash = next((other for other in others if given[name] and given[other]), None)
        if clash:
            raise ValueError(f"there may be {name} or {clash}, not both: drop one of the two")


def checked_goals(goal: Any, goals: Any) -> Goals | None:
    """The goals by objective, None for one objective; ValueError if they make no sense."""
    if goals is None:
        return None
    if goal is not None:
        raise ValueError(f"goal is for one objective and goals for several, got {goal!r} and {goals!r}: give one")
    if not isinstance(goals, Mapping) or len(goals) < 2 or not all(isinstance(name, str) and name for name in goals):
        raise ValueError(
            "goals must be a dict with two objectives or more like {'latency': 'minimize', 'cost': 'minimize'}, got "
            f"{goals!r}: use goal= for one objective"
        )
    for name, each in goals.items():
        if each not in get_args(Goal):
            raise ValueError(f"the goal of objective {name!r} must be 'minimize' or 'maximize', got {each!r}")
    return dict(goals)


def checked_possible(possible: Any, goals: Goals | None) -> Possible:
    """Range that values can have, of each objective by name if there are several; ValueError if it is none."""
    if goals:
        given = {} if possible is None else possible
        if not isinstance(given, Mapping):
            raise ValueError(f"possible must be a dict with the range of some of {list(goals)}, got {possible!r}")
        check_objectives(goals, given)
        return {name: _checked_range(given.get(name)) for name in goals}
    return {"": _checked_range(possible)}


def _checked_range(given: Any) -> tuple[float, float]:
    if given is None:
        return -math.inf, math.inf
    try:
        low, high = given
        low, high = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise ValueError(
            f"possible must be the least and the largest value there can be, like (0, 1) or (0, None), got {given!r}"
        )
    return low, high


def check_possible(value: float, possible: tuple[float, float]) -> None:
    """Raise ValueError if a value is not possible."""
    if not possible[0] <= value <= possible[1] and not math.isnan(value):
        low, high = possible
        raise ValueError(f"value must be from {low:g} to {high:g}, as possible={possible} says, got {value:g}")


def checked_values(goals: Goals, told: Any) -> tuple[float, ...]:
    """Value of each objective in their order, UNKNOWN for what is missing; ValueError unless one is there."""
    if not isinstance(told, Mapping):
        raise ValueError(f"value must be a dict with a number for each of {list(goals)}, got {told!r}")
    check_objectives(goals, told)
    values = tuple(UNKNOWN if told.get(name) is None else _checked_objective(name, told[name]) for name in goals)
    if all(value != value for value in values):
        raise ValueError(f"value must have a number for at least one of {list(goals)}: fail(trial) if there is none")
    return values


def check_objectives(goals: Goals, given: Mapping[Any, Any]) -> None:
    """Raise ValueError if a name is that of no objective."""
    unknown = [name for name in given if name not in goals]
    if unknown:
        raise ValueError(f"unknown objective {unknown[0]!r}: this optimizer has {list(goals)}")


def _checked_objective(name: str, value: Any) -> float:
    try:
        return min(max(checked_value(value), -LARGEST), LARGEST)
    except ValueError:
        raise ValueError(
            f"objective {name!r} must be a finite number, got {value!r}: leave it out if it was not measured"
        ) from None


def checked_value(value: Any) -> float:
    """A reported value as a float; ValueError unless it is a finite number."""
    value = _unwrapped(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"value must be a number, got {value!r}")
    if not finite(value):
        raise ValueError(f"value is {value}: pass a finite number, or fail(trial) if there is none")
    return float(value)


def checked_bound(value: Any, at_least: Any, at_most: Any) -> tuple[Any, Bound | None]:
    """The value, or a bound on it and its direction; ValueError unless exactly one of the three is given."""
    bounds: dict[Bound, Any] = {"at_least": at_least, "at_most": at_most}
    given = {name: its for name, its in bounds.items() if its is not None}
    if len(given) + (value is not None) > 1:
        named = [f"value={value!r}"] * (value is not None) + [f"{name}={its!r}" for name, its in given.items()]
        raise ValueError(f"exactly one of value, at_least and at_most must be given, got {', '.join(named)}")
    return next(((its, name) for name, its in given.items()), (value, None))


def checked_noise(noise: Any) -> float:
    """A given standard deviation, UNKNOWN for None; ValueError unless it is above 0."""
    if noise is None:
        return UNKNOWN
    noise = _unwrapped(noise)
    if not finite(noise) or noise <= 0:
        raise ValueError(
            f"noise must be the value's standard deviation, above 0, got {noise!r}: leave it out if unknown"
        )
    return float(noise)


def checked_cost(cost: Any, name: str = "cost") -> float:
    """A given cost or budget of cost, UNKNOWN for None; ValueError unless it is a finite number above 0."""
    if cost is None:
        return UNKNOWN
    cost = _unwrapped(cost)
    if isinstance(cost, bool) or not finite(cost) or cost <= 0:
        raise ValueError(f"{name} must be a finite number above 0, got {cost!r}: leave it out if unknown")
    return float(cost)


def checked_tolerance(within: Any) -> Callable[[float], float]:
    """A tolerance given as a number, or as a part such as "2%" of the best estimate; from that estimate, the number."""
    is_part = isinstance(within, str) and within.strip().endswith("%")
    number = _number(within.strip()[:-1]) if is_part else _number(within, but=str)
    if not 0 < number < math.inf:
        raise ValueError(f"within must be a number above 0, or a part of the best estimate like '2%', got {within!r}")
    return lambda estimate: abs(estimate) * number / 100 if is_part else number


def checked_confidence(confidence: Any) -> float:
    """The confidence as a float; ValueError unless it is between 0 and 1."""
    number = _number(confidence, but=str)
    if not 0 < number < 1:
        raise ValueError(f"confidence must be a probability between 0 and 1, like 0.95, got {confidence!r}")
    return number


def checked_stop_rule(by: Any) -> StopRule:
    """The rule that `Optimizer.done` follows; ValueError if it is none."""
    if by not in get_args(StopRule):
        raise ValueError(f"by must be 'model' or 'certificate', got {by!r}")
    return cast(StopRule, by)


def _number(given: Any, but: type = bool) -> float:
    """Float of what is given, nan if it is none or a bool or of the type ``but``."""
    try:
        return math.nan if isinstance(given, bool | but) else float(given)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _unwrapped(value: Any) -> Any:
    """The number in an array of no dimensions."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


SIGNS = {"<=": -1.0, ">=": 1.0}
"""The factor on a constraint's numbers that makes the larger ones the better ones."""


@dataclass(frozen=True)
class Constraint:
    """A number must be at most (``"<="``) or at least (``">="``) this bound."""

    operator: str
    bound: float

    @property
    def sign(self) -> float:
        """The factor that makes larger numbers better."""
        return SIGNS[self.operator]

    @property
    def least(self) -> float:
        """The least number that meets the constraint, once larger ones are better."""
        return self.sign * self.bound


Constraints = dict[str, Constraint]


def checked_constraints(given: Any, kind: str = "constraint") -> Constraints:
    """The constraints by name from ``{"memory": ("<=", 512)}``; ValueError, about this kind, if they are none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"constraints must be a dict like {{'memory': ('<=', 512)}}, got {given!r}")
    return {name: _checked_constraint(name, pair, kind) for name, pair in given.items()}


def _checked_constraint(name: Any, pair: Any, kind: str) -> Constraint:
    if not isinstance(name, str) or not name:
        raise ValueError(f"a constraint's name must be text, got {name!r}")
    if isinstance(pair, Constraint):
        pair = pair.operator, pair.bound
    if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] not in SIGNS:
        raise ValueError(f"{kind} {name!r} must be ('<=', bound) or ('>=', bound), got {pair!r}")
    bound = pair[1]
    if isinstance(bound, bool) or not finite(bound):
        raise ValueError(f"the bound of {kind} {name!r} must be a finite number, got {bound!r}")
    return Constraint(pair[0], float(bound))


def checked_numbers(constraints: Constraints, told: Any) -> tuple[float, ...]:
    """Number of each constraint, in their order, UNKNOWN for None; ValueError unless each is named."""
    told = {} if told is None else told
    if not isinstance(told, Mapping):
        raise ValueError(f"constraints must be a dict with a number for each of {list(constraints)}, got {told!r}")
    unknown = [name for name in told if name not in constraints]
    if unknown:
        names = f"this optimizer has {list(constraints)}" if constraints else "this optimizer has none"
        raise ValueError(f"unknown constraint {unknown[0]!r}: {names}")
    missing = [name for name in constraints if name not in told]
    if missing:
        raise ValueError(
            f"constraints must have a number for each of {list(constraints)}: {missing[0]!r} is missing; tell None for "
            "what was not measured"
        )
    return tuple(UNKNOWN if told[name] is None else checked_reading(name, told[name]) for name in constraints)


def checked_reading(name: str, number: Any) -> float:
    """The reported number of a constraint as a float; ValueError unless it is a finite number."""
    try:
        return min(max(checked_value(number), -LARGEST), LARGEST)
    except ValueError:
        raise ValueError(
            f"constraint {name!r} must be a finite number, got {number!r}: tell None if it was not measured"
        ) from None


Safe = float | dict[str, float]
"""Probability that a question meets all constraints, or that of each constraint that questions must meet."""


def checked_safe(safe: Any, constraints: Constraints, baseline: Any, drift: Any) -> Safe | None:
    """Probabilities of safe questions; ValueError unless there is something to be safe about, and a safe start."""
    if safe is None:
        return None
    if not constraints:
        raise ValueError("safe needs constraints that questions must meet: add constraints")
    unknown = [name for name in safe if name not in constraints] if isinstance(safe, Mapping) else []
    if unknown or (isinstance(safe, Mapping) and not safe):
        raise ValueError(f"safe must name some of the constraints {list(constraints)}, got {unknown or safe!r}")
    if baseline is None:
        raise ValueError("safe needs a setting to start from that meets the constraints: add a baseline")
    if drift is not None:
        raise ValueError("safe needs constraints that do not change: leave out drift, or safe")
    if isinstance(safe, Mapping):
        return {name: checked_safe_level(each) for name, each in safe.items()}
    return checked_safe_level(safe)


def checked_safe_level(safe: Any) -> float:
    """The probability of safe questions as a float; ValueError if it is none."""
    number = _number(safe, but=str)
    if not 0.5 <= number < 1:
        raise ValueError(f"safe must be a probability from 0.5 to below 1, like 0.99, got {safe!r}")
    return number


def safe_risks(safe: Safe | None, constraints: Constraints) -> list[float | None]:
    """Probability with which a question may break each constraint; None for those that it need not meet."""
    if isinstance(safe, dict):
        return [1 - safe[name] if name in safe else None for name in constraints]
    return [None if safe is None else (1 - safe) / len(constraints) for _ in constraints]


def checked_baseline(space: Space, baseline: Any) -> Any:
    """The baseline as params of the space; ValueError if it is none."""
    try:
        checked = space.checked(baseline)
    except ValueError as error:
        raise ValueError(f"baseline must be params of the space: {error}") from None
    broken = space.violated(checked)
    if broken is not None:
        raise ValueError(f"baseline must meet require, got {checked!r}, which violates {broken!r}: change one of them")
    return checked
