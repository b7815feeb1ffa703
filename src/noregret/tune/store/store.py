"""The store: every trial of a study, durable and shared by all workers.

The contract. An outcome that `Store.tell` has accepted survives the death of any process at any moment, and counts once
however often it is sent. A trial belongs to the worker that has claimed it while its heartbeat continues. When the
heartbeat has stopped for the length of the lease, or the process is seen to have ended, the trial goes to the next
claim with the same params, and its former worker learns so at its next heartbeat. Claims are made one at a time under a
lock, so a suggestion depends only on the content of the store, and each trial records what was known when it was
suggested.

Clocks are never compared: a heartbeat is a number that changes, and the process that waits for a change measures the
time itself.

A study is an Optuna study, and Optuna's tools can read it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from threading import Event
from typing import Any, Literal, Self, TypeVar

import optuna
import sqlalchemy
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import get_storage
from optuna.trial import FrozenTrial, TrialState, create_trial

from noregret.tune.measuring import Outcome
from noregret.tune.store.checksums import SUM, broken_seals, seal
from noregret.tune.store.databases.connections import ConnectionLost
from noregret.tune.store.databases.database import database
from noregret.tune.store.faults import (
    OPENING_SECONDS,
    PATIENCE_SECONDS,
    TROUBLE,
    explained,
    is_damage,
    patiently,
    unreadable,
)
from noregret.tune.store.identity import SELF, Migration, needed_migration, refusal, study_id
from noregret.tune.store.leases import HOLDER, LeaseMonitor, holder
from noregret.tune.store.records import (
    IMPORTED,
    RUN,
    STATES,
    TOLD,
    Record,
    Suggestion,
    distributions,
    fingerprint,
    record,
    run_attribute,
)
from noregret.tune.store.rows import add_imported, add_params
from noregret.tune.study.importing import ImportedRow, origin
from noregret.tune.study.study import Params, Study, StudyError

BACKUP_SECONDS = 60.0
NONSENSE = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
"""Exceptions of Optuna for rows that do not hold what was written."""
ADDED, STOPPED = "noregret:added", "noregret:stopped"
"""Attributes of a study: values of parameters that were added later, and the reason why it ended."""

T = TypeVar("T")


LOG = logging.getLogger("noregret")
HOLDS = sqlalchemy.text(
    "UPDATE trial_user_attributes SET value_json = :new WHERE trial_id = :trial AND key = :key AND value_json LIKE :old"
)
"""Changes the holder of a trial, if it is still the expected one."""


class OpenStudy:
    """A study in its storage, open until it is closed.

    Parameters
    ----------
    study : Study
    readonly : bool
        Read only; nothing is created or changed.
    stop : Event, optional
        Ends all waiting when it is set.
    migrate : bool
        Continue with the results that carry over if the study file has changed.
    """

    def __init__(
        self, study: Study, *, readonly: bool = False, stop: Event | None = None, migrate: bool = False
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.study, self.stop, self.readonly = study, stop or Event(), readonly
        self.where = database(study)
        self.migration: Migration | None = None
        """Changes of the study file, if results were carried over."""
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
        """Check that it is the study that the file describes, or migrate it."""
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
        """Make a last copy of the database, and end all connections."""
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
        """Number of stored results outside the study's present space."""
        return self._patiently(
            lambda: sum(trial.state.is_finished() and self._setting(trial) is None for trial in self._all())
        )

    def back_up(self, older_than: float = BACKUP_SECONDS) -> None:
        """Copy the database if the last copy is ``older_than`` seconds old; errors count only if it is damaged."""
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
        """Params of a trial in the study's present space, None if they are outside."""
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

        Inside of it nothing is read through Optuna's cache: a reader holds the cache while it waits for the database.
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
        """Explain errors about rows that do not hold what was written."""
        try:
            yield
        except StudyError:
            raise
        except NONSENSE as error:
            raise unreadable(self.where, f"what is stored cannot be read ({type(error).__name__}: {error})") from error


