"""Locks between processes that a killed process gives up by itself."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy

POLL_SECONDS = 0.01
TAKE, FREE = (
    sqlalchemy.text("SELECT pg_try_advisory_lock(1853188978, :key)"),
    sqlalchemy.text("SELECT pg_advisory_unlock(1853188978, :key)"),
)


class Interrupted(Exception):
    """The wait for a lock was given up, since everything is to stop."""


class ConnectionLost(OSError):
    """A connection has ended in the middle of what must all be done on it, under the lock that it holds."""


@contextmanager
def file_lock(path: Path, stop: Event | None = None, shared: bool = False) -> Iterator[None]:
    """Hold the lock that goes with a file, alone or with others who share it; the file itself stays empty."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _poll(lambda: _try_file(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX), stop)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def server_lock(engine: Any, name: str, stop: Event | None = None) -> Iterator[Any]:
    """Hold a lock of a PostgreSQL server, and give the connection that holds it.

    The server frees the lock when that connection ends. What is written through the connection is therefore written
    under the lock or not at all: a connection that was lost is not replaced, it raises ConnectionLost.
    """
    key = {"key": zlib.crc32(name.encode()) - 2**31}
    with engine.connect() as connection:
        _poll(lambda: bool(_asked(connection, TAKE, key)), stop)
        sqlalchemy.event.listen(engine, "do_connect", _refuse, insert=True)
        try:
            yield connection
        finally:
            with suppress(sqlalchemy.exc.SQLAlchemyError, ConnectionLost):
                connection.rollback()
                _asked(connection, FREE, key)


def _asked(connection: Any, question: Any, key: dict[str, int]) -> Any:
    answer = connection.execute(question, key).scalar()
    connection.commit()
    return answer


def _refuse(*connecting: object) -> None:
    raise ConnectionLost("the connection that held the lock was lost")


def _try_file(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _poll(attempt: Callable[[], bool], stop: Event | None) -> None:
    stop = stop or Event()
    while not attempt():
        if stop.wait(POLL_SECONDS):
            raise Interrupted
