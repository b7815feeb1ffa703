"""The database of a study: a SQLite file or a PostgreSQL server."""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import Protocol
from urllib.parse import urlsplit

from noregret.studies.store.databases.connections import Pool
from noregret.studies.store.databases.postgresql import PostgreSQL
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.study.study import Study, StudyError, without_password


class Database(Protocol):
    """A database that holds studies."""

    @property
    def remedy(self) -> str:
        """Advice if it is damaged, in a sentence."""

    def open(self, readonly: bool) -> Pool:
        """Connections to it; a file is created if necessary, unless ``readonly``."""

    def use(self, stop: Event) -> AbstractContextManager[None]:
        """Keep other processes from replacing the database while it is written to."""

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        """Hold a lock against all other processes; a killed process releases it.

        On a server a lock is lost with its connection. So nothing may depend on it but the work that it saves.
        """

    def check(self, readonly: bool) -> None:
        """Raise an exception if the database is damaged, or missing beside its copies."""

    def keep_old(self) -> None:
        """Keep a copy of a file for good, in the form of earlier versions."""

    def back_up(self, older_than: float = 0.0) -> None:
        """Copy the database if the last copy is ``older_than`` seconds old; a server has its own backup."""


def database(study: Study) -> Database:
    """The database of a study; relative paths start from its folder."""
    return database_at(study.storage, study.folder, restoring_command(study))


def restoring_command(study: Study) -> str:
    """The command that lists the copies of a study's database."""
    return shlex.join(["noregret", "restore", str(study.path)])


def database_at(url: str, folder: Path, restoring: str) -> Database:
    """The database at a URL; relative paths start from the folder, ``restoring`` is the command that lists copies."""
    parsed = urlsplit(url)
    if not parsed.scheme or "://" not in url:
        raise StudyError(f"storage must be a URL such as sqlite:///study.db, got {without_password(url)!r}")
    kind, name = parsed.scheme.partition("+")[0], url.partition(":///")[2]
    if kind == "sqlite" and name and "?" not in name and not name.startswith((":memory:", "file:")):
        path = folder / name
        if path.exists() and not path.is_file():
            raise StudyError(f"storage {path}: is not a file: choose another name")
        return SQLite(path, restoring)
    if parsed.netloc.count("@") > 1:
        raise StudyError("storage: an @ in a password must be written as %40")
    if kind != "postgresql":
        raise StudyError(
            f"storage must be sqlite:///FILE or postgresql://USER@HOST/DATABASE, got {without_password(url)!r}"
        )
    try:
        parsed.port  # noqa: B018
    except ValueError:
        raise StudyError("storage must be a URL such as postgresql://USER@HOST:5432/DATABASE") from None
    return PostgreSQL(f"{kind}://{url.partition('://')[2]}")


def listed(study: Study) -> str:
    """The copies of a study's database, the newest first."""
    where = _file(study)
    lines = [f"copies of {where}, the newest first; '{where.restoring} N' puts one back:"]
    return "\n".join([*lines, *map(str, where.copies())])


def restored(study: Study, number: int) -> str:
    """Replace the database by a copy; return a sentence about it."""
    where = _file(study)
    moved = where.restore(number)
    before = f"; what was there before is now {', '.join(map(str, moved))}" if moved else ""
    return f"{where} is copy {number} again{before}"


def _file(study: Study) -> SQLite:
    where = database(study)
    if not isinstance(where, SQLite):
        raise StudyError(f"storage {where}: is on a server, whose copies are made and put back there")
    return where
