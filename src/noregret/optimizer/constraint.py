"""Constraint: a number that must stay on one side of a bound, and the numbers that a user tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from noregret.optimizer.checking import LARGEST, checked_value
from noregret.optimizer.history import UNKNOWN
from noregret.optimizer.space.parameters import finite

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


def checked_constraints(given: Any) -> Constraints:
    """The constraints by name from ``{"memory": ("<=", 512)}``; ValueError if they are none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"constraints must be a dict like {{'memory': ('<=', 512)}}, got {given!r}")
    return {_checked_name(name): _checked_constraint(name, pair) for name, pair in given.items()}


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"a constraint's name must be text, got {name!r}")
    return name


def _checked_constraint(name: str, pair: Any) -> Constraint:
    if isinstance(pair, Constraint):
        return pair
    if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] not in SIGNS:
        raise ValueError(f"constraint {name!r} must be ('<=', bound) or ('>=', bound), got {pair!r}")
    bound = pair[1]
    if isinstance(bound, bool) or not finite(bound):
        raise ValueError(f"the bound of constraint {name!r} must be a finite number, got {bound!r}")
    return Constraint(pair[0], float(bound))


def checked_numbers(constraints: Constraints, told: Any) -> tuple[float, ...]:
    """What was told of each constraint, in their order, UNKNOWN for None; ValueError unless each is named."""
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
    """The number that was told of a constraint, as a float; ValueError unless it is a finite number."""
    try:
        return min(max(checked_value(number), -LARGEST), LARGEST)
    except ValueError:
        raise ValueError(
            f"constraint {name!r} must be a finite number, got {number!r}: tell None if it was not measured"
        ) from None
