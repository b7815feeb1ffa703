"""Session: one call that measures trials until its plan says that it is enough.

`Plan.next` decides what to do: a pure function of the plan, what is believed, and the moment. `Session` is the loop
around it, over a store of trials (in memory, or a database that other processes share) and a measurer (of a function,
of a command, of the jobs of a launcher). A trial may have several runs: `median_of` is their reading, and `Target` says
whether another run is worth its time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Literal, Protocol

import numpy as np

from noregret.optimizer import Goal, Optimizer, Reading, Trial, is_to_stop, middle
from noregret.studies.store.records import NextTrial, Record, arrived
from noregret.studies.study.study import Budget, Stop, StudyError

LARGEST_SHARE = 0.2
"""Largest share of a budget that measures the recommendation; of 5 evaluations it is the last one."""
SLACK = 1.5
"""Evaluations that are left when the pairs of runs begin, as a multiple of those that they take: the recommendation may
change for a while. Those that are spare go to the search."""
FIRST, REPEATED = 2, 3
"""With a ``cap``, the fastest of this many results is measured again until it has this many. The first results alone
do not tell noise from signal, so no interval is narrow enough for a limit; of all runs these cost least."""
NEXT_LOOK_SECONDS = 0.3
"""Time after which a call that waits for trials of other processes looks again."""
REFRESH_SECONDS = 0.1
"""Longest time between two looks of the views."""
LOOK = 1.05
"""Factor on the number of answers after which the stopping rule of a function is asked again: later it costs more, and
changes less. The Optimizer draws new candidates at the same pace."""

CLEARLY = 1.0
"""Standard errors by which the median of the runs must be worse than the recommended setting for the trial to end. Of
0, 0.5 and 1 none differed from the others by more than its standard error (decision 197)."""
HEAVY = math.sqrt(2.0)
"""Standard deviation of Student-t noise with 4 degrees of freedom, the optimizer's, in units of its scale."""
MEDIAN = math.sqrt(math.pi / 2)
"""Standard error of a median of many, as a multiple of that of their mean under normal noise; one of two is a mean."""
FEWEST_REPEATS = 5
"""The number of repeats from which their spread says enough about the noise of their median (decision 197)."""

End = Literal["over", "seconds", "callback", "stopped"]
"""Reason why a session has ended."""


@dataclass(frozen=True)
class Moment:
    """Trials that were begun in all, outcomes of this call, and the seconds since it began."""

    made: int = 0
    finished: int = 0
    elapsed: float = 0.0


