"""The report page: findings, their evidence, and how they were measured, in one HTML file."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import shlex
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from noregret.optimizer import Choice, Share
from noregret.tune.learning.findings import Findings, Point, unit_of
from noregret.tune.learning.fronts import FrontFindings
from noregret.tune.page import fronts, pictures, prose, words
from noregret.tune.store.exporting import columns, context_columns, exported
from noregret.tune.store.records import Record
from noregret.tune.study.importing import constraint_column, fidelity_columns, parameter_column, value_columns
from noregret.tune.study.study import Params, groups, text, without_password

MOST_EFFECTS = 24
"""Largest number of parameters with a chart of their own, the most important ones."""

LEGEND = {
    "line": "{line}",
    "band": "{band}",
    "mark": "the best value",
    "dot": "a measurement",
    "chosen": "a measurement of {chosen}",
    "yours": "a measurement of your settings",
    "broken": "a measurement that breaks a constraint",
    "early": "a measurement at a lower fidelity",
    "odd": "an outlying measurement",
    "cut": "a run cut short: its value is beyond the mark",
    "failed": "a failed run",
    "beyond": "a measurement beyond the edge",
    "thread": "a measurement",
    "good": "one of the best tenth",
    "pick": "the best setting",
    "recommended": "{picked}",
    "front": "a setting of the front, by the model",
    "cross": "{band}",
    "ran": "a trial",
    "lost": "a failed trial",
    "runs": "running",
}
"""Meaning of the marks in a chart."""


MOST_IN_COLUMN = 8
"""Largest number of parameters of the best setting that are listed beside it; more are listed below in columns."""
NAV = {
    "front": "Front",
    "trades": "Trade-offs",
    "best": "Best",
    "against": "Comparison",
    "contexts": "Contexts",
    "history": "Measurements",
    "importance": "Importance",
    "effects": "Effects",
    "together": "Map",
    "parallel": "All parameters",
    "candidates": "Candidates",
    "noise": "Noise",
    "failures": "Failures",
    "costs": "Costs",
    "timeline": "Timeline",
    "trials": "Trials",
}
"""Sections that the top of the page links to, by id."""
SHOWN = 50
"""Largest number of the best trials, and of the last ones, in the table; ``trials.js`` adds the others."""
KEPT = 20_000
"""Largest number of trials in the CSV, the last ones."""


def page(
    findings: Findings,
    inside: str | None = None,
    *,
    against: Findings | None = None,
    script: str = "",
    nonce: str = "",
) -> str:
    """The whole page, around its `content` if that is given.

    ``against`` is another study to compare with. ``script`` keeps a live page up to date; the server allows scripts and
    styles with this ``nonce``.
    """
    style, code = _file("page.css"), _file("trials.js") + _file("charts.js") + script
    mark = f' nonce="{nonce}"' if nonce else ""
    note = '<div id="live" role="status">live</div>' if script else ""
    main = content(findings, against) if inside is None else inside
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{"" if nonce else _policy(style, code)}'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{words.html(findings.study.name)}: what was found</title><style{mark}>{style}</style></head>\n"
        f"<body>{note}<main>{main}</main><script{mark}>{code}</script></body></html>\n"
    )


def _file(name: str) -> str:
    return files("noregret.tune.page").joinpath(name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Security policy of the page: a browser may load and run this style and this script only."""
    style, script = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    policy = f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:"
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def content(findings: Findings, against: Findings | None = None) -> str:
    """The part of the page that changes while a study runs."""
    if isinstance(findings, FrontFindings):
        sections = [_front(findings), _importance(findings), _outliers(findings)]
    else:
        sections = [_best(findings), _against(findings, against) if against else "", _contexts(findings)]
    if findings.has_intervals:
        sections += [
            _history(findings),
            _importance(findings),
            _effects(findings),
            _together(findings),
            _all_at_once(findings),
            _candidates(findings),
            _noise(findings),
            _repeats(findings),
            _outliers(findings),
        ]
    sections += [_failures(findings), _costs(findings), _timeline(findings), _trials(findings), _how(findings)]
    inside = "".join(sections)
    present = [(its, name) for its, name in NAV.items() if f'id="{its}"' in inside]
    links = "".join(f'<a href="#{its}">{name}</a>' for its, name in present)
    name, progress = words.html(findings.study.name), prose.progress(findings)
    return (
        f"<header><h1>{name}</h1><p class='soft'>{progress}</p></header>"
        f"<nav>{links if len(present) > 3 else ''}</nav>{inside}{_data(findings)}"
        f"<footer>Written by noregret {version('noregret')}, {datetime.now():%Y-%m-%d %H:%M}.</footer>"
    )


