"""Bets on signs: an interval of a median or another quantile that holds at all sample sizes together.

Bet on the signs of D_i - m. If m is a median of D_i given the past, P(D_i > m) <= 1/2, so a stake that is
multiplied by 2 p after D_i > m and by 2 (1 - p) otherwise does not grow on average, for any p >= 1/2. So does the
average of such stakes over p, here with the weight of a Beta(a, a) distribution on p > 1/2:

    E(w, l) = 2^n 2 B(w + a, l + a) / B(a, a) P(Beta(w + a, l + a) > 1/2),    w + l = n.

By Ville's inequality it ever reaches 2 / alpha with probability alpha / 2 at most. Then m is too small. The same
bet against D_i < m finds what is too large. E falls in l, so all m below an order statistic are too small: the
interval runs from the (k + 1)-th smallest value to the (k + 1)-th largest, k the largest l with E >= 2 / alpha.
A value equal to m counts against both bets, so ties make the interval wider, never wrong. It is about the values
as they were read: a clock with few ticks is a matter of `Comparison`.

The q-quantile has P(D_i > m) <= 1 - q: a stake is multiplied by p / (1 - q) and (1 - p) / q, for any p >= 1 - q, and
P(Beta > 1/2) becomes P(Beta > 1 - q), divided by that of the weight. q = 1/2 is the median.

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


def log_stake(wins: int, losses: int, fair: float = 0.5) -> float:
    """Logarithm of E(w, l), the stake of a bet on wins after ``wins`` wins and ``losses`` losses; it begins with 0.

    It is the evidence against a probability of at most ``fair`` for a win.

    >>> round(math.exp(log_stake(6, 0)), 2), round(math.exp(log_stake(2, 0, fair=0.01)), 2)
    (28.78, 4005.41)
    """
    w, l = wins + WEIGHT, losses + WEIGHT  # noqa: E741
    side = float(sp.betainc(l, w, 1 - fair) / sp.betainc(WEIGHT, WEIGHT, 1 - fair))  # P(Beta > fair), now / before
    if side <= 0:
        return -math.inf
    fair_bet = -wins * math.log(fair) - losses * math.log1p(-fair)
    return float(fair_bet + sp.betaln(w, l) - sp.betaln(WEIGHT, WEIGHT) + math.log(side))


@cache
def losses_allowed(count: int, confidence: float, fair: float = 0.5) -> int:
    """Largest number of losses of ``count`` bets that still refutes ``fair``, -1 if there is none.

    >>> [losses_allowed(count, 0.95) for count in (6, 7, 10, 100)]
    [-1, 0, 0, 33]
    """
    target = math.log(2 / (1 - confidence))
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_stake(count - middle, middle, fair) >= target else (low, middle)
    return low


def median_sequence(values: Floats, confidence: float = 0.95) -> tuple[float, float, float]:
    """Estimate and confidence interval of the median of ``values``, valid at all sample sizes together.

    If each value has the median m given those before it, m is in the interval at every sample size, with probability
    ``confidence``. No moment is needed, and the values need not be continuous.

    >>> median_sequence(np.arange(100.0))
    (49.5, 33.0, 66.0)
    """
    estimate, lower, upper = quantile_sequence(values, 0.5, confidence)
    return estimate, lower, upper


def quantile_sequence(values: Floats, quantile: float, confidence: float = 0.95) -> tuple[float, float, float]:
    """Estimate and confidence interval of a quantile of ``values``, valid at all sample sizes together.

    If each value has the same ``quantile`` given those before it, that is in the interval at every sample size, with
    probability ``confidence``. No moment is needed, and the values need not be continuous.

    >>> latencies = np.random.default_rng(0).exponential(size=2000)  # the 0.99-quantile is 4.61
    >>> [round(end, 2) for end in quantile_sequence(latencies, 0.99)]
    [4.85, 4.05, 6.06]
    """
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must be between 0 and 1, both excluded, got {quantile!r}")
    ordered = np.sort(np.asarray(values, dtype=float))
    count = len(ordered)
    if not count:
        return math.nan, -math.inf, math.inf
    below, above = losses_allowed(count, confidence, 1 - quantile), losses_allowed(count, confidence, quantile)
    lower = -math.inf if below < 0 else float(ordered[below])
    upper = math.inf if above < 0 else float(ordered[-1 - above])
    place = quantile * (count - 1)
    middle = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    if middle[0] == middle[1]:
        return middle[0], lower, upper
    share = place - math.floor(place)
    is_known = middle[0] > -math.inf or middle[1] < math.inf
    return (1 - share) * middle[0] + share * middle[1] if is_known else math.nan, lower, upper
