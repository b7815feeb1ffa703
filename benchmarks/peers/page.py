"""The tables of `benchmarks.peers`, in Markdown: mean ranks, seconds, and means with intervals."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student

from benchmarks import markdown
from benchmarks.peers.worlds import HEAVY

Line = dict[str, Any]
INTRODUCTION = """# Against other optimisers: all figures

Made by `python -m benchmarks.peers --table`. All meet the same functions, noises and seeds. A regret of 1 is that of a
random point. Gaussian noise of 0.1 and 0.5 standard deviations of the function over its space; Student-t noise of a
quarter of it, with 3 and 1.5 degrees of freedom; Pareto: the value is the mean of a Pareto distribution of shape 2;
spikes: 20 times the function's range, up or down, in 2 % of the evaluations, on Gaussian noise of 0.1. The latencies
come with their own measurements. Read [the summary](optimizer.md#comparison-with-other-optimizers) first.
"""
FEWEST = 10
"""Ranks over fewer runs than this say nothing."""
MEASURES = {"recommended": "regret of the recommended point", "cumulative": "mean regret of all evaluations"}


def table(lines: list[Line]) -> str:
    """Everything there is to say about these runs."""
    parts = [INTRODUCTION, _coverage(lines)]
    for measure, words in MEASURES.items():
        parts += [f"## Mean rank: {words}\n", _ranks(lines, measure)]
    parts += ["## CPU seconds of the optimiser, mean of a run\n", _seconds(lines)]
    for measure, words in {**MEASURES, "seconds": "CPU seconds of the optimiser"}.items():
        parts += [f"## Mean and 95 % interval: {words}\n", _means(lines, measure)]
    return "\n".join(parts)


def _coverage(lines: list[Line]) -> str:
    rows = []
    for peer in _values(lines, "peer"):
        own = [line for line in lines if line["peer"] == peer]
        runs = ", ".join(f"{sum(line['budget'] == b for line in own)} of {b}" for b in _values(own, "budget"))
        rows.append([peer, runs, ", ".join(_values(own, "problem")), str(len(_values(own, "seed")))])
    return "## What was run\n\n" + markdown.table(["optimiser", "runs, by evaluations", "problems", "seeds"], rows)


def _ranks(lines: list[Line], measure: str) -> str:
    """Mean rank by budget and kind of noise: of all optimisers where all have run, then of those that ran much more."""
    blocks = ["In brackets: runs (problem, noise, seed) that every optimiser of the table has done.\n"]
    for budget in _values(lines, "budget"):
        here = [line for line in lines if line["budget"] == budget]
        runs = Counter(line["peer"] for line in here).most_common()
        for i in reversed(range(1, len(runs))):
            if i + 1 == len(runs) or runs[i + 1][1] < 0.8 * runs[i][1]:
                group = [peer for peer in _values(here, "peer") if peer in dict(runs[: i + 1])]
                blocks.append(_rank_table(here, group, measure, budget))
    return "\n".join(block for block in blocks if block)


def _rank_table(lines: list[Line], peers: list[str], measure: str, budget: int) -> str:
    cells = _complete([line for line in lines if line["peer"] in peers], peers, measure)
    if len(cells) < FEWEST:
        return ""
    groups = {noise: [c for c in cells if c[1] == noise] for noise in _values(lines, "noise")}
    groups |= {"heavy-tailed": [c for c in cells if c[1] in HEAVY], "all": list(cells)}
    groups = {name: members for name, members in groups.items() if members}
    ranks = {cell: rankdata([_rounded(x) for x in values]) for cell, values in cells.items()}
    head = [f"{budget} evaluations", *(f"{name} ({len(members)})" for name, members in groups.items())]
    means = [[np.mean([ranks[cell][i] for cell in members]) for members in groups.values()] for i in range(len(peers))]
    return markdown.table(head, [[peer, *(f"{m:.2f}" for m in mean)] for peer, mean in zip(peers, means, strict=True)])


def _complete(lines: list[Line], peers: list[str], measure: str) -> dict[tuple[Any, ...], list[float]]:
    """The measure of every optimiser, by (problem, noise, seed), where all have one."""
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for line in lines:
        cells[line["problem"], line["noise"], line["seed"]][line["peer"]] = line[measure]
    return {cell: [found[peer] for peer in peers] for cell, found in cells.items() if len(found) == len(peers)}


def _seconds(lines: list[Line]) -> str:
    return _grid(lines, "budget", lambda group: f"{np.mean([line['seconds'] for line in group]):.2f}")


def _means(lines: list[Line], measure: str) -> str:
    blocks = []
    for budget, problem in sorted({(line["budget"], line["problem"]) for line in lines}):
        here = [line for line in lines if line["budget"] == budget and line["problem"] == problem]
        blocks.append(f"{problem}, {budget} evaluations\n\n" + _grid(here, "noise", lambda g: _interval(g, measure)))
    return "\n".join(blocks)


def _interval(group: list[Line], measure: str) -> str:
    values = np.array([line[measure] for line in group])
    if len(values) < 2:
        return f"{values.mean():.3f} (1)"
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.3f} ± {half:.3f} ({len(values)})"


def _grid(lines: list[Line], column: str, show: Callable[[list[Line]], str]) -> str:
    heads, rows = _values(lines, column), []
    for peer in _values(lines, "peer"):
        groups = [[line for line in lines if line["peer"] == peer and line[column] == head] for head in heads]
        rows.append([peer, *(show(group) if group else "" for group in groups)])
    return markdown.table([column, *map(str, heads)], rows)


def _values(lines: Iterable[Line], name: str) -> list[Any]:
    """The different values of a field, in the order of their first line."""
    found = list(dict.fromkeys(line[name] for line in lines))
    return sorted(found) if name in ("budget", "seed") else found


def _rounded(value: float) -> float:
    """Regrets that differ by less than one part in a million of the problem's gap are ties."""
    return round(value, 6)
