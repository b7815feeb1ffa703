"""The commands ``noregret run``, ``bound`` and ``reproduce``; `noregret.cli` imports them when one of them runs."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from noregret.bandits import algorithms, bounds, problems
from noregret.bandits.decision.loops import Algorithm
from noregret.bandits.lab import plot
from noregret.bandits.lab.figure import Figure
from noregret.bandits.lab.figures import FIGURES, PAPERS
from noregret.bandits.lab.page import PAGE, counted
from noregret.bandits.lab.reproduce import Order, reproduce, watcher
from noregret.bandits.lab.run import check_follows, run
from noregret.bandits.lab.trace import Row, summarise
from noregret.bandits.lab.trials import Engine, EngineFailed, Task, Work, build, children, keywords, played
from noregret.bandits.problems.tables import data_file
from noregret.extra import extra, version
from noregret.gp.kernels import Kernel, Matern, SquaredExponential
from noregret.gp.posterior import Floats
from noregret.terminal import Refused, say

_log = logging.getLogger(__name__)


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


def run_algorithms(args: argparse.Namespace) -> None:
    """Run ``noregret run``."""
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
    seeds = children(np.random.SeedSequence(args.seed), args.trials)
    makers = {
        name: partial(build, builder, horizon=args.rounds, settings=settings) for name, builder in builders.items()
    }
    _check_builds(problem, makers, seeds[0])
    # the file of a trace has a hash of everything that the trial depends on
    record = json.dumps([args.rounds, args.seed, settings, version()], sort_keys=True, default=repr)
    digest = hashlib.sha256(record.encode()).hexdigest()[:8]
    tasks = [
        Task(name, Path(f"{args.problem}_{name}_{digest}_{i:04d}"), partial(played, problem, maker, args.rounds, seed))
        for name, maker in makers.items()
        for i, seed in enumerate(seeds)
    ]
    kept_in = nullcontext(args.out) if args.out else TemporaryDirectory()
    with kept_in as folder, _bar(args.rounds * len(tasks)) as advance:
        work = Work(tasks, Path(folder), _log.warning)
        advance(args.rounds * (len(tasks) - len(work.waiting)))
        work.run(Engine(args.jobs), lambda: advance(args.rounds))
        (traces,) = work.results().values()
    rows = summarise(traces)
    _show(rows)
    if args.plot:
        plot.regret(traces, path=args.plot, log=rows[-1].regret > 30 * rows[0].regret > 0)


def _find(kind: str, name: str, names: Mapping[str, Any]) -> Any:
    if name not in names:
        raise Refused(f"unknown {kind} {name!r}{close_to(name, names)}: 'noregret list' shows all")
    return names[name]


def _check_builds(
    problem: Callable[..., Any], makers: Mapping[str, Callable[[Any], Algorithm]], seed: np.random.SeedSequence
) -> None:
    """Build the problem and every algorithm once, so that errors are raised here and not in a worker."""
    try:
        world = problem(rng=children(seed, 2)[0])
    except (ValueError, OSError) as error:
        raise Refused(f"the problem cannot be set up: {error}") from error
    for name, maker in makers.items():
        try:
            check_follows(maker(world), world)
        except (ValueError, TypeError) as error:
            raise Refused(f"{name}: {error}") from error


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], object]]:
    """Function that counts finished rounds, on a progress bar if stderr is a terminal."""
    console, rich = extra("rich.console").Console(stderr=True), extra("rich.progress")
    if not console.is_terminal:
        yield lambda rounds: None
        return
    columns = rich.BarColumn(), rich.TaskProgressColumn(), rich.TimeElapsedColumn(), rich.TimeRemainingColumn()
    with rich.Progress("{task.completed:,} of {task.total:,} rounds", *columns, console=console) as bar:
        task = bar.add_task("", total=total)
        yield lambda rounds: bar.advance(task, rounds)


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


READINGS = 9
"""Rows of the table at most."""
RUNS = 5
"""Functions that are drawn and played with ``--run``."""


def bound(args: argparse.Namespace) -> None:
    """Run ``noregret bound``."""
    if args.algorithm not in bounds.NAMES:
        known = ", ".join(bounds.NAMES)
        raise Refused(f"{args.algorithm!r} has no bound that can be computed: there is one for {known}")
    check_files(args.plot)
    settings, kernel, arms = dict(args.set), _kernel(args), _arms(args)
    readings = sorted({max(1, round(args.rounds * 10 ** (-each / 3))) for each in range(READINGS)})
    promise = bounds.NAMES[args.algorithm]
    try:
        promised = [promise(kernel, rounds, arms=arms, **settings) for rounds in readings]
        regrets = _played(args, kernel, arms, settings, readings) if args.run else []
        until = bounds.rounds_until(lambda rounds: promise(kernel, rounds, arms=arms, **settings), args.within)
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error
    say(f"{args.algorithm}, {kernel!r}, {len(arms)} arms: regret per round, with probability 1 - delta at most")
    say(f"{'rounds':>10} {'bound':>10}" + (f" {'runs':>10} {'ratio':>8}" if regrets else ""))
    for place, each in enumerate(promised):
        ran = f" {regrets[place]:10.4g} {each.per_round / regrets[place]:8.3g}" if regrets else ""
        say(f"{each.rounds:10d} {each.per_round:10.4g}{ran}" + ("  (no more than |f| <= B)" if each.is_trivial else ""))
    needed = "more than 10^12" if until is None else f"{until:,}"
    say(f"at most {args.within:g} per round after {needed} rounds; largest width {promised[-1].width:.4g}")
    if not promised[-1].is_proved:
        say("the proof of this theorem has a gap (docs/guarantees_details.md), so the bound is not proved")
    if args.plot:
        _draw(args, promised, readings, regrets)


def _kernel(args: argparse.Namespace) -> Kernel:
    name, _, nu = args.kernel.partition("-")
    try:
        if name == "matern":
            return Matern(float(nu or 2.5), args.lengthscale)
        if args.kernel == "se":
            return SquaredExponential(args.lengthscale)
    except ValueError as error:
        raise Refused(str(error)) from error
    raise Refused(f"--kernel must be se or matern-NU, such as matern-2.5, got {args.kernel!r}")


def _arms(args: argparse.Namespace) -> Floats:
    """A grid on [0, 1], or points spread over the unit cube."""
    if args.dimension == 1:
        return np.linspace(0, 1, args.arms)[:, None]
    qmc = extra("scipy.stats.qmc")
    return np.asarray(qmc.Sobol(args.dimension, rng=0).random(1 << (args.arms - 1).bit_length())[: args.arms])


def _played(
    args: argparse.Namespace, kernel: Kernel, arms: Floats, settings: Mapping[str, Any], readings: list[int]
) -> list[float]:
    """Regret per round of runs on functions with norm B, on average, at these rounds."""
    norm, noise = settings.get("norm", 1.0), settings.get("noise", 0.1)
    K, totals = kernel(arms, arms), np.zeros(len(readings))
    builder = algorithms.NAMES[args.algorithm]
    for seed in range(RUNS):
        weights = np.random.default_rng(seed).uniform(-1, 1, len(arms))
        means = K @ weights * norm / np.sqrt(weights @ K @ weights)
        payoff: Any = problems.Gaussian(noise)
        if "moment" in keywords(builder):
            spare = settings.get("moment", 1.0) - float((means**2).max())
            if settings.get("alpha", 1.0) != 1.0 or spare <= 0:
                raise ValueError("--run needs alpha = 1 and a moment above max f^2: pass --set moment=4, for instance")
            payoff = problems.StudentT(3.0, float(np.sqrt(spare / 3)))  # of variance 3 scale^2
        problem = problems.Problem("drawn", arms, means, kernel, payoff, norm)
        trace = run(build(builder, problem, args.rounds, settings), problem, args.rounds, rng=seed)
        totals += trace.cumulative_regret[np.array(readings) - 1] / readings
    return list(totals / RUNS)


def _draw(args: argparse.Namespace, promised: list[bounds.Bound], readings: list[int], regrets: list[float]) -> None:
    figure = extra("matplotlib.figure").Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(readings, [each.per_round for each in promised], "k-", label="bound")
    if regrets:
        axes.loglog(readings, regrets, "C0o-", label=f"mean of {RUNS} runs")
    axes.set(xlabel="rounds", ylabel="regret per round", title=args.algorithm)
    axes.legend()
    figure.savefig(args.plot)


def reproduce_figures(args: argparse.Namespace) -> int | None:
    """Run ``noregret reproduce``; return 1 if a figure failed."""
    figures = chosen(args.figures)
    if args.list:
        width = max(len(figure.name) for figure in figures)
        for figure in figures:
            scale = f"{figure.scale.rounds:,} rounds x {figure.scale.trials} trials"
            say(f"{figure.name:<{width}}  {figure.title} ({scale}, about {figure.minutes:g} min on two cores)")
        return None
    data = args.data or (Path(os.environ["NOREGRET_DATA"]) if os.environ.get("NOREGRET_DATA") else None)
    ready = [figure for figure in figures if not missing(figure, data)]
    with watcher() as looking:
        for figure in figures:
            if figure not in ready:
                looking.note(f"{figure.name} is left out: {missing(figure, data)}")
        if not ready:
            raise Refused("nothing is left to run")
        try:
            args.out.mkdir(parents=True, exist_ok=True)
            engine = Engine(args.jobs, args.backend, args.scheduler)
            order = Order(ready, args.out, args.quick, args.rounds, args.trials, args.seed, data, engine)
            reports = reproduce(order, looking)
        except (OSError, EngineFailed) as error:
            raise Refused(str(error)) from error
    outcomes = sum((report.outcomes for report in reports), Counter[str]())
    small = " (at a small scale)" if any(report.small for report in reports) else ""
    say(f"all claims: {counted(outcomes)}{small}\n{args.out / PAGE}")
    return 1 if any(report.failure for report in reports) else None


def chosen(names: Sequence[str]) -> list[Figure]:
    """Figures with these names or of these papers; all figures without names."""
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
    absent = [file for file in figure.files if data is not None and data_file(data, file) is None]
    return f"{', '.join(absent)} not found in {data}" if absent else ""