@dataclass(frozen=True)
class Plan:
    """Plan of a call: its budget, its stopping rule, and the evaluations that it decides itself.

    ``confirm`` is the number of evaluations of the recommendation, whether planned or asked for by the search. A run is
    stopped when it takes ``cap`` times as long as the best setting may. ``repeats`` is the least number of runs of a
    trial. With ``reports``, runs report on their way to the highest fidelity, so that they can be stopped at any time.
    ``seed`` draws the order of the runs of a pair.
    """

    budget: Budget
    stop: Stop | None = None
    confirm: int = 0
    cap: float | None = None
    repeats: int = 1
    reports: bool = False
    seed: int = 0

    @property
    def weighs_costs(self) -> bool:
        """True if questions weigh improvement by the time that it takes: seconds are all that the budget counts."""
        return self.budget.rounds is None and self.budget.seconds is not None

    def is_late(self, moment: Moment) -> bool:
        """Return True if the time is over. One evaluation is always made."""
        return bool(self.budget.seconds and moment.finished and moment.elapsed >= self.budget.seconds)

    def left(self, moment: Moment) -> float:
        """Evaluations that the budget has left, of its rounds or, at the rate of this call, of its time; at least 1."""
        left = self.budget.rounds - moment.made if self.budget.rounds else math.inf
        if self.budget.seconds and moment.finished and moment.elapsed > 0:
            left = min(left, moment.finished * (self.budget.seconds / moment.elapsed - 1))
        return max(left, 1.0)

    def share(self, moment: Moment) -> float:
        """Share of the budget that is used; 0 if there is none."""
        shares = [moment.made / self.budget.rounds] if self.budget.rounds else []
        shares += [moment.elapsed / self.budget.seconds] if self.budget.seconds else []
        return min(max(shares, default=0.0), 1.0)

    def next(self, optimizer: Optimizer, moment: Moment, is_done: bool = False) -> Trial | None:
        """Trial to measure next, None if the stopping rule holds (``is_done``) and nothing is left to confirm.

        The optimizer knows the pending trials.
        """
        left, pending = 0.0 if is_done else self.left(moment), [trial.params for trial in optimizer.pending]
        highest = optimizer.fidelity and {name: parameter.high for name, parameter in optimizer.fidelity.items()}
        params, pair = self._paired(optimizer, self.left(moment), moment.made, is_done)
        params = self._confirmed(optimizer, left, moment.made + left, pending) if params is None else params
        params = self._repeated(optimizer, pending) if params is None else params
        if params is not None:
            return optimizer.expect(params, fidelity=highest, pair=pair)
        if is_done:
            return None
        seconds = self.budget.seconds
        trial = optimizer.ask(left=max(seconds - moment.elapsed, 1e-3) if self.weighs_costs and seconds else None)
        is_first = moment.made - len(pending) < optimizer.calibration.first(optimizer.space)
        return trial if is_first or not self.reports else replace(trial, fidelity=highest)

    def _paired(self, optimizer: Optimizer, left: float, made: int, is_done: bool) -> tuple[Any, str]:
        """Params of the next half of a pair of runs with its name, None and "" if none is to be made.

        With a baseline, the last fifth of a budget measures the recommended setting in pairs with it, if it has room
        for as many as `Gain.measured` needs. After the stopping rule holds, they are a fifth of all evaluations.
        """
        nothing = None, ""
        room = LARGEST_SHARE / (1 - LARGEST_SHARE) * made if is_done else LARGEST_SHARE * (made + left)
        if not self.confirm or optimizer.baseline is None or optimizer.context is not None:
            return nothing
        if (left > room and not is_done) or not any(map(optimizer.measures.has_value, optimizer.trials)):
            return nothing
        best, pairs = optimizer.best(), optimizer.pairs
        if best.is_likeliest or pairs.is_baseline(best.params):
            return nothing
        first = pairs.begun(best.params)
        if first is not None:
            return (best.params if pairs.is_baseline(first.params) else optimizer.baseline), first.pair
        missing, count = pairs.missing(best.params), len(pairs.halves)
        if not missing or 2 * missing > min(left, room) or (not is_done and left > SLACK * 2 * missing):
            return nothing
        is_second = np.random.default_rng([self.seed, count]).random() < 0.5
        return (best.params if is_second else optimizer.baseline), f"{count} {pairs.digest(best.params)}"

    def _confirmed(self, optimizer: Optimizer, left: float, budget: float, pending: Iterable[Any]) -> Any:
        """Params of the recommended setting if it is to be measured next, None if not.

        The last evaluations of a budget go to the recommendation until it has been measured often enough. It may
        change when it is measured, so this begins when twice as many evaluations are left; those that turn out to be
        spare go to the search. Pending evaluations count as made.
        """
        if not self.confirm or left > min(2 * self.confirm, LARGEST_SHARE * budget):
            return None
        trials, key = optimizer.trials, optimizer.space.key
        if not any(map(optimizer.measures.has_value, trials)):
            return None
        best = optimizer.best()
        highest = optimizer.fidelity and {name: parameter.high for name, parameter in optimizer.fidelity.items()}
        full = (run for run in trials if run.state == "failed" or (run.state == "done" and run.fidelity == highest))
        made = [*(trial.params for trial in full), *pending]
        is_known = sum(key(params) == key(best.params) for params in made) >= self.confirm
        return None if is_known or best.is_likeliest else best.params

    def _repeated(self, optimizer: Optimizer, pending: Iterable[Any]) -> Any:
        """Params of the fastest of the first results if it is to be measured again for the sake of a limit, or None."""
        if self.cap is None or self.repeats >= FEWEST_REPEATS:
            return None
        measured = [trial for trial in optimizer.trials if optimizer.measures.has_value(trial)]
        if len(measured) < FIRST:
            return None
        key = optimizer.space.key
        times = Counter([*(key(trial.params) for trial in measured), *map(key, pending)])
        if max(times.values()) >= REPEATED:
            return None
        return min(measured, key=lambda trial: trial.value() or 0.0).params


