"""Runs that are cut short: ``python -m benchmarks.capped``, or ``--quick``.

Tables of measured times: a convolution kernel on three GPUs (see ``development/data``), and a blocked sum in NumPy that
was timed for this benchmark (``--measure`` times it again). The time of a setting is the mean of its timings, and a
measurement is one of them at random. With a cap of c, a run is stopped after ``Optimizer.cap(c)`` s and reported as
``at_least``, and the faster of the first two results is measured twice more at once, as ``noregret tune`` does. What
counts is the time that all runs have taken, stopped ones included. Printed in Markdown, means and standard errors over
the seeds:

- seconds to 1.05 (1.2): the time that all runs had taken when the recommended setting was first within this factor of
  the best one, in multiples of the time of the best; for runs that never were, all of their time (a lower bound);
- reached: the share of the runs that were;
- all runs: their time, in the same unit, as a part of that without a cap on the same seed;
- recommended: the time of the setting recommended at the end, 1 for the best;
- held: the share of the intervals of the last recommendation that hold its mean time;
- cut: the share of the runs that were stopped.

Each run is written to ``--out``, and read from there if it is known.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks import markdown
from benchmarks.development.measured import DATA, MeasuredTable, gpu
from noregret import Optimizer

BLOCKS = DATA / "blocked_sum.csv.gz"
TIMINGS = 5
"""Timings of each setting of the blocked sum."""
TARGETS = (1.05, 1.2)
LOOK = 5
"""Evaluations between two looks at the recommendation."""
FIRST, REPEATED = 2, 3
"""As in ``noregret.tune.learning.suggest``."""


@cache
def blocks() -> MeasuredTable:
    """Seconds that sums over the blocks of a matrix take in NumPy."""
    with gzip.open(BLOCKS, "rt", encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    settings = [dict(zip(names, map(int, row[:-TIMINGS]), strict=False)) for row in rows]
    return MeasuredTable(settings, np.array([row[-TIMINGS:] for row in rows], dtype=float), "minimize", relative=True)


def measure_blocks() -> None:
    """Time the blocked sum and write its table: processor time, since it does not count what else runs."""
    rng, rows = np.random.default_rng(0), []
    matrices = {
        (order, bits): np.asarray(rng.random((512, 512)), f"f{bits // 8}", "CF"[order])
        for order, bits in product((0, 1), (32, 64))
    }
    sums: list[Callable[[Any], Any]] = [
        np.sum,
        lambda x: x.sum(axis=0).sum(),
        partial(np.einsum, "ij->"),
        np.linalg.norm,
    ]
    sizes = [2**power for power in range(2, 10)]
    for height, width, order, bits, method in product(sizes, sizes, (0, 1), (32, 64), range(len(sums))):
        matrix, add = matrices[order, bits], sums[method]
        timings = []
        for _ in range(TIMINGS):
            start = process_time()
            for i, j in product(range(0, 512, height), range(0, 512, width)):
                add(matrix[i : i + height, j : j + width])
            timings.append(f"{process_time() - start:.6f}")
        rows.append([height, width, order, bits, method, *timings])
    text = io.StringIO(newline="")
    names = ["height", "width", "by_column", "bits", "method", *(f"t{i + 1}" for i in range(TIMINGS))]
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    BLOCKS.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


PROBLEMS: dict[str, Callable[[], MeasuredTable]] = {
    "blocked sum": blocks,
    **{f"gpu {name}": partial(gpu, name) for name in ("a100", "a4000", "mi250x")},
}


def play(name: str, cap: float, seed: int, evaluations: int) -> dict[str, Any]:
    """One run: time and true ratio of the recommendation at each look, and what is known at the end."""
    task, rng = PROBLEMS[name](), np.random.default_rng([seed, 7])
    opt = Optimizer(task.space, goal="minimize", rng=seed)
    spent, cut, looks = 0.0, 0, []
    results: list[tuple[float, int, Any]] = []
    for number in range(evaluations):
        is_repeat = bool(cap) and FIRST <= len(results) < FIRST + REPEATED - 1
        trial = opt.expect(min(results)[2]) if is_repeat else opt.ask()
        value, limit = task.measured(trial.params, rng), opt.cap(cap) if cap else math.inf
        spent += min(value, limit)
        if value > limit:
            opt.tell(trial, at_least=limit)
            cut += 1
        else:
            opt.tell(trial, value)
            results.append((value, number, trial.params))
        if number % LOOK == LOOK - 1 or number == evaluations - 1:
            looks.append([spent / task.best, task.expected(opt.best().params) / task.best])
    best = opt.best()
    held = best.lower <= task.expected(best.params) <= best.upper
    return {"looks": looks, "cut": cut / evaluations, "held": held}


def until(run: dict[str, Any], target: float) -> tuple[float, bool]:
    """Time until the recommendation was first within the target, or of the whole run; and True if it was."""
    found = [spent for spent, ratio in run["looks"] if ratio <= target]
    return (found[0], True) if found else (run["looks"][-1][0], False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--caps", type=float, nargs="+", default=[0.0, 2.0], help="0 for none")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--out", type=Path, default=Path("capped.jsonl"))
    parser.add_argument("--quick", action="store_true", help="2 seeds of 30 evaluations on one problem, not kept")
    parser.add_argument("--measure", action="store_true", help="time the blocked sum and write its table, nothing else")
    given = parser.parse_args()
    if given.measure:
        return measure_blocks()
    if given.quick:
        given.seeds, given.evaluations, given.problems, given.out = 2, 30, ["blocked sum"], None
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    if given.out and given.out.exists():
        lines = map(json.loads, given.out.read_text().splitlines())
        known = {tuple(line["run"]): line["found"] for line in lines}
    for seed, name, cap in product(range(given.seeds), given.problems, given.caps):
        run = (name, cap, seed, given.evaluations)
        if run not in known:
            known[run] = play(*run)
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps({"run": run, "found": known[run]}) + "\n")
    rows = []
    for name, cap in product(given.problems, given.caps):
        runs = [known[name, cap, seed, given.evaluations] for seed in range(given.seeds)]
        plain = [known.get((name, 0.0, seed, given.evaluations)) for seed in range(given.seeds)]
        cells = [name, f"{cap:g}" if cap else "none"]
        for target in TARGETS:
            times, reached = zip(*(until(run, target) for run in runs), strict=True)
            cells += [_cell(times, 0), f"{np.mean(reached):.0%}"]
        ratios = [run["looks"][-1][0] / other["looks"][-1][0] for run, other in zip(runs, plain, strict=True) if other]
        cells += [_cell(ratios, 2), _cell([run["looks"][-1][1] for run in runs], 3)]
        rows.append([*cells, *(f"{np.mean([run[key] for run in runs]):.0%}" for key in ("held", "cut"))])
    heads = [head for target in TARGETS for head in (f"seconds to {target:g}", "reached")]
    print(markdown.table(["problem", "cap", *heads, "all runs", "recommended", "held", "cut"], rows))


def _cell(values: Any, digits: int) -> str:
    found = np.array(values, dtype=float)
    error = found.std(ddof=1) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return f"{found.mean():.{digits}f} ± {error:.{digits}f}"


if __name__ == "__main__":
    main()
