"""Findings: conclusions from the observations of a study, as numbers for displays and pages, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from noregret.belief.posterior import Floats
from noregret.diagnosis import Diagnosis, diagnose
from noregret.optimizer import (
    FEWEST,
    LARGEST,
    RECOMMEND,
    Choice,
    Estimate,
    Gain,
    Measurement,
    Optimizer,
    Product,
    Share,
    Shift,
    is_same_setting,
    spread,
)
from noregret.tune.measuring import Outcome
from noregret.tune.store.records import Record, arrived
from noregret.tune.study.results import TIMES, JsonField, MaxRss, Result
from noregret.tune.study.study import Params, Study, text

OUTLYING = 0.2
"""An observation with a smaller weight than this is called an outlier."""
CURVE = 41
"""The number of points of an effect's curve."""
GRID = 17
"""The number of points of a surface along each of its two sides."""
MAPPED = 5
"""The number of parameters of which each two have a surface: ten surfaces take 0.4 CPU s with 500 observations."""
FEW_CONTEXTS = 6
"""Largest number of contexts whose best setting is listed."""
FEWEST_COSTS, VARIED = 10, 3.0
"""Least number of costs, and ratio of their upper to their lower decile, from which on they are said to differ."""


@dataclass(frozen=True)
class Effect:
    """Effect of one parameter, with the others as at the best point, or at their best where that has none."""

    name: str
    values: tuple[Any, ...]
    estimate: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Surface:
    """Joint effect of two parameters, with the others as at the best point; ``estimate`` is (down, across)."""

    across: str
    down: str
    across_values: tuple[Any, ...]
    down_values: tuple[Any, ...]
    estimate: Floats


@dataclass(frozen=True)
class Step:
    """Estimate, with all data, of the best setting measured from this trial on."""

    trial: int
    estimate: Estimate


class Span(NamedTuple):
    """Start and end of a trial, in seconds after the first start, and the number of its worker, from 0."""

    start: float
    end: float
    worker: int


@dataclass(frozen=True)
class Recommended:
    """The best setting in a context, and its gain over the baseline there."""

    context: Params
    best: Estimate
    gain: Gain | None


@dataclass(frozen=True)
class Point:
    """Params with all their observations."""

    params: Params
    records: tuple[Record, ...]

    @property
    def values(self) -> Floats:
        return np.array([record.value for record in self.records])


