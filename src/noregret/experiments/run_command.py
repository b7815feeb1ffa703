"""The command ``noregret run``: compare algorithms on one problem, as a table and a picture."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from noregret import algorithms, problems
from noregret.experiments import plot
from noregret.experiments.reproduce_command import Refused, check_files, close_to
from noregret.experiments.run import check_follows
from noregret.experiments.summary import Row, summarise
from noregret.experiments.trials import Trial, build, children, keywords, play_all
from noregret.extra import extra
from noregret.terminal import say


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    builders = {name: _find("algorithm", name, algorithms.NAMES) for name in args.algorithms}
    problem = _find("problem", args.problem, problems.NAMES)
    given = {"constants": args.constants, "scale": args.scale}
    settings = {key: value for key, value in given.items() if value is not None} | dict(args.set)
    names = sorted(set().union(*map(keywords, builders.values())))
    for key in settings:
        if key not in names:
            refused = f"none of {', '.join(builders)} takes {key!r}{close_to(key, names)}"
            raise Refused(f"{refused}: they take {', '.join(names)}")
    check_files(args.plot, args.out)
    trials = list(_trials(args, builders, problem, settings))
    _check_builds(trials[:: args.trials])
    with _bar(args.rounds * len(trials)) as progress:
        traces = play_all(trials, jobs=args.jobs, progress=progress)
    rows = summarise(traces)
    _show(rows)
    if args.plot:
        plot.regret(traces, path=args.plot, log=rows[-1].regret > 30 * rows[0].regret > 0)


def _find(kind: str, name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise Refused(f"unknown {kind} {name!r}{close_to(name, names)}: 'noregret list' shows all")
    return names[name]


def _trials(
    args: argparse.Namespace, builders: Mapping[str, Any], problem: Callable[..., Any], settings: dict[str, Any]
) -> Iterator[Trial]:
    seeds = children(np.random.SeedSequence(args.seed), args.trials)
    # the file of a trace has a hash of everything that the trial depends on
    record = json.dumps([args.rounds, args.seed, settings, version("noregret")], sort_keys=True, default=repr)
    digest = hashlib.sha256(record.encode()).hexdigest()[:8]
    for name, builder in builders.items():
        algorithm = partial(build, builder, horizon=args.rounds, settings=settings)
        for i, seed in enumerate(seeds):
            path = args.out and args.out / f"{args.problem}_{name}_{digest}_{i:04d}"
            yield Trial(name, problem, algorithm, args.rounds, seed, path)


def _check_builds(trials: Sequence[Trial]) -> None:
    """Build the problem and every algorithm once, so that errors are raised here and not in a worker."""
    try:
        problem = trials[0].problem(rng=children(trials[0].seed, 2)[0])
    except (ValueError, OSError) as error:
        raise Refused(f"the problem cannot be set up: {error}") from error
    for trial in trials:
        try:
            check_follows(trial.algorithm(problem), problem)
        except (ValueError, TypeError) as error:
            raise Refused(f"{trial.name}: {error}") from error


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar if stderr is a terminal."""
    console, rich = extra("rich.console").Console(stderr=True), extra("rich.progress")
    if not console.is_terminal:
        yield None
        return
    columns = rich.BarColumn(), rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn()
    with rich.Progress("{task.completed:,} of {task.total:,} rounds", *columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)


def _show(rows: Sequence[Row]) -> None:
    """Print a table: with rich on a terminal, else in plain columns."""
    header = ("algorithm", "regret", "sd", "µs/round")
    fine, quick = _decimals(row.regret for row in rows), _decimals(row.microseconds for row in rows)
    cells = [
        (row.algorithm, _number(row.regret, fine), _number(row.sd, fine), _number(row.microseconds, quick))
        for row in rows
    ]
    if sys.stdout.isatty():
        table = extra("rich.table").Table()
        for name in header:
            table.add_column(name, justify="left" if name == "algorithm" else "right")
        for row in cells:
            table.add_row(*row)
        extra("rich.console").Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for first, *others in (header, *cells):
        say("  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]))


def _decimals(values: Iterable[float]) -> int:
    """Number of decimals that gives the smallest value three digits, at most 6."""
    smallest = min((value for value in values if value > 0), default=100.0)
    return min(max(2 - math.floor(math.log10(smallest)), 0), 6)


def _number(value: float, decimals: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"
