"""The command ``noregret reproduce``. Its implementation is imported on use, to keep ``--help`` fast."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noregret.extra import extra
from noregret.terminal import say

if TYPE_CHECKING:
    from noregret.experiments.figure import Figure
    from noregret.experiments.page import Report
    from noregret.experiments.reproduce import Lines

OUT = Path("reproduction")


class Refused(Exception):
    """The command cannot run; the message gives the reason."""


def close_to(name: str, names: Iterable[str]) -> str:
    """Hint at names that are close to an unknown one; empty if there are none."""
    close = get_close_matches(name, names)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def check_files(picture: Path | None, folder: Path | None = None) -> None:
    """Raise `Refused` before the work if the results cannot be written."""
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
        if picture:
            picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"cannot write there: {error}") from error
    if picture:
        endings = extra("matplotlib.backend_bases").FigureCanvasBase.get_supported_filetypes()
        if picture.suffix[1:].lower() not in endings:
            raise Refused(f"--plot must end in one of {', '.join('.' + end for end in sorted(endings))}, got {picture}")


def add_reproduce(commands: Any, count: Callable[[str], int], seed: Callable[[str], int]) -> None:
    """Add the command to the parser; ``count`` and ``seed`` parse numbers."""
    parser = commands.add_parser("reproduce", help="run the papers' figures again and compare with their claims")
    parser.set_defaults(command=run)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="names as in --list, or papers (default: all)")
    parser.add_argument("--list", action="store_true", help="show the figures with their scale and time")
    parser.add_argument("--quick", action="store_true", help="run everything in two minutes, judged at a small scale")
    parser.add_argument("--rounds", type=count, metavar="T", help="rounds per trial (default: the paper's)")
    parser.add_argument("--trials", type=count, metavar="N", help="trials (default: the paper's)")
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="the same seed, the same trials (default 0)")
    parser.add_argument("--jobs", type=count, metavar="N", help="processes (default: one per core)")
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help=f"trials, pictures and page (default {OUT}, or {OUT / 'quick'})"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="your own measured data (default: NOREGRET_DATA, or the data of the package)",
    )
    parser.add_argument("--backend", choices=["loky", "dask"], default="loky", help="local processes, or dask workers")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the dask scheduler, such as tcp://10.0.0.1:8786")


def run(args: argparse.Namespace) -> int | None:
    """Run the command; return 1 if a figure failed."""
    from noregret.experiments.page import PAGE, counted
    from noregret.experiments.reproduce import watcher

    figures = chosen(args.figures)
    if args.list:
        width = max(len(figure.name) for figure in figures)
        for figure in figures:
            scale = f"{figure.scale.rounds:,} rounds x {figure.scale.trials} trials"
            say(f"{figure.name:<{width}}  {figure.title} ({scale}, about {figure.minutes:g} min on two cores)")
        return None
    data = args.data or (Path(os.environ["NOREGRET_DATA"]) if os.environ.get("NOREGRET_DATA") else None)
    ready = [figure for figure in figures if not missing(figure, data)]
    args.out = args.out or (OUT / "quick" if args.quick else OUT)
    with watcher() as looking:
        for figure in figures:
            if figure not in ready:
                looking.note(f"{figure.name} is left out: {missing(figure, data)}")
        if not ready:
            raise Refused("nothing is left to run")
        reports = _reproduced(args, ready, data, looking)
    outcomes = sum((report.outcomes for report in reports), Counter[str]())
    small = " (at a small scale)" if any(report.small for report in reports) else ""
    say(f"all claims: {counted(outcomes)}{small}\n{args.out / PAGE}")
    return 1 if any(report.failure for report in reports) else None


def chosen(names: Sequence[str]) -> list[Figure]:
    """Figures with these names or of these papers; all figures without names."""
    from noregret.experiments.figures import FIGURES, PAPERS

    for name in names:
        if name not in FIGURES and name not in PAPERS:
            hint = close_to(name, [*FIGURES, *PAPERS])
            raise Refused(f"unknown figure {name!r}{hint}: 'noregret reproduce --list' shows all")
    return [
        figure
        for figure in FIGURES.values()
        if not names or figure.name in names or figure.name.partition("/")[0] in names
    ]


def missing(figure: Figure, data: Path | None) -> str:
    """Text that lists the files that a figure needs and the folder lacks; empty if none are missing."""
    from noregret.problems.tables import data_file

    absent = [file for file in figure.files if data is not None and data_file(data, file) is None]
    return f"{', '.join(absent)} not found in {data}" if absent else ""


def _reproduced(args: argparse.Namespace, figures: Sequence[Figure], data: Path | None, looking: Lines) -> list[Report]:
    from noregret.experiments.reproduce import Order, reproduce
    from noregret.experiments.trials import Engine, EngineFailed

    try:
        args.out.mkdir(parents=True, exist_ok=True)
        engine = Engine(args.jobs, args.backend, args.scheduler)
        order = Order(figures, args.out, args.quick, args.rounds, args.trials, args.seed, data, engine)
        return reproduce(order, looking)
    except (OSError, EngineFailed) as error:
        raise Refused(str(error)) from error
