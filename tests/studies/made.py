"""Trials of a store, in short."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from noregret.optimizer import COST, VALUE, Reading
from noregret.studies.store.records import Record


def record(
    number: int,
    params: Any,
    state: Any = "running",
    value: float | None = None,
    *,
    noise: float | None = None,
    bound: Any = None,
    values: Mapping[str, float | None] | None = None,
    constraints: Mapping[str, float] | None = None,
    cost: float | None = None,
    runs: tuple[float, ...] = (),
    reports: tuple[Reading, ...] = (),
    **more: Any,
) -> Record:
    """A trial with these numbers; one that is suggested has the number -1."""
    readings: dict[str, tuple[Reading, ...]] = {}
    if value is not None:
        readings[VALUE] = (Reading(value, noise=noise, bound=bound),)
    if runs:
        readings[VALUE] = tuple(map(Reading, runs))
    if reports:
        readings[VALUE] = (*reports, *readings.get(VALUE, ()))
    readings |= {name: (Reading(number),) for name, number in (values or {}).items() if number is not None}
    readings |= {name: (Reading(number),) for name, number in (constraints or {}).items()}
    readings |= {} if cost is None else {COST: (Reading(cost),)}
    return Record(number, params, state=state, readings=readings, **more)


def suggested(params: Any, told: Any = (), **more: Any) -> Record:
    """A trial to measure."""
    return Record(-1, params, told=tuple(told), **more)


def outcome(number: int, value: float | None = None, failure: str = "", seconds: float = 0.1, **more: Any) -> Record:
    """A trial with its outcome; its params are stored already."""
    is_done = value is not None or more.get("values") or more.get("runs")
    more = {"ended": datetime.now(), **more}
    return record(number, {}, "done" if is_done else "failed", value, failure=failure, seconds=seconds, **more)
