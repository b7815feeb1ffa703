"""Studies in a SQLite file.

The file is kept in WAL mode with ``synchronous=FULL``: a commit returns once the log is flushed. Every transaction that
writes starts with ``BEGIN IMMEDIATE``, so that what it reads is still so when it writes; SQLite has no ``SELECT ...
FOR UPDATE``.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from urllib.parse import quote

from noregret.files import sync_folder
from noregret.studies.store.databases.connections import Interrupted, Pool, file_lock
from noregret.studies.store.databases.copies import (
    LOGS,
    Copy,
    copies,
    count_results,
    examine,
    flush,
    fresh,
    make_copy,
    set_aside,
)
from noregret.studies.store.databases.tables import ON_FILE
from noregret.studies.study.study import FOLDER, NotYet, StudyError

BUSY_SECONDS = 60
"""Time to wait for another process that is writing."""
DURABLE = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
"""Settings with which a commit waits for the disk, and readers and writers do not wait for each other."""


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
        if self.path.parent.name == FOLDER and not self.path.parent.exists():
            self.path.parent.mkdir(exist_ok=True)
            self.path.with_name(".gitignore").write_text("*\n")
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
        found = copies(self.path)
        if not found:
            raise StudyError(f"storage {self}: has no copies: 'noregret tune' makes one at the first result")
        return found

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
        if found := copies(self.path):
            raise StudyError(
                f"storage {self}: is missing, but has copies, the newest {found[0].path}. '{self.restoring}' lists "
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
        if reading and not is_in_use and (self._is_read_only(path) or self._has_foreign_log(path)):
            address += "&immutable=1"  # SQLite then neither wants to make a log nor looks for one
        connection = sqlite3.connect(
            address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in pragmas:
            connection.execute(pragma)
        return connection

    def _is_read_only(self, path: Path) -> bool:
        return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
