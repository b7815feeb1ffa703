"""The page docs/noisy_suite.md: how the comparison was made, its tables, and its pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import markdown, provenance
from benchmarks.noisy.functions import KINDS
from benchmarks.noisy.optimisers import ON_A_PART, OPTIMISERS, PART
from benchmarks.noisy.pictures import picture
from benchmarks.noisy.ranks import Line, mean_ranks

INTRODUCTION = """# Optimisers on bbob-noisy

bbob-noisy of COCO is a public suite of noisy functions (f101 to f130 on [-5, 5]^d; Hansen, Finck, Ros, Auger:
Real-Parameter Black-Box Optimization Benchmarking 2009: Noisy Functions Definitions). The budgets here are short,
as for expensive measurements. These commands make the page:

    python -m benchmarks.noisy_suite
    python -m benchmarks.noisy_suite --optimisers botorch-lognei botorch-ucb optuna-gp --dimensions 2 --instances 1 \\
        --functions 107 108 109 116 117 118 128 129 130 --longest 50
    python -m benchmarks.noisy_suite --table docs/noisy_suite.md

`benchmarks/results/noisy.csv` has every reading of every run.

**Problems.** 30 functions in 2, 3, 5 and 10 dimensions, instances 1 to 3. The first table shows which of them were
run, and to how many evaluations. The kinds of noise alternate: Gauss, (f - f\\*) e^(beta N); uniform, (f - f\\*)
U^beta max(1, (10^9 / (f - f\\*))^(alpha U')); Cauchy, f + alpha max(0, 1000 + 1{U < p} N / |N'|). The noise is
moderate in f101 to f106 and severe in the others. Gauss and uniform noise vanish at the optimum, Cauchy noise does
not.

**True values and noise.** True values are exactly those of the suite. The noise uses the formulas of the suite with
our own random generator, so that all optimisers get the same random numbers at their n-th evaluation. With the random
numbers of the suite the values equal those of the suite to 12 digits. [Why not the suite's random
numbers](decisions/0093-the-noise-of-bbob-noisy.md).

**Optimisers** are those of [the other comparison](peers.md), in the versions that the extra `peers` requires.
noregret: `Optimizer` with its defaults. cma-es: `cma` with its noise handling, started at a random point with a
step of a fifth of the box, restarted with twice the population; it recommends the mean of its last generation.
optuna-tpe, optuna-gp, random: they recommend the luckiest measurement. botorch-lognei, botorch-ucb: a fit before
every trial; they recommend the largest posterior mean among the measured points. BoTorch and optuna-gp are slow and
were run on a part of the suite: see the table.

**Measures.** One run gives the results at all budgets; no optimiser knows them. `recommended` is the true value of
the point that the optimiser recommends at that time, minus the minimum. `evaluated` is the least true value among
the evaluated points, which an optimiser cannot know. Ranks are among the optimisers of a table, and 1 is best.
Brackets contain 95% bootstrap intervals, in which a function is drawn with all its dimensions and instances.
"""
DISTRIBUTIONS = """The share of (run, target) pairs whose target is reached, for the 51 gaps of COCO from 10^2 to
10^-8, over functions, instances and dimensions, up to the smallest budget of all runs. For the best evaluated
point, the lower row, this is the run-time distribution of COCO. For the recommended point a target counts while the
recommendation meets it, so a curve may fall.

![Run-time distributions](pictures/noisy_suite.svg)
"""
SECONDS = """Milliseconds of asking and telling per evaluation on one thread, median over runs (number of evaluations).
"""
BUDGETS = (10, 50, 100)
MEASURES = {"recommended": "the recommended point", "evaluated": "the best evaluated point"}
Part = Callable[[Line], bool]


def write(lines: list[Line], path: Path) -> None:
    """The page, and its pictures in the folder ``pictures`` beside it."""
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join([INTRODUCTION, provenance.sentence("noisy.csv"), *_results(lines, pictures)]), encoding="utf-8"
    )


def _results(lines: list[Line], pictures: Path) -> list[str]:
    if not lines:
        return ["## Results\n", "No run has been made yet.\n"]
    present = [name for name in OPTIMISERS if any(line["optimiser"] == name for line in lines)]
    on_all = [name for name in present if name not in ON_A_PART]
    parts = ["## What was run\n", _by_optimiser(lines, present, _extent)]
    for measure, words in MEASURES.items():
        parts += [f"## Mean rank by {words}\n", *_by_kind(lines, on_all, measure)]
        if present != on_all:
            parts += [
                "All optimisers, on the part of the suite where all were run:\n",
                *_by_kind(lines, present, measure),
            ]
    parts += ["## Mean rank by dimension and by strength of the noise\n", "By the recommended point.\n"]
    parts += _by_dimension(lines, on_all)
    parts += ["## Run-time distributions\n", _distributions(lines, on_all, present, pictures)]
    return [*parts, "## CPU seconds\n", SECONDS, _by_optimiser(lines, present, _milliseconds)]


def _by_optimiser(lines: list[Line], optimisers: Sequence[str], cell: Callable[[list[Line]], str]) -> str:
    """A row for each optimiser, a cell for its readings in each dimension."""
    dimensions = sorted({line["dimension"] for line in lines})
    rows = []
    for name in optimisers:
        own = [[line for line in lines if (line["optimiser"], line["dimension"]) == (name, d)] for d in dimensions]
        rows.append([name, *map(cell, own)])
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


def _milliseconds(lines: list[Line]) -> str:
    """Median over runs of the time of asking and telling, at the largest budget."""
    if not lines:
        return ""
    longest = max(line["evaluations"] for line in lines)
    median = np.median([line["seconds"] for line in lines if line["evaluations"] == longest])
    return f"{1000 * median / longest:.2f} ({longest})"
