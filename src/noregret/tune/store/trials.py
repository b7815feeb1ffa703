"""The trial table: all trials of a study in Optuna's tables, read and written without Optuna.

Both `noregret tune` and `noregret serve` use it. Every change is a compare-and-swap in a transaction: it is made if the
stored state is still the expected one, and has no effect otherwise.

- A new trial is added if no other was added since the trials were read (`check_newest`).
- The holder of a trial is an attribute with a token. `take`, `renew` and `release` change it if it still has the
  expected token.
- A trial is finished if it has no outcome yet (`tell`). Its checksum is written in the same transaction.

Optuna's own functions are not used: they take milliseconds, read all trials of a study, and refuse a choice that has
got another option since the first trial. The rows written here read the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import Any, TypeVar

import sqlalchemy
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    distribution_to_json,
    json_to_distribution,
)

from noregret.optimizer import Measures, Reading, Trial, dump, dump_readings, identity, load, load_readings
from noregret.tune.store.checksums import SUM, digest, seal
from noregret.tune.store.leases import HOLDER
from noregret.tune.store.records import (
    CONTEXT,
    FIDELITY,
    IMPORTED,
    REPORTS,
    RUN,
    STATES,
    TOLD,
    Record,
    run_attribute,
    stored_readings,
)
from noregret.tune.store.storage import Storage
from noregret.tune.study.study import Params, StudyError

T = TypeVar("T")
Distributions = Mapping[str, BaseDistribution]

ATTEMPTS = 50
"""Number of attempts when other processes are faster. With three equally fast servers, one in 10^9 requests fails after
that many."""

STUDY = sqlalchemy.text("SELECT study_id FROM studies WHERE study_id = :study FOR UPDATE")
NEWEST = sqlalchemy.text("SELECT number FROM trials WHERE study_id = :study ORDER BY trial_id DESC LIMIT 1")
TRIAL = sqlalchemy.text(
    "INSERT INTO trials (study_id, number, state, datetime_start) VALUES (:study, :number, 'RUNNING', :now) "
    "RETURNING trial_id"
)
IMPORTED_TRIAL = {
    state: sqlalchemy.text(
        "INSERT INTO trials (study_id, number, state, datetime_start, datetime_complete) "
        f"VALUES (:study, :number, '{state}', :now, :now) RETURNING trial_id"
    )
    for state in ("COMPLETE", "FAIL")
}
PARAM = sqlalchemy.text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "VALUES (:trial, :name, :value, :form)"
)
VALUE = sqlalchemy.text(
    "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (:trial, :objective, :value, :kind) "
    "ON CONFLICT (trial_id, objective) DO UPDATE SET value = excluded.value, value_type = excluded.value_type"
)
ATTRIBUTE = sqlalchemy.text(
    "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (:trial, :key, :json) "
    "ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json"
)
"""Replaces what a pending trial may have: early versions did not finish a trial in one transaction."""
SWAP_HOLDER = sqlalchemy.text(
    f"INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (:trial, '{HOLDER}', :new) "
    "ON CONFLICT (trial_id, key) DO UPDATE SET value_json = excluded.value_json "
    "WHERE trial_user_attributes.value_json = :old OR trial_user_attributes.value_json LIKE :token RETURNING trial_id"
)
"""Stores the new holder of a trial if the stored one is the old one or has its token; a trial may have none yet."""
RUNNING = sqlalchemy.text(
    "UPDATE trials SET datetime_start = CASE WHEN state = 'WAITING' THEN :now ELSE datetime_start END, "
    "state = 'RUNNING' WHERE trial_id = :trial AND state IN ('RUNNING', 'WAITING')"
)
CORRECTED = "noregret:corrections"
"""Attribute of a study with what was corrected, by trial: the rows of finished trials never change."""
CORRECTIONS = sqlalchemy.text(
    f"SELECT value_json FROM study_user_attributes WHERE study_id = :study AND key = '{CORRECTED}'"
)
SWAP_CORRECTIONS = sqlalchemy.text(
    f"INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (:study, '{CORRECTED}', :new) "
    "ON CONFLICT (study_id, key) DO UPDATE SET value_json = excluded.value_json "
    "WHERE study_user_attributes.value_json = :old RETURNING study_id"
)
"""Stores the corrections of a study if the stored ones are still the old ones."""
WAITING = sqlalchemy.text("UPDATE trials SET state = 'WAITING' WHERE trial_id = :trial AND state = 'RUNNING'")
FINISH = {
    state: sqlalchemy.text(
        f"UPDATE trials SET state = '{state}', datetime_complete = :now "
        "WHERE trial_id = :trial AND state IN ('RUNNING', 'WAITING')"
    )
    for state in ("COMPLETE", "FAIL")
}
DIRECTIONS = sqlalchemy.text(
    "SELECT CAST(direction AS VARCHAR) FROM study_directions JOIN trials USING (study_id) WHERE trial_id = :trial "
    "ORDER BY objective"
)
WORST = {"MINIMIZE": "INF_POS", "MAXIMIZE": "INF_NEG"}
"""Value that Optuna gets for an objective that was not measured: it has no missing values, and none is better."""
INFINITE = {"INF_POS": math.inf, "INF_NEG": -math.inf}
"""Values of other programs that Optuna stores by name."""


class Overtaken(StudyError):
    """Another process has changed the trials that a change was computed from."""


def unless_overtaken(attempt: Callable[[], T]) -> T:
    """Result of a read, a computation and a write, repeated while other processes are faster."""
    for _ in range(ATTEMPTS):
        with suppress(Overtaken):
            return attempt()
    raise Overtaken("other processes keep changing this study: ask again")


def check_newest(connection: Any, study: int, number: int) -> None:
    """Raise Overtaken unless the last trial of a study has this number, -1 for none. It stays so in the transaction."""
    if newest(connection, study) != number:
        raise Overtaken


def newest(connection: Any, study: int) -> int:
    """Number of the last trial of a study, -1 if it has none; it stays the last until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(STUDY, {"study": study})  # SQLite has one writer at a time anyway
    number = connection.execute(NEWEST, {"study": study}).scalar()
    return -1 if number is None else int(number)


