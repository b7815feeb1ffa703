"""Belief about a study: an optimizer that knows the outcomes in its store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from noregret.optimizer import (
    Choice,
    Float,
    Int,
    Optimizer,
    Replay,
    Trial,
    axis_of,
    problem_of,
    unexplored_from,
)
from noregret.studies.store.records import Record, arrived
from noregret.studies.study.study import Study

AS_GOOD = 0.25
"""Preference of tuning for settings that were measured, see `OptimizerConfig`: without it, every further measurement
moves the recommendation a little, and it is never itself measured."""


def believed(study: Study, records: Sequence[Record], replay: Replay | None = None) -> Optimizer:
    """Optimizer that knows these trials: the outcomes in the order in which suggestions knew of them, others pending.

    A ``replay`` that is kept makes the next call cheap.
    """
    by_number = {record.number: record for record in records}
    known, new = arrived(records)
    order = [by_number[number] for number in (*known, *new)]
    told = [as_told(study, record) for record in order if record.state != "withdrawn"]
    return (replay or replay_of(study))(told, [record for record in records if not record.is_finished])


def as_told(study: Study, record: Record) -> Trial:
    """A trial as the optimizer takes it: without a cost that does not matter, and with no value that is not possible.

    Earlier versions stored negative times that came with imports, and the range in a study file may change.
    """
    measures, trial = study.measures, record
    if not study.weighs_costs and measures.cost in trial.readings:
        rest = {name: each for name, each in trial.readings.items() if name != measures.cost}
        trial = replace(trial, readings=rest)
    ranges = {name: measures[name].possible for name in measures.objectives if name in trial.readings}
    outside = {
        name: tuple(replace(reading, value=min(max(reading.value, low), high)) for reading in trial.readings[name])
        for name, (low, high) in ranges.items()
        if any(not low <= reading.value <= high for reading in trial.readings[name])
    }
    return replace(trial, readings={**trial.readings, **outside}) if outside else trial


def as_study(optimizer: Optimizer, path: Path, space: Any, **options: Any) -> Study:
    """The study of the problem of an optimizer, one without a command; ``options`` are its other fields."""
    return Study(path, (), **problem_of(optimizer, space).options | options)


def replay_of(study: Study) -> Replay:
    """Replay of the history of a study."""
    budget = study.budget.seconds if study.weighs_costs else None
    as_good = AS_GOOD if study.confirm else 0.0
    return Replay(seed=study.seed, as_good=as_good, budget=budget, **study.for_optimizer())


def least_rounds(study: Study) -> int:
    """Least number of observations with which the stopping rule can hold; 0 if unknown.

    The certificate needs an observation near all but a share of (1 - confidence) / 2 of the settings. Near means within
    r = 0.075 sqrt(d), d the number of parameters. The settings near one are at most the product of the ball's volume
    in the c real numbers, pi^(c/2) r^c / Gamma(c/2 + 1), and the share of the values within r of each other parameter.
    """
    is_strict = study.stop is not None and study.stop.by == "certificate"
    if not is_strict or study.require or not isinstance(study.space, Mapping):
        return 0
    if any(parameter.when for parameter in study.space.values()):
        return 0
    assert study.stop is not None
    reach, axes = unexplored_from(len(study.space)), list(map(axis_of, study.space.values()))
    real = sum(math.isinf(axis.count) for axis in axes)
    ball = (math.sqrt(math.pi) * reach) ** real / math.gamma(real / 2 + 1)
    near = min(ball, 1.0) * math.prod(
        _share_near(parameter, reach) for parameter in study.space.values() if math.isfinite(axis_of(parameter).count)
    )
    return math.ceil((1 + study.stop.confidence) / 2 / near)


def _share_near(parameter: Float | Int | Choice, reach: float) -> float:
    """Largest share of the values of a parameter that lie within reach of one of them."""
    count = axis_of(parameter).count
    if isinstance(parameter, Choice):
        return 1 / count
    return min((2 * math.floor(reach * (count - 1)) + 1) / count, 1.0)
