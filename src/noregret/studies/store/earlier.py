"""Studies of earlier versions, in Optuna's tables: they are read once, and written into our own.

The old rows stay until `noregret drop-old` deletes them. Earlier versions refuse to open such a study, since its old
form says that a newer one wrote it. A worker of an earlier version that is still at work cannot write any more: a
trigger refuses what it sends, so that nothing is acknowledged and then not read. All of this is one transaction.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from noregret.extra import version
from noregret.optimizer import Measures, Reading, Readings, State, load, load_readings
from noregret.studies.store import trials
from noregret.studies.store.databases import tables
from noregret.studies.store.databases.connections import Pool, Transaction
from noregret.studies.store.databases.database import Database
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.store.faults import reading
from noregret.studies.store.identity import FORM, FORMAT, MADE_BY, SELF
from noregret.studies.store.records import Record
from noregret.studies.study.study import SERVICE, Study, StudyError

PREFIX = "noregret:"
"""Beginning of the names of our attributes in Optuna's tables."""
NAMES = {"noregret:study": SELF, "noregret:version": MADE_BY, "noregret:added": "added", "noregret:stopped": "stopped"}
"""Parts of a stored study, by their attributes."""
OLD_FORM, OLD_VERSION, MOVED = "noregret:format", "noregret:version", "noregret:moved"
"""Attributes of a study: the version of its stored form, its maker, and that it is in our own tables now."""
STATES: dict[str, State] = {
    "WAITING": "waiting",
    "RUNNING": "running",
    "COMPLETE": "done",
    "FAIL": "failed",
    "PRUNED": "pruned",
}
OURS = (
    "SELECT study_id, study_name FROM studies WHERE study_id IN "
    "(SELECT study_id FROM study_user_attributes WHERE key = :form) AND study_id NOT IN "
    "(SELECT study_id FROM study_user_attributes WHERE key = :moved) ORDER BY study_id"
)
"""Studies of earlier versions that are not in our own tables yet."""
REFUSAL = "a newer noregret has taken over this study: upgrade noregret here"
WRITTEN = {
    "studies": "study_id = {row}.study_id",
    "trials": "study_id = {row}.study_id",
    "trial_user_attributes": "study_id = (SELECT study_id FROM trials WHERE trial_id = {row}.trial_id)",
}
"""Tables that earlier versions write to, and which study a row is of."""
REFUSED = [
    (f"noregret_no_{kind.lower()}_{table}", table, kind, row, which.format(row=row))
    for table, which in WRITTEN.items()
    for kind, row in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD"))
]
"""Triggers: name, table, kind of change, changed row, and its study."""
WAS_MOVED = f"EXISTS (SELECT 1 FROM study_user_attributes WHERE key = '{MOVED}' AND {{which}})"
ON_FILE = [
    f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {kind} ON {table} WHEN {WAS_MOVED.format(which=which)} "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    for name, table, kind, _, which in REFUSED
]
ON_SERVER = [
    f"LOCK TABLE {', '.join(WRITTEN)} IN SHARE ROW EXCLUSIVE MODE",
    *(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {WAS_MOVED.format(which=which)} THEN RAISE EXCEPTION '{REFUSAL}'; END IF; RETURN {row}; END $$"
        for name, *_, row, which in REFUSED
    ),
    *(f"DROP TRIGGER IF EXISTS {name} ON {table}" for name, table, *_ in REFUSED),
    *(
        f"CREATE TRIGGER {name} BEFORE {kind} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
        for name, table, kind, *_ in REFUSED
    ),
]
"""Statements that let a database refuse rows of studies that are in our own tables; on a server they wait for
transactions that write such rows now."""
SET = (
    "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (:study, :key, :text) "
    "ON CONFLICT (study_id, key) DO UPDATE SET value_json = excluded.value_json"
)
DROP_ON_FILE = [f"DROP TRIGGER IF EXISTS {name}" for name, *_ in REFUSED]
DROP_ON_SERVER = [f"DROP FUNCTION IF EXISTS {name} CASCADE" for name, *_ in REFUSED]
OF_TRIALS = (
    "trial_params",
    "trial_values",
    "trial_intermediate_values",
    "trial_user_attributes",
    "trial_system_attributes",
    "trial_heartbeats",
)
OF_STUDIES = ("trials", "study_directions", "study_user_attributes", "study_system_attributes", "studies")
"""Optuna's tables."""


