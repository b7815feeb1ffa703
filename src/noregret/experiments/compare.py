"""Compare algorithms on one problem, with the same noise on each seed, as a table with intervals and a picture."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from noregret.algorithms import NAMES
from noregret.decision.loops import Algorithm
from noregret.experiments import plot
from noregret.experiments.run import ChangingWorld, World, check_world, run
from noregret.experiments.summary import Interval, final_regret, mean_interval, summarise
from noregret.experiments.trace import Trace
from noregret.experiments.trials import build
from noregret.extra import extra
from noregret.formatting import number
from noregret.problems.problem import Continuous

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 40
"""Length of the longest name that a table does not shorten."""


class Compared(NamedTuple):
    """Results of one algorithm: means over the seeds with their 95% intervals."""

    algorithm: str
    regret: Interval
    """Cumulative regret at the end."""
    behind: Interval
    """Regret beyond that of the best algorithm, paired by seed; 0 for the best itself."""
    simple_regret: Interval
    """Regret of the arm recommended at the end."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Results of algorithms on the same problem and, for each seed, the same noise. It prints as a table.

    The intervals are Student's. Those of ``behind`` are for paired differences, and are narrower than the intervals of
    the regrets if the seeds affect all algorithms alike. If such an interval is above 0, the best algorithm is better
    with 95% confidence. The level holds for each interval alone, not for all of them together, and does not account for
    the choice of the best by the same runs.
    """

    traces: Mapping[str, Sequence[Trace]]
    """One trace per seed, by the algorithm's name."""

    @property
    def rows(self) -> list[Compared]:
        """One row per algorithm, the smallest mean regret first."""
        names = [row.algorithm for row in summarise(self.traces)]
        best = np.array([final_regret(trace) for trace in self.traces[names[0]]])
        rows = []
        for name in names:
            regrets = np.array([final_regret(trace) for trace in self.traces[name]])
            last = [trace.simple_regret[-1] for trace in self.traces[name]]
            rows.append(Compared(name, mean_interval(regrets), mean_interval(regrets - best), mean_interval(last)))
        return rows

    def __str__(self) -> str:
        rows, first, labels = self.rows, next(iter(self.traces.values())), _labels(self.traces)
        header = ("algorithm", "regret", f"more than {labels[rows[0].algorithm]}", "simple regret")
        cells = [(labels[row.algorithm], *map(_text, row[1:])) for row in rows]
        cells[0] = (*cells[0][:2], "-", cells[0][3])
        widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (header, *cells)]
        note = f"{len(first)} seeds of {len(first[0].regret)} rounds on {first[0].problem}, means and 95% intervals"
        return "\n".join([*lines, note])

    def __repr__(self) -> str:
        return str(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw cumulative and simple regret, side by side; save the picture if ``path`` is given."""
        figure: Figure = extra("matplotlib.figure").Figure(figsize=(11.0, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = {label: self.traces[name] for name, label in _labels(self.traces).items()}
        plot.regret(shown, ax=left)
        left.get_legend().remove()
        plot.simple_regret({row.algorithm: shown[row.algorithm] for row in reversed(summarise(shown))}, ax=right)
        if path is not None:
            figure.savefig(path, dpi=200, bbox_inches="tight")
        return figure


def compare(
    algorithms: Mapping[str, Algorithm | str] | Iterable[Algorithm | str],
    problem: World | ChangingWorld | Continuous,
    horizon: int,
    seeds: int | Iterable[Any] = 10,
) -> Comparison:
    """Run algorithms on one problem, each once per seed; on a seed all of them have the same noise.

    Parameters
    ----------
    algorithms : mapping of names to algorithms, or several algorithms
        Algorithms without a name are called by their repr. A name of `noregret.algorithms.NAMES` is built from the
        problem's kernel and facts.
    problem : as in `noregret.run`
    horizon : int
        Number of rewards in each run.
    seeds : int or several seeds
        The number of seeds, which are then 0, 1, ..., or the seeds themselves.

    Examples
    --------
    >>> import noregret
    >>> problem = noregret.problems.NAMES["rkhs-se"](rng=0)
    >>> noregret.compare(["amm-ucb", "gp-ei", "random"], problem, horizon=200, seeds=5)
    algorithm  regret             more than amm-ucb     simple regret
    amm-ucb    12.3 [11, 13.7]    -                     0.00239 [-0.00217, 0.00695]
    gp-ei      13.1 [12.8, 13.4]  0.752 [-0.346, 1.85]  0.000627 [-0.000439, 0.00169]
    random     222 [211, 233]     209 [199, 220]        0.00529 [-0.000706, 0.0113]
    5 seeds of 200 rounds on rkhs, means and 95% intervals
    """
    check_world(problem)
    chosen = _named(algorithms, problem, horizon)
    given = list(range(seeds)) if isinstance(seeds, int | np.integer) else list(seeds)
    if not chosen or not given:
        raise ValueError(f"at least one algorithm and one seed must be given, got {len(chosen)} and {len(given)}")
    traces = {name: [run(each, problem, horizon, rng=seed) for seed in given] for name, each in chosen.items()}
    return Comparison(traces)


def _named(algorithms: Any, problem: Any, horizon: int) -> dict[str, Algorithm]:
    """Algorithms by name; algorithms given by their name alone are built for the problem."""
    if not isinstance(algorithms, Mapping):
        algorithms = [(each if isinstance(each, str) else repr(each), each) for each in algorithms]
    given = list(algorithms.items() if isinstance(algorithms, Mapping) else algorithms)
    twice = {name for i, (name, _) in enumerate(given) if name in (other for other, _ in given[:i])}
    if twice:
        raise ValueError(f"algorithms must have different names, got {twice.pop()!r} twice: pass a dict of names")
    return {name: _built(each, problem, horizon) for name, each in given}


def _built(algorithm: Any, problem: Any, horizon: int) -> Algorithm:
    if isinstance(algorithm, str):
        if algorithm not in NAMES:
            raise ValueError(f"unknown algorithm {algorithm!r}: the names are {', '.join(NAMES)}")
        return build(NAMES[algorithm], problem, horizon)
    if not hasattr(algorithm, "play"):
        raise ValueError(f"an algorithm must be such as algorithms.igp_ucb(kernel), or its name, got {algorithm!r}")
    known: Algorithm = algorithm
    return known


def _text(interval: Interval) -> str:
    """Format an interval: without its ends for one seed, a dash for nan."""
    if math.isnan(interval.value):
        return "-"
    return str(interval) if math.isfinite(interval.high) else number(interval.value, 3)


def _labels(names: Iterable[str]) -> dict[str, str]:
    """Labels of these names in a table: long names are cut, and numbered if they begin alike."""
    short = {name: name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in names}
    shared = {label for label, count in Counter(short.values()).items() if count > 1}
    return {name: f"{i} {label}" if label in shared else label for i, (name, label) in enumerate(short.items(), 1)}
