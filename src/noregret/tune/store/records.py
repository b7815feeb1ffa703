"""Stored form of a trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from noregret.optimizer import Bound, Choice, Float, Int, Observation
from noregret.tune.measuring import Outcome
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.results import Report
from noregret.tune.study.study import Params

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

TOLD, RUN, IMPORTED = "noregret:told", "noregret:run", "noregret:import"
"""Attributes of a trial: the results that were new when it was suggested, details of its run, its imported row."""
CONTEXT, FIDELITY, REPORTS = "noregret:context", "noregret:fidelity", "noregret:reports"
"""Attributes of a trial: its context, the fidelity to measure it at, and intermediate results while it is pending."""

State = Literal["waiting", "running", "done", "failed", "pruned"]
STATES: dict[str, State] = {
    "WAITING": "waiting",
    "RUNNING": "running",
    "COMPLETE": "done",
    "FAIL": "failed",
    "PRUNED": "pruned",
}
"""Our names for Optuna's states. Pruned trials are of other programs."""


@dataclass(frozen=True)
class Suggestion:
    """Params to try next, in a context, at a fidelity, and the trials whose results were new when they were chosen."""

    params: Params
    told: Sequence[int]
    context: Params | None = None
    fidelity: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Record:
    """A stored trial."""

    number: int
    params: Params
    state: State
    value: float | None = None
    failure: str = ""
    seconds: float = 0.0
    stderr: str = ""
    told: tuple[int, ...] = ()
    started: datetime | None = None
    ended: datetime | None = None
    noise: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)
    """Further numbers of the same run, by the name of the constraint on each."""
    context: Params | None = None
    """Context of the trial, None where there are no contexts."""
    mark: str = ""
    """Fingerprint of the row that it was imported from; empty if it was measured here."""
    id: int = field(default=-1, compare=False)
    """Id in Optuna's tables."""
    holder: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Holder of the trial, see `noregret.tune.store.leases`."""
    bound: Bound | None = None
    """Direction in which the value lies beyond ``value``, of a trial that was cut short; None if it is the value."""
    cost: float | None = None
    """Cost of the trial, None if it was not counted."""
    runs: tuple[float, ...] = ()
    """The result of each run, see `Outcome`."""
    fidelity: Mapping[str, Any] | None = None
    """Fidelity of the value, or the one that was asked if there is no value yet; None if the study has none."""
    reports: tuple[Report, ...] = ()
    """Intermediate results of the run, see `Outcome`."""
    is_stopped: bool = False
    """True if the run was stopped early, or is to be stopped."""
    values: Mapping[str, float | None] = field(default_factory=dict)
    """With several objectives, the value of each, None if it was not measured; ``value`` is the first that was."""

    @property
    def imported(self) -> bool:
        """True if it was measured elsewhere; such trials do not count against the budget."""
        return bool(self.mark)

    @property
    def started_text(self) -> str:
        """Start time as text; empty if unknown."""
        return self.started.isoformat(timespec="milliseconds") if self.started else ""

    @property
    def finished(self) -> bool:
        """True if the trial has an outcome, a failure included."""
        return self.state not in ("waiting", "running")

    @property
    def outcome(self) -> Outcome | None:
        """Outcome of the trial, None while it is pending."""
        said = self.value, self.failure, self.seconds, self.stderr, self.constraints, self.noise
        if not self.finished:
            return None
        reached = None if self.value is None else self.fidelity
        more: dict[str, Any] = {"bound": self.bound, "cost": self.cost, "runs": self.runs, "fidelity": reached}
        return Outcome(*said, **more, reports=self.reports, is_stopped=self.is_stopped, values=self.values)

    def answers(self, constraints: Iterable[str], weighs_costs: bool = True) -> list[Observation]:
        """Outcome as an optimizer with these constraints takes it: each run, where their number was decided by them.

        It has its cost, unless costs do not matter. The numbers of the constraints are medians, so they and the cost
        come with the first run alone.
        """
        numbers = {name: self.constraints.get(name) for name in constraints}
        more: dict[str, Any] = {"context": self.context, "cost": self.cost if weighs_costs else None}
        if not self.runs:
            values = {name: value for name, value in self.values.items() if value is not None}
            more |= {"bound": self.bound, "fidelity": self.fidelity, "values": values}
            return [Observation(self.params, self.value, self.noise, numbers, **more)]
        first, *others = self.runs
        unknown = dict.fromkeys(numbers)
        return [
            Observation(self.params, first, None, numbers, **more),
            *(Observation(self.params, value, None, unknown, self.context) for value in others),
        ]


def arrived(records: Sequence[Record]) -> tuple[list[int], tuple[int, ...]]:
    """Finished trials that suggestions knew of, each once, in the order in which they did; and the other finished ones.

    >>> first, second = Record(0, {}, "done"), Record(1, {}, "done")
    >>> arrived([first, second, Record(2, {}, "done", told=(1, 0)), Record(3, {}, "running")])
    ([1, 0], (2,))
    """
    here = {record.number for record in records}
    told = dict.fromkeys(chain.from_iterable(record.told for record in records))
    known = [number for number in told if number in here]
    old = set(known)
    return known, tuple(record.number for record in records if record.finished and record.number not in old)


def fingerprint(row: ImportedRow) -> str:
    """Key of an imported row, equal for equal rows."""
    content = [row.params, row.value, row.noise, dict(row.constraints), row.origin]
    content += [] if row.context is None else [row.context]
    content += [] if row.bound is None else [row.bound]
    content += [] if row.cost is None else [{"cost": row.cost}]
    content += [] if row.fidelity is None else [dict(row.fidelity)]
    content += [dict(row.values)] if row.values else []
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def run_attribute(outcome: Outcome) -> dict[str, Any]:
    """Details of a run, as JSON."""
    run: dict[str, Any] = {
        "seconds": outcome.seconds,
        "failure": outcome.failure,
        "stderr": outcome.stderr.replace("\0", ""),
    }
    run |= {"constraints": dict(outcome.constraints)} if outcome.constraints else {}
    run |= {"bound": outcome.bound} if outcome.bound is not None else {}
    run |= {"cost": outcome.cost} if outcome.cost is not None else {}
    run |= {"runs": list(outcome.runs)} if outcome.runs else {}
    run |= {"fidelity": dict(outcome.fidelity)} if outcome.fidelity is not None else {}
    run |= {"reports": [list(report) for report in outcome.reports]} if outcome.reports else {}
    run |= {"stopped": True} if outcome.is_stopped else {}
    run |= {"values": dict(outcome.values)} if outcome.values else {}
    return run | ({"noise": outcome.noise} if outcome.noise is not None else {})


def distributions(space: Mapping[str, Float | Int | Choice] | Sequence[Params]) -> dict[str, BaseDistribution]:
    """Optuna's distributions of a space; for a table, the ranges of its columns."""
    from noregret.integrations.distributions import column_distribution, distribution

    if isinstance(space, Mapping):
        return {name: distribution(parameter) for name, parameter in space.items()}
    return {name: column_distribution([row[name] for row in space]) for name in space[0]}
