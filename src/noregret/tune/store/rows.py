"""Rows of Optuna's tables that are written without Optuna.

Optuna refuses a choice that has got another option since the first trial of a study, and takes milliseconds for an
imported trial. The rows written here read the same.

The service creates a trial as running, and it stays so until it has an outcome. Its holder is an attribute that changes
by compare-and-swap: a new holder is written only if the stored one is still the expected one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy
from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json

from noregret.optimizer import identity
from noregret.tune.measuring import Outcome
from noregret.tune.store.checksums import SUM, digest, seal
from noregret.tune.store.leases import HOLDER
from noregret.tune.store.records import IMPORTED, RUN, STATES, TOLD, Record, Suggestion, run_attribute
from noregret.tune.study.importing import ImportedRow
from noregret.tune.study.study import Params

PARAM = sqlalchemy.text(
    "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
    "VALUES (:trial, :name, :value, :form)"
)
IMPORTED_TRIAL = sqlalchemy.text(
    "INSERT INTO trials (study_id, number, state, datetime_start, datetime_complete) "
    "VALUES (:study, :number, 'COMPLETE', :now, :now) RETURNING trial_id"
)
VALUE = sqlalchemy.text(
    "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (:trial, 0, :value, 'FINITE')"
)
ATTRIBUTE = sqlalchemy.text(
    "INSERT INTO trial_user_attributes (trial_id, key, value_json) VALUES (:trial, :key, :json)"
)

Distributions = Mapping[str, BaseDistribution]


CONTEXT = "noregret:context"
"""Attribute of a trial that holds its context."""
STUDY = sqlalchemy.text("SELECT study_id FROM studies WHERE study_id = :study FOR UPDATE")
NEWEST = sqlalchemy.text("SELECT number FROM trials WHERE study_id = :study ORDER BY trial_id DESC LIMIT 1")
FIND = sqlalchemy.text("SELECT trial_id, datetime_start FROM trials WHERE study_id = :study AND number = :number")
TRIAL = sqlalchemy.text(
    "INSERT INTO trials (study_id, number, state, datetime_start) VALUES (:study, :number, 'RUNNING', :now) "
    "RETURNING trial_id"
)
FINISH = {
    state: sqlalchemy.text(
        f"UPDATE trials SET state = '{state}', datetime_complete = :now "
        "WHERE trial_id = :trial AND state IN ('RUNNING', 'WAITING')"
    )
    for state in ("COMPLETE", "FAIL")
}
HAND_OVER = sqlalchemy.text(
    "UPDATE trial_user_attributes SET value_json = :new "
    f"WHERE trial_id = :trial AND key = '{HOLDER}' AND value_json = :old "
    "AND EXISTS (SELECT 1 FROM trials WHERE trial_id = :trial AND state IN ('RUNNING', 'WAITING'))"
)


def add_params(connection: Any, trial: int, params: Params, distributions: Distributions) -> None:
    """Store the params of a trial."""
    connection.execute(PARAM, [{"trial": trial, **row} for row in _params(params, distributions)])


def add_imported(
    connection: Any, study: int, first: int, rows: Mapping[str, ImportedRow], distributions: Distributions
) -> None:
    """Add imported trials, by their fingerprints, numbered from ``first`` on, each with its checksum."""
    now = str(datetime.now())
    params, values, attributes = [], [], []
    for number, (mark, row) in enumerate(rows.items(), first):
        trial = connection.execute(IMPORTED_TRIAL, {"study": study, "number": number, "now": now}).scalar()
        its_params, its_attributes = _params(row.params, distributions), _attributes(mark, row)
        listed = [[found["name"], found["value"], found["form"]] for found in its_params]
        its_attributes[SUM] = json.dumps(digest(number, "COMPLETE", [row.value], listed, list(its_attributes.items())))
        params += [{"trial": trial, **found} for found in its_params]
        values.append({"trial": trial, "value": row.value})
        attributes += [{"trial": trial, "key": key, "json": written} for key, written in its_attributes.items()]
    for statement, lines in ((PARAM, params), (VALUE, values), (ATTRIBUTE, attributes)):
        connection.execute(statement, lines)


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


def _attributes(mark: str, row: ImportedRow) -> dict[str, str]:
    run = run_attribute(Outcome(row.value, "", 0.0, constraints=row.constraints))
    attributes = {TOLD: [], IMPORTED: {"row": mark, "noise": row.noise}, RUN: run}
    return {key: json.dumps(value) for key, value in attributes.items()}


class Made(NamedTuple):
    """Id of a trial in the tables, and its start time."""

    id: int
    started: datetime | None


class Told(NamedTuple):
    """Outcome of a trial of a study; ``made`` is None if the trial has not been read yet."""

    study: int
    number: int
    made: Made | None
    outcome: Outcome


class Entry(NamedTuple):
    """Trial of the service as it is stored: its id in the tables, its record, and its holder."""

    id: int
    record: Record
    holder: dict[str, Any]


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
    suggestion: Suggestion,
    holder: dict[str, Any],
    distributions: Distributions,
) -> int:
    """Store a new trial, running; return its id."""
    trial = int(connection.execute(TRIAL, {"study": study, "number": number, "now": str(datetime.now())}).scalar())
    add_params(connection, trial, suggestion.params, distributions)
    attributes = {TOLD: list(suggestion.told), HOLDER: holder}
    attributes |= {} if suggestion.context is None else {CONTEXT: suggestion.context}
    connection.execute(ATTRIBUTE, [_attribute(trial, key, value) for key, value in attributes.items()])
    return trial


def hand_over(connection: Any, trial: int, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Store a trial's new holder; False, and no change, if it is finished or has another holder than ``old``."""
    values = {"trial": trial, "old": json.dumps(old), "new": json.dumps(new)}
    return bool(connection.execute(HAND_OVER, values).rowcount)


