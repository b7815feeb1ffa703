"""The page: every figure beside the paper's claim and what became of it, in one HTML file that needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from noregret.experiments.judging.figure import OUTCOMES, Table, Verdict
from noregret.experiments.page.report import Illustration, Report, duration, found_in, runs_in
from noregret.files import write_atomically

NAME = "index.html"


def write_page(folder: Path) -> Path:
    """Write ``index.html`` from all the reports below a folder."""
    from noregret.experiments.figures import FIGURES, PAPERS

    reports = found_in(folder, list(FIGURES))
    text = page(reports, runs_in(folder), folder, PAPERS)
    write_atomically(folder / NAME, lambda file: file.write(text.encode()))
    return folder / NAME


def page(reports: Sequence[Report], runs: Sequence[dict[str, Any]], folder: Path, papers: dict[str, str]) -> str:
    """The whole page as HTML."""
    style = files("noregret.experiments.page").joinpath("page.css").read_text("utf-8")
    found = [paper for paper in papers if any(report.paper == paper for report in reports)]
    body = [_head(reports), _contents(reports, papers, found)]
    for paper in found:
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
        '<p class="warning">Some figures were run at less than their full scale. Their verdicts are about the scale '
        "that is given beside them, and may be others at the full one.</p>"
    )
    return (
        "<header><h1>The papers, reproduced</h1><p>Each figure or table of the four papers, run again, and claims of "
        "later ones, beside what the paper says. It is <em>as the paper says</em> if the 95&nbsp;% confidence interval "
        "of the test, over paired trials, lies wholly on the claim’s side, <em>against the paper</em> if it lies "
        "wholly on the other, and <em>undecided</em> if it contains the threshold. <em>Not comparable</em> are claims "
        "whose data or settings are not to be had.</p>"
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
    return (
        f'<article id="{_slug(report.name)}"><h3>{escape(report.title)} <small>{escape(report.name)}</small></h3>'
        f"<blockquote>{escape(report.says)}</blockquote>{_small(report)}"
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


def _small(report: Report) -> str:
    return f'<p class="warning">At a small scale: {escape(report.scale)}.</p>' if report.small else ""


def _settings(report: Report) -> str:
    about = {
        "scale": report.scale,
        "seed": f"{report.seed}; trial i has its i-th child",
        "time": f"{duration(report.seconds)} in all trials, finished {report.finished}",
        "versions": ", ".join(f"{name} {found}" for name, found in report.versions.items()),
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
