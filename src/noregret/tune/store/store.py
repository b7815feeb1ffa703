"""The store: every trial of a study, durable, shared by all who work on it.

The contract. What `Store.tell` has accepted survives the death of any process at any moment, and counts once however
often it is told. A trial belongs to whoever has claimed it as long as its heartbeat goes on; one whose heartbeat has
stopped for the length of the lease, or whose process is seen to have ended, goes to the next who asks, with the same
params. Claims are made one at a time under a lock, so what is suggested depends on nothing but what is in the store,
and each trial records what was known when it was suggested.

A study is an Optuna study, with Optuna's heartbeats as leases, and Optuna's tools can read it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any, Self

import optuna
import sqlalchemy
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.storages import get_storage
from optuna.trial import TrialState, create_trial

from noregret.tune.measuring.measure import Outcome
from noregret.tune.store.database import database
from noregret.tune.store.faults import explained, passing
from noregret.tune.store.holder import HOLDER, gone, myself
from noregret.tune.store.identity import study_id
from noregret.tune.store.records import RUN, STATES, TOLD, Record, Suggestion, distributions, record, run_attribute
from noregret.tune.study.study import Study, StudyError

BACKUP_SECONDS = 60.0
TROUBLE = (OptunaError, sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError, RuntimeError, ImportError)
"""What a storage may raise."""

Suggest = Callable[[Sequence[Record]], Suggestion]


@dataclass(frozen=True)
class Claim:
    """A trial to run, or None where there is none now; ``over`` if there will be none."""

    trial: Record | None
    over: bool = False


class Store:
    """The trials of one study.

    Parameters
    ----------
    study : Study
    readonly : bool
        Only look; nothing is created or changed.
    stop : Event, optional
        Set by whoever wants waiting to end.
    """

    def __init__(self, study: Study, *, readonly: bool = False, stop: Event | None = None) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study, self.stop, self.readonly = study, stop or Event(), readonly
        self.where = database(study.storage, study.folder)
        self._distributions = distributions(study.space)
        with self._explaining(), nullcontext() if readonly else self.where.lock("open", self.stop):
            self.where.check()
            self._rdb = self.where.open(readonly)
            self._rdb.heartbeat_interval, self._rdb.grace_period = 1, study.lease
            self._storage: Any = get_storage(self._rdb)
            try:
                self._id = study_id(self._storage, study, readonly)
            except BaseException:
                self._rdb.engine.dispose()
                raise
        if not readonly:
            self.back_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave a copy where there should be one, and end all connections."""
        if not self.readonly:
            self.back_up(older_than=0.0)
        with suppress(*TROUBLE):
            self._rdb.remove_session()
            self._rdb.engine.dispose()

    def records(self) -> list[Record]:
        """All trials, by number."""
        with self._explaining():
            trials = self._storage.get_all_trials(self._id, deepcopy=False)
        return [
            record(trial)
            for trial in trials
            if trial.state in STATES and trial.params.keys() == self._distributions.keys()
        ]

    def claim(self, suggest: Suggest) -> Claim:
        """Take over a trial to run: one that was given back, else a new one if the budget allows."""
        with self._explaining(), self.where.lock(self.study.name, self.stop):
            self._collect()
            records = self.records()
            waiting = next((found for found in records if found.state == "waiting"), None)
            if waiting is None:
                if len(records) >= (self.study.budget.rounds or len(records) + 1):
                    return Claim(None, over=all(found.finished for found in records))
                waiting = self._created(suggest(records))
            return Claim(waiting if self._taken(waiting.number) else None)

    def tell(self, number: int, outcome: Outcome) -> bool:
        """Keep what became of a trial; False if it has had another answer before, which then stands."""
        state = TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        values = None if outcome.value is None else [outcome.value]

        def write() -> bool:
            trial = self._trial(number)
            self._storage.set_trial_user_attr(trial, RUN, run_attribute(outcome))
            return bool(self._storage.set_trial_state_values(trial, state, values))

        try:
            return self._patiently(write)
        except UpdateFinishedTrialError:
            with self._explaining():
                return bool(self._storage.get_trial(self._trial(number)).values == values)

    def give_back(self, number: int) -> None:
        """Let others have a trial at once, rather than after the lease."""
        with self._explaining(), suppress(UpdateFinishedTrialError):
            self._storage.set_trial_state_values(self._trial(number), TrialState.WAITING)

    def beat(self, numbers: Iterable[int]) -> None:
        """Say that these trials are being worked on."""
        with self._explaining():
            for number in numbers:
                self._storage.record_heartbeat(self._trial(number))

    def back_up(self, older_than: float = BACKUP_SECONDS) -> None:
        """Copy the database if the copy is so many seconds old; without one the study goes on all the same."""
        with suppress(*TROUBLE), self.where.lock("copy"):
            self.where.back_up(older_than)

    def forget_thread(self) -> None:
        """End what the calling thread has open."""
        with suppress(*TROUBLE):
            self._rdb.remove_session()

    def _collect(self) -> None:
        """Give back the trials whose lease is over, and those of processes that have ended."""
        running = self._storage.get_all_trials(self._id, deepcopy=False, states=(TrialState.RUNNING,))
        orphans = [self._trial(trial.number) for trial in running if gone(trial.user_attrs.get(HOLDER, {}))]
        for trial in {*orphans, *self._storage._get_stale_trial_ids(self._id)}:
            with suppress(UpdateFinishedTrialError):
                self._storage.set_trial_state_values(trial, TrialState.WAITING)

    def _created(self, suggestion: Suggestion) -> Record:
        """A new trial, params and all in one transaction."""
        trial = create_trial(
            state=TrialState.WAITING,
            params=suggestion.params,
            distributions=self._distributions,
            user_attrs={TOLD: list(suggestion.told), HOLDER: myself()},
        )
        return record(self._storage.get_trial(self._storage.create_new_trial(self._id, trial)))

    def _taken(self, number: int) -> bool:
        """Make a waiting trial ours. Its heartbeat starts before, for a trial without one would never be given back."""
        trial = self._trial(number)
        try:
            self._storage.record_heartbeat(trial)
            if self._storage.get_trial(trial).user_attrs.get(HOLDER) != myself():
                self._storage.set_trial_user_attr(trial, HOLDER, myself())
            return bool(self._storage.set_trial_state_values(trial, TrialState.RUNNING))
        except UpdateFinishedTrialError:  # whoever had it before has answered after all
            return False

    def _trial(self, number: int) -> int:
        return int(self._storage.get_trial_id_from_study_id_trial_number(self._id, number))

    def _patiently(self, write: Callable[[], bool]) -> bool:
        """Try again for the length of the lease, if trouble may pass: a measurement is worth the wait."""
        deadline = monotonic() + self.study.lease
        while True:
            try:
                return write()
            except UpdateFinishedTrialError:
                raise
            except TROUBLE as error:
                if not passing(error) or monotonic() > deadline or self.stop.wait(0.5):
                    raise explained(error, self.where) from error

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (UpdateFinishedTrialError, StudyError):
            raise
        except TROUBLE as error:
            raise explained(error, self.where) from error
