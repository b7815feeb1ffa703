"""The trial table: all trials of all studies, one row each, of which `dump` of the trial is the document.

Both `noregret tune` and `noregret serve` use it. Every change is a compare-and-swap in a transaction (`change`): it is
computed from the row as it is then, which no other process changes meanwhile, and has no effect if that is no longer as
expected.

- A new trial has the number after the last one that was read. It is added if no other process has added one of this
  number since (`add`).
- The holder of a trial has a token. `take`, `renew` and `release` change it if it still has the expected token.
- A trial is finished if it has no outcome yet (`tell`). Later only corrections change it, which keep what it had.

Each row has a checksum of all that it says of a trial but the holder, which every reading compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Any, Protocol, TypeVar

from noregret.optimizer import VALUE, Measures, Reading, Trial, dump, load
from noregret.studies.store.databases.connections import Transaction
from noregret.studies.store.databases.database import Database
from noregret.studies.store.databases.tables import digest
from noregret.studies.store.faults import reading
from noregret.studies.store.records import Record, recorded
from noregret.studies.study.study import StudyError

T = TypeVar("T")

ATTEMPTS = 50
"""Number of attempts when other processes are faster. With three equally fast servers, one in 10^9 requests fails after
that many."""

COLUMNS = "number, state, ended, holder, revision, document, checksum"
INSERT = (
    f"INSERT INTO noregret_trials (study, {COLUMNS}) "
    "VALUES (:study, :number, :state, :ended, :holder, :revision, :document, :checksum) "
    "ON CONFLICT (study, number) DO NOTHING RETURNING number"
)
UPDATE = (
    "UPDATE noregret_trials SET state = :state, ended = :ended, holder = :holder, revision = :revision, "
    "document = :document, checksum = :checksum WHERE study = :study AND number = :number"
)
SELECT = f"SELECT {COLUMNS} FROM noregret_trials WHERE study = :study"
AT_ONCE = 1000
"""Number of rows that are checked together: it bounds the memory."""


class Overtaken(StudyError):
    """Another process has changed the trials that a change was computed from."""


def unless_overtaken(attempt: Callable[[], T]) -> T:
    """Result of a read, a computation and a write, repeated while other processes are faster."""
    for _ in range(ATTEMPTS):
        with suppress(Overtaken):
            return attempt()
    raise Overtaken("other processes keep changing this study: ask again")


def add(transaction: Transaction, study: int, number: int, trial: Record) -> Record:
    """Store a new trial under this number, and return it; Overtaken if another one has the number."""
    made = replace(trial, id=number)
    if not transaction.rows(INSERT, study=study, **_row(made)):
        raise Overtaken
    return made


def add_imported(
    transaction: Transaction, study: int, first: int, rows: Mapping[str, Trial], measures: Measures
) -> None:
    """Add trials that were measured elsewhere, by their fingerprints, numbered from ``first`` on."""
    now = datetime.now()
    for number, (mark, row) in enumerate(rows.items(), first):
        state = "failed" if row.state == "done" and measures.first_value(row) is None else row.state
        add(transaction, study, number, recorded(row, state=state, ended=now, mark=mark, revision=len(row.earlier)))


def find(transaction: Transaction, study: int, number: int) -> Record | None:
    """The trial of a study with this number, None if there is none."""
    query = f"{SELECT} AND number = :number{transaction.locking()}"
    return next(map(_record, transaction.rows(query, study=study, number=number)), None)


def change(transaction: Transaction, study: int, number: int, new: Callable[[Record], Record]) -> Record | None:
    """Replace a trial by what a function makes of it, and return that; None if there is no such trial.

    Nothing is written if the function returns the trial itself.
    """
    old = find(transaction, study, number)
    if old is None:
        return None
    made = new(old)
    if made is not old:
        transaction.rows(UPDATE, study=study, **_row(made))
    return made


def renew(transaction: Transaction, study: int, number: int, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Store a trial's new holder; False, and no change, if it has another holder than ``old``."""
    stored = change(transaction, study, number, lambda entry: replace(entry, holder=new) if _is(entry, old) else entry)
    return stored is not None and stored.holder is new


def take(transaction: Transaction, study: int, trial: Record, new: Mapping[str, Any]) -> bool:
    """Hand a pending trial over to a new holder; False if it has another holder than it had, or is finished."""

    def taken(its: Record) -> Record:
        if its.is_finished or not _is(its, trial.holder):
            return its
        began = its.started if its.state == "running" else datetime.now()
        return replace(its, state="running", started=began, holder=new)

    stored = change(transaction, study, trial.number, taken)
    return stored is not None and stored.holder is new


def release(transaction: Transaction, study: int, number: int, old: Mapping[str, Any]) -> None:
    """Let a running trial wait for a new holder, unless it has another holder than ``old``, or is finished."""

    def released(its: Record) -> Record:
        return replace(its, state="waiting", holder={}) if its.state == "running" and _is(its, old) else its

    change(transaction, study, number, released)


def report(
    transaction: Transaction, study: int, trial: Record, reports: Sequence[Reading], holder: Mapping[str, Any]
) -> None:
    """Store the intermediate results of a pending trial, and a sign of its holder."""

    def reported(its: Record) -> Record:
        if its.is_finished:
            return its
        present = holder if _is(its, trial.holder) else its.holder
        return replace(its, readings={VALUE: tuple(reports)}, is_stopped=trial.is_stopped, holder=present)

    change(transaction, study, trial.number, reported)


