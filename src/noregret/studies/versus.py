"""``noregret versus``: commands against each other, in pairs of runs, until the answer is known.

`Comparison` says which command to run next and what the runs have shown. Each command is a study without parameters, so
that its runs are measured as those of a study are. No database is involved.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import os
import re
import secrets
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from statistics import mean, median
from threading import Event, Timer
from time import monotonic
from typing import Any, Literal, TypeVar

import numpy as np

from noregret.comparison import Change, Comparison
from noregret.comparison.comparison import directed, headline, letter, means
from noregret.comparison.receipts import receipt as receipt_of
from noregret.comparison.receipts import write
from noregret.comparison.sequences import losses_allowed
from noregret.diagnosis import read_rewards
from noregret.extra import MissingExtra, extra
from noregret.files import write_atomically
from noregret.formatting import finite, number
from noregret.optimizer import Goal
from noregret.studies import ledger, receipts, words
from noregret.studies.errors import check_system
from noregret.studies.measuring import Keeper, check_command, disturbances, interruptible, measure
from noregret.studies.measuring import Stopped as RunStopped
from noregret.studies.store.records import Record
from noregret.studies.study import checks
from noregret.studies.study.results import TIMES, MaxRss, Result, UserTime, WallTime, sought
from noregret.studies.study.study import Budget, Command, FailureRules, Params, Study, StudyError, groups
from noregret.terminal import complain, printable, say

LOG = logging.getLogger("noregret")
T = TypeVar("T")

EXIT_CODES = {"better": 0, "worse": 1, "equal": 3, "undecided": 4}
"""Exit codes by verdict; 2 is an error, 130 an interrupted comparison."""
SKIPPED = 125
"""Exit code of a commit that ``git bisect run`` skips."""
FAILED_RUNS = 3
"""Number of failed runs that ends the comparison as an error, of a command that has never succeeded."""
ALL_FAILED = 10
"""Number of rounds in a row in which every run failed that ends the comparison."""
SHORT = 0.02
"""Seconds below which the start of a process is a large part of a run; of a shell or Python it takes 2 to 20 ms."""
REFRESH_SECONDS = 0.1
"""Least time between two pictures on a terminal."""
PICTURE_WIDTH = 41
"""Characters of the picture of the interval; odd, so that zero has one in the middle."""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
SHELL = "add --shell to run it by a shell"

Stopped = Literal["decided", "time", "pairs", "items", "baseline", "failures", "interrupted"]


def versus(args: Namespace) -> int:
    """Compare commands as the arguments say, and print what is known; return the exit code."""
    try:
        race = prepared(args)
        compared(race, args.json, args.save, args.receipt)
    except StudyError as error:
        if not args.bisect:
            raise
        complain(f"noregret: {printable(str(error), keep=chr(10))}")
        return SKIPPED
    say(json.dumps(race.as_json()) if args.json else race.conclusion())
    if race.stopped == "interrupted":
        return 130
    verdict = race.comparison.verdict
    if args.bisect:
        return {True: 1, False: 0, None: SKIPPED}[race.comparison.is_worse()]
    return int(verdict == "worse") if race.is_gate else EXIT_CODES[verdict]


def compared(race: Race, as_json: bool, save: Path | None = None, receipt: Path | None = None) -> None:
    """Run the commands until the answer is known or the budget is spent, and show what is known meanwhile."""
    check_system("versus")
    for name, path in (("--save", save), ("--receipt", receipt)):
        if path and not os.access(path.resolve().parent, os.W_OK):
            raise StudyError(f"{name} {path}: its folder does not exist, or may not be written")
    for study in race.studies.values():
        check_command(study)
    for line in [*disturbances(next(iter(race.studies.values()))), *race.limits_too_low()]:
        complain(f"noregret: {printable(line)}")
    try:
        with interruptible(), Keeper() as keeper, race.view(as_json) as show:
            race.work(keeper, show)
    except KeyboardInterrupt:
        race.stopped = "interrupted"
    finally:
        if save and any(race.comparison.runs):
            _save(race, save)
        if receipt and race.comparison.pairs:
            _write_receipt(race, receipt)
    if not race.comparison.pairs:
        if race.stopped == "interrupted":
            raise KeyboardInterrupt
        option = race.comparison.awaited[0] if race.comparison.awaited else 0
        now = "the command" if race.is_itself else letter(option)
        spent = f"the budget of {words.duration(race.study.budget.seconds or 0)}"
        raise StudyError(f"no pair of runs has ended within {spent} ({now} was running): raise --budget, or fix {now}")


def prepared(args: Namespace) -> Race:
    """The commands and how to compare them; StudyError if an argument is wrong."""
    lines, old = list(args.commands), list[float | None]()
    if args.bar is not None:
        if len(lines) > 1 or args.baseline or args.items:
            raise StudyError("--bar is in the place of A: give one command, B, without --baseline and --items")
        lines = [f"the bar, {args.bar:g}", *lines]
    if args.baseline and len(lines) <= 2:
        name = lines[0] if len(lines) == 2 else None
        old = _old_values(args.baseline, name)
        lines = [name or str(args.baseline), lines[-1]]
    elif args.baseline:
        raise StudyError("--baseline has the measurements of A: give one command, B, or A and B")
    if len(lines) < 2:
        raise StudyError(
            "versus compares commands: give two or more, each in quotes, or one and --baseline FILE.csv or --bar NUMBER"
        )
    if (args.gate or args.bisect) and len(lines) > 2:
        option = "--gate" if args.gate else "--bisect"
        raise StudyError(f"{option} is about two commands, got {len(lines)}: compare the others in another call")
    seed = secrets.randbits(32) if args.seed is None else args.seed
    items = _items(args, lines, seed)
    result = _checked("--result", checks.typed_result, args.result)
    goal, result = _checked("--goal", lambda given: sought(checks.GOAL.check(given), result), args.goal)
    settings = comparison_settings(args, goal)
    within = settings["within"]
    if isinstance(within, float) and within >= 1 and not args.bounds and isinstance(result, (*TIMES, MaxRss)):
        raise StudyError(f"--within: {within:g} is {within:.0%} of A here: write {within:g}% or a smaller part")
    form = measured_study(args, goal, result)
    repeats = args.repeats if items else 1
    try:
        settings["confidence"] = max(settings["confidence"], ledger.confidence(args.ledger) if args.ledger else 0.0)
        settings["rng"] = seed
        comparison = Comparison(len(lines), **settings, quantile=args.quantile, bar=args.bar, repeats=repeats)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if old:
        comparison.tell_old(old)
    race = Race(
        lines,
        {
            option: replace(form, command=command_words(letter(option), line, args.shell, bool(items)))
            for option, line in enumerate(lines)
            if option or (not args.baseline and args.bar is None)
        },
        comparison,
        args.result,
        is_gate=args.gate or args.bisect,
        is_bisect=args.bisect,
        baseline=args.baseline,
        old=old,
        items=items,
        quoted=args.shell,
        seed=seed,
    )
    return race


def measured_study(args: Namespace, goal: Goal, result: Result) -> Study:
    """The study of a command that is still to be given, as the arguments say how it is measured."""
    return Study(
        path=Path("versus"),
        command=(),
        space={},
        goal=goal,
        result=result,
        prepare=command_words("--prepare", args.prepare, args.shell) if args.prepare else (),
        timeout=_checked("--timeout", _seconds, args.timeout),
        warmup=int(isinstance(result, TIMES)) if args.warmup is None else args.warmup,
        failure=FailureRules(stop_after=FAILED_RUNS),
        budget=_checked("--budget", _budget, args.budget),
    )


def comparison_settings(args: Namespace, goal: Goal) -> dict[str, Any]:
    """The keywords of a comparison, as the arguments say; StudyError if one is wrong."""
    return {
        "within": None if args.within is None else _checked("--within", _within, args.within),
        "confidence": _checked("--confidence", checks.confidence, args.confidence),
        "goal": goal,
        "bounds": None if args.bounds is None else _checked("--bounds", _bounds, args.bounds),
        "rng": args.seed,
    }


def _items(args: Namespace, lines: Sequence[str], seed: int) -> list[str]:
    """The items in random order, each as often as it is to be repeated; empty without --items."""
    if args.items is None:
        return []
    if args.baseline or len(lines) != 2:
        raise StudyError("--items compares two commands on the same items: give A and B, without --baseline")
    if any("{item}" not in line for line in lines):
        raise StudyError("--items: write {item} where the item stands in each command, such as './evaluate {item}'")
    try:
        read = args.items.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise StudyError(f"--items {args.items}: cannot be read: {error}") from None
    items = [line.strip() for line in read if line.strip()]
    if len(items) < 2 or len(items) > len(set(items)):
        raise StudyError(f"--items {args.items}: must have two lines or more, each with another item, got {len(items)}")
    order = np.random.default_rng(seed).permutation(len(items))
    return [items[place] for place in order for _ in range(args.repeats)]


def _checked(name: str, check: Callable[[Any], T], given: Any) -> T:
    try:
        return check(given)
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from None


def command_words(name: str, line: str, by_shell: bool, has_items: bool = False) -> Command:
    """The words of a command. Braces are doubled, as a study would take {name} for a parameter, but for an item's."""
    parts = ("sh", "-c", line) if by_shell else _checked(name, lambda text: checks.command(text, SHELL), line)
    words = (word.replace("{", "{{").replace("}", "}}") for group in groups(parts) for word in group)
    return tuple(word.replace("{{item}}", "{item}") if has_items else word for word in words)


