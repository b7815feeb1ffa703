"""Confidence sequences: intervals that hold at all sample sizes together, so that a user may stop at any time.

Median and other quantiles
    See `noregret.gp.signs`.

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

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.influence import influence
from noregret.gp.posterior import Floats, Ints
from noregret.gp.signs import log_stake, losses_allowed, median_sequence, quantile_sequence

__all__ = [
    "bounded_sequence",
    "catoni_sequence",
    "log_catoni_stake",
    "log_mean_stake",
    "log_stake",
    "losses_allowed",
    "median_sequence",
    "quantile_sequence",
]

BETS = np.sin((np.arange(64) + 0.5) * np.pi / 128)
"""The g of `bounded_sequence`, each with the same weight. More of them change the ends by less than 1% of the width."""


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
