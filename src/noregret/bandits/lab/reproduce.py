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

from noregret.bandits.lab.figure import Figure, Results, Scale, Setting
from noregret.bandits.lab.page import Curve, Illustration, Report, described, log_run, write_page
from noregret.bandits.lab.trace import Measurement, Trace
from noregret.bandits.lab.trials import Engine, Work
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
    works = [_FigureWork(figure, order, watcher) for figure in order.figures]
    queue = {task.path: task for work in works for task in work.waiting.values()}  # figures may share trials
    kept = len({task.path for work in works for task in work.tasks}) - len(queue)
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


class _FigureWork(Work):
    """The trials of one figure. A trial that failed counts as finished."""

    def __init__(self, figure: Figure, order: Order, watcher: Lines) -> None:
        self.figure, self.setting, self.failure = figure, order.setting(figure), ""
        tasks = [task for panel in figure.panels for task in panel.tasks(self.setting)]
        super().__init__(tasks, order.out / "trials", watcher.note)
        watcher.begin(figure, len(tasks), len(tasks) - len(self.waiting))

    def receive(self, path: Path, result: Trace | Measurement | Failure) -> None:
        if isinstance(result, Failure):
            self.failure = result.text
            del self.waiting[path]
        else:
            super().receive(path, result)


def _finished(work: _FigureWork, order: Order, watcher: Lines) -> Report:
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


def _judged(work: _FigureWork, out: Path) -> Report:
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
    """Progress of a reproduction: one line per finished figure, below which bars run if there is a ``console``.

    One bar is for everything, in minutes of expected work, and one for each figure, in trials.
    """

    def __init__(self, console: Any = None) -> None:
        self._bars: dict[str, Any] = {}
        self._steps: dict[str, float] = {}
        self._progress: Any = None
        if console is not None:
            rich = extra("rich.progress")
            columns = rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn()
            self._progress = rich.Progress(
                *columns, "left", rich.TimeRemainingColumn(), console=console, speed_estimate_period=WINDOW
            )
            self._whole = self._progress.add_task("everything", total=0.0)

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress:
            self._progress.stop()

    def begin(self, figure: Figure, trials: int, kept: int) -> None:
        """Begin a figure, of whose trials an earlier call has run ``kept``: they count in its own bar only."""
        if self._progress:
            self._bars[figure.name] = self._progress.add_task(figure.name, total=trials, completed=kept)
            self._steps[figure.name] = figure.minutes / max(trials, 1)
            whole = self._progress.tasks[self._whole]
            more = (trials - kept) * self._steps[figure.name]
            self._progress.update(self._whole, total=(whole.total or 0.0) + more)

    def advance(self, figure: Figure) -> None:
        """Count one more finished trial of a figure."""
        if self._progress:
            self._progress.advance(self._bars[figure.name])
            self._progress.advance(self._whole, self._steps[figure.name])

    def finish(self, report: Report) -> None:
        """Report a figure that is judged and drawn."""
        say(f"{report.name}: {report.summary()}")

    def note(self, text: str) -> None:
        """Show a message to the user."""
        complain(f"noregret: {text}")


def watcher() -> Lines:
    """Progress with bars if stderr is a terminal."""
    console = extra("rich.console").Console(stderr=True)
    return Lines(console if console.is_terminal else None)
