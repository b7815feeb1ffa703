"""``noregret versus`` for runs with many named numbers: a benchmark suite before and after a change.

`Suite` judges, `noregret.studies.readers` reads what the tools write, and the commands run as those of `Race` do.
"""

from __future__ import annotations

import json
import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from noregret.comparison import Change, NamedChange, Suite
from noregret.comparison.comparison import directed, letter
from noregret.comparison.sequences import losses_allowed
from noregret.formatting import finite, number
from noregret.studies import readers, words
from noregret.studies.store.records import Record
from noregret.studies.study import checks
from noregret.studies.study.results import NoResult, Output, sought
from noregret.studies.study.study import Command, Params, StudyError
from noregret.studies.versus import (
    EXIT_CODES,
    Race,
    command_words,
    compared,
    comparison_settings,
    measured_study,
)
from noregret.terminal import printable, say

UNSUPPORTED = "save", "baseline", "items", "bar", "quantile", "receipt", "bisect"
"""Options of ``noregret versus`` that are about one number of each run."""
MOST_ROWS = 50
"""Rows of a table; the names that are worse or better are always in it."""


def suite(args: Namespace) -> int:
    """Compare two commands by many named numbers, and print what is known; return the exit code."""
    with TemporaryDirectory(prefix="noregret-") as folder:
        race = _race(args, Path(folder))
        compared(race, args.json)
    say(json.dumps(race.as_json()) if args.json else race.conclusion())
    if race.stopped == "interrupted":
        return 130
    return int(race.suite.verdict == "worse") if race.is_gate else EXIT_CODES[race.suite.verdict]


def is_suite(args: Namespace) -> bool:
    """True if the arguments ask for many named numbers of each run."""
    return bool(args.reader) or args.result == "json"


def _race(args: Namespace, folder: Path) -> SuiteRace:
    kind = args.reader or "json"
    if args.reader and args.result not in ("wall-time", "json"):
        raise StudyError(f"--reader {kind} reads many numbers of a run: drop --result {args.result}")
    if given := [name for name in UNSUPPORTED if getattr(args, name, None)]:
        raise StudyError(f"--{given[0]} is about one number of each run, and a suite has many: drop it")
    if len(args.commands) != 2:
        raise StudyError(f"a suite compares two commands, A and B, each in quotes, got {len(args.commands)}")
    if kind == "hyperfine" and any("{names}" in line for line in args.commands):
        raise StudyError("hyperfine runs all of its commands: drop {names}")
    out = folder / "output"
    numbers = [NamedNumbers(kind, out if "{out}" in line else None) for line in args.commands]
    try:
        goal, _ = sought(checks.GOAL.check(args.goal), numbers[0])
    except ValueError as error:
        raise StudyError(f"--goal: {error}") from None
    names = Suite(**comparison_settings(args, goal))
    studies = {
        option: replace(
            measured_study(args, goal, numbers[option]),
            command=_open(command_words(letter(option), line, args.shell), args.shell),
        )
        for option, line in enumerate(args.commands)
    }
    return SuiteRace(
        args.commands, studies, names.order, kind, args.gate, suite=names, numbers=numbers, by_shell=args.shell
    )


def _open(command: Command, by_shell: bool) -> Command:
    """The words of a command with {names} and {out} as placeholders."""
    opened = []
    for word in command:
        if by_shell and re.search(r"""["']\{\{(names|out)\}\}|\{\{(names|out)\}\}["']""", str(word)):
            raise StudyError("with --shell {names} and {out} are quoted already: write no quotes around them")
        opened.append(str(word).replace("{{names}}", "{names}").replace("{{out}}", "{out}"))
    return tuple(opened)


@dataclass
class NamedNumbers:
    """Reader of many named numbers. It keeps those of the last run, whose result is the number of them."""

    kind: str
    file: Path | None
    """The file that the tool writes; None if it writes to standard output."""
    last: readers.Numbers = field(default_factory=dict)

    def read(self, output: Output) -> float:
        if self.file is not None and not self.file.exists():
            raise NoResult("the command has not written its results to {out}")
        text = output.stdout if self.file is None else self.file.read_text(encoding="utf-8", errors="replace")
        self.last = readers.read(self.kind, text)
        return len(self.last)


