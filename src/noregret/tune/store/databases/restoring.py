"""``noregret restore``: the copies of a study's database, and how one of them takes its place."""

from __future__ import annotations

from noregret.tune.store.databases.database import database
from noregret.tune.store.databases.sqlite import SQLite
from noregret.tune.study.study import Study, StudyError


def listed(study: Study) -> str:
    """The copies of a study's database, the newest first."""
    where = _file(study)
    lines = [f"copies of {where}, the newest first; '{where.restoring} N' puts one back:"]
    return "\n".join([*lines, *map(str, where.copies())])


def restored(study: Study, number: int) -> str:
    """Put a copy in the place of the database; what was done, in a sentence."""
    where = _file(study)
    moved = where.restore(number)
    before = f"; what was there before is now {', '.join(map(str, moved))}" if moved else ""
    return f"{where} is copy {number} again{before}"


def _file(study: Study) -> SQLite:
    where = database(study)
    if not isinstance(where, SQLite):
        raise StudyError(f"storage {where}: is on a server, whose copies are made and put back there")
    return where