def take_over(where: Database, pool: Pool) -> None:
    """Write the studies of earlier versions into our own tables; nothing is written if one of them is damaged."""
    with pool.transaction(is_reading=True) as transaction, reading(where):
        waiting = _waiting(transaction)
        for study, name in waiting:
            _read(transaction, study, name)
    if not waiting:
        return
    where.keep_old()
    with pool.transaction() as transaction, reading(where):
        tables.make(transaction)
        for statement in ON_SERVER if transaction.is_server else ON_FILE:
            transaction.rows(statement)
        for study, name in _waiting(transaction):
            _copy(transaction, transaction, study, name)
            for key, text in ((MOVED, "true"), (OLD_FORM, str(FORMAT)), (OLD_VERSION, json.dumps(version()))):
                transaction.rows(SET, study=study, key=key, text=text)


def readable(where: Database, pool: Pool, using: ExitStack) -> Pool:
    """Connections to our own tables: those of the database, or of a temporary one if it has those of earlier ones."""
    with pool.transaction(is_reading=True) as old:
        waiting = [] if old.has_table("noregret_trials") else _waiting(old)
        if not waiting:
            return pool
        path = Path(using.enter_context(tempfile.TemporaryDirectory())) / "study.db"
        temporary = SQLite(path, "").open(readonly=False)
        using.callback(temporary.close)
        with temporary.transaction() as new, reading(where):
            for study, name in waiting:
                _copy(old, new, study, name)
        return temporary


def check_foreign(transaction: Transaction, study: Study) -> None:
    """StudyError if Optuna has a study of this name with trials."""
    if not transaction.has_table("study_user_attributes"):
        return
    query = (
        "SELECT 1 FROM studies JOIN trials USING (study_id) WHERE study_name = :name AND study_id NOT IN "
        "(SELECT study_id FROM study_user_attributes WHERE key = :form) LIMIT 1"
    )
    if transaction.rows(query, name=study.name, form=OLD_FORM):
        raise StudyError(
            f"{study.path}: storage: its study {study.name!r} was not made by noregret: choose another name or "
            "storage; 'noregret import' reads its trials"
        )


def drop(transaction: Transaction) -> list[str]:
    """Delete what earlier versions have stored of studies that are in our own tables; the names of these.

    Optuna's tables go too if nothing else is in them.
    """
    if not transaction.has_table("study_user_attributes"):
        return []
    moved = transaction.rows(
        "SELECT study_id, study_name FROM studies JOIN study_user_attributes USING (study_id) WHERE key = :moved",
        moved=MOVED,
    )
    for statement in DROP_ON_SERVER if transaction.is_server else DROP_ON_FILE:
        transaction.rows(statement)
    for study, _ in moved:
        condition = "trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)"
        for name in OF_TRIALS:
            transaction.rows(f"DELETE FROM {name} WHERE {condition}", study=study)
        for name in OF_STUDIES:
            transaction.rows(f"DELETE FROM {name} WHERE study_id = :study", study=study)
    if not transaction.rows("SELECT 1 FROM studies LIMIT 1"):
        for name in (*OF_TRIALS, *OF_STUDIES, "version_info"):
            transaction.rows(f"DROP TABLE {name}")
        if all(number.startswith("v") for (number,) in transaction.rows("SELECT version_num FROM alembic_version")):
            transaction.rows("DROP TABLE alembic_version")  # another program's has other versions
    return [name for _, name in moved]


