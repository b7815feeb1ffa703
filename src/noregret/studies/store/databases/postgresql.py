"""Studies on a PostgreSQL server."""

from __future__ import annotations

import os
import re
import socket
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from threading import Event, Timer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from noregret.studies.store.databases.connections import Pool, wait_for
from noregret.studies.study.study import without_password

ANSWER_SECONDS = 30.0
"""Time limit for one answer of the server, after which the connection is closed; the server's own is shorter."""
CONNECTING: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(1000 * ANSWER_SECONDS),
}
"""Limits that detect a server that does not answer, or has gone without closing the connection."""
LIMITS = "SET statement_timeout = '20s'; SET idle_in_transaction_session_timeout = '60s'"
"""Time limits of the server: for one statement, and for the next one inside a transaction."""
LOCKS = 1853188978
"""First key of our advisory locks, which other programs do not use."""


class DriverError(Exception):
    """An error of the driver, which is its cause."""


@dataclass(frozen=True, repr=False)
class PostgreSQL:
    """A database on a server, which is backed up by its operator."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return without_password(self.url)

    def __repr__(self) -> str:
        return f"PostgreSQL({self})"

    def hide_passwords(self, said: str) -> str:
        """Message of a driver, without the passwords of the URL."""
        parsed = urlsplit(self.url)
        secrets = [unquote(parsed.password or ""), *(its for key, its in parse_qsl(parsed.query) if "password" in key)]
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            said = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", said)
        return said

    @property
    def remedy(self) -> str:
        return "Have the server's own backup put back; to start over, give the study another name"

    def open(self, readonly: bool) -> Pool:
        return Pool(
            self._connect,
            is_server=True,
            reading="BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            writing="BEGIN",
            errors=_translated,
        )

    def use(self, stop: Event) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def lock(self, name: str, stop: Event | None = None) -> Iterator[None]:
        with _translated(), self._connect() as connection:
            keys = LOCKS, zlib.crc32(name.encode()) - 2**31
            take, free = "SELECT pg_try_advisory_lock(%s, %s)", "SELECT pg_advisory_unlock(%s, %s)"
            wait_for(lambda: bool(connection.execute(take, keys).fetchone()[0]), stop)
            try:
                yield
            finally:
                with suppress(Exception):  # the server frees it when the connection ends
                    connection.execute(free, keys)

    def check(self, readonly: bool) -> None:
        pass

    def keep_old(self) -> None:
        pass

    def back_up(self, older_than: float = 0.0) -> None:
        pass

    def _connect(self) -> Any:
        """Transaction whose commits return once they are flushed, even where the server's default is not to wait."""
        connection = _impatient().connect(self.url, autocommit=True, **CONNECTING)
        connection.execute(LIMITS)
        if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
            connection.execute("SET synchronous_commit = on")
        return connection


@contextmanager
def _translated() -> Iterator[None]:
    """Raise errors of the driver as DriverError."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise DriverError(str(error)) from error


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
