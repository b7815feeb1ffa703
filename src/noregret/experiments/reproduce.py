"""Reproduce: run the trials of figures, judge and draw each when its trials are done, and write the page.

Every finished trial is on the disk before the next result is looked at. Whatever stops a run (Ctrl-C, a killed process,
a power cut) loses the trials in flight and nothing else: the same command goes on from there.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from noregret.experiments.judging.figure import Figure, Results, Scale, Setting, Task
from noregret.experiments.page.page import write_page
from noregret.experiments.page.report import Illustration, Report, curves_of, described, log_run
from noregret.experiments.running.measurement import Measurement
from noregret.experiments.running.parallel import Engine
from noregret.experiments.running.trace import Trace, set_aside
from noregret.extra import extra


@dataclass(frozen=True)
class Order:
    """What to reproduce, how large, where from and where to."""

    figures: Sequence[Figure]
    out: Path
    quick: bool = False
    rounds: int | None = None
    trials: int | None = None
    seed: int = 0
    data: Path | None = None
    engine: Engine = field(default_factory=Engine)

    def setting(self, figure: Figure) -> Setting:
        """The rounds and trials to run: those asked for, else the figure's own."""
        scale = figure.quick if self.quick else figure.scale
        return Setting(Scale(self.rounds or scale.rounds, self.trials or scale.trials), self.seed, self.data)


class Watcher(Protocol):
    """An object that is told about the progress of a reproduction."""

    def begin(self, figure: Figure, trials: int, kept: int) -> None:
        """Work on a figure begins; of its ``trials``, ``kept`` were run by an earlier call."""
        ...

    def advance(self, figure: Figure) -> None:
        """One more trial of a figure is done."""
        ...

    def finish(self, report: Report) -> None:
        """A figure is judged and drawn."""
        ...

    def note(self, text: str) -> None:
        """A message for the person who started the reproduction."""
        ...


class Failure(NamedTuple):
    """A trial that raised an error."""

    text: str


def reproduce(order: Order, watcher: Watcher) -> list[Report]:
    """Run, judge and draw figures.

    Returns
    -------
    list of Report
        In the order in which the figures were finished.
    """
    start, reports = perf_counter(), list[Report]()
    works = [_Work(figure, order, watcher) for figure in order.figures]
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
    """Make a trial; an error becomes a `Failure`, so that it stops its own figure only."""
    try:
        return work()
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}")


class _Work:
    """The trials of one figure, and which of them have not been run yet."""

    def __init__(self, figure: Figure, order: Order, watcher: Watcher) -> None:
        self.figure, self.setting, self.folder = figure, order.setting(figure), order.out / "trials"
        self.keys, self.tasks = list[str](), list[Task]()
        for panel in figure.panels:
            tasks = panel.tasks(self.setting)
            self.tasks += tasks
            self.keys += [panel.key] * len(tasks)
        self.failure = ""
        self.waiting = {task.path: task for task in self.tasks if not self._is_kept(task, watcher)}
        watcher.begin(figure, len(self.tasks), len(self.tasks) - len(self.waiting))

    def receive(self, path: Path, outcome: Trace | Measurement | Failure) -> None:
        """Write down the result of a trial that has just been run."""
        del self.waiting[path]
        if isinstance(outcome, Failure):
            self.failure = outcome.text
            return
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        outcome.save(self.folder / path)

    def results(self) -> Results:
        """The results of all trials, read from the disk."""
        found: dict[str, dict[str, list[Any]]] = {key: {} for key in self.keys}
        for key, task in zip(self.keys, self.tasks, strict=True):
            found[key].setdefault(task.label, []).append(task.kind.load(self.folder / task.path))
        return found

    def _is_kept(self, task: Task, watcher: Watcher) -> bool:
        try:
            task.kind.load(self.folder / task.path)
        except FileNotFoundError:
            return False
        except ValueError as error:
            aside = ", ".join(file.name for file in set_aside(self.folder / task.path))
            watcher.note(f"{error} (set aside as {aside})")
            return False
        return True


def _finished(work: _Work, order: Order, watcher: Watcher) -> Report:
    """Judge and draw a figure whose trials are all there, and bring the page up to date."""
    try:
        report = _failed(work, work.failure) if work.failure else _judged(work, order.out)
    except Exception as error:
        report = _failed(work, f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}")
    (order.out / report.name).mkdir(parents=True, exist_ok=True)
    report.save(order.out)
    write_page(order.out)
    watcher.finish(report)
    return report


def _failed(work: _Work, text: str) -> Report:
    return described(work.figure, work.setting, failure=text)


def _judged(work: _Work, out: Path) -> Report:
    figure, results = work.figure, work.results()
    return described(
        figure,
        work.setting,
        verdicts=figure.judge(results, work.setting.scale),
        pictures=_drawn(figure, results, out / figure.name),
        tables=list(figure.tabulate(figure, results)),
        curves=curves_of(figure, results),
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
            picture.set_layout_engine("none")  # it is laid out now, and laying out takes most of the time
            picture.savefig(folder / f"{key}.png", bbox_inches="tight", dpi=160)
            illustrations.append(Illustration(key, captions.get(key, key)))
    return illustrations
