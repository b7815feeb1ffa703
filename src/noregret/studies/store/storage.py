"""An open database: transactions, consistent reads, and the studies that it holds.

A deleted study keeps its row, without a document, and the number after its last trial: late answers do not go to a new
study of its name, and older copies of the database need not be kept for its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple, TypeVar

from noregret.optimizer import State
from noregret.studies.store import earlier, trials
from noregret.studies.store.databases import tables
from noregret.studies.store.databases.connections import Transaction
from noregret.studies.store.databases.database import database_at
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.store.faults import OPENING_SECONDS, PATIENCE_SECONDS, patiently, reading
from noregret.studies.store.identity import FORM, FORMAT, SELF, check_form, form_of
from noregret.studies.study.study import NotYet, Study, StudyError, without_password

BACKUP_SECONDS = 60.0
"""Age of the last copy after which another is made."""
RESTORING = "noregret restore STUDY_FILE_WITH_THIS_STORAGE"
"""The command that lists copies."""
LONGEST_NAME = 512
"""Number of characters of the name of a study."""
STUDY = "SELECT id, name, incarnation, first, document, checksum FROM noregret_studies WHERE deleted IS NULL"

T = TypeVar("T")


class StoredStudy(NamedTuple):
    """A study of the database: its id there, what it is, and the incarnation that tells it from others in copies."""

    id: int
    identity: dict[str, Any]
    incarnation: str = ""
    first: int = 0
    """Number of its first trial: beyond those of earlier studies of its name, whose late answers it must not take."""

    def is_in(self, transaction: Transaction) -> bool:
        """Return True if the study is in the database; a transaction that writes keeps it there until its end."""
        query = (
            f"SELECT 1 FROM noregret_studies WHERE id = :id AND deleted IS NULL{transaction.locking('FOR KEY SHARE')}"
        )
        return bool(transaction.rows(query, id=self.id))


class Listed(NamedTuple):
    """A study of a list: its name, what it is, the number of its trials by state, and the time of the last outcome."""

    name: str
    identity: dict[str, Any]
    states: dict[State, int]
    last: datetime | None


class Storage:
    """A database with any number of studies, for all threads of a process.

    ``url`` is written as ``storage`` in a study file, and relative paths start at ``folder``. ``restoring`` is the
    command that lists copies, for messages. With ``readonly`` nothing is created or changed. ``stop`` ends all waiting
    when it is set.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        restoring: str = RESTORING,
        *,
        readonly: bool = False,
        stop: Event | None = None,
    ) -> None:
        self.url, self.readonly, self.stop = url, readonly, stop or Event()
        self.where = database_at(url, folder, restoring)
        # SQLite has one writer at a time: threads wait for each other here, where waiting is cheap.
        self._alone: AbstractContextManager[Any] = Lock() if isinstance(self.where, SQLite) else nullcontext()
        with ExitStack() as using:
            self.patiently(lambda: self._open(using), OPENING_SECONDS)
            self._using = using.pop_all()

    def _open(self, using: ExitStack) -> None:
        using.close()
        if not self.readonly:
            using.enter_context(self.where.use(self.stop))
        with self._opening():
            self.where.check(self.readonly)
            self._pool = self.where.open(self.readonly)
            using.callback(self._pool.close)
            if self.readonly:
                self._pool = earlier.readable(self.where, self._pool, using)
            else:
                earlier.take_over(self.where, self._pool)
                with self.transaction() as transaction:
                    tables.make(transaction)

    def _opening(self) -> AbstractContextManager[Any]:
        """Lock under which tables and studies are created."""
        return nullcontext() if self.readonly else self.where.lock("open", self.stop)

    def close(self) -> None:
        """End all connections."""
        self._using.close()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Transaction that is on the disk at the end."""
        with self._alone, self._pool.transaction() as transaction:
            yield transaction

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        """Transaction that reads: all statements see the same state, whatever other processes commit meanwhile."""
        with self._pool.transaction(is_reading=True) as transaction:
            yield transaction

    def patiently(self, call: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        """Call, and retry after errors that may pass."""
        return patiently(call, self.where, self.stop, seconds)

    def check(self) -> None:
        """Raise StudyError if the row of a trial is not what was written."""
        with reading(self.where), self.snapshot() as transaction:
            trials.check(transaction)

    def study(self, study: Study) -> StoredStudy:
        """The study in the database, which is created if there is none of its name."""
        with self._opening():
            known = self._found(study.name)
            if known is not None:
                check_form(study, known[1])
                return known[0]
            if self.readonly:
                with self.snapshot() as transaction:
                    names = transaction.rows("SELECT name FROM noregret_studies WHERE deleted IS NULL ORDER BY id")
                others = f": it has {', '.join(repr(name) for (name,) in names)}" if names else ""
                raise NotYet(f"storage {without_password(study.storage)} has no study {study.name!r} yet{others}")
            with self.transaction() as transaction:
                earlier.check_foreign(transaction, study)
                about = form_of(study)
                number, first, incarnation = tables.add_study(transaction, study.name, about)
            return StoredStudy(number, about[SELF], incarnation, first)

    def find(self, name: str) -> StoredStudy | None:
        """The study of this name, None if there is none."""
        known = self._found(name)
        if known is not None and known[1][FORM] > FORMAT:
            raise StudyError(f"study {name!r} was written by a newer noregret: upgrade this one")
        return known and known[0]

    def _found(self, name: str) -> tuple[StoredStudy, dict[str, Any]] | None:
        with self.snapshot() as transaction:
            rows = transaction.rows(f"{STUDY} AND name = :name", name=name)
        if not rows:
            return None
        ((number, _, incarnation, first, document, checksum),) = rows
        with reading(self.where):
            about = tables.about_of(document, checksum)
        return StoredStudy(number, about[SELF], incarnation, first), about

    def listed(self, kind: str, after: str = "", limit: int = 1000) -> list[Listed]:
        """Studies of this kind, by name, from the first one ``after`` a name on."""
        with self.snapshot() as transaction, reading(self.where):
            query = f"{STUDY} AND kind = :kind AND name > :after ORDER BY name LIMIT :limit"
            rows = transaction.rows(query, kind=kind, after=after, limit=limit)
            numbers = ", ".join(str(row[0]) for row in rows) or "NULL"
            counts = transaction.rows(
                "SELECT study, state, COUNT(*), MAX(ended) FROM noregret_trials "
                f"WHERE study IN ({numbers}) GROUP BY study, state"
            )
            known = [(number, name, tables.about_of(*written)) for number, name, _, _, *written in rows]
        states: dict[int, dict[State, int]] = {}
        last: dict[int, str] = {}
        for study, state, number, ended in counts:
            states.setdefault(study, {})[state] = number
            last[study] = max(last.get(study, ""), ended or "")
        return [
            Listed(name, about[SELF], states.get(number, {}), _time(last.get(number, "")))
            for number, name, about in known
        ]

    def counted(self, kind: str) -> tuple[int, dict[State, int]]:
        """Number of studies of this kind, and of their trials by state."""
        which = "SELECT id FROM noregret_studies WHERE deleted IS NULL AND kind = :kind"
        with self.snapshot() as transaction:
            studies = transaction.rows(which, kind=kind)
            query = f"SELECT state, COUNT(*) FROM noregret_trials WHERE study IN ({which}) GROUP BY state"
            return len(studies), dict(transaction.rows(query, kind=kind))

    def delete(self, study: StoredStudy) -> None:
        """Delete a study and all its trials in one transaction; no effect if it has been deleted."""
        with self._opening(), self.transaction() as transaction:
            query = f"SELECT 1 FROM noregret_studies WHERE id = :id AND deleted IS NULL{transaction.locking()}"
            if not transaction.rows(query, id=study.id):
                return
            last = "SELECT COALESCE(MAX(number) + 1, :first) FROM noregret_trials WHERE study = :id"
            update = f"UPDATE noregret_studies SET deleted = ({last}), document = '', checksum = '' WHERE id = :id"
            transaction.rows(update, id=study.id, first=study.first)
            transaction.rows("DELETE FROM noregret_trials WHERE study = :id", id=study.id)

    def set_aside(self, name: str, study: StoredStudy) -> str:
        """Give a study another name if it has no result; return that name, empty if it has one or is gone."""
        ending = f" (set aside {study.id})"
        aside = name[: LONGEST_NAME - len(ending)] + ending
        with self.transaction() as transaction:
            renamed = transaction.rows(
                "UPDATE noregret_studies SET name = :aside WHERE id = :id AND name = :name AND deleted IS NULL "
                "AND NOT EXISTS (SELECT 1 FROM noregret_trials WHERE study = :id AND state IN ('done', 'withdrawn')) "
                "RETURNING id",
                aside=aside,
                id=study.id,
                name=name,
            )
        return aside if renamed else ""

    def drop_old(self) -> list[str]:
        """Delete what earlier versions have stored of studies that are in our own tables; the names of these."""
        with self.transaction() as transaction:
            return earlier.drop(transaction)

    def attributes(self, study: int) -> dict[str, Any]:
        """All that is stored of a study."""
        with self.snapshot() as transaction, reading(self.where):
            return self._attributes(transaction, study)

    def set_attributes(self, study: int, attributes: Mapping[str, Any]) -> None:
        """Store something of a study, all or none."""
        with self.transaction() as transaction:
            about = self._attributes(transaction, study) | dict(attributes)
            update = "UPDATE noregret_studies SET document = :document, checksum = :checksum WHERE id = :id"
            transaction.rows(update, id=study, **tables.document_of(about))

    def _attributes(self, transaction: Transaction, study: int) -> dict[str, Any]:
        rows = transaction.rows(f"{STUDY} AND id = :id{transaction.locking()}", id=study)
        return tables.about_of(*rows[0][-2:]) if rows else {}


def _time(stored: str) -> datetime | None:
    return datetime.fromisoformat(stored) if stored else None