Suggest = Callable[[Sequence[Record]], Suggestion | None]
"""Function from all records to the next suggestion, None if the study's stopping rule holds."""
Reason = Literal["within", "budget"]
"""Reason why a study has ended: its stopping rule, or its budget."""


@dataclass(frozen=True)
class Claim:
    """A trial to run, or None if there is none now; ``over`` if there will be none."""

    trial: Record | None
    over: bool = False


class Store(OpenStudy):
    """The trials of one study.

    Parameters
    ----------
    study : Study
    readonly : bool
        Read only; nothing is created or changed.
    stop : Event, optional
        Ends all waiting when it is set.
    migrate : bool
        Continue with the results that carry over if the study file has changed.
    """

    def __init__(
        self, study: Study, *, readonly: bool = False, stop: Event | None = None, migrate: bool = False
    ) -> None:
        self._held: dict[int, str] = {}
        self._leases = LeaseMonitor(study.lease)
        super().__init__(study, readonly=readonly, stop=stop, migrate=migrate)

    def stopped(self) -> Reason | None:
        """Reason why the study has ended; None if it has not."""
        return self._patiently(lambda: self._reason(self._records()))

    def out_of_time(self) -> None:
        """Store that the budget's seconds are over; it holds until the next trial."""
        self._patiently(lambda: self._end("budget", None))

    def add(self, rows: Iterable[ImportedRow]) -> int:
        """Store observations that were made elsewhere, all or none; return the number of new ones."""
        given = {fingerprint(row): row for row in rows}
        return self._patiently(lambda: self._kept(given))

    def claim(self, suggest: Suggest) -> Claim:
        """Claim a trial to run: one that was given back, else a new one if budget and stopping rule allow."""
        try:
            return self._patiently(lambda: self._claimed(suggest))
        except UpdateFinishedTrialError:  # its former worker has finished it after all
            return Claim(None)

    def tell(self, number: int, outcome: Outcome) -> bool:
        """Store the outcome of a trial; False if it has another outcome, which then stays."""
        values = None if outcome.value is None else [outcome.value]
        try:
            return self._patiently(lambda: self._finished(number, outcome, values))
        except UpdateFinishedTrialError:
            return self._patiently(lambda: bool(self._storage.get_trial(self._trial(number)).values == values))
        finally:
            self._held.pop(number, None)

    def give_back(self, number: int) -> None:
        """Release a trial at once, rather than after the lease, if it is ours."""
        token = self._held.pop(number, None)

        def release() -> None:
            trial = self._trial(number)
            with suppress(UpdateFinishedTrialError), self._transaction() as connection:
                if token and _changed_hands(connection, trial, token, {}):
                    self._rdb.set_trial_state_values(trial, TrialState.WAITING)

        self._patiently(release)

    def heartbeat(self, numbers: Iterable[int]) -> list[int]:
        """Renew the lease on these trials; return those that are no longer ours."""
        held = list(numbers)
        lost = self._patiently(lambda: [number for number in held if not self._renewed(number)])
        self._patiently(self._abandoned)
        return lost

    def _reason(self, records: Sequence[Record]) -> Reason | None:
        rounds, rule = self.study.budget.rounds, self.study.stop
        with self._reading():
            end = self._attributes().get(STOPPED) or {}
            still_holds = end.get("by") == "budget" or (rule and end.get("rule") == [rule.within, rule.confidence])
            if still_holds and end["trials"] == len(self._all()):
                return "within" if end["by"] == "within" else "budget"
        measured = [record for record in records if not record.imported]
        return "budget" if rounds and len(measured) >= rounds else None

    def _end(self, by: Reason, held: Any) -> None:
        rule = self.study.stop
        end = {"by": by, "trials": len(self._all()), "rule": rule and [rule.within, rule.confidence]}
        with self._transaction(held):
            self._note({STOPPED: end})

    def _claimed(self, suggest: Suggest) -> Claim:
        with self.where.lock(self.study.name, self.stop) as held:
            self._collect(held)
            records = self._records()
            waiting = next((found for found in records if found.state == "waiting"), None)
            reason = self._reason(records)
            if reason == "within" or (reason and waiting is None):
                return Claim(None, over=reason == "within" or all(found.finished for found in records))
            suggestion = None if waiting else suggest(records)
            if waiting is None and suggestion is None:
                self._end("within", held)
                return Claim(None, over=True)
            known = self._trial(waiting.number) if waiting else None
            with self._transaction(held) as connection:
                trial = self._created(connection, suggestion) if suggestion else known
                assert trial is not None
                token = self._taken(trial)
                claimed = record(self._rdb.get_trial(trial))
        if token is None:
            return Claim(None)
        self._held[claimed.number] = token
        return Claim(replace(claimed, params=waiting.params if waiting else claimed.params))

    def _created(self, connection: Any, suggestion: Suggestion) -> int:
        """A new trial, waiting to be run."""
        template = create_trial(state=TrialState.WAITING, user_attrs={TOLD: list(suggestion.told)})
        trial = int(self._rdb.create_new_trial(self._id, template))
        add_params(connection, trial, suggestion.params, self._distributions)
        return trial

    def _kept(self, given: dict[str, ImportedRow]) -> int:
        with self.where.lock(self.study.name, self.stop) as held:
            known = self._fingerprints()
            new = {its: row for its, row in given.items() if its not in known}
            first = len(self._all())
            with self._transaction(held) as connection:
                if new:
                    add_imported(connection, self._id, first, new, self._distributions)
        return len(new)

    def _fingerprints(self) -> set[str]:
        """Fingerprints of all known observations, so that importing an export adds nothing."""
        elsewhere = {trial.user_attrs[IMPORTED]["row"] for trial in self._all() if IMPORTED in trial.user_attrs}
        here = {
            fingerprint(ImportedRow(found.params, found.value, found.noise, found.constraints, its))
            for found in self._records()
            for its in ("", origin(found.number, found.started_text))
            if found.value is not None
        }
        return elsewhere | here

    def _taken(self, trial: int) -> str | None:
        """Claim a waiting trial; return the token of the claim."""
        if not self._rdb.set_trial_state_values(trial, TrialState.RUNNING):
            return None
        token = token_hex(8)
        self._rdb.set_trial_user_attr(trial, HOLDER, holder(token))
        return token

    def _finished(self, number: int, outcome: Outcome, values: list[float] | None) -> bool:
        trial = self._trial(number)
        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        with self._transaction() as connection:
            self._rdb.set_trial_user_attr(trial, RUN, run_attribute(outcome))
            self._rdb.set_trial_user_attr(trial, SUM, seal(connection.exec_driver_sql, trial, state.name, values))
            return bool(self._rdb.set_trial_state_values(trial, state, values))

    def _renewed(self, number: int) -> bool:
        trial, token = self._trial(number), self._held.get(number)
        with self._transaction() as connection:
            return token is None or _changed_hands(connection, trial, token, holder(token))

    def _collect(self, held: Any) -> None:
        """Give back the trials that were abandoned."""
        for number in self._abandoned():
            LOG.info("trial %d: its worker is gone, so it is waiting again", number)
            trial = self._trial(number)
            with suppress(UpdateFinishedTrialError), self._transaction(held):
                self._rdb.set_trial_user_attr(trial, HOLDER, {})
                self._rdb.set_trial_state_values(trial, TrialState.WAITING)

    def _abandoned(self) -> list[int]:
        """Running trials of other processes whose lease has ended."""
        with self._reading():
            running = self._storage.get_all_trials(self._id, deepcopy=False, states=(TrialState.RUNNING,))
            found = self._leases.abandoned({trial.number: trial.user_attrs.get(HOLDER, {}) for trial in running})
        return [number for number in found if number not in self._held]


def _changed_hands(connection: Any, trial: int, token: str, who: dict[str, Any]) -> bool:
    """Store the new holder of a trial if the old one has the token; return True if it has."""
    values = {"trial": trial, "key": HOLDER, "old": f'%"{token}"%', "new": json.dumps(who)}
    return bool(connection.execute(HOLDS, values).rowcount)
