"""Display of a running study: a live picture on a terminal, a line per outcome elsewhere, and the conclusion."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections import deque
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import Any, Self

from noregret.extra import extra
from noregret.optimizer import Estimate, change_in_words
from noregret.terminal import printable, say
from noregret.tune.learning.findings import OUTLYING, Findings
from noregret.tune.learning.suggest import Suggester
from noregret.tune.measuring import Outcome
from noregret.tune.page import words
from noregret.tune.page.prose import changes, feasibility, room_left, why_over
from noregret.tune.store.records import Record
from noregret.tune.study.study import Study
from noregret.tune.work.worker import LOST

LAST = 8
"""Number of outcomes shown on a terminal."""
STDERR_LINES = 8
"""Number of lines shown of the standard error of the first failed run."""


def view(study: Study, records: list[Record], suggester: Suggester, as_json: bool = False) -> Lines:
    """A live picture if standard output is a terminal, else a line per outcome, for people or for scripts."""
    if as_json:
        return Objects(study, records)
    if not sys.stdout.isatty():
        return Lines(study, records)
    return Live(study, records, suggester, extra("rich.console", "tune").Console())


class Lines:
    """A line per outcome, written once the outcome is in the store."""

    def __init__(self, study: Study, records: list[Record]) -> None:
        self.study = study
        self._first_failure: tuple[Record, Outcome] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def started(self, trial: Record) -> None:
        pass

    def told(self, trial: Record, outcome: Outcome, counted: bool) -> None:
        what = f"failed: {printable(outcome.failure)}" if outcome.value is None else words.number(outcome.value)
        late = "" if counted else " [not counted: another worker has answered]"
        why = last_lines(outcome) if self._is_first_failure(trial, outcome) else []
        say(f"trial {trial.number}: {what} ({words.params(trial.params)}){late}", *(f"    | {line}" for line in why))

    def _is_first_failure(self, trial: Record, outcome: Outcome) -> bool:
        """Return True for the first failed run of this call, and remember it."""
        if self._first_failure or outcome.value is not None or outcome is LOST:
            return False
        self._first_failure = trial, outcome
        return True

    def refresh(self) -> None:
        pass


class Objects(Lines):
    """A JSON object per outcome, on a line of its own, written once the outcome is in the store."""

    def told(self, trial: Record, outcome: Outcome, counted: bool) -> None:
        if not counted:
            return
        found: dict[str, Any] = {"trial": trial.number, "params": trial.params, "value": outcome.value}
        found["failed"] = outcome.value is None
        if outcome.value is None:
            found |= {"reason": outcome.failure, "stderr": outcome.stderr}
        if outcome.constraints:
            found["constraints"] = dict(outcome.constraints)
        say(json.dumps(found))


def last_lines(outcome: Outcome) -> list[str]:
    """The last lines of the error output of a run, as text."""
    return [printable(line.rstrip()) for line in outcome.stderr.strip().splitlines()[-STDERR_LINES:]]


class Live(Lines):
    """Progress, the best so far, the last outcomes, the time left."""

    def __init__(self, study: Study, records: list[Record], suggester: Suggester, console: Any) -> None:
        super().__init__(study, records)
        self._suggester, self._console = suggester, console
        self._finished = sum(record.finished and not record.imported for record in records)
        self._failed = sum(record.state == "failed" for record in records)
        self._begun, self._at_start = monotonic(), self._finished
        self._last: deque[tuple[Record, Outcome]] = deque(maxlen=LAST)
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

    def told(self, trial: Record, outcome: Outcome, counted: bool) -> None:
        with self._lock:
            self._running.pop(trial.number, None)
            self._is_first_failure(trial, outcome)
            self._finished += counted
            self._failed += counted and outcome.value is None
            self._last.append((trial, outcome))

    def refresh(self) -> None:
        self._findings = self._suggester.latest
        self._live.update(self._picture(), refresh=True)

    def _picture(self) -> Any:
        with self._lock:
            last, running = list(self._last), list(self._running.values())
        parts = [self._progress(len(running)), self._best(), self._answers(last), self._failure()]
        return extra("rich.console", "tune").Group(*filter(None, parts))

    def _progress(self, running: int) -> Any:
        rounds = self.study.budget.rounds
        bar = extra("rich.progress_bar", "tune").ProgressBar(total=1.0, completed=self._share(), width=40)
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

    def _share(self) -> float:
        """The spent share of the budget, of its rounds or of its seconds, whichever is larger."""
        rounds, seconds = self.study.budget.rounds, self.study.budget.seconds
        shares = [self._finished / rounds] if rounds else []
        shares += [(monotonic() - self._begun) / seconds] if seconds else []
        return min(max(shares), 1.0)

    def _seconds_left(self) -> float:
        """The expected seconds until the budget is spent, 0 if they are not known."""
        spent, done = monotonic() - self._begun, self._finished - self._at_start
        times = []
        if self.study.budget.rounds and done:
            times.append(max(self.study.budget.rounds - self._finished, 0) * spent / done)
        if self.study.budget.seconds:
            times.append(max(self.study.budget.seconds - spent, 0.0))
        return min(times, default=0.0)

    def _best(self) -> Any:
        if self._findings is None or self._findings.best is None:
            return None
        best = self._findings.best
        unit = self._findings.unit
        sure = words.likely(best, unit)
        estimate = (f"{words.number(best.estimate)}{unit}", "bold green")
        params = words.params(best.params, "  ")
        more = "".join(f"             {line}\n" for line in how_good(self._findings, best))
        gain = f"             {self._findings.gain}\n" if self._findings.gain else ""
        return extra("rich.text", "tune").Text.assemble(
            "\nbest so far  ", estimate, f"  ({sure})\n", (gain, "bold"), f"             {params}\n", (more, "dim")
        )

    def _failure(self) -> Any:
        """Standard error of the first failed run."""
        if self._first_failure is None:
            return None
        trial, outcome = self._first_failure
        text = extra("rich.text", "tune").Text
        head = text(f"\nthe first failure, trial {trial.number}: {printable(outcome.failure)}\n", "red")
        return head.append("".join(f"    | {line}\n" for line in last_lines(outcome)), "dim")

    def _answers(self, last: list[tuple[Record, Outcome]]) -> Any:
        if not last:
            return None
        table = extra("rich.table", "tune").Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("trial", justify="right", style="dim")
        table.add_column("result", justify="right")
        table.add_column("")
        for name in self.study.names:
            table.add_column(name, justify="right", style="dim", no_wrap=True)
        for trial, outcome in reversed(last):
            params = [_text(cell) for cell in words.cells(trial.params, self.study.names)]
            table.add_row(str(trial.number), *self._answer(outcome, trial), *params)
        return table

    def _answer(self, outcome: Outcome, trial: Record) -> tuple[Any, Any]:
        if outcome.value is None:
            return _text("failed", "red"), _text(outcome.failure[:40], "red")
        odd = self._findings is not None and self._findings.weights.get(trial.number, 1.0) < OUTLYING
        return words.number(outcome.value), _text("outlying" if odd else "", "yellow")


def _text(shown: str, style: str = "") -> Any:
    """Text without markup and without control characters."""
    return extra("rich.text", "tune").Text(printable(shown), style)


def conclusion(found: Findings) -> str:
    """The findings, and the reason why the study has ended, in a few lines."""
    if found.best is None:
        return "\n".join(["no result yet", *why_over(found)])
    return "\n".join([*_found(found, found.best), *why_over(found), _evidence(found.study)])


def _found(found: Findings, best: Estimate) -> Iterator[str]:
    if found.gain:
        yield str(found.gain)
    yield f"best: {words.number(best.estimate)}{found.unit}, {words.likely(best, found.unit)}"
    width = max(map(len, best.params))
    yield from (f"  {name:<{width}}  {words.value(value)}" for name, value in best.params.items())
    if best.changes:
        yield changes(best, found.unit)
    yield from how_good(found, best)
    if best.has_gap:
        yield room_left(best, found.unit)


def how_good(found: Findings, best: Estimate) -> Iterator[str]:
    """Feasibility of the recommended setting, and drift: what takes no time to compute."""
    if found.study.constraints:
        yield feasibility(best)
    if found.half_life < math.inf:
        yield change_in_words(found.half_life)


def _evidence(study: Study) -> str:
    return f"the evidence: noregret report {printable(shlex.quote(str(study.path)))}"
