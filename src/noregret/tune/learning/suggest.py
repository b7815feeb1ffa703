"""Suggestions: the next trial, as a function of the study and the content of its store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from noregret.integrations.replay import Replay
from noregret.optimizer import Choice, Float, Int, Optimizer, axis_of, unexplored_from
from noregret.tune.learning.findings import Findings
from noregret.tune.store.records import Record, Suggestion, arrived
from noregret.tune.study.study import Study


class Suggester:
    """Suggests trials for a study, and keeps its latest findings for the display."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.latest: Findings | None = None
        self._replay = replay_of(study)

    def __call__(self, records: Sequence[Record]) -> Suggestion | None:
        """Return the next suggestion, None if the stopping rule holds."""
        known, new = arrived(records)
        optimizer = informed(self.study, records, [*known, *new], self._replay)
        self.latest = Findings(self.study, records, optimizer)
        rule = self.study.stop
        if rule and optimizer.done(rule.within, rule.confidence, rule.by):
            return None
        return Suggestion(optimizer.ask().params, new)


def informed(study: Study, records: Sequence[Record], order: Sequence[int], replay: Replay | None = None) -> Optimizer:
    """Optimizer that knows the outcomes of these trials in this order, with the others pending."""
    by_number = {record.number: record for record in records}
    known = set(order)
    answers = [by_number[number].answer(study.constraints) for number in order]
    pending = [record.params for record in records if record.number not in known]
    return (replay or replay_of(study))(answers, pending)


def replay_of(study: Study) -> Replay:
    """Replay of the history of a study."""
    options = {"baseline": study.baseline, "constraints": study.bounds, "context": study.context, "drift": study.drift}
    return Replay(study.space, study.goal, study.seed, **options)


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
    if not is_strict or not isinstance(study.space, Mapping) or any(its.when for its in study.space.values()):
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