def _data(findings: Findings) -> str:
    """Everything that ``charts.js`` needs besides the trials, which it reads from the download, as JSON.

    ``blank`` are the values that are nothing in the download, by parameter.
    """
    space = findings.study.space if isinstance(findings.study.space, Mapping) else {}
    data: dict[str, Any] = {
        "names": list(findings.study.names),
        "context": context_columns(findings.study),
        "order": [*findings.importance, *(name for name in findings.study.names if name not in findings.importance)],
        "unit": findings.unit,
        "label": findings.label,
        "results": [
            [column, name or findings.label, unit_of(its)]
            for (name, column), its in zip(value_columns(findings.study).items(), findings.study.sought, strict=True)
        ],
        "first": columns(findings.study, findings.records).index(parameter_column(findings.study.names[0])),
        "columns": _origins(findings),
        "blank": {
            name: text(option)
            for name, its in space.items()
            for option in (its.options if isinstance(its, Choice) else ())
            if option in ("", None)
        },
        "kinds": {str(number): kind for number, kind in findings.kinds.items() if kind != "dot"},
    }
    if findings.has_intervals and findings.surfaces:
        data["maps"] = pictures.maps(findings)
    if findings.spans:
        size = pictures.time_unit(findings)[1]
        data["spans"] = [
            [n, round(its.start / size, 4), round(its.end / size, 4), its.worker] for n, its in findings.spans.items()
        ]
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{written}</script>'


def _origins(findings: Findings) -> list[list[float | None]]:
    """The column of the download for each column of the table of trials, and the bounds on it."""
    study, header = findings.study, columns(findings.study, findings.records)
    seconds = ["seconds"] if findings.timed else []
    others = [*seconds, *context_columns(study), *fidelity_columns(study), *map(parameter_column, study.names)]
    found: list[list[float | None]] = [[header.index(name)] for name in ("trial", *value_columns(study).values())]
    found += [[header.index(constraint_column(name)), its.min, its.max] for name, its in study.constraints.items()]
    return found + [[header.index(name)] for name in others]


def _front(findings: FrontFindings) -> str:
    """The front of several objectives, and what can be traded for what."""
    if not findings.front:
        return f"<p>{'Too few measurements for a front.' if findings.done else prose.nothing(findings)}</p>"
    drawn = "".join(f"<figure>{fronts.picture(findings, *pair)}</figure>" for pair in fronts.pairs(findings))
    rows = fronts.trades(findings)
    traded = (
        '<section id="trades"><h2>Trade-offs</h2><p>What one gives up along the front, by the estimates; the last line '
        f"is from its first setting to its last.</p>{_table(['settings', 'in words'], rows, wordy=1)}</section>"
    )
    return (
        f"{_picked(findings)}"
        f'<section id="front"><h2>The front</h2>{_paragraphs(fronts.about(findings))}{drawn}{_legend(findings, drawn)}'
        f"{_table(*fronts.table(findings))}{_paragraphs(prose.why_over(findings))}</section>{traded if rows else ''}"
    )


def _picked(findings: FrontFindings) -> str:
    """The setting that was picked from the front."""
    its = findings.picked
    if its is None:
        return ""
    return (
        f'<section class="best" id="best"><div><div>Picked by {words.html(str(findings.wish))}</div>'
        f'<p class="gain">{words.html(fronts.in_words(findings, its))}</p>'
        f"{_paragraphs(fronts.about_pick(findings))}</div>"
        f"{_setting(its.params, findings.command_of(its))}</section>"
    )


