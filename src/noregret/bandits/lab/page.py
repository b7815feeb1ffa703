"""The page: every figure beside the paper's claims and their verdicts, in one HTML file that needs no other file.

It is made from `Report` files, one per figure, so that a later run adds figures to the same page.
"""

from __future__ import annotations

import json
import platform
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Self

from noregret.bandits.lab.figure import OUTCOMES, Figure, Setting, Table, Verdict
from noregret.extra import version
from noregret.files import write_atomically

REPORT, RUNS, PAGE = "report.json", "runs.json", "index.html"


class Illustration(NamedTuple):
    """A picture, stored as .svg and as .png: its file name without the suffix, and its caption."""

    file: str
    caption: str


class Curve(NamedTuple):
    """A row of the table of settings: a curve and the repr of its algorithm."""

    panel: str
    label: str
    record: str


@dataclass(frozen=True)
class Report:
    """Content of the page for one figure."""

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
    """Sum of the seconds of all trials."""
    failure: str = ""
    """Error that stopped the figure; empty if its claims were decided."""
    versions: Mapping[str, str] = field(default_factory=lambda: installed())
    finished: str = field(default_factory=lambda: now())

    @property
    def paper(self) -> str:
        """Paper: the first part of the figure's name."""
        return self.name.partition("/")[0]

    @property
    def small(self) -> bool:
        """True if the figure was run at less than its full scale."""
        return self.rounds < self.full_rounds or self.trials < self.full_trials

    @property
    def scale(self) -> str:
        """Scale of the run as text, with the full scale if that is larger."""
        ours = f"{self.rounds:,} rounds, {self.trials} trials"
        return ours + (f"; in full: {self.full_rounds:,} rounds, {self.full_trials} trials" if self.small else "")

    @property
    def outcomes(self) -> Counter[str]:
        """Number of claims by outcome."""
        return Counter(verdict.outcome for verdict in self.verdicts)

    def summary(self) -> str:
        """Outcomes of the claims in one line."""
        if self.failure:
            return f"failed: {self.failure}"
        return f"claims: {counted(self.outcomes)}{f' ({self.scale})' if self.small else ''}"

    def save(self, folder: Path) -> None:
        """Write the report into the figure's own folder below ``folder``."""
        text = json.dumps(asdict(self) | {"pictures": list(self.pictures)}, indent=1)
        write_atomically(folder / self.name / REPORT, lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a saved report."""
        fields = json.loads(path.read_bytes())
        for name, kind in (("verdicts", Verdict), ("pictures", Illustration), ("tables", Table), ("curves", Curve)):
            fields[name] = [kind(*item) for item in fields[name]]
        return cls(**fields)


def counted(outcomes: Counter[str]) -> str:
    """Number of claims by outcome as text: ``3 as the paper says, 1 undecided``."""
    return ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in OUTCOMES if outcomes[outcome])


def described(figure: Figure, setting: Setting, **found: Any) -> Report:
    """Report of a figure run in this setting, with its results."""
    says, how = " ".join(figure.says.split()), " ".join(figure.how.split())
    return Report(figure.name, figure.title, says, how, *setting.scale, *figure.scale, setting.seed, **found)


def found_in(folder: Path, order: Sequence[str]) -> list[Report]:
    """Reports below a folder, in this order of their names; unreadable reports are left out."""
    reports = []
    for name in order:
        try:
            reports.append(Report.load(folder / name / REPORT))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            continue
    return reports


def log_run(folder: Path, **entry: Any) -> None:
    """Add an entry to the folder's list of runs."""
    runs = [*runs_in(folder), {"finished": now(), **entry}]
    write_atomically(folder / RUNS, lambda file: file.write(json.dumps(runs, indent=1).encode()))


def runs_in(folder: Path) -> list[dict[str, Any]]:
    """List of runs of a folder; empty if it is absent or unreadable."""
    try:
        return list(json.loads((folder / RUNS).read_bytes()))
    except (FileNotFoundError, ValueError):
        return []


def installed() -> dict[str, str]:
    """Versions and machine that the numbers depend on."""
    versions = {"noregret": version(), "numpy": metadata.version("numpy"), "scipy": metadata.version("scipy")}
    return versions | {"python": platform.python_version(), "machine": platform.platform(terse=True)}


def now() -> str:
    """Current time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """Format a duration in seconds.

    Examples
    --------
    >>> duration(8.24), duration(75), duration(4020)
    ('8.2 s', '1 min 15 s', '1 h 7 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    return f"{minutes} min {remainder} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def write_page(folder: Path) -> Path:
    """Write ``index.html`` from all reports below a folder."""
    from noregret.bandits.lab.figures import FIGURES, PAPERS

    reports = found_in(folder, list(FIGURES))
    text = page(reports, runs_in(folder), folder, PAPERS)
    write_atomically(folder / PAGE, lambda file: file.write(text.encode()))
    return folder / PAGE


def page(reports: Sequence[Report], runs: Sequence[dict[str, Any]], folder: Path, papers: dict[str, str]) -> str:
    """Return the page as HTML."""
    style = files("noregret.bandits.lab").joinpath("page.css").read_text("utf-8")
    reported = [paper for paper in papers if any(report.paper == paper for report in reports)]
    body = [_head(reports), _contents(reports, papers, reported)]
    for paper in reported:
        body.append(f'<h2 id="{paper}">{escape(papers[paper])}</h2>')
        body += [_figure(report, folder) for report in reports if report.paper == paper]
    body.append(_foot(reports, runs))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>noregret: the papers reproduced</title><style>{style}</style></head>\n'
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _head(reports: Sequence[Report]) -> str:
    total = sum((report.outcomes for report in reports), Counter[str]())
    counts = "".join(f'<li class="{_slug(o)}"><b>{total[o]}</b> {o}</li>' for o in OUTCOMES)
    small = (
        '<p class="warning">Some figures were run at less than their full scale. Their verdicts hold for the scale '
        "given beside them and may differ at the full scale.</p>"
    )
    return (
        "<header><h1>The papers, reproduced</h1><p>Each figure or table of the four papers, run again beside the "
        "statement of the paper, and claims of later papers. A verdict is <em>as the paper says</em> if the whole 95% "
        "confidence interval of the test, over paired trials, is on the side of the claim, <em>against the paper</em> "
        "if it is on the other side, and <em>undecided</em> if it contains the threshold. <em>Not comparable</em> are "
        "claims whose data or settings are not available.</p>"
        f'<ul class="counts">{counts}</ul>'
        f"{small if any(report.small for report in reports) else ''}</header>"
    )


def _contents(reports: Sequence[Report], papers: dict[str, str], found: Iterable[str]) -> str:
    parts = []
    for paper in found:
        links = "".join(
            f'<li><a href="#{_slug(report.name)}">{escape(report.title)}</a> {_dots(report)}</li>'
            for report in reports
            if report.paper == paper
        )
        parts.append(f"<p>{escape(papers[paper])}</p><ul>{links}</ul>")
    return f"<nav>{''.join(parts)}</nav>"


def _dots(report: Report) -> str:
    if report.failure:
        return '<span class="pill failed">failed</span>'
    return " ".join(
        f'<span class="pill {_slug(outcome)}">{report.outcomes[outcome]} {outcome}</span>'
        for outcome in OUTCOMES
        if report.outcomes[outcome]
    )


def _figure(report: Report, folder: Path) -> str:
    pictures = "".join(_picture(report, picture, folder) for picture in report.pictures)
    verdicts = "".join(map(_verdict, report.verdicts))
    tables = "".join(map(_table, report.tables))
    failure = f'<pre class="failed">{escape(report.failure)}</pre>' if report.failure else ""
    small = f'<p class="warning">At a small scale: {escape(report.scale)}.</p>' if report.small else ""
    return (
        f'<article id="{_slug(report.name)}"><h3>{escape(report.title)} <small>{escape(report.name)}</small></h3>'
        f"<blockquote>{escape(report.says)}</blockquote>{small}"
        f'{failure}<div class="exhibits">{pictures}{tables}</div><ul class="verdicts">{verdicts}</ul>'
        f"{_settings(report)}</article>"
    )


def _picture(report: Report, picture: Illustration, folder: Path) -> str:
    content = b64encode((folder / report.name / f"{picture.file}.svg").read_bytes()).decode()
    alt = escape(f"{report.title}: {picture.caption}", quote=True)
    return f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{content}"></figure>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return f"<table><caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _verdict(verdict: Verdict) -> str:
    reason = f" ({escape(verdict.reason)})" if verdict.reason else ""
    return (
        f'<li><span class="pill {_slug(verdict.outcome)}">{verdict.outcome}</span> {escape(verdict.claim)}'
        f'<p class="numbers">{escape(verdict.numbers)}{reason}</p></li>'
    )


def _settings(report: Report) -> str:
    about = {
        "scale": report.scale,
        "seed": f"{report.seed}; trial i has its i-th child",
        "time": f"{duration(report.seconds)} in all trials, finished {report.finished}",
        "versions": ", ".join(f"{name} {release}" for name, release in report.versions.items()),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in about.items())
    curves = "".join(
        f"<dt>{escape(curve.panel)}: {escape(curve.label)}</dt><dd><code>{escape(curve.record)}</code></dd>"
        for curve in report.curves
    )
    return (
        f"<details><summary>How it was run: {escape(report.scale)}</summary><p>{escape(report.how)}</p>"
        f"<dl>{rows}{curves}</dl></details>"
    )


def _foot(reports: Sequence[Report], runs: Sequence[dict[str, Any]]) -> str:
    lines = "".join(
        f"<li>{escape(str(run['finished']))}: {len(run['figures'])} figures, {run['run']:,} trials run and "
        f"{run['kept']:,} found from before, in {duration(run['seconds'])} on {escape(run['engine'])}</li>"
        for run in runs
    )
    total = duration(sum(report.seconds for report in reports))
    return f"<footer><p>All trials together took {total} of one core.</p><ul>{lines}</ul></footer>"


def _slug(text: str) -> str:
    return text.replace(" ", "-").replace("/", "-")
