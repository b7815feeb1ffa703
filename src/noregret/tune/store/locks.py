"""Locks between processes that a killed process gives up by itself."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy

POLL_SECONDS = 0.01


class Interrupted(Exception):
    """The wait for a lock was given up, since everything is to stop."""


@contextmanager
def file_lock(path: Path, stop: Event | None = None) -> Iterator[None]:
    """Hold the lock that goes with a file; the file itself stays empty."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _poll(lambda: _try_file(descriptor), stop)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def server_lock(engine: Any, name: str, stop: Event | None = None) -> Iterator[None]:
    """Hold a lock of a PostgreSQL server, on a connection of its own; the server frees it when that one ends."""
    key = zlib.crc32(name.encode())
    take, free = (
        sqlalchemy.text("SELECT pg_try_advisory_lock(1853188978, :key)"),
        sqlalchemy.text("SELECT pg_advisory_unlock(1853188978, :key)"),
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        _poll(lambda: bool(connection.execute(take, {"key": key - 2**31}).scalar()), stop)
        try:
            yield
        finally:
            connection.execute(free, {"key": key - 2**31})


def _try_file(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _poll(attempt: Callable[[], bool], stop: Event | None) -> None:
    stop = stop or Event()
    while not attempt():
        if stop.wait(POLL_SECONDS):
            raise Interrupted
