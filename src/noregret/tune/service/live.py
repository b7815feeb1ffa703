"""An open study: asks, outcomes and conclusions, for all threads of one server and beside other servers.

New trials are chosen from the trials that were read, and written only if no other server has made a trial since;
otherwise they are chosen again. So any number of servers can work on a study: every trial knows of the one before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from secrets import token_hex
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from noregret.optimizer import LEVEL, Estimate, Gain, Optimizer, checked_constraints
from noregret.tune.learning.findings import Findings
from noregret.tune.learning.suggest import replay_of
from noregret.tune.measuring import Outcome
from noregret.tune.service.choosers import Chooser, Fitting, ModelClient, chosen, itself
from noregret.tune.service.served import ServiceStudy
from noregret.tune.service.storage import Ledger, Storage
from noregret.tune.store import rows
from noregret.tune.store.faults import Unavailable
from noregret.tune.store.leases import LeaseMonitor
from noregret.tune.store.records import Suggestion
from noregret.tune.store.rows import Entry, Made, Told
from noregret.tune.study.study import Params

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


ATTEMPTS = 50
"""Number of attempts when other servers are faster. With three equally fast servers, one in 10^9 requests fails after
that many."""


class BatchQueue(Generic[Asked, Answered]):
    """Queue of requests that are worked on in batches: all that arrive during one batch are the next.

    Parameters
    ----------
    pool : Executor
        Its threads do the work: one batch at a time, with other work of the pool between two batches.
    work : callable
        Returns an answer for each request of a batch. If it raises an exception, the requests are worked on one by one,
        and each gets its own answer or exception.
    for_all : exception type
        An exception of this type concerns all requests alike, and trying them one by one would only take longer.
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
            found = self._work([asked for asked, _ in lot]) if lot else []
        except BaseException as error:  # the future reports it, whatever it is
            if len(lot) > 1 and not isinstance(error, self._for_all):
                for one in lot:
                    self._answer([one])
                return
            for _, answer in lot:
                answer.set_exception(error)
        else:
            for (_, answer), its in zip(lot, found, strict=True):
                answer.set_result(its)


class Known(NamedTuple):
    """State of a study: its trials, the number of outcomes, and an optimizer that has them."""

    entries: list[Entry]
    answers: int
    has_value: bool
    optimizer: Optimizer


class Overtaken(Exception):
    """Another server has changed the trials that new ones were chosen from."""


@dataclass(frozen=True)
class AskRequest:
    """Request for ``count`` trials, for the client of this name if it has one, in this context."""

    count: int
    client: str | None = None
    context: Params | None = None


Assignment = list[tuple[int, Params]]
"""Assigned trials: ids and params."""
Telling = BatchQueue[Told, Outcome | None]
"""Queue of outcomes to store."""


@dataclass
class Plan:
    """Plan for a request: trials that exist, and new suggestions."""

    request: AskRequest
    running: list[Entry]
    suggestions: list[Suggestion] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """Number of trials that are still missing."""
        return self.request.count - len(self.running) - len(self.suggestions)


