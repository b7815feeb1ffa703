"""The ledger: what a server has read of one study, and reads on from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from noregret.integrations.replay import Answer as Told
from noregret.tune.service.served import Served
from noregret.tune.service.storing import rows
from noregret.tune.service.storing.rows import CONTEXT, Answer, Row
from noregret.tune.store.holder import HOLDER
from noregret.tune.store.records import STATES, TOLD, Record, distributions
from noregret.tune.study.study import Params


class Entry(NamedTuple):
    """A trial: its id in the tables, what it is about, and what became of it."""

    id: int
    record: Record
    answer: Answer | None
    context: Params | None
    holder: dict[str, Any]


class Ledger:
    """All trials of a study, as of the last reading. Trials that are answered never change, and are read once."""

    def __init__(self, number: int, study: Served) -> None:
        self.study = number
        self.distributions = distributions(study.space)
        self._constraints = list(study.constraints)
        self.entries: dict[int, Entry] = {}
        self.running: dict[int, Entry] = {}
        self.fresh: set[int] = set()
        """The trials with answers that no suggestion knew of."""
        self.told: list[Told] = []
        """The answers that suggestions knew of, in the order in which they came to know."""
        self._order: set[int] = set()
        self._last = 0

    def read_on(self, connection: Any) -> None:
        """Read what is new, on a connection of `Storage.snapshot`."""
        new = rows.read_since(connection, self.study, self._last)
        for row in (*rows.read(connection, [entry.id for entry in self.running.values()]), *new):
            self._enter(row)
        for row in new:
            self._order_answers(row.attributes.get(TOLD, ()))
            self._last = row.id

    def answers(self, numbers: Iterable[int]) -> list[Told]:
        """The answers of these trials."""
        return [self._told(number) for number in numbers]

    def unknown(self, known: Iterable[int]) -> list[Entry]:
        """The trials whose answers a suggestion does not know of if it knows of these fresh ones, by number."""
        missing = self.running.keys() | self.fresh.difference(known)
        return [self.entries[number] for number in sorted(missing)]

    @property
    def newest(self) -> int:
        """The number of the last trial, -1 if there is none."""
        return len(self.entries) - 1

    def outstanding(self) -> list[Entry]:
        """The trials without an answer, by number."""
        return sorted(self.running.values(), key=lambda entry: entry.record.number)

    def _enter(self, row: Row) -> None:
        entry = self._entry(row)
        self.entries[row.number] = entry
        if entry.answer is None:
            self.running[row.number] = entry
        else:
            self.running.pop(row.number, None)
            self.fresh.add(row.number)

    def _entry(self, row: Row) -> Entry:
        outside = {name: its.to_external_repr(row.params[name]) for name, its in self._found(row.params)}
        answer = row.answer
        record = Record(
            row.number,
            outside,
            STATES[row.state],
            answer.value if answer else None,
            answer.failure if answer else "",
            told=tuple(row.attributes.get(TOLD, ())),
            started=row.started,
            ended=row.ended,
            noise=answer.noise if answer else None,
            constraints=answer.constraints if answer else {},
            context=row.attributes.get(CONTEXT),
        )
        return Entry(row.id, record, answer, row.attributes.get(CONTEXT), row.attributes.get(HOLDER, {}))

    def _found(self, params: Mapping[str, float]) -> list[tuple[str, Any]]:
        return [(name, its) for name, its in self.distributions.items() if name in params]

    def _order_answers(self, numbers: Any) -> None:
        for number in numbers:
            if number not in self._order:
                self._order.add(number)
                self.fresh.discard(number)
                self.told.append(self._told(number))

    def _told(self, number: int) -> Told:
        entry = self.entries[number]
        assert entry.answer is not None
        constraints = {name: entry.answer.constraints.get(name) for name in self._constraints}
        return entry.record.params, entry.answer.value, entry.answer.noise, constraints, entry.context
