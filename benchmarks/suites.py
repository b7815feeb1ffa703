"""False alarms of suites of benchmarks, and runs needed to find a slowdown: ``python -m benchmarks.suites``.

A run of a suite measures 40 benchmarks one after the other. The logarithm of a time is the sum of noise of 2%; the
speed of the machine, a random walk with steps of 0.5% per run; a stall of 50% in 3% of the times; and a slow spell, in
which all times of a run are 20% longer, in 2% of the runs. Runs of A and B come in pairs in random order.

noregret is e-BH over the names as `noregret.Suite` does it, read after each of up to 60 pairs. The other rules are read
once, after ten runs of each: by a pooled t-test of each benchmark, by the change of its mean or median, or by both.
Printed in Markdown; takes about ten seconds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import stdtr

from benchmarks import markdown
from noregret.comparison.sequences import log_stake
from noregret.gp.posterior import Floats, Rng

NAMES, PAIRS, RUNS, CONFIDENCE = 40, 60, 10, 0.95
NOISE, STEP, STALL, SPELL = 0.02, 0.005, math.log(1.5), math.log(1.2)


def times(pairs: int, slowdown: float, rng: Rng, in_blocks: bool = False) -> Floats:
    """Logarithms of the times of a suite, (pairs, options, names); the first name is slower in B."""
    runs = 2 * pairs
    walk = STEP / math.sqrt(NAMES) * rng.standard_normal(runs * NAMES).cumsum().reshape(runs, NAMES)
    found = walk + NOISE * rng.standard_normal((runs, NAMES)) + STALL * (rng.random((runs, NAMES)) < 0.03)
    found = found + SPELL * (rng.random((runs, 1)) < 0.02)
    if in_blocks:
        paired = found.reshape(2, pairs, NAMES).swapaxes(0, 1).copy()
    else:
        order = rng.permuted(np.tile([0, 1], (pairs, 1)), axis=1)
        paired = np.take_along_axis(found.reshape(pairs, 2, NAMES), order[:, :, None], axis=1)
    paired[:, 1, 0] += math.log1p(slowdown)
    return paired


def found_at(differences: Floats) -> Floats:
    """Pairs until each name is called different, (suites, names), inf if never; differences (suites, pairs, names)."""
    suites, pairs, names = differences.shape
    table = np.zeros((pairs + 1, pairs + 1))
    for count in range(pairs + 1):
        for losses in range(count + 1):
            table[count - losses, losses] = math.exp(log_stake(count - losses, losses))
    wins, losses = np.zeros((2, suites, names), dtype=np.intp)
    found, ranks = np.full((suites, names), np.inf), (1 - CONFIDENCE) * np.arange(1, names + 1)
    for pair in range(pairs):
        is_open = np.isinf(found)
        wins += is_open & (differences[:, pair] > 0)
        losses += is_open & (differences[:, pair] <= 0)
        evalues = np.maximum(table[wins, losses], table[losses, wins]) / 2
        most = np.where(ranks * -np.sort(-evalues, axis=1) >= names, ranks, 0).max(axis=1, keepdims=True)
        found[is_open & (most * evalues >= names)] = pair + 1
    return found


def differ(runs: Floats) -> Any:
    """Pooled t-test of each name at p < 5%; runs (pairs, options, names) are logarithms of times."""
    (a, b), count = np.exp(runs).swapaxes(0, 1), len(runs)
    t = (b.mean(axis=0) - a.mean(axis=0)) / np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / count)
    return 2 * stdtr(2 * count - 2, -np.abs(t)) < 0.05


def exceeds(runs: Floats, middle: Callable[..., Floats]) -> Any:
    """Names whose mean or median has changed by more than 5%."""
    a, b = middle(np.exp(runs), axis=0)
    return np.abs(b / a - 1) > 0.05


RULES: dict[str, Callable[[Floats], Any]] = {
    "t-test, p < 5%": differ,
    "mean changed by more than 5%": lambda runs: exceeds(runs, np.mean),
    "median changed by more than 5%": lambda runs: exceeds(runs, np.median),
    "t-test, and mean changed by more than 5%": lambda runs: differ(runs) & exceeds(runs, np.mean),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suites", type=int, default=1000)
    count, rows = parser.parse_args().suites, dict[str, list[str]]()
    for slowdown in (0.0, 0.05):
        rngs = [np.random.default_rng([seed, round(100 * slowdown)]) for seed in range(count)]
        suites = np.array([times(PAIRS, slowdown, rng) for rng in rngs])
        blocks = [times(RUNS, slowdown, rng, in_blocks=True) for rng in rngs]
        pairs = found_at(suites[:, :, 1] - suites[:, :, 0])
        alarms = {f"noregret, {most} pairs": pairs <= most for most in (15, 20, 30, PAIRS)}
        for name, rule in RULES.items():
            alarms[f"{name}; {RUNS} pairs"] = np.array([rule(suite[:RUNS]) for suite in suites])
            alarms[f"{name}; {RUNS} of A, then {RUNS} of B"] = np.array(list(map(rule, blocks)))
        for name, each in alarms.items():
            shares = [each[:, 0].mean(), each[:, 1:].any(axis=1).mean()] if slowdown else [each.any(axis=1).mean()]
            rows.setdefault(name, [name]).extend(f"{100 * share:.1f}%" for share in shares)
    print(markdown.table(["rule", "no change: any alarm", "5% slower: found", "and a false alarm"], rows.values()))
    print(
        f"Pairs until it is found: {np.median(pairs[:, 0]):.0f} in the median, 90% {np.quantile(pairs[:, 0], 0.9):.0f}"
    )


if __name__ == "__main__":
    main()
