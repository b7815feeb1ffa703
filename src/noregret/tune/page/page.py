"""The report page: what was found, the evidence for it, and how it was measured, in one HTML file."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files

from noregret.tune.learning.findings import Findings, Point
from noregret.tune.page import pictures, prose, words
from noregret.tune.store.records import Record
from noregret.tune.study.study import without_password

MANY = 2000
"""The table of trials lists at most this number of trials, the last ones."""

LEGEND = {
    'class="chosen': 'Green <span class="key chosen"></span> is the best setting.',
    'class="odd': 'Orange <span class="key odd"></span> is an outlying measurement.',
    'class="failed': 'Circles <span class="key failed"></span> at the foot are failed runs.',
    'beyond"': "Arrowheads are measurements beyond the edge.",
}
"""What marks in a chart mean."""


def page(findings: Findings, *, script: str = "", nonce: str = "") -> str:
    """The whole page; ``script`` keeps a live one up to date."""
    style = files("noregret.tune.page").joinpath("page.css").read_text("utf-8")
    mark = f' nonce="{nonce}"' if nonce else ""
    note, code = ('<div id="live" role="status">live</div>', f"<script{mark}>{script}</script>") if script else ("", "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{words.html(findings.study.name)}: what was found</title><style{mark}>{style}</style></head>\n"
        f"<body>{note}<main>{content(findings)}</main>{code}</body></html>\n"
    )


def content(findings: Findings) -> str:
    """The part of the page that changes while a study goes on."""
    sections = [_head(findings), _best(findings)]
    if len(findings.done) > 1:
        sections += [
            _history(findings),
            _effects(findings),
            _candidates(findings),
            _noise(findings),
            _repeats(findings),
            _outliers(findings),
        ]
    return "".join([*sections, _failures(findings), _trials(findings), _how(findings), _foot()])


def _head(findings: Findings) -> str:
    return f"<header><h1>{words.html(findings.study.name)}</h1><p class='soft'>{prose.progress(findings)}</p></header>"


def _best(findings: Findings) -> str:
    best = findings.best
    if best is None:
        return f"<p>{prose.nothing(findings)}</p>"
    settings = "".join(
        f"<dt>{words.html(name)}</dt><dd>{words.html(words.value(value))}</dd>" for name, value in best.params.items()
    )
    return (
        f'<section class="best" id="best"><div><div>{prose.title(findings)}</div>'
        f'<div class="figure">{words.number(best.estimate)}{findings.unit}</div>'
        f"<div>{words.likely(best, findings.unit)}</div></div>"
        f'<dl class="settings">{settings}</dl></section>{_paragraphs(prose.how_sure(findings))}'
    )


def _history(findings: Findings) -> str:
    picture = pictures.history(findings)
    legend = " ".join(meaning for mark, meaning in LEGEND.items() if mark in picture)
    return (
        f'<section id="history"><h2>Every measurement</h2><figure>{picture}<figcaption>The band is where the best '
        f"setting’s true value probably lies. {legend}</figcaption></figure></section>"
    )


def _effects(findings: Findings) -> str:
    if not findings.effects:
        return ""
    charts = "".join(
        f"<figure><h3>{words.html(effect.name)}</h3>{pictures.effect(findings, effect)}"
        f"<figcaption>{words.html(prose.effect(findings, effect))}</figcaption></figure>"
        for effect in findings.effects
    )
    return (
        '<section id="effects"><h2>What each parameter does</h2><p>The line is the estimate when this parameter '
        "changes and all others stay at their best values (the dashed line is its own best value); the band is where "
        "the truth probably lies. Dots are all measurements, wherever the others stood. The most important parameter "
        "comes first.</p>"
        f'<div class="effects">{charts}</div></section>'
    )


def _noise(findings: Findings) -> str:
    return f'<section id="noise"><h2>How noisy the measurements are</h2>{_paragraphs(prose.noise(findings))}</section>'


def _candidates(findings: Findings) -> str:
    points = findings.candidates[:10]
    if not points:
        return ""
    return (
        '<section id="candidates"><h2>The best candidates</h2><p>Of '
        f"{len(findings.candidates)} candidates, those that probably are best. Bars show where the true value of each "
        f"probably lies.</p>{_settings(findings, points)}</section>"
    )


def _repeats(findings: Findings) -> str:
    points = sorted((p for p in findings.points if len(p.records) > 1), key=lambda p: -len(p.records))[:6]
    if not points or findings.candidates:
        return ""
    return (
        '<section id="repeats"><h2>Settings measured more than once</h2>'
        f"<p>{prose.repeats()}</p>{_settings(findings, points)}</section>"
    )


def _settings(findings: Findings, points: Sequence[Point]) -> str:
    """Points as a chart and a table, by number."""
    estimates = findings.predicted([point.params for point in points])[0]
    rows = [
        [str(i), words.number(estimate), str(len(point.records)), *words.cells(point.params, findings.study.names)]
        for i, (point, estimate) in enumerate(zip(points, estimates, strict=True), 1)
    ]
    return pictures.settings(findings, points) + _table(
        ["setting", "estimate", "measured", *findings.study.names], rows
    )


def _outliers(findings: Findings) -> str:
    if not findings.outliers:
        return ""
    shown = findings.outliers[-20:]
    rows = [[f"{100 * findings.weights[record.number]:.2g} %", *_row(findings, record)] for record in shown]
    return (
        f'<section id="outliers"><h2>Outlying measurements</h2><p>{prose.outliers(findings)}</p>'
        f"{_table(['counts for', *_columns(findings)], rows)}</section>"
    )


def _failures(findings: Findings) -> str:
    if not findings.failed:
        return ""
    counted = Counter(record.failure for record in findings.failed)
    rows = [[str(count), reason] for reason, count in counted.most_common(20)]
    last = findings.failed[-1].stderr.strip()
    error = (
        f"<details><summary>Error output of the last one</summary><pre>{words.html(last)}</pre></details>"
        if last
        else ""
    )
    return (
        f'<section id="failures"><h2>Failed runs</h2><p>{prose.failures()}</p>'
        f"{_table(['runs', 'reason'], rows, wordy=1)}{error}</section>"
    )


def _trials(findings: Findings) -> str:
    records = findings.records[-MANY:]
    odd = {record.number for record in findings.outliers}
    rows = [_row(findings, record) for record in reversed(records)]
    marked = [record.number in odd for record in reversed(records)]
    return (
        f'<section id="trials"><h2>All trials</h2><details><summary>{len(records)} trials, the last first</summary>'
        f"{_table(_columns(findings), rows, marked)}</details></section>"
    )


def _how(findings: Findings) -> str:
    study = findings.study
    facts = {
        "command": shlex.join(study.words),
        "goal": f"{study.goal} {prose.measured(study.result)}",
        "storage": without_password(study.storage),
        "seed": str(study.seed),
    }
    rows = "".join(f"<dt>{name}</dt><dd><code>{words.html(text)}</code></dd>" for name, text in facts.items())
    return f'<section id="how"><h2>How it was measured</h2><dl class="settings">{rows}</dl></section>'


def _foot() -> str:
    return f"<footer>Written by noregret {version('noregret')}, {datetime.now():%Y-%m-%d %H:%M}.</footer>"


def _columns(findings: Findings) -> list[str]:
    return ["trial", "result", "took", *findings.study.names]


def _row(findings: Findings, record: Record) -> list[str]:
    result = words.number(record.value, 6) if record.value is not None else record.state
    took = words.duration(record.seconds) if record.finished else ""
    return [str(record.number), result, took, *words.cells(record.params, findings.study.names)]


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], marked: Iterable[bool] = (), wordy: int | None = None
) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=wordy' if i == wordy else ''}>{words.html(cell)}</{tag}>" for i, cell in enumerate(row)
        )

    rows = list(rows)
    odd = list(marked) or [False] * len(rows)
    body = "".join(
        f"<tr{' class=odd' if mark else ''}>{cells(row, 'td')}</tr>" for row, mark in zip(rows, odd, strict=True)
    )
    return (
        f'<div class="scroll"><table><thead><tr>{cells(header, "th")}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{words.html(sentence)}</p>" for sentence in sentences)