@dataclass
class SuiteRace(Race):
    """Two commands that are compared by many named numbers; ``comparison`` is the order of the runs."""

    suite: Suite = field(kw_only=True)
    numbers: Sequence[NamedNumbers] = field(kw_only=True)
    by_shell: bool = False

    def params(self, option: int) -> Params:
        """Text for {names}, those that need this run, and for {out}, an empty place for the results."""
        kind, file = self.numbers[option].kind, self.numbers[option].file
        if file is not None:
            file.unlink(missing_ok=True)
        values = {"names": readers.selected(kind, self.suite.running or None), "out": str(file)}
        return {name: shlex.quote(text) for name, text in values.items()} if self.by_shell else values

    def tell(self, option: int, outcome: Record, item: str | None = None) -> None:
        """Tell the suite the numbers of a run. Names that are new since the first pair are ignored."""
        known = set(self.suite.names)
        numbers = {name: value for name, value in self.numbers[option].last.items() if not known or name in known}
        try:
            self.suite.tell(option, numbers if outcome.state == "done" else None)
        except ValueError as error:
            raise StudyError(f"{letter(option)}: {self.lines[option]!r}: {error}") from None

    @property
    def is_settled(self) -> bool:
        return self.suite.decided

    @property
    def fewest(self) -> int:
        """The fewest pairs that can decide one name."""
        level = 1 - (1 - self.suite.confidence) / max(len(self.suite.names), 1)
        return next(pairs for pairs in count(1) if losses_allowed(pairs, level) >= 0)

    def view(self, as_json: bool) -> AbstractContextManager[Callable[[], None]]:
        """A function that prints a line after the first pair, the second, the fourth, and so on."""
        shown = set[int]()

        def show() -> None:
            pairs = self.suite.pairs
            if not as_json and self.suite.names and pairs.bit_count() == 1 and pairs not in shown:
                shown.add(pairs)
                say(f"{pairs} pair{'s' * (pairs > 1)}: {self.suite.headline()}")

        return nullcontext(show)

    @property
    def unit(self) -> str:
        return "" if self.result == "json" else " s"

    def verdict(self) -> str:
        """The verdict in one line."""
        said = self.suite.headline()
        if not self.is_gate:
            return said[0].upper() + said[1:]
        return f"{'Failed' if self.suite.verdict == 'worse' else 'Passed'}: {said}"

    def table(self) -> list[str]:
        """A line for each name, worst first: its verdict, its change with the interval, its medians, its failures."""
        rows = self.suite.rows
        spare = MOST_ROWS - sum(row.verdict in ("worse", "better") for row in rows)
        others = [row for row in rows if row.verdict not in ("worse", "better")]
        hidden = {row.name for row in others[max(spare, 0) :]}
        cells = [self._cells(row) for row in rows if row.name not in hidden]
        columns = [column for column in zip(*cells, strict=True) if any(column)]
        widths = [max(map(len, column)) for column in columns]
        lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*columns, strict=True)]
        more = f"  and {len(hidden)} more names, equal or undecided: --json has them"
        return lines + [more] * bool(hidden)

    def _cells(self, row: NamedChange) -> list[str]:
        is_relative = self.suite.is_relative(row.name)
        factor, unit = (100.0, "%") if is_relative else (1.0, self.unit)
        less, more, noun = ("lower", "higher", "") if self.unit == "" else ("less", "more", " time")
        change = Change(*(factor * each for each in (row.estimate, row.lower, row.upper)))
        failed = [sum(value is None for value in values) for values in self.suite.values[row.name]]
        middles = map(self._middle, self.suite.values[row.name])
        return [
            row.verdict,
            directed(change, less, more, unit, noun),
            " -> ".join(middles),
            f"failed {failed[0]} and {failed[1]} times" if any(failed) else "",
            printable(row.name),
        ]

    def _middle(self, values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        if not known:
            return "-"
        middle = median(known)
        factor, unit = next(
            ((factor, unit) for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")) if factor * abs(middle) >= 1),
            (1e9, "ns"),
        )
        return f"{number(factor * middle)} {unit}" if self.unit else number(middle)

    def _evidence(self) -> Iterator[str]:
        """The guarantee in one sentence, the number of pairs, and what to do if they did not decide."""
        names, percent = self.suite, f"{100 * (1 - self.suite.confidence):.3g}%"
        yield (
            f"Of the names called worse or better at most {percent} are wrong in expectation, at any stopping time and "
            "however the names depend on each other."
        )
        alarms = len(names.named("worse") + names.named("better"))
        share = (1 - names.confidence) / max(len(names.names), 1)
        if alarms:
            yield f"Their intervals hold at {100 * (1 - share * alarms):.6g}% each, as they are selected."
        pairs = f"{names.pairs} pair{'s' * (names.pairs != 1)}"
        yield f"medians of up to {pairs} in random order, {words.duration(self.seconds)}"
        yield from map(printable, self.warnings)
        if not self.is_settled:
            *_, last = super()._evidence()
            yield last

    @property
    def warnings(self) -> list[str]:
        """Sentences about the evidence that a reader must know."""
        return [
            f"no result in {letter(option)}, not compared: {', '.join(left_out)}"
            for option, left_out in enumerate(self.suite.left_out)
            if left_out
        ]

    def as_json(self) -> dict[str, Any]:
        """All numbers; None stands for those that are not finite or not known."""
        document, names = super().as_json(), self.suite
        for key in ("estimate", "lower", "upper", "relative", "intervals", "best", "medians", "quantity", "baseline"):
            del document[key]
        return {
            **document,
            "verdict": names.verdict,
            "names": [self._row(row) for row in names.rows],
            "left_out": dict(zip("AB", map(list, names.left_out), strict=True)),
            "warnings": self.warnings,
            **({"passed": names.verdict != "worse"} if self.is_gate else {}),
        }

    def _row(self, row: NamedChange) -> dict[str, Any]:
        values = self.suite.values[row.name]
        known = [[value for value in each if value is not None] for each in values]
        return {
            "name": row.name,
            "verdict": row.verdict,
            **{key: finite(getattr(row, key)) for key in ("estimate", "lower", "upper", "evalue")},
            "level": row.level,
            "relative": self.suite.is_relative(row.name),
            "pairs": row.pairs,
            "medians": [median(each) if each else None for each in known],
            "failures": [len(each) - len(kept) for each, kept in zip(values, known, strict=True)],
        }
