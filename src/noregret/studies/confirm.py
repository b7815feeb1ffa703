"""``noregret confirm``: ``versus`` of the baseline, A, and the best setting, B, in a fixed number of pairs.

With ``--top K``, ``versus`` of the baseline and the K best settings that were measured, see `Finalists`.

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
from noregret.formatting import between, finite, number
from noregret.optimizer import LEVEL, RECOMMEND, apart
from noregret.studies.display import columns, cut, setting
from noregret.studies.learning.findings import Findings
from noregret.studies.measuring import Keeper, check_command, interruptible
from noregret.studies.running import findings
from noregret.studies.store.records import Record
from noregret.studies.store.store import Store
from noregret.studies.study.study import Budget, Params, Study, StudyError
from noregret.studies.versus import Race
from noregret.terminal import complain, printable, say

PAIRS, ROUNDS = 10, 30
"""Pairs of runs by default, and rounds of several settings, of which a verdict on six takes 12 at least."""


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
        values = [[run.value() for run in pair] for pair in self.pairs]
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
        return {limit.name: sum(self.found.breaks(best, key) for _, best in self.pairs) for key, limit in limits}

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


@dataclass(frozen=True)
class Finalists:
    """Rounds of runs of the baseline and the best settings, whose statements hold together at every stopping time.

    The baseline stays unless a setting is shown to be better: ties go to the baseline. Of the settings that are, and
    that no other one has beaten, the choice is the one with the best median change against the baseline.
    """

    found: Findings
    race: Race

    @property
    def comparison(self) -> Comparison:
        """The comparison of ``versus``: option 0 is the baseline."""
        return self.race.comparison

    @property
    def better(self) -> list[int]:
        """Settings that are shown to be better than the baseline, or than a setting that is."""
        its, options = self.comparison, range(1, self.comparison.options)
        worse = [option for option in options if its.is_worse(0, option)]
        while more := [o for o in options if o not in worse and any(its.is_worse(each, o) for each in worse)]:
            worse += more
        return sorted(worse)

    @property
    def choice(self) -> int:
        """The setting to use; 0 is the baseline."""
        sign = 1.0 if self.found.study.goal == "minimize" else -1.0
        rest = [option for option in self.better if option in self.comparison.remaining]
        return min(rest, key=lambda option: sign * self.comparison.change(option).estimate, default=0)

    def __str__(self) -> str:
        its, choice, count = self.comparison, self.choice, self.comparison.options - 1
        sure = ", and better than each of the others" if its.best == choice else "; no other one is shown to be worse"
        if its.best != choice and (out := count + 1 - len(its.remaining)):
            sure = f"; {out} of the others are shown to be worse" if out > 1 else "; one other is shown to be worse"
        if choice:
            change = self.race.difference(its.change(choice))
            head = f"Setting {choice} is better than the baseline: {change}{sure}"
        elif its.best == 0:
            head = f"The baseline is better than each of the {count} settings"
        else:
            head = f"None of the {count} settings is shown to be better than the baseline: keep the baseline"
        lines = [
            head,
            f"from {its.pairs} rounds of new runs in random order, which are not part of the study; all intervals hold "
            f"together, {100 * its.confidence:g}% at any stopping time",
        ]
        usual, width = self.race.settings[0], columns()
        for option, params in enumerate(self.race.settings):
            middle = self.race.median(option)
            cells = "-" if middle is None else f"{number(middle)}{self.found.unit} (median)"
            change = self.race.difference(its.change(option)) if option else ""
            failed = f"  {its.failures[option]} failed" if its.failures[option] else ""
            what = setting(params, usual, width - 40, "the same") if option else "baseline"
            lines += [f"  {option or 'A'}  {cells}  {change}{failed}".rstrip(), cut(f"     {what}", width)]
        command = self.found.study.shell_line(self.race.settings[choice])
        return "\n".join([*lines, *its.warnings, "the command of the choice:", printable(command, keep="\n")])

    def as_json(self) -> dict[str, Any]:
        """All numbers; None stands for those that are not finite or not known."""
        comparison, race = self.comparison, self.race
        rows = [
            {
                "params": params,
                "change": {name: finite(end) for name, end in comparison.change(option)._asdict().items()},
                "better": option in self.better,
                "beaten": option not in comparison.remaining,
                "values": race.values[option],
                "command": self.found.study.shell_line(params),
            }
            for option, params in enumerate(race.settings)
        ]
        return {
            "choice": self.choice,
            "params": race.settings[self.choice],
            "is_best": comparison.best == self.choice,
            "baseline": rows[0],
            "finalists": rows[1:],
            "quantity": comparison.quantity,
            "relative": comparison.is_relative,
            "level": comparison.confidence,
            "pairs": comparison.pairs,
            "command": rows[self.choice]["command"],
        }


def finalists(found: Findings, top: int) -> list[Params]:
    """The recommended setting, then those that were measured with the best cautious bound, without the baseline.

    Settings near a better one, which the model takes for one place, are left out unless fewer than ``top`` remain.
    """
    assert found.best
    key, optimizer = found.study.settings.key, found.optimizer
    measured = {key(record.params): record.params for record in found.done if optimizer.measures.has_value(record)}
    for params in (found.best.params, found.study.baseline):
        measured.pop(key(params), None)
    known = [estimate for estimate in optimizer.predict_many(measured.values()) if estimate.feasible >= RECOMMEND]
    known.sort(key=lambda estimate: estimate.upper if found.study.goal == "minimize" else -estimate.lower)
    best = [] if key(found.best.params) == key(found.study.baseline) else [found.best.params]
    ranked = [*best, *(estimate.params for estimate in known)]
    first = apart(found.study.settings.encode(ranked)).tolist()
    chosen = [*first, *(place for place in range(len(ranked)) if place not in first)][:top]
    return [ranked[place] for place in sorted(chosen)]


NOTHING_TO_COMPARE = "The recommended setting is the baseline: there is nothing to compare."


def confirm(study: Study, pairs: int | None, as_json: bool, top: int | None = None) -> int:
    """Measure the best setting and the baseline in pairs, and print the gain; return 130 if interrupted.

    With ``top``, measure this many of the best settings and the baseline, and print which one to use.
    """
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
    if top is not None:
        return _confirm_top(found, pairs or ROUNDS, top, as_json)
    if found.study.settings.key(found.best.params) == found.study.settings.key(study.baseline):
        say(json.dumps({"best": {"params": found.best.params}, "gain": None}) if as_json else NOTHING_TO_COMPARE)
        return 0
    confirmation = measured(found, pairs or PAIRS, quiet=as_json)
    if not (confirmation.column(0) and confirmation.column(1)):
        if confirmation.race.stopped == "interrupted":
            raise KeyboardInterrupt
        name = "best setting" if confirmation.column(0) else "baseline"
        raise StudyError(f"{study.path}: no run of the {name} has succeeded; the last failure: {confirmation._reason}")
    say(json.dumps(confirmation.as_json()) if as_json else str(confirmation))
    return 130 if confirmation.race.stopped == "interrupted" else 0


def _confirm_top(found: Findings, rounds: int, top: int, as_json: bool) -> int:
    """Measure the best settings and the baseline, and print which one to use; return 130 if interrupted."""
    assert found.study.baseline
    settings = [found.study.baseline, *finalists(found, top)]
    if len(settings) == 1:
        raise StudyError(f"{found.study.path}: no setting but the baseline has a result: run 'noregret tune' first")
    race = race_of(
        found, rounds, ["the baseline", *(f"setting {place}" for place in range(1, len(settings)))], settings
    )
    if rounds < race.fewest:
        complain(f"noregret: --pairs {rounds}: a verdict on {len(settings)} settings takes {race.fewest} at least")
    shown = 0

    def show() -> None:
        nonlocal shown
        if not as_json and not race.comparison.awaited and race.comparison.pairs > shown:
            shown = race.comparison.pairs
            say(f"round {shown} of {rounds}: {len(race.comparison.remaining)} of {len(settings)} not beaten")

    work(race, show, rounds)
    result = Finalists(found, race)
    if race.stopped == "interrupted" and not race.comparison.pairs:
        raise KeyboardInterrupt
    say(json.dumps(result.as_json()) if as_json else str(result))
    return 130 if race.stopped == "interrupted" else 0


def race_of(
    findings: Findings, pairs: int, names: Sequence[str], settings: Sequence[Params], is_fixed: bool = False
) -> Race:
    """Race of settings of a study, the baseline first; ``is_fixed`` for as many pairs as these, decided or not."""
    study = replace(findings.study, budget=Budget(pairs))
    comparison = Comparison(len(settings), confidence=LEVEL, goal=study.goal, rng=study.seed)
    return Race(names, dict.fromkeys(range(len(settings)), study), comparison, "", settings=settings, is_fixed=is_fixed)


def work(race: Race, show: Callable[[], None], pairs: int) -> None:
    """Run a race to its end, or until Ctrl-C."""
    try:
        with interruptible(), Keeper() as keeper:
            race.work(keeper, show)
    except KeyboardInterrupt:
        complain(f"\nnoregret: stopped after {race.comparison.pairs} of {pairs} pairs")
        race.stopped = "interrupted"


def measured(findings: Findings, pairs: int, quiet: bool) -> Confirmation:
    """Runs in pairs, in random order; fewer than planned if Ctrl-C has ended them."""
    assert findings.best
    assert findings.study.baseline
    settings = [findings.study.baseline, findings.best.params]
    race = race_of(findings, pairs, ["the baseline", "the best setting"], settings, is_fixed=True)
    comparison, shown = race.comparison, 0

    def show() -> None:
        nonlocal shown
        if not quiet and comparison.pairs > shown:
            shown = comparison.pairs
            last = (runs[-1] for runs in race.records)
            one, other = (
                number(run.value() or 0.0) if run.state == "done" else f"failed ({printable(run.failure)})"
                for run in last
            )
            say(f"pair {shown} of {pairs}: baseline {one}, best {other}")

    work(race, show, pairs)
    return Confirmation(findings, race)
