"""Report: what came out of a figure, as a file, so that pages and galleries can be made from a folder of them."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

from noregret.experiments.judging.figure import OUTCOMES, Figure, Results, Setting, Table, Verdict
from noregret.files import write_atomically

NAME = "report.json"
RUNS = "runs.json"


class Illustration(NamedTuple):
    """A picture, stored as .svg and as .png: its file name without ending, and the caption below it."""

    file: str
    caption: str


class Curve(NamedTuple):
    """One row of the table of settings: a curve and the algorithm's repr as its trace recorded it."""

    panel: str
    label: str
    record: str


@dataclass(frozen=True)
class Report:
    """Everything that the page shows of a figure."""

    name: str
    title: str
    says: str
    how: str
    rounds: int
    trials: int
    full_rounds: int
    full_trials: int
    seed: int
    verdicts: Sequence[Verdict] = ()
    pictures: Sequence[Illustration] = ()
    tables: Sequence[Table] = ()
    curves: Sequence[Curve] = ()
    seconds: float = 0.0
    """The sum of the seconds of all trials."""
    failure: str = ""
    """The reason why no claim was decided; empty if claims were decided."""
    versions: Mapping[str, str] = field(default_factory=lambda: installed())
    finished: str = field(default_factory=lambda: now())

    @property
    def paper(self) -> str:
        """The paper: the first part of the figure's name."""
        return self.name.partition("/")[0]

    @property
    def small(self) -> bool:
        """Whether the figure was run at less than its full scale."""
        return self.rounds < self.full_rounds or self.trials < self.full_trials

    @property
    def scale(self) -> str:
        """The scale of the run in words, beside the full one if that is larger."""
        ours = f"{self.rounds:,} rounds, {self.trials} trials"
        return ours + (f"; in full: {self.full_rounds:,} rounds, {self.full_trials} trials" if self.small else "")

    @property
    def outcomes(self) -> Counter[str]:
        """How many claims had each outcome."""
        return Counter(verdict.outcome for verdict in self.verdicts)

    def summary(self) -> str:
        """The outcomes of the claims in one line."""
        if self.failure:
            return f"failed: {self.failure}"
        return f"claims: {counted(self.outcomes)}{f' ({self.scale})' if self.small else ''}"

    def save(self, folder: Path) -> None:
        """Write the report into the figure's own folder below ``folder``."""
        text = json.dumps(asdict(self) | {"pictures": list(self.pictures)}, indent=1)
        write_atomically(folder / self.name / NAME, lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a report that `save` has written."""
        fields = json.loads(path.read_bytes())
        for name, kind in (("verdicts", Verdict), ("pictures", Illustration), ("tables", Table), ("curves", Curve)):
            fields[name] = [kind(*item) for item in fields[name]]
        return cls(**fields)


def counted(outcomes: Counter[str]) -> str:
    """Numbers of claims by outcome, as text: ``3 as the paper says, 1 undecided``."""
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES if outcomes[outcome])


def described(figure: Figure, setting: Setting, **found: Any) -> Report:
    """A report of a figure run in this setting, with what was found."""
    says, how = " ".join(figure.says.split()), " ".join(figure.how.split())
    return Report(figure.name, figure.title, says, how, *setting.scale, *figure.scale, setting.seed, **found)


def curves_of(figure: Figure, results: Results) -> list[Curve]:
    """Who played in every panel, from the record of its first trial."""
    return [
        Curve(panel.title, label, getattr(trials[0], "algorithm", "") or getattr(trials[0], "about", ""))
        for panel in figure.panels
        for label, trials in results[panel.key].items()
    ]


def found_in(folder: Path, order: Sequence[str]) -> list[Report]:
    """All reports below a folder, in this order of their names; what cannot be read is left out."""
    reports = []
    for name in order:
        try:
            reports.append(Report.load(folder / name / NAME))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            continue
    return reports


def log_run(folder: Path, **entry: Any) -> None:
    """Add a line to the folder's list of runs."""
    runs = [*runs_in(folder), {"finished": now(), **entry}]
    write_atomically(folder / RUNS, lambda file: file.write(json.dumps(runs, indent=1).encode()))


def runs_in(folder: Path) -> list[dict[str, Any]]:
    """The folder's list of runs; empty if there is none that can be read."""
    try:
        return list(json.loads((folder / RUNS).read_bytes()))
    except (FileNotFoundError, ValueError):
        return []


def installed() -> dict[str, str]:
    """The versions and the machine that the numbers depend on."""
    found = {name: version(name) for name in ("noregret", "numpy", "scipy")}
    return found | {"python": platform.python_version(), "machine": platform.platform(terse=True)}


def now() -> str:
    """The time, to the second, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """A duration in seconds as text for people.

    Examples
    --------
    >>> duration(8.24), duration(75), duration(4020)
    ('8.2 s', '1 min 15 s', '1 h 7 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
