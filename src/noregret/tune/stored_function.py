"""A Python function whose trials are kept in the store of `noregret tune`: `minimize` with ``storage``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol, Self

from sqlalchemy import URL

from noregret.optimizer import Choice, Optimizer, Product, Table, Trial, safe_risks
from noregret.tune.learning.suggest import believed, informed, replay_of
from noregret.tune.measuring import Outcome
from noregret.tune.store.databases.database import restoring_command
from noregret.tune.store.identity import differing
from noregret.tune.store.records import Record, Suggestion, arrived
from noregret.tune.store.storage import Storage
from noregret.tune.store.store import Store
from noregret.tune.study.parameters import in_words
from noregret.tune.study.results import LastNumber
from noregret.tune.study.study import Budget, Constraint, Stop, Study, StudyError

NAME = "function"
"""Name of the study in its storage."""


class Plan(Protocol):
    """When to ask, when to measure the recommendation, and when to stop."""

    evaluations: int | None
    seconds: float | None
    stop: float | str | None
    confirm: int
    stopped: Any

    def left(self, made: int, finished: int) -> float:
        """Evaluations that are left."""
        ...

    def next(self, optimizer: Optimizer, made: int, finished: int) -> Trial | None:
        """Trial to measure next; None at the end."""
        ...


class BudgetSpent(Exception):
    """There is no time left."""


class StoredFunction:
    """Trials in a storage, of this call and of earlier ones.

    Parameters
    ----------
    optimizer : Optimizer
        It describes what is tuned; it is not changed.
    storage : path or URL
    rng : int, optional
    plan : Plan
    """

    def __init__(self, optimizer: Optimizer, storage: str | os.PathLike[str], rng: Any, plan: Plan) -> None:
        self._study, self._plan = _study(optimizer, os.fspath(storage), rng, plan), plan
        self._replay, self._store = replay_of(self._study), _opened(self._study)
        self.is_over, self._ended = False, Event()
        self._running: set[int] = set()
        self._finished = 0

    def __enter__(self) -> Self:
        self._heart = Thread(target=self._beat, daemon=True)
        self._heart.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._heart.join()
        self._store.close()

    @property
    def optimizer(self) -> Optimizer:
        """Optimizer that knows all outcomes."""
        return believed(self._study, self._store.records(), self._replay)

    @property
    def made(self) -> int:
        """Number of trials in all."""
        return len(self._store.records())

    def next(self) -> Trial | None:
        try:
            if self._plan.left(0, self._finished) <= 0:  # no trial that waits either: its time is over
                raise BudgetSpent
            claim = self._store.claim(self._suggestion)
        except BudgetSpent:
            self._plan.stopped, self.is_over = "seconds", True
            return None
        self.is_over = claim.over
        if claim.over and self._store.stopped() == "within":
            self._plan.stopped = "within"
        if claim.trial is None:
            return None
        self._running.add(claim.trial.number)
        return Trial(claim.trial.number, claim.trial.params)

    def tell(self, trial: Trial, outcome: Any) -> None:
        self._running.discard(trial.id)
        constraints = {name: its for name, its in (outcome.constraints or {}).items() if its is not None}
        failure = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
        told = Outcome(outcome.value, failure, outcome.seconds, constraints=constraints, cost=outcome.cost)
        self._store.tell(trial.id, told)
        self._store.back_up()
        self._finished += 1

    def give_back(self, trial: Trial) -> None:
        self._running.discard(trial.id)
        self._store.give_back(trial.id)

    def _suggestion(self, records: Sequence[Record]) -> Suggestion | None:
        known, new = arrived(records)
        optimizer = informed(self._study, records, [*known, *new], self._replay)
        trial = self._plan.next(optimizer, len(records), self._finished)
        if trial is None and self._plan.stopped != "within":
            raise BudgetSpent  # None would store that the stopping rule holds
        return None if trial is None else Suggestion(trial.params, new)

    def _beat(self) -> None:
        """Renew the lease on the running trials, so that no other process takes them over."""
        while not self._ended.wait(self._study.lease / 3):
            with suppress(StudyError, RuntimeError):  # an error that lasts is raised when the outcome is stored
                self._store.heartbeat(list(self._running))


def _study(optimizer: Optimizer, storage: str, rng: Any, plan: Plan) -> Study:
    """The study of a function: one without a command."""
    if rng is not None and (isinstance(rng, bool) or not isinstance(rng, Integral)):
        raise ValueError(f"with storage, rng must be a whole number, which is stored, or None for 0, got {rng!r}")
    path = Path("storage") if "://" in storage else Path(storage).expanduser().absolute()
    url = storage if "://" in storage else URL.create("sqlite", database=str(path)).render_as_string(False)
    risks = safe_risks(optimizer.safe, optimizer.constraints)
    bounds = {
        name: {"max" if its.operator == "<=" else "min": its.bound, "safe": None if risk is None else 1 - risk}
        for (name, its), risk in zip(optimizer.constraints.items(), risks, strict=True)
    }
    return Study(
        path,
        (),
        _checked_space(optimizer),
        name=NAME,
        goal=optimizer.goal,
        storage=url,
        seed=int(rng or 0),
        budget=Budget(rounds=plan.evaluations, seconds=plan.seconds),
        confirm=plan.confirm,
        stop=None if plan.stop is None else Stop(plan.stop),
        baseline=optimizer.baseline,
        constraints={name: Constraint(LastNumber(), **bound) for name, bound in bounds.items()},
        require=optimizer.require,
    )


def _checked_space(optimizer: Optimizer) -> Any:
    """The space as a study has it; ValueError if a storage cannot keep its values."""
    space = optimizer.space
    if isinstance(space, Product):
        found: Any = dict(space.parameters)
        options = {name: list(its.options) for name, its in found.items() if isinstance(its, Choice)}
    else:
        assert isinstance(space, Table)
        if space.is_array or not all(isinstance(name, str) for name in space.names):
            raise ValueError(
                "with storage, the rows of a table must be dicts with text as names, such as [{'x': 1.5, 'kind': 'a'}]"
            )
        found = [space.rows[number] for number in range(len(space.rows))]
        options = {name: [row[name] for row in found] for name in space.names}
    for name, values in options.items():
        odd = [value for value in values if not isinstance(value, bool | int | float | str | None)]
        if odd:
            raise ValueError(
                f"with storage, the values of {name!r} must be text, numbers, True, False or None, got {odd[0]!r}: put "
                "a name in its place, and look the object up by it in f"
            )
    return found


def _opened(study: Study) -> Store:
    """The store of a study; ValueError if its storage has another one."""
    try:
        return Store(study)
    except StudyError:
        with suppress(StudyError):
            storage = Storage(study.storage, study.folder, restoring_command(study), readonly=True)
            try:
                found = storage.find(study.name)
            finally:
                storage.close()
            was, now = found.identity if found else {}, study.identity()
            for key in differing(was, now) if found else ():
                before, after = (in_words(identity.get(key, "absent")) for identity in (was, now))
                raise OtherStudy(
                    f"storage {storage.where} keeps evaluations of another problem: {key} was {before}, now it is "
                    f"{after}. Change it back, or give another storage"
                ) from None
        raise


class OtherStudy(ValueError):
    """The storage has another problem than the one that is tuned."""
