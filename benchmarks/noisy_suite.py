"""Optimisers on the public suite of noisy functions, bbob-noisy: f101 to f130 in 2, 3, 5 and 10 dimensions.

Install what is needed with ``pip install '.[peers,lab]'``, and

    python -m benchmarks.noisy_suite --optimisers noregret random --functions 101 110 --dimensions 2 --longest 10

Every run to 100 evaluations per dimension is read on the way, so one run serves all budgets. Runs are kept in
benchmarks/results/noisy.csv and not repeated; stop the program and start it again as you like, and delete the lines of
runs to repeat. noregret, CMA-ES, TPE and random search are run on everything, which takes two hours on
two cores; BoTorch and Optuna's Gaussian process, when named, on 2 dimensions to 50 and on 5 dimensions to 10
evaluations per dimension. ``--table docs/noisy_suite.md`` writes the page with the tables, and the pictures beside it,
from all runs that are there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path

from benchmarks import provenance
from benchmarks.development.trees import ONE_THREAD
from benchmarks.noisy import results
from benchmarks.noisy.functions import FUNCTIONS
from benchmarks.noisy.optimisers import ON_ALL, OPTIMISERS
from benchmarks.noisy.running import Cell, play


def main() -> None:
    options = _options()
    os.environ.update(ONE_THREAD)  # the processes that are started inherit it
    if options.table:
        from benchmarks.noisy.page import write

        write(results.lines(results.read(options.out)), options.table)
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """All runs that are not there yet, in processes; one that fails does not stop the others."""
    grid = product(options.dimensions, options.instances, options.functions, options.optimisers)
    cells = [Cell(name, number, dimension, instance) for dimension, instance, number, name in grid]
    wanted = [cell for cell in cells if cell.readings(options.longest)]
    runs = results.read(options.out)
    missing = [cell for cell in wanted if len(runs.get(cell, [])) < len(cell.readings(options.longest))]
    print(f"{len(wanted)} runs, {len(wanted) - len(missing)} of them there", file=sys.stderr)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=spawned) as pool:
        waiting = {pool.submit(play, cell, options.longest): cell for cell in missing}
        for number, done in enumerate(as_completed(waiting), 1):
            failure = f" failed: {done.exception()!r}" if done.exception() else ""
            print(f"{number} of {len(missing)}: {waiting[done]}{failure}", file=sys.stderr)
            if not failure:
                runs[waiting[done]] = done.result()
                results.write(runs, options.out)
                provenance.record(options.out)
    failed = sum(done.exception() is not None for done in waiting)
    if failed:
        raise SystemExit(f"{failed} runs failed, see above; the others are kept")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--optimisers", nargs="+", default=list(ON_ALL), choices=OPTIMISERS, metavar="NAME")
    parser.add_argument(
        "--functions", nargs="+", type=int, default=list(FUNCTIONS), choices=FUNCTIONS, metavar="NUMBER"
    )
    parser.add_argument("--dimensions", nargs="+", type=int, default=[2, 3, 5, 10])
    parser.add_argument("--instances", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--longest", type=int, default=100, help="evaluations per dimension")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=results.KEPT, help="CSV file of the runs")
    parser.add_argument("--table", type=Path, help="Markdown file to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
