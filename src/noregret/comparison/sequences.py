"""Confidence sequences: intervals that hold at all sample sizes together, so that a user may stop at any time.

Median
    Bet on the signs of D_i - m. If m is a median of D_i given the past, P(D_i > m) <= 1/2, so a stake that is
    multiplied by 2 p after D_i > m and by 2 (1 - p) otherwise does not grow on average, for any p >= 1/2. So does the
    average of such stakes over p, here with the weight of a Beta(a, a) distribution on p > 1/2:

        E(w, l) = 2^n 2 B(w + a, l + a) / B(a, a) P(Beta(w + a, l + a) > 1/2),    w + l = n.

    By Ville's inequality it ever reaches 2 / alpha with probability alpha / 2 at most. Then m is too small. The same
    bet against D_i < m finds what is too large. E falls in l, so all m below an order statistic are too small: the
    interval runs from the (k + 1)-th smallest value to the (k + 1)-th largest, k the largest l with E >= 2 / alpha.
    A value equal to m counts against both bets, so ties make the interval wider, never wrong. It is about the values
    as they were read: a clock with few ticks is a matter of `Comparison`.

Quantile
    The same with P(D_i > m) <= 1 - q for the q-quantile: a stake is multiplied by p / (1 - q) and (1 - p) / q, for any
    p >= 1 - q, and P(Beta > 1/2) becomes P(Beta > 1 - q), divided by that of the weight. q = 1/2 is the median.

Mean of bounded values
    0 <= X_i <= 1, and X_i has the mean m given the past. The stake that is multiplied by 1 + (g / m)(X_i - m) =
    1 - g + g X_i / m is never negative and does not grow on average, for any g in [0, 1). So does the average of such
    stakes over g, here over g = sin(phi) with phi even in (0, pi / 2). Where it reaches 2 / alpha, m is too small. It
    falls in m, so that the interval begins at a root; the same bet on 1 - X_i has the other end. With X_i = 1 for a win
    and 0 for a loss and m = 1/2 these are the bets on the median, p = (1 + g) / 2, with the same weight.

Mean
    X_i has the mean m given the past, and E|X_i - m|^p <= s^p, 1 < p <= 2. Catoni's influence function has
    exp(psi(z)) <= 1 + z + |z|^p / p, so that the products of exp(psi(r_i (X_i - m)) - (r_i s)^p / p) do not grow on
    average, for rates r_i that depend on the past only, nor do those of -psi. By Ville's inequality

        |sum_i psi(r_i (X_i - m))| <= sum_i (r_i s)^p / p + ln(2 / alpha)

    at all sample sizes, with probability 1 - alpha. The interval holds all m that satisfy it.

J. Ville. Etude critique de la notion de collectif. 1939.
R. Krichevsky, V. Trofimov. The performance of universal encoding. IEEE Transactions on Information Theory, 1981.
I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B, 2024 (arXiv 2010.09686).
F. Orabona, K.-S. Jun. Tight concentrations and confidence sequences from the regret of universal portfolio. 2024.
H. Wang, A. Ramdas. Catoni-style confidence sequences for heavy-tailed mean estimation. 2022 (arXiv 2202.01250).
H. Wang, A. Ramdas. Catoni-style confidence sequences under infinite variance. 2022 (arXiv 2208.03185).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.influence import influence
from noregret.gp.posterior import Floats, Ints

WEIGHT = 0.5
"""The a of the Beta(a, a) weight: 1/2 is that of Krichevsky and Trofimov (1981)."""

BETS = np.sin((np.arange(64) + 0.5) * np.pi / 128)
"""The g of `bounded_sequence`, each with the same weight. More of them change the ends by less than 1% of the width."""


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


def bounded_sequence(
    values: Floats, low: float = 0.0, high: float = 1.0, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Estimate and confidence interval of the mean of bounded values, valid at all sample sizes together.

    If each value is from ``low`` to ``high`` and has the mean m given those before it, m is in the interval at every
    sample size, with probability ``confidence``. Nothing else is assumed.

    Examples
    --------
    >>> passed = np.array([0.0] * 30 + [1.0] * 70)
    >>> [round(end, 2) for end in bounded_sequence(passed)]
    [0.7, 0.54, 0.84]
    """
    values = np.asarray(values, dtype=float)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"low must be below high, and both finite, got {low!r} and {high!r}")
    if len(values) and not (low <= values.min() and values.max() <= high):  # nan is refused, too
        raise ValueError(f"values must be from {low} to {high}, got {values.min()} to {values.max()}: widen the bounds")
    if not len(values):
        return math.nan, low, high
    size, target = high - low, math.log(2 / (1 - confidence))
    shares = (values - low) / size
    lower, upper = _least_mean(shares, target), 1 - _least_mean(1 - shares, target)
    return float(values.mean()), low + size * lower, low + size * upper


