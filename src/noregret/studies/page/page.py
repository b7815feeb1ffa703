"""The report page: findings, their evidence, and how they were measured, in one HTML file.

A page is a list of sections (`SECTIONS`), and one walk through it.
"""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

from noregret.extra import version
from noregret.optimizer import VALUE, Choice, Share, Trial
from noregret.studies import words
from noregret.studies.learning import prose
from noregret.studies.learning.findings import Findings, Point, unit_of
from noregret.studies.page import pictures
from noregret.studies.page.serving import headers, policy
from noregret.studies.study.exchange import columns, exported, table_of
from noregret.studies.study.study import Params, groups, text, without_password

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
SHOWN = 50
"""Largest number of the best trials, and of the last ones, in the table; ``trials.js`` adds the others."""
MOST_DOWNLOADED = 20_000
"""Largest number of trials in the CSV, the last ones."""


def page(findings: Findings, inside: str | None = None, *, against: Findings | None = None, script: str = "") -> str:
    """The whole page, around its `content` if that is given.

    ``against`` is another study to compare with. ``script`` keeps a live page up to date.
    """
    style, code = _parts(script)
    note = '<div id="live" role="status">live</div>' if script else ""
    main = content(findings, against) if inside is None else inside
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style, code, bool(script))}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{words.html(findings.study.name)}: what was found</title><style>{style}</style></head>\n"
        f"<body>{note}<main>{main}</main><script>{code}</script></body></html>\n"
    )


def served(findings: Findings, inside: str | None = None, script: str = "") -> tuple[str, dict[str, str]]:
    """The whole page, and the headers that a server sends with it."""
    return page(findings, inside, script=script), headers(policy(*_parts(script), bool(script)))


def _parts(script: str) -> tuple[str, str]:
    """Style and script of a page."""
    return _file("page.css"), _file("trials.js") + _file("charts.js") + script


def _file(name: str) -> str:
    return files("noregret.studies.page").joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class PageSection:
    """A part of the page: what it says, its picture with a legend, and what follows, if there is anything.

    ``when`` returns True if the findings have something to show here, ``prose`` sentences, ``picture`` pictures as SVG,
    with a legend of the marks in them, and ``table`` more HTML. ``nav`` is the name of the link at the top of the page,
    empty for none, and ``line`` the meaning of the line in the picture.
    """

    id: str
    title: str | Callable[[Findings], str]
    when: Callable[[Findings], Any]
    prose: Callable[[Findings], Iterable[str]] = lambda findings: ()
    picture: Callable[[Findings], str] = lambda findings: ""
    table: Callable[[Findings], str] = lambda findings: ""
    nav: str = ""
    line: str = ""

    def html(self, findings: Findings) -> str:
        """The section; empty if there is nothing to show."""
        if not self.when(findings):
            return ""
        title = self.title if isinstance(self.title, str) else self.title(findings)
        drawn = self.picture(findings)
        figure = f"<figure>{drawn}{_legend(findings, drawn, line=self.line)}</figure>" if drawn else ""
        said = _paragraphs(self.prose(findings))
        return f'<section id="{self.id}"><h2>{title}</h2>{said}{figure}{self.table(findings)}</section>'


def content(findings: Findings, against: Findings | None = None) -> str:
    """The part of the page that changes while a study runs."""
    first = _picked(findings) if not findings.is_single else _best(findings)
    shown = {section: section.html(findings) for section in SECTIONS}
    links = [("best", "Best")] if 'id="best"' in first else []
    links += [("against", "Comparison")] if against else []
    links += [(section.id, section.nav) for section, inside in shown.items() if inside and section.nav]
    nav = "".join(f'<a href="#{id}">{name}</a>' for id, name in links) if len(links) > 3 else ""
    name, progress = words.html(findings.study.name), prose.progress(findings)
    other = _against(findings, against) if against else ""
    return (
        f"<header><h1>{name}</h1><p class='soft'>{progress}</p></header>"
        f"<nav>{nav}</nav>{first}{other}{''.join(shown.values())}{_how(findings)}{_data(findings)}"
        f"<footer>Written by noregret {version()}, {datetime.now():%Y-%m-%d %H:%M}.</footer>"
    )


