"""Studies on a PostgreSQL server."""

from __future__ import annotations

import os
import re
import socket
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from threading import Event, Timer
from typing import Any

import sqlalchemy
from sqlalchemy.pool import NullPool

from noregret.tune.store.databases.connections import POOL_NAME, log_in_one_line, on_pool, server_lock
from noregret.tune.study.study import without_password

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


@dataclass(frozen=True, repr=False)
class PostgreSQL:
    """A database on a server, which is backed up by its operator."""

    url: sqlalchemy.URL

    def __str__(self) -> str:
        return without_password(self.url.render_as_string(hide_password=True)).replace("+psycopg", "")

    def __repr__(self) -> str:
        return f"PostgreSQL({self})"

    def hide_passwords(self, said: str) -> str:
        """Message of a driver, without the passwords of the URL."""
        secrets = [self.url.password, *(value for key, value in self.url.query.items() if key.endswith("password"))]
        for secret in sorted(map(str, filter(None, secrets)), key=len, reverse=True):
            said = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", said)
        return said

    @property
    def remedy(self) -> str:
        return "Have the server's own backup put back; to start over, give the study another name"

    def open(self, readonly: bool) -> sqlalchemy.Engine:
        pool = self._engine(pool_size=64).pool
        with nullcontext() if readonly else self.lock("tables"):
            return on_pool(self.url.render_as_string(hide_password=False), pool, skip_table_creation=readonly)

    def use(self, stop: Event) -> AbstractContextManager[None]:
        return nullcontext()

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        return server_lock(self._engine(poolclass=NullPool), name, stop)

    def check(self, readonly: bool) -> None:
        pass

    def back_up(self, older_than: float = 0.0) -> None:
        pass

    def _engine(self, **options: Any) -> Any:
        engine = sqlalchemy.create_engine(
            self.url, pool_pre_ping=True, pool_logging_name=POOL_NAME, connect_args=CONNECTING, **options
        )
        log_in_one_line(engine.pool)
        sqlalchemy.event.listen(engine, "do_connect", _connected)
        sqlalchemy.event.listen(engine, "connect", _prepare)
        return engine


def _connected(dialect: object, record: object, arguments: Any, options: Any) -> Any:
    """Connect with a time limit for every answer, so that a hung server is noticed."""
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