def _waiting(transaction: Transaction) -> list[tuple[Any, ...]]:
    """Ids and names of the studies of earlier versions that are not in our own tables, nor another one of the name."""
    if not transaction.has_table("study_user_attributes"):
        return []
    waiting = transaction.rows(OURS, form=OLD_FORM, moved=MOVED)
    if waiting and transaction.has_table("noregret_studies"):
        known = {name for (name,) in transaction.rows("SELECT name FROM noregret_studies WHERE deleted IS NULL")}
        waiting = [(study, name) for study, name in waiting if name not in known]
    return waiting


def _read(transaction: Transaction, study: int, name: str) -> tuple[dict[str, Any], list[Record]]:
    """Attributes and trials of a study of earlier versions."""
    attributes = _attributes(transaction, study)
    if attributes[OLD_FORM] > FORMAT:
        raise StudyError(f"study {name!r} was written by a newer noregret: upgrade this one")
    return attributes, _records(transaction, study, attributes)


def _copy(old: Transaction, new: Transaction, study: int, name: str) -> None:
    """Write a study of earlier versions into our own tables."""
    attributes, records = _read(old, study, name)
    about = {ours: attributes[key] for key, ours in NAMES.items() if key in attributes}
    made_of = json.dumps([name, about[SELF]], sort_keys=True)  # the same in all copies of a database
    incarnation = attributes.get("noregret:incarnation") or hashlib.sha256(made_of.encode()).hexdigest()[:16]
    first = attributes.get("noregret:first", 0)
    made, _, _ = tables.add_study(new, name, about | {FORM: FORMAT}, incarnation, first)
    for record in records:
        trials.add(new, made, record.number, record)


def _attributes(transaction: Transaction, study: int) -> dict[str, Any]:
    query = "SELECT key, value_json FROM study_user_attributes WHERE study_id = :study"
    return {key: json.loads(text) for key, text in transaction.rows(query, study=study)}


