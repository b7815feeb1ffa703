"""An open database: transactions, consistent reads, and the studies that it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from threading import Event, Lock
from typing import Any, NamedTuple, TypeVar

import optuna
import sqlalchemy

from noregret.optimizer import State
from noregret.tune.store.checksums import broken_seals
from noregret.tune.store.databases.copies import record_deletion
from noregret.tune.store.databases.database import database_at
from noregret.tune.store.databases.sqlite import SQLite
from noregret.tune.store.faults import OPENING_SECONDS, PATIENCE_SECONDS, patiently, unreadable
from noregret.tune.store.identity import FIRST, FORM, FORMAT, INCARNATION, SELF, form_of, needed_form
from noregret.tune.store.records import STATES
from noregret.tune.study.study import NotYet, Study, StudyError, without_password

BACKUP_SECONDS = 60.0
"""Age of the last copy after which another is made."""
RESTORING = "noregret restore STUDY_FILE_WITH_THIS_STORAGE"
"""The command that lists copies."""
STUDIES = sqlalchemy.text("SELECT study_id, study_name FROM studies ORDER BY study_id")
CREATE = sqlalchemy.text("INSERT INTO studies (study_name) VALUES (:name) RETURNING study_id")
DIRECT = {
    goal: sqlalchemy.text(
        f"INSERT INTO study_directions (direction, study_id, objective) VALUES ('{goal.upper()}', :study, :objective)"
    )
    for goal in ("minimize", "maximize")
}
"""Statements that store the goal of an objective of a study."""
ANY_TRIAL = sqlalchemy.text("SELECT 1 FROM trials WHERE study_id = :study LIMIT 1")
FIND = sqlalchemy.text(
    "SELECT study_id, key, value_json FROM studies JOIN study_user_attributes USING (study_id) WHERE study_name = :name"
)
ATTRIBUTES = sqlalchemy.text("SELECT key, value_json FROM study_user_attributes WHERE study_id = :study")
SET_ATTRIBUTE = sqlalchemy.text(
    "INSERT INTO study_user_attributes (study_id, key, value_json) VALUES (:study, :key, :json) "
    "ON CONFLICT (study_id, key) DO UPDATE SET value_json = excluded.value_json"
)
LOCK = sqlalchemy.text("SELECT study_id FROM studies WHERE study_id = :study FOR UPDATE")
LOCK_TRIALS = sqlalchemy.text("SELECT trial_id FROM trials WHERE study_id = :study ORDER BY trial_id FOR UPDATE")
PRESENT = sqlalchemy.text(
    "SELECT value_json FROM studies LEFT JOIN study_user_attributes "
    f"ON study_user_attributes.study_id = studies.study_id AND key = '{INCARNATION}' WHERE studies.study_id = :study"
)
RENAME = sqlalchemy.text(
    "UPDATE studies SET study_name = :aside WHERE study_id = :study AND study_name = :name AND NOT EXISTS "
    "(SELECT 1 FROM trials WHERE trials.study_id = :study AND state = 'COMPLETE')"
)
LONGEST_NAME = 512
"""Number of characters of the name of a study, in Optuna's tables."""
OF_TRIALS = ("params", "values", "intermediate_values", "user_attributes", "system_attributes", "heartbeats")
OF_STUDY = ("trials", "study_directions", "study_user_attributes", "study_system_attributes", "studies")
DELETE = [
    *(
        f"DELETE FROM trial_{name} WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)"
        for name in OF_TRIALS
    ),
    *(f"DELETE FROM {name} WHERE study_id = :study" for name in OF_STUDY),
]
"""Statements that delete all rows of a study in Optuna's tables."""
OF_KIND = (
    f"SELECT study_id FROM study_user_attributes AS its WHERE key = '{SELF}' AND value_json LIKE :kind AND "
    f"EXISTS (SELECT 1 FROM study_user_attributes WHERE study_id = its.study_id AND key = '{FORM}')"
)
LIST = sqlalchemy.text(
    "SELECT study_id, study_name, value_json FROM studies JOIN study_user_attributes USING (study_id) "
    f"WHERE key = '{SELF}' AND study_id IN ({OF_KIND}) AND study_name > :after ORDER BY study_name LIMIT :limit"
)
STATES_OF = (
    "SELECT study_id, CAST(state AS VARCHAR), COUNT(*), MAX(datetime_complete) FROM trials "
    "WHERE study_id IN ({}) GROUP BY study_id, state"
)
COUNT_STUDIES = sqlalchemy.text(f"SELECT COUNT(*) FROM ({OF_KIND}) AS found")
COUNT_TRIALS = sqlalchemy.text(
    f"SELECT CAST(state AS VARCHAR), COUNT(*) FROM trials WHERE study_id IN ({OF_KIND}) GROUP BY state"
)
NEXT_NUMBERS = "noregret_next_numbers"
"""Table of deleted studies: by name, the number that a new study of that name begins with."""
MAKE_NEXT = sqlalchemy.text(
    f"CREATE TABLE IF NOT EXISTS {NEXT_NUMBERS} "
    f"(study_name VARCHAR({LONGEST_NAME}) PRIMARY KEY, number INTEGER NOT NULL)"
)
NEXT = sqlalchemy.text(f"SELECT number FROM {NEXT_NUMBERS} WHERE study_name = :name")
SET_NEXT = sqlalchemy.text(
    f"INSERT INTO {NEXT_NUMBERS} SELECT CAST(:name AS VARCHAR), COALESCE(MAX(number) + 1, :first) FROM trials "
    "WHERE study_id = :study ON CONFLICT (study_name) DO UPDATE SET number = excluded.number"
)
ONE_STATE = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
"""Options of connections to PostgreSQL on which all statements of a transaction see the same state."""

