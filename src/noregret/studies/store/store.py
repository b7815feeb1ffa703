"""The store: every trial of a study, durable and shared by all workers.

The contract. An outcome that `Store.tell` has accepted survives the death of any process at any moment, and counts once
however often it is sent. A trial belongs to the worker that has claimed it while its heartbeat continues. When the
heartbeat has stopped for the length of the lease, or the process is seen to have ended, the trial goes to the next
claim with the same params, and its former worker learns so at its next heartbeat. A suggestion depends only on the
content of the store, and each trial records what was known when it was suggested.

Every change is a compare-and-swap of the trial table (`noregret.studies.store.trials`). Claims are made one at a time
under a lock, so that a suggestion is not computed in vain; nothing else depends on the lock.

Clocks are never compared: a heartbeat is a number that changes, and the process that waits for a change measures the
time itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from platform import node
from secrets import token_hex
from threading import Event
from typing import Any, Literal, Self, TypeVar

from noregret.optimizer import MACHINE, Trial, corrected, withdrawn
from noregret.studies.store import trials
from noregret.studies.store.databases.database import restoring_command
from noregret.studies.store.faults import (
    OPENING_SECONDS,
    PATIENCE_SECONDS,
    TROUBLE,
    explained,
    is_damage,
    reading,
)
from noregret.studies.store.identity import (
    SELF,
    ChangedStudy,
    Migration,
    needed_migration,
    refusal,
    restart_advice,
    restarted,
)
from noregret.studies.store.leases import LeaseMonitor, gone, holder
from noregret.studies.store.records import NextTrial, Record, agree, mark_of, mark_of_1_0
from noregret.studies.store.storage import BACKUP_SECONDS, Storage
from noregret.studies.store.trials import Overtaken, TrialTable, unless_overtaken
from noregret.studies.study.exchange import origin
from noregret.studies.study.study import Params, Stop, Study, StudyError

ADDED, STOPPED, CONCLUSION = "added", "stopped", "conclusion"
"""Further parts of a stored study: values of parameters that were added later, the reason why it ended, and what was
said at its end."""

LOG = logging.getLogger("noregret")
T = TypeVar("T")

Suggest = Callable[[Sequence[Record]], Record | None]
"""Function from all records to the next one, whose number is not looked at; None if the stopping rule holds."""
Reason = Literal["within", "budget"]
"""Reason why a study has ended: its stopping rule, or its budget."""


class Store:
    """The trials of one study.

    With ``readonly`` nothing is created or changed. ``stop`` ends all waiting when it is set. If the study file has
    changed, ``migrate`` continues with the results that carry over, and ``restart`` sets a stored study aside, and
    starts again, if no trial had a result.
    """

    def __init__(
        self,
        study: Study,
        *,
        readonly: bool = False,
        stop: Event | None = None,
        migrate: bool = False,
        restart: bool = False,
    ) -> None:
        self.study, self.stop, self.readonly = study, stop or Event(), readonly
        self.restarted = ""
        """Reason why the study was started again, in words; empty if it was not."""
        self.migration: Migration | None = None
        """Changes of the study file, if results were carried over."""
        self._settings: dict[int, Params | None] = {}
        self._held: dict[int, str] = {}
        """Token of each trial that was claimed here, by number."""
        self._leases = LeaseMonitor(study.lease)
        self._storage = Storage(
            study.storage, study.folder, restoring_command(study), readonly=readonly, stop=self.stop
        )
        self.where = self._storage.where
        try:
            while not self._patiently(lambda: self._find_study(migrate, restart), OPENING_SECONDS):
                pass
            if not readonly:
                self.back_up()
        except BaseException:
            self._storage.close()
            raise

    def _find_study(self, migrate: bool, restart: bool) -> bool:
        """Find the study that the file describes, or migrate it; False if another one was set aside: look again."""
        self._found = self._storage.study(self.study)
        self._table = TrialTable(self._storage, self._found.id, self._found.first)
        attributes = self._attributes()
        self._added: Params = dict(attributes.get(ADDED, {}))
        try:
            self._recognise(attributes, migrate)
        except ChangedStudy as error:
            if not self.study.command or not self._is_without_results():
                raise
            if not restart:
                raise StudyError(restart_advice(self.study, error)) from None
            # a worker that is still there continues with it
            aside = self._storage.set_aside(self.study.name, self._found)
            self.restarted = self.restarted or (aside and restarted(error, len(self._all()), aside))
            return False
        return True

    def _recognise(self, attributes: dict[str, Any], migrate: bool) -> None:
        """Check that it is the study that the file describes, or migrate it."""
        with reading(self.where):
            change = needed_migration(self.study, attributes)
        if change is None:
            return
        if not migrate:
            raise refusal(self.study, attributes)
        self._added = {**self._added, **change.added}
        self._storage.set_attributes(self._found.id, {SELF: change.identity, ADDED: self._added, STOPPED: None})
        self.migration = change

    def _is_without_results(self) -> bool:
        """Return True if there are trials, none with a result or from elsewhere, and no process runs one of them."""
        everything = self._all()
        return bool(everything) and all(
            not record.is_imported
            and (record.state in ("failed", "waiting") or (record.state == "running" and gone(record.holder)))
            for record in everything
        )

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
            self._storage.close()

    def records(self) -> list[Record]:
        """All trials, by number."""
        return self._patiently(lambda: self._usable(self._all()))

    def unused(self) -> int:
        """Number of stored results outside the study's present space."""
        return self._patiently(lambda: sum(trial.is_finished and self._setting(trial) is None for trial in self._all()))

    def stopped(self, is_timed: bool = True) -> Reason | None:
        """Reason why the study has ended, None if it has not; the time of a call is one only if ``is_timed``."""
        return self._patiently(lambda: self._reason(everything := self._all(), self._usable(everything), is_timed))

    def out_of_time(self) -> None:
        """Store that the budget's seconds are over; it holds until the next trial."""
        self._patiently(lambda: self._end("budget", len(self._all())))

    def concluded(self, key: str) -> str | None:
        """Conclusion that was stored under this key; None if there is none."""
        kept = self._patiently(self._attributes).get(CONCLUSION) or {}
        return kept["text"] if kept.get("key") == key else None

    def conclude(self, key: str, text: str) -> None:
        """Store a conclusion of the study in the place of the one before."""
        about = {CONCLUSION: {"key": key, "text": text}}
        self._patiently(lambda: self._storage.set_attributes(self._found.id, about))

    def back_up(self, older_than: float = BACKUP_SECONDS) -> None:
        """Copy the database if the last copy is ``older_than`` seconds old; errors count only if it is damaged."""
        try:
            self.where.back_up(older_than)
        except TROUBLE as error:
            if is_damage(error):
                raise explained(error, self.where) from error

    def drop_old(self) -> list[str]:
        """Delete what earlier versions have stored of studies that were taken over; the names of these."""
        return self._patiently(self._storage.drop_old)

    def add(self, rows: Iterable[tuple[Trial, str]]) -> int:
        """Store observations that were made elsewhere, with their origins, all or none; return how many are new."""
        given = {mark_of(row, source): (row, source) for row, source in rows}
        return unless_overtaken(lambda: self._patiently(lambda: self._imported(given)))

    def correct(self, number: int, value: Any, reason: str = "") -> Record:
        """Replace readings of a finished trial, as `Optimizer.correct` does; the trial as it is then.

        Its earlier readings stay stored, with the reason. StudyError if there is no such trial, or the value is bad.
        """
        measures = self.study.measures
        return self._changed(number, lambda old: corrected(old, measures.corrected(old, value), reason))

    def withdraw(self, number: int, reason: str = "") -> Record:
        """Take a finished trial out of all conclusions, and return it; it stays stored, with the reason."""
        return self._changed(number, lambda old: withdrawn(old, reason))

    def _changed(self, number: int, change: Callable[[Record], Record]) -> Record:
        try:
            record = self._patiently(lambda: self._table.changed(number, change))
        except ValueError as error:
            raise error if isinstance(error, StudyError) else StudyError(f"trial {number}: {error}") from None
        if record is None:
            raise StudyError(f"trial {number} does not exist")
        return record

    def claim(self, suggest: Suggest) -> NextTrial:
        """Claim a trial to run: one that was given back, else a new one if budget and stopping rule allow."""
        return unless_overtaken(lambda: self._patiently(lambda: self._claimed(suggest)))

    def tell(self, outcome: Record) -> bool:
        """Store the outcome of a trial; False if it has another outcome, which then stays."""
        try:
            return agree(self._patiently(lambda: self._told(outcome)), outcome)
        finally:
            self._held.pop(outcome.number, None)

    def give_back(self, number: int) -> None:
        """Release a trial at once, rather than after the lease, if it is ours."""
        if number in self._held:
            token = self._held.pop(number)
            self._patiently(lambda: self._release([(number, {"token": token})]))

    def heartbeat(self, numbers: Iterable[int]) -> list[int]:
        """Renew the lease on these trials; return those that are no longer ours."""
        held = {number: self._held[number] for number in sorted(numbers) if number in self._held}
        lost = self._patiently(lambda: self._lost(held))
        self._patiently(self._abandoned)
        return lost

    def _claimed(self, suggest: Suggest) -> NextTrial:
        with self.where.lock(self.study.name, self.stop):
            abandoned = self._abandoned()
            for record in abandoned:
                LOG.info("trial %d: its worker is gone, so it is waiting again", record.number)
            if abandoned:
                self._release([(record.number, record.holder) for record in abandoned])
            everything = self._all()
            records = self._usable(everything)
            waiting = next((record for record in records if record.state == "waiting"), None)
            reason = self._reason(everything, records, is_timed=False)
            if reason == "within" or (reason and waiting is None):
                return NextTrial(None, over=reason == "within" or all(record.is_finished for record in records))
            suggestion = None if waiting else suggest(records)
            if waiting is None and suggestion is None:
                self._end("within", len(everything))
                return NextTrial(None, over=True)
            token, study = token_hex(8), self._found.id
            with self._storage.transaction() as connection:
                if waiting is not None:
                    claimed = waiting
                    if not trials.take(connection, study, waiting, holder(token)):
                        raise Overtaken  # its former worker has finished it after all
                else:
                    assert suggestion is not None
                    new = replace(suggestion, started=datetime.now(), holder=holder(token))
                    claimed = trials.add(connection, study, self._table.next, new)
        self._held[claimed.number] = token
        return NextTrial(replace(claimed, state="running", started=datetime.now()))

    def _told(self, outcome: Record) -> Record:
        block = {**({MACHINE: node()} if node() else {}), **(outcome.block or {})}
        with self._storage.transaction() as connection:
            stands = trials.tell(connection, self._found.id, replace(outcome, block=block))
        if stands is None:
            raise KeyError(f"there is no trial {outcome.number}")
        return stands

    def _lost(self, held: dict[int, str]) -> list[int]:
        """Renew the lease on trials; return the numbers of those that have another holder."""
        with self._storage.transaction() as connection:
            return [
                number
                for number, token in held.items()
                if not trials.renew(connection, self._found.id, number, {"token": token}, holder(token))
            ]

    def _release(self, held: Iterable[tuple[int, Any]]) -> None:
        """Let trials wait for a new worker, by number, where the holder is still the same."""
        with self._storage.transaction() as connection:
            for number, old in held:
                trials.release(connection, self._found.id, number, old)

    def _abandoned(self) -> list[Record]:
        """Running trials of other processes whose lease has ended."""
        running = {record.number: record for record in self._all() if record.state == "running"}
        with reading(self.where):
            numbers = self._leases.abandoned({number: record.holder for number, record in running.items()})
        return [running[number] for number in numbers if number not in self._held]

    def _reason(self, everything: Sequence[Record], records: Sequence[Record], is_timed: bool = True) -> Reason | None:
        rounds, rule = self.study.budget.rounds, self.study.stop
        with reading(self.where):
            end = self._attributes().get(STOPPED) or {}
            still_holds = is_timed if end.get("by") == "budget" else rule and end.get("rule") == _rule(rule)
            if still_holds and end["trials"] == len(everything):
                return "within" if end["by"] == "within" else "budget"
        measured = [record for record in records if not record.is_imported]
        return "budget" if rounds and len(measured) >= rounds else None

    def _end(self, by: Reason, count: int) -> None:
        """Store why a study with this number of trials has ended."""
        rule = self.study.stop
        end = {"by": by, "trials": count, "rule": rule and _rule(rule)}
        self._storage.set_attributes(self._found.id, {STOPPED: end})

    def _imported(self, given: Mapping[str, tuple[Trial, str]]) -> int:
        measures = self.study.measures
        with self.where.lock(self.study.name, self.stop):
            everything = self._all()
            known = self._marks(everything)
            old = {mark: mark_of_1_0(row, measures, source) for mark, (row, source) in given.items()}
            new = {mark: row for mark, (row, _) in given.items() if not known.intersection((mark, old[mark]))}
            if new:
                with self._storage.transaction() as connection:
                    trials.add_imported(connection, self._found.id, self._table.next, new, measures)
        return len(new)

    def _marks(self, everything: Sequence[Record]) -> set[str]:
        """Fingerprints of all known observations, so that importing an export adds nothing."""
        done = [record for record in self._usable(everything) if record.is_finished]
        here = {mark_of(record, of) for record in done for of in ("", origin(record.number, record.started))}
        return here | {record.mark for record in everything if record.is_imported}

    def _all(self) -> list[Record]:
        """All trials, those outside the study's present space and those of other programs included."""
        return self._table.refresh()

    def _usable(self, everything: Sequence[Record]) -> list[Record]:
        """Trials in the study's present space, with all its parameters."""
        placed = [(record, self._setting(record)) for record in everything if record.state != "pruned"]
        return [replace(record, params=params) for record, params in placed if params is not None]

    def _setting(self, record: Record) -> Params | None:
        """Params of a trial in the study's present space, None if they are outside."""
        if record.number not in self._settings:
            try:
                params = self.study.completed(record.params, self._added)
                self._settings[record.number] = dict(self.study.settings.checked(params))
            except ValueError:
                self._settings[record.number] = None
        return self._settings[record.number]

    def _attributes(self) -> dict[str, Any]:
        return self._storage.attributes(self._found.id)

    def _patiently(self, call: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
        return self._storage.patiently(call, seconds)


def _rule(rule: Stop) -> list[Any]:
    """A stopping rule as it is stored; the certificate is not named, as it was the only one once."""
    return [rule.within, rule.confidence] + ([] if rule.by == "certificate" else [rule.by])
