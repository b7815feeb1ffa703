"""Diagnosis of heavy tails: tests of rewards, and the algorithm they suggest.

The rewards of every arm are standardised by the median and the spread of the arm. Four statistics describe the tails of
all standardised rewards together:

- the Hill index of the k largest sizes, 1 / mean ln(size / threshold): moments of lower order exist. It is accurate for
  power-law tails and too low for others: about ln(n/k) for exponential tails, which have all moments;
- the moment estimator of Dekkers, Einmahl and de Haan (1989), which also distinguishes power laws from lighter tails.
  Its shape xi is 1 / index for power laws and at most 0 for all others; its variance is (1 + xi^2) / k;
- the excess kurtosis, 0 for a Gaussian, 3 for Laplace noise, 6 for exponential noise;
- the Kolmogorov-Smirnov test against a Gaussian of unknown mean and variance, with the p-value of Dallal and Wilkinson
  (1986).

Tails are heavy if the test rejects the Gaussian at 1%, at least a quarter of the arms have a kurtosis above 1 (which
excludes arms that switch between two values), and few moments seem to exist: xi is above 0.15 and 1.5 standard errors
above 0, or the kurtosis of all rewards together is above 20. Tails are also heavy if a single arm has a kurtosis above
50, which needs extreme rewards.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import HUGE, Floats

FEWEST_REWARDS = 20
"""Smallest number of rewards for a diagnosis."""

FEW_IN_ARM = 8
"""Smallest number of rewards of an arm. Arms with fewer are left out, or pooled if all arms have fewer."""

UNSURE = 500
"""Number of rewards below which the verdict is unsure: Student-t noise of 3 degrees then often seems light-tailed."""

NO_SETTINGS = ("trial", "state", "noise", "started", "seconds")
"""Columns of an exported study that are not parameters."""


@dataclass(frozen=True)
class Diagnosis:
    """Statistics of the tails of rewards; ``str`` explains them."""

    heavy: bool
    """True if the tails are heavy: few moments seem to exist."""
    alpha: float
    """Suggested alpha: a moment of order 1 + alpha seems to exist."""
    moment: float
    """Estimate of E|y|^(1 + alpha) on the arm where it is largest."""
    noise: float
    """Standard deviation of the noise, the median over the arms; not meaningful if ``heavy``."""
    index: float
    """Tail index by the moment estimator, infinite for lighter tails than powers; moments below it exist."""
    interval: tuple[float, float]
    """95% confidence interval of the index."""
    hill: float
    """Hill index."""
    hill_error: float
    """Standard error of the Hill index."""
    kurtosis: float
    """Excess kurtosis of the noise, the median over the arms; 0 for a Gaussian."""
    gaussian: float
    """p-value of the Kolmogorov-Smirnov test against the Gaussian; 0.1 means 0.1 or more."""
    arms: int
    rewards: int
    largest: int
    """Number of largest sizes that the indices were estimated from."""

    def __str__(self) -> str:
        return "\n".join([self._evidence(), self._verdict(), self._suggestion()])

    def _evidence(self) -> str:
        p = "above 0.1" if self.gaussian >= 0.1 else f"{self.gaussian:.2g}" if self.gaussian > 1e-4 else "below 1e-4"
        return (
            f"{self.rewards} rewards of {self.arms} arm{'s' if self.arms > 1 else ''}.\n"
            f"  tail index        {self._powers()} ({self.largest} largest sizes)\n"
            f"  Hill index        {self.hill:.2f} +- {self.hill_error:.2f}\n"
            f"  excess kurtosis   {self.kurtosis:.1f} (0 for a Gaussian)\n"
            f"  Gaussian?         p {p} (Kolmogorov-Smirnov)"
        )

    def _powers(self) -> str:
        low, high = self.interval
        if self.index < math.inf:
            return f"{self.index:.1f}, 95% interval {low:.1f} to {f'{high:.1f}' if high < math.inf else 'infinity'}"
        return "none, lighter than a power" + (f"; at least {low:.1f} (95%)" if low < math.inf else "")

    def _verdict(self) -> str:
        caution = f" With fewer than {UNSURE} rewards this is unsure." if self.rewards < UNSURE else ""
        if self.heavy:
            return f"The tails are heavy: one reward can outweigh many.{caution}"
        if self.gaussian < 0.01:
            return f"The rewards are not Gaussian, but their tails are not heavy.{caution}"
        return f"The tails are compatible with a Gaussian.{caution}"

    def _suggestion(self) -> str:
        if not self.heavy:
            return f"Suggestion: least squares, such as amm_ucb with noise = {self.noise:.3g}."
        if self.alpha >= 1:
            why = "the index lies above 2, so the variance seems to exist"
        elif self.index > 1.1:
            why = f"the variance does not seem to exist, but moments up to an order of about {self.index:.2f} do"
        else:
            why = "a few rewards are so extreme that no power fits: spikes rather than noise, and a low order is safe"
        return (
            "Suggestion: truncation (ata_gp_ucb, tgp_ucb) or one-pass clipping (hvt_ucb) "
            f"with alpha = {self.alpha:.2g} and moment = {self.moment:.3g}: {why}. "
            "The moment is a robust estimate, which tends to be low: twice as much is safer."
        )


def diagnose(rewards: Sequence[Any] | Mapping[Any, Any]) -> Diagnosis:
    """Diagnose the tails of rewards.

    Parameters
    ----------
    rewards : sequence or mapping of (n,) floats
        Rewards of every arm; the arms may have different numbers of rewards.

    Examples
    --------
    >>> from noregret import diagnose
    >>> rng = np.random.default_rng(0)
    >>> found = diagnose([mean + rng.standard_t(1.5, 300) for mean in (0.0, 1.0, 2.0)])
    >>> found.heavy, 0.3 < found.alpha < 0.7
    (True, True)
    >>> print(diagnose([rng.normal(mean, 0.5, 300) for mean in (0.0, 1.0, 2.0)]))
    900 rewards of 3 arms.
      tail index        none, lighter than a power (89 largest sizes)
      Hill index        5.48 +- 0.58
      excess kurtosis   -0.2 (0 for a Gaussian)
      Gaussian?         p above 0.1 (Kolmogorov-Smirnov)
    The tails are compatible with a Gaussian.
    Suggestion: least squares, such as amm_ucb with noise = 0.496.
    """
    if not isinstance(rewards, Mapping):
        if len(rewards) and np.ndim(rewards[0]) == 0:
            raise ValueError("rewards must be one array per arm, got numbers: pass [rewards] for a single arm")
        rewards = dict(enumerate(rewards))
    arms = [_checked(name, values) for name, values in rewards.items()]
    total = sum(map(len, arms))
    if total < FEWEST_REWARDS:
        raise ValueError(f"at least {FEWEST_REWARDS} rewards are needed, got {total}")
    scaled, centres, spreads = _standardised(arms)
    largest = min(round(1.5 * scaled.size**0.6), scaled.size // 10)
    hill, shape = _tail(np.abs(scaled), largest)
    error = math.sqrt((1 + shape**2) / largest)
    kurtosis, p = (
        [_kurtosis(arm) for arm in arms if len(arm) >= FEWEST_REWARDS] or [_kurtosis(scaled)],
        _gaussian_p(scaled),
    )
    few_moments = shape > max(0.15, 1.5 * error) or _kurtosis(scaled) > 20
    heavy = bool((p < 0.01 and np.percentile(kurtosis, 75) > 1 and few_moments) or max(kurtosis) > 50)
    alpha = min(max(0.9 * (_index(shape) - 1), 0.1), 1.0) if heavy else 1.0
    powers = np.abs(scaled) ** (1 + alpha)
    groups = max(min(24, powers.size // 5), 1)  # of at least 5 values
    size = float(np.median([powers[i::groups].mean() for i in range(groups)]))
    return Diagnosis(
        heavy=heavy,
        alpha=alpha,
        moment=float((np.abs(centres) ** (1 + alpha) + size * spreads ** (1 + alpha)).max()),
        noise=float(np.median(spreads[spreads > 0]) * scaled.std()),
        index=_index(shape),
        interval=(_index(shape + 1.96 * error), _index(shape - 1.96 * error)),
        hill=hill,
        hill_error=hill / math.sqrt(largest),
        kurtosis=float(np.median(kurtosis)),
        gaussian=p,
        arms=len(arms),
        rewards=total,
        largest=largest,
    )


class WhichColumn(ValueError):
    """The column of the rewards is ambiguous."""


def read_rewards(
    path: str | os.PathLike[str], value: str | None = None, one_per_arm: bool = False
) -> dict[str, Floats]:
    """Read rewards by arm from a CSV file.

    The first line is the header, unless it holds only numbers: then it is data, and the columns are ``column1``,
    ``column2`` and so on. Numbers that count several columns from 0 or from 1 are a header.

    The file has one of three forms:

    - columns ``arm`` and ``reward``, one row per reward;
    - a column ``value``, or the column named here, and parameters: rows with the same parameters are an arm. A column
      that differs in almost every row, such as a time, is not a parameter;
    - one column per arm, shorter columns with empty cells at the end. Columns with text, and a first column that counts
      the rows, are ignored.

    With ``one_per_arm`` every column holds the rewards of an arm. WhichColumn is raised if some columns look like
    settings and others like rewards, and neither argument is given.
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        table = _table([row for row in csv.reader(file) if row], value)
    if value is not None and value not in table:
        raise ValueError(f"{os.fspath(path)} has no column {value!r}: it has {', '.join(table)}")
    if value is None and {"arm", "reward"} <= table.keys():
        return _by_arm(table["arm"], table["reward"])
    value = "value" if value is None and "value" in table and not one_per_arm else value
    if value is not None:
        return _by_setting(os.fspath(path), value, table)
    columns = _columns(table)
    if not columns:
        raise ValueError(f"{os.fspath(path)} has no column of numbers: one column per arm is needed")
    settings = [name for name, values in columns.items() if _repeats(values.tolist())]
    if not one_per_arm and settings and len(settings) < len(columns):
        rewards = [name for name in columns if name not in settings]
        raise WhichColumn(
            f"{os.fspath(path)}: which column is the value? {' and '.join(settings)} look{'s' * (len(settings) == 1)} "
            f"like settings. Say --value {rewards[-1]}, or another one of {', '.join(columns)}; or --arms if each "
            "column holds the rewards of an arm"
        )
    return columns


