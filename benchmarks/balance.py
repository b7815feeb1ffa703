"""Bounds of the regret balance at the constants of the Optimizer: ``python -m benchmarks.balance`` (20 CPU seconds).

The table of docs/guarantees.md. Printed for each base and size of the noise: the largest mean regret of all trials that
inequalities (1) to (4) of docs/guarantees_details.md allow, in units of the range of f, if the regret of this base is
at most the first guess d_min in its own trials, so D = d_min. The range of f is 5 units, a guess for most functions, or
9, the most that clipped rewards have. Trials are counted from the beginning of the balance.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks import markdown
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import LEVEL
from noregret.optimizer.questions.balance import Balancing

POINTS = 250
"""Numbers of trials of the base that are looked at."""


class Case(NamedTuple):
    """A base that does well: its weight, those of the others, the number of settings and the first trial."""

    title: str
    weight: float
    others: tuple[float, ...]
    settings: float
    begins: int


SAFE = Balancing().weight
CASES = [
    Case("the rule, two safe bases beside it", 1, (SAFE, SAFE), math.inf, Balancing().after),
    Case("one of the two safe bases", SAFE, (1, SAFE), math.inf, Balancing().after),
    Case("the rule, 100 settings", 1, (SAFE,), 100, Balancing().after),
    Case("the only safe base, 100 settings", SAFE, (1,), 100, Balancing().after),
    Case("the only safe base, 21 settings", SAFE, (1,), 21, 9),
]
RANGES = (5.0, 9.0)
NOISES = (0.02, 0.1, 0.3)
TRIALS = (1_000, 10_000)


def main() -> None:
    rows = []
    for case, size in product(CASES, RANGES):
        shown = [f"{bound(case, size, c, trials):.2f}" for trials in TRIALS for c in NOISES]
        rows.append([case.title, f"{size:g}", f"{first_guess(case) / size:.1f}", *shown])
    print(markdown.table(["the base is", "range, units", "D", *(f"{c}; {t:,}" for t in TRIALS for c in NOISES)], rows))


def first_guess(case: Case) -> float:
    """d_min, in units."""
    return math.sqrt(min(Balancing().settings, case.settings))


def bound(case: Case, size: float, noise: float, trials: int) -> float:
    """Largest mean regret in ranges that (1) to (4) allow, at most 1; ``size`` is the range, in units."""
    total, guess = trials - case.begins, first_guess(case)
    bases = 1 + len(case.others)
    own = np.unique(np.geomspace(1, total, POINTS).astype(int))
    doublings = 2 + math.log2(2 * max(case.weight / other for other in case.others) * math.sqrt(total))
    per_base = [_of_other(own, total, case.weight / other, guess, size, noise * size, bases) for other in case.others]
    worst = 0.0
    for i, mine in enumerate(own):
        left = total - mine
        shares = np.arange(left + 1)
        found = per_base[0][i, shares] if bases == 3 else per_base[0][i, left:]
        sums = found + per_base[1][i, left - shares] if bases == 3 else found[:1]
        worst = max(worst, min(guess * math.sqrt(mine), size * mine) + float(sums.max()))
    return min((worst + (bases - 1) * size * doublings) / (size * total), 1.0)


def _of_other(own: Ints, total: int, rho: float, guess: float, size: float, c: float, bases: int) -> Floats:
    """Largest regret (3) of another base with 0, 1, ..., total trials, for each number of trials of the base.

    At its last test that it passed the base had any number of trials that (2) allows, up to the present one; -inf
    where (2) allows none. ``rho`` is the weight of the base, divided by that of the other.
    """
    count = np.arange(total + 1).astype(float)
    tested = own[:, None].astype(float)

    def error(n: Floats) -> Floats:
        delta = 1 - LEVEL
        return np.asarray(c * np.sqrt(2 * np.log(math.pi**2 * bases * n**2 / (3 * delta)) / n))

    spread = np.sqrt(count / np.maximum(count - 1, 1.0))  # (2) is about count - 1
    regret = count * guess / np.sqrt(tested) + rho * guess * np.sqrt(tested) * spread
    regret += 2 * count * (error(np.maximum(count, 1.0)) + error(tested))
    regret = np.where(count - 1 <= rho**2 * tested, np.minimum(regret, size * count), -math.inf)
    regret[:, 0] = 0.0
    return np.asarray(np.maximum.accumulate(regret, axis=0))


if __name__ == "__main__":
    main()