def log_mean_stake(values: Floats, mean: float, low: float = 0.0, high: float = 1.0) -> float:
    """Logarithm of the stake of `bounded_sequence` against all means up to ``mean``.

    >>> round(log_mean_stake(np.array([1.0] * 6), 0.5), 2)
    3.36
    """
    shares, mean = (np.asarray(values, dtype=float) - low) / (high - low), (mean - low) / (high - low)
    if mean <= 0:
        return math.inf if mean < 0 or bool(shares.any()) else 0.0
    numbers, counts = np.unique(shares, return_counts=True)
    return _mean_stake(numbers, counts, mean) if mean < 1 else -math.inf


def _mean_stake(numbers: Floats, counts: Ints, mean: float) -> float:
    stakes = counts @ np.log1p(BETS * (numbers[:, None] / mean - 1))
    return float(np.logaddexp.reduce(stakes) - math.log(len(BETS)))


def _least_mean(shares: Floats, target: float) -> float:
    """Largest mean that is too small for values in [0, 1]: the logarithm of its stake reaches the target."""
    numbers, counts = np.unique(shares, return_counts=True)

    def excess(mean: float) -> float:
        return _mean_stake(numbers, counts, mean) - target

    nearest, mean = 1e-9, float(shares.mean())
    return float(sp.brentq(excess, nearest, mean)) if mean > nearest and excess(nearest) > 0 else 0.0


def catoni_sequence(
    values: Floats, spread: float, confidence: float = 0.95, moment: float = 2.0
) -> tuple[float, float, float]:
    """Estimate and confidence interval of the mean of ``values``, valid at all sample sizes together.

    Parameters
    ----------
    values : array of floats
        In the order in which they were measured. Each must have the same mean given those before it.
    spread : float
        A bound that is known in advance: E|value - mean|^moment <= spread^moment. For ``moment=2`` it is a bound on
        the standard deviation. If it is too small, the interval is too.
    confidence : float
    moment : float
        p, above 1 and at most 2. Below 2 the variance may be infinite.

    Returns
    -------
    tuple of estimate, lower, upper

    Examples
    --------
    >>> values = np.random.default_rng(0).standard_t(3, size=1000)
    >>> [round(end, 2) for end in catoni_sequence(values, spread=3**0.5)]
    [-0.01, -0.27, 0.25]
    """
    values, p = np.asarray(values, dtype=float), float(moment)
    if not 0 < spread < math.inf:
        raise ValueError(f"spread must be a bound on the deviation of a value, finite and above 0, got {spread!r}")
    if not 1 < p <= 2:
        raise ValueError(f"moment must be above 1 and at most 2, got {moment!r}")
    if not len(values):
        return math.nan, -math.inf, math.inf
    rates, most = _rates(len(values), spread, confidence, p)

    def total(mean: float) -> float:
        return float(influence(rates * (values - mean), p - 1).sum())

    def root(level: float) -> float:
        reach, middle = spread, float(np.median(values))
        while total(middle - reach) < level or total(middle + reach) > level:
            reach *= 2
        return float(sp.brentq(lambda mean: total(mean) - level, middle - reach, middle + reach))

    risk = math.log(2 / (1 - confidence))
    return root(0.0), root(most + risk), root(-most - risk)


def log_catoni_stake(values: Floats, mean: float, spread: float, confidence: float = 0.95) -> float:
    """Logarithm of the stake of `catoni_sequence` at this confidence against all means up to ``mean``.

    >>> round(log_catoni_stake(np.ones(100), 0.5, spread=1.0), 2)
    7.68
    """
    values = np.asarray(values, dtype=float)
    rates, most = _rates(len(values), spread, confidence, 2.0)
    return float(influence(rates * (values - mean), 1.0).sum()) - most


def _rates(count: int, spread: float, confidence: float, p: float) -> tuple[Floats, float]:
    """Rate of each value, and what they cost together: the sum of (r s)^p / p."""
    risk, counts = math.log(2 / (1 - confidence)), np.arange(1, count + 1)
    # for a known sample size n, (r s)^p = p risk / ((p - 1) n) is best; the logarithm makes it good at all sizes
    rates = np.minimum((p * risk / ((p - 1) * counts * np.log1p(counts))) ** (1 / p), 1.0) / spread
    return rates, float(np.sum((rates * spread) ** p) / p)
