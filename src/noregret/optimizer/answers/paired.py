"""Gain that paired runs show: its interval holds after selection, at every look.

A pair is a run of one setting, the choice, and a run of the baseline, in random order. Both are made after the setting
was chosen, so the bets on the differences of its pairs (`noregret.gp.signs`) do not depend on how it was chosen. Each
choice has bets of its own. Those of the j-th one have the risk (1 - `LEVEL`) / (j (j + 1)). All of them add up to
1 - `LEVEL`, so the statement about whichever setting is recommended at the moment is right with probability `LEVEL`,
at all looks together.

- The verdict, whether 0 is inside the interval, needs random order and no more: nothing about f, the tails of the noise
  or the drift of the machine. If the setting is no better, it wins a pair with probability 1/2 at most.
- The interval needs that all pairs of a choice have the same median difference, given the pairs before.

A failed run loses its pair. A pair that was not completed, since the choice changed after its first run, ends the bets
of its choice: the next pair of this setting is that of a new choice. Pairs wait for earlier ones that still run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from noregret.formatting import between, number
from noregret.gp.signs import losses_allowed, median_sequence
from noregret.optimizer.measures import LARGEST_VALUE, Goal
from noregret.optimizer.model.evidence import LEVEL
from noregret.optimizer.model.transforms import LARGEST_LOGARITHM
from noregret.optimizer.trial import VALUE, Trial


class Percent(NamedTuple):
    """A gain in percent of the size of the baseline."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MeasuredGain:
    """Improvement on the baseline within pairs of runs, in the units of the values; above 0 is better.

    Parameters
    ----------
    estimate : float
        Median of the differences.
    lower, upper : float
        Ends of the interval, see `noregret.optimizer.answers.paired`. An end is infinite if failed runs decide it.
    pairs : int
    goal : "minimize" or "maximize"
    percent : Percent, optional
        The same of the ratios, if all values are above 0: an interval of its own, with the same sign.
    level : float
        Probability that all such statements hold, at every look.
    """

    estimate: float
    lower: float
    upper: float
    pairs: int
    goal: Goal
    percent: Percent | None = None
    level: float = LEVEL

    def __str__(self) -> str:
        """As ``measured in 8 pairs: 24% to 35% lower``."""
        interval, unit = (self.percent, "%") if self.percent else (self, "")
        words = ("lower", "higher") if self.goal == "minimize" else ("higher", "lower")
        both = interval.lower <= 0 <= interval.upper
        sides = [(abs(interval.upper), words[0]), (abs(interval.lower), words[1])]
        (least, one), (most, other) = sorted(sides, key=lambda end: end[1] == "higher" if both else end[0])
        texts = between(least, most, 2) if least < most < math.inf else (number(least, 3), number(most, 3))
        ends = zip(texts, (least, most), strict=True)
        near, far = (f"{text}{unit}" if math.isfinite(end) else "no limit" for text, end in ends)
        if both:
            return f"measured in {self.pairs} pairs: {near} {one} to {far} {other}"
        return f"measured in {self.pairs} pairs: {near} to {far} {words[interval.upper < 0]}"


class ChosenSetting(NamedTuple):
    """Complete pairs of a setting: the run of the baseline and that of the setting, in the order of the pairs."""

    digest: str
    pairs: list[tuple[Trial, Trial]]


