"""The store: every trial of a study, durable, shared by all who work on it.

The contract. What `Store.tell` has accepted survives the death of any process at any moment, and counts once however
often it is told. A trial belongs to whoever has claimed it as long as its heartbeat goes on; one whose heartbeat has
stopped for the length of the lease, or whose process is seen to have ended, goes to the next who asks, with the same
params, and whoever had it learns so at its next heartbeat. Claims are made one at a time under a lock, so what is
suggested depends on nothing but what is in the store, and each trial records what was known when it was suggested.

No clock is compared with another one: a heartbeat is a number that changes, and who waits for it to change measures
the time by itself.

Trouble that may pass, such as a server that restarts, is waited for: `PATIENCE_SECONDS` at every call.

A study is an Optuna study, and Optuna's tools can read it.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from secrets import token_hex
from threading import Event
from time import monotonic
from typing import Any, Self, TypeVar

import optuna
import sqlalchemy
from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.storages import get_storage
from optuna.trial import FrozenTrial, TrialState, create_trial

from noregret.tune.measuring.measure import Outcome
from noregret.tune.store.checksums import SUM, broken_seals, seal
from noregret.tune.store.databases.database import database
from noregret.tune.store.databases.locks import ConnectionLost
from noregret.tune.store.faults import explained, is_damage, passing, unreadable
from noregret.tune.store.holder import HOLDER, Silence, holder
from noregret.tune.store.identity import study_id
from noregret.tune.store.records import RUN, STATES, TOLD, Record, Suggestion, distributions, record, run_attribute
from noregret.tune.study.study import Study, StudyError

BACKUP_SECONDS = 60.0
PATIENCE_SECONDS = 60.0
"""How long a call tries again where trouble may pass."""
OPENING_SECONDS = 10.0
"""The same when a study is opened: longer than most restarts, and not too long for a mistyped address."""
TROUBLE = (OptunaError, sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError, RuntimeError, ImportError)
"""What a storage may raise."""
NONSENSE = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""What Optuna raises at rows that do not say what was written."""
HOLDS = sqlalchemy.text(
    "UPDATE trial_user_attributes SET value_json = :new WHERE trial_id = :trial AND key = :key AND value_json LIKE :old"
)
"""Changes who holds a trial, if that is still who it was."""

