"""Errors of a storage: explanations in words, and retries of errors that may pass."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from time import monotonic
from typing import TypeVar

from noregret.extra import missing
from noregret.studies.store.databases.database import Database
from noregret.studies.store.databases.postgresql import DriverError, PostgreSQL
from noregret.studies.store.databases.sqlite import SQLite
from noregret.studies.study.study import NotYet, StudyError

SAFE = "the results so far are safe"
DAMAGED = "not a database", "malformed", "Could not decode"
"""Messages of SQLite about a damaged file."""
LASTING = "does not exist", "authentication failed", "pg_hba.conf", "permission denied", "No space left"
"""Messages of a server about errors that do not pass by themselves."""
NO_STUDY = "has no study yet: 'noregret tune' makes it"


LOG = logging.getLogger("noregret")
PATIENCE_SECONDS = 60.0
"""Time for which a call is retried after errors that may pass."""
OPENING_SECONDS = 10.0
"""Time for which opening is retried: longer than most restarts, not too long for a mistyped address."""
TROUBLE = (DriverError, sqlite3.Error, OSError, RuntimeError, ImportError)
"""Exceptions that a storage may raise."""
NONSENSE = (ValueError, LookupError, TypeError, AttributeError)
"""Exceptions for rows that do not hold what was written."""
T = TypeVar("T")


def explained(error: BaseException, where: Database) -> StudyError:
    """Error of the storage as a StudyError that says what to do."""
    causes = list(_causes(error))
    refusal = next((cause for cause in causes if isinstance(cause, StudyError)), None)
    if refusal:
        return refusal
    if isinstance(where, SQLite):
        return StudyError(f"storage {where}: {_of_a_file(causes, where)}")
    said = _of_a_server(causes)
    kind = NotYet if said == NO_STUDY else StudyError
    return kind(f"storage {where}: {where.hide_passwords(said) if isinstance(where, PostgreSQL) else said}")


def unreadable(where: Database, what: object) -> StudyError:
    """Error about rows that do not hold what was written."""
    return StudyError(f"storage {where}: is damaged: {what}. It is left as it is. {where.remedy}")


@contextmanager
def reading(where: Database) -> Iterator[None]:
    """Explain errors about rows that do not hold what was written."""
    try:
        yield
    except StudyError:
        raise
    except NONSENSE as error:
        raise unreadable(where, f"what is stored cannot be read ({type(error).__name__}: {error})") from error


def is_damage(error: BaseException) -> bool:
    """Return True if an error means that a file is damaged."""
    return any(word in str(cause) for cause in _causes(error) for word in DAMAGED)


def passing(error: BaseException) -> bool:
    """Return True if an error may pass: a server that restarts, a file that another process is writing."""
    return any(_may_pass(cause) for cause in _causes(error))


def _may_pass(cause: BaseException) -> bool:
    said = str(cause)
    if isinstance(cause, sqlite3.OperationalError):
        return "locked" in said
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(cause).__mro__}
    return "psycopg.OperationalError" in kinds and not any(word in said for word in LASTING)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _of_a_file(causes: list[BaseException], where: SQLite) -> str:
    said = " ".join(map(str, causes))
    if any(word in said for word in DAMAGED):
        detail = f": {causes[-1]}" if "checksum" in said else " or is no SQLite database"
        return f"the file is damaged{detail}. It is left as it is. {where.remedy}"
    if "disk is full" in said or "disk I/O error" in said or "No space left" in said:
        return f"the disk is full or failing; {SAFE}: make room and run the same command again"
    if "readonly" in said or "Read-only" in said or "Permission denied" in said:
        return "cannot be written: allow writing to the file and its folder, or choose another storage"
    if "unable to open" in said or "No such file" in said:
        return "cannot be opened: does its folder exist, and may you read and write there?"
    if "locked" in said:
        return f"another program has kept it locked for a minute; {SAFE}: run the same command again"
    return _first_line(causes)


def _of_a_server(causes: list[BaseException]) -> str:
    said = " ".join(map(str, causes))
    if any(isinstance(cause, ImportError) for cause in causes):
        return missing("psycopg", "postgresql")
    if "relation" in said and "does not exist" in said:
        return NO_STUDY
    if "read-only" in said or "permission denied" in said:
        return f"cannot be written: {_first_line(causes)}"
    return f"cannot be reached or used: {_first_line(causes)}"


def _first_line(causes: list[BaseException]) -> str:
    return str(causes[-1]).strip().partition("\n")[0]


class Unavailable(StudyError):
    """The storage could not be used for as long as a call tries again."""


def patiently(call: Callable[[], T], where: Database, stop: Event, seconds: float = PATIENCE_SECONDS) -> T:
    """Call, and call again at growing intervals while the error may pass.

    Raises
    ------
    StudyError
        If the error will not pass.
    Unavailable
        If it has not passed after ``seconds``, or ``stop`` is set.
    """
    deadline, pause = monotonic() + seconds, 0.05
    while True:
        try:
            return call()
        except StudyError:
            raise
        except TROUBLE as error:
            explanation = explained(error, where)
            if not passing(error):
                raise explanation from error
            wait = random.uniform(pause / 2, pause)  # so that many workers do not come back all at once
            if monotonic() + wait > deadline or stop.wait(wait):
                raise Unavailable(str(explanation)) from error
            LOG.info("%s; trying again", explanation)
            pause = min(2 * pause, 2.0)
