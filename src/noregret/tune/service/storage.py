"""Studies of a server in a database: opened once, read incrementally, written to in transactions."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple, TypeVar

import optuna
import sqlalchemy
from optuna.storages import get_storage

from noregret.optimizer import Observation
from noregret.tune.service.served import ServiceStudy
from noregret.tune.store import rows
from noregret.tune.store.checksums import broken_seals
from noregret.tune.store.databases.database import database_at
from noregret.tune.store.databases.sqlite import SQLite
from noregret.tune.store.faults import OPENING_SECONDS, PATIENCE_SECONDS, TROUBLE, explained, patiently, unreadable
from noregret.tune.store.identity import FORM, FORMAT, SELF, study_id
from noregret.tune.store.records import distributions
from noregret.tune.store.rows import Entry
from noregret.tune.study.study import Study, StudyError

LOG = logging.getLogger("uvicorn.error")
RESTORING = "noregret restore STUDY_FILE_WITH_THIS_STORAGE"
"""The command that lists copies."""
FIND = sqlalchemy.text(
    "SELECT study_id, key, value_json FROM studies JOIN study_user_attributes USING (study_id) WHERE study_name = :name"
)
ONE_STATE = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
"""Options of connections to PostgreSQL on which all statements of a transaction see the same state."""

T = TypeVar("T")


class Found(NamedTuple):
    """A study of the database: its id there, and what it is."""

    id: int
    identity: dict[str, Any]


class Storage:
    """A database with any number of studies.

    Parameters
    ----------
    url : str
        As ``storage`` of a study file.
    folder : Path
        Where relative paths start.
    """

    def __init__(self, url: str, folder: Path) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.url, self.stop = url, Event()
        self.where = database_at(url, folder, RESTORING)
        # SQLite has one writer at a time: threads wait for each other here, where waiting is cheap.
        self._alone: AbstractContextManager[Any] = Lock() if isinstance(self.where, SQLite) else nullcontext()
        with ExitStack() as using:
            self.patiently(lambda: self._open(using), OPENING_SECONDS)
            self._using = using.pop_all()

    def _open(self, using: ExitStack) -> None:
        using.close()
        using.enter_context(self.where.use(self.stop))
        with self.where.lock("open", self.stop):
            self.where.check(False)
            self._rdb = self.where.open(False)
        using.callback(self._rdb.engine.dispose)
        # The statements of a transaction in SQLite see one state of the database, those in PostgreSQL only if asked to.
        self._reading = (
            self._rdb.engine if isinstance(self.where, SQLite) else self._rdb.engine.execution_options(**ONE_STATE)
        )
        with self._rdb.engine.connect() as connection:
            broken = broken_seals(connection.exec_driver_sql)
        if broken:
            raise unreadable(self.where, f"the checksum of trial {broken[0]} does not fit its result")

    def close(self) -> None:
        """Make a last copy of the database, and end all connections."""
        self.stop.set()
        try:
            self.where.back_up()
        except (StudyError, *TROUBLE) as error:
            LOG.error("no copy was made at the end: %s", explained(error, self.where))
        finally:
            self._using.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Connection for one transaction, which is on the disk at the end."""
        with self._alone, self._rdb.engine.begin() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        """Connection for reading. All statements see the same state, whatever other processes commit meanwhile."""
        with self._alone, self._reading.begin() as connection:
            yield connection

    def find(self, name: str) -> Found | None:
        """The study of this name, None if there is none that noregret has made."""
        with self.snapshot() as connection:
            rows = connection.execute(FIND, {"name": name}).all()
        attributes = {key: json.loads(text) for _, key, text in rows}
        if FORM not in attributes:
            return None
        if attributes[FORM] > FORMAT:
            raise StudyError(f"study {name!r} was written by a newer noregret: upgrade this one")
        return Found(int(rows[0][0]), attributes[SELF])

    def create(self, study: Study) -> None:
        """Create a study, if there is none of its name."""
        with self.where.lock("open", self.stop):
            study_id(get_storage(self._rdb), study, readonly=False)
            self._rdb.remove_session()

    def patiently(self, call: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        """Call, and retry after errors that may pass."""
        return patiently(call, self.where, self.stop, seconds)


class Ledger:
    """All trials of a study, as of the last reading. Finished trials never change, and are read once."""

    def __init__(self, number: int, study: ServiceStudy) -> None:
        self.study = number
        self.distributions = distributions(study.space)
        self._constraints = list(study.constraints)
        self.entries: dict[int, Entry] = {}
        self.running: dict[int, Entry] = {}
        self.fresh: set[int] = set()
        """Finished trials that no suggestion knew of."""
        self.told: list[Observation] = []
        """Answers that suggestions knew of, in the order in which they did."""
        self._order: set[int] = set()
        self._last = 0

    def read_on(self, connection: Any) -> None:
        """Read new trials and outcomes, on a connection of `Storage.snapshot`."""
        new = rows.read_since(connection, self.study, self._last, self.distributions)
        running = [entry.id for entry in self.running.values()]
        for entry in (*rows.read(connection, running, self.distributions), *new):
            self._enter(entry)
        for entry in new:
            self._order_answers(entry.record.told)
            self._last = entry.id

    def answers(self, numbers: Iterable[int]) -> list[Observation]:
        """The answers of these trials."""
        return [self._told(number) for number in numbers]

    def unknown(self, known: Iterable[int]) -> list[Entry]:
        """Trials that are pending for a suggestion that knows of these fresh ones, by number."""
        missing = self.running.keys() | self.fresh.difference(known)
        return [self.entries[number] for number in sorted(missing)]

    @property
    def newest(self) -> int:
        """The number of the last trial, -1 if there is none."""
        return len(self.entries) - 1

    def outstanding(self) -> list[Entry]:
        """Pending trials, by number."""
        return sorted(self.running.values(), key=lambda entry: entry.record.number)

    def _enter(self, entry: Entry) -> None:
        number = entry.record.number
        self.entries[number] = entry
        if not entry.record.finished:
            self.running[number] = entry
        else:
            self.running.pop(number, None)
            self.fresh.add(number)

    def _order_answers(self, numbers: Any) -> None:
        for number in numbers:
            if number not in self._order:
                self._order.add(number)
                self.fresh.discard(number)
                self.told.append(self._told(number))

    def _told(self, number: int) -> Observation:
        record = self.entries[number].record
        assert record.finished
        constraints = {name: record.constraints.get(name) for name in self._constraints}
        return Observation(record.params, record.value, record.noise, constraints, record.context)
