"""Measures: what a problem says of the names of its readings, and the readings of what a user tells.

A measure is an objective, a constraint, the cost, or tracked: kept, listed and exported, and no part of any decision.
Every name that a problem does not know is tracked. The measure of a problem with one objective is called ``value``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from noregret.optimizer.space.parameters import checked_number, finite
from noregret.optimizer.trial import COST, VALUE, Bound, Reading, Readings, Trial, dump_readings, finite_number

Goal = Literal["minimize", "maximize"]
Goals = dict[str, Goal]
"""Goal of each objective by its name, where there are several."""
Role = Literal["objective", "constraint", "cost", "tracked"]

LARGEST_VALUE = 1e300
"""Larger values are taken for this one, so that differences of values are finite. Floats end at 1.8e308."""
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

    def is_broken_by(self, number: float | None) -> bool:
        """Return True if a number breaks the bound; None, for a missing number, does not."""
        return number is not None and self.sign * number < self.least


Constraints = dict[str, Constraint]


@dataclass(frozen=True)
class Measure:
    """Role of a name in a problem.

    The name is as the problem has it: ``value`` for the only objective. An objective has a goal, a constraint its
    limit; ``possible`` is the least and largest value that there can be.
    """

    name: str
    role: Role
    goal: Goal | None = None
    limit: Constraint | None = None
    possible: tuple[float, float] = (-math.inf, math.inf)
    unit: str = ""

    @property
    def sign(self) -> float:
        """The factor that makes larger numbers better."""
        return self.limit.sign if self.limit else -1.0 if self.goal == "minimize" else 1.0


class BadReading(ValueError):
    """A given number is bad; ``place`` is the argument, and the name inside of it, that is at fault."""

    def __init__(self, message: str, *place: str) -> None:
        super().__init__(message)
        self.place = place


class Measures(Mapping[str, Measure]):
    """Measures of a problem by the names that trials have for them, which are those of the problem.

    Where an objective has the name of a constraint or of the cost, these are called ``constraint.NAME`` and
    ``trial.cost``.
    """

    def __init__(
        self,
        goals: Mapping[str, Goal],
        constraints: Mapping[str, Constraint] | None = None,
        possible: Mapping[str, tuple[float, float]] | None = None,
        tracked: Mapping[str, str] | None = None,
    ) -> None:
        """Take the goals by objective, ranges of values by objective, and tracked measures with their units."""
        everything, possible = (-math.inf, math.inf), possible or {}
        self.objectives = {
            name: Measure(name, "objective", goal, possible=possible.get(name, everything))
            for name, goal in goals.items()
        }
        self.constraints = {
            f"constraint.{name}" if name in goals else name: Measure(name, "constraint", limit=limit)
            for name, limit in (constraints or {}).items()
        }
        self.cost = COST if COST not in {**self.objectives, **self.constraints} else f"trial.{COST}"
        others = {self.cost: Measure(COST, "cost")}
        others |= {name: Measure(name, "tracked", unit=unit) for name, unit in (tracked or {}).items()}
        self._all = {**others, **self.constraints, **self.objectives}

    def __getitem__(self, name: str) -> Measure:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def is_single(self) -> bool:
        """True if there is one objective, called ``value``."""
        return VALUE in self.objectives and len(self.objectives) == 1

    @property
    def limited(self) -> dict[str, str]:
        """The name that trials have for each constraint, by its own."""
        return {measure.name: name for name, measure in self.constraints.items()}

    def runs(self, trial: Trial) -> int:
        """Number of runs of a trial: those that measured an objective, at least 1."""
        return max([len(trial.runs(name)) for name in self.objectives] + [1])

    def values(self, trial: Trial) -> dict[str, float | None]:  # type: ignore[override]
        """Value of each objective of a trial, None for one that was not measured."""
        return {name: trial.value(name) for name in self.objectives}

    def numbers(self, trial: Trial) -> dict[str, float | None]:
        """Number of each constraint by its name, None for one that was not measured."""
        return {measure.name: trial.value(key) for key, measure in self.constraints.items()}

    def tracked(self, trial: Trial) -> dict[str, Reading]:
        """Readings of a trial that are neither of an objective, nor of a constraint, nor the cost."""
        names = (name for name in trial.readings if name not in self._all or self._all[name].role == "tracked")
        return {name: reading for name in names if (reading := trial.reading(name)) is not None}

    def described(self, trial: Trial) -> dict[str, Any]:
        """A trial as JSON, the same in every output: its parts, its readings, and views of these by role.

        With several objectives the ``value`` is an object with the value of each.
        """
        is_single, reading = self.is_single, trial.reading(VALUE) if self.is_single else None
        values = None if is_single or self.first_value(trial) is None else self.values(trial)
        numbers = {name: number for name, number in self.numbers(trial).items() if number is not None}
        runs = [run.value for run in trial.runs(VALUE)]
        more = {
            "values": values,
            "noise": reading and reading.noise,
            "bound": reading and reading.bound,
            "constraints": numbers or None,
            "cost": trial.value(self.cost),
            "runs": runs if is_single and len(runs) > 1 else None,
            "context": trial.context,
            "fidelity": trial.fidelity,
            "block": trial.block,
            "stopped": trial.is_stopped if trial.fidelity is not None else None,
            "failure": trial.failure or None,
            "reason": trial.failure if trial.state == "failed" else None,
            "started": trial.started and trial.started.isoformat(),
            "ended": trial.ended and trial.ended.isoformat(),
            "seconds": trial.seconds,
            "pair": trial.pair or None,
            "earlier": [self.described(each) for each in trial.earlier] or None,
        }
        return {
            "id": trial.number,
            "trial": trial.number,
            "params": trial.params,
            "state": trial.state,
            "failed": trial.state == "failed",
            "value": trial.value(VALUE) if is_single else values,
            "readings": {name: dump_readings(each) for name, each in trial.readings.items()},
            **{name: part for name, part in more.items() if part is not None},
        }

    def first_value(self, trial: Trial) -> float | None:
        """Value of the first objective that was measured."""
        return next((value for value in self.values(trial).values() if value is not None), None)

    def has_value(self, trial: Trial) -> bool:
        """Return True if the value of an objective is known, and not only a bound on it."""
        return trial.state == "done" and any(
            reading is not None and reading.bound is None for reading in map(trial.reading, self.objectives)
        )

    def is_known(self, trials: Iterable[Trial], least: int = 2) -> bool:
        """Return True if each objective has at least this many values."""
        done = [trial for trial in trials if trial.state == "done"]
        return all(sum(trial.value(name) is not None for trial in done) >= least for name in self.objectives)

    def readings(
        self,
        value: Any,
        noise: Any = None,
        constraints: Any = None,
        cost: Any = None,
        bound: Bound | None = None,
    ) -> Readings:
        """Readings of what `Optimizer.tell` takes; BadReading if some of it is bad or missing."""
        if isinstance(value, Mapping):
            if noise is not None or bound is not None:
                said = f"noise={noise!r}" if bound is None else bound
                raise BadReading(
                    f"{said} is for one number: with several, give it with its number, as in {{{next(iter(self))!r}: "
                    f"Reading(3.1, {'noise=0.1' if bound is None else f'bound={bound!r}'})}}",
                    "noise" if bound is None else bound,
                )
            readings = self._named(value)
        elif not self.is_single:
            wanted = f"value must be a dict with a number for each of {list(self.objectives)}, got {value!r}"
            raise BadReading(wanted, bound or "value")
        else:
            readings = {VALUE: self._reading(VALUE, value, noise, bound)}
        given = self._constraints(constraints, value if isinstance(value, Mapping) else {}, readings)
        readings |= {key: self._reading(key, number) for key, number in given.items() if number is not None}
        if cost is not None:
            if self.cost in readings:
                raise BadReading("cost must be given once, got it twice", "cost")
            readings[self.cost] = self._reading(self.cost, cost)
        return {name: (reading,) for name, reading in readings.items()}

    def corrected(self, old: Trial, value: Any, constraints: Any = None) -> Readings:
        """Readings of a trial with some replaced: numbers that are not named stay, and None takes one back."""
        if not isinstance(value, Mapping) and not self.is_single:
            raise BadReading(f"value must be a dict with some of {list(self)}, got {value!r}", "value")
        given = dict(value) if isinstance(value, Mapping) else {VALUE: value}
        keys = self.limited
        given |= {keys.get(name, name): number for name, number in (constraints or {}).items()}
        kept = {name: tuple(old.runs(name)) for name in old.readings if name not in given and old.runs(name)}
        told: dict[str, Any] = {**{name: old.reading(name) for name in kept}, **given}
        new = self.readings(told, constraints=dict.fromkeys(key for key, name in keys.items() if name not in told))
        reports = {name: tuple(old.reports(name)) for name in old.readings if old.reports(name)}
        runs = {name: kept.get(name) or each for name, each in new.items()}
        return {name: (*reports.get(name, ()), *runs.get(name, ())) for name in {**reports, **runs}}

    def _named(self, given: Mapping[Any, Any]) -> dict[str, Reading]:
        """Readings by name; BadReading unless an objective is there, and none is missing beside an unknown name."""
        tracked = self._only_tracked(given)
        missing = [name for name in self.objectives if name not in given]
        if missing and (tracked or self.is_single):
            raise BadReading(
                f"value must have a number for each of {list(self.objectives)}: {missing[0]!r} is missing{tracked}: "
                "give it, or None if it was not measured",
                "value",
            )
        bad = next((name for name in given if not isinstance(name, str) or not name), None)
        if bad is not None:
            raise BadReading(f"the name of a number must be text, got {bad!r}", "value")
        readings = {name: self._reading(name, number) for name, number in given.items() if number is not None}
        if not any(name in readings for name in self.objectives):
            raise BadReading(
                f"value must have a number for at least one of {list(self.objectives)}: fail(trial) if there is none",
                "value",
            )
        return readings

    def _only_tracked(self, given: Mapping[Any, Any]) -> str:
        """Note on names that the problem does not know: one of them may be misspelt."""
        unknown = [repr(name) for name in given if name not in self._all]
        return f"; {', '.join(unknown)} would only be tracked" if unknown else ""

    def _constraints(self, told: Any, named: Mapping[Any, Any], found: Mapping[str, Reading]) -> dict[str, Any]:
        """The number of each constraint by its key that is given beside the named values; BadReading if one lacks.

        Of a run that was cut short none need be there.
        """
        told, names = {} if told is None else told, self.limited
        if not isinstance(told, Mapping):
            wanted = f"constraints must be a dict with a number for each of {list(names)}, got {told!r}"
            raise BadReading(wanted, "constraints")
        unknown = [name for name in told if name not in names]
        if unknown:
            has = f"this optimizer has {list(names)}" if names else "this optimizer has none"
            raise BadReading(f"unknown constraint {unknown[0]!r}: {has}", "constraints", str(unknown[0]))
        twice = [name for name in told if names[name] in named]
        if twice:
            raise BadReading(f"constraint {twice[0]!r} must be given once, got it twice", "constraints", twice[0])
        is_cut = any(reading.bound for name, reading in found.items() if name in self.objectives)
        missing = [name for name, key in names.items() if name not in told and key not in named]
        if missing and not is_cut:
            raise BadReading(
                f"constraints must have a number for each of {list(names)}: {missing[0]!r} is missing"
                f"{self._only_tracked(named)}; tell None for what was not measured",
                "constraints",
            )
        return {names[name]: number for name, number in told.items()}

    def _reading(self, name: str, given: Any, noise: Any = None, bound: Bound | None = None) -> Reading:
        """One reading; BadReading unless it is a finite number that is possible."""
        known = self._all.get(name, Measure(name, "tracked"))
        if isinstance(given, Reading):
            if noise is not None or bound is not None:
                raise BadReading("noise and bounds must be given once: they are part of a Reading", "noise")
            given, noise, bound = given.value, given.noise, given.bound
        if known.role == "cost":
            return Reading(clipped(checked_cost(given)), noise=noise, bound=bound)
        is_value = name == VALUE and self.is_single
        what = "value" if is_value else f"{'measure' if known.role == 'tracked' else known.role} {known.name!r}"
        place = ("constraints", known.name) if known.role == "constraint" else ("value", known.name)[: 2 - is_value]
        try:
            value = finite_number(what, given)
        except ValueError:
            if is_value:
                raise
            advice = "tell None" if known.role == "constraint" else "leave it out"
            wanted = f"{what} must be a finite number, got {given!r}: {advice} if it was not measured"
            raise BadReading(wanted, *place) from None
        low, high = known.possible
        if bound is None and not low <= value <= high:
            wanted = f"{what} must be from {low:g} to {high:g}, as possible={known.possible} says, got {value:g}"
            raise BadReading(wanted, *place)
        return Reading(clipped(value), noise=None if noise is None else checked_noise(noise), bound=bound)


def clipped(value: float) -> float:
    """A value, at most `LARGEST_VALUE` in size."""
    return min(max(value, -LARGEST_VALUE), LARGEST_VALUE)


def checked_value(value: Any) -> float:
    """A reported value as a float; ValueError unless it is a finite number."""
    return finite_number("value", value)


def checked_noise(noise: Any) -> float:
    """A given standard deviation; ValueError unless it is above 0."""
    return _above_0(noise, "noise must be the value's standard deviation, above 0", "noise")


def checked_cost(cost: Any, name: str = "cost") -> float:
    """A given cost or budget of cost; ValueError unless it is a finite number above 0."""
    return _above_0(cost, f"{name} must be a finite number above 0", "cost")


def _above_0(given: Any, wanted: str, place: str) -> float:
    number = given.item() if getattr(given, "ndim", None) == 0 else given  # of an array of NumPy without dimensions
    if not finite(number) or number <= 0:
        raise BadReading(f"{wanted}, got {given!r}: leave it out if unknown", place)
    return float(number)


def checked_bound(value: Any, at_least: Any, at_most: Any) -> tuple[Any, Bound | None]:
    """The value, or a bound on it and its direction; ValueError unless at most one of the three is given."""
    bounds: dict[Bound, Any] = {"at_least": at_least, "at_most": at_most}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    if len(given) + (value is not None) > 1:
        named = [f"value={value!r}"] * (value is not None) + [f"{name}={bound!r}" for name, bound in given.items()]
        raise ValueError(f"exactly one of value, at_least and at_most must be given, got {', '.join(named)}")
    return next(((bound, name) for name, bound in given.items()), (value, None))


def checked_goal(goal: Any) -> Goal:
    """The goal; ValueError if it is none."""
    if goal not in get_args(Goal):
        raise ValueError(f"goal must be 'minimize' or 'maximize', got {goal!r}")
    return cast(Goal, goal)


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


def check_objectives(goals: Mapping[str, Any], given: Mapping[Any, Any]) -> None:
    """Raise ValueError if a name is that of no objective."""
    unknown = [name for name in given if name not in goals]
    if unknown:
        raise ValueError(f"unknown objective {unknown[0]!r}: this optimizer has {list(goals)}")


def checked_possible(possible: Any, goals: Goals | None) -> dict[str, tuple[float, float]]:
    """Range that values can have, by objective; ValueError if it is none."""
    if goals:
        given = {} if possible is None else possible
        if not isinstance(given, Mapping):
            raise ValueError(f"possible must be a dict with the range of some of {list(goals)}, got {possible!r}")
        check_objectives(goals, given)
        return {name: _checked_range(given.get(name)) for name in goals}
    return {VALUE: _checked_range(possible)}


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
    return Constraint(pair[0], float(checked_number(f"the bound of {kind} {name!r}", pair[1])))
