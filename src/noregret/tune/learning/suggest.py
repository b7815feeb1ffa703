"""Suggestions: what to try next, as a function of the study and what is in its store."""

from __future__ import annotations

from collections.abc import Sequence

from noregret.integrations.replay import Replay
from noregret.optimizer.optimizer import Optimizer
from noregret.tune.learning.findings import Findings
from noregret.tune.store.records import Record, Suggestion, arrived
from noregret.tune.study.study import Study


class Suggester:
    """Suggests trials for a study; keeps what it knew at the last one, for whoever wants to look."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.latest: Findings | None = None
        self._replay = Replay(study.space, study.goal, study.seed)

    def __call__(self, records: Sequence[Record]) -> Suggestion:
        known, new = arrived(records)
        optimizer = informed(self.study, records, [*known, *new], self._replay)
        params = optimizer.ask().params
        self.latest = Findings(self.study, records, optimizer)
        return Suggestion(params, new)


def informed(study: Study, records: Sequence[Record], order: Sequence[int], replay: Replay | None = None) -> Optimizer:
    """The optimizer that was told the answers of these trials in this order, and knows of the others as under way."""
    by_number = {record.number: record for record in records}
    known = set(order)
    answers = [(by_number[number].params, by_number[number].value) for number in order]
    pending = [record.params for record in records if record.number not in known]
    return (replay or Replay(study.space, study.goal, study.seed))(answers, pending)


def believed(study: Study, records: Sequence[Record], replay: Replay | None = None) -> Optimizer:
    """The optimizer that knows all answers there are; a ``replay`` that is kept makes the next one cheap."""
    known, new = arrived(records)
    finished = [record for record in records if record.finished]
    return informed(study, finished, [*known, *new], replay)