def _data(findings: Findings) -> str:
    """Everything that ``charts.js`` needs besides the trials, which it reads from the download, as JSON.

    ``blank`` are the values that are nothing in the download, by parameter.
    """
    study = findings.study
    space = study.space if isinstance(study.space, Mapping) else {}
    header, table = columns(study, findings.records), table_of(study)
    data: dict[str, Any] = {
        "names": list(study.names),
        "context": [f"context.{name}" for name in study.context or ()],
        "order": [*findings.importance, *(name for name in study.names if name not in findings.importance)],
        "unit": findings.unit,
        "label": findings.label,
        "results": [
            [table.value(name), findings.label if findings.is_single else name, unit_of(study.results_by_measure[name])]
            for name in findings.measures.objectives
        ],
        "first": header.index(table.parameter(study.names[0])),
        "header": header,
        "limits": {table.value(name): _limits(findings, name) for name in findings.measures.constraints},
        "blank": {
            name: text(option)
            for name, parameter in space.items()
            for option in (parameter.options if isinstance(parameter, Choice) else ())
            if option in ("", None)
        },
        "kinds": {str(number): kind for number, kind in findings.kinds.items() if kind != "dot"},
    }
    if findings.has_intervals and findings.surfaces:
        data["maps"] = pictures.maps(findings)
    if findings.spans:
        size = pictures.time_unit(findings)[1]
        data["spans"] = [
            [n, round(bar.start / size, 4), round(bar.end / size, 4), bar.worker] for n, bar in findings.spans.items()
        ]
    written = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{written}</script>'


def _limits(findings: Findings, name: str) -> list[float | None]:
    """Least and largest number that meets a constraint."""
    limit = findings.measures[name].limit
    assert limit is not None
    return [limit.bound if limit.operator == ">=" else None, limit.bound if limit.operator == "<=" else None]


def _picked(findings: Findings) -> str:
    """The setting that was picked from the front of several objectives."""
    picked = findings.picked
    if not findings.front:
        return f"<p>{'Too few measurements for a front.' if findings.done else prose.nothing(findings)}</p>"
    if picked is None:
        return ""
    return (
        f'<section class="best" id="best"><div><div>Picked by {words.html(str(findings.wish))}</div>'
        f'<p class="gain">{words.html(findings.in_words(picked))}</p>'
        f"{_paragraphs(prose.picked(findings))}</div>"
        f"{_setting(picked.params, findings.command_of(picked))}</section>"
    )


def _best(findings: Findings) -> str:
    best = findings.best
    if best is None:
        return f"<p>{prose.nothing(findings)}</p>"
    gain = f'<p class="gain">{words.html(words.sentence(str(findings.gain)))}</p>' if findings.gain else ""
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
    rows = [
        [findings.label, *(words.number(side.best.estimate) for side in both if side.best)],
        ["probably", *(" to ".join(words.between(side.best.lower, side.best.upper)) for side in both if side.best)],
        ["measurements", *(f"{len(side.done):,}" for side in both)],
        ["failed runs", *(f"{len(side.failed):,}" for side in both)],
    ]
    settings = [[name, *(words.cells(side.best.params, [name])[0] for side in both if side.best)] for name in names]
    marked = [False] * len(rows) + [row[1] != row[2] for row in settings]
    picture = pictures.against(findings, other) if findings.best_so_far or other.best_so_far else ""
    keys = "".join(
        f'<li><span class="key line{kind}"></span>best so far in {words.html(side.study.name)}</li>'
        for side, kind in zip(both, ("", "other"), strict=True)
    )
    return (
        f"{title}{_paragraphs(prose.against(findings, other))}<figure>{picture}"
        f'<ul class="legend">{keys if picture else ""}</ul></figure>'
        f"{_table(['', *(side.study.name for side in both)], [*rows, *settings], marked, wordy=0)}</section>"
    )


def _front(findings: Findings) -> str:
    """The settings of the front."""
    units = findings.units()
    names = [f"{name} ({unit.strip()})" if unit else name for name, unit in units.items()]
    rows = [
        [
            str(place),
            *(
                words.with_interval(value, member.lower[name], member.upper[name])
                for name, value in member.values.items()
            ),
            words.percent(member.probability),
            *words.cells(member.params, findings.study.names),
        ]
        for place, member in enumerate(findings.front, 1)
    ]
    return _table(["setting", *names, "probability", *findings.study.names], rows)