def _best(findings: Findings) -> str:
    best = findings.best
    if best is None:
        return f"<p>{prose.nothing(findings)}</p>"
    gain = f'<p class="gain">{words.html(prose.headline(findings.gain))}</p>' if findings.gain else ""
    return (
        f'<section class="best" id="best"><div><div>{prose.title(findings)}</div>'
        f'<div class="figure">{words.number(best.estimate)}{findings.unit}</div>'
        f"<div>{words.likely(best, findings.unit)}</div>{gain}</div>"
        f"{_setting(best.params, findings.command)}</section>"
        f"{_changes(findings)}{_paragraphs(prose.how_sure(findings))}"
    )


def _setting(params: Params, command: str | None) -> str:
    """A setting and its command; a script adds the button that copies it."""
    rows = (f"<div><dt>{words.html(n)}</dt><dd>{words.html(words.value(its))}</dd></div>" for n, its in params.items())
    many = " many" if len(params) > MOST_IN_COLUMN else ""
    shown = f'<div class="command"><code>{words.html(command)}</code></div>' if command else ""
    return f'<dl class="settings{many}">{"".join(rows)}</dl>{shown}'


def _changes(findings: Findings) -> str:
    """The changes that matter, the most worth first."""
    changes = findings.best.changes if findings.best else []
    if not changes:
        return ""
    rows = [
        [name, words.value(old), words.value(new), words.number(gain), " to ".join(words.between(lower, upper))]
        for name, old, new, gain, lower, upper in changes
    ]
    header = ["change", "from", "to", f"gain ({findings.unit.strip() or findings.label})", "probably"]
    is_forced = findings.study.constraints and any(change.upper < 0 for change in changes)
    forced = "<p>A change that gains less than nothing is there because of the constraints.</p>" if is_forced else ""
    return f"<p>Changes to your settings, with what each gains, the largest first:</p>{_table(header, rows)}{forced}"


def _against(findings: Findings, other: Findings) -> str:
    """The same findings of another study beside these."""
    title = f'<section id="against"><h2>Compared with {words.html(other.study.name)}</h2>'
    if findings.best is None or other.best is None:
        return f"{title}<p>{prose.nothing(other if findings.best else findings)}</p></section>"
    both, names = (findings, other), dict.fromkeys([*findings.study.names, *other.study.names])
    found = [
        [findings.label, *(words.number(its.best.estimate) for its in both if its.best)],
        ["probably", *(" to ".join(words.between(its.best.lower, its.best.upper)) for its in both if its.best)],
        ["measurements", *(f"{len(its.done):,}" for its in both)],
        ["failed runs", *(f"{len(its.failed):,}" for its in both)],
    ]
    settings = [[name, *(words.cells(its.best.params, [name])[0] for its in both if its.best)] for name in names]
    marked = [False] * len(found) + [row[1] != row[2] for row in settings]
    picture = pictures.against(findings, other) if findings.best_so_far or other.best_so_far else ""
    keys = "".join(
        f'<li><span class="key line{kind}"></span>best so far in {words.html(its.study.name)}</li>'
        for its, kind in zip(both, ("", "other"), strict=True)
    )
    return (
        f"{title}{_paragraphs(prose.against(findings, other))}<figure>{picture}"
        f'<ul class="legend">{keys if picture else ""}</ul></figure>'
        f"{_table(['', *(its.study.name for its in both)], [*found, *settings], marked, wordy=0)}</section>"
    )


def _timeline(findings: Findings) -> str:
    if len(findings.spans) < 2 or not any(span.end for span in findings.spans.values()):
        return ""
    picture = pictures.timeline(findings)
    return (
        f'<section id="timeline"><h2>Timeline</h2><p>{prose.timeline(findings)}</p><figure>{picture}'
        f"{_legend(findings, picture)}</figure></section>"
    )


