"""Optuna's tables on connections of ours."""

from __future__ import annotations

from typing import Any

from optuna.storages import RDBStorage
from sqlalchemy.pool import Pool

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


def _latest_version(storage: RDBStorage) -> str:
    """The version of the tables that this Optuna makes; it takes long to find out, so once is enough."""
    if RDBStorage not in _LATEST:
        _LATEST[RDBStorage] = storage.get_head_version()
    return _LATEST[RDBStorage]
