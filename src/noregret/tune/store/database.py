"""Opening databases, SQLite files and PostgreSQL servers, so that what they acknowledge is on the disk.

The tables are Optuna's. A SQLite file is kept in WAL mode with ``synchronous=FULL``: a commit returns once the log is
flushed. Every transaction that may write starts with ``BEGIN IMMEDIATE``, so that what it reads is still so when it
writes; SQLite has no ``SELECT ... FOR UPDATE``, on which Optuna relies elsewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event, Timer
from typing import Any, Protocol
from urllib.parse import quote

import sqlalchemy
from optuna.storages import RDBStorage
from sqlalchemy.pool import NullPool, Pool, QueuePool

from noregret.files import sync_folder
from noregret.tune.store.copies import LOGS, Copy, copies, examine, flush, fresh, make_copy, results, set_aside
from noregret.tune.store.locks import Interrupted, file_lock, server_lock
from noregret.tune.study.study import NotYet, Study, StudyError, without_password

BUSY_SECONDS = 60
"""How long to wait for another process that is writing."""
ANSWER_SECONDS = 30.0
"""How long to wait for a server's answer before the connection is given up; the server gives up a little earlier."""
CONNECTING: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(1000 * ANSWER_SECONDS),
}
"""A server that does not answer is given up, and one that is gone is noticed even if nobody says anything."""
LIMITS = "SET statement_timeout = '20s'; SET idle_in_transaction_session_timeout = '60s'"
"""How long the server works on one statement, and waits inside a transaction for the next."""
DURABLE = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
"""What makes a commit wait until it is on the disk, and readers and writers not wait for each other."""


class Database(Protocol):
    """Where studies are kept."""

    @property
    def remedy(self) -> str:
        """What to do if it is damaged, in a sentence."""
        ...

    def open(self, readonly: bool) -> RDBStorage:
        """Optuna's storage on it; made if need be, unless ``readonly``."""
        ...

    def use(self, stop: Event) -> AbstractContextManager[None]:
        """Keep others from replacing the database, as long as it is written to."""
        ...

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[Any]:
        """Keep all other processes from what also needs this lock; a killed process gives it up by itself.

        Gives the connection that holds the lock, through which nothing is written once the lock is lost; None where a
        lock cannot be lost.
        """
        ...

    def check(self, readonly: bool) -> None:
        """An exception if the database is damaged, or missing beside its copies."""
        ...

    def back_up(self, older_than: float = 0.0) -> None:
        """Copy the database if the last copy is so many seconds old, where this is not somebody else's business."""
        ...


def database(study: Study) -> Database:
    """The database of a study; relative paths start from its folder."""
    try:
        parsed = sqlalchemy.make_url(study.storage)
    except ValueError:  # of the port, say
        raise StudyError("storage must be a URL such as postgresql://USER@HOST:5432/DATABASE") from None
    except sqlalchemy.exc.ArgumentError:
        raise StudyError(
            f"storage must be a URL such as sqlite:///study.db, got {without_password(study.storage)!r}"
        ) from None
    kind = parsed.get_backend_name()
    plain = parsed.database and not parsed.query and not parsed.database.startswith((":memory:", "file:"))
    if kind == "sqlite" and parsed.database and plain:
        path = study.folder / parsed.database
        if path.exists() and not path.is_file():
            raise StudyError(f"storage {path}: is not a file: choose another name")
        return SQLite(path, shlex.join(["noregret", "restore", str(study.path)]))
    if "@" in (parsed.host or ""):
        raise StudyError("storage: an @ in a password must be written as %40")
    if kind == "postgresql":
        return PostgreSQL(parsed.set(drivername="postgresql+psycopg"))
    raise StudyError(
        f"storage must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got {without_password(study.storage)!r}"
    )