def _costs(findings: Findings) -> str:
    """The best so far by what was spent, if trials differ much in their cost or improvement is weighed by it."""
    is_weighed = findings.study.weighs_costs and any(record.cost for record in findings.records)
    if not findings.best_so_far or not findings.costs or not (is_weighed or findings.usual_costs):
        return ""
    picture = pictures.spent(findings)
    line = "best setting so far (judged with all data)"
    return (
        f'<section id="costs"><h2>Costs</h2>{_paragraphs(prose.costs(findings, is_weighed))}<figure>{picture}'
        f"{_legend(findings, picture, line=line)}</figure></section>"
    )


def _contexts(findings: Findings) -> str:
    if not findings.recommended:
        return ""
    given, gain = list(findings.study.context or ()), ["compared with your settings"] if findings.gain else []
    header = [*given, findings.label, "probably", *findings.study.names, *gain]
    rows = [
        [
            *words.cells(its.context, given),
            words.number(its.best.estimate),
            " to ".join(words.between(its.best.lower, its.best.upper)),
            *_setting_cells(findings, its.best.params),
            *([str(its.gain)] if its.gain else []),
        ]
        for its in findings.recommended
    ]
    wordy = len(header) - 1 if gain else None
    return (
        f'<section id="contexts"><h2>The best setting by context</h2><p>{prose.contexts(findings)}</p>'
        f"{_table(header, rows, wordy=wordy)}</section>"
    )


def _history(findings: Findings) -> str:
    picture = pictures.history(findings)
    line = "best setting so far (judged with all data)"
    return (
        f'<section id="history"><h2>Every measurement</h2><figure>{picture}'
        f"{_legend(findings, picture, line=line)}</figure>"
        f"{_paragraphs([*prose.cut_short(findings), *prose.thinned(findings)])}</section>"
    )


def _importance(findings: Findings) -> str:
    shares = {"": (findings.importance, findings.importance_among_better)} if findings.importance else {}
    if isinstance(findings, FrontFindings):
        shares = findings.shares
    if not shares:
        return ""
    tables = "".join(
        f"{f'<h3>{words.html(name)}</h3>' if name else ''}"
        f'<table class="shares"><tbody>{_share_rows(*both)}</tbody></table>'
        for name, both in shares.items()
    )
    said = prose.importance(
        [share for whole, _ in shares.values() for share in whole.values()], several=len(shares) > 1
    )
    return (
        f'<section id="importance"><h2>Which parameters matter</h2>{_paragraphs(said)}'
        '<ul class="legend"><li><span class="key whole"></span>over the whole space</li>'
        f'<li><span class="key better"></span>among the better half</li></ul>{tables}</section>'
    )


def _share_rows(importance: Mapping[str, Share], among_better: Mapping[str, Share]) -> str:
    rows = ""
    for name, whole in importance.items():
        both = whole, among_better[name]
        middles = "<br>".join(words.percent(share.estimate) for share in both)
        ends = "<br>".join(f"{words.percent(share.lower)} to {words.percent(share.upper)}" for share in both)
        rows += (
            f"<tr><th>{words.html(name)}</th><td>{pictures.share(*both)}</td>"
            f"<td>{middles}</td><td class='soft'>{ends}</td></tr>"
        )
    return rows


def _effects(findings: Findings) -> str:
    shown = findings.effects[:MOST_EFFECTS]
    if not shown:
        return ""
    drawn = {effect.name: pictures.effect(findings, effect) for effect in shown}
    charts = "".join(
        f"<figure><h3>{words.html(effect.name)}</h3>{drawn[effect.name]}"
        f"<figcaption>{words.html(prose.effect(findings, effect))}</figcaption></figure>"
        for effect in shown
    )
    line = "the estimate when this parameter changes and all others stay at their best values"
    return (
        '<section id="effects"><h2>What each parameter does</h2>'
        f"{_paragraphs(prose.elsewhere(findings))}{_legend(findings, ''.join(drawn.values()), line=line)}"
        f'<div class="effects">{charts}</div>{_paragraphs(prose.left_out(len(findings.effects), len(shown)))}</section>'
    )