def _trades(findings: Findings) -> str:
    """The trade-offs: between which settings, and what one gives up for what."""
    rows = [
        [
            f"{trade.start + 1} to {trade.end + 1}",
            str(trade) + ("" if trade.is_sure else " (the intervals overlap: not certain)"),
        ]
        for trade in findings.trades
    ]
    return _table(["settings", "in words"], rows, wordy=1)


def _contexts(findings: Findings) -> str:
    given, gain = list(findings.study.context or ()), ["compared with your settings"] if findings.gain else []
    header = [*given, findings.label, "probably", *findings.study.names, *gain]
    rows = [
        [
            *words.cells(answer.context, given),
            words.number(answer.best.estimate),
            " to ".join(words.between(answer.best.lower, answer.best.upper)),
            *words.cells(answer.best.params, findings.study.names),
            *([str(answer.gain)] if answer.gain else []),
        ]
        for answer in findings.recommended
    ]
    return _table(header, rows, wordy=len(header) - 1 if gain else None)


def _shares(findings: Findings) -> str:
    tables = "".join(
        f"{'' if findings.is_single else f'<h3>{words.html(name)}</h3>'}"
        f'<table class="shares"><tbody>{_share_rows(*both)}</tbody></table>'
        for name, both in findings.shares.items()
    )
    return (
        '<ul class="legend"><li><span class="key whole"></span>over the whole space</li>'
        f'<li><span class="key better"></span>among the better half</li></ul>{tables}'
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
    drawn = {effect.name: pictures.effect(findings, effect) for effect in shown}
    charts = "".join(
        f"<figure><h3>{words.html(effect.name)}</h3>{drawn[effect.name]}"
        f"<figcaption>{words.html(prose.effect(findings, effect))}</figcaption></figure>"
        for effect in shown
    )
    line = "the estimate when this parameter changes and all others stay at their best values"
    return (
        f"{_legend(findings, ''.join(drawn.values()), line=line)}"
        f'<div class="effects">{charts}</div>{_paragraphs(prose.left_out(len(findings.effects), len(shown)))}'
    )


def _together(findings: Findings) -> str:
    surface = findings.surfaces[0]
    picture = pictures.contour(findings, surface)
    worst, best = prose.ends(findings, surface)
    return (
        f'<figure class="beside"><div>{picture}</div>'
        '<div><div id="choice"></div>'
        f'<ul class="legend"><li>estimate: <span id="worst">{worst}</span> {pictures.shades()} '
        f'<span id="most">{best}</span></li></ul>'
        f"{_legend(findings, picture)}<figcaption>The other parameters stay at their best values; dots are all "
        "measurements, whatever their other values.</figcaption></div></figure>"
    )


def _repeated(findings: Findings) -> list[Point]:
    """The settings that were measured most often."""
    return sorted((p for p in findings.points if len(p.records) > 1), key=lambda p: -len(p.records))[:6]


def _settings(findings: Findings, points: Sequence[Point]) -> str:
    """Points as a chart and a table, by number."""
    estimates = findings.predicted([point.params for point in points])[0]
    rows = [
        [str(i), words.number(estimate), *_spread(point), *words.cells(point.params, findings.study.names)]
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
    header = columns(findings.study, findings.outliers)
    rows = [
        [words.percent(findings.weights[run.number]), *_row(findings, header, run)] for run in findings.outliers[-20:]
    ]
    return _table(["counts for", *_shown(findings, header)], rows)


def _failures(findings: Findings) -> str:
    counted = Counter(record.failure or "reported as a failure" for record in findings.failed)
    rows = [[str(count), reason] for reason, count in counted.most_common(20)]
    last = findings.last_stderr.strip()
    error = (
        f"<details><summary>Error output of the last one</summary><pre>{words.html(last)}</pre></details>"
        if last
        else ""
    )
    return f"{_table(['runs', 'reason'], rows, wordy=1)}{error}"


def _is_weighed(findings: Findings) -> bool:
    """True if improvement is weighed by the costs of trials."""
    return findings.study.weighs_costs and any(findings.measures.cost in record.readings for record in findings.records)


def _how(findings: Findings) -> str:
    study = findings.study
    if not study.command:
        return ""
    facts = {
        **({"prepare": shlex.join(itertools.chain(*groups(study.prepare)))} if study.prepare else {}),
        "command": shlex.join([*(f"{name}={value}" for name, value in study.env.items()), *study.words]),
        **(
            {name: f"{goal} {prose.measured(study.results_by_measure[name])}" for name, goal in study.goals.items()}
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
    several = not findings.is_single
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
    """All trials; a script makes the table sort and filter, it can be read without."""
    records, odd = _listed(findings), {record.number for record in findings.outliers}
    header = columns(findings.study, findings.records)
    rows = [_row(findings, header, record) for record in reversed(records)]
    marked = [record.number in odd for record in reversed(records)]
    name = words.html(f"{findings.study.name}.csv".replace("/", "-"))
    table = gzip.compress(exported(findings.study, findings.records[-MOST_DOWNLOADED:], "csv"), mtime=0)
    data = base64.b64encode(table).decode()
    return (
        f'<p><span class="few">{_about_list(findings, len(records))}</span> '
        f'<a download="{name}.gz" href="data:application/gzip;base64,{data}">Download as CSV</a></p>'
        f"<details><summary>{len(records):,} trials, the last first</summary>"
        f"{_table(_shown(findings, header), rows, marked)}</details>"
    )


def _listed(findings: Findings) -> list[Trial]:
    """All trials; of very many, the best and the last."""
    records = list(findings.records)
    if len(records) <= 2 * SHOWN:
        return records
    sign = 1 if findings.study.goal == "minimize" else -1
    if findings.is_single:
        best = sorted(findings.done, key=lambda record: sign * (findings.value(record) or 0.0))[:SHOWN]
    else:
        best = [record for record in findings.done if findings.kinds[record.number] == "chosen"][-SHOWN:]
    kept = {record.number for record in [*best, *records[-SHOWN:]]}
    return [record for record in records if record.number in kept]


def _about_list(findings: Findings, shown: int) -> str:
    count = len(findings.records)
    said = f"The {SHOWN:,} best and the {SHOWN:,} last of {count:,} trials are listed." if shown < count else ""
    left = (
        f" The download has the last {MOST_DOWNLOADED:,}."
        if count > MOST_DOWNLOADED
        else " The download has all."
        if said
        else ""
    )
    return said + left


def _shown(findings: Findings, header: Sequence[Any]) -> list[str]:
    """Columns of an export as the header of a table: objectives, constraints and tracked numbers by their names."""
    units = {f"measure.{name}": unit for name, unit in findings.study.tracked.items()}
    renamed = {VALUE: findings.label} if findings.is_single else {}
    renamed |= {table_of(findings.study).value(name): name for name in findings.measures.objectives if name != VALUE}
    renamed |= {f"constraint.{bound.name}": bound.name for bound in findings.measures.constraints.values()}
    renamed |= {column: f"{column.partition('.')[2]}{f' ({unit})' if unit else ''}" for column, unit in units.items()}
    return [renamed.get(column, str(column)) for column in header]


def _row(findings: Findings, header: Sequence[Any], trial: Trial) -> list[str]:
    """A trial in a table: the cells of an export, rounded; a mark where a constraint is broken."""
    table = table_of(findings.study)
    cells = table.row(trial)
    parameters = {table.parameter(name): name for name in findings.study.names}
    broken = {table.value(name) for name in findings.measures.constraints if findings.breaks(trial, name)}
    shown = []
    for column in header:
        cell = cells.get(column)
        if column in parameters:
            shown += words.cells(trial.params, [parameters[column]])
        elif cell is None:
            shown.append("")
        else:
            side = {"at_least": "> ", "at_most": "< "}.get(cells.get(_bound_of(column), ""), "")
            shown.append(f"{side}{words.value(cell)}{' ✗' if column in broken else ''}")
    return shown


def _bound_of(column: Any) -> str:
    """Column of the direction of a bound on the number in this one."""
    kind, _, name = str(column).partition(".")
    return "bound" if column == VALUE else f"bound.{column if kind == 'constraint' else name}"


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


def _when_done(has: Callable[[Findings], Any]) -> Callable[[Findings], Any]:
    """Condition of a section that needs intervals, too."""
    return lambda findings: findings.has_intervals and has(findings)


SECTIONS = (
    PageSection(
        "front",
        "The front",
        lambda findings: findings.front,
        prose.front,
        lambda shown: "".join(pictures.front(shown, *pair) for pair in itertools.combinations(shown.study.goals, 2)),
        lambda findings: f"{_front(findings)}{_paragraphs(prose.why_over(findings))}",
        nav="Front",
    ),
    PageSection(
        "trades",
        "Trade-offs",
        lambda findings: findings.front and findings.trades,
        lambda findings: [
            "What one gives up along the front, by the estimates; the last line is from its first setting to its last."
        ],
        table=_trades,
        nav="Trade-offs",
    ),
    PageSection(
        "contexts",
        "The best setting by context",
        lambda findings: findings.is_single and findings.recommended,
        lambda findings: [prose.contexts(findings)],
        table=_contexts,
        nav="Contexts",
    ),
    PageSection(
        "history",
        "Every measurement",
        lambda findings: findings.has_intervals,
        lambda findings: [*prose.cut_short(findings), *prose.thinned(findings)],
        pictures.history,
        nav="Measurements",
        line="best setting so far (judged with all data)",
    ),
    PageSection(
        "importance",
        "Which parameters matter",
        lambda findings: findings.shares,
        prose.importance,
        table=_shares,
        nav="Importance",
    ),
    PageSection(
        "effects",
        "What each parameter does",
        _when_done(lambda findings: findings.effects),
        prose.elsewhere,
        table=_effects,
        nav="Effects",
    ),
    PageSection(
        "together",
        lambda findings: f"The {'two that matter most' if findings.importance else 'first two parameters'}, together",
        _when_done(lambda findings: findings.surfaces),
        table=_together,
        nav="Map",
    ),
    PageSection(
        "parallel",
        "All parameters at once",
        _when_done(lambda findings: len(findings.importance) > 1),
        lambda findings: [
            "A line for each measurement, from its result on top through the values of its parameters, the most "
            "important first."
        ],
        pictures.parallel,
        nav="All parameters",
    ),
    PageSection(
        "candidates",
        "The best candidates",
        _when_done(lambda findings: findings.candidates and not findings.context),
        lambda findings: [prose.candidates(findings)],
        table=lambda findings: _settings(findings, findings.candidates[:10]),
        nav="Candidates",
    ),
    PageSection("noise", "How noisy the measurements are", _when_done(lambda findings: True), prose.noise, nav="Noise"),
    PageSection(
        "repeats",
        "Settings measured more than once",
        _when_done(lambda findings: _repeated(findings) and not findings.candidates and not findings.context),
        lambda findings: ["Repeated measurements of good settings separate luck from quality."],
        table=lambda findings: _settings(findings, _repeated(findings)),
    ),
    PageSection(
        "outliers",
        "Outlying measurements",
        lambda findings: (findings.has_intervals or not findings.is_single) and findings.outliers,
        lambda findings: [prose.outliers(findings)],
        table=_outliers,
    ),
    PageSection(
        "failures",
        "Failed runs",
        lambda findings: findings.failed,
        lambda findings: [
            "A run that failed gave no number. A setting that has only failed is treated as a bad one if it is more "
            "likely broken than unlucky, judging by how often it failed, how often others fail, and whether settings "
            "near it work."
        ],
        table=_failures,
        nav="Failures",
    ),
    PageSection(
        "costs",
        "Costs",
        lambda findings: findings.best_so_far and findings.costs and (_is_weighed(findings) or findings.usual_costs),
        lambda findings: prose.costs(findings, _is_weighed(findings)),
        pictures.spent,
        nav="Costs",
        line="best setting so far (judged with all data)",
    ),
    PageSection(
        "timeline",
        "Timeline",
        lambda findings: len(findings.spans) > 1 and any(span.end for span in findings.spans.values()),
        lambda findings: [prose.timeline(findings)],
        pictures.timeline,
        nav="Timeline",
    ),
    PageSection("trials", "All trials", lambda findings: findings.records, table=_trials, nav="Trials"),
)
"""The sections of the page, in order, below the best setting."""