def _within(text: str) -> float | str:
    try:
        return checks.within(text if "%" in text else float(text))
    except ValueError:
        raise ValueError(f"must be a number above 0, or a part of A such as 1%, got {text!r}") from None


def _bounds(given: Sequence[float]) -> tuple[float, float]:
    low, high = given
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"must be the smallest and the largest possible result, such as 0 1, got {low:g} {high:g}")
    return low, high


def _seconds(text: str) -> float:
    """Seconds of a duration.

    >>> _seconds("90"), _seconds("1.5m"), _seconds("2h")
    (90.0, 90.0, 7200.0)
    """
    match = re.fullmatch(r"([\d.]+)\s*([smh]?)", text.strip())
    try:
        return checks.seconds(float(match[1]) * UNITS[match[2] or "s"] if match else 0.0)
    except ValueError:
        raise ValueError(f"must be a time such as 90s, 5m or 1h, got {text!r}") from None


def _budget(text: str) -> Budget:
    """Limit of a comparison: a time, or a number of pairs.

    >>> _budget("5m"), _budget("200")
    (Budget(rounds=None, seconds=300.0), Budget(rounds=200, seconds=None))
    """
    if text.isdecimal():
        return Budget(rounds=checks.whole(1, 10**7).check(int(text)))
    try:
        return Budget(seconds=_seconds(text))
    except ValueError:
        raise ValueError(f"must be a time such as 60s or 5m, or a number of pairs, got {text!r}") from None


