"""Stored form of a trial: the trial, and what the store knows of it besides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any

from noregret.optimizer import Measures, Trial, key


@dataclass(frozen=True, repr=False)
class Record(Trial):
    """A trial of a store.

    ``told`` are the trials whose results were new when it was suggested, and ``mark`` is the fingerprint of the row
    that it was imported from; empty if it was measured here. ``stderr`` is the end of the standard error of a failed
    run, ``holder`` the process that runs it (see `noregret.studies.store.leases`), and ``revision`` the number of its
    corrections.
    """

    told: tuple[int, ...] = field(default=(), kw_only=True)
    mark: str = field(default="", kw_only=True)
    stderr: str = field(default="", kw_only=True)
    holder: Mapping[str, Any] = field(default_factory=dict, compare=False, kw_only=True)
    revision: int = field(default=0, compare=False, kw_only=True)

    @property
    def is_imported(self) -> bool:
        """True if it was measured elsewhere; such trials do not count against the budget."""
        return bool(self.mark)


def recorded(trial: Trial, **more: Any) -> Record:
    """Trial with what a store knows of it besides."""
    return Record(**{slot.name: getattr(trial, slot.name) for slot in fields(Trial)} | more)


@dataclass(frozen=True)
class NextTrial:
    """A trial to run, or None if there is none now; ``over`` if there will be none."""

    trial: Record | None
    over: bool = False


def arrived(records: Sequence[Trial]) -> tuple[list[int], tuple[int, ...]]:
    """Finished trials that suggestions knew of, each once, in the order in which they did; and the other finished ones.

    >>> first, second = Record(0, {}, state="done"), Record(1, {}, state="done")
    >>> arrived([first, second, Record(2, {}, state="done", told=(1, 0)), Record(3, {})])
    ([1, 0], (2,))
    """
    here = {record.number for record in records}
    told = dict.fromkeys(chain.from_iterable(record.told for record in records if isinstance(record, Record)))
    known = [number for number in told if number in here]
    old = set(known)
    return known, tuple(record.number for record in records if record.is_finished and record.number not in old)


def agree(stands: Trial | None, outcome: Trial) -> bool:
    """Return True if a trial has this outcome, or had it before it was corrected."""

    def is_same(its: Trial) -> bool:
        is_other = "withdrawn" not in (its.state, outcome.state) and its.state != outcome.state
        is_at = its.state == "failed" or its.fidelity == outcome.fidelity
        return its.readings == outcome.readings and is_at and not is_other

    return stands is not None and any(map(is_same, (stands, *stands.earlier)))


def mark_of(trial: Trial, origin: str = "") -> str:
    """Fingerprint of an observation, equal for the same observation of the same origin."""
    return hashlib.sha256(f"{key(trial)} {origin}".encode()).hexdigest()[:16] if origin else key(trial)


def mark_of_1_0(trial: Trial, measures: Measures, origin: str) -> str:
    """Fingerprint that 1.0 stored with an imported observation."""
    numbers = {name: number for name, number in measures.numbers(trial).items() if number is not None}
    reading = next(filter(None, map(trial.reading, measures.objectives)), None)
    noise = reading.noise if reading and measures.is_single else None
    content: list[Any] = [trial.params, reading and reading.value, noise, numbers, origin]
    bound, cost = reading and reading.bound, trial.value(measures.cost)
    parts = trial.context, bound, None if cost is None else {"cost": cost}, trial.fidelity
    content += [part for part in parts if part is not None]
    content += [] if measures.is_single or reading is None else [measures.values(trial)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
