"""Findings: conclusions from the observations of a study, as numbers for displays and pages, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from noregret.diagnosis import Diagnosis, diagnose
from noregret.formatting import finite, number
from noregret.gp.posterior import Floats
from noregret.optimizer import (
    FEWEST_OBSERVATIONS,
    LARGEST_VALUE,
    OUTLYING,
    RECOMMEND,
    VALUE,
    Choice,
    Estimate,
    Gain,
    Gains,
    Hypervolume,
    JointEstimate,
    MeasuredGain,
    Optimizer,
    ParameterSpace,
    Share,
    Trial,
    is_same_setting,
    spread,
)
from noregret.studies.session import noise_near
from noregret.studies.store.records import Record
from noregret.studies.study.results import TIMES, JsonField, MaxRss, Result
from noregret.studies.study.study import Params, Study, text
from noregret.studies.words import with_interval

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


MOST_DOTS = 800
"""Largest number of drawn measurements of a kind, evenly spread over the trials: more would be a cloud."""
MOST_TRADES = 6
"""Largest number of trade-offs between neighbours in words."""
SMALLEST_DIFFERENCE = 0.0005
"""Difference between two values, as a share of them, that counts as none in words."""


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
    records: tuple[Trial, ...] = ()
    values: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class Wish:
    """Limits on objectives, or weights of them, that pick a setting from a front; nothing is picked without any."""

    limits: Mapping[str, tuple[str, float]]
    weights: Mapping[str, float]

    def __bool__(self) -> bool:
        return bool(self.limits or self.weights)

    def __str__(self) -> str:
        said = [f"{name} {side} {number(bound)}" for name, (side, bound) in self.limits.items()]
        weights = [f"{name} {number(weight)}" for name, weight in self.weights.items()]
        return " and ".join([*said, *([f"weights {', '.join(weights)}"] if weights else [])])


NO_WISH = Wish({}, {})


@dataclass(frozen=True)
class Trade:
    """Change from one setting of the front to the next, in words, and whether noise alone may explain it."""

    start: int
    """Place of the setting in the front, from 0."""
    end: int
    given_up: tuple[str, ...]
    saved: tuple[str, ...]
    is_sure: bool
    """True if the intervals of all objectives that are named do not overlap."""

    def __str__(self) -> str:
        if not self.given_up:
            return f"{' and '.join(self.saved) or 'nothing changes'}, and nothing is given up"
        return f"giving up {' and '.join(self.given_up)} {' and '.join(self.saved) or 'brings nothing'}"


class Findings:
    """Conclusions about a study, each computed at its first use.

    With several objectives there is no best setting, and none of its intervals and effects: `front` has the settings to
    choose from, and `picked` the one that a wish names.

    ``records`` are all trials, finished or not, and the optimizer knows the finished ones. ``stopped`` is the reason
    why the study has ended, "within" or "budget".
    """

    def __init__(
        self,
        study: Study,
        records: Sequence[Trial],
        optimizer: Optimizer,
        stopped: str | None = None,
        wish: Wish = NO_WISH,
    ) -> None:
        self.study, self.records, self.optimizer, self.stopped, self.wish = study, records, optimizer, stopped, wish
        self.measures, self.is_single = study.measures, study.measures.is_single
        told = [record for record in records if record.state == "done"]
        self.done = [record for record in told if self.measures.has_value(record)]
        self.cut = [record for record in told if not self.measures.has_value(record)]
        """Trials that were cut short, whose values are bounds."""
        self.failed = [record for record in records if record.state == "failed"]
        self.has_intervals = self.is_single and len(self.done) >= FEWEST_OBSERVATIONS
        self.has_front = not self.is_single and self.measures.is_known(told, FEWEST_OBSERVATIONS)

    def value(self, record: Trial, name: str = VALUE) -> float | None:
        """Value of a trial as the optimizer takes it, so that differences of values are finite."""
        value = record.value(name)
        return None if value is None else min(max(value, -LARGEST_VALUE), LARGEST_VALUE)

    @cached_property
    def values(self) -> Floats:
        """Value of each observation, (n,)."""
        return np.array([self.value(record) for record in self.done], dtype=float)

    @property
    def made(self) -> int:
        """Number of trials that were begun here, rather than measured elsewhere."""
        return sum(not (isinstance(record, Record) and record.is_imported) for record in self.records)

    @property
    def last_stderr(self) -> str:
        """Error output of the last failed run."""
        last = self.failed[-1] if self.failed else None
        return last.stderr if isinstance(last, Record) else ""

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
        cost = self.measures.cost
        known = ((run.number, self.value(run, cost) or run.seconds) for run in self.records if run.is_finished)
        return {number: paid for number, paid in known if paid}

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
        """Recommended point, None before the first observation, and with several objectives."""
        return self.optimizer.best(self.context) if self.done and self.is_single else None

    @property
    def command(self) -> str:
        """The command of the recommended setting, ready for a shell; empty without one."""
        return self.study.shell_line(self.best.params) if self.best and self.study.command else ""

    @cached_property
    def gain(self) -> Gain | None:
        """Gain of the recommended point over the baseline, None without observations of the baseline."""
        return self._gain(self.context)

    @property
    def kept(self) -> Params | None:
        """Params to continue with: the best if it is shown to be better than the baseline, or there is none.

        None without a result and without a baseline, and with several objectives and without one.
        """
        usual: Params | None = self.study.baseline
        if self.best is None:
            return usual
        is_better = usual is None or (self.gain is not None and self.gain.is_shown and not self.best.is_likeliest)
        return dict(self.best.params) if is_better else usual

    def ending(self) -> dict[str, Any]:
        """The best setting or the front, the command that runs it, and why the study has ended, as JSON."""
        if self.is_single:
            best = self.best and best_json(self.best)
            gain = self.gain and percent_json(self.gain)
            return {"best": best, "gain": gain, "command": self.command or None, "stopped": self.stopped}
        volume = self.hypervolume
        return {
            "front": [member_json(member) | {"command": self.command_of(member)} for member in self.front],
            "hypervolume": volume and {key: finite(getattr(volume, key)) for key in ("estimate", "lower", "upper")},
            "best": self.picked and member_json(self.picked),
            "command": self.picked and self.command_of(self.picked),
            "gain": self.gains and {name: percent_json(gain) for name, gain in self.gains.items()},
            "stopped": self.stopped,
        }

    def _gain(self, context: Params | None) -> Gain | None:
        return self.optimizer.gain(context) if self.has_intervals and self._has_baseline else None

    @property
    def _has_baseline(self) -> bool:
        """True if the baseline was measured."""
        return any(is_same_setting(record.params, self.study.baseline) for record in self.done)

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
        places = ParameterSpace(self.study.context).encode(self.contexts)
        few = spread(places, min(FEW_CONTEXTS, len(places)))
        chosen = sorted((self.contexts[int(i)] for i in few), key=self._order)
        return [Recommended(context, self.optimizer.best(context), self._gain(context)) for context in chosen]

    def _order(self, context: Params) -> tuple[float, ...]:
        """Sort key of contexts: numbers by size, choices in their order, absent values last."""
        parts = {name: parameter for name, parameter in (self.study.context or {}).items() if name in context}
        places = {
            n: part.options.index(context[n]) if isinstance(part, Choice) else context[n] for n, part in parts.items()
        }
        return tuple(places.get(name, math.inf) for name in self.study.context or ())

    @cached_property
    def infeasible(self) -> set[int]:
        """Numbers of the trials that broke a constraint; a missing number breaks none."""
        limits = self.measures.constraints
        return {record.number for record in self.done if any(self.breaks(record, name) for name in limits)}

    def breaks(self, record: Trial, name: str) -> bool:
        """Return True if a trial broke a constraint; a missing number breaks none."""
        limit = self.measures[name].limit
        return limit is not None and limit.is_broken_by(record.value(name))

    @cached_property
    def noise_std(self) -> float:
        """The usual size of the noise near the best point, as a standard deviation."""
        return noise_near(self.optimizer, self.optimizer.best(self.context).estimate)

    def predicted(self, points: Sequence[Params]) -> tuple[Floats, Floats, Floats]:
        """Estimate, lower and upper bound at any params."""
        if not self.has_intervals:
            shape = len(points)
            return np.full(shape, self.values[0]), np.full(shape, -np.inf), np.full(shape, np.inf)
        beliefs = self.optimizer.predict_many(points, self.context)
        rows = np.array([(point.estimate, point.lower, point.upper) for point in beliefs], dtype=float).reshape(-1, 3)
        return rows[:, 0], rows[:, 1], rows[:, 2]

    @cached_property
    def weights(self) -> dict[int, float]:
        """Weight of each observation, by trial: 1 if it fits the others, about 0 for an outlier.

        Of a trial with several observations it is the largest.
        Observations so old that the optimizer dropped them have weight 1.
        """
        known = self.optimizer.weights()
        return {record.number: known.get(record.number, 1.0) for record in (*self.done, *self.cut)}

    @cached_property
    def outliers(self) -> list[Trial]:
        """Observations that disagree with all others and have little weight."""
        return [record for record in self.done if self.weights[record.number] < OUTLYING]

    @cached_property
    def points(self) -> list[Point]:
        """Observations by params, in the order of first observation."""
        grouped: dict[tuple[str, ...], list[Trial]] = {}
        for record in self.done:
            grouped.setdefault(_key(record.params), []).append(record)
        return [Point(runs[0].params, tuple(runs), np.array(list(map(self.value, runs)))) for runs in grouped.values()]

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Tails of the noise by repeated observations, None if they are too few or without noise."""
        name = next(iter(self.measures.objectives))
        grouped: dict[tuple[str, ...], list[float]] = {}
        for record in self.done:
            where = *_key(record.params), *_key(record.context or {}), *_key(dict(record.fidelity or {}))
            grouped.setdefault(where, []).extend(run.value for run in record.runs(name))
        repeated = [np.array(values) for values in grouped.values() if len(values) > 1]
        try:
            return diagnose(repeated)
        except ValueError:
            return None

    @cached_property
    def estimates(self) -> list[Estimate]:
        """Estimate of each of the points, in their order; empty without intervals."""
        params = (point.params for point in self.points)
        return self.optimizer.predict_many(params, self.context) if self.has_intervals else []

    @cached_property
    def rivals(self) -> tuple[int, int]:
        """Numbers of the other eligible points that are clearly worse than the best, and that are not."""
        best = self.best
        rest = [rival for rival in self.estimates if best and rival.params != best.params and self._is_eligible(rival)]
        if best is None or not rest:
            return 0, 0
        minimize = self.study.goal == "minimize"
        worse = sum(rival.lower > best.upper if minimize else rival.upper < best.lower for rival in rest)
        return worse, len(rest) - worse

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
        for trial, estimate in zip(first.values(), self.estimates, strict=True):
            is_better = not steps or self._promise(estimate) > self._promise(steps[-1].estimate)
            if trial < last and is_better and self._is_eligible(estimate):
                steps.append(Step(trial, estimate))
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
        near = np.clip(
            [self.value(record) for record in self.done if record.number not in odd], low - margin, high + margin
        )
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
        return [measured.get(_key(row), Point(row)) for row in ranked]

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
        estimates, surfaces = iter(self.predicted(points)[0].tolist()), list[Surface]()
        for i, j in pairs:
            along, upward = grids[names[i]], grids[names[j]]
            estimate = np.array([[next(estimates) for _ in along] for _ in upward])
            surfaces.append(Surface(names[i], names[j], tuple(along), tuple(upward), estimate))
        return surfaces

    @cached_property
    def early(self) -> set[int]:
        """Numbers of the trials whose value is of a lower fidelity than the one that conclusions are about."""
        highest = self.study.levels.highest if self.study.levels else None
        return {record.number for record in self.done if record.fidelity != highest}

    @cached_property
    def kinds(self) -> dict[int, str]:
        """Kind of each observation, by trial: "cut", "odd", "early", "broken", "chosen", "yours", or "dot".

        Chosen is the best setting, or one of the front.
        """
        odd, kinds = {record.number for record in self.outliers}, dict[int, str]()
        yours = self.study.baseline and _key(self.study.baseline)
        chosen = {_key(setting.params) for setting in ([self.best] if self.best else self.front)}
        for record in self.done:
            key = _key(record.params)
            is_chosen = key in chosen and (not self.is_single or record.context == self.context)
            kind = "chosen" if is_chosen and (self.is_single or key != yours) else "yours" if key == yours else "dot"
            kind = "broken" if record.number in self.infeasible else kind
            kind = "early" if record.number in self.early else kind
            kinds[record.number] = "odd" if record.number in odd else kind
        return kinds | {record.number: "cut" for record in self.cut}

    @cached_property
    def spans(self) -> dict[int, Span]:
        """Times and worker of each trial that has a start, by trial; a running one ends at the last known time.

        A process that runs several trials at a time has several workers, and trials do not say which of them ran them:
        each takes the first one of its process that is free at its start.
        """
        here = (record for record in self.records if not (isinstance(record, Record) and record.is_imported))
        timed = sorted((record for record in here if record.started), key=lambda run: (run.started, run.number))
        times = [time for record in timed for time in (record.started, record.ended) if time]
        free: dict[tuple[Any, Any], list[tuple[float, int]]] = {}
        spans, count = dict[int, Span](), 0
        for record in timed:
            assert record.started
            begin, end = ((time - times[0]).total_seconds() for time in (record.started, record.ended or max(times)))
            holder = record.holder if isinstance(record, Record) else {}
            mine = free.setdefault((holder.get("machine"), holder.get("pid")), [])
            place = next((i for i, (until, _) in enumerate(mine) if until <= begin), len(mine))
            if place == len(mine):
                mine.append((0.0, count))
                count += 1
            worker = mine[place][1]
            mine[place] = end, worker
            spans[record.number] = Span(begin, max(begin, end), worker)
        return spans

    @cached_property
    def front(self) -> list[JointEstimate]:
        """The settings that are likely best in some trade-off, by the first objective; empty with too few results."""
        return self.optimizer.front(self.context) if self.has_front else []

    @cached_property
    def picked(self) -> JointEstimate | None:
        """The setting that the wish names, None without one."""
        if not self.wish or not self.has_front:
            return None
        return self.optimizer.best(self.context, limits=self.wish.limits or None, weights=self.wish.weights or None)

    @cached_property
    def hypervolume(self) -> Hypervolume | None:
        """Hypervolume of the front with its interval, None with too few results."""
        return self.optimizer.hypervolume(context=self.context) if self.has_front else None

    @cached_property
    def gains(self) -> Gains | None:
        """Gain over the baseline in each objective: of the setting that was picked, else of one of the front.

        That one is better by most in the objective where it is by least. None before the baseline was measured.
        """
        if not self.has_front or not self._has_baseline:
            return None
        return self.optimizer.gain(self.context, limits=self.wish.limits or None, weights=self.wish.weights or None)

    def units(self) -> dict[str, str]:
        """The unit of each objective with a space before it; empty where it is not known."""
        return {name: unit_of(self.study.results_by_measure[name]) for name in self.study.goals}

    def in_words(self, member: JointEstimate) -> str:
        """The values of a setting of the front."""
        units = self.units()
        return ", ".join(
            f"{name} {with_interval(value, member.lower[name], member.upper[name], units[name])}"
            for name, value in member.values.items()
        )

    @cached_property
    def trades(self) -> list[Trade]:
        """Changes between neighbours of a few settings that are spread over the front, and between its ends."""
        places = spread_over(len(self.front), MOST_TRADES + 1)
        ends = [(places[0], places[-1])] if len(places) > 2 else []
        return [self._trade(start, end) for start, end in [*pairwise(places), *ends]]

    def _trade(self, start: int, end: int) -> Trade:
        one, other = self.front[start], self.front[end]
        given_up, saved, is_sure = [], [], True
        for name, goal in self.study.goals.items():
            before, after = one.values[name], other.values[name]
            change = (after - before) * (1 if goal == "minimize" else -1)
            if abs(change) <= SMALLEST_DIFFERENCE * max(abs(before), abs(after)):
                continue
            is_sure &= one.upper[name] < other.lower[name] or other.upper[name] < one.lower[name]
            is_relative = one.lower[name] > 0 or one.upper[name] < 0
            size = self._size(name, before, after, is_relative and before * after > 0)
            if change > 0:
                given_up.append(f"{size} {name}")
            else:
                saved.append(f"{'saves' if goal == 'minimize' else 'gains'} {size} {name}")
        return Trade(start, end, tuple(given_up), tuple(saved), is_sure)

    def _size(self, name: str, before: float, after: float, is_relative: bool) -> str:
        """Size of a change in percent of the value before it; as it is if that may be 0, or of the other sign."""
        if is_relative:
            return f"{number(100 * abs(after - before) / abs(before), 2)}%"
        return f"{number(abs(after - before), 2)}{self.units()[name]}"

    @cached_property
    def shares(self) -> dict[str, tuple[dict[str, Share], dict[str, Share]]]:
        """Importance of each parameter by objective, over the whole space and among the better half.

        Empty for a table, with contexts or a fidelity, and with too few results; for one objective also where
        `importance` is empty.
        """
        if self.is_single:
            return {VALUE: (self.importance, self.optimizer.importance(better_half=True))} if self.importance else {}
        if not self.has_front or self._is_importance_unknown or not isinstance(self.study.space, Mapping):
            return {}
        whole, better = self.optimizer.importance(), self.optimizer.importance(better_half=True)
        return {name: (whole[name], better[name]) for name in self.study.goals}

    def command_of(self, member: JointEstimate) -> str | None:
        """The command of a setting, ready for a shell; None if the study has none."""
        return self.study.shell_line(member.params) if self.study.command else None

    def _grid(self, name: str, count: int) -> list[Any]:
        """Values along a parameter, its best one among them."""
        assert self.best
        assert isinstance(self.optimizer.space, ParameterSpace)
        return self.optimizer.space.along(name, count, self.best.params[name])

    def _around_best(self, changed: Mapping[str, Sequence[Any]]) -> list[Params]:
        """The best setting with some parameters changed, and others present or absent as these want it."""
        assert self.best
        assert isinstance(self.optimizer.space, ParameterSpace)
        count = len(next(iter(changed.values())))
        absent = {name: [value] * count for name, value in self._elsewhere.items() if name not in self.best.params}
        return self.optimizer.space.around(self.best.params, {**absent, **changed})

    @cached_property
    def _elsewhere(self) -> Params:
        """A value of each parameter that was measured: the one that it has in the best point that has it."""
        ranked = sorted(self.estimates, key=self._promise)
        return {name: value for estimate in ranked for name, value in estimate.params.items()}


