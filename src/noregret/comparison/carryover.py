"""Carry-over: signs that an option changes the run after it, by heat, caches or files it leaves behind."""

from __future__ import annotations

import math

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints

FALSE_WARNINGS = 0.01
"""Probability of a warning where no option changes the run after it: a single test when the comparison ends."""


def carry_over(values: Floats, first: Ints) -> float | None:
    """Mean effect on a run of coming after B and not after A, None if no effect is shown.

    ``values`` (pairs, 2) are those of A and B in each pair, in the order of the pairs, and ``first`` (pairs,) is the
    option that was run first. The first run of a pair comes after A or B by a coin that is independent of the pair. The
    difference between the first run and the second one is compared by its ranks, among pairs that begin with the same
    option (van Elteren).
    """
    total = variance = 0.0
    effects, sizes = [], []
    finished = np.where(np.isfinite(values), values, np.nan)
    differences = np.where(first == 0, 1, -1) * (finished[:, 0] - finished[:, 1])
    after_b = 1 - first[:-1]  # the last run of the pair before
    for option in (0, 1):
        is_usable = (first[1:] == option) & np.isfinite(differences[1:])
        ranked, after = differences[1:][is_usable], after_b[is_usable] == 1
        count, one = len(ranked), int(after.sum())
        if not 0 < one < count:
            continue
        _, place, ties = np.unique(ranked, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(ties) - ties / 2)[place]
        total += float((ranks[after] - ranks.mean()).sum()) / (count + 1)
        variance += one * (count - one) * float(ranks.var(ddof=1)) / count / (count + 1) ** 2
        effects.append(float(np.median(ranked[after]) - np.median(ranked[~after])))
        sizes.append(count)
    if not variance or 2 * float(sp.ndtr(-abs(total) / math.sqrt(variance))) > FALSE_WARNINGS:
        return None
    return float(np.average(effects, weights=sizes))