class Findings:
    """Conclusions about a study, each computed at its first use.

    Parameters
    ----------
    study : Study
    records : sequence of Record
        All trials, finished or not.
    optimizer : Optimizer
        An optimizer that knows the finished ones.
    stopped : "within", "budget" or None
        Reason why the study has ended.
    """

    def __init__(
        self, study: Study, records: Sequence[Record], optimizer: Optimizer, stopped: str | None = None
    ) -> None:
        self.study, self.records, self.optimizer, self.stopped = study, records, optimizer, stopped
        told = [_bounded(record) for record in records if record.state == "done"]
        self.done = [record for record in told if record.bound is None]
        self.cut = [record for record in told if record.bound is not None]
        """Trials that were cut short, whose values are bounds."""
        self.failed = [record for record in records if record.state == "failed"]
        self.values = np.array([record.value for record in self.done], dtype=float)
        self.has_intervals = len(self.done) >= FEWEST

    @property
    def unit(self) -> str:
        """The unit of the results with a space before it; empty where it is not known."""
        return unit_of(self.study.result)

    @cached_property
    def timed(self) -> bool:
        """True if the durations of runs are known."""
        return any(record.seconds for record in self.records)

    @cached_property
    def costs(self) -> dict[int, float]:
        """Cost of each finished trial by its number, or else the seconds of its run; empty if they are not known."""
        known = ((its.number, its.cost or its.seconds) for its in self.records if its.finished)
        return {number: _inside(cost) for number, cost in known if cost}

    @cached_property
    def usual_costs(self) -> tuple[float, float] | None:
        """Costs that eight of ten trials lie between, if there are enough and these are `VARIED` apart."""
        if len(self.costs) < FEWEST_COSTS:
            return None
        low, high = np.quantile(list(self.costs.values()), [0.1, 0.9]).tolist()
        return (low, high) if high >= VARIED * low else None

    @property
    def label(self) -> str:
        """The name of the results on axes."""
        result = self.study.result
        if isinstance(result, JsonField):
            return result.field
        return "seconds" if isinstance(result, TIMES) else "bytes" if isinstance(result, MaxRss) else "result"

    @cached_property
    def context(self) -> Params | None:
        """Context of all findings where there are contexts: that of the last observation."""
        return self.done[-1].context if self.done else None

    @cached_property
    def best(self) -> Estimate | None:
        """Recommended point, None before the first observation."""
        return self._best(self.context) if self.done else None

    def _best(self, context: Params | None) -> Estimate:
        return self.optimizer.best(context)

    @property
    def command(self) -> str:
        """The command of the recommended setting, ready for a shell; empty without one."""
        return self.study.shell_line(self.best.params) if self.best and self.study.command else ""

    @cached_property
    def gain(self) -> Gain | None:
        """Gain of the recommended point over the baseline, None without observations of the baseline."""
        return self._gain(self.context)

    def ending(self) -> dict[str, Any]:
        """The best setting, the command that runs it, and the reason why the study has ended, as JSON."""
        best = self.best and best_json(self.best)
        return {"best": best, "command": self.command or None, "stopped": self.stopped}

    def _gain(self, context: Params | None) -> Gain | None:
        measured = any(is_same_setting(record.params, self.study.baseline) for record in self.done)
        if not measured or not self.has_intervals:
            return None
        return self.optimizer.gain(context)

    @cached_property
    def contexts(self) -> list[Params]:
        """All contexts that were measured in, each once, the last one first."""
        met = {_key(r.context): r.context for r in reversed(self.done) if r.context is not None}
        return list(met.values())

    @cached_property
    def recommended(self) -> list[Recommended]:
        """The best setting in a few contexts that differ much, the one of the last measurement among them."""
        if not self.contexts or self.study.context is None or not self.has_intervals:
            return []
        places = Product(self.study.context).encode(self.contexts)
        few = spread(places, min(FEW_CONTEXTS, len(places)))
        chosen = sorted((self.contexts[int(i)] for i in few), key=self._order)
        return [Recommended(its, self._best(its), self._gain(its)) for its in chosen]

    def _order(self, context: Params) -> tuple[float, ...]:
        """Sort key of contexts: numbers by size, choices in their order, absent values last."""
        parts = {name: its for name, its in (self.study.context or {}).items() if name in context}
        places = {
            n: its.options.index(context[n]) if isinstance(its, Choice) else context[n] for n, its in parts.items()
        }
        return tuple(places.get(name, math.inf) for name in self.study.context or ())

    @cached_property
    def infeasible(self) -> set[int]:
        """Numbers of the trials that broke a constraint; a missing number breaks none."""
        bounds = self.study.constraints.items()
        return {r.number for r in self.done if any(its.is_broken_by(r.constraints.get(name)) for name, its in bounds)}

    @cached_property
    def noise_std(self) -> float:
        """The usual size of the noise near the best point, as a standard deviation."""
        calibrated, estimate = self.optimizer.calibrated, self.optimizer.best(self.context).estimate
        signed = estimate if self.optimizer.goal == "maximize" else -estimate
        return calibrated.fit.noise * float(calibrated.scale.units(np.array(signed)))

    @property
    def heavy(self) -> bool:
        """True if heavy-tailed noise explains the observations best."""
        return self.optimizer.calibrated.noise.heavy

    @property
    def half_life(self) -> float:
        """Evaluations after which an observation counts half, infinite without drift."""
        return self.optimizer.half_life

    @property
    def shift(self) -> Shift | None:
        """Change of the machine during the study, None if none is found."""
        return self.optimizer.shift

    def predicted(self, points: Sequence[Params]) -> tuple[Floats, Floats, Floats]:
        """Estimate, lower and upper bound at any params."""
        if not self.has_intervals:
            shape = len(points)
            return np.full(shape, self.values[0]), np.full(shape, -np.inf), np.full(shape, np.inf)
        beliefs = self._predicted(points)
        found = np.array([(its.estimate, its.lower, its.upper) for its in beliefs], dtype=float).reshape(-1, 3)
        return found[:, 0], found[:, 1], found[:, 2]

    def _predicted(self, points: Iterable[Params]) -> list[Estimate]:
        return self.optimizer.predict_many(points, self.context)

    @cached_property
    def weights(self) -> dict[int, float]:
        """Weight of each observation, by trial: 1 if it fits the others, about 0 for an outlier.

        Of a trial with several observations it is the largest.
        Observations so old that the optimizer dropped them have weight 1.
        """
        known, new = arrived(self.records)
        runs = {record.number: len(record.runs) or 1 for record in (*self.done, *self.cut)}
        order = [number for number in (*known, *new) for _ in range(runs.get(number, 0))]
        measured = self.optimizer.measurements
        if self.optimizer.fidelity:
            values = (its for its in self.optimizer.answers if its.value is not None)
            measured = [its for answer, its in zip(values, measured, strict=True) if not answer.is_report]
        trust = [1.0] * (len(order) - len(measured)) + list(map(self._trust, measured))
        found: dict[int, float] = {}
        for number, its in zip(order, trust, strict=True):
            found[number] = max(found.get(number, 0.0), its)
        return found

    def _trust(self, its: Measurement) -> float:
        """Weight of an observation."""
        return its.trust

    @cached_property
    def outliers(self) -> list[Record]:
        """Observations that disagree with all others and have little weight."""
        return [record for record in self.done if self.weights[record.number] < OUTLYING]

    @cached_property
    def points(self) -> list[Point]:
        """Observations by params, in the order of first observation."""
        grouped: dict[tuple[str, ...], list[Record]] = {}
        for record in self.done:
            grouped.setdefault(_key(record.params), []).append(record)
        return [Point(records[0].params, tuple(records)) for records in grouped.values()]

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Tails of the noise by repeated observations, None if they are too few or without noise."""
        grouped: dict[tuple[str, ...], list[float]] = {}
        for record in self.done:
            where = *_key(record.params), *_key(record.context or {}), *_key(dict(record.fidelity or {}))
            grouped.setdefault(where, []).append(record.value or 0.0)
        repeated = [np.array(values) for values in grouped.values() if len(values) > 1]
        try:
            return diagnose(repeated)
        except ValueError:
            return None

    @cached_property
    def estimates(self) -> list[Estimate]:
        """Estimate of each of the points, in their order; empty without intervals."""
        params = (point.params for point in self.points)
        return self._predicted(params) if self.has_intervals else []

    @cached_property
    def rivals(self) -> tuple[int, int]:
        """Numbers of the other eligible points that are clearly worse than the best, and that are not."""
        best = self.best
        others = [its for its in self.estimates if best and its.params != best.params and self._is_eligible(its)]
        if best is None or not others:
            return 0, 0
        minimize = self.study.goal == "minimize"
        worse = sum(its.lower > best.upper if minimize else its.upper < best.lower for its in others)
        return worse, len(others) - worse

    @cached_property
    def best_so_far(self) -> list[Step]:
        """The best setting measured so far, whenever it changed, judged with all data.

        It ends with the recommended one, where that was first measured, or at the last trial if it never was.
        With contexts there is no such thing.
        """
        best, steps = self.best, list[Step]()
        if best is None or not self.estimates or self.study.context:
            return []
        first = {_key(point.params): point.records[0].number for point in self.points}
        last = first.get(_key(best.params), self.done[-1].number)
        for trial, its in zip(first.values(), self.estimates, strict=True):
            is_better = not steps or self._promise(its) > self._promise(steps[-1].estimate)
            if trial < last and is_better and self._is_eligible(its):
                steps.append(Step(trial, its))
        return [*steps, Step(last, best)]

    def _is_eligible(self, its: Estimate) -> bool:
        """Return True if it likely meets the constraints, or as likely as the best does."""
        return its.feasible >= min(RECOMMEND, self.best.feasible if self.best else 1.0)

    def _promise(self, its: Estimate) -> float:
        """Worst-case estimate; the larger the better."""
        return -its.upper if self.study.goal == "minimize" else its.lower

    @cached_property
    def usual(self) -> tuple[float, float]:
        """The range of results that charts show: a few far worse than most would flatten all else into a line."""
        low, high = np.quantile([np.median(point.values) for point in self.points], [0.1, 0.9])
        margin = 3 * (high - low) or np.inf
        odd = {record.number for record in self.outliers}
        near = np.clip([record.value for record in self.done if record.number not in odd], low - margin, high + margin)
        ends = [self.best.lower, self.best.upper] if self.best and self.has_intervals else []
        return float(min([*near, *ends])), float(max([*near, *ends]))

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
    def importance(self) -> dict[str, Share]:
        """Importance of each parameter, largest first; empty for a table, without intervals, and where it is unknown.

        It is with contexts and with a fidelity.
        """
        named = isinstance(self.study.space, Mapping) and self.has_intervals
        return self.optimizer.importance() if named and not self._is_importance_unknown else {}

    @property
    def _is_importance_unknown(self) -> bool:
        return bool(self.study.context or self.study.fidelity)

    @cached_property
    def importance_among_better(self) -> dict[str, Share]:
        """Importance of each parameter among the better half of all settings; empty where `importance` is."""
        return self.optimizer.importance(better_half=True) if self.importance else {}

    @cached_property
    def effects(self) -> list[Effect]:
        """Effect of each parameter of the best setting, the most important first; empty for a table."""
        is_named = isinstance(self.study.space, Mapping)
        in_order = self.study.names if self._is_importance_unknown and is_named else self.importance
        grids = {name: self._grid(name, CURVE) for name in in_order if self.best and name in self.best.params}
        return [
            Effect(name, tuple(values), *self.predicted(self._around_best({name: values})))
            for name, values in grids.items()
            if len(values) > 1
        ]

    @cached_property
    def surfaces(self) -> list[Surface]:
        """Joint effect of each two of the most important parameters, the most important two first."""
        names = [effect.name for effect in self.effects[:MAPPED]]
        pairs = sorted(combinations(range(len(names)), 2), key=sum)
        grids = {name: self._grid(name, GRID) for name in names}
        points: list[Params] = []
        for i, j in pairs:
            cells = [(x, y) for y in grids[names[j]] for x in grids[names[i]]]
            points += self._around_best({names[i]: [x for x, _ in cells], names[j]: [y for _, y in cells]})
        estimates, found = iter(self.predicted(points)[0].tolist()), list[Surface]()
        for i, j in pairs:
            along, upward = grids[names[i]], grids[names[j]]
            estimate = np.array([[next(estimates) for _ in along] for _ in upward])
            found.append(Surface(names[i], names[j], tuple(along), tuple(upward), estimate))
        return found

    @cached_property
    def early(self) -> set[int]:
        """Numbers of the trials whose value is of a lower fidelity than the one that conclusions are about."""
        highest = self.study.levels.highest if self.study.levels else None
        return {record.number for record in self.done if record.fidelity != highest}

    @cached_property
    def kinds(self) -> dict[int, str]:
        """Kind of each observation, by trial: "cut", "odd", "early", "broken", "chosen", "yours", or "dot"."""
        odd, found = {record.number for record in self.outliers}, dict[int, str]()
        best, yours = self.best and _key(self.best.params), self.study.baseline and _key(self.study.baseline)
        for record in self.done:
            key = _key(record.params)
            kind = "yours" if key == yours else "dot"
            kind = "chosen" if key == best and record.context == self.context else kind
            kind = "broken" if record.number in self.infeasible else kind
            kind = "early" if record.number in self.early else kind
            found[record.number] = "odd" if record.number in odd else kind
        return found | {record.number: "cut" for record in self.cut}

    @cached_property
    def spans(self) -> dict[int, Span]:
        """Times and worker of each trial that has a start, by trial; a running one ends at the last known time.

        A process that runs several trials at a time has several workers, and trials do not say which of them ran them:
        each takes the first one of its process that is free at its start.
        """
        timed = sorted((its for its in self.records if its.started), key=lambda its: (its.started, its.number))
        times = [time for its in timed for time in (its.started, its.ended) if time]
        free: dict[tuple[Any, Any], list[tuple[float, int]]] = {}
        found, count = dict[int, Span](), 0
        for record in timed:
            assert record.started
            begin, end = ((time - times[0]).total_seconds() for time in (record.started, record.ended or max(times)))
            mine = free.setdefault((record.holder.get("machine"), record.holder.get("pid")), [])
            place = next((i for i, (until, _) in enumerate(mine) if until <= begin), len(mine))
            if place == len(mine):
                mine.append((0.0, count))
                count += 1
            worker = mine[place][1]
            mine[place] = end, worker
            found[record.number] = Span(begin, max(begin, end), worker)
        return found

    def _grid(self, name: str, count: int) -> list[Any]:
        """Values along a parameter, its best one among them."""
        assert self.best
        assert isinstance(self.optimizer.space, Product)
        return self.optimizer.space.along(name, count, self.best.params[name])

    def _around_best(self, changed: Mapping[str, Sequence[Any]]) -> list[Params]:
        """The best setting with some parameters changed, and others present or absent as these want it."""
        assert self.best
        assert isinstance(self.optimizer.space, Product)
        count = len(next(iter(changed.values())))
        absent = {name: [its] * count for name, its in self._elsewhere.items() if name not in self.best.params}
        return self.optimizer.space.around(self.best.params, {**absent, **changed})

    @cached_property
    def _elsewhere(self) -> Params:
        """A value of each parameter that was measured: the one that it has in the best point that has it."""
        ranked = sorted(self.estimates, key=self._promise)
        return {name: value for its in ranked for name, value in its.params.items()}


def unit_of(result: Result) -> str:
    """The unit of results with a space before it; empty where it is not known."""
    return " s" if isinstance(result, TIMES) else " bytes" * isinstance(result, MaxRss)


def _bounded(record: Record) -> Record:
    """The record with its values as the optimizer takes them, so that differences of values are finite."""
    assert record.value is not None
    values = {name: None if its is None else _inside(its) for name, its in record.values.items()}
    is_inside = (_inside(record.value), values) == (record.value, record.values)
    return record if is_inside else replace(record, value=_inside(record.value), values=values)


def _inside(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)


def _key(params: Params) -> tuple[str, ...]:
    return tuple(f"{name}={text(params[name])}" for name in sorted(params))


def summary(found: Findings) -> dict[str, Any]:
    """Everything that was found; numbers that are not finite are None."""
    return {
        **found.ending(),
        "baseline": baseline_json(found),
        "half_life": finite(found.half_life),
        "shift": found.shift and found.shift._asdict(),
        "trials": [trial_json(record) for record in found.records],
    }


def best_json(best: Estimate) -> dict[str, Any]:
    """The best setting, what is left to gain, and its changes to the baseline."""
    changes = [
        {name: finite(each) if isinstance(each, float) else each for name, each in change._asdict().items()}
        for change in best.changes
    ]
    return {**estimate_json(best), "remaining": finite(best.remaining), "changes": changes}


def estimate_json(believed: Estimate) -> dict[str, Any]:
    """Estimate of a setting."""
    numbers = {name: getattr(believed, name) for name in ("estimate", "lower", "upper", "level", "gap", "feasible")}
    return {"params": believed.params, **{name: finite(number) for name, number in numbers.items()}}


def baseline_json(found: Findings) -> dict[str, Any] | None:
    """Estimate of the baseline, and the gain over it in percent."""
    if found.gain is None:
        return None
    return {**estimate_json(found.gain.baseline), "gain": percent_json(found.gain)}


def percent_json(gain: Gain) -> dict[str, float | bool | None]:
    """A gain in percent, and whether it is shown."""
    percent, ends = gain.percent, ("estimate", "lower", "upper")
    return {"shown": gain.is_shown, **{name: finite(getattr(percent, name)) if percent else None for name in ends}}


def trial_json(record: Record) -> dict[str, Any]:
    """One trial, finished or not."""
    state: dict[str, Any] = {"failed": record.state == "failed", "state": record.state}
    if record.state == "failed":
        state["reason"] = record.failure
    return {"trial": record.number, "params": record.params, "value": record.value, **state, **told_json(record)}


def told_json(told: Outcome | Record) -> dict[str, Any]:
    """All but the value of a plain trial; with several objectives, None in its place."""
    found: dict[str, Any] = {"value": None, "values": dict(told.values)} if told.values else {}
    if told.constraints:
        found["constraints"] = dict(told.constraints)
    if told.bound:
        found["bound"] = told.bound
    if told.runs:
        found["runs"] = list(told.runs)
    if told.fidelity is not None:
        found |= {"fidelity": dict(told.fidelity), "stopped": told.is_stopped}
    return found


def finite(number: float) -> float | None:
    """Number as JSON, which has no infinity: None stands for it."""
    return number if math.isfinite(number) else None
