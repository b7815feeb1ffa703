"""Display of a running study: a live picture on a terminal, a line per outcome elsewhere, and the conclusion."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from textwrap import fill, indent
from threading import Lock
from time import monotonic
from typing import Any, Self

from noregret.extra import extra
from noregret.optimizer import OUTLYING, Estimate, change_in_words
from noregret.studies import words
from noregret.studies.learning.findings import Findings, spread_over
from noregret.studies.learning.prose import feasibility, nothing, why_over
from noregret.studies.session import Moment, Suggester, View
from noregret.studies.store.records import Record
from noregret.studies.study.study import Study
from noregret.terminal import printable, say

REASON = 28
"""Number of characters of the reason of a failure in the table of a terminal."""
NUMBERS = 28
"""Number of characters of a row of that table without its setting and such a reason."""
LAST = 8
"""Number of outcomes shown on a terminal."""
USUAL_WIDTH = 120
"""Length of lines where the output is no terminal, and COLUMNS is not set."""
MOST_IN_CONCLUSION, MOST_WHILE_RUNNING = 12, 6
"""Largest number of settings of a front in the conclusion, and while a study runs."""
LEAST = 20
"""Number of characters that a setting gets at least."""


def columns() -> int:
    """The length of a line."""
    return shutil.get_terminal_size((USUAL_WIDTH, 24)).columns


def setting(params: Mapping[str, Any], usual: Mapping[str, Any] | None, width: int, name: str = "baseline") -> str:
    """Params that differ from the usual ones, or all of them, cut where they take more than ``width`` characters.

    >>> setting({"rate": 0.5, "size": 8, "mode": "fast"}, {"rate": 0.5, "size": 4, "mode": "safe"}, 80)
    'size=8, mode=fast'
    >>> setting({"rate": 0.5, "size": 8, "mode": "fast"}, None, 22)
    'rate=0.5, ... 2 more'
    >>> setting({"rate": 0.5}, {"rate": 0.5}, 80)
    'baseline'
    """
    is_new = {name: usual is None or name not in usual or usual[name] != value for name, value in params.items()}
    parts = [f"{name}={words.value(value)}" for name, value in params.items() if is_new[name]]
    for count in range(len(parts), 0, -1):
        left = len(parts) - count
        text = ", ".join(parts[:count]) + (f", ... {left} more" if left else "")
        if len(text) <= width:
            return text
    return cut(", ".join(parts), width) if parts else name


def cut(text: str, width: int) -> str:
    """Text of at most ``width`` characters, of which the last ones are dots if some are left out."""
    return text if len(text) <= width else f"{text[: max(width - 3, 1)]}..."


def view(study: Study, records: list[Record], suggester: Suggester, as_json: bool = False) -> LineView:
    """A live picture if standard output is a terminal, else a line per outcome, for people or for scripts."""
    if as_json:
        return Objects(study, records)
    if not sys.stdout.isatty():
        return LineView(study, records)
    return Live(study, records, suggester, extra("rich.console", "tune").Console())


class LineView(View):
    """A line per outcome, written once the outcome is in the store."""

    def __init__(self, study: Study, records: list[Record]) -> None:
        self.study = study
        self._first_failure: Record | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def told(self, outcome: Record, counted: bool) -> None:
        what = result(self.study, outcome)
        what += f", {how}" if (how := how_measured(self.study, outcome)) else ""
        late = "" if counted else " [not counted: another worker has answered]"
        why = words.last_lines(outcome) if self._is_first_failure(outcome) else []
        head = f"trial {outcome.number}: {what}"
        shown = setting(outcome.params, self.study.baseline, max(columns() - len(head) - len(late) - 3, LEAST))
        say(f"{head} ({shown}){late}", *(f"    | {line}" for line in why))

    def _is_first_failure(self, outcome: Record) -> bool:
        """Return True for the first failed run of this call, and remember it."""
        if self._first_failure or outcome.state != "failed" or outcome.seconds is None:
            return False
        self._first_failure = outcome
        return True


class Objects(LineView):
    """A JSON object per outcome, on a line of its own, written once the outcome is in the store."""

    def told(self, outcome: Record, counted: bool) -> None:
        if counted:
            stderr = {"stderr": outcome.stderr} if outcome.state == "failed" else {}
            say(json.dumps(self.study.measures.described(outcome) | stderr))


def how_measured(study: Study, outcome: Record) -> str:
    """Note on the measurement of a value, in a few words; empty if there is nothing special.

    Numbers with a constraint come first, as ``p99 17.2``, or ``p99 38.1 > 20`` if they break it; then tracked ones.
    """
    notes = []
    for key in [*study.measures.constraints, *study.measures.tracked(outcome)]:
        measure, number = study.measures[key], outcome.value(key)
        if number is None:
            continue
        note = f"{measure.name} {words.number(number)}{f' {measure.unit}' if measure.unit else ''}"
        if measure.limit and measure.limit.is_broken_by(number):
            note += f" {'>' if measure.limit.operator == '<=' else '<'} {words.number(measure.limit.bound)}"
        notes.append(note)
    runs = max((len(outcome.runs(name)) for name in study.measures.objectives), default=0)
    if runs > 1:
        notes.append(f"median of {runs} runs")
    elif study.levels is not None and outcome.fidelity not in (None, study.levels.highest):
        notes.append(f"{'stopped early ' * outcome.is_stopped}at {words.params(outcome.fidelity or {})}")
    return ", ".join(notes)


def result(study: Study, outcome: Record) -> str:
    """The value of an outcome, its values, or why it has none."""
    if outcome.state == "failed":
        return f"failed: {printable(outcome.failure)}"
    reading = outcome.reading()
    if reading is not None and reading.bound:
        return words.cut_short(reading.value, study.cap, study.timeout)
    return words.number(reading.value) if reading else words.values(study.measures.values(outcome))


class Live(LineView):
    """Progress, the best so far, the last outcomes, the time left."""

    def __init__(self, study: Study, records: list[Record], suggester: Suggester, console: Any) -> None:
        super().__init__(study, records)
        self._suggester, self._console = suggester, console
        self._finished = sum(record.is_finished and not record.is_imported for record in records)
        self._failed = sum(record.state == "failed" for record in records)
        self._begun, self._at_start = monotonic(), self._finished
        known = [record.seconds for record in records if record.seconds]
        self._usual_seconds = sum(known) / len(known) if known else 0.0
        self._last: deque[Record] = deque(maxlen=LAST)
        self._running: dict[int, Record] = {}
        self._findings: Findings | None = None
        self._lock = Lock()
        self._live = extra("rich.live", "tune").Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._running.clear()
        self.refresh()
        self._live.__exit__(None, None, None)

    def started(self, trial: Record) -> None:
        with self._lock:
            self._running[trial.number] = trial

    def told(self, outcome: Record, counted: bool) -> None:
        with self._lock:
            self._running.pop(outcome.number, None)
            self._is_first_failure(outcome)
            self._finished += counted
            self._failed += counted and outcome.state == "failed"
            self._last.append(outcome)

    def refresh(self) -> None:
        latest = self._suggester.latest
        if latest is not None and (self._findings is None or self._findings.optimizer is not latest[1]):
            self._findings = Findings(self.study, *latest)
        self._live.update(self._picture(), refresh=True)

    def _picture(self) -> Any:
        with self._lock:
            last, running = list(self._last), list(self._running.values())
        parts = [self._progress(len(running)), self._best(), self._answers(last), self._failure()]
        return extra("rich.console", "tune").Group(*filter(None, parts))

    def _progress(self, running: int) -> Any:
        rounds = self.study.budget.rounds
        share = self._suggester.plan.share(Moment(self._finished, elapsed=monotonic() - self._begun))
        bar = extra("rich.progress_bar", "tune").ProgressBar(total=1.0, completed=share, width=40)
        counts = f"{self._finished}{f' of {rounds}' if rounds else ''} done"
        counts += f", {self._failed} failed" if self._failed else ""
        counts += f", {running} running" if running else ""
        seconds_left = self._seconds_left()
        grid = extra("rich.table", "tune").Table.grid(padding=(0, 2))
        grid.add_row(
            _text(self.study.name, "bold"),
            bar,
            counts,
            f"about {words.duration(math.ceil(seconds_left))} left" if seconds_left else "",
        )
        return grid

    def _seconds_left(self) -> float:
        """The expected seconds until the budget is spent, 0 if they are not known."""
        spent, done = monotonic() - self._begun, self._finished - self._at_start
        times, each = [], spent / done if done else self._usual_seconds
        if self.study.budget.rounds and each:
            times.append(max(self.study.budget.rounds - self._finished, 0) * each)
        if self.study.budget.seconds:
            times.append(max(self.study.budget.seconds - spent, 0.0))
        return min(times, default=0.0)

    def _best(self) -> Any:
        if self._findings is not None and self._findings.front:
            table = front_table(self._findings, self._console.width, MOST_WHILE_RUNNING)
            return extra("rich.text", "tune").Text.assemble("\nfront so far\n", *(f"{line}\n" for line in table))
        if self._findings is None or self._findings.best is None:
            return None
        best = self._findings.best
        unit = self._findings.unit
        sure = words.likely(best, unit)
        estimate = (f"{words.number(best.estimate)}{unit}", "bold green")
        params = setting(best.params, self.study.baseline, self._console.width - 14, "as the baseline")

        def indented(line: object) -> str:
            return indent(fill(str(line), max(self._console.width - 14, LEAST)), " " * 13) + "\n"

        more = "".join(map(indented, how_good(self._findings, best)))
        gain = indented(self._findings.gain) if self._findings.gain else ""
        return extra("rich.text", "tune").Text.assemble(
            "\nbest so far  ", estimate, f", {sure}\n", (gain, "bold"), f"             {params}\n", (more, "dim")
        )

    def _failure(self) -> Any:
        """Standard error of the first failed run."""
        if self._first_failure is None:
            return None
        outcome = self._first_failure
        text = extra("rich.text", "tune").Text
        head = text(f"\nthe first failure, trial {outcome.number}: {printable(outcome.failure)}\n", "red")
        return head.append("".join(f"    | {line}\n" for line in words.last_lines(outcome)), "dim")

    def _answers(self, last: list[Record]) -> Any:
        if not last:
            return None
        table = extra("rich.table", "tune").Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("trial", justify="right", style="dim")
        table.add_column("result", justify="right")
        table.add_column("")
        settings = [words.cells(trial.params, self.study.names) for trial in reversed(last)]
        lengths = [max(map(len, column)) + 2 for column in zip(self.study.names, *settings, strict=True)]
        notes = [REASON if record.failure else len(how_measured(self.study, record)) for record in last]
        room = self._console.width - NUMBERS - max(notes)
        if sum(lengths) <= room:
            for name in self.study.names:
                table.add_column(name, justify="right", style="dim", no_wrap=True)
        else:
            best = self._findings.best if self._findings else None
            usual, name = (best.params, "best so far") if best else (None, "")
            usual, name = (self.study.baseline, "baseline") if self.study.baseline else (usual, name)
            settings = [[setting(trial.params, usual, max(room, LEAST), name)] for trial in reversed(last)]
            table.add_column(f"differs from the {name} in" if usual else "setting", style="dim", no_wrap=True)
        for outcome, cells in zip(reversed(last), settings, strict=True):
            table.add_row(str(outcome.number), *self._answer(outcome), *map(_text, cells))
        return table

    def _answer(self, outcome: Record) -> tuple[Any, Any]:
        if outcome.state == "failed":
            return _text("failed", "red"), _text(cut(outcome.failure, REASON), "red")
        reading = outcome.reading()
        if reading is not None and reading.bound:
            return words.reading(reading), _text("stopped: too slow", "dim")
        odd = self._findings is not None and self._findings.weights.get(outcome.number, 1.0) < OUTLYING
        return result(self.study, outcome), _text(
            "outlying" if odd else how_measured(self.study, outcome), "yellow" if odd else "dim"
        )


def _text(shown: str, style: str = "") -> Any:
    """Text without markup and without control characters."""
    return extra("rich.text", "tune").Text(printable(shown), style)


def conclusion(found: Findings) -> str:
    """The findings, and the reason why the study has ended, in a few lines."""
    if not found.is_single:
        return "\n".join([*_front(found), *why_over(found), *_how_to_pick(found), _evidence(found.study)])
    if found.best is None:
        return "\n".join([nothing(found), *why_over(found)])
    command = [f"the command of the best setting:\n{printable(found.command, keep=chr(10))}"] if found.command else []
    return "\n".join([*_found(found, found.best), *why_over(found), _evidence(found.study), *command])


def _found(findings: Findings, best: Estimate) -> Iterator[str]:
    if findings.gain:
        yield str(findings.gain)
    yield f"best: {words.number(best.estimate)}{findings.unit}, {words.likely(best, findings.unit)}"
    usual, width, worth = findings.study.baseline, columns(), {change.name: change for change in best.changes}
    changed = {name: value for name, value in best.params.items() if not usual or usual.get(name) != value}
    length = max(map(len, changed), default=0)
    for name in [*worth, *(name for name in changed if name not in worth)]:
        was = f"  (was {words.value(usual[name])})" if usual and name in usual else ""
        line = f"  {name:<{length}}  {words.value(best.params.get(name))}{was}"
        if change := worth.get(name):
            ends = " to ".join(words.between(change.lower, change.upper, 2))
            line += f", worth {words.number(change.estimate, 2)}{findings.unit} ({ends})"
        yield cut(line, width)
    if same := [name for name in best.params if name not in changed]:
        yield cut(f"  unchanged: {', '.join(same)}", width)
    yield from how_good(findings, best)
    if best.has_gap:
        yield best.remaining_in_words(findings.unit)


def how_good(found: Findings, best: Estimate) -> Iterator[str]:
    """Feasibility of the recommended setting, and drift: what takes no time to compute."""
    if found.study.constraints:
        yield feasibility(best)
    if found.optimizer.half_life < math.inf:
        yield change_in_words(found.optimizer.half_life)
    if found.optimizer.shift:
        yield str(found.optimizer.shift)
    for doubt in found.optimizer.doubts:
        yield f"{doubt} 'noregret correct' replaces a value"


def _front(findings: Findings) -> Iterator[str]:
    """The front as a table."""
    if not findings.front:
        yield "too few results for a front" if findings.done else nothing(findings)
        return
    count, names = len(findings.front), list(findings.study.goals)
    better = f"in {', '.join(names[:-1])} or {names[-1]}"
    yield f"the front: {count} settings, each better than any other {better}" if count > 1 else "the front: 1 setting"
    yield from front_table(findings, columns(), MOST_IN_CONCLUSION)
    if findings.gains and findings.gains.is_better:
        yield f"one of them is {findings.gains}"
    if findings.hypervolume:
        volume = findings.hypervolume
        yield f"hypervolume: {words.with_interval(volume.estimate, volume.lower, volume.upper)}"


def front_table(findings: Findings, width: int, most: int) -> list[str]:
    """Settings of a front as the lines of a table, evenly spread over it if there are more than ``most``."""
    count = len(findings.front)
    places = spread_over(count, most)
    units = findings.units()
    rows = [[*(f"{name}" for name in units), "probability"]]
    for member in (findings.front[place] for place in places):
        cells = [
            words.with_interval(member.values[name], member.lower[name], member.upper[name], unit)
            for name, unit in units.items()
        ]
        rows.append([*cells, words.percent(member.probability)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = [f"  {'  '.join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))}  " for row in rows]
    room = max(width - len(left[0]), LEAST)
    shown = ["setting", *(setting(findings.front[i].params, findings.study.baseline, room) for i in places)]
    lines = [f"{row}{printable(text)}" for row, text in zip(left, shown, strict=True)]
    return [*lines, f"  ... {count - len(places)} more"] if len(places) < count else lines


def _how_to_pick(found: Findings) -> Iterator[str]:
    if found.front:
        name, goal = list(found.study.goals.items())[-1]
        side, bound = "<=" if goal == "minimize" else ">=", found.front[len(found.front) // 2].values[name]
        limit = f"{name}{side}{bound:.3g}"
        yield f"pick a setting and its command: {_command('report', found.study)} --limit '{limit}'"


def picked(findings: Findings) -> Iterator[str]:
    """The setting that was picked from a front, and its command."""
    if findings.picked is None:
        return
    choice = findings.picked
    near = " (no setting of the front meets it: this one comes nearest)" if choice.is_likeliest else ""
    yield f"picked by {findings.wish}{near}: {findings.in_words(choice)}"
    if findings.gains:
        yield str(findings.gains)
    yield from (cut(f"  {name}  {words.value(value)}", columns()) for name, value in choice.params.items())
    if command := findings.command_of(choice):
        yield f"its command:\n{printable(command, keep=chr(10))}"


def _command(name: str, study: Study) -> str:
    return f"noregret {name} {printable(shlex.quote(str(study.path)))}"


def _evidence(study: Study) -> str:
    return f"the evidence: {_command('report', study)}"
