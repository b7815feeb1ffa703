"""The default environment against one BLAS thread: ``python -m benchmarks.threads [--quick]``.

With nothing set by the user, no algorithm may be slower than with ``OPENBLAS_NUM_THREADS=1`` by more than 10%, on a
quiet machine and beside one and two busy processes. Every figure is a ratio of the fastest of up to 25
processes, which take turns for a minute, so that other load affects both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np

from benchmarks.core import KERNEL, NOISE, drive, world
from noregret import Float, Optimizer, algorithms

LIMIT = 1.1
ONE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds, 10 seconds each")
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2], help="how many busy processes to run beside")
    parser.add_argument("--only", nargs="*", choices=list(WORK), default=list(WORK))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(WORK[given.measure](5 if given.quick else 1))
        return
    for count in given.busy:
        print(f"beside {count} busy processes" if count else "on a machine that does nothing else")
        with busy(count):
            for name in given.only:
                compare(name, given.quick)


def compare(name: str, quick: bool) -> None:
    default = one = float("inf")
    start, turns = perf_counter(), 0
    while turns < 2 or (perf_counter() - start < (10 if quick else 60) and turns < 25):
        default, one = min(default, measured(name, quick, {})), min(one, measured(name, quick, ONE))
        turns += 1
    verdict = "" if default <= LIMIT * one else f"   above {LIMIT}"
    print(f"  {name:28s} {1e6 * one:9.1f} us on one thread, by default {default / one:5.2f} x{verdict}", flush=True)


def measured(name: str, quick: bool, environment: dict[str, str]) -> float:
    """Seconds a round, in a separate process."""
    command = [sys.executable, "-m", "benchmarks.threads", "--measure", name, *(["--quick"] if quick else [])]
    plain = {key: value for key, value in os.environ.items() if key not in ONE}
    result = subprocess.run(command, env=plain | environment, capture_output=True, text=True, check=True)
    return float(result.stdout)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Run busy processes in the background."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def rounds_of(algorithm, arms: int, dimension: int, rounds: int) -> Callable[[int], float]:
    """Seconds a round of a run, after a tenth of it; a fraction of the rounds if asked for."""

    def measure(fraction: int) -> float:
        points, means = world(arms, dimension)
        count = rounds // fraction
        clock = drive(algorithm, points, means, count)
        return float(clock[-1] - clock[count // 10]) / (count - count // 10)

    return measure


def asking(fraction: int) -> float:
    """Seconds that an Optimizer takes for a suggestion, with its observation."""
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="maximize", rng=0)
    rng, count, start = np.random.default_rng(0), 60 // fraction, 0.0
    for t in range(20 + count):
        if t == 20:
            start = perf_counter()
        trial = optimizer.ask()
        optimizer.tell(trial, float(np.sin(5 * trial.params["x"]) + trial.params["y"] + NOISE * rng.standard_normal()))
    return (perf_counter() - start) / count


WORK: dict[str, Callable[[int], float]] = {
    "bkb, 2,000 arms": rounds_of(algorithms.bkb(KERNEL, noise=NOISE, horizon=1_500), 2_000, 2, 1_500),
    "ay_ucb, 2,000 arms": rounds_of(algorithms.ay_ucb(KERNEL, noise=NOISE), 2_000, 2, 1_500),
    "gp_ts, 100 arms": rounds_of(algorithms.gp_ts(KERNEL, noise=NOISE, constants="experiment"), 100, 1, 10_000),
    "igp_ucb, 100 arms": rounds_of(algorithms.igp_ucb(KERNEL, noise=NOISE, constants="experiment"), 100, 1, 10_000),
    "Optimizer, 2 parameters": asking,
}


if __name__ == "__main__":
    main()
