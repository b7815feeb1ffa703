"""What is kept of each trial, and how it goes into Optuna's tables and comes out again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from noregret.optimizer.spaces.parameters import Choice, Float, Int
from noregret.tune.measuring import Outcome
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.study import Params

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

TOLD, RUN, IMPORTED = "noregret:told", "noregret:run", "noregret:import"
"""What was newly known when a trial was suggested; how its run went; which row of the past it is."""

State = Literal["waiting", "running", "done", "failed"]
STATES: dict[str, State] = {"WAITING": "waiting", "RUNNING": "running", "COMPLETE": "done", "FAIL": "failed"}
"""Our words for the names of Optuna's states."""


@dataclass(frozen=True)
class Suggestion:
    """Params to try next, in this context, and the trials whose results were new when they were chosen."""

    params: Params
    told: Sequence[int]
    context: Params | None = None


@dataclass(frozen=True)
class Record:
    """One trial."""

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
    """What was given with the question, None where there are no contexts."""
    imported: bool = False
    """Whether it was measured elsewhere; such trials are no rounds."""

    @property
    def started_text(self) -> str:
        """When it was started, as text; empty if that is not known."""
        return self.started.isoformat(timespec="milliseconds") if self.started else ""

    @property
    def finished(self) -> bool:
        """True if the trial has an outcome, a failure included."""
        return self.state in ("done", "failed")

    @property
    def outcome(self) -> Outcome | None:
        """Outcome of the trial, None while it is pending."""
        said = self.value, self.failure, self.seconds, self.stderr, self.constraints, self.noise
        return Outcome(*said) if self.finished else None


def arrived(records: Sequence[Record]) -> tuple[list[int], tuple[int, ...]]:
    """The trials with answers, each once, in the order in which suggestions knew of them, and those none knows yet.

    >>> first, second = Record(0, {}, "done"), Record(1, {}, "done")
    >>> arrived([first, second, Record(2, {}, "done", told=(1, 0)), Record(3, {}, "running")])
    ([1, 0], (2,))
    """
    here = {record.number for record in records}
    told = dict.fromkeys(chain.from_iterable(record.told for record in records))
    known = [number for number in told if number in here]
    old = set(known)
    return known, tuple(record.number for record in records if record.finished and record.number not in old)


def record(trial: FrozenTrial) -> Record:
    """A trial out of Optuna's tables."""
    run, state = trial.user_attrs.get(RUN, {}), STATES[trial.state.name]
    elsewhere = trial.user_attrs.get(IMPORTED)
    return Record(
        number=trial.number,
        params=dict(trial.params),
        state=state,
        value=trial.value if state == "done" else None,
        failure=run.get("failure", "") if state == "failed" else "",
        seconds=run.get("seconds", 0.0),
        stderr=run.get("stderr", ""),
        told=tuple(trial.user_attrs.get(TOLD, ())),
        started=None if elsewhere else trial.datetime_start,
        ended=trial.datetime_complete,
        noise=elsewhere["noise"] if elsewhere else run.get("noise"),
        constraints=run.get("constraints", {}),
        imported=elsewhere is not None,
    )


def fingerprint(row: ImportedRow) -> str:
    """What tells a row of the past from others; equal for equal ones."""
    content = [row.params, row.value, row.noise, dict(row.constraints), row.origin]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def run_attribute(outcome: Outcome) -> dict[str, Any]:
    """How a run went, as JSON."""
    run: dict[str, Any] = {
        "seconds": outcome.seconds,
        "failure": outcome.failure,
        "stderr": outcome.stderr.replace("\0", ""),
    }
    run |= {"constraints": dict(outcome.constraints)} if outcome.constraints else {}
    return run | ({"noise": outcome.noise} if outcome.noise is not None else {})


def distributions(space: Mapping[str, Float | Int | Choice] | Sequence[Params]) -> dict[str, BaseDistribution]:
    """Optuna's words for a space; for a table, the ranges of its columns."""
    from noregret.integrations.distributions import column_distribution, distribution

    if isinstance(space, Mapping):
        return {name: distribution(parameter) for name, parameter in space.items()}
    return {name: column_distribution([row[name] for row in space]) for name in space[0]}
