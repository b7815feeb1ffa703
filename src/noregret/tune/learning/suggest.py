"""Suggestions: the next trial, as a function of the study and the content of its store."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from time import monotonic
from typing import Any

from noregret.integrations.replay import Replay, is_hopeless
from noregret.optimizer import Choice, Float, Int, Observation, Optimizer, axis_of, unexplored_from
from noregret.tune.learning.findings import Findings
from noregret.tune.learning.fronts import findings_of
from noregret.tune.learning.repeats import target_of
from noregret.tune.measuring import FEWEST
from noregret.tune.store.records import Record, Suggestion, arrived
from noregret.tune.study.results import Report
from noregret.tune.study.study import Study

AS_GOOD = 0.25
"""Preference of tuning for settings that were measured, see `OptimizerConfig`: without it, every further measurement
moves the recommendation a little, and it is never itself measured."""
LARGEST_SHARE = 0.2
"""Largest share of a budget that measures the recommendation; of 5 evaluations it is the last one."""


FIRST, REPEATED = 2, 3
"""With a ``cap``, the fastest of this many results is measured again until it has this many. The first results alone
do not tell noise from signal, so no interval is narrow enough for a limit; of all runs these cost least."""


def repeating(study: Study, optimizer: Optimizer, pending: Iterable[Any] = ()) -> Any:
    """Params of the fastest of the first results if it is to be measured again for the sake of a limit, else None."""
    values = [answer for answer in optimizer.answers if answer.value is not None and answer.bound is None]
    if study.cap is None or study.runs[0] >= FEWEST or len(values) < FIRST:
        return None
    key = optimizer.space.key
    times = Counter([*(key(answer.params) for answer in values), *map(key, pending)])
    if max(times.values()) >= REPEATED:
        return None
    return min(values, key=lambda answer: answer.value or 0.0).params


def confirming(optimizer: Optimizer, left: float, budget: float, confirm: int, pending: Iterable[Any] = ()) -> Any:
    """Params of the recommended setting if it is to be measured next, None if the optimizer is to be asked.

    The last evaluations of a budget go to the recommendation until it has been measured ``confirm`` times. It may
    change when it is measured, so this begins when twice as many evaluations are left; those that turn out to be
    spare go to the search.

    Parameters
    ----------
    optimizer : Optimizer
        It knows all results.
    left, budget : float
        The number of evaluations that are left, the next one included, and that there are in all.
    confirm : int
        The number of evaluations of the recommendation that are wanted, whether planned or asked for by the search.
    pending : iterable of params
        Evaluations that have begun. They count as made.
    """
    answers, key = optimizer.answers, optimizer.space.key
    is_known = any(answer.value is not None and answer.bound is None for answer in answers)
    if left > min(2 * confirm, LARGEST_SHARE * budget) or not is_known:
        return None
    best = optimizer.best()
    highest = optimizer.fidelity and {name: its.high for name, its in optimizer.fidelity.items()}
    made = [answer.params for answer in answers if answer.fidelity == highest] + list(pending)
    is_known = sum(key(params) == key(best.params) for params in made) >= confirm
    return None if is_known or best.is_likeliest else best.params


class Suggester:
    """Suggests trials for a study, and keeps its latest findings for the display."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.latest: Findings | None = None
        self._replay, self._begun = replay_of(study), monotonic()
        self._at_start: int | None = None
        self.limit = math.inf
        """Seconds after which a run that begins now is stopped; see ``cap`` of `Study`."""

    def __call__(self, records: Sequence[Record]) -> Suggestion | None:
        """Return the next suggestion, None if the stopping rule holds."""
        known, new = arrived(records)
        optimizer = informed(self.study, records, [*known, *new], self._replay)
        self.latest = findings_of(self.study, records, optimizer)
        rule = self.study.stop
        is_done = rule is not None and optimizer.done(rule.within, rule.confidence, rule.by)
        made, left = sum(not record.imported for record in records), 0.0 if is_done else self._left(records)
        pending = [record.params for record in records if not record.finished]
        params = confirming(optimizer, left, made + left, self.study.confirm, pending)
        if self.study.cap is not None:
            self.limit = optimizer.cap(self.study.cap)
            params = repeating(self.study, optimizer, pending) if params is None else params
        if params is None and is_done:
            return None
        if params is not None:
            return Suggestion(params, new, fidelity=self._highest)
        trial = optimizer.ask(left=self._seconds_left)
        is_at_start = sum(record.finished for record in records) < optimizer.calibration.first(optimizer.space)
        is_lower = is_at_start or self.study.steps is None  # a run with intermediate results can be stopped at any time
        return Suggestion(trial.params, new, fidelity=trial.fidelity if is_lower else self._highest)

    @property
    def _seconds_left(self) -> float | None:
        """Seconds to the end of this call if they are what the budget counts, so that the next trial fits."""
        if not self.study.weighs_costs or self.study.budget.seconds is None:
            return None
        return max(self.study.budget.seconds - (monotonic() - self._begun), 1e-3)

    @property
    def _highest(self) -> dict[str, Any] | None:
        return self.study.levels.highest if self.study.levels else None

    def is_hopeless(
        self, params: Mapping[str, Any], fidelity: Mapping[str, Any] | None, reports: Sequence[Report]
    ) -> bool:
        """Return True if a running trial with these intermediate results is to be stopped, see `is_enough`."""
        if self.latest is None:
            return False
        return is_hopeless(copy(self.latest.optimizer), params, fidelity, reports)

    def is_enough(self, values: Sequence[float]) -> bool:
        """Return True if a trial with these runs needs no other, by what was known when the last one was suggested."""
        target = target_of(self.latest.optimizer) if self.latest else None
        return target is None or target.is_out_of_reach(values)

    def _left(self, records: Sequence[Record]) -> float:
        """Number of evaluations that the budget has left, of its rounds or, at the rate of this call, of its time."""
        budget, finished = self.study.budget, sum(record.finished for record in records)
        self._at_start = finished if self._at_start is None else self._at_start
        left = math.inf
        if budget.rounds:
            left = budget.rounds - sum(not record.imported for record in records)
        if budget.seconds and finished > self._at_start:
            spent = monotonic() - self._begun
            left = min(left, (budget.seconds - spent) * (finished - self._at_start) / spent)
        return max(left, 1.0)


