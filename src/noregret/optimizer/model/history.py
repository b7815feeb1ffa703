"""History: the distinct points met, and in order of arrival what was measured there or failed, by measure."""

from __future__ import annotations

import copy
from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.checking import UNKNOWN
from noregret.optimizer.model.evidence import Evidence, learnable
from noregret.optimizer.model.failures import hopeless
from noregret.optimizer.space.contexts import is_setting
from noregret.optimizer.space.space import Space
from noregret.optimizer.trial import COST, VALUE, Block


class Signed(NamedTuple):
    """A reading with larger values better: its value, noise (nan if unknown), and 1 or -1 if at least or at most it."""

    value: float
    noise: float
    bound: int


NO_VALUE = Signed(UNKNOWN, UNKNOWN, bound=0)
"""Stands for a measure that an answer has no reading of."""


class Answer(NamedTuple):
    """One answer: its point, its readings by measure, and its run.

    The ``run`` is the trial of which this is one of several answers, at several fidelities; -1 for one that stands
    alone. An answer without a reading of an objective is a failure. The ``block`` is what it shares with others, by
    the name of a factor.
    """

    where: int
    numbers: Mapping[str, Signed]
    run: int
    block: Block | None = None


Copied = TypeVar("Copied")


def copied(thing: Copied) -> Copied:
    """Copy of an object with lists, dicts, sets and arrays of its own."""
    twin = copy.copy(thing)
    for name, value in vars(thing).items():
        if isinstance(value, list | dict | set | array):
            setattr(twin, name, copy.copy(value))
    return twin


class Column:
    """Readings of one measure in order of arrival, kept as arrays."""

    def __init__(self) -> None:
        self._when, self._values, self._noise, self._bounds = array("q"), array("d"), array("d"), array("b")
        self.counts: dict[int, int] = {}  # values of each point
        self.bounded: set[int] = set()  # points that have given a bound
        self.bounds = 0  # answers that have a bound instead of a value
        self.measured = 0  # answers that have a value, those of one run once
        self.usable = 0  # answers up to the second of these
        self.is_noise_known = True  # True if the noise of all of these is known

    def __len__(self) -> int:
        return len(self._when)

    def add(self, index: int, where: int, reading: Signed, is_again: bool) -> None:
        """Take in the reading of an answer; ``is_again`` if it replaces an earlier one of its run."""
        self._when.append(index)
        self._values.append(reading.value)
        self._noise.append(reading.noise)
        self._bounds.append(reading.bound)
        if reading.bound:
            self.bounded.add(where)
            self.bounds += 1
            return
        self.counts[where] = self.counts.get(where, 0) + 1
        self.is_noise_known &= reading.noise == reading.noise
        if not is_again:
            self.measured += 1
            if self.measured <= 2:
                self.usable = index + 1

    def until(self, stop: int) -> tuple[Ints, Floats, Floats, Ints]:
        """Answers of the first ``stop`` that have a reading, and its value, noise and bound, each (n,)."""
        size = bisect_left(self._when, stop)
        columns = self._when, self._values, self._noise, self._bounds
        when, values, noise, bounds = (np.array(column[:size]) for column in columns)
        return when, values, noise, bounds.astype(np.intp)

    def at(self, index: int) -> Signed:
        """Reading of an answer."""
        place = bisect_left(self._when, index)
        if place == len(self) or self._when[place] != index:
            return NO_VALUE
        return Signed(self._values[place], self._noise[place], self._bounds[place])