def _old_values(path: Path, name: str | None) -> list[float | None]:
    """Old measurements of A: the column of its name, or ``value``, or the only one; of a receipt, those of A."""
    if path.suffix == ".json":
        try:
            return receipts.values(receipts.checked(path), name)
        except StudyError as error:
            raise StudyError(f"--baseline {error}") from None
    try:
        columns = read_rewards(path, one_per_arm=True)
    except OSError as error:
        raise StudyError(f"--baseline {path}: cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise StudyError(f"--baseline: {error}") from None
    place = next((each for each in (name, "value") if each in columns), None)
    if place is None and len(columns) > 1:
        raise StudyError(
            f"--baseline {path} has several columns: give A and B, where A is one of "
            f"{', '.join(repr(each) for each in columns)}"
        )
    values: list[float | None] = [float(value) for value in (columns[place] if place else next(iter(columns.values())))]
    if not all(value is not None and math.isfinite(value) for value in values):
        raise StudyError(f"--baseline {path}: measurements must be finite numbers: drop the others")
    return values


def _save(race: Race, path: Path) -> None:
    """Write the measurements: a column per command that was run, a row per pair, empty cells for failed runs."""
    columns = dict[str, Sequence[Any]]()
    if race.items:
        columns["item"] = race.items[: len(race.values[1])]
    for option in race.studies:
        name = race.lines[option]
        columns[name if name not in columns else f"{name} ({letter(option)})"] = race.values[option]
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(columns)
    table.writerows(zip_longest(*columns.values()))
    try:
        write_atomically(path, lambda file: file.write(text.getvalue().encode(errors="surrogateescape")))
    except OSError as error:
        complain(f"noregret: --save {printable(str(path))} cannot be written: {error.strerror}")


def _write_receipt(race: Race, path: Path) -> None:
    baseline = str(race.baseline) if race.baseline else None
    try:
        write(receipt_of(race.comparison, race.lines, race.result, race.seed, baseline), path)
    except OSError as error:
        complain(f"noregret: --receipt {printable(str(path))} cannot be written: {error.strerror}")


@dataclass
class Race:
    """Commands that are compared, and what their runs have shown so far."""

    lines: Sequence[str]
    """The commands as they were typed."""
    studies: Mapping[int, Study]
    """A study for each command that is run; A is missing if there are old measurements of it."""
    comparison: Comparison
    result: str
    is_gate: bool = False
    is_bisect: bool = False
    """True if an undecided gate has not passed."""
    baseline: Path | None = None
    settings: Sequence[Params] = ()
    """Params of each command, where they are settings of a study."""
    stopped: Stopped = "decided"
    seconds: float = 0.0
    old: Sequence[float | None] = ()
    """Measurements of A that were made before."""
    items: Sequence[str] = ()
    """Item of each pair, in this order; empty without items."""
    quoted: bool = False
    """True if the commands are run by a shell, where an item needs quotes."""
    is_fixed: bool = False
    """True if the budget says when to stop, and not the answer."""
    is_itself: bool = False
    """True if A and B are the same command, which messages then do not call A or B."""
    seed: int | None = None
    """Seed of the order of the runs."""
    records: list[list[Record]] = field(init=False)
    """Runs of each command in order."""

    def __post_init__(self) -> None:
        self.records = [[] for _ in self.lines]

    @property
    def values(self) -> list[list[float | None]]:
        """Measurements of each command in order, old ones included, None for failed runs."""
        first, *others = ([run.value() for run in runs] for runs in self.records)
        return [[*self.old, *first], *others]

    @property
    def study(self) -> Study:
        """The study of B, which says what is common to all."""
        return self.studies[1]

    def work(self, keeper: Keeper, show: Callable[[], None]) -> None:
        """Run the commands until the answer is known or the budget is spent.

        At the end of the time the run that is under way is ended and discarded: it has not failed. The intervals hold
        at all numbers of pairs together, so they do not depend on why the last pair is missing.

        Raises
        ------
        StudyError
            If a command has failed several times and never succeeded, or a result is outside the bounds.
        """
        start, before, budget, comparison, stop = monotonic(), 0.0, self.study.budget, self.comparison, Event()
        timer = Timer(budget.seconds or 0.0, stop.set)
        timer.daemon = True
        if budget.seconds:
            timer.start()
        while True:
            if not comparison.awaited:
                over: dict[Stopped, Any] = {
                    "decided": self.is_settled,
                    "baseline": self.baseline and not comparison.old_left,
                    "items": self.items and len(self.values[1]) >= len(self.items),
                    "pairs": budget.rounds and max(comparison.runs) >= budget.rounds,
                    "time": budget.seconds and self.seconds >= budget.seconds,
                    "failures": self._all_fail,
                }
                if why := [name for name, is_so in over.items() if is_so]:
                    self.stopped = why[0]
                    timer.cancel()
                    return
                if max(comparison.runs) == 2:
                    self._warn_of_slow_pairs(self.seconds - before)
                before = self.seconds
            option = comparison.ask()
            study, params = self.studies[option], self.params(option)
            item = self.items[len(self.values[option])] if self.items else None
            if item is not None:
                params = {"item": shlex.quote(item) if self.quoted else item}
            study = replace(study, warmup=0) if self.values[option] and not self.settings else study
            LOG.debug("%s: %s", letter(option), study.shell_line(params))
            try:
                outcome = measure(study, Record(len(self.values[option]), params), keeper, stop)
            except RunStopped:
                self.stopped, self.seconds = "time", monotonic() - start
                return
            self.tell(option, outcome, item)
            self.records[option].append(outcome)
            self.seconds = monotonic() - start
            if outcome.state == "failed":
                self._failed(option, outcome)
            show()

    def params(self, option: int) -> Params:
        """Values of the placeholders of a command in its next run."""
        return self.settings[option] if self.settings else {}

    def tell(self, option: int, outcome: Record, item: str | None = None) -> None:
        """Tell the comparison the outcome of a run; StudyError if its value is outside the bounds."""
        try:
            self.comparison.tell(option, outcome.value(), item)
        except ValueError as error:
            raise StudyError(f"{letter(option)}: {self.lines[option]!r}: {error}: change --bounds") from None

    def view(self, as_json: bool) -> AbstractContextManager[Callable[[], None]]:
        """A function that shows what is known: a picture on a terminal, if rich is there, few lines elsewhere."""
        if as_json:
            return nullcontext(lambda: None)
        if sys.stdout.isatty():
            with suppress(MissingExtra):
                return _live(self, extra("rich.live", "tune"), extra("rich.text", "tune"))
        return nullcontext(partial(_show_line, self, set()))

    def _failed(self, option: int, outcome: Record) -> None:
        name = ("" if self.is_itself else f"{letter(option)}: ") + repr(self.lines[option])
        values = [value for runs in self.values for value in runs] if self.is_itself else self.values[option]
        why = f"{outcome.failure}" + "".join(f"\n    | {line}" for line in words.last_lines(outcome))
        if values == [None] * FAILED_RUNS:
            raise StudyError(f"{name} has failed {FAILED_RUNS} times in a row, the last time: {why}")
        if values.count(None) == 1:
            counts = "counts as the worse bound" if self.comparison.bounds else "loses its pair if the other run ends"
            complain(printable(f"noregret: {name} has failed, which {counts}: {why}", keep="\n"))

    @property
    def _all_fail(self) -> bool:
        return all(self.values[option][-ALL_FAILED:] == [None] * ALL_FAILED for option in self.studies)

    @property
    def fewest(self) -> int:
        """The fewest pairs that can decide."""
        level = 1 - (1 - self.comparison.confidence) / math.comb(len(self.lines), 2)
        quantile = self.comparison.evidence.quantile or 0.5
        return next(pairs for pairs in count(1) if losses_allowed(pairs, level, min(quantile, 1 - quantile)) >= 0)

    def limits_too_low(self) -> Iterator[str]:
        """Warnings about limits that leave too few pairs for a verdict."""
        if (most := self.study.budget.rounds) and most < self.fewest:
            yield f"--budget {most}: a verdict takes {self.fewest} pairs at least. Raise it"
        if self.baseline and (known := len(self.values[0])) < self.fewest:
            had = f"{known} measurement{'s' * (known != 1)}"
            yield f"--baseline {self.baseline} has {had}, and a verdict takes {self.fewest} at least. Measure A again"

    def _warn_of_slow_pairs(self, each: float) -> None:
        """Warn if the time is not enough for a verdict, by the seconds of a pair without warm-up."""
        limit, needed = self.study.budget.seconds, self.seconds + (self.fewest - 2) * each
        if limit and needed > limit:
            complain(
                f"noregret: a pair takes about {words.duration(each)}, and a verdict {self.fewest} pairs at least. "
                f"Raise --budget to {math.ceil(needed / 60) + 1}m or more"
            )

    @property
    def is_settled(self) -> bool:
        """True if the answer is known, and the number of pairs is not fixed."""
        if self.is_fixed:
            return False
        return self.comparison.is_worse() is not None if self.is_gate else self.comparison.decided

    @property
    def _passed(self) -> bool | None:
        """True if a gate lets B pass; None if a bisection does not know."""
        is_worse = self.comparison.is_worse()
        return None if is_worse is None and self.is_bisect else not is_worse

    def median(self, option: int) -> float | None:
        """Median of the measurements of a command, None if there is none; the bar is what it is."""
        if option == 0 and self.comparison.evidence.bar is not None:
            return self.comparison.evidence.bar
        known = [value for value in self.values[option] if value is not None]
        return median(known) if known else None

    def typical(self, option: int) -> float | None:
        """Mean or median of the measurements of a command, as the comparison is of means or not; None if unknown."""
        known, quantile = (
            [value for value in self.values[option] if value is not None],
            self.comparison.evidence.quantile,
        )
        if quantile is not None and known:
            return float(np.quantile(known, quantile))
        if self.comparison.quantity != "difference of means" or not self.values[option]:
            return self.median(option)
        worst = (self.comparison.bounds or (0.0, 1.0))[self.study.goal == "minimize"]
        return mean(worst if value is None else value for value in self.values[option])

    @property
    def unit(self) -> str:
        """Unit of the measurements."""
        return " s" if isinstance(self.study.result, TIMES) else " B" if isinstance(self.study.result, MaxRss) else ""

    def shown(self, value: float) -> str:
        """A measurement with its unit."""
        is_short = self.unit == " s" and 0 < value < 1
        return f"{number(1000 * value)} ms" if is_short else f"{number(value)}{self.unit}"

    def difference(self, change: Change) -> str:
        """A change and its interval in words.

        >>> study = Study(Path("versus"), (), space={}, result=WallTime())
        >>> race = Race(["a", "b"], {1: study}, Comparison(), "wall-time")
        >>> race.difference(Change(-0.031, -0.042, -0.019)), race.difference(Change(0.01, -0.02, 0.03))
        ('3.10% less time (1.90% to 4.20%)', '1.00% more time (2.00% less to 3.00% more)')
        """
        if self.comparison.quantity == "difference of means":
            return means(self.comparison, change)
        factor, unit = (100.0, "%") if self.comparison.is_relative else (1.0, self.unit)
        noun = {WallTime: " time", UserTime: " user time", MaxRss: " memory"}.get(type(self.study.result), "")
        less, more = ("less", "more") if noun else ("lower", "higher")
        missing = f"before {self.fewest} pairs" if self.comparison.pairs < self.fewest else "yet"
        return directed(Change(*(factor * each for each in change)), less, more, unit, noun, missing=missing)

    def verdict(self) -> str:
        """The verdict in one line."""
        if len(self.lines) > 2:
            return headline(self.comparison, "commands")
        head = headline(self.comparison)
        if self.is_gate:
            limit = f" by more than {self.comparison.within}" if self.comparison.within else ""
            why = "fails more often than A" if self.comparison.fails_more() else f"is worse than A{limit}"
            head = {
                True: f"Failed: B {why}",
                False: f"Passed: B is not worse than A{limit}",
                None: headline(self.comparison)
                if self.is_bisect
                else f"Passed: B is not shown to be worse than A{limit}",
            }[self.comparison.is_worse()]
        return f"{head}: {self.difference(self.comparison.change(1))}"

    def table(self) -> list[str]:
        """The commands, a line each: its name, its median or mean, and for more than two its change against A."""
        rows = []
        for option, line in enumerate(self.lines):
            middle = self.typical(option)
            cells = [letter(option), "-" if middle is None else self.shown(middle)]
            if len(self.lines) > 2:
                cells.append(self.difference(self.comparison.change(option)) if option else "")
            if any(self.comparison.failures):
                failed, runs = self.comparison.failures[option], self.comparison.runs[option]
                cells.append(f"{failed} of {runs} failed" if failed else "")
            rows.append([*cells, printable(line)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]

    def conclusion(self) -> str:
        """All that is known, in a few lines."""
        return "\n".join([self.verdict(), *self.table(), *self._evidence()])

    def _evidence(self) -> Iterator[str]:
        """Number of pairs, and what is to be known about them; what to do if they did not decide."""
        comparison, budget = self.comparison, self.study.budget
        several = "rounds" if len(self.lines) > 2 else "pairs"
        pairs = f"{comparison.pairs} {several if comparison.pairs != 1 else several[:-1]}"
        level = f"{100 * comparison.confidence:.3g}% confidence at any stopping time"
        kind = "means" if comparison.quantity == "difference of means" else "medians"
        if (quantile := comparison.evidence.quantile) is not None:
            kind = f"{quantile:g}-quantiles"
        if comparison.evidence.bar is not None:
            pairs, several = f"{comparison.pairs} runs", "runs"
        order = "on items in random order" if self.items else "in random order"
        yield f"{kind} of {pairs}{'' if several == 'runs' else f' {order}'}, {words.duration(self.seconds)}; {level}"
        if self.items:
            yield (
                "the interval is about items like these, if they are a random sample of them; the verdict is also "
                "about these items. Each item counts once"
            )
        if self.baseline:
            name = printable(str(self.baseline))
            yield f"A was measured before ({name}), so drift of the machine since then is not cancelled"
        yield from comparison.warnings
        slowest = max((each for option in self.studies if (each := self.median(option))), default=math.inf)
        if isinstance(self.study.result, WallTime) and slowest < SHORT:
            yield "most of such a short time is the start of a process: repeat the work inside of the command"
        if self.is_gate and self._passed:
            yield from self._excluded()
        if self.is_settled:
            return
        margin = "" if comparison.within else ", or give a margin of equality, such as --within 1%"
        yield {
            "time": f"The time of {words.duration(budget.seconds or 0)} is up. Raise --budget to decide{margin}.",
            "pairs": f"The budget of {budget.rounds} pairs is spent. Raise --budget to decide{margin}.",
            "items": f"All items have been run. Add items to decide, or raise --repeats{margin}.",
            "baseline": "All old measurements are used. Measure A again to decide.",
            "failures": f"All runs of the last {ALL_FAILED} rounds have failed. Fix the commands to decide.",
            "interrupted": "Stopped before the end.",
        }.get(self.stopped, "")

    def _excluded(self) -> Iterator[str]:
        """Smallest change for the worse that a gate that has passed would have seen."""
        change, study = self.comparison.change(1), self.study
        end = change.upper if study.goal == "minimize" else -change.lower
        if end <= 0 or math.isnan(end):
            return
        what = "slowdowns" if isinstance(study.result, TIMES) else "changes for the worse"
        if math.isinf(end):
            yield f"{what} of any size may have been missed: there were too few pairs"
            return
        is_part, is_share = self.comparison.is_relative, self.comparison.evidence.is_share
        unit = "%" if is_part else " points" if is_share else self.unit
        size = f"{number(100 * end if is_part or is_share else end, 2)}{unit}"
        more = "" if self.is_settled else "; to see half of that takes about four times as many pairs"
        yield f"{what} above {size} would have been seen{more}"

    def as_json(self) -> dict[str, Any]:
        """All numbers; None stands for those that are not finite or not known."""
        comparison, options = self.comparison, range(len(self.lines))
        change = Change(comparison.estimate, comparison.lower, comparison.upper)
        best = comparison.best
        return {
            "verdict": comparison.verdict,
            **_numbers(change),
            "quantity": comparison.quantity,
            "relative": comparison.is_relative,
            "level": comparison.confidence,
            "within": comparison.within,
            "bounds": comparison.bounds,
            "quantile": comparison.evidence.quantile,
            "bar": comparison.evidence.bar,
            "items": comparison.evidence.items or None,
            "evalue": finite(comparison.evalue("better")),
            "pairs": comparison.pairs,
            "commands": list(self.lines),
            "medians": [self.median(option) for option in options],
            "runs": list(comparison.runs),
            "failures": list(comparison.failures),
            "intervals": [_numbers(comparison.change(option)) for option in options],
            "best": None if best is None else self.lines[best],
            "goal": self.study.goal,
            "result": self.result,
            "baseline": str(self.baseline) if self.baseline else None,
            "stopped": self.stopped,
            "warnings": comparison.warnings,
            "seconds": round(self.seconds, 3),
            **({"passed": self._passed} if self.is_gate else {}),
            "summary": self.conclusion(),
        }


def _numbers(change: Change) -> dict[str, float | None]:
    """The change by name; None for an estimate or an end that is not known."""
    return {name: finite(value) for name, value in change._asdict().items()}


def _show_line(race: Race, shown: set[int]) -> None:
    """Print a line after the first pair, the second, the fourth, and so on."""
    pairs = race.comparison.pairs
    if pairs and pairs.bit_count() == 1 and pairs not in shown:
        shown.add(pairs)
        several = len(race.lines) > 2
        state = race.verdict() if several else race.difference(race.comparison.change(1))
        say(f"{pairs} {'round' if several else 'pair'}{'s' * (pairs > 1)}: {state}")


@contextmanager
def _live(race: Race, live: Any, text: Any) -> Iterator[Callable[[], None]]:
    """Picture of the comparison. It is drawn between runs only, so that drawing takes no time from a run."""
    last = -math.inf

    def draw() -> None:
        nonlocal last
        if race.seconds - last >= REFRESH_SECONDS:
            last = race.seconds
            picture.update(text.Text("\n".join(_picture(race)), no_wrap=True, overflow="ellipsis"), refresh=True)

    with live.Live(auto_refresh=False, transient=True) as picture:
        draw()
        yield draw


def _picture(race: Race) -> Iterator[str]:
    budget, pairs = race.study.budget, race.comparison.pairs
    limit = f" of {budget.rounds}" if budget.rounds else ""
    time = f" of {words.duration(budget.seconds)}" if budget.seconds else ""
    yield f"{pairs}{limit} pairs, {words.duration(race.seconds)}{time}"
    yield from race.table()
    if len(race.lines) > 2:
        yield race.verdict()
        return
    yield f"B against A: {race.difference(race.comparison.change(1))}"
    if bar := _bar(race.comparison.change(1), race.comparison.margin()):
        yield bar


def _bar(change: Change, margin: float) -> str:
    """Line with an interval of a change, zero in its middle and the margin in brackets; empty without an interval.

    >>> _bar(Change(-0.02, -0.03, -0.01), 0.01)
    '-------====*====[---0---]----------------'
    """
    size = 1.5 * max(abs(change.lower), abs(change.upper), margin)
    if not 0 < size < math.inf:
        return ""

    def place(value: float) -> int:
        return round((value / size + 1) / 2 * (PICTURE_WIDTH - 1))

    line = ["-"] * PICTURE_WIDTH
    if margin:
        line[place(-margin)], line[place(margin)] = "[", "]"
    line[place(0.0)] = "0"
    for at in range(place(change.lower), place(change.upper) + 1):
        line[at] = "=" if line[at] == "-" else line[at]
    line[place(change.estimate)] = "*"
    return "".join(line)
