"""Bets on signs: an interval of a median that holds at all sample sizes together.

Bet on the signs of D_i - m. If m is a median of D_i given the past, P(D_i > m) <= 1/2, so a stake that is
multiplied by 2 p after D_i > m and by 2 (1 - p) otherwise does not grow on average, for any p >= 1/2. So does the
average of such stakes over p, here with the weight of a Beta(a, a) distribution on p > 1/2:

    E(w, l) = 2^n 2 B(w + a, l + a) / B(a, a) P(Beta(w + a, l + a) > 1/2),    w + l = n.

By Ville's inequality it ever reaches 2 / alpha with probability alpha / 2 at most. Then m is too small. The same
bet against D_i < m finds what is too large. E falls in l, so all m below an order statistic are too small: the
interval runs from the (k + 1)-th smallest value to the (k + 1)-th largest, k the largest l with E >= 2 / alpha.
A value equal to m counts against both bets, so ties make the interval wider, never wrong. It is about the values
as they were read: a clock with few ticks is a matter of `Comparison`.

J. Ville. Etude critique de la notion de collectif. 1939.
R. Krichevsky, V. Trofimov. The performance of universal encoding. IEEE Transactions on Information Theory, 1981.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats

WEIGHT = 0.5
"""The a of the Beta(a, a) weight: 1/2 is that of Krichevsky and Trofimov (1981)."""


def log_stake(wins: int, losses: int) -> float:
    """Logarithm of E(w, l), the stake of a bet on wins after ``wins`` wins and ``losses`` losses; it begins with 0.

    >>> round(math.exp(log_stake(6, 0)), 2)
    28.78
    """
    w, l = wins + WEIGHT, losses + WEIGHT  # noqa: E741
    side = float(sp.betainc(l, w, 0.5))  # P(Beta(w, l) > 1/2)
    if side <= 0:
        return -math.inf
    return float((wins + losses + 1) * math.log(2) + sp.betaln(w, l) - sp.betaln(WEIGHT, WEIGHT) + math.log(side))


@cache
def losses_allowed(count: int, confidence: float) -> int:
    """Largest number of losses of ``count`` bets that still refutes, -1 if there is none.

    >>> [losses_allowed(count, 0.95) for count in (6, 7, 10, 100)]
    [-1, 0, 0, 33]
    """
    target = math.log(2 / (1 - confidence))
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_stake(count - middle, middle) >= target else (low, middle)
    return low


def median_sequence(values: Floats, confidence: float = 0.95) -> tuple[float, float, float]:
    """Estimate and confidence interval of the median of ``values``, valid at all sample sizes together.

    If each value has the median m given those before it, m is in the interval at every sample size, with probability
    ``confidence``. No moment is needed, and the values need not be continuous.

    >>> median_sequence(np.arange(100.0))
    (49.5, 33.0, 66.0)
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    if not len(ordered):
        return math.nan, -math.inf, math.inf
    k = losses_allowed(len(ordered), confidence)
    ends = (-math.inf, math.inf) if k < 0 else (float(ordered[k]), float(ordered[-1 - k]))
    middle = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
    return (sum(middle) / 2 if middle[0] > -math.inf or middle[1] < math.inf else math.nan), *ends