def median_of(runs: Sequence[Reading]) -> Reading:
    """Median of the readings of several runs, with its standard error as its noise; the only one as it is."""
    reading = middle(runs)
    is_known = len(runs) > 1 and reading.bound is None
    return replace(reading, noise=error_of_median([run.value for run in runs])) if is_known else reading


def error_of_median(values: Sequence[float]) -> float | None:
    """Standard error of a median: 1.96 of them to both sides hold the true median with at least 95% under normal noise.

    It comes from the mean distance to the median and Student's quantile for n - 1 degrees of freedom, so that a small
    spread of few values is not trusted and an outlier makes it larger. None for fewer than `FEWEST_REPEATS` values,
    or if all are equal.

    >>> round(error_of_median([1.0, 2.0, 3.0, 4.0, 5.0]), 2)
    1.49
    """
    count = len(values)
    if count < FEWEST_REPEATS or min(values) == max(values):
        return None
    from scipy.special import stdtrit  # few studies need it

    middle = median(values)
    spread = sum(abs(value - middle) for value in values) / (count - 1) * math.pi / 2
    return float(spread / math.sqrt(count) * stdtrit(count - 1, 0.975) / 1.96)


@dataclass(frozen=True)
class Target:
    """Value that a trial has to come near to be run again.

    >>> target = Target(10.0, noise=1.0, goal="minimize")
    >>> target.is_out_of_reach([12.0]), target.is_out_of_reach([10.5])
    (True, False)
    """

    estimate: float
    """Estimate of the recommended setting."""
    noise: float
    """Standard deviation of one run."""
    goal: Goal

    def is_out_of_reach(self, values: Sequence[float]) -> bool:
        """Return True if the median of these runs is clearly worse than the recommended setting.

        Its standard error is that of the model's noise, or the one that the runs show, whichever is larger.
        """
        worse = (median(values) - self.estimate) * (1 if self.goal == "minimize" else -1)
        error = self.noise * (MEDIAN if len(values) > 2 else 1.0) / math.sqrt(len(values))
        return worse > CLEARLY * max(error, error_of_median(values) or 0.0)


def target_of(optimizer: Optimizer) -> Target | None:
    """The present target; None while the optimizer takes its first, spread-out looks at the space."""
    values = sum(trial.state == "done" for trial in optimizer.trials)
    if values < max(2, optimizer.calibration.first(optimizer.space)):
        return None
    best, heavy = optimizer.best(), optimizer.calibrated.noise.heavy
    return Target(best.estimate, noise_near(optimizer, best.estimate) * (HEAVY if heavy else 1.0), optimizer.goal)


def noise_near(optimizer: Optimizer, estimate: float) -> float:
    """Scale of the noise of a value near this one, in its units."""
    fitted, signed = optimizer.calibrated, estimate if optimizer.goal == "maximize" else -estimate
    return fitted.fit.noise * float(fitted.scale.units(np.array(signed)))


