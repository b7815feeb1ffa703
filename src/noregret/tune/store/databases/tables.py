"""Optuna's tables on connections of ours."""

from __future__ import annotations

import logging
from typing import Any

from optuna.storages import RDBStorage
from sqlalchemy.pool import Pool

POOL_NAME = "noregret"
"""The name that our pools of connections log under, so that the logs of others are left alone."""
_LATEST: dict[type[RDBStorage], str] = {}


def on_pool(url: str, pool: Pool, **options: Any) -> RDBStorage:
    """Optuna's storage on connections of ours, which are closed if it cannot work with them."""
    address = url.replace("{", "{{").replace("}", "}}")
    try:
        storage = RDBStorage(address, engine_kwargs={"pool": pool}, skip_compatibility_check=True, **options)
        if storage.get_current_version() != _latest_version(storage):
            storage = RDBStorage(address, engine_kwargs={"pool": pool}, **options)  # says what to do about it
        return storage
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


def _latest_version(storage: RDBStorage) -> str:
    """The version of the tables that this Optuna makes; it takes long to find out, so once is enough."""
    if RDBStorage not in _LATEST:
        _LATEST[RDBStorage] = storage.get_head_version()
    return _LATEST[RDBStorage]