def tell(transaction: Transaction, study: int, outcome: Record) -> Record | None:
    """Store an outcome unless the trial has one; return the one that is stored, None if there is no such trial."""
    now = datetime.now()

    def finished(its: Record) -> Record:
        if its.is_finished:
            return its
        return replace(
            its,
            state="failed" if outcome.state == "failed" else "done",
            readings=outcome.readings,
            failure=outcome.failure,
            fidelity=outcome.fidelity or its.fidelity,
            block=outcome.block or its.block,
            seconds=outcome.seconds,
            stderr=outcome.stderr,
            is_stopped=outcome.is_stopped,
            ended=now,
        )

    stored = change(transaction, study, outcome.number, finished)
    return outcome if stored is not None and stored.ended is now else stored


def check(transaction: Transaction) -> None:
    """Raise ValueError if the row of a trial, of any study, is not what was written."""
    place = -1, -1
    while rows := transaction.rows(
        f"SELECT study, {COLUMNS} FROM noregret_trials WHERE study > :study OR (study = :study AND number > :number) "
        f"ORDER BY study, number LIMIT {AT_ONCE}",
        study=place[0],
        number=place[1],
    ):
        for _, *row in rows:
            _record(row)
        place = rows[-1][:2]


def _is(trial: Record, holder: Mapping[str, Any]) -> bool:
    """Return True if a trial has this holder.

    Holders with the same token are the same: a commit whose answer was lost may have changed the rest.
    """
    return trial.holder == holder or ("token" in holder and trial.holder.get("token") == holder["token"])


def _row(trial: Record) -> dict[str, Any]:
    """Row of a trial."""
    more = {"told": trial.told, "mark": trial.mark, "stderr": trial.stderr.replace("\0", "")}
    text = json.dumps(dump(trial) | {name: part for name, part in more.items() if part}, default=_number)
    ended = trial.ended and trial.ended.isoformat()
    return {
        "number": trial.number,
        "state": trial.state,
        "ended": ended,
        "holder": json.dumps(trial.holder),
        "revision": trial.revision,
        "document": text,
        "checksum": digest(trial.number, trial.state, ended, trial.revision, text),
    }


def _record(row: Iterable[Any]) -> Record:
    """Trial of a row; ValueError if it is not what was written."""
    number, state, ended, holder, revision, text, checksum = row
    if checksum != digest(number, state, ended, revision, text):
        raise ValueError(f"the checksum of trial {number} does not fit its result")
    document = json.loads(text)
    trial = load(document)
    more = {"told": tuple(document.get("told", ())), "mark": document.get("mark", "")}
    more |= {"stderr": document.get("stderr", ""), "holder": dict(json.loads(holder)), "revision": revision}
    return recorded(trial, **more)


def _number(value: Any) -> Any:
    """Number of NumPy as one of Python."""
    return value.item()


class OpenDatabase(Protocol):
    """An open database."""

    where: Database

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Transaction that is on the disk at the end."""

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Transaction that reads one state."""


class TrialTable:
    """All trials of a study, as of the last reading. Finished trials are read again only if they were corrected.

    ``study`` is the id of the study, and ``first`` the number of its first trial.
    """

    def __init__(self, storage: OpenDatabase, study: int, first: int = 0) -> None:
        self.study, self._storage, self._first = study, storage, first
        self.records: dict[int, Record] = {}
        self.pending: dict[int, Record] = {}
        """Trials without an outcome."""
        self._lock = Lock()

    @property
    def next(self) -> int:
        """Number of the next trial."""
        return self._first + len(self.records)

    def refresh(self) -> list[Record]:
        """Read new trials, outcomes and corrections; return all trials, by number."""
        with self._lock:
            with self._storage.snapshot() as transaction:
                self.check(transaction)
                numbers = ", ".join(map(str, self.pending))
                old = transaction.rows(f"{SELECT} AND number IN ({numbers})", study=self.study) if numbers else []
                revised = transaction.rows(
                    f"{SELECT} AND revision > 0 AND number < :next", study=self.study, next=self.next
                )
                query = f"{SELECT} AND number >= :next ORDER BY number"
                new = transaction.rows(query, study=self.study, next=self.next)
            with reading(self._storage.where):
                if [row[0] for row in new] != [*range(self.next, self.next + len(new))]:
                    raise ValueError("a trial is missing")
                old += [row for row in revised if row[4] != self.records[row[0]].revision]
                for record in map(_record, (*old, *new)):
                    self._enter(record)
            return list(self.records.values())

    def check(self, transaction: Transaction) -> None:
        """Raise an exception if the study is no longer there."""

    def changed(self, number: int, change_of: Callable[[Record], Record]) -> Record | None:
        """Store what a function makes of a finished trial, and return it; None if there is no such trial.

        ValueError if it has no outcome.
        """

        def revised(old: Record) -> Record:
            if not old.is_finished:
                raise ValueError(f"trial {number} has no outcome yet: tell it")
            new = change_of(old)
            return new if new is old else replace(new, revision=old.revision + 1)

        with self._storage.transaction() as transaction:
            self.check(transaction)
            return change(transaction, self.study, number, revised)

    def _enter(self, record: Record) -> None:
        self.records[record.number] = record
        if record.is_finished:
            self.pending.pop(record.number, None)
        else:
            self.pending[record.number] = record
