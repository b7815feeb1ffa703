"""Trial: one measurement of a setting, from `Optimizer.ask` to every output, and its readings by name.

A reading is a number with what is known about it. A measure is the name of a number: an objective, a constraint, the
cost, or a number that is only tracked. Which of these it is, the problem says (`Measures`), never a trial. The store,
saved files, HTTP and JSON hold ``dump(trial)``; tables hold a flattening of it (`noregret.optimizer.rows`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from datetime import datetime
from numbers import Real
from statistics import median
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from noregret.optimizer.space.parameters import finite

Bound = Literal["at_least", "at_most"]
"""Direction in which a value lies beyond a bound."""
State = Literal["waiting", "running", "done", "failed", "pruned", "withdrawn"]
"""State of a trial. Waiting trials were given back; pruned ones are of other programs; withdrawn ones do not count."""
VALUE, COST = "value", "cost"
"""Names of the measure of a problem with one objective, and of what a measurement costs."""
MACHINE = "machine"
"""Factor of blocks that `noregret tune` and `noregret serve` fill in."""


@dataclass(frozen=True)
class Reading:
    """One number of a trial.

    Parameters
    ----------
    value : float
    noise : float, optional
        Standard deviation of the value, if it is known.
    bound : "at_least" or "at_most", optional
        All that is known is that the number is at least, or at most, the value.
    step : float, optional
        Fidelity at which a run that went on had this value. Readings without a step are of the trial's own fidelity.

    Examples
    --------
    >>> Reading(12.0, noise=0.5)
    Reading(12.0, noise=0.5)
    """

    value: float
    _: KW_ONLY
    noise: float | None = None
    bound: Bound | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", finite_number("value", self.value))
        if self.noise is not None:
            if not finite_number("noise", self.noise) > 0:
                raise ValueError(f"noise must be the value's standard deviation, above 0, got {self.noise!r}")
            object.__setattr__(self, "noise", float(self.noise))
        if self.step is not None:
            object.__setattr__(self, "step", finite_number("step", self.step))
        if self.bound not in (None, *get_args(Bound)):
            raise ValueError(f"bound must be 'at_least', 'at_most' or None, got {self.bound!r}")

    def __repr__(self) -> str:
        parts = ((slot.name, getattr(self, slot.name)) for slot in fields(self)[1:])
        return f"Reading({self.value!r}{''.join(f', {name}={part!r}' for name, part in parts if part is not None)})"


def finite_number(name: str, given: Any) -> float:
    """The number as a float; ValueError unless it is finite."""
    given = given.item() if getattr(given, "ndim", None) == 0 else given  # of an array of NumPy without dimensions
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ValueError(f"{name} must be a number, got {given!r}")
    if not finite(given):
        raise ValueError(f"{name} is {given}: pass a finite number, or fail(trial) if there is none")
    return float(given)


Block = Mapping[str, str | int]
"""Levels that a measurement shares with others, by the name of the factor: ``{"machine": "n7", "item": 41}``."""


def checked_block(block: Any) -> Block | None:
    """The block; ValueError unless it has text or a whole number for each name.

    >>> checked_block({"machine": "n7", "item": 41.0}), checked_block(None)
    ({'machine': 'n7', 'item': 41}, None)
    """
    if block is None:
        return None
    if not isinstance(block, Mapping) or not all(isinstance(name, str) and name for name in block):
        raise ValueError(f'block must be a dict by name, such as {{"machine": "n7"}}, got {block!r}')
    return {name: _checked_level(name, level) for name, level in block.items()} or None


def _checked_level(name: str, level: Any) -> str | int:
    if isinstance(level, str):
        return level
    with suppress(ValueError, OverflowError):
        if (number := finite_number(name, level)).is_integer():
            return int(number)
    raise ValueError(f"block {name!r} must be text or a whole number, got {level!r}: give the level a name")


Readings = Mapping[str, tuple[Reading, ...]]
"""Readings by measure. Several without a step are repeated runs; those with a step are reports on the way."""


@dataclass(frozen=True, eq=False, repr=False)
class Trial:
    """A setting to measure, or one that was measured, in a context if there are contexts.

    Parameters
    ----------
    id : int
        Its number, which is its only name.
    params : dict, or row of a table
    token : str
        Tells the trials of different optimizers apart, wherever a trial has been.
    context : dict, optional
    fidelity : dict, optional
        That of its value, or the one to measure at.
    state : str
        "running", "done", "failed" or "withdrawn".
    readings : dict of tuples of Reading
        By measure. Several of one measure are those of repeated runs, or reports on the way (which have a step).
    failure : str
        Reason of a failure or of a withdrawal.
    started, ended : datetime, optional
    seconds : float, optional
        Duration of the run, the last one if it was repeated.
    is_stopped : bool
        True if the run was stopped, or is to be, before it reached the fidelity that was asked.
    earlier : tuple of Trial
        What was recorded before each correction, with the state "withdrawn" and the reason as the failure.
    pair : str
        Name of the pair of runs that it is one half of, see `noregret.optimizer.answers.paired`; empty for none.
    block : dict, optional
        What its measurement shares with others, by the name of a factor: the machine, or a seed.
    """

    id: int
    params: Any
    token: str = ""
    context: Any = None
    fidelity: Any = None
    _: KW_ONLY
    state: State = "running"
    readings: Readings = field(default_factory=dict)
    failure: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    seconds: float | None = None
    is_stopped: bool = False
    earlier: tuple[Trial, ...] = ()
    pair: str = ""
    block: Block | None = None

    @property
    def number(self) -> int:
        """Its only name."""
        return self.id

    @property
    def is_finished(self) -> bool:
        """True if it has an outcome, a failure included."""
        return self.state not in ("waiting", "running")

    def runs(self, name: str = VALUE) -> list[Reading]:
        """Readings of a measure, of each run."""
        return [reading for reading in self.readings.get(name, ()) if reading.step is None]

    def reports(self, name: str = VALUE) -> list[Reading]:
        """Readings of a measure on the way, by step."""
        return [reading for reading in self.readings.get(name, ()) if reading.step is not None]

    def by_run(self) -> list[Readings]:
        """Readings of each run; a measure that was read once is part of the first."""
        runs = {name: self.runs(name) for name in self.readings}
        most = max(map(len, runs.values()), default=0)
        return [{name: (each[i],) for name, each in runs.items() if i < len(each)} for i in range(most)]

    def by_step(self) -> list[tuple[float, Readings]]:
        """Readings on the way, by rising step, which they then have no more."""
        steps: dict[float, dict[str, tuple[Reading, ...]]] = {}
        for name in self.readings:
            for reading in self.reports(name):
                if reading.step is not None:
                    steps.setdefault(reading.step, {})[name] = (replace(reading, step=None),)
        return sorted(steps.items())

    def reading(self, name: str = VALUE) -> Reading | None:
        """Reading of a measure that counts: the median of several runs; None if it was not measured."""
        runs = self.runs(name)
        return middle(runs) if runs else None

    def value(self, name: str = VALUE) -> float | None:
        """Value of the reading that counts, None if the measure was not measured."""
        reading = self.reading(name)
        return None if reading is None else reading.value

    def __repr__(self) -> str:
        parts = {"context": self.context, "fidelity": self.fidelity, "readings": self.readings or None}
        parts["state"] = self.state if self.is_finished else None
        known = "".join(f", {name}={part!r}" for name, part in parts.items() if part is not None)
        return f"Trial(id={self.id}, params={self.params!r}{known})"


AnyTrial = TypeVar("AnyTrial", bound=Trial)


def middle(runs: Sequence[Reading]) -> Reading:
    """Median of the readings of several runs; the only one as it is.

    It is a bound if runs that are bounds lie on its near side, so that their true values may move it.

    >>> late = Reading(3.0, bound="at_least")
    >>> middle([Reading(1.0), Reading(2.0), late]), middle([Reading(1.0), late, late])
    (Reading(2.0), Reading(3.0, bound='at_least'))
    """
    if len(runs) == 1:
        return runs[0]
    value = median(run.value for run in runs)
    most = sorted(run.value for run in runs)[len(runs) // 2]
    least = sorted(run.value for run in runs)[(len(runs) - 1) // 2]
    low = any(run.bound == "at_least" and run.value <= most for run in runs)
    high = any(run.bound == "at_most" and run.value >= least for run in runs)
    return Reading(value, bound="at_least" if low else "at_most" if high else None)


def corrected(old: AnyTrial, readings: Readings, reason: str = "") -> AnyTrial:
    """Trial with other readings; the record of before is kept as an earlier one, with the reason.

    It is the old one if that has these readings already.
    """
    if old.state == "done" and old.readings == readings:
        return old
    before = Trial(**{slot.name: getattr(old, slot.name) for slot in fields(Trial)})
    before = replace(before, state="withdrawn", failure=reason, earlier=())
    return replace(old, state="done", readings=readings, failure="", earlier=(*old.earlier, before))


def withdrawn(old: AnyTrial, reason: str = "") -> AnyTrial:
    """Trial that does not count; its readings stay on record. It is the old one if that was withdrawn before."""
    return old if old.state == "withdrawn" else replace(old, state="withdrawn", failure=reason)


class Observation(NamedTuple):
    """View of a trial that unpacks: the value, None for a failure; noise, constraints and cost are None if not known.

    Where there is a ``bound``, the ``value`` is one: all that is known is that it is at least or at most that. With
    several objectives ``values`` has those that were measured, by name, and ``value`` is the first of them. A value
    ``is_report`` if a later one of the same run replaces it.
    """

    params: Any
    value: float | None
    noise: float | None
    constraints: Mapping[str, float | None]
    context: Any = None
    bound: Bound | None = None
    cost: float | None = None
    fidelity: Any = None
    values: Mapping[str, float] = {}
    is_report: bool = False


OUTLYING = 0.2
"""A measurement that is trusted less than this is shown as an outlier. By taste."""


class Measurement(NamedTuple("Measured", [("params", Any), ("value", float), ("trust", float)])):
    """One observed value, and how far it is trusted: 1 if it fits the others, about 0 if it is absurd.

    It unpacks into params, value and trust. Its ``context`` is None if there are no contexts. Its ``bound`` is
    "at_least" or "at_most" if the value is only known to be beyond it, None otherwise.
    """

    context: Any
    bound: Bound | None

    def __new__(cls, params: Any, value: float, trust: float, context: Any = None, bound: Bound | None = None) -> Self:
        measurement = super().__new__(cls, params, value, trust)
        measurement.context, measurement.bound = context, bound
        return measurement


Json = dict[str, Any]


def dump(trial: Trial) -> Json:
    """Trial as JSON, without what is as usual.

    >>> dump(Trial(3, {"x": 0.5}, state="done", readings={"value": (Reading(2.0, noise=0.1),)}))
    {'id': 3, 'params': {'x': 0.5}, 'state': 'done', 'readings': {'value': {'value': 2.0, 'noise': 0.1}}}
    """
    parts = ((slot, getattr(trial, slot.name)) for slot in fields(Trial))
    document: Json = {slot.name: part for slot, part in parts if slot.default != part or slot.name == "state"}
    document |= {name: document[name].isoformat() for name in ("started", "ended") if name in document}
    if "earlier" in document:
        document["earlier"] = [dump(each) for each in trial.earlier]
    if document.pop("readings"):
        document["readings"] = {name: dump_readings(each) for name, each in trial.readings.items()}
    return document


def dump_readings(readings: Sequence[Reading]) -> Json | list[Json]:
    """Readings of a measure as JSON: an object if there is one, a list of objects if there are several."""
    rows = [{name: part for name, part in vars(reading).items() if part is not None} for reading in readings]
    return rows[0] if len(rows) == 1 else rows


def load(document: Mapping[str, Any]) -> Trial:
    """Trial from what `dump` has written; unknown entries of later versions are left out.

    >>> load(dump(Trial(3, {"x": 0.5}, state="failed", failure="exit code 1")))
    Trial(id=3, params={'x': 0.5}, state='failed')
    """
    parts = {slot.name: document[slot.name] for slot in fields(Trial) if slot.name in document}
    parts |= {name: datetime.fromisoformat(parts[name]) for name in ("started", "ended") if name in parts}
    parts["readings"] = {name: load_readings(each) for name, each in document.get("readings", {}).items()}
    parts["earlier"] = tuple(load(each) for each in document.get("earlier", ()))
    return Trial(**parts)


def load_readings(document: Json | Sequence[Json]) -> tuple[Reading, ...]:
    """Readings of a measure from what `dump_readings` has written."""
    rows = [document] if isinstance(document, Mapping) else document
    return tuple(Reading(**row) for row in rows)


def key(trial: Trial) -> str:
    """Digest that is equal for the same observation: equal params, context, fidelity, block and readings.

    What it has cost, and when and on which machine it was made, are no part of it.
    """
    readings = {name: dump_readings(each) for name, each in trial.readings.items() if name != COST}
    block = {name: level for name, level in (trial.block or {}).items() if name != MACHINE}
    content = [trial.params, trial.context, trial.fidelity, readings, *([block] if block else [])]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()[:16]
