"""An open study: asks, outcomes and conclusions, for all threads of one server and beside other servers.

New trials are chosen from the trials that were read, and written only if no other server has made a trial since;
otherwise they are chosen again. So any number of servers can work on a study: every trial knows of the one before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count, islice
from secrets import token_hex
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from noregret.optimizer import (
    MACHINE,
    VALUE,
    Block,
    Optimizer,
    Reading,
    Readings,
    Trial,
    are_same,
    corrected,
    withdrawn,
)
from noregret.service.choosers import Chooser, Fitting, ModelClient, chosen, itself, judged
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import replay_of
from noregret.studies.store import trials
from noregret.studies.store.databases.connections import Transaction
from noregret.studies.store.faults import Unavailable
from noregret.studies.store.leases import LeaseMonitor
from noregret.studies.store.records import Record, agree, mark_of, mark_of_1_0
from noregret.studies.store.storage import Storage, StoredStudy
from noregret.studies.store.trials import Overtaken, TrialTable, unless_overtaken
from noregret.studies.study.study import Params, Study

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
AnyTrial = TypeVar("AnyTrial", bound=Trial)


PORTION = 20
"""Number of trials that are chosen at once: between two portions, a chooser answers other studies."""


class BatchQueue(Generic[Asked, Answered]):
    """Queue of requests that are worked on in batches: all that arrive during one batch are the next.

    Threads of the ``pool`` do the ``work``: one batch at a time, with other work of the pool between two batches. It
    returns an answer for each request of a batch. If it raises an exception, the requests are worked on one by one, and
    each gets its own answer or exception; but an exception of the type ``for_all`` concerns all requests alike, and
    trying them one by one would only take longer.
    """

    def __init__(
        self,
        pool: Executor,
        work: Callable[[Sequence[Asked]], Sequence[Answered]],
        for_all: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:
        self._pool, self._work, self._lock = pool, work, Lock()
        self._for_all = for_all
        self._waiting: list[tuple[Asked, Future[Answered]]] = []
        self._is_busy = False

    def submit(self, request: Asked) -> Future[Answered]:
        """Add a request; return the future of its answer."""
        answer: Future[Answered] = Future()
        with self._lock:
            self._waiting.append((request, answer))
            is_first, self._is_busy = not self._is_busy, True
        if is_first:
            self._pool.submit(self._serve)
        return answer

    def _serve(self) -> None:
        """Work on one batch, and schedule the next if there is one."""
        with self._lock:
            lot, self._waiting = self._waiting, []
        self._answer([(asked, answer) for asked, answer in lot if answer.set_running_or_notify_cancel()])
        with self._lock:
            self._is_busy = is_more = bool(self._waiting)
        if is_more:
            self._pool.submit(self._serve)

    def _answer(self, lot: Sequence[tuple[Asked, Future[Answered]]]) -> None:
        try:
            results = self._work([asked for asked, _ in lot]) if lot else []
        except BaseException as error:  # the future reports it, whatever it is
            if len(lot) > 1 and not isinstance(error, self._for_all):
                for one in lot:
                    self._answer([one])
                return
            for _, answer in lot:
                answer.set_exception(error)
        else:
            for (_, answer), result in zip(lot, results, strict=True):
                answer.set_result(result)


class NoStudy(LookupError):
    """There is no such study."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no study {name!r}: POST /studies makes one")
        self.name = name


class Deleted(NoStudy):
    """A study that is open here was deleted; there may be a new one of its name."""


class StoredOutcome(NamedTuple):
    """Outcome of a trial of a study; ``record`` is None if the trial has not been read yet."""

    study: StoredStudy
    record: Record | None
    outcome: Record