@dataclass
class _Rows:
    """All that Optuna's tables hold of a trial."""

    number: int
    state: str
    started: Any
    ended: Any
    columns: list[tuple[str, Any, str]] = field(default_factory=list)
    results: list[tuple[Any, str]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Attributes as JSON."""

    def check(self) -> None:
        """Raise ValueError if the rows do not fit their checksum; one of an early version has none."""
        kept = [[key, text] for key, text in self.texts.items() if key not in ("noregret:sum", "noregret:holder")]
        params = [[name, _plain(value), form] for name, value, form in self.columns]
        content = [self.number, self.state, [_plain(value) for value, _ in self.results], sorted(params), sorted(kept)]
        checksum = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
        if self.texts.get("noregret:sum", json.dumps(checksum)) != json.dumps(checksum):
            raise ValueError(f"the checksum of trial {self.number} does not fit its result")

    def record(self, measures: Measures) -> Record:
        """The trial."""
        told = {key.removeprefix(PREFIX): json.loads(text) for key, text in self.texts.items() if PREFIX in key}
        state, elsewhere, reported = STATES[self.state], told.get("import"), told.get("reports", {})
        run = told.get("run", {"reports": reported.get("reports", ()), "stopped": reported.get("stopped", False)})
        value = next((value for value, kind in self.results if kind == "FINITE"), None) if state == "done" else None
        noise = (elsewhere or run).get("noise")
        return Record(
            id=self.number,
            params={name: _value(value, form) for name, value, form in self.columns},
            state=state,
            readings=_readings(run, value, noise, measures),
            failure=run.get("failure", "") if state == "failed" else "",
            seconds=elsewhere.get("seconds") if elsewhere else run.get("seconds", 0.0) if "run" in told else None,
            stderr=run.get("stderr", ""),
            told=tuple(told.get("told", ())),
            started=_time(elsewhere.get("started") if elsewhere else self.started),
            ended=_time(self.ended),
            context=told.get("context"),
            mark=elsewhere["row"] if elsewhere else "",
            holder=told.get("holder", {}),
            fidelity=run.get("fidelity", told.get("fidelity")),
            is_stopped=run.get("stopped", False),
        )


def _records(transaction: Transaction, study: int, attributes: Mapping[str, Any]) -> list[Record]:
    """All trials of a study, by number; ValueError if one is not what was written."""
    inside = "trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)"
    query = "SELECT trial_id, number, CAST(state AS VARCHAR), datetime_start, datetime_complete FROM trials"
    rows = {row: _Rows(*rest) for row, *rest in transaction.rows(f"{query} WHERE study_id = :study", study=study)}
    query = "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params"
    for row, *rest in transaction.rows(f"{query} WHERE {inside} ORDER BY param_id", study=study):
        rows[row].columns.append(tuple(rest))
    query = "SELECT trial_id, value, CAST(value_type AS VARCHAR) FROM trial_values"
    for row, *rest in transaction.rows(f"{query} WHERE {inside} ORDER BY objective", study=study):
        rows[row].results.append(tuple(rest))
    query = f"SELECT trial_id, key, value_json FROM trial_user_attributes WHERE {inside}"
    for row, key, text in transaction.rows(query, study=study):
        rows[row].texts[key] = text
    for entry in rows.values():
        entry.check()
    measures = _measures(attributes["noregret:study"], rows.values())
    records = {row.number: row.record(measures) for row in rows.values()}
    for number, entry in attributes.get("noregret:corrections", {"trials": {}})["trials"].items():
        readings = {name: load_readings(each) for name, each in entry["readings"].items()}
        more = {"state": entry["state"], "failure": entry["failure"], "earlier": tuple(map(load, entry["earlier"]))}
        records[int(number)] = replace(records[int(number)], readings=readings, revision=1, **more)
    return [record for _, record in sorted(records.items())]


def _measures(identity: Mapping[str, Any], rows: Iterable[_Rows]) -> Measures:
    """Measures with the names that a study has, as far as names of readings depend on them."""
    asked = identity.get(SERVICE, {})
    goals = asked.get("goals") or {
        key.removeprefix("objectives."): "minimize" for key in identity if key.startswith("objectives.")
    }
    named = {key.removeprefix("constraints.") for key in identity if key.startswith("constraints.")}
    named |= {*asked.get("constraints", {})}
    for row in rows:
        named |= {*json.loads(row.texts.get("noregret:run", "{}")).get("constraints", {})}
    return Measures(goals or {"value": "minimize"}, dict.fromkeys(sorted(named)))  # type: ignore[arg-type]


def _readings(run: Mapping[str, Any], value: float | None, noise: float | None, measures: Measures) -> Readings:
    """Readings of a trial from the details of its run."""
    if "readings" in run:
        return {name: load_readings(each) for name, each in run["readings"].items()}
    readings: dict[str, tuple[Reading, ...]] = {}
    if run.get("values"):
        readings = {name: (Reading(number),) for name, number in run["values"].items() if number is not None}
    elif run.get("runs"):
        readings = {name: tuple(map(Reading, run["runs"])) for name in measures.objectives}
    elif value is not None:
        readings = {name: (Reading(value, noise=noise, bound=run.get("bound")),) for name in measures.objectives}
    reports = tuple(Reading(value, step=step) for step, value in run.get("reports", ()))
    for name in measures.objectives if reports else ():
        readings[name] = (*reports, *readings.get(name, ()))
    readings |= {measures.limited.get(name, name): (Reading(its),) for name, its in run.get("constraints", {}).items()}
    return readings | ({measures.cost: (Reading(run["cost"]),)} if run.get("cost") is not None else {})


def _value(stored: float, form: str) -> Any:
    """Value of a parameter, from the number and the distribution that Optuna has for it."""
    kind = json.loads(form)
    if "choices" in kind["attributes"]:
        return kind["attributes"]["choices"][int(stored)]
    return int(stored) if kind["name"].startswith("Int") else float(stored)


def _plain(value: Any) -> Any:
    """A number without the sign of zero, which SQLite does not keep."""
    return value + 0.0 if isinstance(value, float) else value


def _time(stored: Any) -> datetime | None:
    return datetime.fromisoformat(stored) if isinstance(stored, str) else stored