def _table(lines: list[list[str]], value: str | None) -> dict[str, list[str]]:
    """Cells of each column, by its name."""
    header, *rows = lines or [[]]
    if value not in header and _is_data(header):
        header, rows = [f"column{i + 1}" for i in range(max(map(len, lines)))], lines
    return {name: [row[i] if i < len(row) else "" for row in rows] for i, name in enumerate(header)}


def _is_data(line: list[str]) -> bool:
    """True if a line holds only numbers and does not merely count several columns."""
    numbers = _numbers([cell for cell in line if cell])
    if numbers is None:
        return False
    counts = numbers[0] in (0, 1) and (np.diff(numbers) == 1).all()
    return len(line) == 1 or not counts


def _columns(table: Mapping[str, list[str]]) -> dict[str, Floats]:
    """Columns of numbers, without a first one that counts the rows."""
    numbers = ((name, _numbers([cell for cell in cells if cell])) for name, cells in table.items())
    columns = {name: values for name, values in numbers if values is not None}
    if len(columns) > 1 and (np.diff(first := next(iter(columns.values()))) == 1).all() and len(first) > 1:
        columns.pop(next(iter(columns)))
    return columns


def _repeats(cells: Sequence[Any]) -> bool:
    """True if a column looks like a parameter: few values, repeated many times."""
    return len(cells) >= 4 and 2 * len(set(cells)) <= len(cells)


