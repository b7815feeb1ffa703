"""Checking: what a user gives, or an error that says what must hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args

from noregret.optimizer.measures import Constraints
from noregret.optimizer.space.parameters import finite
from noregret.optimizer.space.space import Space

T = TypeVar("T")
StopRule = Literal["model", "certificate"]

UNKNOWN = float("nan")
"""Stands for an unknown noise, and for the value of a failure."""

INCOMPATIBLE = {
    "drift": "runs of different length are not comparable in time",
    "safe": "a cheaper run may break a constraint that the whole one meets, and nothing known beforehand says whether",
}
"""Arguments of an Optimizer that do not go together with a fidelity, and the reason."""


def check_apart(**given: Any) -> None:
    """Raise ValueError if there are a fidelity and drift, or a fidelity and safe."""
    clash = next((name for name in INCOMPATIBLE if given["fidelity"] and given[name]), None)
    if clash:
        raise ValueError(f"there may be fidelity or {clash}, not both: {INCOMPATIBLE[clash]}; drop one of the two")


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


LONGEST_HALF_LIFE = 10_000.0
"""Longest half-life that can be given, in answers: nothing as old as that is kept."""

Drift = float | Literal["auto"] | None
"""A half-life in answers, "auto" if it is to be found, None if f stays."""


def checked_drift(drift: Any) -> Drift:
    """None, "auto" or a half-life in answers; ValueError if it is none of these."""
    if drift is None:
        return None
    if isinstance(drift, str) and drift == "auto":
        return "auto"
    if finite(drift) and 1 <= drift <= LONGEST_HALF_LIFE:
        return float(drift)
    raise ValueError(
        "drift must be 'auto' or a half-life, which must be a number of evaluations "
        f"from 1 to {LONGEST_HALF_LIFE:g}, got {drift!r}: leave it out if nothing changes, or let 'auto' find out"
    )


@dataclass(frozen=True, eq=False)
class Check(Generic[T]):
    """Part of an annotated type: the check of a given value, and the JSON Schema of what may be given.

    Plain functions and dicts, so that a description needs no further package. pydantic carries them out.
    """

    check: Callable[[Any], T]
    """Returns the value as it is used; ValueError if it is bad."""
    schema: Mapping[str, Any] | None = None
    """By default that of the type."""

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic import PlainValidator

        given = kind if self.schema is None else Any
        return PlainValidator(self.check, json_schema_input_type=given).__get_pydantic_core_schema__(kind, handler)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return handler(schema) if self.schema is None else dict(self.schema)


def without_name(name: str, check: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a check of an argument, whose errors begin with its name, as one of values that are named elsewhere."""

    def checked(value: Any) -> T:
        try:
            return check(value)
        except ValueError as error:
            raise ValueError(str(error).removeprefix(f"{name} ")) from None

    return checked


Safe = float | dict[str, float]
"""Probability that a question meets all constraints, or that of each constraint that questions must meet."""


def checked_safe(safe: Any, constraints: Constraints, baseline: Any, drift: Any) -> Safe | None:
    """Probabilities of safe questions; ValueError unless there is something to be safe about, and a safe start."""
    if safe is None:
        return None
    if not constraints:
        raise ValueError("safe needs constraints that questions must meet: add constraints")
    unknown = [name for name in safe if name not in constraints] if isinstance(safe, Mapping) else []
    if unknown or safe == {}:
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
