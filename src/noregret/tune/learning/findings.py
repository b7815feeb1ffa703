"""Findings: what the measurements of a study say, as numbers for displays and pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats
from noregret.diagnosis import Diagnosis, diagnose
from noregret.optimizer.comparing.gain import Gain
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.spaces.parameters import Choice, Float, Int
from noregret.tune.store.records import Record, arrived
from noregret.tune.study.results import JsonField, WallTime
from noregret.tune.study.study import Params, Study, text

OUTLYING = 0.2
"""A measurement that counts for less than this share of a usual one is called outlying."""
CURVE = 41
"""The number of points of an effect's curve."""


@dataclass(frozen=True)
class Effect:
    """What one parameter does while the others stay as at the best point, or if they no longer apply, at their best."""

    name: str
    values: tuple[Any, ...]
    estimate: Floats
    lower: Floats
    upper: Floats

    @property
    def span(self) -> float:
        """The difference between the largest and the smallest estimate."""
        return float(np.ptp(self.estimate))


@dataclass(frozen=True)
class Point:
    """Params with everything that was measured there."""

    params: Params
    records: tuple[Record, ...]

    @property
    def values(self) -> Floats:
        return np.array([record.value for record in self.records])


class Findings:
    """What is known about a study; everything is computed when it is asked for.

    Parameters
    ----------
    study : Study
    records : sequence of Record
        All trials, finished or not.
    optimizer : Optimizer
        One that was told the finished ones.
    """

    def __init__(self, study: Study, records: Sequence[Record], optimizer: Optimizer) -> None:
        self.study, self.records, self.optimizer = study, records, optimizer
        self.done = [record for record in records if record.state == "done"]
        self.failed = [record for record in records if record.state == "failed"]
        self.values = np.array([record.value for record in self.done], dtype=float)

    @property
    def unit(self) -> str:
        """The unit of the results with a space before it; empty where it is not known."""
        return " s" if isinstance(self.study.result, WallTime) else ""

    @property
    def label(self) -> str:
        """The name of the results on axes."""
        result = self.study.result
        return (
            result.field if isinstance(result, JsonField) else "seconds" if isinstance(result, WallTime) else "result"
        )

    @cached_property
    def best(self) -> Estimate | None:
        """The recommended point, None as long as nothing was measured."""
        return self.optimizer.best() if self.done else None

    @cached_property
    def gain(self) -> Gain | None:
        """How much better the recommended point is than the baseline, None as long as there is nothing to compare."""
        measured = any(record.params == self.study.baseline for record in self.done)
        return self.optimizer.gain() if measured and len(self.done) > 1 else None

    @cached_property
    def noise_std(self) -> float:
        """The usual size of the noise near the best point, as a standard deviation."""
        return self.optimizer.calibrated.scale.unit * self.optimizer.calibrated.fit.noise

    @property
    def heavy(self) -> bool:
        """Whether measurements are explained best by noise that is now and then wildly off."""
        return self.optimizer.calibrated.weighing.heavy

    def predicted(self, points: Sequence[Params]) -> tuple[Floats, Floats, Floats]:
        """Estimate, lower and upper bound at any params."""
        if len(self.done) < 2:
            shape = len(points)
            return np.full(shape, self.values[0]), np.full(shape, -np.inf), np.full(shape, np.inf)
        beliefs = [self.optimizer.predict(params) for params in points]
        found = np.array([(its.estimate, its.lower, its.upper) for its in beliefs], dtype=float).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    @cached_property
    def weights(self) -> dict[int, float]:
        """How much each measurement counts, by trial: about 1 if it fits the others, about 0 if it is absurd."""
        known, new = arrived(self.records)
        done = {record.number for record in self.done}
        order = [number for number in (*known, *new) if number in done]
        return {number: found.trust for number, found in zip(order, self.optimizer.measurements, strict=True)}

    @cached_property
    def outliers(self) -> list[Record]:
        """The measurements that disagree with all others, and count for little."""
        return [record for record in self.done if self.weights[record.number] < OUTLYING]

    @cached_property
    def points(self) -> list[Point]:
        """What was measured, by params, in the order of first measurement."""
        grouped: dict[tuple[tuple[str, str], ...], list[Record]] = {}
        for record in self.done:
            grouped.setdefault(_key(record.params), []).append(record)
        return [Point(records[0].params, tuple(records)) for records in grouped.values()]

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What repeated measurements say about the tails of the noise, None if they are too few or without noise."""
        repeated = [point.values for point in self.points if len(point.records) > 1]
        try:
            return diagnose(repeated)
        except ValueError:
            return None

    @cached_property
    def rivals(self) -> tuple[int, int]:
        """How many of the other points measured are clearly worse than the best, and how many are not."""
        best = self.best
        others = [point.params for point in self.points if best and point.params != best.params]
        if best is None or not others:
            return 0, 0
        _, lower, upper = self.predicted(others)
        worse = int(np.sum(lower > best.upper if self.study.goal == "minimize" else upper < best.lower))
        return worse, len(others) - worse

    @cached_property
    def candidates(self) -> list[Point]:
        """The rows of a table of candidates, the best estimates first; empty for named parameters."""
        if isinstance(self.study.space, Mapping):
            return []
        measured = {_key(point.params): point for point in self.points}
        rows = list({_key(row): row for row in self.study.space}.values())
        estimate = self.predicted(rows)[0] * (1 if self.study.goal == "minimize" else -1)
        ranked = [rows[int(i)] for i in np.argsort(estimate, kind="stable")]
        return [measured.get(_key(row), Point(row, ())) for row in ranked]

    @cached_property
    def effects(self) -> list[Effect]:
        """What each parameter does, the most important first; empty for a table of candidates."""
        space = self.study.space
        if self.best is None or not isinstance(space, Mapping):
            return []
        best = self.best.params
        found = [self._effect(name, _grid(its, best[name])) for name, its in space.items() if name in best]
        return sorted((effect for effect in found if len(effect.values) > 1), key=lambda effect: -effect.span)

    def _effect(self, name: str, values: Sequence[Any]) -> Effect:
        moved = [(value, params) for value in values if (params := self._moved(name, value)) is not None]
        return Effect(name, tuple(value for value, _ in moved), *self.predicted([params for _, params in moved]))

    def _moved(self, name: str, value: Any) -> Params | None:
        """The best point with one parameter moved; the best one measured there if that changes which others apply."""
        assert self.best
        moved = {**self.best.params, name: value}
        try:
            return dict(self.optimizer.space.checked(moved))
        except ValueError:
            there = [point.params for point in self.points if point.params.get(name) == value]
        estimates = self.predicted(there)[0] * (1 if self.study.goal == "minimize" else -1)
        return there[int(np.argmin(estimates))] if there else None


def _key(params: Params) -> tuple[tuple[str, str], ...]:
    return tuple((name, text(params[name])) for name in sorted(params))


def _grid(parameter: Float | Int | Choice, best: Any) -> list[Any]:
    """Values along a parameter, its best one among them."""
    if isinstance(parameter, Choice) or parameter.count <= CURVE:
        return list(parameter.values())
    values = parameter.decode(np.linspace(0.0, 1.0, CURVE)[:, None])
    return sorted({*values, best})