@dataclass(frozen=True)
class SQLite:
    """A database in a file."""

    path: Path
    restoring: str
    """The command that lists its copies."""

    def __str__(self) -> str:
        return str(self.path)

    @property
    def remedy(self) -> str:
        if copies(self.path):
            return f"'{self.restoring}' lists its copies and puts one back"
        return "It has no copy; to start anew, move it away"

    def open(self, readonly: bool) -> RDBStorage:
        if readonly and not self.path.exists():
            raise NotYet(f"{self} does not exist yet: 'noregret tune' makes it")
        if not self.path.exists():
            self._part_with(LOGS)
            self._create()
        return self._storage(self.path, () if readonly else DURABLE, readonly)

    def use(self, stop: Event) -> AbstractContextManager[None]:
        return file_lock(self._users, stop, shared=True)

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[Any]:
        return file_lock(self.path.with_name(f"{self.path.name}.lock"), stop)

    def check(self, readonly: bool) -> None:
        if not self.path.exists():
            return self._refuse_beside_copies()
        if not readonly and self._has_foreign_log(self.path):
            self._part_with(LOGS)
        with closing(self._connect(self.path)) as connection:
            examine(connection)
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'studies'").fetchone():
                raise StudyError(f"storage {self}: is the database of another program: choose another file")

    def back_up(self, older_than: float = 0.0) -> None:
        with self.lock("copy"):
            made = copies(self.path)
            if made and 0 <= time.time() - made[0].time < older_than:
                return
            with closing(self._connect(self.path)) as source:
                make_copy(self.path, source)

    def copies(self) -> list[Copy]:
        """The copies, the newest first; StudyError if there is none."""
        found = copies(self.path)
        if not found:
            raise StudyError(f"storage {self}: has no copies: 'noregret tune' makes one at the first result")
        return found

    def restore(self, number: int) -> list[Path]:
        """Put a copy in the place of the database; the names that what was there has now."""
        chosen = next((copy for copy in self.copies() if copy.number == number), None)
        if chosen is None:
            raise StudyError(f"storage {self}: has no copy {number}: '{self.restoring}' lists those it has")
        now = Event()
        now.set()
        try:
            with file_lock(self._users, now):
                return self._put_back(chosen)
        except Interrupted:
            raise StudyError(f"storage {self}: is being worked on: end 'noregret tune' first") from None

    def _put_back(self, chosen: Copy) -> list[Path]:
        temporary = fresh(self.path.with_name(f".{self.path.name}.restoring"))
        shutil.copyfile(chosen.path, temporary)
        try:
            results(temporary)
        except sqlite3.Error as error:
            temporary.unlink()
            raise StudyError(f"{chosen.path} is damaged ({error}): choose another copy") from error
        flush(temporary)
        moved = set_aside(self.path, ("", *LOGS))
        os.replace(temporary, self.path)
        sync_folder(self.path.parent)
        return moved

    @property
    def _users(self) -> Path:
        return self.path.with_name(f"{self.path.name}.users")

    def _refuse_beside_copies(self) -> None:
        found = copies(self.path) if self.path.parent.is_dir() else []
        if found:
            raise StudyError(
                f"storage {self}: is missing, but has copies, the newest {found[0].path}. '{self.restoring}' lists "
                f"them and puts one back; to start anew, move all of them away"
            )

    def _has_foreign_log(self, path: Path) -> bool:
        """Whether the log beside a file was written for another one, which had its name before.

        New files and copies say in their header that they have no log (bytes 18 and 19 are 1), until they are opened
        for writing; SQLite would apply one all the same.
        """
        if not path.with_name(f"{path.name}-wal").exists():
            return False
        with open(path, "rb") as file:
            return file.read(20)[18:] == b"\1\1"

    def _part_with(self, endings: Sequence[str]) -> None:
        """Move files that do not belong to the database aside, and say so."""
        moved = set_aside(self.path, endings)
        if moved:
            names = " and ".join(map(str, moved))
            print(f"noregret: found the log of another file beside {self}; it is now {names}", file=sys.stderr)

    def _create(self) -> None:
        """Make all tables in a file of another name, so that nobody ever meets half of them."""
        temporary = fresh(self.path.with_name(f".{self.path.name}.new"))
        self._storage(temporary, ["PRAGMA synchronous=OFF"]).engine.dispose()
        flush(temporary)
        os.replace(temporary, self.path)
        sync_folder(self.path.parent)

    def _storage(self, path: Path, pragmas: Sequence[str], readonly: bool = False) -> RDBStorage:
        creator: Any = lambda: self._connect(path, pragmas, readonly)  # noqa: E731
        pool = QueuePool(creator, pool_size=64)
        storage = _on_pool(f"sqlite:///{path}", pool)
        begin = "BEGIN" if readonly else "BEGIN IMMEDIATE"
        sqlalchemy.event.listen(storage.engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return storage

    def _connect(self, path: Path, pragmas: Sequence[str] = (), readonly: bool = True) -> sqlite3.Connection:
        address = f"file:{quote(str(path))}?mode={'ro' if readonly else 'rwc'}"
        if readonly and (self._nobody_can_write(path) or self._has_foreign_log(path)):
            address += "&immutable=1"  # SQLite then neither wants to make a log nor looks for one
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in pragmas:
            connection.execute(pragma)
        return connection

    def _nobody_can_write(self, path: Path) -> bool:
        return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


@dataclass(frozen=True, repr=False)
class PostgreSQL:
    """A database on a server. It is looked after, and backed up, by whoever runs the server."""

    url: sqlalchemy.URL

    def __str__(self) -> str:
        return without_password(self.url.render_as_string(hide_password=True)).replace("+psycopg", "")

    def __repr__(self) -> str:
        return f"PostgreSQL({self})"

    def hide_passwords(self, said: str) -> str:
        """What a driver said, without the passwords of the URL."""
        secrets = [self.url.password, *(value for key, value in self.url.query.items() if key.endswith("password"))]
        for secret in sorted(map(str, filter(None, secrets)), key=len, reverse=True):
            said = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", said)
        return said

    @property
    def remedy(self) -> str:
        return "Have the server's own backup put back; to start anew, give the study another name"

    def open(self, readonly: bool) -> RDBStorage:
        pool = self._engine(pool_size=64).pool
        with nullcontext() if readonly else self.lock("tables"):
            return _on_pool(self.url.render_as_string(hide_password=False), pool, skip_table_creation=readonly)

    def use(self, stop: Event) -> AbstractContextManager[None]:
        return nullcontext()

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[Any]:
        return server_lock(self._engine(poolclass=NullPool), name, stop)

    def check(self, readonly: bool) -> None:
        pass

    def back_up(self, older_than: float = 0.0) -> None:
        pass

    def _engine(self, **options: Any) -> Any:
        engine = sqlalchemy.create_engine(self.url, pool_pre_ping=True, connect_args=CONNECTING, **options)
        sqlalchemy.event.listen(engine, "do_connect", _connected)
        sqlalchemy.event.listen(engine, "connect", _prepare)
        return engine


def _on_pool(url: str, pool: Pool, **options: Any) -> RDBStorage:
    """Optuna's storage on connections of ours, which are closed if it cannot work with them."""
    address = url.replace("{", "{{").replace("}", "}}")
    try:
        storage = RDBStorage(address, engine_kwargs={"pool": pool}, skip_compatibility_check=True, **options)
        if storage.get_current_version() != _latest_version():
            storage = RDBStorage(address, engine_kwargs={"pool": pool}, **options)  # says what to do about it
        return storage
    except BaseException:
        pool.dispose()
        raise


@cache
def _latest_version() -> str:
    """The version of the tables that this Optuna makes; it takes long to find out, so once is enough."""
    storage = RDBStorage("sqlite://")
    try:
        return storage.get_head_version()
    finally:
        storage.engine.dispose()


def _connected(dialect: object, record: object, arguments: Any, options: Any) -> Any:
    """Connect in a way that does not wait for ever for a server that hangs."""
    return _impatient().connect(*arguments, **options)


@cache
def _impatient() -> Any:
    """A connection that is cut off if one answer takes too long: a server that is stopped closes nothing."""
    import psycopg

    class Impatient(psycopg.Connection[Any]):
        def wait(self, *arguments: Any, **options: Any) -> Any:
            timer = Timer(ANSWER_SECONDS, self._cut_off)
            timer.daemon = True
            timer.start()
            try:
                return super().wait(*arguments, **options)
            finally:
                timer.cancel()

        def _cut_off(self) -> None:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    return Impatient


def _prepare(connection: Any, record: object) -> None:
    """Set time limits, and make a commit return once it is flushed, even where the server's default is not to wait."""
    with connection.cursor() as cursor:
        cursor.execute(LIMITS)
        if cursor.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()