class History:
    """Everything that is known. Points are numbered as they are met; answers are kept in order.

    Parameters
    ----------
    space : Space
    baseline : params, optional
        The setting that others are compared with, without a context.
    objectives : sequence of str
        The measures that it is about. `of` gives the same history as one about a single objective.
    cost : str
        The measure of what an answer has cost.
    """

    def __init__(
        self, space: Space, baseline: Any = None, objectives: Sequence[str] = (VALUE,), cost: str = COST
    ) -> None:
        self.space, self.baseline, self.objectives, self.cost = space, baseline, tuple(objectives), cost
        self.params: list[Any] = []  # of each point
        self.baseline_points: list[int] = []  # the points that have been met with this setting: one in each context
        self.columns: dict[str, Column] = {name: Column() for name in self.objectives}
        self.runs: set[int] = set()  # trials that have reported intermediate values
        self._where, self._run = array("q"), array("q")  # point and run of each answer
        self._failed = array("q")  # answers that are failures
        self._blocks: dict[int, Block] = {}  # of answers
        self._factors: dict[str, int] = {}  # number of each factor of blocks
        self._levels: dict[tuple[str, str], int] = {}  # number of each level of a factor
        self._replaced: list[int] = []  # answers of a run that has an earlier one
        self._points = array("d")  # the coordinates of the first of them; the others' when needed: cheaper together
        self._numbers: dict[Hashable, int] = {}
        self._failures: set[int] = set()  # points that have failed
        self._judged = 0, np.empty(0, dtype=np.intp)  # hopeless points after this many answers
        self._about: dict[str, History] = {}
        self._logarithmic: History | None = None

    def of(self, objective: str) -> History:
        """The same history, about this objective: nothing is copied."""
        if self.objectives == (objective,):
            return self
        if objective not in self._about:
            self._about[objective] = copy.copy(self)
            self._about[objective].objectives, self._about[objective]._logarithmic = (objective,), None
        return self._about[objective]

    @property
    def logarithmic(self) -> History | None:
        """The same history in the coordinates of `Space.logarithmic`, None if there are none: nothing is copied."""
        if self._logarithmic is None and self.space.logarithmic is not None:
            self._logarithmic = twin = copy.copy(self)
            twin.space, twin._points, twin._about = self.space.logarithmic, array("d"), {}
        return self._logarithmic

    def copy(self) -> History:
        """Return an independent copy."""
        twin = copied(self)
        twin.columns, twin._about = {name: copied(column) for name, column in self.columns.items()}, {}
        twin._logarithmic = None
        return twin

    def last(self, count: int, needed: Iterable[int]) -> tuple[History, dict[int, int]]:
        """History of the last ``count`` answers and the needed points, and the new number of each point left."""
        kept = self.answers(max(len(self) - count, 0))
        left = dict.fromkeys([*self.baseline_points[:1], *(answer.where for answer in kept), *needed])
        return self.rebuilt(left, kept)

    def rebuilt(self, points: Iterable[int], answers: Iterable[Answer]) -> tuple[History, dict[int, int]]:
        """History of these points and answers instead, and the new number of each point."""
        twin = History(self.space, self.baseline, self.objectives, self.cost)
        numbers = {number: twin.intern(self.params[number], self.point(number)) for number in points}
        for answer in answers:
            twin.add(answer._replace(where=numbers[answer.where]))
        return twin, numbers

    def __len__(self) -> int:
        return len(self._where)

    def where(self, index: int) -> int:
        """Point of an answer."""
        return self._where[index]

    def answers(self, start: int = 0) -> list[Answer]:
        """The answers from this one on."""
        numbers: list[dict[str, Signed]] = [{} for _ in range(start, len(self))]
        for name, column in self.columns.items():
            when, *known = column.until(len(self))
            first = int(np.searchsorted(when, start))
            rows = zip(when[first:].tolist(), *(part[first:].tolist() for part in known), strict=True)
            for index, *reading in rows:
                numbers[index - start][name] = Signed(*reading)
        blocks = map(self._blocks.get, range(start, len(self)))
        return list(map(Answer, self._where[start:], numbers, self._run[start:], blocks))

    def block(self, index: int) -> dict[int, int] | None:
        """Number of the level of each factor of an answer's block; None without a block."""
        block = self._blocks.get(index, {})
        return {self._factors[name]: self._levels[name, str(level)] for name, level in block.items()} or None

    @property
    def measured(self) -> int:
        """Number of values, those of one run once; of the objective that has most."""
        return max(self.columns[name].measured for name in self.objectives)

    @property
    def least_measured(self) -> int:
        """Number of values of the objective that has fewest."""
        return min(self.columns[name].measured for name in self.objectives)

    @property
    def column(self) -> Column:
        """Readings of the objective, of the first one if there are several."""
        return self.columns[self.objectives[0]]

    def reading(self, index: int) -> Signed:
        """Reading of the objective in an answer, of the first one that it has."""
        readings = (self.columns[name].at(index) for name in self.objectives)
        return next((each for each in readings if each.value == each.value), NO_VALUE)

    def values(self, stop: int) -> Floats:
        """Value of the objective in each of the first ``stop`` answers, nan where there is none, (stop,)."""
        numbers = np.full(stop, UNKNOWN)
        when, values, _, _ = self.column.until(stop)
        numbers[when] = values
        return numbers

    @property
    def replaced(self) -> int:
        """Number of values that a later one of the same run replaces."""
        return len(self._replaced)

    @property
    def failures(self) -> int:
        """Number of answers that are failures."""
        return len(self._failed)

    @property
    def reports(self) -> frozenset[int]:
        """Numbers of the answers that a later one of the same run replaces."""
        return frozenset(self._superseded(len(self)).tolist() if self.runs else ())

    def _superseded(self, stop: int) -> Ints:
        """Those of the first ``stop`` answers that a later one of the same run replaces: a run counts once."""
        runs = np.array(self._run[:stop])[::-1]
        several = np.flatnonzero(runs >= 0)
        _, last = np.unique(runs[several], return_index=True)
        return stop - 1 - np.delete(several, last)

    @property
    def points(self) -> Floats:
        """The points, (u, d)."""
        self._encode()
        return np.array(self._points).reshape(len(self.params), len(self.space.groups))

    def point(self, number: int) -> Floats:
        """One of the points, (d,)."""
        self._encode()
        width = len(self.space.groups)
        return np.array(self._points[number * width : (number + 1) * width])

    def _encode(self) -> None:
        known = len(self._points) // len(self.space.groups)
        if known < len(self.params):
            self._points.frombytes(self.space.encode(self.params[known:]).tobytes())

    def answered(self, number: int) -> int:
        """Number of values of a point."""
        return max(self.columns[name].counts.get(number, 0) for name in self.objectives)

    @property
    def _bounded(self) -> set[int]:
        """Points that have given a bound."""
        return set().union(*(self.columns[name].bounded for name in self.objectives))

    def is_answered(self, number: int) -> bool:
        """Return True if a point has given a value or a bound, or failed."""
        return self.answered(number) > 0 or number in self._failures or number in self._bounded

    @property
    def unproven(self) -> Ints:
        """Points that have failed or given bounds, and never a value."""
        tried = sorted(self._failures | self._bounded)
        return np.array([number for number in tried if not self.answered(number)], dtype=np.intp)

    @property
    def only_bounded(self) -> Ints:
        """Points that have given bounds and never a value."""
        return np.array([number for number in sorted(self._bounded) if not self.answered(number)], dtype=np.intp)

    @property
    def hopeless(self) -> Ints:
        """Points that failed and are more likely broken than unlucky, see `failures`."""
        if self._judged[0] != len(self):
            self._judged = len(self), self._hopeless(len(self))
        return self._judged[1]

    def within(self, space: Space) -> Ints:
        """Numbers of the points that may be asked for in a part of the space: in one context, or all of it."""
        return np.flatnonzero(space.holds(self.points))

    def number(self, params: Any) -> int | None:
        """The number of the point with these params, None if it has not been met."""
        return self._numbers.get(self.space.key(params))

    def intern(self, params: Any, point: Floats | None = None) -> int:
        """The number of the point with these params, the next one if it has not been met."""
        number = self._numbers.setdefault(self.space.key(params), len(self.params))
        if number == len(self.params):
            if point is not None:
                self._encode()
                self._points.frombytes(point.tobytes())
            self.params.append(params)
            if self.baseline is not None and is_setting(self.space, params, self.baseline):
                self.baseline_points.append(number)
        return number

    def add(self, answer: Answer) -> None:
        """Take in a measurement or a failure."""
        index, is_again = len(self), answer.run in self.runs
        self._where.append(answer.where)
        self._run.append(answer.run)
        if answer.block:
            self._blocks[index] = answer.block
            for name, level in answer.block.items():
                self._factors.setdefault(name, len(self._factors))
                self._levels.setdefault((name, str(level)), len(self._levels))
        for name, reading in answer.numbers.items():
            if name not in self.columns:
                self.columns[name] = Column()
            self.columns[name].add(index, answer.where, reading, is_again)
        told = [answer.numbers[name] for name in self.objectives if name in answer.numbers]
        if not told:
            self._failures.add(answer.where)
            self._failed.append(index)
            if is_again:  # its reports are replaced
                self.column.measured -= 1
        if is_again and (not told or not told[0].bound):
            self._replaced.append(index)
        if answer.run >= 0 and told and not told[0].bound:
            self.runs.add(answer.run)

    def evidence(self, stop: int) -> tuple[Evidence, Ints]:
        """Evidence of the first ``stop`` answers about the objective, and the number of each of its points.

        The measurements come first, in their order. Heuristic: a hopeless point counts as measured once, just now and
        as bad as the worst tenth of the measurements; other failures say nothing about the value.
        """
        (objective,) = self.objectives
        when, where, values, noise, bounds = self._read(objective, stop)
        failed = self._hopeless(stop)
        if failed.size:
            when, where = np.append(when, np.full(failed.size, stop)), np.append(where, failed)
            values = np.append(values, np.full(failed.size, np.quantile(values, 0.1)))
            noise = np.append(noise, np.full(failed.size, UNKNOWN))
            bounds = np.append(bounds, np.zeros(failed.size, dtype=np.intp))
        return self._evidence(when, where, values, noise, bounds, failed.size)

    def numbers(self, name: str, stop: int) -> Evidence:
        """Evidence of the first ``stop`` answers about a constraint."""
        if name not in self.columns:
            name, stop = self.objectives[0], 0
        return self._evidence(*self._read(name, stop))[0]

    def costs(self, stop: int) -> int:
        """Number of costs among the first ``stop`` answers."""
        return len(self.columns[self.cost].until(stop)[0]) if self.cost in self.columns else 0

    def log_costs(self, stop: int) -> Evidence:
        """Evidence of the first ``stop`` answers about -ln cost; failures that have a cost count too."""
        when, costs, noise, bounds = self.columns[self.cost].until(stop)
        return self._evidence(when, np.array(self._where)[when], -np.log(costs), noise / costs, -bounds)[0]

    def _read(self, name: str, stop: int) -> tuple[Ints, Ints, Floats, Floats, Ints]:
        """Answers with a reading that counts, and its point, value, noise and bound."""
        when, values, noise, bounds = self.columns[name].until(stop)
        if self.runs:
            counts = ~np.isin(when, self._superseded(stop))
            when, values, noise, bounds = when[counts], values[counts], noise[counts], bounds[counts]
        return when, np.array(self._where)[when], values, noise, bounds

    def _evidence(
        self, when: Ints, where: Ints, values: Floats, noise: Floats, bounds: Ints, failed: int = 0
    ) -> tuple[Evidence, Ints]:
        """Measurements of points with these numbers, and the number of each distinct point, in each of its blocks.

        The last ones stand for points that ``failed``.
        """
        places, levels = where, self._levels_of(when[: len(when) - failed])
        if levels is not None:
            levels = np.pad(levels, ((0, failed), (0, 0)), constant_values=-1)
            places = np.unique(np.column_stack([where, levels]), axis=0, return_inverse=True)[1].ravel()
        _, first, inverse = np.unique(places, return_index=True, return_inverse=True)
        order = np.argsort(first)  # as they arrived, however they are numbered
        numbers, about = where[first][order], (np.array(self.space.groups), self.space.active_together, when)
        evidence = Evidence(self.points[numbers], np.argsort(order)[inverse], values, noise, *about)
        evidence = evidence if levels is None else replace(evidence, blocks=levels[first][order])
        return replace(evidence, bounds=bounds) if bounds.any() else evidence, numbers

    def _levels_of(self, when: Ints) -> Ints | None:
        """Level of each factor in these answers, (n, k), -1 for none; None if they say nothing about offsets."""
        if not self._blocks:
            return None
        factors = range(len(self._factors))
        blocks = [self.block(index) or {} for index in when.tolist()]
        levels = np.array([[block.get(factor, -1) for factor in factors] for block in blocks], dtype=np.intp)
        known = learnable(levels)
        levels[:, np.setdiff1d(np.array(factors), known)] = -1
        return levels if known.size else None

    def _hopeless(self, stop: int) -> Ints:
        """The points that are hopeless for all that the first ``stop`` answers say."""
        if not self._failures:
            return np.empty(0, dtype=np.intp)
        where, failed = np.array(self._where[:stop]), np.zeros(stop, dtype=bool)
        failed[self._failed[: bisect_left(self._failed, stop)]] = True
        successes, failures = (np.bincount(where[mask], minlength=len(self.params)) for mask in (~failed, failed))
        return hopeless(self.points, successes, failures, max(self.space.groups) + 1)