def tell(connection: Any, told: Told) -> Outcome | None:
    """Store an outcome unless the trial has one; return the one that is stored, None if there is no such trial."""
    made = told.made or find(connection, told.study, told.number)
    if made is None:
        return None
    seconds = max((datetime.now() - made.started).total_seconds(), 0.0) if made.started else 0.0
    if finish(connection, made.id, replace(told.outcome, seconds=seconds)):
        return told.outcome
    (entry,) = read(connection, [made.id], {})
    return entry.record.outcome


def find(connection: Any, study: int, number: int) -> Made | None:
    """The trial of a study with this number, None if there is none."""
    row = connection.execute(FIND, {"study": study, "number": number}).first()
    return None if row is None else Made(int(row[0]), _time(row[1]))


def finish(connection: Any, trial: int, outcome: Outcome) -> bool:
    """Store the outcome of a trial; False, and no change, if it has one."""
    state = "FAIL" if outcome.value is None else "COMPLETE"
    if not connection.execute(FINISH[state], {"trial": trial, "now": str(datetime.now())}).rowcount:
        return False
    values = [] if outcome.value is None else [outcome.value]
    for value in values:
        connection.execute(VALUE, {"trial": trial, "value": value})
    connection.execute(ATTRIBUTE, _attribute(trial, RUN, run_attribute(outcome)))
    connection.execute(ATTRIBUTE, _attribute(trial, SUM, seal(connection.exec_driver_sql, trial, state, values)))
    return True


def _attribute(trial: int, key: str, value: Any) -> dict[str, Any]:
    return {"trial": trial, "key": key, "json": json.dumps(value)}


def read_since(connection: Any, study: int, last: int, distributions: Distributions) -> list[Entry]:
    """The trials of a study that have larger ids, by number."""
    return _read(connection, f"study_id = {study} AND trial_id > {last}", distributions)


def read(connection: Any, trials: Iterable[int], distributions: Distributions) -> list[Entry]:
    """The trials with these ids, by number, with the params that have a distribution."""
    ids = ", ".join(map(str, trials))
    return _read(connection, f"trial_id IN ({ids})", distributions) if ids else []


def _read(connection: Any, which: str, distributions: Distributions) -> list[Entry]:
    """Trials in four statements, which must see one state of the database unless the trials are finished."""
    query = connection.exec_driver_sql
    columns = "trial_id, number, CAST(state AS VARCHAR), datetime_start, datetime_complete"
    trials = query(f"SELECT {columns} FROM trials WHERE {which} ORDER BY trial_id").all()
    if not trials:
        return []
    inside = f"trial_id IN (SELECT trial_id FROM trials WHERE {which})"
    params: dict[int, dict[str, float]] = {trial: {} for trial, *_ in trials}
    attributes: dict[int, dict[str, Any]] = {trial: {} for trial, *_ in trials}
    for trial, name, value in query(f"SELECT trial_id, param_name, param_value FROM trial_params WHERE {inside}"):
        params[trial][name] = value
    for trial, key, text in query(f"SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {inside}"):
        attributes[trial][key] = json.loads(text)
    values = dict(query(f"SELECT trial_id, value FROM trial_values WHERE {inside}").all())
    return [
        _entry(trial, params[trial[0]], attributes[trial[0]], values.get(trial[0]), distributions) for trial in trials
    ]


def _entry(
    trial: Any, params: dict[str, float], attributes: dict[str, Any], value: float | None, distributions: Distributions
) -> Entry:
    id, number, state, start, end = trial
    run = attributes.get(RUN, {}) if state in FINISH else {}
    record = Record(
        number,
        {name: its.to_external_repr(params[name]) for name, its in distributions.items() if name in params},
        STATES[state],
        value if state in FINISH else None,
        run.get("failure", ""),
        told=tuple(attributes.get(TOLD, ())),
        started=_time(start),
        ended=_time(end),
        noise=run.get("noise"),
        constraints=run.get("constraints", {}),
        context=attributes.get(CONTEXT),
    )
    return Entry(id, record, attributes.get(HOLDER, {}))


def _time(stored: Any) -> datetime | None:
    return datetime.fromisoformat(stored) if isinstance(stored, str) else stored
