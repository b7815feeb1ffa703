"""Make the gallery from a real run: ``python docs/gallery.py reproduction`` after ``noregret reproduce``."""

import shutil
import sys
from pathlib import Path

from noregret.experiments.figures import FIGURES, PAPERS
from noregret.experiments.page.report import Report, duration, found_in, runs_in

DOCS = Path(__file__).parent
MARKS = {"held": "held", "did not hold": "**did not hold**", "not comparable": "not comparable"}


def main(folder: Path) -> None:
    """Write gallery.md, and the pictures beside it."""
    reports = found_in(folder, list(FIGURES))
    shutil.rmtree(DOCS / "gallery", ignore_errors=True)
    parts = [introduction(reports, folder)]
    for paper, title in PAPERS.items():
        parts.append(f"## {title}\n")
        parts += [section(report, folder) for report in reports if report.paper == paper]
    (DOCS / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


def introduction(reports: list[Report], folder: Path) -> str:
    """What was run, and how it came out."""
    total = {mark: sum(report.outcomes[mark] for report in reports) for mark in MARKS}
    counts = ", ".join(f"{count} {mark}" for mark, count in total.items())
    scale = "at less than the papers' scale" if any(report.small for report in reports) else "at the papers' scale"
    runs = "\n".join(
        f"- {run['finished']}: {run['run']:,} trials in {duration(run['seconds'])} on {run['engine']}"
        for run in runs_in(folder)
        if run["run"]
    )
    return (
        f"# Gallery\n\nThe papers' figures and tables from `noregret reproduce`, {scale}. Of "
        f"{sum(total.values())} claims: {counts}. [How verdicts are computed](lab.md#verdicts).\n\n{runs}\n"
    )


def section(report: Report, folder: Path) -> str:
    """A figure: claim, pictures, verdicts."""
    target = DOCS / "gallery" / report.name.replace("/", "-")
    target.mkdir(parents=True)
    for picture in report.pictures:
        shutil.copy(folder / report.name / f"{picture.file}.png", target)
    pictures = "\n".join(
        f"![{report.title}: {picture.caption}](gallery/{target.name}/{picture.file}.png){{ width=49% }}"
        for picture in report.pictures
    )
    verdicts = "\n".join(map(line, report.verdicts))
    return f"### {report.title}\n\n> {report.says}\n\n{pictures}\n\n{verdicts}\n\n{report.how}\n"


def line(verdict: object) -> str:
    """A verdict as an item of a list."""
    claim, outcome, numbers, reason = verdict  # type: ignore[misc]
    return f"- {claim}: {MARKS[outcome]}. {numbers}{f' ({reason})' if reason else ''}"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "reproduction"))