def _together(findings: Findings) -> str:
    if not findings.surfaces:
        return ""
    surface = findings.surfaces[0]
    picture = pictures.contour(findings, surface)
    worst, best = prose.ends(findings, surface)
    title = "The two that matter most, together" if findings.importance else "The first two parameters, together"
    return (
        f'<section id="together"><h2>{title}</h2><figure class="beside"><div>{picture}</div>'
        '<div><div id="choice"></div>'
        f'<ul class="legend"><li>estimate: <span id="worst">{worst}</span> {pictures.shades()} '
        f'<span id="most">{best}</span></li></ul>'
        f"{_legend(findings, picture)}<figcaption>The other parameters stay at their best values; dots are all "
        "measurements, whatever their other values.</figcaption></div></figure></section>"
    )


def _all_at_once(findings: Findings) -> str:
    if len(findings.importance) < 2:
        return ""
    picture = pictures.parallel(findings)
    return (
        '<section id="parallel"><h2>All parameters at once</h2><p>A line for each measurement, from its result on top '
        f"through the values of its parameters, the most important first.</p><figure>{picture}"
        f"{_legend(findings, picture)}</figure></section>"
    )


def _noise(findings: Findings) -> str:
    return f'<section id="noise"><h2>How noisy the measurements are</h2>{_paragraphs(prose.noise(findings))}</section>'


def _candidates(findings: Findings) -> str:
    points = findings.candidates[:10]
    if not points or findings.context:
        return ""
    return (
        f'<section id="candidates"><h2>The best candidates</h2><p>{prose.candidates(findings)}</p>'
        f"{_settings(findings, points)}</section>"
    )


def _repeats(findings: Findings) -> str:
    points = sorted((p for p in findings.points if len(p.records) > 1), key=lambda p: -len(p.records))[:6]
    if not points or findings.candidates or findings.context:
        return ""
    return (
        '<section id="repeats"><h2>Settings measured more than once</h2>'
        f"<p>{prose.repeats()}</p>{_settings(findings, points)}</section>"
    )


def _settings(findings: Findings, points: Sequence[Point]) -> str:
    """Points as a chart and a table, by number."""
    estimates = findings.predicted([point.params for point in points])[0]
    rows = [
        [str(i), words.number(estimate), *_spread(point), *_setting_cells(findings, point.params)]
        for i, (point, estimate) in enumerate(zip(points, estimates, strict=True), 1)
    ]
    picture = pictures.settings(findings, points)
    header = ["setting", "estimate", "measured", "mean", "spread (std)", *findings.study.names]
    return picture + _legend(findings, picture, line="the estimate") + _table(header, rows)


def _spread(point: Point) -> list[str]:
    """Number, mean and standard deviation of a point's observations."""
    values = point.values
    mean = words.number(float(values.mean())) if len(values) else ""
    return [str(len(values)), mean, words.number(float(values.std(ddof=1))) if len(values) > 1 else ""]


def _outliers(findings: Findings) -> str:
    if not findings.outliers:
        return ""
    shown = findings.outliers[-20:]
    rows = [[words.percent(findings.weights[record.number]), *_row(findings, record)] for record in shown]
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


def _how(findings: Findings) -> str:
    study = findings.study
    if not study.command:
        return ""
    facts = {
        **({"prepare": shlex.join(itertools.chain(*groups(study.prepare)))} if study.prepare else {}),
        "command": shlex.join([*(f"{name}={value}" for name, value in study.env.items()), *study.words]),
        **(
            {name: f"{its.goal} {prose.measured(its.result)}" for name, its in study.objectives.items()}
            or {"goal": f"{study.goal} {prose.measured(study.result)}"}
        ),
        "storage": without_password(study.storage),
        "seed": str(study.seed),
    }
    rows = "".join(f"<dt>{name}</dt><dd><code>{words.html(text)}</code></dd>" for name, text in facts.items())
    return f'<section id="how"><h2>How it was measured</h2><dl class="settings">{rows}</dl></section>'