def spread_over(count: int, most: int) -> list[int]:
    """At most ``most`` places of ``count``, evenly spread, with the first and the last.

    >>> spread_over(3, 5), spread_over(20, 5)
    ([0, 1, 2], [0, 5, 10, 14, 19])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def unit_of(result: Result) -> str:
    """The unit of results with a space before it; empty where it is not known."""
    return " s" if isinstance(result, TIMES) else " bytes" * isinstance(result, MaxRss)


def _key(params: Params) -> tuple[str, ...]:
    return tuple(f"{name}={text(params[name])}" for name in sorted(params))


def summary(found: Findings) -> dict[str, Any]:
    """Everything that was found; numbers that are not finite are None."""
    gain, shift = found.gain, found.optimizer.shift
    return {
        **found.ending(),
        "baseline": gain and {**estimate_json(gain.baseline), "gain": percent_json(gain)},
        "half_life": finite(found.optimizer.half_life),
        "shift": shift and shift._asdict(),
        "doubts": [doubt._asdict() for doubt in found.optimizer.doubts],
        "trials": [found.measures.described(record) for record in found.records],
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


def percent_json(gain: Gain) -> dict[str, Any]:
    """A gain in percent, whether it is shown, and what was measured in pairs, in percent too."""
    ends, measured = ("estimate", "lower", "upper"), gain.measured

    def percent(its: Gain | MeasuredGain) -> dict[str, Any]:
        return {name: finite(getattr(its.percent, name)) if its.percent else None for name in ends}

    pairs = measured and {**percent(measured), "pairs": measured.pairs, "level": measured.level, "text": str(measured)}
    return {"shown": gain.is_shown, **percent(gain), "measured": pairs}


def member_json(member: JointEstimate) -> dict[str, Any]:
    """A setting of a front; numbers that are not finite are None."""
    numbers = {
        key: {name: finite(value) for name, value in getattr(member, key).items()}
        for key in ("values", "lower", "upper")
    }
    more = {"level": member.level, "feasible": member.feasible, "is_likeliest": member.is_likeliest}
    return {"params": member.params, **numbers, "probability": finite(member.probability), **more}
