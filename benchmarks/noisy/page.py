"""The page docs/noisy_suite.md: how the comparison was made, its tables, and its pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import markdown
from benchmarks.noisy.functions import KINDS
from benchmarks.noisy.optimisers import ON_A_PART, OPTIMISERS, PART
from benchmarks.noisy.pictures import picture
from benchmarks.noisy.ranks import Line, mean_ranks

INTRODUCTION = """# Optimisers on bbob-noisy

The public suite of noisy functions, bbob-noisy of COCO (functions f101 to f130 on [-5, 5]^d; Hansen, Finck, Ros, Auger:
Real-Parameter Black-Box Optimization Benchmarking 2009: Noisy Functions Definitions), with the short budgets at which
measurements are expensive. This page is made by

    python -m benchmarks.noisy_suite
    python -m benchmarks.noisy_suite --optimisers botorch-lognei botorch-ucb optuna-gp --dimensions 2 --instances 1 \\
        --functions 107 108 109 116 117 118 128 129 130 --longest 50
    python -m benchmarks.noisy_suite --table docs/noisy_suite.md

and every reading of every run is in `benchmarks/results/noisy.csv`.

**Problems.** 30 functions in 2, 3, 5 and 10 dimensions, instances 1 to 3; the first table says how much of that
was run, and how far. The kinds of noise alternate: Gauss,
(f - f\\*) e^(beta N); uniform, (f - f\\*) U^beta max(1, (10^9 / (f - f\\*))^(alpha U')); Cauchy,
f + alpha max(0, 1000 + 1{U < p} N / |N'|). It is moderate in f101 to f106 and severe in the others. Gauss and uniform
noise vanish at the optimum, Cauchy noise does not.

**True values and noise.** True values are the suite's own, exactly. The noise is drawn by the suite's formulas from a
generator of our own, so that every optimiser meets the same draws at its n-th evaluation; `--check` shows that with the
suite's draws the values are the suite's to 12 digits.
[Why not the suite's draws](decisions/0093-the-noise-of-bbob-noisy.md).

**Optimisers**, as in [the other comparison](peers.md), in the versions that the extra `peers` asks for. noregret:
`Optimizer` with its defaults. cma-es: `cma` with its noise handling, from a random point with a step of a fifth of the
box, restarted with twice the population; it recommends the mean of its last generation. optuna-tpe, optuna-gp, random:
the luckiest measurement is recommended. botorch-lognei, botorch-ucb: a fit before every question; the largest posterior
mean among the measured points is recommended. BoTorch and optuna-gp are slow, and were run on a part: see the table.

**Measures.** One run serves all budgets, as it is read on the way; no optimiser knows them. `recommended` is the true
value of the point that the optimiser recommends at that moment, less the least one; `evaluated` is the least true value
among the points it has measured, which nobody would know. Ranks are among the optimisers of a table, 1 is best; in
brackets 95% bootstrap intervals, in which a function is drawn with all its dimensions and instances.
"""
DISTRIBUTIONS = """The share of (run, target) pairs whose target is reached, for COCO's 51 gaps from 10^2 to 10^-8, over
functions, instances and dimensions, as far as all runs went. For the best evaluated point, the lower row, this is
COCO's run-time distribution. For the recommended point a target counts as long as the recommendation of that moment
meets it, so a curve may fall.

![Run-time distributions](pictures/noisy_suite.svg)
"""
BUDGETS = (10, 50, 100)
MEASURES = {"recommended": "the recommended point", "evaluated": "the best evaluated point"}
Part = Callable[[Line], bool]


def write(lines: list[Line], path: Path) -> None:
    """The page, and its pictures in the folder ``pictures`` beside it."""
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([INTRODUCTION, *_results(lines, pictures)]), encoding="utf-8")


def _results(lines: list[Line], pictures: Path) -> list[str]:
    if not lines:
        return ["## Results\n", "No run has been made yet.\n"]
    present = [name for name in OPTIMISERS if any(line["optimiser"] == name for line in lines)]
    on_all = [name for name in present if name not in ON_A_PART]
    parts = ["## What was run\n", _coverage(lines, present)]
    for measure, words in MEASURES.items():
        parts += [f"## Mean rank by {words}\n", *_by_kind(lines, on_all, measure)]
        if present != on_all:
            parts += ["Those that were run on a part, where all were run:\n", *_by_kind(lines, present, measure)]
    parts += ["## Mean rank by dimension and by strength of the noise\n", "By the recommended point.\n"]
    parts += _by_dimension(lines, on_all)
    parts += ["## Run-time distributions\n", _distributions(lines, on_all, present, pictures)]
    return [*parts, "## CPU seconds\n", _seconds(lines, present)]


def _coverage(lines: list[Line], optimisers: Sequence[str]) -> str:
    dimensions = sorted({line["dimension"] for line in lines})
    rows = []
    for name in optimisers:
        own = [[line for line in lines if (line["optimiser"], line["dimension"]) == (name, d)] for d in dimensions]
        rows.append([name, *(_extent(each) for each in own)])
    return markdown.table(["optimiser", *(f"d = {d}" for d in dimensions)], rows)


def _extent(lines: list[Line]) -> str:
    runs = {(line["number"], line["instance"]) for line in lines}
    return f"{len(runs)} runs to {max(line['evaluations'] for line in lines)}" if runs else ""


def _by_kind(lines: list[Line], optimisers: Sequence[str], measure: str) -> list[str]:
    parts: dict[str, Part] = {kind: (lambda line, kind=kind: line["kind"] == kind) for kind in KINDS}
    tables = [_ranks(lines, optimisers, measure, b, parts | {"all": lambda line: True}) for b in BUDGETS]
    return [table for table in tables if table]


def _by_dimension(lines: list[Line], optimisers: Sequence[str]) -> list[str]:
    dimensions = sorted({line["dimension"] for line in lines})
    parts: dict[str, Part] = {f"d = {d}": (lambda line, d=d: line["dimension"] == d) for d in dimensions}
    parts |= {"moderate": lambda line: not line["severe"], "severe": lambda line: line["severe"]}
    tables = [_ranks(lines, optimisers, "recommended", budget, parts) for budget in BUDGETS]
    return [table for table in tables if table]


def _ranks(lines: list[Line], optimisers: Sequence[str], measure: str, budget: int, parts: dict[str, Part]) -> str:
    here = [line for line in lines if line["evaluations"] == budget * line["dimension"]]
    found = {
        name: mean_ranks([line for line in here if part(line)], optimisers, measure) for name, part in parts.items()
    }
    found = {name: each for name, each in found.items() if each[1]}
    if not found:
        return ""
    head = [f"{budget} d evaluations", *(f"{name} ({runs} runs)" for name, (_, runs) in found.items())]
    cells = [[f"{r.mean:.2f} [{r.low:.2f}, {r.high:.2f}]" for r in ranks] for ranks, _ in found.values()]
    return markdown.table(head, zip(optimisers, *cells, strict=True))


def _distributions(lines: list[Line], on_all: Sequence[str], present: Sequence[str], pictures: Path) -> str:
    """Two pictures and their words."""
    picture(lines, on_all, pictures / "noisy_suite.svg")
    if present == on_all:
        return DISTRIBUTIONS
    dimension, longest = next(iter(PART.items()))
    picture([line for line in lines if line["dimension"] == dimension], present, pictures / "noisy_suite_part.svg")
    words = f"All optimisers, in {dimension} dimensions to {longest} evaluations per dimension:"
    return f"{DISTRIBUTIONS}\n{words}\n\n![All optimisers](pictures/noisy_suite_part.svg)\n"


def _seconds(lines: list[Line], optimisers: Sequence[str]) -> str:
    """Median over runs of the seconds of asking and telling, at the largest budget of each dimension."""
    dimensions = sorted({line["dimension"] for line in lines})
    rows = []
    for name in optimisers:
        own = [[line for line in lines if (line["optimiser"], line["dimension"]) == (name, d)] for d in dimensions]
        rows.append([name, *(_milliseconds(each) for each in own)])
    words = "Of asking and telling, one thread, median over runs, milliseconds an evaluation (evaluations).\n\n"
    return words + markdown.table(["optimiser", *(f"d = {d}" for d in dimensions)], rows)


def _milliseconds(lines: list[Line]) -> str:
    if not lines:
        return ""
    longest = max(line["evaluations"] for line in lines)
    median = np.median([line["seconds"] for line in lines if line["evaluations"] == longest])
    return f"{1000 * median / longest:.2f} ({longest})"
