"""Trouble with a storage that may pass is waited for."""

from __future__ import annotations

import logging
import random
import sqlite3
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import TypeVar

import sqlalchemy
from optuna.exceptions import OptunaError, UpdateFinishedTrialError

from noregret.tune.store.databases.database import Database
from noregret.tune.store.faults import explained, passing
from noregret.tune.study.study import StudyError

LOG = logging.getLogger("noregret")
PATIENCE_SECONDS = 60.0
"""How long a call tries again where trouble may pass."""
OPENING_SECONDS = 10.0
"""The same when a storage is opened: longer than most restarts, and not too long for a mistyped address."""
TROUBLE = (OptunaError, sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError, RuntimeError, ImportError)
"""What a storage may raise."""

T = TypeVar("T")


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
        except (UpdateFinishedTrialError, StudyError):
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
