"""Stored form of a trial: the trial, and what the store knows of it besides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from noregret.optimizer import Choice, Float, Int, Measures, Reading, State, Trial, dump_readings, key, load_readings
from noregret.tune.study.study import Params

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

TOLD, RUN, IMPORTED = "noregret:told", "noregret:run", "noregret:import"
"""Attributes of a trial: the results that were new when it was suggested, details of its run, its imported row."""
CONTEXT, FIDELITY, REPORTS = "noregret:context", "noregret:fidelity", "noregret:reports"
"""Attributes of a trial: its context, the fidelity to measure it at, and intermediate results while it is pending."""

STATES: dict[str, State] = {
    "WAITING": "waiting",
    "RUNNING": "running",
    "COMPLETE": "done",
    "FAIL": "failed",
    "PRUNED": "pruned",
}
"""Our names for Optuna's states. Pruned trials are of other programs."""


@dataclass(frozen=True, repr=False)
class Record(Trial):
    """A trial of a store.

    Parameters
    ----------
    told : tuple of int
        Trials whose results were new when it was suggested.
    mark : str
        Fingerprint of the row that it was imported from; empty if it was measured here.
    stderr : str
        The end of the standard error of a failed run.
    row : int
        Id in the tables of the database.
    holder : mapping
        The process that runs it, see `noregret.tune.store.leases`.
    """

    told: tuple[int, ...] = field(default=(), kw_only=True)
    mark: str = field(default="", kw_only=True)
    stderr: str = field(default="", kw_only=True)
    row: int = field(default=-1, compare=False, kw_only=True)
    holder: Mapping[str, Any] = field(default_factory=dict, compare=False, kw_only=True)

    @property
    def is_imported(self) -> bool:
        """True if it was measured elsewhere; such trials do not count against the budget."""
        return bool(self.mark)


@dataclass(frozen=True)
class Claim:
    """A trial to run, or None if there is none now; ``over`` if there will be none."""

    trial: Record | None
    over: bool = False


def arrived(records: Sequence[Trial]) -> tuple[list[int], tuple[int, ...]]:
    """Finished trials that suggestions knew of, each once, in the order in which they did; and the other finished ones.

    >>> first, second = Record(0, {}, state="done"), Record(1, {}, state="done")
    >>> arrived([first, second, Record(2, {}, state="done", told=(1, 0)), Record(3, {})])
    ([1, 0], (2,))
    """
    here = {record.number for record in records}
    told = dict.fromkeys(chain.from_iterable(record.told for record in records if isinstance(record, Record)))
    known = [number for number in told if number in here]
    old = set(known)
    return known, tuple(record.number for record in records if record.is_finished and record.number not in old)


def agree(stands: Trial | None, outcome: Trial) -> bool:
    """Return True if a trial has this outcome, or had it before it was corrected."""

    def is_same(its: Trial) -> bool:
        is_other = "withdrawn" not in (its.state, outcome.state) and its.state != outcome.state
        is_at = its.state == "failed" or its.fidelity == outcome.fidelity
        return its.readings == outcome.readings and is_at and not is_other

    return stands is not None and any(map(is_same, (stands, *stands.earlier)))


def mark_of(trial: Trial, origin: str = "") -> str:
    """Fingerprint of an observation, equal for the same observation of the same origin."""
    return hashlib.sha256(f"{key(trial)} {origin}".encode()).hexdigest()[:16] if origin else key(trial)


def mark_of_1_0(trial: Trial, measures: Measures, origin: str) -> str:
    """Fingerprint that 1.0 stored with an imported observation."""
    numbers = {name: number for name, number in measures.numbers(trial).items() if number is not None}
    reading = next(filter(None, map(trial.reading, measures.objectives)), None)
    noise = reading.noise if reading and measures.is_single else None
    content: list[Any] = [trial.params, reading and reading.value, noise, numbers, origin]
    bound, cost = reading and reading.bound, trial.value(measures.cost)
    parts = trial.context, bound, None if cost is None else {"cost": cost}, trial.fidelity
    content += [part for part in parts if part is not None]
    content += [] if measures.is_single or reading is None else [measures.values(trial)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def run_attribute(record: Trial) -> dict[str, Any]:
    """Outcome of a trial, as JSON."""
    stderr = record.stderr if isinstance(record, Record) else ""
    run: dict[str, Any] = {"seconds": record.seconds or 0.0, "failure": record.failure}
    run |= {"stderr": stderr.replace("\0", "")}
    run["readings"] = {name: dump_readings(each) for name, each in record.readings.items()}
    run |= {"fidelity": dict(record.fidelity)} if record.fidelity is not None else {}
    return run | ({"stopped": True} if record.is_stopped else {})


def stored_readings(
    run: Mapping[str, Any], value: float | None, noise: float | None, measures: Measures
) -> dict[str, tuple[Reading, ...]]:
    """Readings of a trial from its `run_attribute`; earlier versions stored each part apart."""
    if "readings" in run:
        return {name: load_readings(each) for name, each in run["readings"].items()}
    readings: dict[str, tuple[Reading, ...]] = {}
    if run.get("values"):
        readings = {name: (Reading(its),) for name, its in run["values"].items() if its is not None}
    elif run.get("runs"):
        readings = {name: tuple(map(Reading, run["runs"])) for name in measures.objectives}
    elif value is not None:
        readings = {name: (Reading(value, noise=noise, bound=run.get("bound")),) for name in measures.objectives}
    reports = tuple(Reading(value, step=step) for step, value in run.get("reports", ()))
    for name in measures.objectives if reports else ():
        readings[name] = (*reports, *readings.get(name, ()))
    readings |= {measures.limited.get(name, name): (Reading(its),) for name, its in run.get("constraints", {}).items()}
    return readings | ({measures.cost: (Reading(run["cost"]),)} if run.get("cost") is not None else {})


def distributions(space: Mapping[str, Float | Int | Choice] | Sequence[Params]) -> dict[str, BaseDistribution]:
    """Optuna's distributions of a space; for a table, the ranges of its columns."""
    from noregret.integrations.distributions import column_distribution, distribution

    if isinstance(space, Mapping):
        return {name: distribution(parameter) for name, parameter in space.items()}
    return {name: column_distribution([row[name] for row in space]) for name in space[0]}
