"""Connections and locks that both databases share."""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy
from sqlalchemy.pool import Pool

POOL_NAME = "noregret"
"""Logger name of our connection pools, so that other pools keep their logs."""
POLL_SECONDS = 0.01
TAKE, FREE = (
    sqlalchemy.text("SELECT pg_try_advisory_lock(1853188978, :key)"),
    sqlalchemy.text("SELECT pg_advisory_unlock(1853188978, :key)"),
)


def on_pool(url: str, pool: Pool, **options: Any) -> sqlalchemy.Engine:
    """An engine on our own connections to Optuna's tables, which are made; closed if Optuna cannot work with them."""
    from optuna.storages import RDBStorage

    address = url.replace("{", "{{").replace("}", "}}")
    try:
        storage = RDBStorage(address, engine_kwargs={"pool": pool}, skip_compatibility_check=True, **options)
        if storage.get_current_version() != _latest_version(storage.get_head_version):
            storage = RDBStorage(address, engine_kwargs={"pool": pool}, **options)  # says what to do about it
        return storage.engine
    except BaseException:
        pool.dispose()
        raise


def log_in_one_line(pool: Pool) -> None:
    """Log that a connection of this pool was lost without SQLAlchemy's traceback, which shows SQL and parameters."""
    assert pool.logging_name == POOL_NAME
    logger: Any = pool.logger
    logger.addFilter(_one_line)


def _one_line(record: logging.LogRecord) -> bool:
    if record.exc_info:
        error = record.exc_info[1]
        record.msg, record.args = "storage: a connection was lost: %s", (str(error).partition("\n")[0],)
        record.exc_info = record.exc_text = None
    return True


_latest: list[str] = []


def _latest_version(find: Callable[[], str]) -> str:
    """The version of the tables that this Optuna makes; it takes long to find out, so once is enough."""
    if not _latest:
        _latest.append(find())
    return _latest[0]


class Interrupted(Exception):
    """The wait for a lock ended because the program stops."""


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
def server_lock(engine: Any, name: str, stop: Event | None = None) -> Iterator[None]:
    """Hold a lock of a PostgreSQL server, which frees it when the connection ends."""
    key = {"key": zlib.crc32(name.encode()) - 2**31}
    with engine.connect() as connection:
        _poll(lambda: bool(_asked(connection, TAKE, key)), stop)
        try:
            yield
        finally:
            with suppress(sqlalchemy.exc.SQLAlchemyError):
                _asked(connection, FREE, key)


def _asked(connection: Any, question: Any, key: dict[str, int]) -> Any:
    answer = connection.execute(question, key).scalar()
    connection.commit()
    return answer


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
