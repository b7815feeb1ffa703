"""How a reproduction is going: bars with the time left on a terminal, a line per finished figure elsewhere."""

from __future__ import annotations

from typing import Any, Self

from noregret.experiments.judging.figure import Figure
from noregret.experiments.page.report import Report
from noregret.extra import extra
from noregret.terminal import complain, say

WINDOW = 300.0
"""Seconds over which speed is measured, for the time left."""


class Lines:
    """A line per finished figure."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def begin(self, figure: Figure, trials: int, kept: int) -> None:
        pass

    def advance(self, figure: Figure) -> None:
        pass

    def finish(self, report: Report) -> None:
        say(f"{report.name}: {report.summary()}")

    def note(self, text: str) -> None:
        complain(f"noregret: {text}")


class Bars(Lines):
    """A bar for the whole, in minutes of expected work, and one for each figure, in trials."""

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
        """Add a bar for a figure; trials kept from an earlier call do not count in the bar of the whole."""
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
