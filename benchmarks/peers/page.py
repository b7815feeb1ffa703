"""The pages docs/peers.md (pictures, summary and method) and docs/reports/peers.md (all tables)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import markdown, provenance
from benchmarks.peers.pictures import draw_ranks, draw_regret, draw_seconds, words
from benchmarks.peers.ranks import ALL, KINDS, Ranks, mean_ranks
from benchmarks.peers.results import Row

INTRODUCTION = """# Against other optimisers

All optimisers solve the same problems with the same noises and seeds, each with its default settings. A regret of 0
is that of the best setting, and 1 is that of a random one. `python -m benchmarks.peers --page docs/peers.md` makes
this page and [the tables](reports/peers.md) from `benchmarks/results/peers.csv`. [More runs](#how-to-run-it) can be
added to that file. MEASURED

## Rank by kind of noise

Optimisers are ranked by the regret of the point that they recommend. The filled dot is the best of its column.

![Mean rank of seven optimisers after 50 evaluations, by kind of noise](pictures/peers_ranks.svg)
"""
EVALUATIONS = """## Regret against evaluations

![Regret of the recommended point against evaluations, by kind of noise](pictures/peers_regret.svg)

The curves are means over eight problems. Dots are optimisers that were run to 50 evaluations only. Random search
recommends its luckiest measurement; under heavy tails, more measurements do not improve it.

## Regret against CPU seconds

![Regret of the recommended point against CPU seconds of the optimiser](pictures/peers_seconds.svg)

The time is that of asking, telling and recommending, on one thread of a busy machine. The number at a dot is the
number of evaluations. If a measurement takes much longer than this, the time of the optimiser does not matter.
"""
METHOD = """## What was run

**Problems.** Branin, Rosenbrock (2-d), Hartmann in 4 and 6 dimensions, random functions in 1, 2 and 3 dimensions, a
table of cloud runtimes, and two tables of network latencies. The latency tables have measured values, and names
instead of features.

**Noise.** Gaussian: 0.1 and 0.5 standard deviations of the function over its space. Student-t: a quarter of it,
with 3 and 1.5 degrees of freedom. Pareto: the value is the mean of a Pareto distribution of shape 2. Spikes: 20
times the function's range, up or down, in 2% of the evaluations, on Gaussian noise of 0.1.

**Optimisers.** noregret: `Optimizer` with its defaults, which were chosen on other problems. BoTorch: a
`SingleTaskGP` fitted before every trial, as in its tutorials; it recommends the largest posterior mean among the
measured points. The others, with their defaults, recommend the luckiest measurement.

**Ranks.** Optimisers are ranked by their mean over seeds on each problem and noise, and ranks are averaged over
problems. Intervals are a bootstrap over problems, so an optimiser that is first on all problems has an interval of
length 0.

**Results file.** A row is the mean over seeds for an optimiser, problem, noise and budget, with the date of the run
([why means](decisions/0170-a-comparison-keeps-means-over-seeds.md)).
"""
RUNNING = """## How to run it

    pip install '.[peers,lab]'
    python -m benchmarks.peers --peers noregret optuna-tpe --seeds 10 --budgets 10 20 50 100 200
    python -m benchmarks.peers --keep

The second command adds runs to `.benchmarks/peers.jsonl` and does not repeat finished ones, so remove that file
when `Optimizer` has changed. The third adds their means to the results file. All runs of noregret, TPE and random
to 200 evaluations take less than an hour; all runs of all optimisers take days.
"""
TABLES = """# Tables of the comparison with other optimisers

All numbers of [the comparison](../peers.md), which explains problems, noises and measures. Mean ranks have 95%
bootstrap intervals in brackets. Means over seeds have 95% intervals and, in brackets, the number of runs. `python
-m benchmarks.peers --page docs/peers.md` makes this page.
"""
MEASURES = {
    "recommended": "regret of the recommended point",
    "cumulative": "mean regret of all evaluations",
    "seconds": "CPU seconds of the optimiser",
}
BUDGETS = (50, 200, 1000)
RANKED = {50: "peers_ranks.svg", 200: "peers_ranks_200.svg"}


def write(rows: list[Row], path: Path) -> None:
    """Write the page, its tables in the folder ``reports`` and its pictures in the folder ``pictures`` beside it."""
    pictures, tables = path.parent / "pictures", path.parent / "reports" / path.name
    for folder in (pictures, tables.parent):
        folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text(rows), encoding="utf-8")
    tables.write_text(all_tables(rows), encoding="utf-8")
    for budget, name in RANKED.items():
        draw_ranks(mean_ranks(rows, "recommended", budget), pictures / name)
    peers = list(mean_ranks(rows, "recommended", min(RANKED)).of)
    draw_regret(rows, peers, pictures / "peers_regret.svg")
    draw_seconds(rows, [peer for peer in peers if peer != "random"], pictures / "peers_seconds.svg")


def text(rows: list[Row]) -> str:
    """Return the page in Markdown."""
    first, longer = (mean_ranks(rows, "recommended", budget) for budget in RANKED)
    lost = mean_ranks(rows, "cumulative", first.budget)
    introduction = INTRODUCTION.replace("MEASURED\n", provenance.sentence("peers.csv"))
    parts = [introduction, _rank_table(first), _standing(first, "the recommended point"), _longer(longer)]
    parts += [_standing(lost, f"the mean regret of all {lost.budget} evaluations"), _names_only(rows)]
    return "\n".join([*parts, EVALUATIONS, METHOD, _coverage(rows), RUNNING])


def all_tables(rows: list[Row]) -> str:
    """Return the page of tables in Markdown."""
    parts = [TABLES]
    for measure in ("recommended", "cumulative"):
        for budget in RANKED:
            ranks = mean_ranks(rows, measure, budget)
            parts.append(f"## Mean rank, {MEASURES[measure]}, {budget} evaluations\n\n{_rank_table(ranks)}")
    for measure, title in MEASURES.items():
        parts.append(f"## Mean and interval, {title}\n\n{_means(rows, measure)}")
    return "\n".join(parts)


def _standing(ranks: Ranks, by: str) -> str:
    """Noises under which noregret is first, and the first optimiser under the others."""
    ahead = [words(kind) for kind in KINDS[:-1] if ranks.first(kind) == "noregret"]
    behind = [_against(ranks, kind) for kind in KINDS[:-1] if ranks.first(kind) != "noregret"]
    said = f"By {by}, noregret has a mean rank of {_against(ranks, ALL)} over all noises."
    said += f" It is first under {_listed(ahead)} noise." if ahead else ""
    return markdown.wrapped(said + (f" **It is not first** under {_listed(behind)}." if behind else ""))


def _against(ranks: Ranks, kind: str) -> str:
    """Mean rank of noregret and of the best other optimiser."""
    own = f"{ranks.of['noregret'][kind].mean:.2f}"
    return (
        f"{own} (best of the others: {_next(ranks, kind)})"
        if kind == ALL
        else f"{words(kind)} ({own}; {_next(ranks, kind)})"
    )


def _next(ranks: Ranks, kind: str) -> str:
    """The best other optimiser and its mean rank."""
    others = {peer: by_kind[kind].mean for peer, by_kind in ranks.of.items() if peer != "noregret"}
    best = min(others, key=others.__getitem__)
    return f"{words(best)} {others[best]:.2f}"


def _longer(ranks: Ranks) -> str:
    picture = f"![Mean rank after {ranks.budget} evaluations, by kind of noise](pictures/{RANKED[ranks.budget]})"
    return f"After {ranks.budget} evaluations, for the optimisers that are fast enough:\n\n{picture}\n"


def _names_only(rows: list[Row]) -> str:
    """Mean regrets on the tables without features, where one row says nothing about another."""
    said = "On the two latency tables, which have more than 50 names and no features, the mean regret is"
    peers = ("noregret", "optuna-tpe", "random")
    means = {(peer, budget): _measured(rows, peer, budget) for peer in peers for budget in RANKED}
    each = [
        f"after {budget} evaluations " + ", ".join(f"{words(p)} {means[p, budget]:.2f}" for p in peers)
        for budget in RANKED
    ]
    return markdown.wrapped(f"{said} {_listed(each)}.")


def _measured(rows: list[Row], peer: str, budget: int) -> float:
    chosen = (row for row in rows if (row["peer"], row["budget"], row["noise"]) == (peer, budget, "measured"))
    return float(np.mean([row["recommended"] for row in chosen]))


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
    """One table per problem at the main budgets; the other budgets are in the pictures and in the results file."""
    blocks = []
    for budget, problem in sorted({(row["budget"], row["problem"]) for row in rows if row["budget"] in BUDGETS}):
        here = [row for row in rows if row["budget"] == budget and row["problem"] == problem]
        blocks.append(f"{problem}, {budget} evaluations:\n\n" + _grid(here, lambda row: _interval(row, measure)))
    return "\n".join(blocks)


def _interval(row: Row, measure: str) -> str:
    half = row[f"{measure}_half"]
    return f"{row[measure]:.3f}" + ("" if np.isnan(half) else f" ± {half:.3f}") + f" ({row['runs']})"


def _grid(rows: list[Row], show: Callable[[Row], str]) -> str:
    noises = [noise for noise in (*KINDS, "measured") if noise in _values(rows, "noise")]
    found = {(row["peer"], row["noise"]): show(row) for row in rows}
    lines = [[peer, *(found.get((peer, noise), "") for noise in noises)] for peer in _values(rows, "peer")]
    return markdown.table(["optimiser", *noises], lines)


def _values(rows: Iterable[Row], name: str) -> list[Any]:
    return sorted({row[name] for row in rows})