class LiveTable(TrialTable):
    """All trials of a study, and the order in which suggestions knew of their answers."""

    def __init__(self, storage: Storage, found: StoredStudy, study: Study) -> None:
        super().__init__(storage, found.id, found.first)
        self.found, self.is_deleted, self._name = found, False, study.name
        self.fresh: set[int] = set()
        """Finished trials that no suggestion knew of."""
        self._order: dict[int, None] = {}

    @property
    def told(self) -> list[Record]:
        """Trials with outcomes that suggestions knew of, in the order in which they did."""
        return self.outcomes(self._order)

    def history(self) -> tuple[list[Record], int]:
        """All trials with outcomes, and the number of those that suggestions knew of, which come first."""
        told = self.told
        return told + self.outcomes(sorted(self.fresh)), len(told)

    def outcomes(self, numbers: Iterable[int]) -> list[Record]:
        """Those of these trials that count."""
        records = map(self.records.__getitem__, numbers)
        return [record for record in records if record.state != "withdrawn"]

    def check(self, transaction: Transaction) -> None:
        """Raise Deleted if the study was deleted, here or by another server."""
        if self.is_deleted or not self.found.is_in(transaction):
            self.is_deleted = True
            raise Deleted(self._name)

    def marks(self) -> dict[str, int]:
        """Number of each observation by its fingerprint, whether it was measured here or reported later."""
        known: dict[str, int] = {}
        for record in self.records.values():
            if record.is_finished:
                own = (mark_of(_without_reports(version)) for version in (record, *record.earlier))
                for mark in [record.mark] if record.mark else own:
                    known.setdefault(mark, record.number)
        return known

    def unknown(self, known: Iterable[int]) -> list[Record]:
        """Trials that are pending for a suggestion that knows of these fresh ones, by number."""
        missing = self.pending.keys() | self.fresh.difference(known)
        return self.outcomes(sorted(missing))

    def _enter(self, record: Record) -> None:
        super()._enter(record)
        if record.is_finished and record.number not in self._order:
            self.fresh.add(record.number)
        self._order |= dict.fromkeys(record.told)
        self.fresh.difference_update(record.told)


def _without_reports(trial: AnyTrial) -> AnyTrial:
    return replace(trial, readings={name: tuple(trial.runs(name)) for name in trial.readings if trial.runs(name)})


class Known(NamedTuple):
    """State of a study: its trials, those with outcomes that count, and an optimizer that has them."""

    records: list[Record]
    outcomes: list[Record]
    has_value: bool
    optimizer: Optimizer


class RefusedOutcome(ValueError):
    """An outcome that cannot be stored: there is no such trial, or it has another outcome, which stays."""

    def __init__(self, place: int, stands: Record | None) -> None:
        super().__init__(f"outcome {place} cannot be stored")
        self.place, self.stands = place, stands


@dataclass(frozen=True)
class AskRequest:
    """Request for ``count`` trials, for the client of this name if it has one, in this context."""

    count: int
    client: str | None = None
    context: Params | None = None


Assignment = list[tuple[int, Params, Mapping[str, Any] | None]]
"""Assigned trials: ids, params and fidelities."""


@dataclass
class AskPlan:
    """Plan for a request: trials that exist, and new suggestions."""

    request: AskRequest
    running: list[Record]
    suggestions: list[Record] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """Number of trials that are still missing."""
        return self.request.count - len(self.running) - len(self.suggestions)


