"""Studies in a SQLite file, and copies beside it, several generations of them.

The file is kept in WAL mode with ``synchronous=FULL``: a commit returns once the log is flushed. Every transaction that
writes starts with ``BEGIN IMMEDIATE``, so that what it reads is still so when it writes; SQLite has no ``SELECT ...
FOR UPDATE``.

The copies of ``study.db`` are ``study.db.bak.1``, ``study.db.bak.2`` and so on, the largest number the newest. A copy
gets its name once it is on the disk and was read back without a fault. An older copy is deleted only if every result
in it is in the newest one too, so nothing that the copies hold is ever lost by making another. Results of a study that
was deleted on purpose do not count: their copies go like others.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Event
from urllib.parse import quote

from noregret.files import sync_folder
from noregret.studies.store.databases.connections import Interrupted, Pool, file_lock
from noregret.studies.store.databases.tables import ON_FILE, digest
from noregret.studies.study.study import FOLDER, NotYet, StudyError, make_folder

BUSY_SECONDS = 60
"""Time to wait for another process that is writing."""
DURABLE = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
"""Settings with which a commit waits for the disk, and readers and writers do not wait for each other."""
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


@dataclass
class SQLite:
    """A database in a file."""

    path: Path
    restoring: str
    """The command that lists its copies."""
    _opened: tuple[int, int] | None = field(default=None, init=False, repr=False, compare=False)
    """Device and inode of the file that is open for writing."""

    def __str__(self) -> str:
        return str(self.path)

    @property
    def remedy(self) -> str:
        if copies(self.path):
            return f"'{self.restoring}' lists its copies and puts one back"
        return "It has no copy; to start over, move it away"

    def open(self, readonly: bool) -> Pool:
        if readonly and not self.path.exists():
            raise NotYet(f"{self} does not exist yet: 'noregret tune' makes it")
        if not self.path.exists():
            self._part_with(LOGS)
            self._create()
        if readonly:
            return Pool(lambda: self._connect(self.path), writing="BEGIN")
        self._opened = _identity(self.path)
        return Pool(lambda: self._connect(self.path, DURABLE, readonly=False), check=self.check_in_place)

    def check_in_place(self) -> None:
        """StudyError if the file that was opened for writing is no longer at its path.

        SQLite does not notice: it continues to write to the open file, which no longer has a name.
        """
        if self._opened is not None and _identity(self.path) != self._opened:
            copied = f", or '{self.restoring}' puts back one of its copies" if copies(self.path) else ""
            raise StudyError(
                f"storage {self}: the file was deleted, moved or replaced while it was in use, and nothing is stored "
                f"since. End the program and put the file back{copied}; then start the program again"
            )

    def use(self, stop: Event) -> AbstractContextManager[None]:
        if self.path.parent.name == FOLDER:
            make_folder(self.path.parent)
        return file_lock(self._users, stop, shared=True)

    def lock(self, name: str, stop: Event | None = None) -> AbstractContextManager[None]:
        return file_lock(self.path.with_name(f"{self.path.name}.lock"), stop)

    def check(self, readonly: bool) -> None:
        if not self.path.exists():
            return self._refuse_beside_copies()
        if not readonly and self._has_foreign_log(self.path):
            self._part_with(LOGS)
        with closing(self._connect(self.path)) as connection:
            examine(connection)
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
            if not {("noregret_trials",), ("studies",)} & set(tables):  # ours, or those of earlier versions
                raise StudyError(f"storage {self}: is the database of another program: choose another file")

    def keep_old(self) -> None:
        kept = self.path.with_name(f"{self.path.name}.before-1.1")
        if kept.exists():
            return
        temporary = fresh(self.path.with_name(f".{self.path.name}.keeping"))
        with closing(self._connect(self.path, is_in_use=True)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        flush(temporary)
        os.replace(temporary, kept)
        sync_folder(self.path.parent)
        print(f"noregret: {self} is written in the form of noregret 1.1 now; as it was it is {kept}", file=sys.stderr)

    def back_up(self, older_than: float = 0.0) -> None:
        self.check_in_place()
        with self.lock("copy"):
            made = copies(self.path)
            if made and 0 <= time.time() - made[0].time < older_than:
                return
            with closing(self._connect(self.path, is_in_use=True)) as source:
                make_copy(self.path, source)

    def copies(self) -> list[Copy]:
        """The copies, the newest first; StudyError if there is none."""
        backups = copies(self.path)
        if not backups:
            raise StudyError(f"storage {self}: has no copies: 'noregret tune' makes one at the first result")
        return backups

    def restore(self, number: int) -> list[Path]:
        """Replace the database by a copy; return the new names of the replaced files."""
        chosen = next((copy for copy in self.copies() if copy.number == number), None)
        if chosen is None:
            raise StudyError(f"storage {self}: has no copy {number}: '{self.restoring}' lists those it has")
        now = Event()
        now.set()
        try:
            with file_lock(self._users, now):
                return self._put_back(chosen)
        except Interrupted:
            raise StudyError(f"storage {self}: is being worked on: end 'noregret tune' first") from None

    def _put_back(self, chosen: Copy) -> list[Path]:
        temporary = fresh(self.path.with_name(f".{self.path.name}.restoring"))
        shutil.copyfile(chosen.path, temporary)
        try:
            count_results(temporary)
        except sqlite3.Error as error:
            temporary.unlink()
            raise StudyError(f"{chosen.path} is damaged ({error}): choose another copy") from error
        flush(temporary)
        moved = set_aside(self.path, ("", *LOGS))
        os.replace(temporary, self.path)
        sync_folder(self.path.parent)
        return moved

    @property
    def _users(self) -> Path:
        return self.path.with_name(f"{self.path.name}.users")

    def _refuse_beside_copies(self) -> None:
        if backups := copies(self.path):
            raise StudyError(
                f"storage {self}: is missing, but has copies, the newest {backups[0].path}. '{self.restoring}' lists "
                f"them and puts one back; to start over, move all of them away"
            )

    def _has_foreign_log(self, path: Path) -> bool:
        """Return True if the log beside a file was written for another file, which had its name before.

        New files and copies say in their header that they have no log (bytes 18 and 19 are 1), until they are opened
        for writing; SQLite would apply one all the same. The header is read through SQLite: a process that opens and
        closes the file itself gives up all locks that its connections have on it, and the next process to close
        the database deletes the log under them. All of the file is in memory for this moment: SQLite gives no part.
        """
        if not path.with_name(f"{path.name}-wal").exists():
            return False
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as connection:
                return connection.serialize()[18:20] == b"\1\1"
        except sqlite3.Error:  # not a database: `examine` says so
            return False

    def _part_with(self, endings: Sequence[str]) -> None:
        """Move files that do not belong to the database aside, with a message."""
        moved = set_aside(self.path, endings)
        if moved:
            names = " and ".join(map(str, moved))
            print(f"noregret: found the log of another file beside {self}; it is now {names}", file=sys.stderr)

    def _create(self) -> None:
        """Make all tables in a file of another name first, so that no process sees half of them."""
        temporary = fresh(self.path.with_name(f".{self.path.name}.new"))
        temporary.touch()
        with closing(self._connect(temporary, ["PRAGMA synchronous=OFF"], readonly=False)) as connection:
            connection.executescript(ON_FILE)
        flush(temporary)
        os.replace(temporary, self.path)
        sync_folder(self.path.parent)

    def _connect(
        self, path: Path, pragmas: Sequence[str] = (), readonly: bool = True, is_in_use: bool = False
    ) -> sqlite3.Connection:
        """Open a connection; a file that this process writes to has no foreign log."""
        reading = readonly and not path.with_name(f"{path.name}-journal").exists()  # else SQLite must undo half a write
        address = f"file:{quote(str(path))}?mode={'ro' if reading else 'rw'}"
        is_read_only = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
        if reading and not is_in_use and (is_read_only or self._has_foreign_log(path)):
            address += "&immutable=1"  # SQLite then neither wants to make a log nor looks for one
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in pragmas:
            connection.execute(pragma)
        return connection


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


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
    matches = [(pattern.fullmatch(path.name), path) for path in database.parent.iterdir()]
    listed = [Copy(int(match[1] or 0), path) for match, path in matches if match]
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
    verdict, tables = connection.execute("PRAGMA quick_check(1)").fetchone()[0], _tables(connection)
    if verdict != "ok" or not tables:
        raise sqlite3.DatabaseError(f"database disk image is malformed: {verdict if tables else 'it is empty'}")
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