def _by_arm(arms: list[str], rewards: list[str]) -> dict[str, Floats]:
    columns = {name: [reward for arm, reward in zip(arms, rewards, strict=True) if arm == name] for name in arms}
    return {name: values for name, cells in columns.items() if (values := _numbers(cells)) is not None}


def _by_setting(path: str, value: str, table: Mapping[str, list[str]]) -> dict[str, Floats]:
    settings = [name for name, cells in table.items() if name not in (value, *NO_SETTINGS) and _repeats(cells)]
    cells = table[value]
    arms = [", ".join(f"{name}={table[name][i]}" for name in settings) for i in range(len(cells))]
    kept = [i for i, cell in enumerate(cells) if cell]
    numbers = _numbers([cells[i] for i in kept])
    if numbers is None:
        raise ValueError(f"{path}: column {value!r} must hold numbers")
    return _by_arm([arms[i] for i in kept], [cells[i] for i in kept])


def _numbers(cells: list[str]) -> Floats | None:
    try:
        return np.array(cells, dtype=float) if cells else None
    except ValueError:
        return None


def _checked(name: Any, values: Any) -> Floats:
    array = np.asarray(values, dtype=float).reshape(-1)
    if not np.isfinite(array).all():
        raise ValueError(f"rewards of arm {name} must be finite: drop the missing ones, and note why they are missing")
    return array


