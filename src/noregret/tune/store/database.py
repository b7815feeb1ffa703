"""Opening databases, SQLite files and PostgreSQL servers, so that what they acknowledge is on the disk.

The tables are Optuna's. A SQLite file is kept in WAL mode with ``synchronous=FULL``: a commit returns once the log is
flushed. Every transaction that may write starts with ``BEGIN IMMEDIATE``, so that what it reads is still so when it
writes; SQLite has no ``SELECT ... FOR UPDATE``, on which Optuna relies elsewhere.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any, Protocol
from urllib.parse import quote

import sqlalchemy
from optuna.storages import RDBStorage
from sqlalchemy.pool import NullPool, Pool, QueuePool

from noregret.files import sync_folder
from noregret.tune.store.locks import file_lock, server_lock
from noregret.tune.study.study import NotYet, StudyError, without_password

BUSY_SECONDS = 60
"""How long to wait for another process that is writing."""
OPTIONS: dict[str, Any] = {"pool_pre_ping": True, "connect_args": {"connect_timeout": 10}}
"""A connection to a server is tried before it is used, and a server that does not answer is given up."""
DURABLE = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
"""What makes a commit wait until it is on the disk, and readers and writers not wait for each other."""


class Database(Protocol):
    """Where studies are kept."""

    def open(self, readonly: bool) -> RDBStorage:
        """Optuna's storage on it; made if need be, unless ``readonly``."""
        ...

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        """Keep all other processes from what also needs this lock; a killed process gives it up by itself."""
        ...

    def check(self) -> None:
        """An exception if the database is damaged."""
        ...

    def back_up(self, older_than: float = 0.0) -> None:
        """Copy the database if the last copy is so many seconds old, where this is not somebody else's business."""
        ...


def database(url: str, folder: Path) -> Database:
    """The database of a storage URL; relative paths start from ``folder``."""
    try:
        parsed = sqlalchemy.make_url(url)
    except ValueError:  # of the port, say
        raise StudyError("storage must be a URL such as postgresql://USER@HOST:5432/DATABASE") from None
    except sqlalchemy.exc.ArgumentError:
        raise StudyError(f"storage must be a URL such as sqlite:///study.db, got {without_password(url)!r}") from None
    kind = parsed.get_backend_name()
    plain = parsed.database and not parsed.query and not parsed.database.startswith((":memory:", "file:"))
    if kind == "sqlite" and parsed.database and plain:
        path = folder / parsed.database
        if path.exists() and not path.is_file():
            raise StudyError(f"storage {path}: is not a file: choose another name")
        return SQLite(path)
    if "@" in (parsed.host or ""):
        raise StudyError("storage: an @ in a password must be written as %40")
    if kind == "postgresql":
        return PostgreSQL(parsed.set(drivername="postgresql+psycopg"))
    raise StudyError(
        f"storage must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got {without_password(url)!r}"
    )


@dataclass(frozen=True)
class SQLite:
    """A database in a file."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def backup(self) -> Path:
        """Where the copy is."""
        return self.path.with_name(f"{self.path.name}.bak")

    def open(self, readonly: bool) -> RDBStorage:
        if readonly and not self.path.exists():
            raise NotYet(f"{self} does not exist yet: 'noregret tune' makes it")
        if not self.path.exists():
            self._create()
        return self._storage(self.path, () if readonly else DURABLE, readonly)

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        return file_lock(self.path.with_name(f"{self.path.name}.lock"), stop)

    def check(self) -> None:
        if not self.path.exists():
            return
        with closing(self._connect(self.path)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if found != "ok" or not tables:
            raise sqlite3.DatabaseError(f"database disk image is malformed: {found if tables else 'it is empty'}")
        if "studies" not in tables:
            raise StudyError(f"storage {self}: is the database of another program: choose another file")

    def back_up(self, older_than: float = 0.0) -> None:
        if self.backup.exists() and time.time() - self.backup.stat().st_mtime < older_than:
            return
        temporary = self.path.with_name(f".{self.path.name}.copying")
        temporary.unlink(missing_ok=True)
        with closing(self._connect(self.path)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
        os.replace(temporary, self.backup)

    def _create(self) -> None:
        """Make all tables in a file of another name, so that nobody ever meets half of them."""
        temporary = self.path.with_name(f".{self.path.name}.new")
        temporary.unlink(missing_ok=True)
        self._storage(temporary, ["PRAGMA synchronous=OFF"]).engine.dispose()
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
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
        if readonly and not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
            address += "&immutable=1"  # nobody can be writing, and SQLite cannot make the files it would want for a log
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in pragmas:
            connection.execute(pragma)
        return connection


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

    def open(self, readonly: bool) -> RDBStorage:
        pool = sqlalchemy.create_engine(self.url, **OPTIONS, pool_size=64).pool
        sqlalchemy.event.listen(pool, "connect", _wait_for_the_disk)
        with nullcontext() if readonly else self.lock("tables"):
            return _on_pool(self.url.render_as_string(hide_password=False), pool, skip_table_creation=readonly)

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        return server_lock(sqlalchemy.create_engine(self.url, **OPTIONS, poolclass=NullPool), name, stop)

    def check(self) -> None:
        pass

    def back_up(self, older_than: float = 0.0) -> None:
        pass


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


def _wait_for_the_disk(connection: Any, record: object) -> None:
    """A commit returns once it is flushed, even where the server's default is not to wait."""
    with connection.cursor() as cursor:
        if cursor.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()