class LiveStudy:
    """One study, open for requests.

    Parameters
    ----------
    storage : Storage
    number : int
        Its id in the tables.
    study : ServiceStudy
    lease : float
        Seconds after which a trial without a sign of its client goes to another one.
    pool : Executor
        Its threads answer asks.
    telling : BatchQueue
        Queue of outcomes to store, shared by all studies.
    chooser : Chooser, optional
        Process that chooses trials; without one they are chosen here.
    fitting : Fitting
        The fits that trials are chosen by.
    """

    def __init__(
        self,
        storage: Storage,
        number: int,
        study: ServiceStudy,
        lease: float,
        pool: Executor,
        telling: Telling,
        chooser: Chooser | None,
        fitting: Fitting,
    ) -> None:
        self.study = study
        bounds = {name: constraint.bound for name, constraint in study.constraints.items()}
        self.constraints = checked_constraints(bounds)
        self._storage, self._ledger, self._model = (
            storage,
            Ledger(number, study),
            ModelClient(replay_of(study), chooser),
        )
        self._leases, self._lock, self._fitting = LeaseMonitor(lease), Lock(), fitting
        self._latest: Known | None = None
        self._asking, self._telling = BatchQueue(pool, self._granted, Unavailable), telling

    def ask(self, request: AskRequest) -> Future[Assignment]:
        """Trials to measure, as ids and params: first those that the client has, then lost ones, then new ones.

        Concurrent requests for a study are batched, so new outcomes are processed once. Requests of one client in one
        context get the same trials. Overtaken if other servers were faster `ATTEMPTS` times.
        """
        return self._asking.submit(request)

    def tell(self, number: int, outcome: Outcome) -> Future[Outcome | None]:
        """Store the outcome of a trial; return the first one, which stays; None if there is no such trial."""
        entry = self._ledger.entries.get(number)
        made = None if entry is None else Made(entry.id, entry.record.started)
        return self._telling.submit(Told(self._ledger.study, number, made, outcome))

    def entries(self) -> list[Entry]:
        """All trials, by number."""
        with self._lock:
            self._storage.patiently(self._read_on)
            return list(self._ledger.entries.values())

    def best(self, context: Params | None) -> tuple[Estimate, float] | None:
        """Recommended params and the half-life of observations, None before the first value."""
        known = self._known()
        return (known.optimizer.best(context), known.optimizer.half_life) if known.has_value else None

    def predict(self, params: Params, context: Params | None) -> Estimate:
        """Estimate for params of the study; ValueError while there are too few values."""
        return self._known().optimizer.predict(params, context)

    def gain(self, context: Params | None) -> Gain:
        """Gain of the recommended params over the baseline; ValueError while there are too few values."""
        if self.study.baseline is None:
            raise ValueError("there is nothing to compare with: make a study with a baseline")
        return self._known().optimizer.gain(context)

    def done(self, within: float | str, confidence: float, context: Params | None) -> tuple[bool, float, float]:
        """Decision of the stopping rule, the gap to other params, and its probability."""
        known = self._known()
        if not known.has_value:
            return False, math.inf, LEVEL
        best = known.optimizer.best(context)
        return known.optimizer.done(within, confidence, context), best.gap, best.level

    def findings(self) -> Findings:
        """Findings for the page."""
        known = self._known()
        return Findings(self.study, [entry.record for entry in known.entries], known.optimizer)

    def look(self) -> None:
        """Read the holders of all trials, so that expired leases are noticed."""
        with self._lock:
            self._storage.patiently(self._read_on)
            self._abandoned()

    def _known(self) -> Known:
        """Present state of the study."""
        with self._lock:
            self._storage.patiently(self._read_on)
            told = self._ledger.told
            answers = told + self._ledger.answers(sorted(self._ledger.fresh))
            entries = list(self._ledger.entries.values())
            if (
                self._latest is None
                or self._latest.answers != len(answers)
                or len(self._latest.entries) != len(entries)
            ):
                optimizer = self._model(answers, itself, settled=len(told))
                has_value = any(value is not None for _, value, *_ in answers)
                self._latest = Known(entries, len(answers), has_value, optimizer)
            return self._latest

    def _read_on(self) -> None:
        with self._storage.snapshot() as connection:
            self._ledger.read_on(connection)

    def _granted(self, requests: Sequence[AskRequest]) -> list[Assignment]:
        keys = [_key(request, place) for place, request in enumerate(requests)]
        largest: dict[object, AskRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            largest[key] = max(largest.get(key, request), request, key=lambda its: its.count)
        with self._lock:
            found = self._storage.patiently(lambda: self._grant(list(largest.values())))
        granted = dict(zip(largest, found, strict=True))
        return [granted[key][: request.count] for key, request in zip(keys, requests, strict=True)]

    def _grant(self, requests: Sequence[AskRequest]) -> list[Assignment]:
        """Grant requests of which no two are of one client in one context."""
        for _ in range(ATTEMPTS):
            self._read_on()
            plans = [Plan(request, self._own(request)) for request in requests]
            self._share_out_lost(plans)
            self._propose(plans)
            with suppress(Overtaken):
                return self._write(plans)
        raise Overtaken("other servers keep changing this study: ask again")

    def _own(self, request: AskRequest) -> list[Entry]:
        """Pending trials of a client, the first ones, as many as it asks for."""
        if request.client is None:
            return []
        is_own: Callable[[Entry], bool] = lambda entry: (  # noqa: E731
            entry.holder.get("client") == request.client and entry.record.context == request.context
        )
        return list(filter(is_own, self._ledger.outstanding()))[: request.count]

    def _abandoned(self) -> list[int]:
        return self._leases.abandoned({number: entry.holder for number, entry in self._ledger.running.items()})

    def _share_out_lost(self, plans: Sequence[Plan]) -> None:
        """Assign trials with expired leases to requests that need more."""
        taken = {entry.record.number for plan in plans for entry in plan.running}
        for number in sorted(set(self._abandoned()) - taken):
            entry = self._ledger.running[number]
            plan = next((its for its in plans if its.missing > 0 and its.request.context == entry.record.context), None)
            if plan:
                plan.running.append(entry)

    def _propose(self, plans: Sequence[Plan]) -> None:
        """Choose the missing trials."""
        if not any(plan.missing > 0 for plan in plans):
            return
        told, fresh = self._ledger.told, sorted(self._ledger.fresh)
        fresh, fits = self._fitting.ready(told, fresh, self._ledger.answers(fresh))
        pending = [(entry.record.params, entry.record.context) for entry in self._ledger.unknown(fresh)]
        contexts = [plan.request.context for plan in plans for _ in range(plan.missing)]
        found = iter(self._model(told + self._ledger.answers(fresh), partial(chosen, pending, contexts), fits=fits))
        for plan in plans:
            while plan.missing > 0:
                plan.suggestions.append(Suggestion(next(found), fresh, plan.request.context))
                fresh = []

    def _write(self, plans: Sequence[Plan]) -> list[Assignment]:
        """Store all assignments in one transaction; Overtaken if the trials have changed since they were read."""
        study, numbers = self._ledger.study, count(self._ledger.newest + 1)
        granted: list[Assignment] = []
        with self._storage.transaction() as connection:
            if rows.newest(connection, study) != self._ledger.newest:
                raise Overtaken
            for plan in plans:
                for entry in plan.running:
                    if not rows.hand_over(connection, entry.id, entry.holder, _holder(plan.request)):
                        raise Overtaken
                new = [(next(numbers), suggestion) for suggestion in plan.suggestions]
                for number, suggestion in new:
                    rows.add(connection, study, number, suggestion, _holder(plan.request), self._ledger.distributions)
                old = [(entry.record.number, entry.record.params) for entry in plan.running]
                granted.append(old + [(number, suggestion.params) for number, suggestion in new])
        return granted


def _key(request: AskRequest, place: int) -> object:
    """Key that is equal for requests that get the same trials; without a client it is the place."""
    return place if request.client is None else (request.client, json.dumps(request.context, sort_keys=True))


def _holder(request: AskRequest) -> dict[str, Any]:
    """Holder of a trial, with a token that is new at every sign of the client."""
    return {"client": request.client, "token": token_hex(8)}