class LiveStudy:
    """One study, open for requests.

    A trial without a sign of its client for ``lease`` seconds goes to another one. Threads of the ``pool`` answer asks,
    and ``telling`` is the queue of outcomes to store, shared by all studies. Without a ``chooser`` trials are chosen
    here.
    """

    def __init__(
        self,
        storage: Storage,
        found: StoredStudy,
        study: Study,
        lease: float,
        pool: Executor,
        telling: BatchQueue[StoredOutcome, Record | None],
        chooser: Chooser | None,
        fitting: Fitting,
    ) -> None:
        self.study, self.measures = study, study.measures
        self._storage, self.ledger = storage, LiveTable(storage, found, study)
        self._model = ModelClient(replay_of(study), chooser)
        self._leases, self._lock, self.fitting = LeaseMonitor(lease), Lock(), fitting
        self._latest: Known | None = None
        self._asking, self._telling = BatchQueue(pool, self._granted, (Unavailable, NoStudy)), telling

    def close(self) -> None:
        """Answer all further requests, and those that wait, with Deleted."""
        self.ledger.is_deleted = True

    def ask(self, request: AskRequest) -> Future[Assignment]:
        """Trials to measure, as ids, params and fidelities: first those of the client, then lost ones, then new ones.

        Concurrent requests for a study are batched, so new outcomes are processed once. Requests of one client in one
        context get the same trials. Overtaken if other servers were faster `ATTEMPTS` times.
        """
        return self._asking.submit(request)

    def outcome(
        self,
        number: int,
        readings: Readings | None,
        failure: str = "",
        fidelity: Any = None,
        block: Block | None = None,
    ) -> Record:
        """Outcome of a trial with these readings, or of a failure; ValueError if the fidelity is bad.

        By default the fidelity is the one that was asked, or that of the last report if the trial was to be stopped.
        """
        levels, record = self.study.levels, None
        if levels is None and fidelity is not None:
            raise ValueError("the study has no fidelity: leave it out")
        at = None if levels is None or fidelity is None else levels.checked(fidelity)
        if levels is not None and not failure:
            self.records()
            record = self.ledger.records.get(number)
        if record is not None and levels is not None:
            reports = record.reports()
            was_stopped = record.is_stopped and not record.is_finished
            at = at or ({levels.name: reports[-1].step} if was_stopped else record.fidelity)
            readings = {**(readings or {}), VALUE: (*reports, *(readings or {})[VALUE])} if reports else readings
        is_stopped = record is not None and record.is_stopped
        state: Any = "failed" if failure else "done"
        more: dict[str, Any] = {"fidelity": at, "failure": failure, "is_stopped": is_stopped, "block": block}
        return Record(number, {}, state=state, readings=readings or {}, **more)

    def tell(self, outcome: Record) -> Future[Record | None]:
        """Store the outcome of a trial; return the first one, which stays; None if there is no such trial."""
        return self._telling.submit(StoredOutcome(self.ledger.found, self.ledger.records.get(outcome.number), outcome))

    def tell_many(self, outcomes: Sequence[tuple[Record, str]]) -> list[int]:
        """Store outcomes of trials and observations of the past, all or none; return their numbers.

        An observation of the past has a negative number, and an origin, which is any text. One that is known already,
        by its fingerprint, is not stored again. RefusedOutcome if one cannot be stored, Overtaken if other servers were
        faster `ATTEMPTS` times.
        """
        with self._lock:
            return self._storage.patiently(lambda: unless_overtaken(lambda: self._store(outcomes)))

    def correct(self, number: int, readings_of: Callable[[Record], Readings], reason: str) -> Record | None:
        """Replace the readings of a finished trial by those of a function of it; return it, None if there is none.

        ValueError if it has no outcome yet, or its new readings are bad.
        """
        return self._changed(number, lambda old: corrected(old, readings_of(old), reason))

    def withdraw(self, number: int, reason: str) -> Record | None:
        """Take a finished trial out of all conclusions; return it, None if there is none. ValueError as `correct`."""
        return self._changed(number, lambda old: withdrawn(old, reason))

    def _changed(self, number: int, change: Callable[[Record], Record]) -> Record | None:
        with self._lock:
            return self._storage.patiently(lambda: self.ledger.changed(number, change))

    def report(self, number: int, fidelity: Params, value: float) -> bool | None:
        """Keep an intermediate value of a pending trial; return True if it is to be stopped, None if there is no trial.

        A trial is judged, and a report stored, when it has reached another of five fidelities: see `Optimizer.report`.
        ValueError if the study has no such fidelity, or the trial has an outcome.
        """
        levels = self.study.levels
        if levels is None:
            raise ValueError("the study has no fidelity: make one with a fidelity to report intermediate values")
        if self.study.goals:
            raise ValueError("a report has one value, and the study has several objectives: tell their values instead")
        reached = levels.checked(fidelity)
        with self._lock:
            self._storage.patiently(self.ledger.refresh)
            record = self.ledger.records.get(number)
            if record is None:
                return None
            if record.is_finished:
                raise ValueError(f"trial {number} has an outcome already")
            reports = record.reports()
            last = {levels.name: reports[-1].step if reports else -math.inf}
            if record.is_stopped or levels.rung(reached) <= levels.rung(last):
                return record.is_stopped
            reports = [*reports, Reading(value, step=reached[levels.name])]
            outcomes, settled = self.ledger.history()
            is_stopped = self._model(outcomes, partial(judged, record, reports), settled=settled)
            new = replace(record, is_stopped=is_stopped)
            holder = {**record.holder, "token": token_hex(8)}

            def keep() -> None:
                with self._storage.transaction() as transaction:
                    self.ledger.check(transaction)
                    trials.report(transaction, self.ledger.study, new, reports, holder)

            self._storage.patiently(keep)
            return is_stopped

    def records(self) -> list[Record]:
        """All trials, by number."""
        with self._lock:
            return self._storage.patiently(self.ledger.refresh)

    def known(self) -> Known:
        """Present state of the study, with an optimizer to ask for conclusions."""
        with self._lock:
            records, latest = self._storage.patiently(self.ledger.refresh), self._latest
            outcomes, settled = self.ledger.history()
            if latest is None or len(latest.records) != len(records) or not are_same(latest.outcomes, outcomes):
                optimizer = self._model(outcomes, itself, settled=settled)
                latest = self._latest = Known(records, outcomes, any(map(self.measures.has_value, outcomes)), optimizer)
            return latest._replace(records=records)

    def findings(self) -> Findings:
        """Findings for the page, without the times from ask to answer: they are not durations of commands."""
        known = self.known()
        return Findings(self.study, [replace(record, seconds=None) for record in known.records], known.optimizer)

    def look(self) -> None:
        """Read the holders of all trials, so that expired leases are noticed."""
        with self._lock:
            self._storage.patiently(self.ledger.refresh)
            self._abandoned()

    def _store(self, outcomes: Sequence[tuple[Record, str]]) -> list[int]:
        self.ledger.refresh()
        numbers: list[int] = []
        known = self.ledger.marks() if any(outcome.number < 0 for outcome, _ in outcomes) else {}
        new: dict[str, Record] = {}
        for place, (outcome, origin) in enumerate(outcomes):
            if outcome.number >= 0:
                if outcome.number not in self.ledger.records:
                    raise RefusedOutcome(place, None)
                numbers.append(outcome.number)
                continue
            marks = mark_of(outcome, origin), mark_of_1_0(outcome, self.measures, origin)
            if not known.keys() & set(marks):
                known[marks[0]] = self.ledger.next + len(new)
                new[marks[0]] = outcome
            numbers.append(next(known[mark] for mark in marks if mark in known))
        measured = [(trial.number, place, trial) for place, (trial, _) in enumerate(outcomes) if trial.number >= 0]
        with self._storage.transaction() as transaction:
            self.ledger.check(transaction)
            for number, place, outcome in sorted(measured, key=lambda row: row[:2]):  # as single outcomes: no deadlocks
                stands = _stored(transaction, self.ledger.study, self.ledger.records[number], outcome)
                if not agree(stands, outcome):
                    raise RefusedOutcome(place, stands)
            trials.add_imported(transaction, self.ledger.study, self.ledger.next, new, self.measures)
        return numbers

    def _granted(self, requests: Sequence[AskRequest]) -> list[Assignment]:
        keys = [_key(request, place) for place, request in enumerate(requests)]
        largest: dict[object, AskRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            largest[key] = max(largest.get(key, request), request, key=lambda wish: wish.count)
        with self._lock:
            asked = list(largest.values())
            assignments = self._storage.patiently(lambda: unless_overtaken(lambda: self._grant(asked)))
        granted = dict(zip(largest, assignments, strict=True))
        return [granted[key][: request.count] for key, request in zip(keys, requests, strict=True)]

    def _grant(self, requests: Sequence[AskRequest]) -> list[Assignment]:
        """Grant requests of which no two are of one client in one context."""
        self.ledger.refresh()
        plans = [AskPlan(request, self._own(request)) for request in requests]
        self._share_out_lost(plans)
        self._propose(plans)
        return self._write(plans)

    def _own(self, request: AskRequest) -> list[Record]:
        """Pending trials of a client, the first ones, as many as it asks for."""
        if request.client is None:
            return []
        pending = (self.ledger.pending[number] for number in sorted(self.ledger.pending))
        own = (run for run in pending if (run.holder.get("client"), run.context) == (request.client, request.context))
        return list(islice(own, request.count))

    def _abandoned(self) -> list[int]:
        return self._leases.abandoned({number: record.holder for number, record in self.ledger.pending.items()})

    def _share_out_lost(self, plans: Sequence[AskPlan]) -> None:
        """Assign trials with expired leases to requests that need more."""
        taken = {record.number for plan in plans for record in plan.running}
        for number in sorted(set(self._abandoned()) - taken):
            record = self.ledger.pending[number]
            plan = next((plan for plan in plans if plan.missing > 0 and plan.request.context == record.context), None)
            if plan:
                plan.running.append(record)

    def _propose(self, plans: Sequence[AskPlan]) -> None:
        """Choose the missing trials."""
        if not any(plan.missing > 0 for plan in plans):
            return
        told, fresh = self.ledger.told, sorted(self.ledger.fresh)
        fresh, fits = self.fitting.ready(told, fresh, self.ledger.outcomes(fresh))
        pending: list[Trial] = [*self.ledger.unknown(fresh)]
        contexts = [plan.request.context for plan in plans for _ in range(plan.missing)]
        outcomes, proposed = told + self.ledger.outcomes(fresh), list[Trial]()
        for first in range(0, len(contexts), PORTION):
            some = contexts[first : first + PORTION]
            proposed += self._model(outcomes, partial(chosen, [*pending, *proposed], some), fits=fits)
        asked = iter(proposed)
        for plan in plans:
            while plan.missing > 0:
                trial = next(asked)
                known, context = tuple(fresh), plan.request.context
                plan.suggestions.append(Record(-1, trial.params, context=context, fidelity=trial.fidelity, told=known))
                fresh = []

    def _write(self, plans: Sequence[AskPlan]) -> list[Assignment]:
        """Store all assignments in one transaction; Overtaken if the trials have changed since they were read."""
        study, numbers = self.ledger.study, count(self.ledger.next)
        granted: list[Assignment] = []
        with self._storage.transaction() as transaction:
            self.ledger.check(transaction)
            taken = [(record, plan.request) for plan in plans for record in plan.running]
            for record, request in sorted(taken, key=lambda pair: pair[0].number):  # as outcomes are: no deadlocks
                if not trials.take(transaction, study, record, _holder(request)):
                    raise Overtaken
            for plan in plans:
                new = [(next(numbers), suggestion) for suggestion in plan.suggestions]
                for number, suggestion in new:
                    held = replace(suggestion, holder=_holder(plan.request), started=datetime.now())
                    trials.add(transaction, study, number, held)
                old = [(record.number, record.params, record.fidelity) for record in plan.running]
                granted.append(old + [(number, trial.params, trial.fidelity) for number, trial in new])
        return granted


def store_outcomes(transaction: Transaction, answers: Sequence[StoredOutcome]) -> list[Record | None]:
    """Store outcomes of any studies; return the ones that are stored, None where there is no such trial."""
    # in one order, so that servers that write the same trials at once do not deadlock
    order = sorted(range(len(answers)), key=lambda place: (answers[place].study.id, answers[place].outcome.number))
    stands: dict[int, Record | None] = {}
    present: dict[int, bool] = {}
    for place in order:
        study, record, outcome = answers[place]
        if study.id not in present:
            present[study.id] = study.is_in(transaction)
        if present[study.id] and record is None:
            record = trials.find(transaction, study.id, outcome.number)
        stands[place] = _stored(transaction, study.id, record, outcome) if present[study.id] and record else None
    return [stands[place] for place in range(len(answers))]


def _stored(transaction: Transaction, study: int, record: Record, outcome: Record) -> Record | None:
    """Store an outcome unless the trial has one; return the one that is stored, None if the trial was deleted."""
    if record.is_finished:
        return record
    seconds = max((datetime.now() - record.started).total_seconds(), 0.0) if record.started else 0.0
    client = record.holder.get("client")
    block = {**({MACHINE: client} if client else {}), **(outcome.block or {})}
    return trials.tell(transaction, study, replace(outcome, seconds=seconds, block=block or None))


def _key(request: AskRequest, place: int) -> object:
    """Key that is equal for requests that get the same trials; without a client it is the place."""
    return place if request.client is None else (request.client, json.dumps(request.context, sort_keys=True))


def _holder(request: AskRequest) -> dict[str, Any]:
    """Holder of a trial, with a token that is new at every sign of the client."""
    return {"client": request.client, "token": token_hex(8)}