T = TypeVar("T")


class Found(NamedTuple):
    """A study of the database: its id there, what it is, and the incarnation that tells it from a later one."""

    id: int
    identity: dict[str, Any]
    incarnation: str | None = None
    """None if an earlier version made it."""
    first: int = 0
    """Number of its first trial: beyond those of earlier studies of its name, whose late answers it must not take."""

    def is_in(self, connection: Any) -> bool:
        """Return True if the study is in the database, and not another one with its id."""
        rows = connection.execute(PRESENT, {"study": self.id}).all()
        return [None if text is None else json.loads(text) for (text,) in rows] == [self.incarnation]


class Listed(NamedTuple):
    """A study of a list: its name, what it is, the number of its trials by state, and the time of the last outcome."""

    name: str
    identity: dict[str, Any]
    states: dict[State, int]
    last: datetime | None


class Storage:
    """A database with any number of studies, for all threads of a process.

    Parameters
    ----------
    url : str
        As ``storage`` of a study file.
    folder : Path
        Where relative paths start.
    restoring : str
        The command that lists copies, for messages.
    readonly : bool
        Read only; nothing is created or changed.
    stop : Event, optional
        Ends all waiting when it is set.
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
        optuna.logging.set_verbosity(optuna.logging.WARNING)
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
            self.engine = self.where.open(self.readonly)
        using.callback(self.engine.dispose)
        # The statements of a transaction in SQLite see one state of the database, those in PostgreSQL only if asked to.
        is_file = isinstance(self.where, SQLite)
        self._reading = self.engine if is_file else self.engine.execution_options(**ONE_STATE)

    def _opening(self) -> AbstractContextManager[Any]:
        """Lock under which tables and studies are created."""
        return nullcontext() if self.readonly else self.where.lock("open", self.stop)

    def close(self) -> None:
        """End all connections."""
        self._using.close()

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Connection for one transaction, which is on the disk at the end."""
        with self._alone, self.engine.begin() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        """Connection for reading. All statements see the same state, whatever other processes commit meanwhile."""
        with self._alone, self._reading.begin() as connection:
            yield connection

    def patiently(self, call: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        """Call, and retry after errors that may pass."""
        return patiently(call, self.where, self.stop, seconds)

    def check_seals(self, studies: str = "SELECT study_id FROM studies") -> None:
        """Raise StudyError if the rows of a trial do not fit its checksum; ``studies`` selects the ids of studies."""
        with self.snapshot() as connection:
            broken = broken_seals(connection.exec_driver_sql, studies)
        if broken:
            raise unreadable(self.where, f"the checksum of trial {broken[0]} does not fit its result")

    def study_id(self, study: Study) -> int:
        """Id of a study, which is created if there is none of its name; StudyError if noregret has not made it."""
        with self._opening():
            with self.snapshot() as connection:
                known = {name: int(found) for found, name in connection.execute(STUDIES)}
                rows = connection.execute(ATTRIBUTES, {"study": known.get(study.name, -1)}).all()
            if study.name not in known and self.readonly:
                others = f": it has {', '.join(map(repr, known))}" if known else ""
                raise NotYet(f"storage {without_password(study.storage)} has no study {study.name!r} yet{others}")
            if study.name not in known:
                return self._create(study)
            number, attributes = known[study.name], {key: json.loads(text) for key, text in rows}
            change = needed_form(study, attributes, lambda: self.readonly or self._has_trials(number))
            if change and not self.readonly:
                self.set_attributes(number, change)
            return number

    def _create(self, study: Study) -> int:
        """Make a study, with all that says what it is, and return its id."""
        with self.transaction() as connection:
            number = int(connection.execute(CREATE, {"name": study.name}).scalar_one())
            for objective, goal in enumerate(study.goals.values() or [study.goal]):
                connection.execute(DIRECT[goal], {"study": number, "objective": objective})
            first = self._next_number(connection, study.name)
            self._set(connection, number, form_of(study) | ({FIRST: first} if first else {}))
        return number

    def _next_number(self, connection: Any, name: str) -> int:
        """Number that follows those of deleted studies of this name."""
        if not sqlalchemy.inspect(connection).has_table(NEXT_NUMBERS):
            return 0
        return int(connection.execute(NEXT, {"name": name}).scalar() or 0)

    def _has_trials(self, study: int) -> bool:
        with self.snapshot() as connection:
            return connection.execute(ANY_TRIAL, {"study": study}).first() is not None

    def find(self, name: str) -> Found | None:
        """The study of this name, None if there is none that noregret has made."""
        with self.snapshot() as connection:
            rows = connection.execute(FIND, {"name": name}).all()
        attributes = {key: json.loads(text) for _, key, text in rows}
        if FORM not in attributes:
            return None
        if attributes[FORM] > FORMAT:
            raise StudyError(f"study {name!r} was written by a newer noregret: upgrade this one")
        return Found(int(rows[0][0]), attributes[SELF], attributes.get(INCARNATION), attributes.get(FIRST, 0))

    def listed(self, kind: str, after: str = "", limit: int = 1000) -> list[Listed]:
        """Studies with an identity of this kind, by name, from the first one ``after`` a name on."""
        with self.snapshot() as connection:
            rows = connection.execute(LIST, {"kind": _pattern(kind), "after": after, "limit": limit}).all()
            counts = connection.exec_driver_sql(
                STATES_OF.format(", ".join(str(row[0]) for row in rows) or "NULL")
            ).all()
        states: dict[int, dict[State, int]] = {}
        last: dict[int, datetime] = {}
        for study, state, number, time in counts:
            states.setdefault(study, {})[STATES[state]] = number
            ended = datetime.fromisoformat(time) if isinstance(time, str) else time
            if ended is not None:
                last[study] = max(last.get(study, ended), ended)
        return [Listed(name, json.loads(text), states.get(id, {}), last.get(id)) for id, name, text in rows]

    def counted(self, kind: str) -> tuple[int, dict[State, int]]:
        """Number of studies with an identity of this kind, and of their trials by state."""
        with self.snapshot() as connection:
            studies = connection.execute(COUNT_STUDIES, {"kind": _pattern(kind)}).scalar()
            states = connection.execute(COUNT_TRIALS, {"kind": _pattern(kind)}).all()
        return int(studies), {STATES[state]: number for state, number in states}

    def delete(self, name: str, study: Found) -> None:
        """Delete a study and all its trials in one transaction; no effect if it has been deleted."""
        with self._opening(), self.transaction() as connection:
            if connection.dialect.name == "postgresql":  # wait for transactions that write, which lock in this order
                for lock in (LOCK, LOCK_TRIALS):
                    connection.execute(lock, {"study": study.id})
            if not study.is_in(connection):
                return
            if isinstance(self.where, SQLite):
                record_deletion(connection, name, study.incarnation)
            connection.execute(MAKE_NEXT)
            connection.execute(SET_NEXT, {"name": name, "study": study.id, "first": study.first})
            for statement in DELETE:
                connection.execute(sqlalchemy.text(statement), {"study": study.id})

    def set_aside(self, name: str, study: Found) -> str:
        """Give a study another name if it has no result; return that name, empty if it has one or is gone."""
        ending = f" (set aside {study.id})"
        aside = name[: LONGEST_NAME - len(ending)] + ending
        with self.transaction() as connection:
            if not connection.execute(RENAME, {"aside": aside, "study": study.id, "name": name}).rowcount:
                return ""
            if isinstance(self.where, SQLite):  # older copies have its trials under the name that is no longer its own
                record_deletion(connection, name, study.incarnation)
        return aside

    def attributes(self, study: int) -> dict[str, Any]:
        """Attributes of a study."""
        with self.snapshot() as connection:
            rows = connection.execute(ATTRIBUTES, {"study": study}).all()
        return {key: json.loads(text) for key, text in rows}

    def set_attributes(self, study: int, attributes: Mapping[str, Any]) -> None:
        """Store attributes of a study, all or none."""
        with self.transaction() as connection:
            self._set(connection, study, attributes)

    def _set(self, connection: Any, study: int, attributes: Mapping[str, Any]) -> None:
        values = [{"study": study, "key": key, "json": json.dumps(value)} for key, value in attributes.items()]
        connection.execute(SET_ATTRIBUTE, values)


def _pattern(kind: str) -> str:
    """Pattern of the JSON of an identity whose first key this is."""
    return f'{{"{kind}": %'
