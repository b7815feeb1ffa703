"""``noregret confirm``: the best setting against the baseline, in pairs of new runs.

The gain is the Hodges-Lehmann estimate of the differences of the pairs. Its interval is that of Wilcoxon's signed-rank
test, whose level is exact for any symmetric distribution of the differences. Differences are those of the logarithms
where all results are positive, so that the gain is a ratio. Load that slows both runs of a pair down cancels out, and a
pair that is far off has hardly any weight.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np

from noregret.formatting import between, number
from noregret.terminal import complain, printable, say
from noregret.tune.learning.findings import Findings, finite
from noregret.tune.measuring import Keeper, Outcome, check_command, interruptible, measure
from noregret.tune.store.store import Store
from noregret.tune.study.study import Params, Study, StudyError
from noregret.tune.work.display import columns, cut, setting
from noregret.tune.work.running import findings

LEVEL = 0.95
"""Least probability that the interval holds the gain, if there are pairs enough (6)."""


@dataclass(frozen=True)
class Interval:
    """Estimate of the middle of a distribution, which lies between two ends with the probability ``level``."""

    estimate: float
    lower: float
    upper: float
    level: float

    def through(self, function: Any) -> Interval:
        """The interval of an increasing or decreasing function of the middle."""
        ends = function(self.lower), function(self.upper)
        return Interval(function(self.estimate), min(ends), max(ends), self.level)


def signed_rank_interval(differences: Sequence[float]) -> Interval:
    """Hodges-Lehmann estimate, and the interval of Wilcoxon's signed-rank test.

    The k-th smallest and the k-th largest of the means of two of the n differences, each with itself included, are the
    ends of an interval with the level 1 - 2 P(W < k). W is the sum of those of the ranks 1 to n that fair coins choose.
    k is the largest number with a level of at least `LEVEL`; if there is none, it is 1.

    >>> signed_rank_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 30.0])
    Interval(estimate=5.5, lower=3.0, upper=16.0, level=0.951171875)
    """
    values = np.asarray(differences, dtype=float)
    count = len(values)
    means = np.sort((0.5 * values[:, None] + 0.5 * values)[np.triu_indices(count)])
    chances = np.ones(1)  # of W = 0, 1, and so on
    for rank in range(1, count + 1):
        padding = np.zeros(rank)
        chances = 0.5 * (np.concatenate([chances, padding]) + np.concatenate([padding, chances]))
    levels = 1 - 2 * np.cumsum(chances)
    k = max(int(np.count_nonzero(levels >= LEVEL)), 1)
    return Interval(float(np.median(means)), float(means[k - 1]), float(means[-k]), max(float(levels[k - 1]), 0.0))


@dataclass(frozen=True)
class Comparison:
    """Pairs of results of the best setting and the baseline."""

    found: Findings
    pairs: Sequence[tuple[Outcome, Outcome]]
    """Outcomes of the baseline and of the best setting."""

    @property
    def usable(self) -> list[tuple[float, float]]:
        """Results of the pairs without a failure."""
        return [(a.value, b.value) for a, b in self.pairs if a.value is not None and b.value is not None]

    @property
    def sign(self) -> float:
        return -1.0 if self.found.study.goal == "minimize" else 1.0

    @property
    def difference(self) -> Interval:
        """Improvement in the units of the results; above 0 is better."""
        return signed_rank_interval([self.sign * (best - usual) for usual, best in self.usable])

    @property
    def percent(self) -> Interval | None:
        """Improvement in percent of the baseline, None if some results are not positive."""
        if min(map(min, self.usable)) <= 0:
            return None
        logs = signed_rank_interval([math.log(best) - math.log(usual) for usual, best in self.usable])
        return logs.through(lambda log: self.sign * 100 * math.expm1(min(log, 700.0)))

    def __str__(self) -> str:
        """The comparison in a few lines, for a change request."""
        study, best, usual = self.found.study, self.found.best, self.found.study.baseline
        assert best
        assert usual
        gain, unit = (self.percent, "%") if self.percent else (self.difference, self.found.unit)
        words = ("lower", "higher") if study.goal == "minimize" else ("higher", "lower")
        one, other = (float(np.median(column)) for column in zip(*self.usable, strict=True))
        count, width = len(self.usable), columns()
        lines = [
            f"{number(abs(gain.estimate), 3)}{unit} {words[gain.estimate < 0]} than the baseline, "
            f"{_ends(gain, unit, words)}",
            f"from {count} pair{'s' if count > 1 else ''} of new runs in random order, which are not part of the study",
        ]
        for name, middle, params in (("baseline", one, usual), ("best", other, best.params)):
            shown = setting(params, best.params if name == "baseline" else usual, width - 40, "the same")
            lines.append(cut(f"  {name:<8}  {number(middle)}{self.found.unit} (median)  {shown}", width))
        if failed := len(self.pairs) - count:
            lines.append(f"{failed} of {len(self.pairs)} pairs had a failed run and do not count: {self._reason}")
        lines += [
            f"{broken} of {count} runs of the best setting broke the constraint {name}"
            for name, broken in self.broken.items()
            if broken
        ]
        return "\n".join(lines)

    @property
    def broken(self) -> dict[str, int]:
        """Number of runs of the best setting that broke each constraint."""
        bounds = self.found.study.constraints.items()
        runs = [best.constraints for _, best in self.pairs if best.value is not None]
        return {name: sum(its.is_broken_by(run.get(name)) for run in runs) for name, its in bounds}

    @property
    def _reason(self) -> str:
        reasons = [
            f"{name}: {outcome.failure}"
            for pair in self.pairs
            for name, outcome in zip(("baseline", "best"), pair, strict=True)
            if outcome.value is None
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
            "pairs": [{"baseline": a.value, "best": b.value} for a, b in self.pairs],
            "broken": self.broken,
            "command": self.found.command,
        }


def _ends(gain: Interval, unit: str, words: tuple[str, str]) -> str:
    if not gain.level:
        return "too few pairs for an interval"
    ends = sorted((gain.lower, gain.upper), key=abs)
    low, high = between(abs(ends[0]), abs(ends[1])) if ends[0] != ends[1] else [number(abs(ends[0]), 3)] * 2
    if gain.lower < 0 < gain.upper:
        low, high = f"{low}{unit} {words[ends[0] < 0]}", f"{high}{unit} {words[ends[1] < 0]}"
        return f"between {low} and {high} ({100 * gain.level:.3g}%): no difference is shown"
    return f"between {low}{unit} and {high}{unit} ({100 * gain.level:.3g}%)"


def _numbers(found: Interval | None) -> Mapping[str, float | None] | None:
    return None if found is None else {name: finite(value) for name, value in vars(found).items()}


def confirm(study: Study, pairs: int, as_json: bool) -> int:
    """Measure the best setting and the baseline in pairs, and print the gain; return 130 if interrupted."""
    if study.objectives:
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
        say(json.dumps({"best": {"params": found.best.params}, "gain": None}) if as_json else SAME)
        return 0
    made, interrupted = _measured(found, pairs, quiet=as_json)
    comparison = Comparison(found, made)
    if not comparison.usable:
        if interrupted:
            raise KeyboardInterrupt
        raise StudyError(f"{study.path}: no pair of runs has succeeded; the last failure: {comparison._reason}")
    say(json.dumps(comparison.as_json()) if as_json else str(comparison))
    return 130 if interrupted else 0


SAME = "The recommended setting is the baseline: there is nothing to compare."


def _measured(found: Findings, pairs: int, quiet: bool) -> tuple[list[tuple[Outcome, Outcome]], bool]:
    """Outcomes of pairs of runs, in random order, and True if Ctrl-C has ended them early."""
    study, made = found.study, list[tuple[Outcome, Outcome]]()
    assert found.best
    assert study.baseline
    settings: list[Params] = [study.baseline, found.best.params]
    order = random.Random(study.seed)
    try:
        with interruptible(), Keeper() as keeper:
            for index in range(pairs):
                outcomes: dict[int, Outcome] = {}
                for which in order.sample((0, 1), 2):
                    outcomes[which] = measure(study, settings[which], keeper, Event())
                made.append((outcomes[0], outcomes[1]))
                one, other = (
                    f"failed ({printable(its.failure)})" if its.value is None else number(its.value) for its in made[-1]
                )
                if not quiet:
                    say(f"pair {index + 1} of {pairs}: baseline {one}, best {other}")
    except KeyboardInterrupt:
        complain(f"\nnoregret: stopped after {len(made)} of {pairs} pairs")
        return made, True
    return made, False
