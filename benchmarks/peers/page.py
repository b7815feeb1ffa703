"""The page docs/peers.md: pictures, what they say, how the runs were made, and all figures, folded."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown
from benchmarks.peers.pictures import draw_ranks, draw_regret, draw_seconds, words
from benchmarks.peers.ranks import ALL, KINDS, Ranks, mean_ranks
from benchmarks.peers.results import Row

INTRODUCTION = """# Against other optimisers

The same functions, noises and seeds for all, each optimiser as it comes. A regret of 0 is the best there is and
1 is that of a random point. `python -m benchmarks.peers --page docs/peers.md` makes this page from
`benchmarks/results/peers.csv`, and [more runs](#how-to-run-it) go into that file.

## Rank by kind of noise

By the regret of the point that an optimiser recommends. The filled dot is the best of its column.

![Mean rank of seven optimisers after 50 evaluations, by kind of noise](pictures/peers_ranks.svg)
"""
EVALUATIONS = """## Regret against evaluations

![Regret of the recommended point against evaluations, by kind of noise](pictures/peers_regret.svg)

Means over eight problems. Optimisers that were run to 50 evaluations only are dots. Random search recommends
its luckiest measurement, which under heavy tails gets no better with more of them.

## Regret against CPU seconds

![Regret of the recommended point against CPU seconds of the optimiser](pictures/peers_seconds.svg)

Seconds of asking, telling and recommending on one thread of a busy machine; the number at a dot is that of
evaluations. Where a measurement takes longer than this, the seconds do not matter.
"""
METHOD = """## What was run

**Problems.** Branin, Rosenbrock (2-d), Hartmann in 4 and 6 dimensions, random functions in 1, 2 and 3
dimensions, a table of cloud runtimes, and two tables of network latencies with their own measurements and names
instead of features.

**Noise.** Gaussian: 0.1 and 0.5 standard deviations of the function over its space. Student-t: a quarter of it,
with 3 and 1.5 degrees of freedom. Pareto: the value is the mean of a Pareto distribution of shape 2. Spikes: 20
times the function's range, up or down, in 2% of the evaluations, on Gaussian noise of 0.1.

**Optimisers.** noregret: `Optimizer` with its defaults, which were chosen on other problems. BoTorch: a
`SingleTaskGP` fitted before every question, as in its tutorials, which recommends the largest posterior mean
among the measured points. The others, with their defaults, recommend the luckiest measurement.

**Ranks.** Optimisers are ranked by their mean over seeds on each problem and noise, and ranks are averaged over
problems. Intervals are a bootstrap over problems, so one who is first on all of them has none.

**The file.** A row is the mean over seeds of an optimiser, problem, noise and budget, and says when it was run
([why means](decisions/0170-a-comparison-keeps-means-over-seeds.md)).
"""
RUNNING = """## How to run it

    pip install 'noregret[peers,lab]'
    python -m benchmarks.peers --peers noregret optuna-tpe --seeds 10 --budgets 10 20 50 100 200
    python -m benchmarks.peers --keep

The first adds runs to `.benchmarks/peers.jsonl` and repeats none, so remove that file when `Optimizer` has changed;
the second puts their means into the file of results. All runs of noregret, TPE and random to 200 evaluations
take less than an hour; all runs of all optimisers take days.
"""
MEASURES = {
    "recommended": "regret of the recommended point",
    "cumulative": "mean regret of all evaluations",
    "seconds": "CPU seconds of the optimiser",
}
BUDGETS = (50, 200, 1000)
RANKED = {50: "peers_ranks.svg", 200: "peers_ranks_200.svg"}


def write(rows: list[Row], path: Path) -> None:
    """The page, and its pictures in the folder ``pictures`` beside it."""
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    path.write_text(text(rows), encoding="utf-8")
    for budget, name in RANKED.items():
        draw_ranks(mean_ranks(rows, "recommended", budget), pictures / name)
    peers = list(mean_ranks(rows, "recommended", min(RANKED)).of)
    draw_regret(rows, peers, pictures / "peers_regret.svg")
    draw_seconds(rows, [peer for peer in peers if peer != "random"], pictures / "peers_seconds.svg")


def text(rows: list[Row]) -> str:
    """The page in Markdown."""
    first, longer = (mean_ranks(rows, "recommended", budget) for budget in RANKED)
    lost = mean_ranks(rows, "cumulative", first.budget)
    parts = [INTRODUCTION, _standing(first, "the point that it recommends"), _longer(longer)]
    parts += [_standing(lost, f"the mean regret of all {lost.budget} evaluations"), _names_only(rows)]
    parts += [EVALUATIONS, METHOD, _coverage(rows), RUNNING, "## All figures\n"]
    for measure in ("recommended", "cumulative"):
        for budget in RANKED:
            ranks = mean_ranks(rows, measure, budget)
            parts.append(_folded(f"Mean rank, {MEASURES[measure]}, {budget} evaluations", _rank_table(ranks)))
    for measure, title in MEASURES.items():
        parts.append(_folded(f"Mean and 95% interval (runs): {title}", _means(rows, measure)))
    return "\n".join(parts)


def _standing(ranks: Ranks, by: str) -> str:
    """Where noregret is first, and who is where it is not."""
    ahead = [words(kind) for kind in KINDS[:-1] if ranks.first(kind) == "noregret"]
    behind = [_against(ranks, kind) for kind in KINDS[:-1] if ranks.first(kind) != "noregret"]
    said = f"By {by}, noregret has a mean rank of {_against(ranks, ALL)} over all noises."
    said += f" It is first under {_listed(ahead)} noise." if ahead else ""
    return _wrapped(said + (f" **It is not first** under {_listed(behind)}." if behind else ""))


def _against(ranks: Ranks, kind: str) -> str:
    """Its mean rank and that of the best of the others."""
    own = f"{ranks.of['noregret'][kind].mean:.2f}"
    return (
        f"{own} (best of the others: {_next(ranks, kind)})"
        if kind == ALL
        else f"{words(kind)} ({own}; {_next(ranks, kind)})"
    )


def _next(ranks: Ranks, kind: str) -> str:
    """The best of the others and its mean rank."""
    others = {peer: by_kind[kind].mean for peer, by_kind in ranks.of.items() if peer != "noregret"}
    best = min(others, key=others.__getitem__)
    return f"{words(best)} {others[best]:.2f}"


def _longer(ranks: Ranks) -> str:
    picture = f"![Mean rank after {ranks.budget} evaluations, by kind of noise](pictures/{RANKED[ranks.budget]})"
    return f"After {ranks.budget} evaluations, for those that are quick enough to be run so far:\n\n{picture}\n"


def _names_only(rows: list[Row]) -> str:
    """What came of the tables without features, where nothing can be learned from one row about another."""
    said = "On the two latency tables, names without features and more of them than 50, the mean regret is"
    peers = ("noregret", "optuna-tpe", "random")
    means = {(peer, budget): _measured(rows, peer, budget) for peer in peers for budget in RANKED}
    each = [
        f"after {budget} evaluations " + ", ".join(f"{words(p)} {means[p, budget]:.2f}" for p in peers)
        for budget in RANKED
    ]
    return _wrapped(f"{said} {_listed(each)}.")


def _measured(rows: list[Row], peer: str, budget: int) -> float:
    chosen = (row for row in rows if (row["peer"], row["budget"], row["noise"]) == (peer, budget, "measured"))
    return float(np.mean([row["recommended"] for row in chosen]))


def _wrapped(sentences: str) -> str:
    return textwrap.fill(sentences, 112, break_long_words=False, break_on_hyphens=False) + "\n"


def _listed(items: Iterable[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


def _coverage(rows: list[Row]) -> str:
    lines = []
    for peer in _values(rows, "peer"):
        own = [row for row in rows if row["peer"] == peer]
        runs = ", ".join(f"{sum(r['runs'] for r in own if r['budget'] == b)} to {b}" for b in _values(own, "budget"))
        lines.append([words(peer), runs, str(len(_values(own, "problem"))), _listed(_values(own, "on"))])
    return markdown.table(["optimiser", "runs, by evaluations", "problems", "run on"], lines)


def _rank_table(ranks: Ranks) -> str:
    lines = [
        [words(peer), *(f"{m.mean:.2f} [{m.low:.2f}, {m.high:.2f}]" for m in by_kind.values())]
        for peer, by_kind in ranks.of.items()
    ]
    return markdown.table(["optimiser", *map(words, KINDS)], lines)


def _means(rows: list[Row], measure: str) -> str:
    """A table for each problem at the budgets of all; the readings on the way are in the pictures and in the file."""
    blocks = []
    for budget, problem in sorted({(row["budget"], row["problem"]) for row in rows if row["budget"] in BUDGETS}):
        here = [row for row in rows if row["budget"] == budget and row["problem"] == problem]
        blocks.append(f"{problem}, {budget} evaluations\n\n" + _grid(here, lambda row: _interval(row, measure)))
    return "\n".join(blocks)


def _interval(row: Row, measure: str) -> str:
    half = row[f"{measure}_half"]
    return f"{row[measure]:.3f}" + ("" if np.isnan(half) else f" ± {half:.3f}") + f" ({row['runs']})"


def _grid(rows: list[Row], show: Callable[[Row], str]) -> str:
    noises = [noise for noise in (*KINDS, "measured") if noise in _values(rows, "noise")]
    found = {(row["peer"], row["noise"]): show(row) for row in rows}
    lines = [[peer, *(found.get((peer, noise), "") for noise in noises)] for peer in _values(rows, "peer")]
    return markdown.table(["optimiser", *noises], lines)


def _folded(title: str, content: str) -> str:
    """Shown when the reader opens it."""
    return f'<details markdown="1"><summary>{title}</summary>\n\n{content}\n</details>\n'


def _values(rows: Iterable[Row], name: str) -> list[Any]:
    return sorted({row[name] for row in rows})
