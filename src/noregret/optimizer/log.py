"""Log: every trial of an optimizer, its history for the model, and what the model does not need of them.

The history has a point and signed numbers for each answer. A trial has one answer, or several: of repeated runs, or of
reports on the way. Numbers that are only tracked, reasons, times and earlier records are kept beside it, by trial.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from noregret.optimizer.measures import Measures, clipped
from noregret.optimizer.model.history import Answer, History, Signed, copied
from noregret.optimizer.space.contexts import Contexts, SettingInContext
from noregret.optimizer.trial import Observation, Reading, Readings, Trial, dump, load, middle

SIDES: dict[Any, int] = {"at_least": 1, "at_most": -1, None: 0}
"""Sign of what a bound says of the value, 0 for a value."""
NOWHERE: dict[str, Any] = {"params": None, "context": None, "fidelity": None}
"""Parts that the details of a trial do not hold: the history does."""


class Kept(NamedTuple):
    """State of a trial, and what the history does not hold of it.

    The ``trial`` has no params, and only readings that are no part of the history. It has a token if it was given away.
    While it is running it is at the point ``where``, and counts as lost once there are ``lost_at`` answers.
    """

    where: int
    trial: Trial
    lost_at: int


class ReportProgress(NamedTuple):
    """State of a trial that reports intermediate values."""

    reached: dict[str, Any]
    """Highest fidelity that was reported."""
    kept: int
    """Rungs reached by the report that was kept last."""
    judged: int
    """Rungs reached when it was last judged whether to stop."""
    is_stopped: bool


class Log:
    """All trials by their number, those that were measured in the past included.

    A pending trial counts as lost when ``PATIENCE`` times as many answers came since as trials were pending with it.
    """

    PATIENCE = 10
    """By taste."""

    def __init__(self, contexts: Contexts, measures: Measures, baseline: Any = None) -> None:
        self._contexts, self._measures = contexts, measures
        self.history = History(contexts.whole, baseline, list(measures.objectives), measures.cost)
        self._kept: dict[int, Kept] = {}  # trials that were given away or withdrawn, or have more than the history has
        self._next = 0
        self._unanswered: dict[int, None] = {}  # trials without an answer, oldest first
        self._answers = array("q")  # the trial of each answer
        self.runs: dict[int, ReportProgress] = {}  # trials without an answer that have reported
        self._reports = 0  # answers that are reports

    def copy(self) -> Log:
        """Return an independent copy."""
        twin = copied(self)
        twin.history = self.history.copy()
        return twin

    def split(self, where: int) -> SettingInContext:
        """The params of a point, their context and fidelity, as copies that may be changed."""
        return self._contexts.without_context(self.history.params[where])

    def at(self, where: int, fidelity: Mapping[str, Any]) -> int:
        """Point with the params of this one, at this fidelity."""
        return self.history.intern(self._contexts.at_fidelity(self.history.params[where], fidelity))

    def send(self, where: int, number: int | None = None, pair: str = "") -> Trial:
        """A new trial at a point, with this number if it is free, and one half of this pair."""
        if number is not None and self._is_known(number):
            raise ValueError(f"there is a trial {number} already: leave the number out")
        number, token, started = self.new(number), uuid4().hex, datetime.now()
        lost_at = self._count + self.PATIENCE * (len(self.pending()) + 1)
        self._kept[number] = Kept(where, Trial(number, None, token, started=started, pair=pair), lost_at)
        self._unanswered[number] = None
        params, context, fidelity = self.split(where)
        return Trial(number, params, token, context, fidelity, started=started, pair=pair)

    def new(self, number: int | None = None) -> int:
        """Number of a trial that was not given away: this one, or the next."""
        number = self._next if number is None else number
        self._next = max(self._next, number + 1)
        return number

    @property
    def _count(self) -> int:
        """Number of answers that are no reports."""
        return len(self._answers) - self._reports

    def pending(self) -> dict[int, int]:
        """Points of the trials without an answer that do not count as lost, by their number."""
        sent = ((number, self._kept[number]) for number in self._unanswered)
        return {number: each.where for number, each in sent if self._count < each.lost_at}

    @property
    def out(self) -> int:
        """Number of trials without an answer."""
        return len(self._unanswered)

    def where(self, trial: Trial) -> int:
        """The point of a trial; ValueError if it is none of these, or has its answer already."""
        kept = self._own(trial)
        if kept.trial.state in ("done", "withdrawn"):
            context = "" if trial.context is None else ", context=trial.context"
            raise ValueError(
                f"trial {trial.number} has a value already: tell(trial.params, value{context}) adds a second "
                "measurement, and correct(trial, value) replaces it"
            )
        return kept.where

    def has_failed(self, trial: Trial) -> bool:
        """Return True if a trial has failed; ValueError if it is none of these."""
        return self._own(trial).trial.state == "failed"

    def _own(self, trial: Trial) -> Kept:
        kept = self._kept.get(trial.number)
        if kept is None or not trial.token or kept.trial.token != trial.token:
            raise ValueError(
                f"trial {trial.number} is not one of this optimizer's, or it was forgotten: tell its params instead"
            )
        return kept

    def past(self, where: int) -> int:
        """Number of the oldest trial without an answer at a point, or else a new one."""
        oldest = next((number for number in self._unanswered if self._kept[number].where == where), None)
        return self.new() if oldest is None else oldest

    def tell(self, trial: Trial, where: int, is_run: bool = False) -> float:
        """Take in the outcome of a trial: its state, readings and details; return the cost that counts as spent.

        With ``is_run`` it takes the place of its reports.
        """
        if self._contexts.fidelity is not None and not self._measures.is_single:  # it may be on the front there
            self.at(where, self._contexts.fidelity.highest)
        number, kept = trial.number, self._kept.get(trial.number)
        was_sent = kept is not None and kept.trial.token != ""
        known = Kept(where, Trial(number, None), lost_at=0) if kept is None else kept
        seconds, ended = trial.seconds, trial.ended
        if was_sent:
            self._unanswered.pop(number, None)
            self.runs.pop(number, None)
            if ended is None:
                ended, started = datetime.now(), known.trial.started
                seconds = seconds or (None if started is None else (ended - started).total_seconds())
        parts: dict[str, Any] = {"seconds": seconds, "ended": ended, "started": trial.started}
        parts |= {"is_stopped": trial.is_stopped, "readings": self._beside(trial), "earlier": _bare(trial.earlier)}
        parts |= {"pair": trial.pair, "block": trial.block}
        parts = {name: part for name, part in parts.items() if part}
        if kept is not None or parts or trial.failure:  # it may have failed before
            parts |= {"state": "failed" if trial.state == "failed" else "done", "failure": trial.failure}
            self._kept[number] = known._replace(trial=replace(known.trial, **parts))
        self._extend(number, self._answers_of(trial, where, number if is_run else -1))
        return (trial.value(self._measures.cost) or 0.0) if was_sent else 0.0

    def _extend(self, number: int, answers: Iterable[Answer]) -> None:
        for answer in answers:
            self._answers.append(number)
            self.history.add(answer)

    def report(self, number: int, run: ReportProgress, where: int | None, readings: Readings) -> None:
        """Take in a value of a trial that is still running, which is kept if there is a point for it."""
        self.runs[number] = run
        if where is not None:
            self._extend(number, [self._answer(where, readings, number)])
            self._reports += 1

    def take(self, trial: Trial, whole: Any) -> None:
        """Take in a trial from elsewhere, with these checked params of the whole space."""
        where, number = self.history.intern(whole), trial.number
        if number < 0 or (self._is_known(number) and number not in self._unanswered):
            number = self.past(where)
        trial = replace(trial, id=self.new(number))
        if trial.state == "withdrawn":
            self._unanswered.pop(number, None)
            self._keep(trial, where, trial.readings)
            return
        reports = self._reports_of(trial, where)
        self._extend(number, reports)
        self._reports += len(reports) if trial.is_finished else max(len(reports) - 1, 0)  # the last one is its value
        if trial.is_finished:
            self.tell(trial, where, is_run=bool(reports))

    def _is_known(self, number: int) -> bool:
        return number in self._kept or number in self._answers

    def _keep(self, trial: Trial, where: int, readings: Readings) -> None:
        """Put what is known of a trial in the place of what was."""
        kept = self._kept.get(trial.number) or Kept(where, Trial(trial.number, None), lost_at=0)
        bare = replace(trial, **NOWHERE, token=kept.trial.token, readings=readings, earlier=_bare(trial.earlier))
        self._kept[trial.number] = Kept(where, bare, kept.lost_at)

    def _reports_of(self, trial: Trial, where: int) -> list[Answer]:
        """Answers of a trial at lower fidelities, in order."""
        levels = self._contexts.fidelity
        if levels is None:
            return []
        steps = ((levels.checked({levels.name: step}), readings) for step, readings in trial.by_step())
        return [self._answer(self.at(where, fidelity), readings, trial.number) for fidelity, readings in steps]

    def _answers_of(self, trial: Trial, where: int, run: int) -> list[Answer]:
        """Answers of a trial, one for each of its runs; the first takes the place of reports of this ``run``."""
        most = self._measures.runs(trial)
        modelled = {
            name: each if len(each) <= most else (middle(each),)
            for name in trial.readings
            if self._is_modelled(name) and (each := tuple(trial.runs(name)))
        }
        runs = replace(trial, readings=modelled).by_run()
        answers = [self._answer(where, readings, -1 if i else run) for i, readings in enumerate(runs)]
        return [answer._replace(block=trial.block) for answer in answers] or [Answer(where, {}, run)]

    def _answer(self, where: int, readings: Readings, run: int) -> Answer:
        """Answer with one reading of each measure, larger values being better."""
        numbers = {}
        for name, (reading, *_) in readings.items():
            if self._is_modelled(name):
                sign, noise = self._measures[name].sign, math.nan if reading.noise is None else reading.noise
                numbers[name] = Signed(sign * clipped(reading.value), noise, int(sign) * SIDES[reading.bound])
        return Answer(where, numbers, run)

    def _is_modelled(self, name: str) -> bool:
        return name in self._measures and self._measures[name].role != "tracked"

    def _beside(self, trial: Trial) -> Readings:
        """Readings that the history does not hold: tracked ones, and more of a measure than there were runs."""
        most = self._measures.runs(trial)
        items = trial.readings.items()
        return {name: each for name, each in items if not self._is_modelled(name) or len(trial.runs(name)) > most}

    def correct(self, old: Trial, new: Trial) -> float:
        """Put a trial in the place of another record of it, or take it out if it is withdrawn.

        Return the change of the cost that counts as spent. That of a withdrawn trial stays spent.
        """
        number, where = old.number, self.history.intern(self._contexts.checked(old.params, old.context, old.fidelity))
        answers, readings = list[Answer](), new.readings
        if old.state != "withdrawn":
            self._reports -= len(old.by_step())
        if new.state != "withdrawn":
            answers, readings = self._reports_of(new, where), self._beside(new)
            self._reports += len(answers)
            answers += self._answers_of(new, where, number if answers else -1)
        self._keep(new, where, readings)
        kept = list(zip(self._answers, self.history.answers(), strict=True))
        place = max((i for i, (each, _) in enumerate(kept) if each == number), default=len(kept))
        others = [(i, pair) for i, pair in enumerate(kept) if pair[0] != number]
        pairs = [pair for i, pair in others if i < place]
        pairs += [*((number, answer) for answer in answers), *(pair for i, pair in others if i > place)]
        self._answers = array("q", (each for each, _ in pairs))
        self.history, _ = self.history.rebuilt(range(len(self.history.params)), (answer for _, answer in pairs))
        if new.state == "withdrawn" or not self._kept[number].trial.token:
            return 0.0
        return (new.value(self._measures.cost) or 0.0) - (old.value(self._measures.cost) or 0.0)

    def forget(self, answers: int) -> None:
        """Keep the last answers, the trials they answer and the pending ones."""
        pending, fewer = self.pending(), len(self._answers) - answers
        self.history, numbers = self.history.last(answers, pending.values())
        self._answers = self._answers[-answers:]
        left = set(pending).union(self._answers)
        self._kept = {
            number: kept._replace(where=numbers.get(kept.where, 0), lost_at=kept.lost_at - fewer)
            for number, kept in self._kept.items()
            if number in left
        }
        self._unanswered = dict.fromkeys(number for number in self._unanswered if number in pending)

    def trials(self) -> list[Trial]:
        """All trials by number."""
        answers, replaced = self._by_trial(), self.history.reports
        withdrawn = (number for number, kept in self._kept.items() if kept.trial.state == "withdrawn")
        numbers = sorted({*answers, *self._unanswered, *withdrawn})
        return [self._trial(number, answers.get(number, []), replaced) for number in numbers]

    @property
    def has_pairs(self) -> bool:
        """True if some trial is half of a pair."""
        return any(kept.trial.pair for kept in self._kept.values())

    def unanswered(self) -> list[Trial]:
        """Trials without an answer, oldest first."""
        answers = self._by_trial() if self.history.runs else {}  # those that have reported
        return [self._trial(number, answers.get(number, []), frozenset()) for number in self._unanswered]

    def _by_trial(self) -> dict[int, list[tuple[int, Answer]]]:
        """Answers of each trial, with their places."""
        answers: dict[int, list[tuple[int, Answer]]] = {}
        for index, (number, answer) in enumerate(zip(self._answers, self.history.answers(), strict=True)):
            answers.setdefault(number, []).append((index, answer))
        return answers

    def by_outcome(self) -> list[Trial]:
        """All trials in the order of their outcomes, then those without one."""
        last = {number: place for place, number in enumerate(self._answers)}
        return sorted(
            self.trials(), key=lambda run: (run.number in self._unanswered, last.get(run.number, -1), run.number)
        )

    def _trial(self, number: int, answers: Sequence[tuple[int, Answer]], replaced: frozenset[int]) -> Trial:
        kept, levels = self._kept.get(number), self._contexts.fidelity
        detail = Trial(number, None, state="done") if kept is None else kept.trial
        state, is_running = detail.state, detail.state == "running"
        if kept is not None and state in ("running", "withdrawn"):
            setting = self.split(kept.where)
        else:
            setting, numbers = self.split(answers[-1][1].where), answers[-1][1].numbers
            state = "done" if any(name in numbers for name in self._measures.objectives) else "failed"
        readings: dict[str, list[Reading]] = {}
        for index, answer in answers:
            step = None
            if levels is not None and (index in replaced or is_running):
                step = float(self.split(answer.where).fidelity[levels.name])
            for name, reading in self._unsigned(answer).items():
                readings.setdefault(name, []).append(replace(reading, step=step))
        return replace(
            detail,
            **setting._asdict(),
            state=state,
            readings={**{name: tuple(each) for name, each in readings.items()}, **detail.readings},
            is_stopped=detail.is_stopped or (number in self.runs and self.runs[number].is_stopped),
            earlier=tuple(replace(each, **setting._asdict()) for each in detail.earlier),
        )

    def _unsigned(self, answer: Answer) -> dict[str, Reading]:
        """Readings of an answer with the sign that the user gave."""
        readings = {}
        for name, (value, noise, bound) in answer.numbers.items():
            sign = self._measures[name].sign
            side = next(side for side, way in SIDES.items() if way == int(sign) * bound)
            readings[name] = Reading(sign * value, noise=None if noise != noise else noise, bound=side)
        return readings

    def trial_of(self, index: int) -> int:
        """Number of the trial of an answer."""
        return self._answers[index]

    def observations(self) -> Iterator[tuple[int, Observation]]:
        """The trial and the view of each answer, in order."""
        replaced, several = self.history.reports, not self._measures.is_single
        for index, (number, answer) in enumerate(zip(self._answers, self.history.answers(), strict=True)):
            setting, readings = self.split(answer.where), self._unsigned(answer)
            values = {name: readings[name].value for name in self._measures.objectives if name in readings}
            first = readings[next(iter(values))] if values else None
            cost, limited = readings.get(self._measures.cost), self._measures.constraints.items()
            view = Observation(
                setting.params,
                None if first is None else first.value,
                None if first is None or several else first.noise,
                {measure.name: readings[key].value if key in readings else None for key, measure in limited},
                setting.context,
                None if first is None else first.bound,
                None if cost is None else cost.value,
                setting.fidelity,
                values if several else {},
                index in replaced,
            )
            yield number, view

    def record(self) -> dict[str, Any]:
        """Everything but the points and the numbers of the history, as JSON."""
        return {
            "next": self._next,
            "kept": [[kept.where, kept.lost_at, dump(kept.trial)] for kept in self._kept.values()],
            "answers": list(self._answers),
            "runs": [[number, *run] for number, run in self.runs.items()],
            "reports": self._reports,
        }

    def restore(self, record: Mapping[str, Any], answers: Sequence[Answer]) -> None:
        """Take in a `record`, and the answers of the history, whose points are there."""
        self._next, self._answers = record["next"], array("q", record["answers"])
        kept = (Kept(where, load(trial), lost_at) for where, lost_at, trial in record["kept"])
        self._kept = {entry.trial.number: entry for entry in kept}
        self._unanswered = {number: None for number, entry in self._kept.items() if entry.trial.state == "running"}
        self.runs = {number: ReportProgress(*run) for number, *run in record.get("runs", ())}
        self._reports = record.get("reports", 0)
        if len(self._answers) != len(answers):
            raise ValueError("its answers do not fit its trials")
        for number, answer in zip(self._answers, answers, strict=True):
            known = self._kept.get(number)
            self.history.add(answer if known is None else answer._replace(block=known.trial.block))


def _bare(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Trials without what the history holds."""
    return tuple(replace(each, **NOWHERE) for each in trials)
