"""Reproduce figures: run their trials, judge and draw each figure when its trials are done, and write the page.

Every finished trial is on the disk before the next result is processed. A stopped run (Ctrl-C, a killed process, a
power cut) loses only the trials in flight: the same command continues from there.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Self

from noregret.experiments.figure import Figure, Results, Scale, Setting
from noregret.experiments.page import Curve, Illustration, Report, described, log_run, write_page
from noregret.experiments.trace import Measurement, Trace, stored
from noregret.experiments.trials import Engine
from noregret.extra import extra
from noregret.terminal import complain, say


@dataclass(frozen=True)
class Order:
    """Figures to reproduce, their scale, the data and the output folder."""

    figures: Sequence[Figure]
    out: Path
    quick: bool = False
    rounds: int | None = None
    trials: int | None = None
    seed: int = 0
    data: Path | None = None
    engine: Engine = field(default_factory=Engine)

    def setting(self, figure: Figure) -> Setting:
        """Setting of a figure: the requested rounds and trials, or those of the figure."""
        scale = figure.quick if self.quick else figure.scale
        return Setting(Scale(self.rounds or scale.rounds, self.trials or scale.trials), self.seed, self.data)


class Failure(NamedTuple):
    """A trial that raised an error."""

    text: str


def reproduce(order: Order, watcher: Lines) -> list[Report]:
    """Run, judge and draw figures; return their reports in the order in which the figures finished."""
    start, reports = perf_counter(), list[Report]()
    works = [_Work(figure, order, watcher) for figure in order.figures]
    queue = {task.path: task for work in works for task in work.waiting.values()}  # figures may share trials
    kept = len({task.path for work in works for _, task in work.tasks}) - len(queue)
    reports += [_finished(work, order, watcher) for work in works if not work.waiting]
    paths = list(queue)
    for i, outcome in order.engine.each([partial(attempt, queue[path].work) for path in paths]):
        for work in [work for work in works if paths[i] in work.waiting]:
            work.receive(paths[i], outcome)
            watcher.advance(work.figure)
            if not work.waiting:
                reports.append(_finished(work, order, watcher))
    names = [figure.name for figure in order.figures]
    where = order.engine.describe(len(queue))
    log_run(order.out, figures=names, run=len(queue), kept=kept, seconds=perf_counter() - start, engine=where)
    write_page(order.out)
    return reports


def attempt(work: Any) -> Any:
    """Run a trial; an error becomes a `Failure`, which stops only its own figure."""
    try:
        return work()
    except Exception as error:
        return Failure(_traced(error))


def _traced(error: Exception) -> str:
    return f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}"


class _Work:
    """The trials of one figure, and those of them that are waiting to be run."""

    def __init__(self, figure: Figure, order: Order, watcher: Lines) -> None:
        self.figure, self.setting, self.folder = figure, order.setting(figure), order.out / "trials"
        self.tasks = [(panel.key, task) for panel in figure.panels for task in panel.tasks(self.setting)]
        self.failure = ""
        self.waiting = {
            task.path: task for _, task in self.tasks if not stored(task.kind, self.folder / task.path, watcher.note)
        }
        watcher.begin(figure, len(self.tasks), len(self.tasks) - len(self.waiting))

    def receive(self, path: Path, outcome: Trace | Measurement | Failure) -> None:
        """Store the result of a finished trial."""
        del self.waiting[path]
        if isinstance(outcome, Failure):
            self.failure = outcome.text
            return
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        outcome.save(self.folder / path)

    def results(self) -> Results:
        """Results of all trials, read from the disk."""
        found: dict[str, dict[str, list[Any]]] = {key: {} for key, _ in self.tasks}
        for key, task in self.tasks:
            found[key].setdefault(task.label, []).append(task.kind.load(self.folder / task.path))
        return found


def _finished(work: _Work, order: Order, watcher: Lines) -> Report:
    """Judge and draw a figure whose trials are all finished, and update the page."""
    try:
        report = None if work.failure else _judged(work, order.out)
    except Exception as error:
        report, work.failure = None, _traced(error)
    report = report or described(work.figure, work.setting, failure=work.failure)
    (order.out / report.name).mkdir(parents=True, exist_ok=True)
    report.save(order.out)
    write_page(order.out)
    watcher.finish(report)
    return report


def _judged(work: _Work, out: Path) -> Report:
    figure, results = work.figure, work.results()
    return described(
        figure,
        work.setting,
        verdicts=figure.judge(results, work.setting.scale),
        pictures=_drawn(figure, results, out / figure.name),
        tables=list(figure.tabulate(figure, results)),
        curves=[
            Curve(panel.title, label, getattr(trials[0], "algorithm", "") or getattr(trials[0], "about", ""))
            for panel in figure.panels
            for label, trials in results[panel.key].items()
        ],
        seconds=sum(trial.seconds for by in results.values() for trials in by.values() for trial in trials),
    )


def _drawn(figure: Figure, results: Results, folder: Path) -> list[Illustration]:
    """Draw the pictures and save each as .svg and .png."""
    folder.mkdir(parents=True, exist_ok=True)
    captions = {panel.key: panel.title for panel in figure.panels}
    illustrations = []
    with extra("matplotlib").rc_context({"svg.hashsalt": figure.name}):
        for key, picture in figure.draw(figure, results).items():
            picture.savefig(folder / f"{key}.svg", bbox_inches="tight", metadata={"Date": None})
            picture.set_layout_engine("none")  # the layout is done, and it takes most of the time
            picture.savefig(folder / f"{key}.png", bbox_inches="tight", dpi=160)
            illustrations.append(Illustration(key, captions.get(key, key)))
    return illustrations


WINDOW = 300.0
"""Seconds over which the speed is measured to estimate the time left."""


class Lines:
    """Progress of a reproduction, as one line per finished figure."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def begin(self, figure: Figure, trials: int, kept: int) -> None:
        """Begin a figure; an earlier call has run ``kept`` of its ``trials``."""

    def advance(self, figure: Figure) -> None:
        """Count one more finished trial of a figure."""

    def finish(self, report: Report) -> None:
        """Report a figure that is judged and drawn."""
        say(f"{report.name}: {report.summary()}")

    def note(self, text: str) -> None:
        """Show a message to the user."""
        complain(f"noregret: {text}")