T = TypeVar("T")
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
        self.where = database(study)
        self._distributions = distributions(study.space)
        self._held: dict[int, str] = {}
        self._silence = Silence(study.lease)
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

    def claim(self, suggest: Suggest) -> Claim:
        """Take over a trial to run: one that was given back, else a new one if the budget allows."""
        try:
            return self._patiently(lambda: self._claimed(suggest))
        except UpdateFinishedTrialError:  # whoever had it before has answered after all
            return Claim(None)

    def tell(self, number: int, outcome: Outcome) -> bool:
        """Keep what became of a trial; False if it has had another answer before, which then stands."""
        values = None if outcome.value is None else [outcome.value]
        try:
            return self._patiently(lambda: self._finished(number, outcome, values))
        except UpdateFinishedTrialError:
            return self._patiently(lambda: bool(self._storage.get_trial(self._trial(number)).values == values))
        finally:
            self._held.pop(number, None)

    def give_back(self, number: int) -> None:
        """Let others have a trial at once, rather than after the lease, if it is ours."""
        token = self._held.pop(number, None)

        def release() -> None:
            trial = self._trial(number)
            with suppress(UpdateFinishedTrialError), self._transaction() as connection:
                if token and _changed_hands(connection, trial, token, {}):
                    self._rdb.set_trial_state_values(trial, TrialState.WAITING)

        self._patiently(release)

    def beat(self, numbers: Iterable[int]) -> list[int]:
        """Say that these trials are being worked on; those that are no longer ours."""
        held = list(numbers)
        lost = self._patiently(lambda: [number for number in held if not self._beaten(number)])
        self._patiently(self._abandoned)
        return lost

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

    def _records(self) -> list[Record]:
        with self._reading():
            return [
                record(trial)
                for trial in self._storage.get_all_trials(self._id, deepcopy=False)
                if trial.state.name in STATES and trial.params.keys() == self._distributions.keys()
            ]

    def _claimed(self, suggest: Suggest) -> Claim:
        with self.where.lock(self.study.name, self.stop) as held:
            self._collect(held)
            records = self._records()
            waiting = next((found for found in records if found.state == "waiting"), None)
            if waiting is None and len(records) >= (self.study.budget.rounds or len(records) + 1):
                return Claim(None, over=all(found.finished for found in records))
            known = self._trial(waiting.number) if waiting else None
            new = None if waiting else self._template(suggest(records))
            with self._transaction(held):
                trial = self._rdb.create_new_trial(self._id, new) if known is None else known
                token = self._taken(trial)
                claimed = record(self._rdb.get_trial(trial))
        if token is None:
            return Claim(None)
        self._held[claimed.number] = token
        return Claim(claimed)

    def _taken(self, trial: int) -> str | None:
        """Make a waiting trial ours; the word by which it is."""
        if not self._rdb.set_trial_state_values(trial, TrialState.RUNNING):
            return None
        token = token_hex(8)
        self._rdb.set_trial_user_attr(trial, HOLDER, holder(token))
        return token

    def _template(self, suggestion: Suggestion) -> FrozenTrial:
        """A new trial as it is to be written."""
        return create_trial(
            state=TrialState.WAITING,
            params=suggestion.params,
            distributions=self._distributions,
            user_attrs={TOLD: list(suggestion.told)},
        )

    def _finished(self, number: int, outcome: Outcome, values: list[float] | None) -> bool:
        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        trial = self._trial(number)
        with self._transaction() as connection:
            self._rdb.set_trial_user_attr(trial, RUN, run_attribute(outcome))
            self._rdb.set_trial_user_attr(trial, SUM, seal(connection.exec_driver_sql, trial, state.name, values))
            return bool(self._rdb.set_trial_state_values(trial, state, values))

    def _beaten(self, number: int) -> bool:
        trial, token = self._trial(number), self._held.get(number)
        with self._transaction() as connection:
            return token is None or _changed_hands(connection, trial, token, holder(token))

    def _collect(self, held: Any) -> None:
        """Give back the trials that were abandoned."""
        for trial in map(self._trial, self._abandoned()):
            with suppress(UpdateFinishedTrialError), self._transaction(held):
                self._rdb.set_trial_user_attr(trial, HOLDER, {})
                self._rdb.set_trial_state_values(trial, TrialState.WAITING)

    def _abandoned(self) -> list[int]:
        """The running trials of others that nobody works on any more."""
        with self._reading():
            running = self._storage.get_all_trials(self._id, deepcopy=False, states=(TrialState.RUNNING,))
            found = self._silence.abandoned({trial.number: trial.user_attrs.get(HOLDER, {}) for trial in running})
        return [number for number in found if number not in self._held]

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
        """Try again, in longer and longer intervals, where trouble may pass."""
        deadline, pause = monotonic() + seconds, 0.05
        while True:
            try:
                return call()
            except (UpdateFinishedTrialError, StudyError):
                raise
            except TROUBLE as error:
                wait = random.uniform(pause / 2, pause)  # so that many workers do not come back all at once
                if not passing(error) or monotonic() + wait > deadline or self.stop.wait(wait):
                    raise explained(error, self.where) from error
                pause = min(2 * pause, 2.0)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say what is wrong where rows do not say what was written."""
        try:
            yield
        except StudyError:
            raise
        except NONSENSE as error:
            raise unreadable(self.where, f"what is stored cannot be read ({type(error).__name__}: {error})") from error


def _changed_hands(connection: Any, trial: int, token: str, who: dict[str, Any]) -> bool:
    """Write down who holds a trial now, if it was who has the token; whether it was."""
    values = {"trial": trial, "key": HOLDER, "old": f'%"{token}"%', "new": json.dumps(who)}
    return bool(connection.execute(HOLDS, values).rowcount)
