"""Copies of a SQLite database, beside it, several generations of them.

The copies of ``study.db`` are ``study.db.bak.1``, ``study.db.bak.2`` and so on, the largest number the newest. A copy
gets its name once it is on the disk and was read back without a fault. An older copy is deleted only if every result
in it is in the newest one too, so nothing that the copies hold is ever lost by making another. Results of a study that
was deleted on purpose do not count: their copies go like others.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from noregret.files import sync_folder
from noregret.tune.store.checksums import broken_seals

KEPT = 5
"""Number of copies that are kept, if newer ones hold all their results."""
SPACING_SECONDS = 3600.0
"""Least time between kept copies, except the newest."""
LOGS = ("-wal", "-shm", "-journal")
"""Name endings of the files that SQLite keeps beside a database."""

RESULTS = """
SELECT study_name, number, state, value FROM {0}.trials JOIN {0}.studies USING (study_id)
LEFT JOIN {0}.trial_values USING (trial_id) WHERE state IN ('COMPLETE', 'FAIL')
"""
COUNT = f"SELECT COUNT(*) FROM ({RESULTS.format('main')})"
MISSING = f"SELECT EXISTS ({RESULTS.format('older')} {{0}} EXCEPT {RESULTS.format('main')})"
"""Query: is a result of the older database missing in the main one? SQLite sorts large results in a file."""
DELETIONS = "noregret_deletions"
"""Table of the studies that were deleted on purpose, by name and incarnation."""
NOT_DELETED = f"""
AND NOT EXISTS (SELECT 1 FROM main.{DELETIONS} AS gone WHERE gone.study_name = older.studies.study_name
AND gone.incarnation IS (SELECT value_json FROM older.study_user_attributes AS its
WHERE its.study_id = older.studies.study_id AND its.key = 'noregret:incarnation'))
"""


@dataclass(frozen=True)
class Copy:
    """One generation."""

    number: int
    path: Path

    @property
    def time(self) -> float:
        """Time of its creation, by the clock of that moment."""
        return self.path.stat().st_mtime

    def __str__(self) -> str:
        """A line for a list."""
        when = datetime.fromtimestamp(self.time).strftime("%Y-%m-%d %H:%M:%S")
        try:
            count = count_results(self.path)
            return f"{self.number:>4}  {when}  {count} result{'' if count == 1 else 's'}"
        except sqlite3.Error:
            return f"{self.number:>4}  {when}  damaged"


def copies(database: Path) -> list[Copy]:
    """The copies of a database, the newest first; one without a number, of an earlier version, is number 0."""
    if not database.parent.is_dir():
        return []
    pattern = re.compile(re.escape(f"{database.name}.bak") + r"(?:\.(\d+))?")
    found = [(pattern.fullmatch(path.name), path) for path in database.parent.iterdir()]
    listed = [Copy(int(match[1] or 0), path) for match, path in found if match]
    return sorted(listed, key=lambda copy: -copy.number)


def count_results(path: Path) -> int:
    """Number of results in a file without writers; sqlite3.DatabaseError if anything in it is damaged."""
    with closing(_looked_into(path)) as connection:
        examine(connection)
        return int(connection.execute(COUNT).fetchone()[0])


def holds_all(newer: Path, older: Path) -> bool:
    """Return True if a newer copy holds every result of an older one, except those of deleted studies.

    sqlite3.DatabaseError if the older one is damaged.
    """
    with closing(_looked_into(older)) as connection:
        examine(connection)
    with closing(_looked_into(newer)) as connection:
        connection.execute("ATTACH ? AS older", [_address(older)])
        has_deletions = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [DELETIONS]).fetchone()
        return not connection.execute(MISSING.format(NOT_DELETED if has_deletions else "")).fetchone()[0]


def record_deletion(connection: Any, name: str, incarnation: str | None) -> None:
    """Record that a study is deleted on purpose, so that older copies with its results need not be kept for ever."""
    query = connection.exec_driver_sql
    query(f"CREATE TABLE IF NOT EXISTS {DELETIONS} (study_name TEXT NOT NULL, incarnation TEXT)")
    query(f"INSERT INTO {DELETIONS} VALUES (?, ?)", (name, None if incarnation is None else json.dumps(incarnation)))


def _looked_into(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(_address(path), uri=True)


def _address(path: Path) -> str:
    """Address of a file without writers."""
    return f"file:{quote(str(path))}?mode=ro&immutable=1"


def examine(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a database is damaged, as far as SQLite and the checksums can tell."""
    try:
        _examine(connection)
    except UnicodeDecodeError as error:  # also of what SQLite says about the damage: it quotes names
        raise sqlite3.DatabaseError(f"malformed: it holds text that is none: {error}") from error


def _examine(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found != "ok" or not tables:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {found if tables else 'it is empty'}")
    if "trial_user_attributes" in tables and (broken := broken_seals(connection.execute)):
        raise sqlite3.DatabaseError(f"malformed: the checksum of trial {broken[0]} does not fit its result")


def make_copy(database: Path, source: sqlite3.Connection) -> None:
    """Add a copy of a database, unless it has no results yet, and delete older ones that are no longer needed."""
    temporary = fresh(database.with_name(f".{database.name}.copying"))
    with closing(sqlite3.connect(temporary)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # marks the file as one that no log belongs to
    if not count_results(temporary):
        return temporary.unlink()
    earlier = copies(database)
    flush(temporary)
    number = earlier[0].number + 1 if earlier else 1
    newest = Copy(number, database.with_name(f"{database.name}.bak.{number}"))
    os.replace(temporary, newest.path)
    sync_folder(database.parent)
    for old in superfluous([newest, *earlier]):
        with suppress(sqlite3.Error):  # one that cannot be read is left alone
            if holds_all(newest.path, old.path):
                old.path.unlink()


def superfluous(found: Sequence[Copy]) -> list[Copy]:
    """Copies that are too close in time to an older one, or too many; ``found`` has the newest first."""
    spaced: list[Copy] = []
    for copy in reversed(found[1:]):
        if not spaced or abs(copy.time - spaced[-1].time) >= SPACING_SECONDS:
            spaced.append(copy)
    kept = spaced[-(KEPT - 1) :]
    return [copy for copy in found[1:] if copy not in kept]


def fresh(path: Path) -> Path:
    """The name of a file that is to be made; what a killed process left there, its logs too, is deleted."""
    for ending in ("", *LOGS):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
    return path


def flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def set_aside(database: Path, endings: Sequence[str]) -> list[Path]:
    """Give the files of a database names that nothing uses, ``study.db.aside.1`` and so on; these names."""
    present = [ending for ending in endings if database.with_name(f"{database.name}{ending}").exists()]
    names = {path.name for path in database.parent.iterdir()}
    number = 1
    while any(f"{database.name}.aside.{number}{ending}" in names for ending in ("", *LOGS)):
        number += 1
    moved = [database.with_name(f"{database.name}.aside.{number}{ending}") for ending in present]
    for ending, path in zip(present, moved, strict=True):
        database.with_name(f"{database.name}{ending}").rename(path)
    sync_folder(database.parent)
    return moved