class Bars(Lines):
    """Progress as bars: one for everything, in minutes of expected work, and one per figure, in trials."""

    def __init__(self, console: Any) -> None:
        rich = extra("rich.progress")
        columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn()
        self._progress = rich.Progress(
            *columns, "left", rich.TimeRemainingColumn(), console=console, speed_estimate_period=WINDOW
        )
        self._whole = self._progress.add_task("everything", total=0.0)
        self._bars: dict[str, Any] = {}
        self._steps: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._progress.__exit__(*exception)

    def begin(self, figure: Figure, trials: int, kept: int) -> None:
        """Add a bar for a figure; trials of an earlier call do not count in the bar for everything."""
        self._bars[figure.name] = self._progress.add_task(figure.name, total=trials, completed=kept)
        self._steps[figure.name] = figure.minutes / max(trials, 1)
        whole = self._progress.tasks[self._whole]
        more = (trials - kept) * self._steps[figure.name]
        self._progress.update(self._whole, total=(whole.total or 0.0) + more)

    def advance(self, figure: Figure) -> None:
        self._progress.advance(self._bars[figure.name])
        self._progress.advance(self._whole, self._steps[figure.name])

    def finish(self, report: Report) -> None:
        self._progress.console.print(f"{report.name}: {report.summary()}", highlight=False, markup=False)

    def note(self, text: str) -> None:
        self._progress.console.print(f"noregret: {text}", highlight=False, markup=False)


def watcher() -> Lines:
    """Progress bars if stderr is a terminal, else a line per figure."""
    console = extra("rich.console").Console(stderr=True)
    return Bars(console) if console.is_terminal else Lines()
