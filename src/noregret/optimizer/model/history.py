"""History: the distinct points met, and in order of arrival what was measured there or failed."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple, overload

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.checking import UNKNOWN
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.failures import hopeless
from noregret.optimizer.space.contexts import is_setting
from noregret.optimizer.space.space import Space


class Arrival(NamedTuple):
    """One answer: number of its point, value (larger is better), noise, numbers of constraints, and cost.

    With several objectives, ``values`` has the value of each, nan for what was not measured, and ``value`` is the first
    that was measured.
    """

    where: int
    value: float
    noise: float
    constraints: tuple[float, ...] = ()
    bound: int = 0
    """1 if the value is at least ``value``, -1 if it is at most that, 0 if it is that."""
    cost: float = UNKNOWN
    run: int = -1
    """Trial of which this is one of several values, at several fidelities; -1 for a value that stands alone."""
    values: tuple[float, ...] = ()

    @property
    def failed(self) -> bool:
        """True if there is no value of any objective."""
        return self.value != self.value and not self.values

    def of_objective(self, index: int) -> Arrival:
        """The answer as one about a single objective; its value is nan if only others were measured."""
        if not self.values:
            return self
        value = self.values[index]
        return self._replace(value=value, values=() if value == value else (value,))


NOWHERE = -1
"""Stands for the number of a point of an answer that has yet to be put where it belongs."""

FAILURE = Arrival(NOWHERE, UNKNOWN, UNKNOWN)


class Arrivals(Sequence[Arrival]):
    """Answers in order of arrival, kept as columns: a million of them take 40 MB."""

    def __init__(self) -> None:
        self._where, self._values, self._noise = array("q"), array("d"), array("d")
        self._constraints: list[tuple[float, ...]] = []
        self._bounds: dict[int, int] = {}  # of the answers that are bounds
        self._costs = array("d")
        self._runs = array("q")
        self._objectives: list[tuple[float, ...]] = []

    def copy(self) -> Arrivals:
        """Return an independent copy."""
        twin = Arrivals()
        twin._where, twin._values, twin._noise = self._where[:], self._values[:], self._noise[:]
        twin._constraints, twin._bounds = self._constraints.copy(), self._bounds.copy()
        twin._costs, twin._runs, twin._objectives = self._costs[:], self._runs[:], self._objectives.copy()
        return twin

    def append(self, arrival: Arrival) -> None:
        """Add the next answer."""
        if arrival.bound:
            self._bounds[len(self)] = arrival.bound
        self._where.append(arrival.where)
        self._values.append(arrival.value)
        self._noise.append(arrival.noise)
        self._constraints.append(arrival.constraints)
        self._costs.append(arrival.cost)
        self._runs.append(arrival.run)
        self._objectives.append(arrival.values)

    def columns(self, stop: int) -> tuple[Ints, Floats, Floats]:
        """The points, values and noises of the first ``stop`` answers, each (stop,)."""
        return np.array(self._where[:stop]), np.array(self._values[:stop]), np.array(self._noise[:stop])

    def bounds(self, stop: int) -> Ints | None:
        """`Evidence.bounds` of the first ``stop`` answers, None if none of them is a bound."""
        found = np.zeros(stop, dtype=np.intp)
        for index, bound in self._bounds.items():
            if index < stop:
                found[index] = bound
        return found if found.any() else None

    def costs(self, stop: int) -> Floats:
        """Cost of each of the first ``stop`` answers, nan where it is unknown, (stop,)."""
        return np.array(self._costs[:stop])

    def __len__(self) -> int:
        return len(self._where)

    @overload
    def __getitem__(self, index: int) -> Arrival: ...
    @overload
    def __getitem__(self, index: slice) -> list[Arrival]: ...

    def __getitem__(self, index: int | slice) -> Arrival | list[Arrival]:
        columns: list[Any] = [self._where, self._values, self._noise, self._constraints]
        others: list[Any] = [self._costs, self._runs, self._objectives]
        if isinstance(index, slice):
            bounds = map(self._bounds.get, range(len(self))[index], repeat(0)) if self._bounds else repeat(0)
            return list(map(Arrival, *(its[index] for its in columns), bounds, *(its[index] for its in others)))
        bound = self._bounds.get(range(len(self))[index], 0) if self._bounds else 0
        return Arrival._make([*(its[index] for its in columns), bound, *(its[index] for its in others)])

    def superseded(self, stop: int) -> Ints:
        """Those of the first ``stop`` answers that a later one of the same run replaces: a run counts once."""
        runs = np.array(self._runs[:stop])[::-1]
        several = np.flatnonzero(runs >= 0)
        _, last = np.unique(runs[several], return_index=True)
        return stop - 1 - np.delete(several, last)


class History:
    """Everything that is known. Points are numbered as they are met; arrivals are kept in order."""

    def __init__(self, space: Space, baseline: Any = None) -> None:
        self.space = space
        self.params: list[Any] = []  # of each point
        self.arrivals = Arrivals()
        self.baseline = baseline  # the setting that others are compared with, without a context
        self.baseline_points: list[int] = []  # the points that have been met with this setting: one in each context
        self.measured = 0  # arrivals that have a value, those of one run once; of the objective that has most
        self.bounds = 0  # arrivals that have a bound instead
        self.usable = 0  # arrivals up to the second of these
        self.runs: set[int] = set()  # trials that have reported intermediate values
        self.replaced = 0  # values that a later one of the same run replaces
        self.is_noise_known = True  # True if the noise of all of these is known
        self.costed = 0  # arrivals that have a cost
        self._points = array("d")  # the coordinates of each, nan until they are encoded: many are cheaper together
        self._unencoded: list[int] = []  # the numbers of these
        self._blank = np.full(len(space.groups), UNKNOWN).tobytes()  # what stands for their coordinates
        self._numbers: dict[Hashable, int] = {}
        self._counts: list[int] = []  # values of each point
        self._failures: set[int] = set()  # points that have failed
        self._bounded: set[int] = set()  # points that have given a bound
        self._elsewhere: list[int] = []  # arrivals that are neither a failure nor a value of this objective
        self._of_each: list[int] = []  # values of each of several objectives
        self._judged: tuple[int, Ints] = 0, np.empty(0, dtype=np.intp)  # hopeless points after this many answers

    def copy(self) -> History:
        """Return an independent copy."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | set | array):
                setattr(twin, name, copy.copy(value))
        twin.arrivals = self.arrivals.copy()
        return twin

    def last(self, count: int, needed: Iterable[int]) -> tuple[History, dict[int, int]]:
        """History of the last ``count`` answers and the needed points, and the new number of each point left."""
        twin = History(self.space, self.baseline)
        kept = self.arrivals[-count:]
        left = dict.fromkeys([*self.baseline_points[:1], *(arrival.where for arrival in kept), *needed])
        numbers = {number: twin.intern(self.params[number], self.point(number)) for number in left}
        for arrival in kept:
            twin.add(arrival._replace(where=numbers[arrival.where]))
        return twin, numbers

    @property
    def reports(self) -> frozenset[int]:
        """Numbers of the arrivals that a later one of the same run replaces."""
        return frozenset(self.arrivals.superseded(len(self.arrivals)).tolist() if self.runs else ())

    @property
    def least_measured(self) -> int:
        """Number of values of the objective that has fewest."""
        return min(self._of_each, default=self.measured)

    @property
    def points(self) -> Floats:
        """The points, (u, d)."""
        shape = len(self.params), len(self.space.groups)
        if self._unencoded:
            new = self.space.encode([self.params[number] for number in self._unencoded])
            np.frombuffer(self._points).reshape(shape)[self._unencoded] = new
            self._unencoded = []
        return np.array(self._points).reshape(shape)

    def point(self, number: int) -> Floats:
        """One of the points, (d,)."""
        if self._unencoded:
            return np.asarray(self.points[number])
        width = len(self.space.groups)
        return np.array(self._points[number * width : (number + 1) * width])

    def answered(self, number: int) -> int:
        """Number of values of a point."""
        return self._counts[number]

    def is_answered(self, number: int) -> bool:
        """Return True if a point has given a value or a bound, or failed."""
        return self.answered(number) > 0 or number in self._failures or number in self._bounded

    @property
    def unproven(self) -> Ints:
        """Points that have failed or given bounds, and never a value."""
        tried = sorted(self._failures | self._bounded) if self._bounded else sorted(self._failures)
        return np.array([number for number in tried if not self.answered(number)], dtype=np.intp)

    @property
    def only_bounded(self) -> Ints:
        """Points that have given bounds and never a value."""
        return np.array([number for number in sorted(self._bounded) if not self.answered(number)], dtype=np.intp)

    @property
    def hopeless(self) -> Ints:
        """Points that failed and are more likely broken than unlucky, see `failures`."""
        if self._judged[0] != len(self.arrivals):
            self._judged = len(self.arrivals), self._hopeless(len(self.arrivals))
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
            if point is None:
                self._unencoded.append(number)
            self._points.frombytes(self._blank if point is None else point.tobytes())
            self.params.append(params)
            self._counts.append(0)
            if self.baseline is not None and is_setting(self.space, params, self.baseline):
                self.baseline_points.append(number)
        return number

    def add(self, arrival: Arrival) -> None:
        """Take in a measurement or a failure."""
        self.arrivals.append(arrival)
        self.costed += arrival.cost == arrival.cost
        if arrival.failed:
            self._failures.add(arrival.where)
            if arrival.run in self.runs:  # its reports are replaced
                self.measured, self.replaced = self.measured - 1, self.replaced + 1
            return
        if arrival.bound:
            self._bounded.add(arrival.where)
            self.bounds += 1
            return
        if arrival.value != arrival.value:
            self._elsewhere.append(len(self.arrivals) - 1)
            return
        self._counts[arrival.where] += 1
        self.is_noise_known &= arrival.noise == arrival.noise
        if arrival.run in self.runs:
            self.replaced += 1
            return
        self.measured += 1
        if arrival.values:
            before = self._of_each or [0] * len(arrival.values)
            self._of_each = [count + (value == value) for count, value in zip(before, arrival.values, strict=True)]
            self.measured = max(self._of_each)
        if arrival.run >= 0:
            self.runs.add(arrival.run)
        if self.measured <= 2:
            self.usable = len(self.arrivals)

    def evidence(self, stop: int) -> tuple[Evidence, Ints]:
        """Evidence of the first ``stop`` answers, and the number of each of its points.

        The measurements come first, in their order. Heuristic: a hopeless point counts as measured once, just now and
        as bad as the worst tenth of the measurements; other failures say nothing about the value.
        """
        where, values, noise = self.arrivals.columns(stop)
        good = ~np.isnan(values)
        if self.runs:
            good[self.arrivals.superseded(stop)] = False
        failed, bounds = self._hopeless(stop), self.arrivals.bounds(stop) if self._bounded else None
        when = np.concatenate([np.flatnonzero(good), np.full(failed.size, stop)])
        where = np.concatenate([where[good], failed])
        values = np.concatenate([values[good], np.full(failed.size, np.quantile(values[good], 0.1))])
        noise = np.concatenate([noise[good], np.full(failed.size, UNKNOWN)])
        found, numbers = self._evidence(where, values, noise, when)
        if bounds is None:
            return found, numbers
        return replace(found, bounds=np.concatenate([bounds[good], np.zeros(failed.size, dtype=np.intp)])), numbers

    def numbers(self, index: int, sign: float, stop: int) -> Evidence:
        """Evidence of the first ``stop`` answers about a constraint, times this sign."""
        told = [(i, a.where, sign * a.constraints[index]) for i, a in enumerate(self.arrivals[:stop]) if a.constraints]
        known = [each for each in told if each[2] == each[2]]
        when, where = (np.array([each[i] for each in known], dtype=np.intp) for i in range(2))
        return self._evidence(where, np.array([each[2] for each in known]), np.full(len(known), UNKNOWN), when)[0]

    def log_costs(self, stop: int) -> Evidence:
        """Evidence of the first ``stop`` answers about -ln cost; failures that have a cost count too."""
        costs = self.arrivals.costs(stop)
        when = np.flatnonzero(costs == costs)
        where = self.arrivals.columns(stop)[0][when]
        return self._evidence(where, -np.log(costs[when]), np.full(when.size, UNKNOWN), when)[0]

    def _evidence(self, where: Ints, values: Floats, noise: Floats, when: Ints) -> tuple[Evidence, Ints]:
        """Measurements of points with these numbers, and the number of each distinct point."""
        numbers, first, inverse = np.unique(where, return_index=True, return_inverse=True)
        order = np.argsort(first)  # as they arrived, however they are numbered
        points = self.points[numbers[order]]
        groups, active_together = np.array(self.space.groups), self.space.active_together
        return Evidence(points, np.argsort(order)[inverse], values, noise, groups, active_together, when), numbers[
            order
        ]

    def _hopeless(self, stop: int) -> Ints:
        """The points that are hopeless for all that the first ``stop`` arrivals say."""
        if not self._failures:
            return np.empty(0, dtype=np.intp)
        where, values, _ = self.arrivals.columns(stop)
        failed = np.isnan(values)
        failed[[index for index in self._elsewhere if index < stop]] = False
        successes, failures = (np.bincount(where[mask], minlength=len(self.params)) for mask in (~failed, failed))
        return hopeless(self.points, successes, failures, max(self.space.groups) + 1)