def _standardised(arms: list[Floats]) -> tuple[Floats, Floats, Floats]:
    """Standardised rewards of all arms, (n,), and the medians and spreads of the arms, each (arms,).

    The spread is the standard deviation of a Gaussian with the same quartiles.
    """
    used = [arm for arm in arms if len(arm) >= FEW_IN_ARM] or [np.concatenate(arms)]
    centres, spreads = np.array([np.median(arm) for arm in used]), np.array([_spread(arm) for arm in used])
    noisy = np.flatnonzero(spreads > 0)
    if not noisy.size:
        raise ValueError("the rewards of every arm are the same: there is no noise to look at")
    scaled = np.clip(np.concatenate([(used[i] - centres[i]) / spreads[i] for i in noisy]), -HUGE, HUGE)
    if scaled.size < FEWEST_REWARDS:
        raise ValueError(
            f"at least {FEWEST_REWARDS} rewards of arms with {FEW_IN_ARM} or more are needed, got {scaled.size}"
        )
    return scaled, centres, spreads


def _spread(arm: Floats) -> float:
    low, high = np.percentile(arm, [25, 75])
    return float((high - low) / 1.349) or float(np.abs(arm - np.median(arm)).mean())


def _tail(sizes: Floats, largest: int) -> tuple[float, float]:
    """Hill index, and the shape xi = M1 + 1 - 1 / (2 (1 - M1^2 / M2)), M1 and M2 moments of ln(size / threshold)."""
    ordered = np.sort(sizes)[::-1]
    logs = np.log(ordered[:largest] / max(ordered[largest], np.finfo(float).tiny))
    first, second = float(logs.mean()), float((logs**2).mean())
    if not second > first**2 * (1 + 1e-12):  # all sizes are equal, as for rewards with two values
        return math.inf if first == 0 else 1 / first, -1.0
    return 1 / first, first + 1 - 0.5 / (1 - first**2 / second)


def _index(shape: float) -> float:
    return 1 / shape if shape > 0 else math.inf


def _kurtosis(values: Floats) -> float:
    off = values - values.mean()
    off = off / (np.abs(off).max() or 1.0)
    return float((off**4).mean() / (off**2).mean() ** 2 - 3) if off.any() else 0.0


def _gaussian_p(values: Floats) -> float:
    """p-value of the Kolmogorov-Smirnov test with estimated mean and variance, at most 0.1."""
    n, ordered = len(values), np.sort(values)
    scale = np.abs(ordered).max()
    ordered = ordered / scale
    level = sp.ndtr((ordered - ordered.mean()) / ordered.std(ddof=1))
    distance = float(max((np.arange(1, n + 1) / n - level).max(), (level - np.arange(n) / n).max()))
    if n > 100:
        distance, n = distance * (n / 100) ** 0.49, 100
    root = math.sqrt(n + 2.78019)
    exponent = -7.01256 * (distance * root) ** 2 + 2.99587 * distance * root
    return min(math.exp(exponent - 0.122119 + 0.974598 / math.sqrt(n) + 1.67997 / n), 0.1)
