"""Tables: the one of all trials, which is also there as CSV, and others."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from noregret.tune.learning.findings import Findings
from noregret.tune.page import words
from noregret.tune.store.exporting import context_columns, exported
from noregret.tune.store.records import Record
from noregret.tune.study.study import Params

SHOWN = 1000
"""The table lists at most so many of the best trials and so many of the last ones."""
KEPT = 20_000
"""The CSV holds at most so many trials, the last ones."""


def trials(findings: Findings) -> str:
    """The section with all trials; a script makes it sort and filter, it can be read without."""
    if not findings.records:
        return ""
    records = _shown(findings)
    odd = {record.number for record in findings.outliers}
    rows = [row(findings, record) for record in reversed(records)]
    marked = [record.number in odd for record in reversed(records)]
    name = words.html(f"{findings.study.name}.csv".replace("/", "-"))
    data = base64.b64encode(exported(findings.study, findings.records[-KEPT:], "csv")).decode()
    return (
        f'<section id="trials"><h2>All trials</h2><p>{_what(findings, len(records))} '
        f'<a download="{name}" href="data:text/csv;charset=utf-8;base64,{data}">Download as CSV</a></p>'
        f"<details><summary>{len(records):,} trials, the last first</summary>"
        f"{table(columns(findings), rows, marked)}</details></section>"
    )


def _shown(findings: Findings) -> list[Record]:
    """All trials; of very many, the best and the last."""
    records = list(findings.records)
    if len(records) <= 2 * SHOWN:
        return records
    sign = 1 if findings.study.goal == "minimize" else -1
    best = sorted(findings.done, key=lambda record: sign * (record.value or 0.0))[:SHOWN]
    kept = {record.number for record in [*best, *records[-SHOWN:]]}
    return [record for record in records if record.number in kept]


def _what(findings: Findings, shown: int) -> str:
    count = len(findings.records)
    said = f"The {SHOWN:,} best and the {SHOWN:,} last of {count:,} trials are listed." if shown < count else ""
    left = f" The download has the last {KEPT:,}." if count > KEPT else " The download has all." if said else ""
    return said + left


def columns(findings: Findings) -> list[str]:
    """The header of a table of trials."""
    seconds = ["seconds"] if findings.timed else []
    given = context_columns(findings.study)
    return ["trial", findings.label, *findings.study.constraints, *seconds, *given, *findings.study.names]


def row(findings: Findings, record: Record) -> list[str]:
    """A trial in a table."""
    result = record.state if record.value is None else words.number(record.value)
    seconds = [words.number(record.seconds) if record.finished else ""] if findings.timed else []
    given = words.cells(record.context or {}, findings.study.context or ())
    params = settings(findings, record.params)
    return [str(record.number), result, *_numbers(findings, record), *seconds, *given, *params]


def _numbers(findings: Findings, record: Record) -> list[str]:
    """The number of each constraint, with a mark where it breaks it."""
    told = [(its, record.constraints.get(name)) for name, its in findings.study.constraints.items()]
    return [
        "" if number is None else f"{words.number(number)}{' ✗' if its.is_broken_by(number) else ''}"
        for its, number in told
    ]


def settings(findings: Findings, params: Params) -> list[str]:
    """The value of each parameter, empty where it does not apply."""
    return words.cells(params, findings.study.names)


def table(
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