def add(
    connection: Any,
    study: int,
    number: int,
    suggestion: Record,
    holder: Mapping[str, Any],
    distributions: Distributions,
) -> int:
    """Store a new trial, running, after `check_newest`; return its id. Its own number is not looked at."""
    trial = int(connection.execute(TRIAL, {"study": study, "number": number, "now": str(datetime.now())}).scalar())
    params = [{"trial": trial, **row} for row in _params(suggestion.params, distributions)]
    connection.execute(PARAM, params)
    attributes = {TOLD: list(suggestion.told), HOLDER: holder}
    attributes |= {} if suggestion.context is None else {CONTEXT: suggestion.context}
    attributes |= {} if suggestion.fidelity is None else {FIDELITY: dict(suggestion.fidelity)}
    connection.execute(ATTRIBUTE, [_attribute(trial, key, value) for key, value in attributes.items()])
    return trial


def renew(connection: Any, trial: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Store a trial's new holder; False, and no change, if it has another holder than ``old``.

    Holders with the same token are the same holder: a commit whose answer was lost may have changed the rest.
    """
    token = f'%"token": "{old["token"]}"%' if "token" in old else ""
    values = {"trial": trial, "old": json.dumps(old), "token": token, "new": json.dumps(new)}
    return connection.execute(SWAP_HOLDER, values).first() is not None


def take(connection: Any, trial: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Hand a pending trial over to a new holder; False if it has another holder than ``old``, or is finished."""
    values = {"trial": trial, "now": str(datetime.now())}
    return renew(connection, trial, old, new) and bool(connection.execute(RUNNING, values).rowcount)


def release(connection: Any, trial: int, old: Mapping[str, Any]) -> bool:
    """Let a running trial wait for a new holder; False if it has another holder than ``old``, or is finished."""
    return renew(connection, trial, old, {}) and bool(connection.execute(WAITING, {"trial": trial}).rowcount)


def report(connection: Any, record: Record, reports: Sequence[Reading], holder: Mapping[str, Any]) -> None:
    """Store the intermediate results of a pending trial, and a sign of its holder."""
    kept = {"reports": [[each.step, each.value] for each in reports], "stopped": record.is_stopped}
    connection.execute(ATTRIBUTE, _attribute(record.row, REPORTS, kept))
    renew(connection, record.row, record.holder, holder)


def tell(connection: Any, trial: int, outcome: Record, measures: Measures) -> Record | None:
    """Store an outcome unless the trial has one; return the one that is stored, None if the trial was deleted."""
    if finish(connection, trial, outcome, measures):
        return outcome
    return next(iter(_read(connection, f"trial_id = {trial}", measures)), None)


def finish(connection: Any, trial: int, outcome: Record, measures: Measures) -> bool:
    """Store the outcome of a trial; False, and no change, if it has one."""
    state = "FAIL" if outcome.state == "failed" else "COMPLETE"
    if not connection.execute(FINISH[state], {"trial": trial, "now": str(datetime.now())}).rowcount:
        return False
    values = _values(outcome, measures)
    if values:
        connection.execute(VALUE, _value_rows(connection, trial, values))
    connection.execute(ATTRIBUTE, _attribute(trial, RUN, run_attribute(outcome)))
    connection.execute(ATTRIBUTE, _attribute(trial, SUM, seal(connection.exec_driver_sql, trial, state, values)))
    return True


def add_imported(
    connection: Any,
    study: int,
    first: int,
    rows: Mapping[str, Trial],
    distributions: Distributions,
    measures: Measures,
) -> None:
    """Add imported trials, by their fingerprints, numbered from ``first`` on, after `check_newest`."""
    now = str(datetime.now())
    params, values, attributes = [], [], []
    for number, (mark, row) in enumerate(rows.items(), first):
        state = "FAIL" if measures.first_value(row) is None else "COMPLETE"
        trial = connection.execute(IMPORTED_TRIAL[state], {"study": study, "number": number, "now": now}).scalar()
        its_params = _params(row.params, distributions)
        its_values, run = _values(row, measures), run_attribute(row)
        elsewhere = {"row": mark, "seconds": row.seconds, "started": row.started and row.started.isoformat()}
        its_attributes: dict[str, Any] = {TOLD: [], IMPORTED: elsewhere, RUN: run}
        its_attributes |= {} if row.context is None else {CONTEXT: row.context}
        listed = [[found["name"], found["value"], found["form"]] for found in its_params]
        kept = [(key, json.dumps(value)) for key, value in its_attributes.items()]
        its_attributes[SUM] = digest(number, state, its_values, listed, kept)
        params += [{"trial": trial, **found} for found in its_params]
        values += _value_rows(connection, trial, its_values)
        attributes += [_attribute(trial, key, value) for key, value in its_attributes.items()]
    for statement, lines in ((PARAM, params), (VALUE, values), (ATTRIBUTE, attributes)):
        if lines:
            connection.execute(statement, lines)


def _values(outcome: Trial, measures: Measures) -> list[float | None]:
    """The values of all objectives in their order, None for one that was not measured; none of a failure."""
    return [] if measures.first_value(outcome) is None else list(measures.values(outcome).values())


def _value_rows(connection: Any, trial: int, values: Sequence[float | None]) -> list[dict[str, Any]]:
    """Rows of the values of a trial."""
    kinds = ["FINITE"] * len(values)
    if None in values:
        worst = [WORST[direction] for (direction,) in connection.execute(DIRECTIONS, {"trial": trial})]
        kinds = [kind if value is None else "FINITE" for value, kind in zip(values, worst, strict=True)]
    rows = enumerate(zip(values, kinds, strict=True))
    return [{"trial": trial, "objective": i, "value": value, "kind": kind} for i, (value, kind) in rows]


def _params(params: Params, distributions: Distributions) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": _stored(its, params[name]), "form": distribution_to_json(its)}
        for name, its in distributions.items()
        if name in params
    ]


