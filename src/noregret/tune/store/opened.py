"""A study in its storage: opened, recognised, read, and written to in transactions.

Trouble that may pass, such as a server that restarts, is waited for: `PATIENCE_SECONDS` at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from threading import Event
from typing import Any, Self, TypeVar

import optuna
from optuna.storages import get_storage
from optuna.trial import FrozenTrial

from noregret.tune.store.checksums import broken_seals
from noregret.tune.store.databases.database import database
from noregret.tune.store.databases.locks import ConnectionLost
from noregret.tune.store.faults import explained, is_damage, unreadable
from noregret.tune.store.identity import SELF, needed_migration, refusal, study_id
from noregret.tune.store.migrating import Migration
from noregret.tune.store.patience import OPENING_SECONDS, PATIENCE_SECONDS, TROUBLE, patiently
from noregret.tune.store.records import STATES, Record, distributions, record
from noregret.tune.study.study import Params, Study, StudyError

BACKUP_SECONDS = 60.0
NONSENSE = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What Optuna raises at rows that do not say what was written."""
ADDED, STOPPED = "noregret:added", "noregret:stopped"
"""The values of parameters in trials from before these parameters were tuned; why nothing more was to be measured."""

T = TypeVar("T")


class OpenStudy:
    """A study in its storage, open until it is closed.

    Parameters
    ----------
    study : Study
    readonly : bool
        Only look; nothing is created or changed.
    stop : Event, optional
        Set by whoever wants waiting to end.
    migrate : bool
        Go on with the results that carry over if the study file has changed.
    """

    def __init__(
        self, study: Study, *, readonly: bool = False, stop: Event | None = None, migrate: bool = False
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study, self.stop, self.readonly = study, stop or Event(), readonly
        self.where = database(study)
        self.migration: Migration | None = None
        """What has changed in the study file, if results were carried over."""
        self._may_migrate = migrate
        self._settings: dict[int, Params | None] = {}
        self._distributions = distributions(study.space)
        with ExitStack() as using:
            self._patiently(lambda: self._open(using), OPENING_SECONDS)
            self._using = using.pop_all()
        if not readonly:
            self.back_up()

    def _open(self, using: ExitStack) -> None:
        if not self.readonly:
            using.close()
            using.enter_context(self.where.use(self.stop))
        with nullcontext() if self.readonly else self.where.lock("open", self.stop):
            self.where.check(self.readonly)
            self._rdb = self.where.open(self.readonly)
            self._storage: Any = get_storage(self._rdb)
            try:
                self._find_study()
            except BaseException:
                self._rdb.engine.dispose()
                raise

    def _find_study(self) -> None:
        with self._reading():
            self._id = study_id(self._storage, self.study, self.readonly)
        with self._rdb.engine.connect() as connection:
            broken = broken_seals(connection.exec_driver_sql, str(self._id))
        if broken:
            raise unreadable(self.where, f"the checksum of trial {broken[0]} does not fit its result")
        self._recognise()

    def _recognise(self) -> None:
        """Check that it is the study that the file describes, or make it so."""
        attributes = self._attributes()
        with self._reading():
            self._added: Params = dict(attributes.get(ADDED, {}))
            change = needed_migration(self.study, attributes)
        if change is None:
            return
        if not self._may_migrate:
            raise refusal(self.study, attributes)
        self._added = {**self._added, **change.added}
        with self._transaction():
            self._note({SELF: change.identity, ADDED: self._added, STOPPED: None})
        self.migration = change

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave a copy where there should be one, and end all connections."""
        try:
            if not self.readonly:
                self.back_up(older_than=0.0)
        finally:
            with suppress(*TROUBLE):
                self._rdb.remove_session()
                self._rdb.engine.dispose()
            self._using.close()

    def records(self) -> list[Record]:
        """All trials, by number."""
        return self._patiently(self._records)

    def unused(self) -> int:
        """How many results are stored that are of no setting of the study as it is now."""
        return self._patiently(
            lambda: sum(trial.state.is_finished() and self._setting(trial) is None for trial in self._all())
        )

    def back_up(self, older_than: float = BACKUP_SECONDS) -> None:
        """Copy the database if the copy is so many seconds old; without one the study goes on, unless it is damaged."""
        try:
            self.where.back_up(older_than)
        except TROUBLE as error:
            if is_damage(error):
                raise explained(error, self.where) from error

    def forget_thread(self) -> None:
        """End what the calling thread has open."""
        with suppress(*TROUBLE):
            self._rdb.remove_session()

    def _all(self) -> list[FrozenTrial]:
        with self._reading():
            return list(self._storage.get_all_trials(self._id, deepcopy=False))

    def _records(self) -> list[Record]:
        found = [(trial, self._setting(trial)) for trial in self._all() if trial.state.name in STATES]
        with self._reading():
            return [replace(record(trial), params=params) for trial, params in found if params is not None]

    def _setting(self, trial: FrozenTrial) -> Params | None:
        """What a trial is about, in the parameters of now; None if it is no setting of the study as it is now."""
        if trial.number not in self._settings:
            with self._reading():
                params = dict(trial.params)
            try:
                params = self.study.completed(params, self._added)
                self._settings[trial.number] = dict(self.study.settings.checked(params))
            except ValueError:
                self._settings[trial.number] = None
        return self._settings[trial.number]

    def _attributes(self) -> dict[str, Any]:
        with self._reading():
            return dict(self._storage.get_study_user_attrs(self._id))

    def _note(self, attributes: dict[str, Any]) -> None:
        for key, value in attributes.items():
            self._rdb.set_study_user_attr(self._id, key, value)

    def _trial(self, number: int) -> int:
        return int(self._storage.get_trial_id_from_study_id_trial_number(self._id, number))

    @contextmanager
    def _transaction(self, held: Any = None) -> Iterator[Any]:
        """Make several of Optuna's steps one transaction, on the connection that holds a lock if there is one.

        Inside of it nothing is read through Optuna's cache: who reads there holds the cache and waits for the database.
        """
        with nullcontext(held) if held is not None else self._rdb.engine.connect() as connection, connection.begin():
            self._rdb.scoped_session.remove()
            self._rdb.scoped_session(bind=connection)
            try:
                connection.exec_driver_sql("SELECT 1")  # Optuna would try for some seconds on a connection that is lost
                yield connection
            except TROUBLE as error:
                if connection.invalidated:
                    raise ConnectionLost("the connection was lost") from error
                raise
            finally:
                self._rdb.scoped_session.remove()

    def _patiently(self, call: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        return patiently(call, self.where, self.stop, seconds)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say what is wrong where rows do not say what was written."""
        try:
            yield
        except StudyError:
            raise
        except NONSENSE as error:
            raise unreadable(self.where, f"what is stored cannot be read ({type(error).__name__}: {error})") from error