def _legend(findings: Findings, picture: str, *, line: str = "") -> str:
    """Legend of the marks in a picture."""
    level = findings.best.level if findings.best else 0.95
    band = f"where its true value probably lies ({words.percent(level)})"
    several = isinstance(findings, FrontFindings)
    said = {"chosen": "a setting of the front" if several else "the best setting"}
    said |= {"picked": "the setting that was picked" if several else "the best setting"}
    shown = [(kind, meaning) for kind, meaning in LEGEND.items() if re.search(rf'class="([^"]* )?{kind}[ "]', picture)]
    items = "".join(
        f'<li><span class="key {kind}"></span>{meaning.format(line=line, band=band, **said)}</li>'
        for kind, meaning in shown
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{words.html(sentence)}</p>" for sentence in sentences)


def _trials(findings: Findings) -> str:
    """The section with all trials; a script makes it sort and filter, it can be read without."""
    if not findings.records:
        return ""
    records = _listed(findings)
    odd = {record.number for record in findings.outliers}
    rows = [_row(findings, record) for record in reversed(records)]
    marked = [record.number in odd for record in reversed(records)]
    name = words.html(f"{findings.study.name}.csv".replace("/", "-"))
    table = gzip.compress(exported(findings.study, findings.records[-KEPT:], "csv"), mtime=0)
    data = base64.b64encode(table).decode()
    return (
        f'<section id="trials"><h2>All trials</h2><p><span class="few">{_about_list(findings, len(records))}</span> '
        f'<a download="{name}.gz" href="data:application/gzip;base64,{data}">Download as CSV</a></p>'
        f"<details><summary>{len(records):,} trials, the last first</summary>"
        f"{_table(_columns(findings), rows, marked)}</details></section>"
    )


def _listed(findings: Findings) -> list[Record]:
    """All trials; of very many, the best and the last."""
    records = list(findings.records)
    if len(records) <= 2 * SHOWN:
        return records
    sign = 1 if findings.study.goal == "minimize" else -1
    best = sorted(findings.done, key=lambda record: sign * (record.value or 0.0))[:SHOWN]
    if isinstance(findings, FrontFindings):
        best = [record for record in findings.done if findings.kinds[record.number] == "chosen"][-SHOWN:]
    kept = {record.number for record in [*best, *records[-SHOWN:]]}
    return [record for record in records if record.number in kept]


def _about_list(findings: Findings, shown: int) -> str:
    count = len(findings.records)
    said = f"The {SHOWN:,} best and the {SHOWN:,} last of {count:,} trials are listed." if shown < count else ""
    left = f" The download has the last {KEPT:,}." if count > KEPT else " The download has all." if said else ""
    return said + left


def _columns(findings: Findings) -> list[str]:
    """The header of a table of trials."""
    seconds = ["seconds"] if findings.timed else []
    given = [*context_columns(findings.study), *(findings.study.fidelity or ())]
    results = list(findings.study.objectives) or [findings.label]
    return ["trial", *results, *findings.study.constraints, *seconds, *given, *findings.study.names]


def _row(findings: Findings, record: Record) -> list[str]:
    """A trial in a table."""
    results: list[str]
    if record.state != "done":
        results = [record.state] * (len(findings.study.objectives) or 1)
    elif findings.study.objectives:
        several = [record.values.get(name) for name in findings.study.objectives]
        results = ["" if its is None else words.number(its) for its in several]
    else:
        results = [words.result(record)]
    seconds = [words.number(record.seconds) if record.finished else ""] if findings.timed else []
    given = words.cells(record.context or {}, findings.study.context or ())
    given += words.cells(record.fidelity or {}, findings.study.fidelity or ())
    params = _setting_cells(findings, record.params)
    return [str(record.number), *results, *_constraint_cells(findings, record), *seconds, *given, *params]


def _constraint_cells(findings: Findings, record: Record) -> list[str]:
    """The number of each constraint, with a mark where it breaks it."""
    told = [(its, record.constraints.get(name)) for name, its in findings.study.constraints.items()]
    return [
        "" if number is None else f"{words.number(number)}{' ✗' if its.is_broken_by(number) else ''}"
        for its, number in told
    ]


def _setting_cells(findings: Findings, params: Params) -> list[str]:
    """The value of each parameter, empty where it does not apply."""
    return words.cells(params, findings.study.names)


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], marked: Iterable[bool] = (), wordy: int | None = None
) -> str:
    """A table; ``marked`` rows are coloured, and column ``wordy`` holds text."""

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
