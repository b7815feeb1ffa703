"""``noregret reproduce``. What carries it out is imported when it is asked for, so that ``--help`` comes at once."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noregret.terminal import say

if TYPE_CHECKING:
    from noregret.experiments.judging.figure import Figure
    from noregret.experiments.page.report import Report
    from noregret.experiments.progress import Lines

OUT = Path("reproduction")


class Refused(Exception):
    """The command cannot be carried out; the message says why."""


def add_reproduce(commands: Any, count: Callable[[str], int], seed: Callable[[str], int]) -> None:
    """Add the command; ``count`` and ``seed`` read numbers."""
    parser = commands.add_parser("reproduce", help="run the papers' figures again and compare with their claims")
    parser.set_defaults(command=run)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="names as in --list, or papers (default: all)")
    parser.add_argument("--list", action="store_true", help="show the figures and what they take")
    parser.add_argument("--quick", action="store_true", help="all of it in two minutes, judged at a small scale")
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
        help="measured data of your own (default: NOREGRET_DATA, or those of the package)",
    )
    parser.add_argument("--backend", choices=["loky", "dask"], default="loky", help="processes here, or dask workers")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of dask, such as tcp://10.0.0.1:8786")


def run(args: argparse.Namespace) -> int | None:
    """Carry out the command; 1 if a figure failed."""
    from noregret.experiments.page.page import NAME
    from noregret.experiments.progress import watcher

    figures = chosen(args.figures)
    if args.list:
        _show(figures)
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
    say(f"{_total(reports)}\n{args.out / NAME}")
    return 1 if any(report.failure for report in reports) else None


def chosen(names: Sequence[str]) -> list[Figure]:
    """The figures of these names, or of these papers; all if there are none."""
    from noregret.experiments.figures import FIGURES, PAPERS

    for name in names:
        if name not in FIGURES and name not in PAPERS:
            close = get_close_matches(name, [*FIGURES, *PAPERS])
            hint = f" (did you mean {' or '.join(close)}?)" if close else ""
            raise Refused(f"unknown figure {name!r}{hint}: 'noregret reproduce --list' shows all")
    return [
        figure
        for figure in FIGURES.values()
        if not names or figure.name in names or figure.name.partition("/")[0] in names
    ]


def missing(figure: Figure, data: Path | None) -> str:
    """The files that a figure needs and a folder does not have, in words; empty if the package's own will do."""
    from noregret.problems.tables import data_file

    absent = [file for file in figure.files if data is not None and data_file(data, file) is None]
    return f"{', '.join(absent)} not found in {data}" if absent else ""


def _total(reports: Sequence[Report]) -> str:
    """The outcomes of all claims in one line, which says whether it was a small scale."""
    from noregret.experiments.page.report import counted

    outcomes = sum((report.outcomes for report in reports), Counter[str]())
    small = " (at a small scale)" if any(report.small for report in reports) else ""
    return f"all claims: {counted(outcomes)}{small}"


def _show(figures: Sequence[Figure]) -> None:
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        scale = f"{figure.scale.rounds:,} rounds x {figure.scale.trials} trials"
        say(f"{figure.name:<{width}}  {figure.title} ({scale}, about {figure.minutes:g} min on two cores)")


def _reproduced(args: argparse.Namespace, figures: Sequence[Figure], data: Path | None, looking: Lines) -> list[Report]:
    from noregret.experiments.reproduce import Order, reproduce
    from noregret.experiments.running.parallel import Engine, EngineFailed

    try:
        args.out.mkdir(parents=True, exist_ok=True)
        engine = Engine(args.jobs, args.backend, args.scheduler)
        order = Order(figures, args.out, args.quick, args.rounds, args.trials, args.seed, data, engine)
        return reproduce(order, looking)
    except (OSError, EngineFailed) as error:
        raise Refused(str(error)) from error