def _stored(distribution: BaseDistribution, value: Any) -> float:
    """The number that Optuna keeps for a value: of a choice its index, where Optuna itself takes True for 1."""
    if isinstance(distribution, CategoricalDistribution):
        return float(list(map(identity, distribution.choices)).index(identity(value)))
    return float(distribution.to_internal_repr(value))


def _attribute(trial: int, key: str, value: Any) -> dict[str, Any]:
    return {"trial": trial, "key": key, "json": json.dumps(value)}


def find(connection: Any, study: int, number: int, measures: Measures) -> Record | None:
    """The trial of a study with this number, None if there is none."""
    return next(iter(_read(connection, f"study_id = {study} AND number = {number}", measures)), None)


class TrialTable:
    """All trials of a study, as of the last reading. Finished trials never change, and are read once.

    Parameters
    ----------
    storage : Storage
    study : int
        Id of the study in the tables.
    measures : Measures
    first : int
        Number of its first trial.
    """

    def __init__(self, storage: Storage, study: int, measures: Measures, first: int = 0) -> None:
        self.study, self._storage, self._measures, self._first = study, storage, measures, first
        self.records: dict[int, Record] = {}
        self._corrections = ""
        self.pending: dict[int, Record] = {}
        """Trials without an outcome."""
        self._last, self._lock = 0, Lock()

    @property
    def newest(self) -> int:
        """Number of the last trial, -1 if there is none."""
        return self.next - 1 if self.records else -1

    @property
    def next(self) -> int:
        """Number of the next trial."""
        return self._first + len(self.records)

    def refresh(self) -> list[Record]:
        """Read new trials and outcomes; return all trials, by number.

        It must not be called inside a transaction: it would wait for its own thread.
        """
        with self._lock:
            with self._storage.snapshot() as connection:
                self.check(connection)
                new = _read(connection, f"study_id = {self.study} AND trial_id > {self._last}", self._measures)
                ids = ", ".join(str(record.row) for record in self.pending.values())
                old = _read(connection, f"trial_id IN ({ids})", self._measures) if ids else []
                corrections = connection.execute(CORRECTIONS, {"study": self.study}).scalar() or ""
            for record in (*old, *new):
                self._enter(record)
            if corrections and (new or old or corrections != self._corrections):
                self._correct(corrections)
            self._last = max([self._last, *(record.row for record in new)])
            return list(self.records.values())

    def check(self, connection: Any) -> None:
        """Raise an exception if the study is no longer there."""

    def changed(self, number: int, change: Callable[[Record], Record]) -> Record | None:
        """Store what a function makes of a finished trial, and return it; None if there is no such trial.

        ValueError if it has no outcome, Overtaken if another correction was stored in the meantime.
        """
        self.refresh()
        old = self.records.get(number)
        if old is None:
            return None
        if not old.is_finished:
            raise ValueError(f"trial {number} has no outcome yet: tell it")
        new = change(old)
        if new is not old:
            with self._storage.transaction() as connection:
                self.check(connection)
                self.correct(connection, {number: new})
        return new

    def correct(self, connection: Any, trials: Mapping[int, Trial]) -> None:
        """Store corrections of finished trials, by number; Overtaken if others were stored since the last reading."""
        kept = json.loads(self._corrections)["trials"] if self._corrections else {}
        for number, new in trials.items():
            kept[str(number)] = {
                "state": new.state,
                "failure": new.failure,
                "readings": {name: dump_readings(each) for name, each in new.readings.items()},
                "earlier": [dump(each) for each in new.earlier],
            }
        text = json.dumps({"trials": kept, "sum": _sum(kept)})
        values = {"study": self.study, "new": text, "old": self._corrections}
        if connection.execute(SWAP_CORRECTIONS, values).first() is None:
            raise Overtaken

    def _correct(self, corrections: str) -> None:
        """Put the corrections of a study in the place of what its trials had."""
        found = json.loads(corrections)
        if found["sum"] != _sum(found["trials"]):
            raise ValueError("the corrections of the study are not what was written")
        self._corrections = corrections
        for number, its in found["trials"].items():
            old = self.records.get(int(number))
            if old is not None:
                readings = {name: load_readings(each) for name, each in its["readings"].items()}
                more = {"state": its["state"], "failure": its["failure"], "earlier": tuple(map(load, its["earlier"]))}
                self.records[old.number] = replace(old, readings=readings, **more)

    def _enter(self, record: Record) -> None:
        self.records[record.number] = record
        if record.is_finished:
            self.pending.pop(record.number, None)
        else:
            self.pending[record.number] = record


