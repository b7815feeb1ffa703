"""Make the gallery from a real run: ``python docs/gallery.py reproduction`` after ``noregret reproduce``."""

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from noregret.bandits.lab.figure import OUTCOMES, Table, Verdict
from noregret.bandits.lab.figures import FIGURES, PAPERS
from noregret.bandits.lab.page import Report, counted, duration, found_in, runs_in

DOCS = Path(__file__).parent
MARKS = {outcome: f"**{outcome}**" if outcome == "against the paper" else outcome for outcome in OUTCOMES}


class Page(NamedTuple):
    """A page of the gallery: its file, title, introduction and papers."""

    file: str
    title: str
    text: str
    papers: Sequence[str]


PAGES = (
    Page(
        "gallery.md",
        "Gallery",
        "The figures and tables of the four papers, made by `noregret reproduce`. Claims of later papers are "
        "[on another page](beyond.md). Only the REDS paper prints numbers of its experiments, the times of its Tables "
        "1 and 2; they are shown beside ours. The other papers show curves and describe them in words.",
        [paper for paper in PAPERS if paper != "beyond"],
    ),
    Page(
        "beyond.md",
        "Beyond the four papers",
        "Claims of later papers whose methods are implemented here, tested by `noregret reproduce beyond`. The claims "
        "are those of the abstracts, or our reading of a theorem where stated; the experiments are ours.",
        ["beyond"],
    ),
)


def main(folder: Path) -> None:
    """Write each page that has reports, and copy its pictures."""
    reports, runs = found_in(folder, list(FIGURES)), times(folder)
    for page in PAGES:
        if shown := [report for report in reports if report.paper in page.papers]:
            parts = [introduction(page, shown), runs]
            for paper in page.papers:
                parts += [f"## {PAPERS[paper]}\n"] if len(page.papers) > 1 else []
                parts += [section(report, folder) for report in shown if report.paper == paper]
            (DOCS / page.file).write_text("\n".join(parts), encoding="utf-8")


def introduction(page: Page, reports: Sequence[Report]) -> str:
    """Introduction of a page, with its outcomes."""
    total = sum((report.outcomes for report in reports), Counter[str]())
    scale = "at a small scale" if any(report.small for report in reports) else "in full"
    counts = f"{total.total()} claims, run {scale}: {counted(total)}."
    return f"# {page.title}\n\n{page.text}\n\n{counts} [How verdicts are computed](lab.md#verdicts).\n"


def times(folder: Path) -> str:
    """List of the runs with their dates and times."""
    return "".join(
        f"- {run['finished']}: {run['run']:,} trials in {duration(run['seconds'])} on {run['engine']}\n"
        for run in runs_in(folder)
        if run["run"]
    )


def section(report: Report, folder: Path) -> str:
    """Section of a figure: statement, pictures, verdicts, tables."""
    target = DOCS / "gallery" / report.name.replace("/", "-")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for picture in report.pictures:
        shutil.copy(folder / report.name / f"{picture.file}.png", target)
    pictures = "\n".join(
        f"![{report.title}: {picture.caption}](gallery/{target.name}/{picture.file}.png){{ width=49% }}"
        for picture in report.pictures
    )
    verdicts, tables = "\n".join(map(line, report.verdicts)), "\n".join(map(written, report.tables))
    return f"### {report.title}\n\n> {report.says}\n\n{pictures}\n\n{verdicts}\n\n{tables}\n{report.how}\n"


def line(verdict: Verdict) -> str:
    """List item of a verdict."""
    claim, outcome, numbers, reason = verdict
    return f"- {claim}: {MARKS[outcome]}. {numbers}{f' ({reason})' if reason else ''}"


def written(table: Table) -> str:
    """Markdown of a table, with its title."""
    rows = [table.header, ["---"] * len(table.header), *table.rows]
    return "\n".join([f"{table.title}:\n", *("| " + " | ".join(cells) + " |" for cells in rows), ""])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "reproduction"))
