"""Copies of a SQLite database, beside it, several generations of them.

The copies of ``study.db`` are ``study.db.bak.1``, ``study.db.bak.2`` and so on, the largest number the newest. A copy
gets its name once it is on the disk and was read back without a fault. An older copy is deleted only if every result
in it is in the newest one too, so nothing that the copies hold is ever lost by making another. Results of a study that
was deleted on purpose do not count: their copies go like others.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from noregret.files import sync_folder
from noregret.studies.store.databases.tables import digest

KEPT_COPIES = 5
"""Number of copies that are kept, if newer ones hold all their results."""
SPACING_SECONDS = 3600.0
"""Least time between kept copies, except the newest."""
LOGS = ("-wal", "-shm", "-journal")
"""Name endings of the files that SQLite keeps beside a database."""

RESULTS = """
SELECT incarnation, number, {0}.noregret_trials.checksum FROM {0}.noregret_trials
JOIN {0}.noregret_studies ON id = study WHERE state NOT IN ('waiting', 'running')
"""
HAS_MISSING_RESULTS = f"""
SELECT EXISTS ({RESULTS.format("older")}
AND NOT EXISTS (SELECT 1 FROM main.noregret_studies AS its WHERE its.deleted IS NOT NULL
AND its.incarnation = older.noregret_studies.incarnation)
AND NOT EXISTS (SELECT 1 FROM main.noregret_trials AS its JOIN main.noregret_studies AS study ON study.id = its.study
WHERE its.revision > 0 AND its.number = older.noregret_trials.number
AND study.incarnation = older.noregret_studies.incarnation)
EXCEPT {RESULTS.format("main")})
"""
"""Query: is a result of the older database missing in the main one? Results of deleted studies are not, nor those that
were corrected, which hold what they were."""
OLD_RESULTS = """
SELECT study_name, number, state, value FROM {0}.trials JOIN {0}.studies USING (study_id)
LEFT JOIN {0}.trial_values USING (trial_id) WHERE state IN ('COMPLETE', 'FAIL')
"""
"""Results in the tables of earlier versions, which are still there when a study was taken over from them."""
OLD_MISSING = f"SELECT EXISTS ({OLD_RESULTS.format('older')} EXCEPT {OLD_RESULTS.format('main')})"


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
        form = RESULTS if "noregret_trials" in _tables(connection) else OLD_RESULTS
        return int(connection.execute(f"SELECT COUNT(*) FROM ({form.format('main')})").fetchone()[0])


def holds_all(newer: Path, older: Path) -> bool:
    """Return True if a newer copy holds every result of an older one, except those of deleted studies.

    sqlite3.DatabaseError if the older one is damaged.
    """
    with closing(_looked_into(older)) as connection:
        examine(connection)
        tables = _tables(connection)
    with closing(_looked_into(newer)) as connection:
        connection.execute("ATTACH ? AS older", [_address(older)])
        pairs = ("noregret_trials", HAS_MISSING_RESULTS), ("trial_values", OLD_MISSING)
        needed = [(name, missing) for name, missing in pairs if name in tables]
        there = _tables(connection)
        return all(name in there and not connection.execute(missing).fetchone()[0] for name, missing in needed)


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


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
    found, tables = connection.execute("PRAGMA quick_check(1)").fetchone()[0], _tables(connection)
    if found != "ok" or not tables:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {found if tables else 'it is empty'}")
    if "noregret_trials" in tables:
        query = "SELECT number, state, ended, revision, document, checksum FROM noregret_trials"
        for number, *others, checksum in connection.execute(query):
            if checksum != digest(number, *others):
                raise sqlite3.DatabaseError(f"malformed: the checksum of trial {number} does not fit its result")


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
    kept = spaced[-(KEPT_COPIES - 1) :]
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
