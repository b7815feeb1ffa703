"""Trials that were given away to be measured, and their answers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
from uuid import uuid4

from noregret.optimizer.checking import Bound


@dataclass(frozen=True, eq=False)
class Trial:
    """One thing to measure, in a context if there are contexts, at a fidelity if there is one.

    Its ``token`` tells the trials of different optimizers apart, wherever a trial has been.
    """

    id: int
    params: Any
    token: str = ""
    context: Any = None
    fidelity: Any = None

    def __repr__(self) -> str:
        context = "" if self.context is None else f", context={self.context!r}"
        fidelity = "" if self.fidelity is None else f", fidelity={self.fidelity!r}"
        return f"Trial(id={self.id}, params={self.params!r}{context}{fidelity})"


class Observation(NamedTuple):
    """Answer for some params: the value, None for a failure; noise, constraints and cost are None if not known.

    Where there is a ``bound``, the ``value`` is one: all that is known is that it is at least or at most that. With
    several objectives ``values`` has those that were measured, by name, and ``value`` is the first of them. A value
    ``is_report`` if a later one of the same run replaces it.
    """

    params: Any
    value: float | None
    noise: float | None
    constraints: Mapping[str, float | None]
    context: Any = None
    bound: Bound | None = None
    cost: float | None = None
    fidelity: Any = None
    values: Mapping[str, float] = {}
    is_report: bool = False


class _Measured(NamedTuple):
    params: Any
    value: float
    trust: float


class Measurement(_Measured):
    """One observed value, and how far it is trusted: 1 if it fits the others, about 0 if it is absurd.

    It unpacks into params, value and trust. Its ``context`` is None if there are no contexts. Its ``bound`` is
    "at_least" or "at_most" if the value is only known to be beyond it, None otherwise.
    """

    context: Any
    bound: Bound | None

    def __new__(cls, params: Any, value: float, trust: float, context: Any = None, bound: Bound | None = None) -> Self:
        measurement = super().__new__(cls, params, value, trust)
        measurement.context, measurement.bound = context, bound
        return measurement


class _Sent(NamedTuple):
    """A trial that was given away: its point, its token, and the number of answers after which it counts as lost."""

    number: int
    token: str
    lost_at: int


class Run(NamedTuple):
    """State of a trial that reports intermediate values."""

    reached: dict[str, Any]
    """Highest fidelity that was reported."""
    kept: int
    """Rungs reached by the report that was kept last."""
    judged: int = 0
    """Rungs reached when it was last judged whether to stop."""
    is_stopped: bool = False


class Trials:
    """All trials that were given away, by their id.

    A pending trial counts as lost when ``PATIENCE`` times as many answers came since as trials were pending with it.
    """

    PATIENCE = 10

    def __init__(self) -> None:
        self._sent: dict[int, _Sent] = {}
        self._next = 0
        self._told: set[int] = set()
        self._failed: set[int] = set()
        self._unanswered: dict[int, None] = {}  # trials without an answer, oldest first
        self.answers: list[int | None] = []  # the trial of each answer, None for params of the past
        self.runs: dict[int, Run] = {}  # trials without an answer that have reported
        self._reports = 0  # answers that are reports

    def __len__(self) -> int:
        return self._next

    def copy(self) -> Trials:
        """Return an independent copy."""
        twin = copy.copy(self)
        twin._sent, twin._told, twin._failed = dict(self._sent), set(self._told), set(self._failed)
        twin.answers, twin._unanswered = list(self.answers), dict(self._unanswered)
        twin.runs = dict(self.runs)
        return twin

    def record(self) -> dict[str, Any]:
        """Everything about the trials, as JSON."""
        return {
            "next": self._next,
            "sent": [[id, *its] for id, its in self._sent.items()],
            "told": sorted(self._told),
            "failed": sorted(self._failed),
            "unanswered": list(self._unanswered),
            "answers": self.answers,
            "runs": [[id, *its] for id, its in self.runs.items()],
            "reports": self._reports,
        }

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Trials:
        """Trials from their `record`."""
        trials = cls()
        trials._next, trials.answers = record["next"], list(record["answers"])
        trials._sent = {id: _Sent(*its) for id, *its in record["sent"]}
        trials._told, trials._failed = set(record["told"]), set(record["failed"])
        trials._unanswered = dict.fromkeys(record["unanswered"])
        trials.runs = {id: Run(*its) for id, *its in record.get("runs", ())}
        trials._reports = record.get("reports", 0)
        return trials

    def send(self, number: int, params: Any, context: Any, fidelity: Any = None) -> Trial:
        """A new trial at the point with this number."""
        trial, with_it = Trial(self._next, params, uuid4().hex, context, fidelity), len(self.pending()) + 1
        self._sent[trial.id] = _Sent(number, trial.token, len(self.answers) - self._reports + self.PATIENCE * with_it)
        self._unanswered[trial.id], self._next = None, self._next + 1
        return trial

    def pending(self) -> dict[int, int]:
        """Points of the trials without an answer that do not count as lost, by their id."""
        sent = ((id, self._sent[id]) for id in self._unanswered)
        return {id: each.number for id, each in sent if len(self.answers) - self._reports < each.lost_at}

    def oldest(self, number: int) -> int | None:
        """First trial without an answer at this point, None if there is none."""
        return next((id for id in self._unanswered if self._sent[id].number == number), None)

    def forget(self, answers: int, numbers: Mapping[int, int]) -> None:
        """Keep the last ``answers`` answers, the trials they answer and the pending ones; points are renumbered."""
        pending, fewer = self.pending(), len(self.answers) - answers
        self.answers = self.answers[-answers:]
        kept = set(pending).union(id for id in self.answers if id is not None)
        sent = {id: self._sent[id] for id in sorted(kept)}
        self._sent = {id: _Sent(numbers[each.number], each.token, each.lost_at - fewer) for id, each in sent.items()}
        self._told, self._failed = self._told & kept, self._failed & kept
        self._unanswered = dict.fromkeys(id for id in self._unanswered if id in pending)

    def number(self, trial: Trial) -> int:
        """The number of a trial's point; ValueError if it is none of these, or has its answer already."""
        self._check_own(trial)
        if trial.id in self._told:
            context = "" if trial.context is None else ", context=trial.context"
            raise ValueError(
                f"trial {trial.id} has a value already: tell(trial.params, value{context}) adds a second measurement"
            )
        return self._sent[trial.id].number

    def has_failed(self, trial: Trial) -> bool:
        """Return True if a trial has failed; ValueError if it is none of these."""
        self._check_own(trial)
        return trial.id in self._failed

    def answer(self, id: int | None, failing: bool) -> None:
        """An answer to this trial has come, None for one about params of the past."""
        self.answers.append(id)
        if id is not None:
            (self._failed if failing else self._told).add(id)
            self._unanswered.pop(id, None)
            self.runs.pop(id, None)

    def report(self, id: int, run: Run, is_kept: bool) -> None:
        """A trial that is still running has reported a value, which is kept or not."""
        self.runs[id] = run
        if is_kept:
            self.answers.append(id)
            self._reports += 1

    def running(self) -> dict[int, int]:
        """Points of the trials without an answer, by their id."""
        return {id: self._sent[id].number for id in self._unanswered}

    def token(self, id: int) -> str:
        """Token of a trial."""
        return self._sent[id].token

    def _check_own(self, trial: Trial) -> None:
        if trial.id not in self._sent or self._sent[trial.id].token != trial.token:
            raise ValueError(
                f"trial {trial.id} is not one of this optimizer's, or it was forgotten: tell its params instead"
            )