class Pairs:
    """Pairs of runs among some trials, ordered by number, of settings that have a ``key``."""

    def __init__(self, trials: Iterable[Trial], key: Callable[[Any], Hashable], baseline: Any) -> None:
        self._key, self._baseline = key, key(baseline)
        self.halves: dict[str, list[Trial]] = {}
        """Runs of each pair by its name, withdrawn ones excepted."""
        for trial in trials:
            if trial.pair and trial.state != "withdrawn":
                self.halves.setdefault(trial.pair, []).append(trial)
        self.choices: list[ChosenSetting] = []
        """Choices in the order of their first pairs. One setting has several if a pair of it was not completed."""
        self._current: dict[str, ChosenSetting] = {}
        waiting = list(self.halves)
        while waiting and not self._is_open(waiting[0]):
            name = waiting.pop(0)
            digest, pair = name.rpartition(" ")[2], self._complete(name)
            if pair is None:
                self._current.pop(digest, None)
                continue
            if digest not in self._current:
                self._current[digest] = ChosenSetting(digest, [])
                self.choices.append(self._current[digest])
            self._current[digest].pairs.append(pair)
        self._waiting = waiting

    def is_baseline(self, params: Any) -> bool:
        """Return True if these params are the baseline's."""
        return self._key(params) == self._baseline

    @property
    def held(self) -> Any:
        """Params of the last run of a choice, None before the first one, or if it has failed."""
        runs = [run for both in self.halves.values() for run in both if not self.is_baseline(run.params)]
        return runs[-1].params if runs and runs[-1].state != "failed" else None

    def digest(self, params: Any) -> str:
        """Name of a setting, the same in all processes."""
        return sha256(repr(self._key(params)).encode()).hexdigest()[:8]

    def _is_open(self, name: str) -> bool:
        """True if a run of the pair has no outcome yet, or is still to be begun."""
        both = self.halves[name]
        return any(not half.is_finished for half in both) or (len(both) == 1 and name == next(reversed(self.halves)))

    def _complete(self, name: str) -> tuple[Trial, Trial] | None:
        """Run of the baseline and of the choice that the pair is named after, None without one of each."""
        usual, chosen = list[Trial](), list[Trial]()
        for run in self.halves[name]:
            (usual if self.is_baseline(run.params) else chosen).append(run)
        is_pair = len(usual) == len(chosen) == 1 and name.endswith(f" {self.digest(chosen[0].params)}")
        return (usual[0], chosen[0]) if is_pair else None

    def begun(self, params: Any) -> Trial | None:
        """The first run of a pair of this choice that has no second one yet, None if there is none."""
        name = next(reversed(self.halves), "")
        is_half = name.endswith(f" {self.digest(params)}") and len(self.halves[name]) == 1
        return self.halves[name][0] if is_half else None

    def missing(self, params: Any) -> int:
        """Pairs that are still to be begun until the interval of this choice has two ends."""
        digest = self.digest(params)
        choice = self._current.get(digest)
        place = next((i for i, each in enumerate(self.choices, 1) if each is choice), len(self.choices) + 1)
        count, begun = 1, sum(name.endswith(f" {digest}") for name in self._waiting)
        while losses_allowed(count, _level(place)) < 0:
            count += 1
        return max(count - begun - (len(choice.pairs) if choice else 0), 0)

    def measured(self, params: Any, goal: Goal) -> MeasuredGain | None:
        """Gain of a setting, None while its interval has no two ends."""
        digest = self.digest(params)
        matching = [
            (len(pick.pairs), -place, pick.pairs) for place, pick in enumerate(self.choices, 1) if pick.digest == digest
        ]
        if not matching:
            return None
        count, place, pairs = max(matching, key=lambda each: each[:2])
        if losses_allowed(count, _level(-place)) < 0:
            return None
        sign = -1.0 if goal == "minimize" else 1.0
        rows = [[_ends(run, -sign) for run in pair] for pair in pairs]
        difference = _median(rows, _level(-place), lambda value: value)
        own = _through(difference, lambda change: sign * change * (math.inf if abs(change) > LARGEST_VALUE / 2 else 1))
        percent = None
        if all(end > 0 for row in rows for ends in row for end in ends if abs(end) < LARGEST_VALUE):
            ratio = _median(rows, _level(-place), lambda value: math.log(value) if value > 0 else -math.inf)
            share = _through(ratio, lambda log: sign * (math.inf if log > LARGEST_LOGARITHM / 2 else math.expm1(log)))
            percent = Percent(*(100 * each for each in share))
        return MeasuredGain(*own, count, goal, percent)


def _level(place: int) -> float:
    """Level of the choice in this place, from 1."""
    return 1 - (1 - LEVEL) / (place * (place + 1))


def _ends(run: Trial, worst: float) -> tuple[float, float]:
    """Least and largest value that a run may have had, by its reading; a failed run is beyond all others."""
    reading = run.reading(VALUE) if run.state == "done" else None
    if reading is None:
        return worst * math.inf, worst * math.inf
    low = -LARGEST_VALUE if reading.bound == "at_most" else reading.value
    return low, LARGEST_VALUE if reading.bound == "at_least" else reading.value


def _median(
    rows: Sequence[Sequence[tuple[float, float]]], level: float, scale: Callable[[float], float]
) -> tuple[float, float, float]:
    """Estimate and interval of the median change from the first to the second of each row."""

    def changes(first: int, second: int) -> Any:
        ends = [(scaled(usual[first]), scaled(chosen[second])) for usual, chosen in rows]
        return np.array([0.0 if usual == chosen else chosen - usual for usual, chosen in ends])

    def scaled(value: float) -> float:
        return scale(value) if math.isfinite(value) else value

    low, high = median_sequence(changes(1, 0), level), median_sequence(changes(0, 1), level)
    return (low[0] + high[0]) / 2, low[1], high[2]


def _through(found: tuple[float, float, float], function: Callable[[float], float]) -> tuple[float, float, float]:
    """Estimate and interval of an increasing or decreasing function of what these are about."""
    estimate, *ends = map(function, found)
    return estimate, min(ends), max(ends)