class Suggester:
    """Suggests trials by a plan, and judges running ones by what was believed at the last suggestion.

    ``believe`` returns an optimizer that knows these trials. ``pace`` is a factor on the number of outcomes after which
    the stopping rule is asked again; 1 for each.
    """

    def __init__(self, plan: Plan, believe: Callable[[Sequence[Record]], Optimizer], pace: float = 1.0) -> None:
        self.plan, self._believe, self._pace = plan, believe, pace
        self.begun, self.finished = monotonic(), 0
        """Begin of the call, and the number of its outcomes."""
        self.latest: tuple[Sequence[Record], Optimizer] | None = None
        """Trials and optimizer of the last suggestion."""
        self.limit = math.inf
        """Seconds after which a run that begins now is stopped; see ``cap`` of `Plan`."""
        self._is_done, self._next_look = False, 0

    def moment(self, records: Sequence[Record]) -> Moment:
        """Present moment of the call."""
        made = sum(not record.is_imported for record in records)
        return Moment(made, self.finished, monotonic() - self.begun)

    def __call__(self, records: Sequence[Record]) -> Record | None:
        """Return the next trial, with the number that the optimizer gives it; None if the stopping rule holds."""
        optimizer, new = self._believe(records), arrived(records)[1]
        self.latest = records, optimizer
        answers = sum(record.is_finished for record in records)
        if self.plan.stop is not None and not (self._pace > 1 and self._is_done) and answers >= self._next_look:
            rule = self.plan.stop
            self._is_done = optimizer.done(rule.within, rule.confidence, rule.by)
            self._next_look = math.ceil(self._pace * answers)
        if self.plan.cap is not None:
            self.limit = optimizer.cap(self.plan.cap)
        trial = self.plan.next(optimizer, self.moment(records), self._is_done)
        if trial is None:
            return None
        return Record(trial.number, trial.params, fidelity=trial.fidelity, told=new, pair=trial.pair)

    def is_to_stop(self, trial: Trial, reports: Sequence[Reading]) -> bool:
        """Return True if a running trial with these intermediate results is to be stopped, see `is_enough`."""
        return not trial.pair and self.latest is not None and is_to_stop(self.latest[1].__copy__(), trial, reports)

    def is_enough(self, values: Sequence[float]) -> bool:
        """Return True if a trial with these runs needs no other, by what was known when the last one was suggested."""
        target = target_of(self.latest[1]) if self.latest else None
        return target is None or target.is_out_of_reach(values)


Suggest = Callable[[Sequence[Record]], Record | None]
"""Function from all trials to the next one; None if the stopping rule holds."""


class Trials(Protocol):
    """Trials of a study: in memory, or in a database."""

    def records(self) -> list[Record]:
        """All trials, by number."""

    def stopped(self) -> str | None:
        """Reason why the study has ended, "within" or "budget"; None if it has not."""

    def claim(self, suggest: Suggest) -> NextTrial:
        """A trial to measure: one that was given back, else a new one if budget and stopping rule allow."""

    def tell(self, outcome: Record) -> bool:
        """Keep the outcome of a trial; False if it has another one, which then stays."""

    def give_back(self, number: int) -> None:
        """Leave a trial to another call; by default it is dropped."""
        return

    def heartbeat(self, numbers: Iterable[int]) -> list[int]:
        """Say that these trials are being measured; return those that another process has by now."""

    def back_up(self) -> None:
        """Copy what is kept, if it is time; by default there is no copy."""
        return


class Measurer(Protocol):
    """Measures trials, as many at a time as it has workers."""

    workers: int
    can_end: bool
    """True if a measurement can be ended: then the session waits for its end before another call may have the trial."""

    def begin(self, trial: Record) -> Future[Any]:
        """Begin to measure a trial."""

    def outcome(self, trial: Record, future: Future[Any]) -> Record:
        """The trial with its readings, or failed, once the future is done. Raises `Lost` if it was ended."""

    def launch(self) -> None:
        """Start the trials that were begun, where they are started together; by default each starts at once."""
        return

    def end(self, number: int) -> None:
        """End the measurement of a trial without waiting for it; by default that cannot be done."""
        return

    def check(self, outcome: Record) -> None:
        """Raise an error if the session cannot continue after this outcome."""


class Lost(Exception):
    """The measurement of a trial was ended."""


class View:
    """Onlooker of a session, such as a display; by default it does nothing."""

    def started(self, trial: Record) -> object:
        """A trial is about to be measured."""

    def told(self, outcome: Record, counted: bool) -> object:
        """An outcome is kept; not ``counted`` if the trial had another outcome before. True ends the session."""

    def refresh(self) -> object:
        """Some time has passed."""


