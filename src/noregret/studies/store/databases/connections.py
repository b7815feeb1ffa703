"""Connections that are used again, transactions, and locks."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import Any

POLL_SECONDS = 0.01
MOST_IDLE = 64
"""Number of connections that are kept for later."""


class Transaction:
    """A transaction: statements with named values, such as ``:study``, and the rows that they give.

    ``raw`` is a connection of sqlite3 or psycopg. On a server, PostgreSQL, other transactions write at the same time.
    """

    def __init__(self, raw: Any, is_server: bool = False, is_reading: bool = False) -> None:
        self._raw, self.is_server, self._is_reading = raw, is_server, is_reading

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Carry out a statement, and return its rows."""
        cursor = self._raw.execute(for_server(statement) if self.is_server else statement, values)
        return list(cursor.fetchall()) if cursor.description else []

    def each(self, statement: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Carry out a statement with each of some rows of values."""
        cursor = self._raw.cursor()
        cursor.executemany(for_server(statement) if self.is_server else statement, list(rows))
        cursor.close()

    def locking(self, kind: str = "FOR UPDATE") -> str:
        """Ending of a SELECT whose rows no other transaction may change; SQLite has one writer at a time anyway."""
        return f" {kind}" if self.is_server and not self._is_reading else ""

    def has_table(self, name: str) -> bool:
        """Return True if there is a table of this name."""
        if self.is_server:
            return self.rows("SELECT to_regclass(:name)", name=name) != [(None,)]
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", name=name))


@cache
def for_server(statement: str) -> str:
    """Statement with the names of its values as psycopg writes them.

    >>> for_server("SELECT CAST(:number AS TEXT), state::text FROM trials WHERE key = 'a:b'")
    "SELECT CAST(%(number)s AS TEXT), state::text FROM trials WHERE key = 'a:b'"
    """
    return re.sub(r"(?<![:\w]):([a-z_]+)", r"%(\1)s", statement.replace("%", "%%"))


class Pool:
    """Connections to a database, each for one transaction at a time.

    ``connect`` makes a connection that commits nothing by itself, and ``reading`` and ``writing`` are statements that
    begin a transaction. ``errors`` is around all use of a connection, so that it can translate errors. ``check`` is
    called before each commit; the transaction fails if it raises an exception.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        is_server: bool = False,
        reading: str = "BEGIN",
        writing: str = "BEGIN IMMEDIATE",
        errors: Callable[[], AbstractContextManager[Any]] = nullcontext,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._connect, self.is_server, self._errors, self._check = connect, is_server, errors, check
        self._reading, self._writing = reading, writing
        self._idle: list[Any] = []
        self._lock = Lock()
        with errors():
            self._give_back(connect())

    @contextmanager
    def transaction(self, is_reading: bool = False) -> Iterator[Transaction]:
        """Transaction for one transaction, which is on the disk at the end, or has had no effect if it fails."""
        with self._errors():
            with self._lock:
                raw = self._idle.pop() if self._idle else None
            raw = raw or self._connect()
            try:
                raw.execute(self._reading if is_reading else self._writing)
                yield Transaction(raw, self.is_server, is_reading)
                self._check()
                raw.execute("COMMIT")
            except BaseException as error:
                self._end(raw, error)
                raise
            self._give_back(raw)

    def _end(self, raw: Any, error: BaseException) -> None:
        """Undo a transaction. If the connection was lost, the others are closed too: the server may have restarted."""
        try:
            raw.execute("ROLLBACK")
        except Exception:
            with suppress(Exception):
                raw.close()
            if self.is_server:
                self.close()
        else:
            self._give_back(raw)

    def _give_back(self, raw: Any) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(raw)
                return
        raw.close()

    def close(self) -> None:
        """End the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for raw in idle:
            with suppress(Exception):
                raw.close()


class Interrupted(Exception):
    """The wait for a lock ended because the program stops."""


@contextmanager
def file_lock(path: Path, stop: Event | None = None, shared: bool = False) -> Iterator[None]:
    """Hold the lock that goes with a file, alone or with others who share it; the file itself stays empty."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        wait_for(lambda: _try_file(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX), stop)
        yield
    finally:
        os.close(descriptor)


def _try_file(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for(attempt: Callable[[], bool], stop: Event | None) -> None:
    """Try until it succeeds; Interrupted if the program stops meanwhile."""
    stop = stop or Event()
    while not attempt():
        if stop.wait(POLL_SECONDS):
            raise Interrupted