def informed(study: Study, records: Sequence[Record], order: Sequence[int], replay: Replay | None = None) -> Optimizer:
    """Optimizer that knows the outcomes of these trials in this order, with the others pending."""
    by_number = {record.number: record for record in records}
    known = set(order)
    asked = (by_number[number].answers(study.constraints, study.weighs_costs) for number in order)
    optimizer = (replay or replay_of(study))([_at_least_0(study, answer) for answers in asked for answer in answers])
    for record in records:
        if record.number not in known:
            optimizer.expect(record.params, fidelity=record.fidelity)
    return optimizer


def _at_least_0(study: Study, its: Observation) -> Observation:
    """The answer with 0 in place of negative times and memory, which were stored before imports refused them."""
    if study.possible is None or its.bound:
        return its
    if not study.objectives:
        return its if its.value is None else its._replace(value=max(its.value, 0.0))
    values = {name: max(value, 0.0) if name in study.possible else value for name, value in its.values.items()}
    return its._replace(values=values)


def replay_of(study: Study) -> Replay:
    """Replay of the history of a study."""
    options: dict[str, Any] = {
        "baseline": study.baseline,
        "constraints": study.bounds,
        "context": study.context,
        "drift": study.drift,
        "safe": study.safe,
    }
    options |= {"budget": study.budget.seconds} if study.weighs_costs else {}
    options |= {"fidelity": study.fidelity} if study.fidelity else {}
    options |= {"goals": study.goals} if study.objectives else {}
    options |= {"possible": study.possible}
    as_good = AS_GOOD if study.confirm else 0.0
    goal = None if study.objectives else study.goal
    return Replay(study.space, goal, study.seed, as_good=as_good, require=study.require, **options)


def believed(study: Study, records: Sequence[Record], replay: Replay | None = None) -> Optimizer:
    """Optimizer that knows all outcomes; a ``replay`` that is kept makes the next call cheap."""
    known, new = arrived(records)
    finished = [record for record in records if record.finished]
    return informed(study, finished, [*known, *new], replay)


def least_rounds(study: Study) -> int:
    """Least number of observations with which the stopping rule can hold; 0 if unknown.

    The certificate needs an observation near all but a share of (1 - confidence) / 2 of the settings. Near means within
    r = 0.075 sqrt(d), d the number of parameters. The settings near one are at most the product of the ball's volume
    in the c real numbers, pi^(c/2) r^c / Gamma(c/2 + 1), and the share of the values within r of each other parameter.
    """
    is_strict = study.stop is not None and study.stop.by == "certificate"
    if not is_strict or study.require or not isinstance(study.space, Mapping):
        return 0
    if any(its.when for its in study.space.values()):
        return 0
    assert study.stop is not None
    reach, axes = unexplored_from(len(study.space)), list(map(axis_of, study.space.values()))
    real = sum(math.isinf(axis.count) for axis in axes)
    ball = (math.sqrt(math.pi) * reach) ** real / math.gamma(real / 2 + 1)
    near = min(ball, 1.0) * math.prod(
        _share_near(its, reach) for its in study.space.values() if math.isfinite(axis_of(its).count)
    )
    return math.ceil((1 + study.stop.confidence) / 2 / near)


def _share_near(parameter: Float | Int | Choice, reach: float) -> float:
    """Largest share of the values of a parameter that lie within reach of one of them."""
    count = axis_of(parameter).count
    if isinstance(parameter, Choice):
        return 1 / count
    return min((2 * math.floor(reach * (count - 1)) + 1) / count, 1.0)
