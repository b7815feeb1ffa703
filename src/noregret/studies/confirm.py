"""``noregret confirm``: ``versus`` of the baseline, A, and the best setting, B, in a fixed number of pairs.

The gain is the Hodges-Lehmann estimate of the differences of the pairs. At the planned number of pairs its interval is
that of Wilcoxon's signed-rank test, whose level is exact for any symmetric distribution of the differences. After
Ctrl-C it is that of ``versus``, which holds at every stopping time; results that pass or fail always have that one.
Differences are those of the logarithms where all results are positive, so that the gain is a ratio. Load that slows
both runs of a pair down cancels out, and a pair that is far off has hardly any weight. A failed run loses its pair.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noregret.comparison import Comparison, median_sequence
from noregret.comparison.comparison import means
from noregret.formatting import between, number
from noregret.optimizer import LEVEL
from noregret.studies.display import columns, cut, setting
from noregret.studies.learning.findings import Findings, finite
from noregret.studies.measuring import Keeper, check_command, interruptible
from noregret.studies.running import findings
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget, Study, StudyError
from noregret.studies.versus import Race
from noregret.terminal import complain, printable, say


@dataclass(frozen=True)
class MedianInterval:
    """Estimate of the middle of a distribution, which lies between two ends with the probability ``level``."""

    estimate: float
    lower: float
    upper: float
    level: float

    def through(self, function: Any) -> MedianInterval:
        """The interval of an increasing or decreasing function of the middle."""
        ends = function(self.lower), function(self.upper)
        return MedianInterval(function(self.estimate), min(ends), max(ends), self.level)


def signed_rank_interval(differences: Sequence[float]) -> MedianInterval:
    """Hodges-Lehmann estimate, and the interval of Wilcoxon's signed-rank test.

    The k-th smallest and the k-th largest of the means of two of the n differences, each with itself included, are the
    ends of an interval with the level 1 - 2 P(W < k). W is the sum of those of the ranks 1 to n that fair coins choose.
    k is the largest number with a level of at least `LEVEL`; if there is none, it is 1.

    Differences may be infinite. The mean of two opposite ones counts against both ends.

    >>> signed_rank_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 30.0])
    MedianInterval(estimate=5.5, lower=3.0, upper=16.0, level=0.951171875)
    """
    values = np.asarray(differences, dtype=float)
    count = len(values)
    with np.errstate(invalid="ignore"):
        sums = (0.5 * values[:, None] + 0.5 * values)[np.triu_indices(count)]
    low, middle, high = (np.sort(np.where(np.isnan(sums), mean, sums)) for mean in (-math.inf, 0.0, math.inf))
    chances = np.ones(1)  # of W = 0, 1, and so on
    for rank in range(1, count + 1):
        padding = np.zeros(rank)
        chances = 0.5 * (np.concatenate([chances, padding]) + np.concatenate([padding, chances]))
    levels = 1 - 2 * np.cumsum(chances)
    k = max(int(np.count_nonzero(levels >= LEVEL)), 1)
    return MedianInterval(
        median_sequence(middle)[0], float(low[k - 1]), float(high[-k]), max(float(levels[k - 1]), 0.0)
    )


@dataclass(frozen=True)
class Confirmation:
    """Runs of the baseline, A, and of the best setting, B, in pairs."""

    found: Findings
    race: Race

    @property
    def is_complete(self) -> bool:
        """True if there are as many pairs as were planned."""
        return self.race.stopped == "pairs"

    @property
    def comparison(self) -> Comparison:
        """The comparison of ``versus``."""
        return self.race.comparison

    @property
    def pairs(self) -> list[tuple[Record, Record]]:
        """Runs of the baseline and of the best setting, of each complete pair."""
        return list(zip(*self.race.records, strict=False))

    @property
    def sign(self) -> float:
        return -1.0 if self.found.study.goal == "minimize" else 1.0

    def column(self, option: int) -> list[float]:
        """Results of the baseline, 0, or of the best setting, 1, without failed runs."""
        return [value for pair in self.pairs if (value := pair[option].value()) is not None]

    @property
    def difference(self) -> MedianInterval:
        """Improvement in the units of the results; above 0 is better."""
        if self.comparison.quantity == "difference of means":
            return MedianInterval(*self.comparison.change(1), LEVEL).through(lambda change: self.sign * change)
        return self._interval(lambda value: value).through(lambda change: self.sign * change)

    @property
    def percent(self) -> MedianInterval | None:
        """Improvement in percent of the baseline, None for means and if some results are not positive."""
        if not self.comparison.is_relative:
            return None

        def percent(log: float) -> float:
            return self.sign * (100 * math.expm1(min(log, 700.0)) if math.isfinite(log) else log)

        return self._interval(math.log).through(percent)

    def _interval(self, scale: Callable[[float], float]) -> MedianInterval:
        """Interval of the change from the baseline to the best setting; a failed run is beyond all others."""
        values = [[its.value() for its in pair] for pair in self.pairs]
        rows = [[-self.sign * math.inf if value is None else scale(value) for value in pair] for pair in values]
        differences = [0.0 if usual == best else best - usual for usual, best in rows]
        if self.is_complete:
            return signed_rank_interval(differences)
        return MedianInterval(*median_sequence(np.array(differences), LEVEL), LEVEL)

    def __str__(self) -> str:
        """The comparison in a few lines, for a change request."""
        study, best, usual = self.found.study, self.found.best, self.found.study.baseline
        assert best
        assert usual
        gain, unit = (self.percent, "%") if self.percent else (self.difference, self.found.unit)
        words = ("lower", "higher") if study.goal == "minimize" else ("higher", "lower")
        count, width = len(self.pairs), columns()
        first = "most pairs have a failed run, so there is no estimate of the gain"
        if self.comparison.quantity == "difference of means":
            first = f"{means(self.comparison, self.comparison.change(1))}, best against baseline ({100 * LEVEL:g}%)"
        elif math.isfinite(gain.estimate):
            size = f"{number(abs(gain.estimate), 3)}{unit} {words[gain.estimate < 0]}"
            first = f"{size} than the baseline, {_ends(gain, unit, words)}"
        lines = [
            first,
            f"from {count} pair{'s' if count > 1 else ''} of new runs in random order, which are not part of the study",
        ]
        for option, (name, params) in enumerate((("baseline", usual), ("best", best.params))):
            values = self.column(option)
            middle = f"{number(float(np.median(values)))}{self.found.unit} (median)" if values else "-"
            shown = setting(params, best.params if name == "baseline" else usual, width - 40, "the same")
            lines.append(cut(f"  {name:<8}  {middle}  {shown}", width))
        failed = self.comparison.failures
        if any(failed):
            more = ": the best setting fails more often" if self.comparison.fails_more() else ""
            lines.append(f"failed runs, which lose their pair: baseline {failed[0]}, best {failed[1]} of {count}{more}")
            lines.append(f"the last one: {self._reason}")
        lines += [
            f"{broken} of {count} runs of the best setting broke the constraint {name}"
            for name, broken in self.broken.items()
            if broken
        ]
        return "\n".join([*lines, *self.comparison.warnings])

    @property
    def broken(self) -> dict[str, int]:
        """Number of runs of the best setting that broke each constraint."""
        limits = self.found.measures.constraints.items()
        return {its.name: sum(self.found.breaks(best, key) for _, best in self.pairs) for key, its in limits}

    @property
    def _reason(self) -> str:
        reasons = [
            f"{name}: {outcome.failure}"
            for pair in self.pairs
            for name, outcome in zip(("baseline", "best"), pair, strict=True)
            if outcome.state == "failed"
        ]
        return printable(reasons[-1])

    def as_json(self) -> dict[str, Any]:
        """All numbers; None stands for those that are not finite or not known."""
        best = self.found.best
        assert best
        return {
            "best": {"params": best.params},
            "baseline": {"params": self.found.study.baseline},
            "gain": _numbers(self.percent),
            "difference": _numbers(self.difference),
            "quantity": self.comparison.quantity,
            "pairs": [{"baseline": a.value(), "best": b.value()} for a, b in self.pairs],
            "failures": dict(zip(("baseline", "best"), self.comparison.failures, strict=True)),
            "broken": self.broken,
            "command": self.found.command,
        }


def _ends(gain: MedianInterval, unit: str, words: tuple[str, str]) -> str:
    if not gain.level or (math.isinf(gain.lower) and math.isinf(gain.upper)):
        return "too few pairs for an interval"
    ends = sorted((gain.lower, gain.upper), key=abs)
    low, high = between(abs(ends[0]), abs(ends[1])) if ends[0] != ends[1] else [number(abs(ends[0]), 3)] * 2
    low, high = f"{low}{unit}", f"{high}{unit}" if math.isfinite(ends[1]) else "no limit"
    if gain.lower < 0 < gain.upper:
        ways = [f" {words[end < 0]}" if math.isfinite(end) else "" for end in ends]
        return f"between {low}{ways[0]} and {high}{ways[1]} ({100 * gain.level:.3g}%): no difference is shown"
    return f"between {low} and {high} ({100 * gain.level:.3g}%)"


def _numbers(found: MedianInterval | None) -> Mapping[str, float | None] | None:
    return None if found is None else {name: finite(value) for name, value in vars(found).items()}


NOTHING_TO_COMPARE = "The recommended setting is the baseline: there is nothing to compare."


def confirm(study: Study, pairs: int, as_json: bool) -> int:
    """Measure the best setting and the baseline in pairs, and print the gain; return 130 if interrupted."""
    if study.goals:
        raise StudyError(
            f"{study.path}: confirm measures the best setting again, and several objectives have none: "
            "'noregret report --limit NAME<=NUMBER' picks one and compares it with the baseline"
        )
    check_command(study)
    if study.baseline is None:
        raise StudyError(
            f"{study.path}: confirm compares the best setting with the one in use now: add a [baseline] table with "
            "a value for each parameter"
        )
    with Store(study, readonly=True) as store:
        found = findings(study, store)
    if found.best is None:
        raise StudyError(f"{study.path}: no result yet: run 'noregret tune' first")
    if found.study.settings.key(found.best.params) == found.study.settings.key(study.baseline):
        say(json.dumps({"best": {"params": found.best.params}, "gain": None}) if as_json else NOTHING_TO_COMPARE)
        return 0
    confirmation = measured(found, pairs, quiet=as_json)
    if not (confirmation.column(0) and confirmation.column(1)):
        if confirmation.race.stopped == "interrupted":
            raise KeyboardInterrupt
        name = "best setting" if confirmation.column(0) else "baseline"
        raise StudyError(f"{study.path}: no run of the {name} has succeeded; the last failure: {confirmation._reason}")
    say(json.dumps(confirmation.as_json()) if as_json else str(confirmation))
    return 130 if confirmation.race.stopped == "interrupted" else 0


def measured(findings: Findings, pairs: int, quiet: bool) -> Confirmation:
    """Runs in pairs, in random order; fewer than planned if Ctrl-C has ended them."""
    assert findings.best
    assert findings.study.baseline
    study = replace(findings.study, budget=Budget(pairs))
    comparison = Comparison(confidence=LEVEL, goal=study.goal, rng=study.seed)
    settings = [study.baseline, findings.best.params]
    race = Race(["the baseline", "the best setting"], dict.fromkeys((0, 1), study), comparison, "", settings=settings)
    shown = 0

    def show() -> None:
        nonlocal shown
        if not quiet and comparison.pairs > shown:
            shown = comparison.pairs
            last = (runs[-1] for runs in race.records)
            one, other = (
                number(its.value() or 0.0) if its.state == "done" else f"failed ({printable(its.failure)})"
                for its in last
            )
            say(f"pair {shown} of {pairs}: baseline {one}, best {other}")

    try:
        with interruptible(), Keeper() as keeper:
            race.work(keeper, show)
    except KeyboardInterrupt:
        complain(f"\nnoregret: stopped after {comparison.pairs} of {pairs} pairs")
        race.stopped = "interrupted"
    return Confirmation(findings, race)
