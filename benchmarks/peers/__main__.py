"""noregret's Optimizer against other optimisers, on the same problems, noises and seeds.

Install the others with ``pip install '.[peers]'``, and

    python -m benchmarks.peers --peers noregret optuna-tpe --problems branin cloud --seeds 5 --budgets 50 200

Every peer and problem runs in its own process on one thread. Finished runs are kept as JSON lines (``--out``)
and not repeated, so the grid can be filled step by step. ``--keep`` writes their means over seeds to
benchmarks/results/peers.csv, and ``--page docs/peers.md`` makes the pages and pictures from that file. An
optimiser does not know the budget: one run to the largest budget gives all results. The whole grid takes weeks of
CPU time, most of it for other optimisers; choose a part of it with the options. Seconds are CPU
seconds of asking, telling and recommending.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import provenance
from benchmarks.development.trees import ONE_THREAD
from benchmarks.lines import stored
from benchmarks.peers import page, results
from benchmarks.peers.adapters import PEERS
from benchmarks.peers.worlds import NOISES, PROBLEMS, measured, noises_of, world


def main() -> None:
    options = _options()
    if options.worker:
        work(options)
        return
    if options.keep or options.page:
        publish(options)
        return
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    running: list[subprocess.Popen[bytes]] = []
    for peer, problem in product(options.peers, options.problems):
        while len(running) >= options.jobs:
            running = [process for process in running if process.poll() is None]
            time.sleep(0.2)
        running.append(_started(options, peer, problem))
    for process in running:
        process.wait()


def publish(options: argparse.Namespace) -> None:
    """Add finished runs to the results file, or make the pages from it."""
    if options.keep:
        today = results.summarised(stored(Path(options.out)), date.today().isoformat())
        results.write(results.replaced(results.read(), today))
        provenance.record(results.KEPT)
    if options.page:
        page.write(results.read(), options.page)


def work(options: argparse.Namespace) -> None:
    """Run all missing runs of one peer on one problem."""
    (peer,), (problem,) = options.peers, options.problems
    done = {_cell(line) for line in stored(Path(options.out))}
    for seed, noise in product(range(options.seeds), noises_of(problem, options.noises)):
        if all((peer, problem, noise, seed, budget) in done for budget in options.budgets):
            continue
        lines = run(peer, problem, noise, seed, options.budgets)
        with Path(options.out).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def run(peer: str, problem: str, noise: str, seed: int, budgets: list[int]) -> list[dict[str, Any]]:
    """One run, with its results at every budget: mean regret, regret of the recommendation, CPU seconds."""
    warnings.simplefilter("ignore")
    place, rng = world(problem, seed), np.random.default_rng([seed, 1])
    lines, total, seconds = [], 0.0, 0.0
    start = time.process_time()
    optimiser = PEERS[peer](place, seed)
    for evaluation in range(1, max(budgets) + 1):
        where = optimiser.ask()
        seconds += time.process_time() - start
        total += place.regret(where)
        value = measured(place, noise, where, rng)
        start = time.process_time()
        optimiser.tell(where, value)
        if evaluation in budgets:
            recommended = optimiser.best()
            seconds, start = seconds + time.process_time() - start, time.process_time()
            line = {"peer": peer, "problem": problem, "noise": noise, "seed": seed, "budget": evaluation}
            regrets = {"recommended": place.regret(recommended), "cumulative": total / evaluation}
            lines.append(line | regrets | {"seconds": seconds})
    return lines


def _cell(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("peer", "problem", "noise", "seed", "budget"))


def _started(options: argparse.Namespace, peer: str, problem: str) -> subprocess.Popen[bytes]:
    arguments = ["--worker", "--peers", peer, "--problems", problem]
    arguments += ["--seeds", str(options.seeds), "--out", options.out]
    arguments += ["--noises", *options.noises, "--budgets", *map(str, options.budgets)]
    command = [sys.executable, "-m", "benchmarks.peers", *arguments]
    return subprocess.Popen(command, env=os.environ | ONE_THREAD)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    peers = ["noregret", "optuna-tpe", "optuna-gp", "bayesian-optimization", "scikit-optimize"]
    peers += ["botorch-lognei", "botorch-ucb", "random"]
    parser.add_argument("--peers", nargs="+", default=peers, choices=peers)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--noises", nargs="+", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--budgets", nargs="+", type=int, default=[50, 200, 1000])
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1, ... of this number")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--out", default=".benchmarks/peers.jsonl")
    parser.add_argument("--keep", action="store_true", help="put the means of finished runs into the file of results")
    parser.add_argument("--page", type=Path, help="Markdown file to write, with pictures beside it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
