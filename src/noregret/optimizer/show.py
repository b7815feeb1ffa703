"""Show: observations as a table, and the state of an optimizer in one line or as HTML.

The columns of a table are ``trial state value noise``, one per parameter, ``context.NAME``, ``fidelity.NAME`` and
``constraint.NAME``; with several objectives ``value.NAME`` of each instead of value and noise. A cell is empty where
there is nothing: the value of a failure, an unknown noise, a parameter that does not apply. If some values are only
known to lie beyond a bound, there is a column ``bound``, and these have the bound in place of a value. If costs are
known, there is a column ``cost``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, cast

import numpy as np

from noregret.extra import extra
from noregret.formatting import digits_apart, number, shown
from noregret.optimizer.answers.estimate import Estimate, Gain, chance_in_words
from noregret.optimizer.checking import (
    LARGEST,
    UNKNOWN,
    Bound,
    Constraints,
    Goals,
    Possible,
    check_possible,
    checked_cost,
    checked_noise,
    checked_numbers,
    checked_value,
    checked_values,
)
from noregret.optimizer.model.history import FAILURE, NOWHERE, Arrival, History
from noregret.optimizer.space.contexts import Contexts
from noregret.optimizer.space.table import Table, is_missing
from noregret.optimizer.trials import Observation, Trials

ABOUT = ("trial", "state", "value", "noise")
"""The columns that are neither parameters nor constraints."""

PREFIX = "constraint."
"""Prefix of the column of a constraint."""

BOUND = "bound"
"""Column of a frame with bounds: "at_least" or "at_most" where the value is one, empty otherwise."""

SIDES: dict[Bound, int] = {"at_least": 1, "at_most": -1}

OBJECTIVE = "value."
"""Prefix of the column of one of several objectives."""

GIVEN = "context."
"""Prefix of the column of a context."""

COST = "cost"
"""The last column, if costs are known."""

FIDELITY = "fidelity."
"""Prefix of the column of a fidelity."""

STATES = ("done", "reported", "failed", "running")
"""States of a row. Reported is a value that a later one of the same trial replaces."""


class Row(NamedTuple):
    """A row: one answer, or a trial that is out; its value and its noise are None where there are none."""

    params: Any
    state: str
    value: Any = None
    noise: Any = None
    constraints: Mapping[str, Any] = {}
    trial: int | None = None
    context: Any = None
    bound: Bound | None = None
    cost: Any = None
    fidelity: Any = None
    values: Mapping[str, Any] = {}


class Frames:
    """Answers as a user gives them, one by one or as a frame, and as the history keeps them.

    Parameters
    ----------
    contexts : Contexts
        The space of the params, and the contexts, if there are any.
    constraints : dict of Constraint
    sign : float
        The factor that makes larger values better.
    goals : dict
        The goal of each of several objectives, empty for one.
    possible : dict of (float, float)
        Range of the values of each objective, of the only one by the name "".
    """

    def __init__(
        self, contexts: Contexts, constraints: Constraints, sign: float, goals: Goals | None, possible: Possible
    ) -> None:
        self._contexts, self._space, self._constraints, self._sign = contexts, contexts.space, constraints, sign
        self._goals, self._possible = goals or {}, possible
        self._about = ("trial", "state", *(OBJECTIVE + name for name in self._goals)) if goals else ABOUT
        self._given = {GIVEN + name: name for name in contexts.contexts.names} if contexts.contexts else {}
        self._level = {FIDELITY + contexts.fidelity.name: contexts.fidelity.name} if contexts.fidelity else {}

    def arrival(
        self, value: Any, noise: Any, constraints: Any, bound: Bound | None = None, cost: Any = None
    ) -> Arrival:
        """An answer that has yet to be put where it belongs; ValueError if it is bad.

        A run that was cut short may have measured no constraint: with a ``bound`` none need be given.
        """
        if self._goals:
            if bound is not None:
                raise ValueError(
                    f"{bound} is for one objective: give {', '.join(self._goals)} as a dict, without bounds"
                )
            return self._of_several(value, noise, constraints)._replace(cost=checked_cost(cost))
        value, noise = checked_value(value), checked_noise(noise)
        if bound is None:
            check_possible(value, self._possible[""])
        signed = self._sign * min(max(value, -LARGEST), LARGEST)
        price = checked_cost(cost)
        if bound is None:
            return Arrival(NOWHERE, signed, noise, checked_numbers(self._constraints, constraints), cost=price)
        numbers = checked_numbers(self._constraints, dict.fromkeys(self._constraints) | dict(constraints or {}))
        return Arrival(NOWHERE, signed, noise, numbers, bound=int(self._sign) * SIDES[bound], cost=price)

    def _of_several(self, values: Any, noise: Any, constraints: Any) -> Arrival:
        if noise is not None:
            raise ValueError(f"noise of several objectives is estimated, got {noise!r}: leave it out")
        told = checked_values(self._goals, values)
        for value, its in zip(told, self._possible.values(), strict=True):
            check_possible(value, its)
        signed = self._signed(told)
        first = next(value for value in signed if value == value)
        return Arrival(NOWHERE, first, UNKNOWN, checked_numbers(self._constraints, constraints), values=signed)

    def _signed(self, values: Iterable[float]) -> tuple[float, ...]:
        """Values of several objectives with larger ones better, or such values as they were given."""
        goals = self._goals.values()
        return tuple(value if goal == "maximize" else -value for value, goal in zip(values, goals, strict=True))

    def arrivals(self, frame: Any) -> list[tuple[Any, Arrival]]:
        """The params of the whole space and the answer of each row measured or failed; ValueError if one is bad.

        Trials that have reported are runs, numbered from 0.
        """
        rows = self._read(frame)
        reported = dict.fromkeys(row.trial for row in rows if row.state == "reported" and row.trial is not None)
        runs = {trial: run for run, trial in enumerate(reported)}
        found = [(row, self._checked(number, row)) for number, row in enumerate(rows) if row.state != "running"]
        return [(params, arrival._replace(run=runs.get(cast(int, row.trial), -1))) for row, (params, arrival) in found]

    def frame(self, history: History, trials: Trials) -> Any:
        """All answers in order, and the trials that are out, as a DataFrame."""
        has_bounds, has_costs = any(its.bound for its in history.arrivals), bool(history.costed)
        pandas, columns = extra("pandas", "frames"), self._columns(has_bounds, has_costs)
        rows = [
            self._row(arrival, trial)._replace(**self._parted(history, arrival.where))
            for arrival, trial in zip(history.arrivals, trials.answers, strict=True)
        ]
        for i in history.reports:
            rows[i] = rows[i]._replace(state="reported")
        out = trials.running().items()
        rows += [Row(state="running", trial=id, **self._parted(history, number)) for id, number in out]
        frame = pandas.DataFrame([self._cells(row) for row in rows], columns=columns)
        numbers = [*self._about[2:], *(PREFIX + name for name in self._constraints), *[COST] * has_costs]
        return frame.astype({"trial": "Int64"} | dict.fromkeys(numbers, float))

    def answers(self, history: History) -> list[Observation]:
        """All answers in order."""
        rows = [(self._row(arrival, None), self._parted(history, arrival.where)) for arrival in history.arrivals]
        reports = history.reports
        return [
            Observation(
                value=row.value,
                noise=_known(row.noise),
                constraints={name: _known(row.constraints.get(name)) for name in self._constraints},
                bound=row.bound,
                cost=row.cost,
                **parted,
                values=row.values,
                is_report=i in reports,
            )
            for i, (row, parted) in enumerate(rows)
        ]

    def _columns(self, has_bounds: bool, has_costs: bool) -> list[Any]:
        """The columns that there may be, in order; ValueError if a parameter has the name of another column."""
        prefixes = (
            PREFIX,
            *[GIVEN] * bool(self._given),
            *[FIDELITY] * bool(self._level),
            *[OBJECTIVE] * bool(self._goals),
        )
        more = [*[BOUND] * has_bounds, *[COST] * has_costs]
        clash = [name for name in self._space.names if name in (*self._about, *more) or str(name).startswith(prefixes)]
        if clash:
            raise ValueError(f"a frame has a column {clash[0]!r} of its own: rename the parameter of that name")
        constraints = [PREFIX + name for name in self._constraints]
        return [*self._about, *self._space.names, *self._given, *self._level, *constraints, *more]

    def _parted(self, history: History, number: int) -> dict[str, Any]:
        """The params, the context and the fidelity of a point, by these names."""
        return self._contexts.without_context(history.params[number])._asdict()

    def _checked(self, number: int, row: Row) -> tuple[Any, Arrival]:
        """The params with their context, and the answer, of a row; ValueError, with its number, if it is bad."""
        try:
            is_failure = row.state == "failed"
            value = row.values if self._goals else row.value
            if is_failure:
                arrival = FAILURE._replace(cost=checked_cost(row.cost))
            else:
                arrival = self.arrival(value, row.noise, row.constraints, row.bound, row.cost)
            return self._contexts.checked(row.params, row.context, None if is_failure else row.fidelity), arrival
        except ValueError as error:
            raise ValueError(f"row {number} of the frame: {error}") from None

    def _row(self, arrival: Arrival, trial: int | None) -> Row:
        """The row of an answer, but for its params and their context."""
        if arrival.failed:
            return Row(None, "failed", trial=trial, cost=_known(arrival.cost))
        told = dict(zip(self._constraints, arrival.constraints, strict=True))
        bound: Bound | None = None
        if arrival.bound:
            bound = "at_least" if self._sign * arrival.bound > 0 else "at_most"
        cost = _known(arrival.cost)
        if not self._goals:
            return Row(None, "done", self._sign * arrival.value, arrival.noise, told, trial, bound=bound, cost=cost)
        found = zip(self._goals, self._signed(arrival.values), strict=True)
        values = {name: value for name, value in found if value == value}
        return Row(None, "done", next(iter(values.values())), None, told, trial, cost=cost, values=values)

    def _read(self, frame: Any) -> list[Row]:
        """The rows of a DataFrame, a list of dicts or a dict of columns."""
        rows = _rows(frame)
        columns = self._columns(BOUND not in self._space.names, COST not in self._space.names)
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in columns:
                raise ValueError(f"unknown column {name!r}: drop it, or rename it to one of {columns}")
        return [self._read_row(number, row) for number, row in enumerate(rows)]

    def _read_row(self, number: int, row: Mapping[Any, Any]) -> Row:
        cells = {name: cell for name, cell in row.items() if not is_missing(cell)}
        state = cells.get("state", "done")
        if state not in STATES:
            raise ValueError(f"state must be one of {list(STATES)}, got {state!r} in row {number}")
        values = {name: cells[OBJECTIVE + name] for name in self._goals if OBJECTIVE + name in cells}
        if state in ("done", "reported") and "value" not in cells and not values:
            raise ValueError(f"row {number} has no value: drop it, or give it the state 'failed' in a column 'state'")
        told = {name: cells.get(PREFIX + name) for name in self._constraints}
        context = {name: cells[column] for column, name in self._given.items() if column in cells}
        bound = None if BOUND in self._space.names else cells.get(BOUND)
        if bound is not None and bound not in SIDES:
            raise ValueError(f"{BOUND} must be one of {list(SIDES)} or empty, got {bound!r} in row {number}")
        cost = None if COST in self._space.names else cells.get(COST)
        fidelity = {name: cells[column] for column, name in self._level.items() if column in cells}
        said = cells.get("value"), cells.get("noise"), told, cells.get("trial")
        more: dict[str, Any] = {"context": context or None, "bound": bound, "cost": cost, "fidelity": fidelity or None}
        return Row(self._params(cells), state, *said, **more, values=values)

    def _params(self, cells: Mapping[Any, Any]) -> Any:
        params = {name: cells[name] for name in self._space.names if name in cells}
        is_array = isinstance(self._space, Table) and self._space.is_array
        return list(params.values()) if is_array else params

    def _cells(self, row: Row) -> dict[Any, Any]:
        params = dict(row.params if isinstance(row.params, Mapping) else enumerate(row.params))
        constraints = {PREFIX + name: number for name, number in row.constraints.items()}
        given = {GIVEN + name: value for name, value in (row.context or {}).items()}
        given |= {FIDELITY + name: value for name, value in (row.fidelity or {}).items()}
        values = [row.values.get(name) for name in self._goals] if self._goals else [row.value, row.noise]
        about = dict(zip(self._about, (row.trial, row.state, *values), strict=True))
        more = {name: cell for name, cell in ((BOUND, row.bound), (COST, row.cost)) if cell is not None}
        return about | params | given | constraints | more


def _known(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else number


def _rows(frame: Any) -> list[Mapping[Any, Any]]:
    """The rows of a table by column, from whatever it comes as."""
    if hasattr(frame, "to_dict") and hasattr(frame, "columns"):  # a DataFrame, of whichever library
        frame = frame.to_dict("records") if hasattr(frame, "iloc") else frame.to_dicts()
    if isinstance(frame, Mapping):
        return list(_from_columns({name: _listed(cells) for name, cells in frame.items()}))
    if isinstance(frame, Sequence) and all(isinstance(row, Mapping) for row in frame):
        return list(frame)
    raise ValueError(f"a frame must be a DataFrame, a list of dicts or a dict of columns, got {type(frame).__name__}")


def _listed(cells: Any) -> list[Any]:
    """The cells of a column; of an array of floats as Python's, which are checked in less time than NumPy's."""
    is_floats = isinstance(cells, np.ndarray) and cells.dtype == float
    return cells.tolist() if is_floats else list(cells)


def _from_columns(columns: dict[Any, list[Any]]) -> Iterator[Mapping[Any, Any]]:
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of a frame must be of one length, got {lengths}")
    return (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))


class Shift(NamedTuple):
    """Change of the machine: the values of the first ``evaluations`` were larger by ``by``, in the units of the values.

    >>> print(Shift(7, -378.2))
    the machine changed: the first 7 evaluations gave values about 380 lower, and are corrected by that
    """

    evaluations: int
    by: float

    def __str__(self) -> str:
        size = f"{number(abs(self.by), 2)} {'higher' if self.by > 0 else 'lower'}"
        return (
            f"the machine changed: the first {self.evaluations} evaluations gave values about {size}, and are "
            "corrected by that"
        )


class Standing(NamedTuple):
    """State of an optimizer; None for what is not known yet."""

    goal: str
    names: Sequence[Any]
    constraints: Constraints
    values: int
    failures: int
    out: int
    best: Estimate | None
    gain: Gain | None
    half_life: float
    bounds: int = 0
    front: Sequence[Any] | None = None
    """Estimates of the best compromises between several objectives."""
    shift: Shift | None = None

    def __str__(self) -> str:
        best = "" if self.best is None else f"; best {_interval(self.best)} at {shown(self.best.params)}"
        front = "" if self.front is None else f"; {_settings(self.front)} on the front"
        return f"<Optimizer, {self._what()}: {self._counts()}{best}{front}{self._remarks()}>"

    def html(self) -> str:
        """Small HTML table."""
        rows = [("goal", self._what()), ("told", self._counts())]
        if self.best is not None:
            rows.append(("best", _interval(self.best) + self._remarks()))
            params = self.best.params
            items = params.items() if isinstance(params, Mapping) else enumerate(params)
            rows += [(str(name), shown(value)) for name, value in items]
        if self.front is not None:
            rows.append(("front", _settings(self.front) + self._remarks()))
            rows += [(", ".join(f"{n} {its.in_words(n)}" for n in its.values), shown(its.params)) for its in self.front]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f'<table class="noregret-optimizer"><caption>Optimizer</caption>{cells}</table>'

    def _what(self) -> str:
        bounds = [f"{name} {c.operator} {shown(c.bound)}" for name, c in self.constraints.items()]
        names = [str(name) for name in self.names[:4]] + ["..."] * (len(self.names) > 4)
        return f"{self.goal} over {', '.join(names)}" + (f" with {', '.join(bounds)}" if bounds else "")

    def _counts(self) -> str:
        others = [f"{self.bounds} bound" + "s" * (self.bounds != 1)] * bool(self.bounds)
        others += [f"{self.failures} failed"] * bool(self.failures) + [f"{self.out} out"] * bool(self.out)
        return ", ".join([f"{self.values} value" + "s" * (self.values != 1), *others])

    def _remarks(self) -> str:
        """Remarks about constraints, the baseline and drift."""
        remarks = []
        if self.best is not None and self.constraints:
            remarks.append(f"; meets the constraints with a probability of {chance_in_words(self.best.feasible)}")
            remarks += ["; nothing is likely to: this is the likeliest"] * self.best.is_likeliest
        remarks += [f"; {self.gain}"] * bool(self.gain)
        remarks += [f"; {change_in_words(self.half_life)}"] * (self.half_life < math.inf)
        remarks += [f"; {self.shift}"] if self.shift else []
        return "".join(remarks)


def change_in_words(half_life: float) -> str:
    """Drift in words.

    >>> change_in_words(61.8)
    'what is best changes: half of what was learnt is out of date after about 62 evaluations'
    """
    return f"what is best changes: half of what was learnt is out of date after about {half_life:.2g} evaluations"


def _interval(estimate: Estimate) -> str:
    if math.isinf(estimate.upper):
        return shown(estimate.estimate)
    digits = digits_apart(estimate.lower, estimate.upper)
    middle, lower, upper = (number(each, digits) for each in (estimate.estimate, estimate.lower, estimate.upper))
    return f"{middle} (between {lower} and {upper}, at {100 * estimate.level:g}%)"


def _settings(front: Sequence[Any]) -> str:
    return f"{len(front)} setting" + "s" * (len(front) != 1)