class Session:
    """The evaluations of one call.

    ``stop`` ends the session when it is set; what is being measured is given back. After ``lease`` seconds other
    processes take over trials that have no heartbeat.
    """

    def __init__(
        self,
        suggester: Suggester,
        trials: Trials,
        measurer: Measurer,
        views: Sequence[View] = (),
        stop: Event | None = None,
        lease: float | None = None,
    ) -> None:
        self._suggester, self._trials, self._measurer = suggester, trials, measurer
        self._views, self._stop, self._lease = views, stop or Event(), lease
        self._running: dict[Future[Any], tuple[Record, float]] = {}
        """Trial of each measurement, and when it was asked for."""

    def run(self) -> End:
        """Measure until the plan or a view says that it is enough, or the stop is set."""
        over, heart = Event(), None
        if self._lease is not None:
            heart = Thread(target=self._beat, args=(over, self._lease), daemon=True)
            heart.start()
        try:
            return self._loop()
        finally:
            self._give_back()
            over.set()
            self._stop.set()
            if heart is not None:
                heart.join()

    def _loop(self) -> End:
        self._suggester.begun, is_over = monotonic(), False
        why: End = "over"
        while True:
            while not is_over and not self._stop.is_set() and len(self._running) < self._measurer.workers:
                moment = Moment(finished=self._suggester.finished, elapsed=monotonic() - self._suggester.begun)
                if self._suggester.plan.is_late(moment):
                    is_over, why = True, "seconds"
                    break
                asked = monotonic()
                claim = self._trials.claim(self._suggester)
                is_over = claim.over
                if claim.trial is None:
                    break
                self._begin(claim.trial, asked)
            self._measurer.launch()
            if self._stop.is_set():
                return "stopped"
            if not self._running:
                if is_over:
                    return why
                sleep(NEXT_LOOK_SECONDS)
                continue
            for future in wait(self._running, REFRESH_SECONDS, FIRST_COMPLETED).done:
                if self._end(future):
                    return "callback"
            for view in self._views:
                view.refresh()

    def _begin(self, trial: Record, asked: float) -> None:
        for view in self._views:
            view.started(trial)
        try:
            self._running[self._measurer.begin(trial)] = trial, asked
        except BaseException:
            self._trials.give_back(trial.number)
            raise

    def _end(self, future: Future[Any]) -> bool:
        """Keep the outcome of a trial; True if a view wants to stop."""
        trial, asked = self._running[future]
        try:
            outcome = self._measurer.outcome(trial, future)
        except (Lost, CancelledError):
            if not self._stop.is_set():
                lost = replace(trial, state="failed", failure="ended, since another worker has it by now")
                for view in self._views:
                    view.told(lost, counted=False)
                del self._running[future]
            return False
        cost = self._suggester.latest and self._suggester.latest[1].measures.cost
        if self._suggester.plan.weighs_costs and cost:  # what it took of the budget, the suggestion included
            outcome = replace(outcome, readings={**outcome.readings, cost: (Reading(monotonic() - asked),)})
        counted = self._trials.tell(outcome)
        del self._running[future]  # not before it is kept: what is running at the end is given back
        self._suggester.finished += 1
        wishes = [view.told(outcome, counted) for view in self._views]
        self._trials.back_up()
        self._measurer.check(outcome)
        return any(wish is True for wish in wishes)

    def _give_back(self) -> None:
        """End what is still running, and leave it to a later call."""
        running, self._running = self._running, {}
        for future, (trial, _) in running.items():
            future.cancel()
            self._measurer.end(trial.number)
        if self._measurer.can_end:
            wait(running)
        for trial, _ in running.values():
            with suppress(StudyError):
                self._trials.give_back(trial.number)

    def _beat(self, over: Event, lease: float) -> None:
        """Renew the lease on the running trials, so that no other process takes them over."""
        while not over.wait(lease / 3):
            with suppress(StudyError, RuntimeError):  # an error that lasts is raised when the outcome is stored
                for number in self._trials.heartbeat([trial.number for trial, _ in list(self._running.values())]):
                    self._measurer.end(number)