def _sum(corrections: Mapping[str, Any]) -> str:
    return sha256(json.dumps(corrections, sort_keys=True).encode()).hexdigest()[:16]


def _read(connection: Any, which: str, measures: Measures) -> list[Record]:
    """Trials in four statements, which must see one state of the database unless the trials are finished."""
    query = connection.exec_driver_sql
    columns = "trial_id, number, CAST(state AS VARCHAR), datetime_start, datetime_complete"
    trials = query(f"SELECT {columns} FROM trials WHERE {which} ORDER BY trial_id").all()
    if not trials:
        return []
    inside = f"trial_id IN (SELECT trial_id FROM trials WHERE {which})"
    params: dict[int, Params] = {trial: {} for trial, *_ in trials}
    attributes: dict[int, dict[str, Any]] = {trial: {} for trial, *_ in trials}
    columns = "trial_id, param_name, param_value, distribution_json"
    for trial, name, value, form in query(f"SELECT {columns} FROM trial_params WHERE {inside} ORDER BY param_id"):
        params[trial][name] = _distribution(form).to_external_repr(value)
    for trial, key, text in query(f"SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {inside}"):
        attributes[trial][key] = json.loads(text)
    columns = "trial_id, value, CAST(value_type AS VARCHAR)"
    values = {
        trial: INFINITE.get(kind, value)
        for trial, value, kind in query(f"SELECT {columns} FROM trial_values WHERE {inside} AND objective = 0")
    }
    return [_record(trial, params[trial[0]], attributes[trial[0]], values.get(trial[0]), measures) for trial in trials]


@lru_cache(maxsize=1024)
def _distribution(form: str) -> BaseDistribution:
    return json_to_distribution(form)


def _record(trial: Any, params: Params, attributes: dict[str, Any], value: float | None, measures: Measures) -> Record:
    row, number, name, start, end = trial
    state, elsewhere, reported = STATES[name], attributes.get(IMPORTED), attributes.get(REPORTS, {})
    run = attributes.get(RUN, {"reports": reported.get("reports", ()), "stopped": reported.get("stopped", False)})
    noise = elsewhere.get("noise") if elsewhere else run.get("noise")
    return Record(
        id=number,
        params=params,
        state=state,
        readings=stored_readings(run, value if state == "done" else None, noise, measures),
        failure=run.get("failure", "") if state == "failed" else "",
        seconds=elsewhere.get("seconds") if elsewhere else run.get("seconds", 0.0) if RUN in attributes else None,
        stderr=run.get("stderr", ""),
        told=tuple(attributes.get(TOLD, ())),
        started=_time(elsewhere.get("started") if elsewhere else start),
        ended=_time(end),
        context=attributes.get(CONTEXT),
        mark=elsewhere["row"] if elsewhere else "",
        row=row,
        holder=attributes.get(HOLDER, {}),
        fidelity=run.get("fidelity", attributes.get(FIDELITY)),
        is_stopped=run.get("stopped", False),
    )


def _time(stored: Any) -> datetime | None:
    return datetime.fromisoformat(stored) if isinstance(stored, str) else stored
