"""`EProcess`: evidence of runs of options, as bets that hold at every stopping time.

Runs are compared within blocks: one run of each option, one after the other. A `Quantity` says which number the
differences within blocks are about, and `noregret.comparison.sequences` has the bets on it.

An e-process of a claim is evidence against its complement: where the claim is false, its expected value is at most 1 at
every stopping time. So it reaches 1 / alpha with probability alpha at most (Ville), averages of e-processes are
e-processes, and the values of many may be combined whatever their dependence. An interval at level 1 - alpha holds all
numbers that the bets on "more" and on "less" leave below 2 / alpha.

With items, such as the tests of a suite, the blocks of an item are no independent observations: what they share stays.
An item counts once, by the mean or median of its first ``repeats`` blocks, and the interval is about items like these,
of which these are a random sample. A verdict about a fixed margin is also valid for these items themselves: with x_t
the mean of the t-th bet, the product of (1 + L X_t) / (1 + L x_t) is a martingale, and that of 1 + L x_t is at most 1
where the average of x_t is at most 0.

A. Ramdas, P. Grunwald, V. Vovk, G. Shafer. Game-theoretic statistics and safe anytime-valid inference. Statistical
Science, 2023 (arXiv 2210.01948).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.comparison.sequences import (
    bounded_sequence,
    catoni_sequence,
    log_catoni_stake,
    log_mean_stake,
    log_stake,
    median_sequence,
    quantile_sequence,
)
from noregret.gp.posterior import Floats
from noregret.optimizer import Goal, checked_goal, checked_value

Claim = Literal["better", "worse", "not better", "not worse", "different", "equal"]
CLAIMS: tuple[Claim, ...] = ("better", "worse", "not better", "not worse", "different", "equal")

MISSING = math.nan
"""Value of a run that was not asked for."""

FAILED = math.inf
"""Value of a run that failed, until a `Quantity` says what it counts as."""

FAILURE_SHARE = 0.05
"""Level of "fails more often", as a share of 1 - confidence (decision 226)."""

POSITIVE = 1e-9
"""End of an interval that is known to be above 0 but may be closer to it than one tick of the clock."""


class Change(NamedTuple):
    """Change of one option against another: estimate, and the interval that holds at every stopping time."""

    estimate: float
    lower: float
    upper: float


class Quantity(NamedTuple):
    """The number that a comparison estimates from the differences within blocks of runs."""

    name: str
    sequence: Callable[..., tuple[float, float, float]]
    """Estimate and interval of values at a ``confidence``, valid at all numbers of blocks together."""
    log_stake: Callable[[Floats, float, float], float]
    """Logarithm of the evidence of values that the number is above a bar, or with the sign -1 below it."""
    failed: float
    """Value of a failed run: beyond all others, the worse bound, or MISSING."""
    is_relative: bool
    """True if differences are those of logarithms."""
    risk: float = 1.0
    """Share of 1 - confidence that the interval uses; an e-value is multiplied by it."""
    is_share: bool = False
    """True if a mean is the share of runs that have 1, as all values are 0 or 1."""


class EProcess:
    """Evidence of runs of options, or of one option against a bar, with intervals, at any stopping time.

    Parameters
    ----------
    options : int
        Option 0 is A, the one that others are compared with; option 1 is B.
    goal : "minimize" or "maximize"
        Says what "better" is.
    bounds : pair of floats, optional
        The smallest and the largest possible value: the quantity is the difference of means, and a failed run counts as
        the worse bound. A first value of True or False sets 0 and 1; values that are all 0 or 1 are recognised.
    spread : float, optional
        Known bound on the standard deviation of a difference: the quantity is its mean, see `catoni_sequence`.
    quantile : float, optional
        Compare this quantile of the runs of each option, such as 0.99, which need not come in blocks then.
    bar : float, optional
        A number in the place of A.
    repeats : int
        Blocks of an item that make one observation; later ones of the same item are not counted.

    Examples
    --------
    >>> evidence = EProcess()
    >>> for a, b in [(10.1, 9.2), (9.9, 9.0), (10.3, 9.6), (10.0, 9.1), (9.8, 8.9), (10.2, 9.1), (10.0, 9.3)]:
    ...     evidence.observe(a, option=0)
    ...     evidence.observe(b)
    >>> round(evidence.evalue("better"), 1), [round(100 * end, 1) for end in evidence.interval()]
    (53.5, [-9.0, -10.8, -6.8])
    >>> bar = EProcess(goal="minimize", bar=3.28)
    >>> for loss in (3.277, 3.279, 3.278, 3.276, 3.277, 3.279):
    ...     bar.observe(loss)
    >>> round(bar.evalue(), 1)
    28.8
    """

    def __init__(
        self,
        options: int = 2,
        *,
        goal: Goal = "minimize",
        bounds: tuple[float, float] | None = None,
        spread: float | None = None,
        quantile: float | None = None,
        bar: float | None = None,
        repeats: int = 1,
    ) -> None:
        given = {"bounds": bounds, "spread": spread, "quantile": quantile}
        if len(several := {name: value for name, value in given.items() if value is not None}) > 1:
            raise ValueError(f"a comparison has one of bounds, spread and quantile, got {several}: drop all but one")
        self.options, self.goal = whole("options", options), checked_goal(goal)
        self.spread = None if spread is None else positive("spread", spread)
        self.bounds = None if bounds is None else checked_bounds(bounds)
        """The smallest and the largest possible value, None if they are not known."""
        if quantile is not None and not 0 < positive("quantile", quantile) < 1:
            raise ValueError(f"quantile must be between 0 and 1, both excluded, such as 0.99, got {quantile!r}")
        self.quantile, self.repeats = quantile, whole("repeats", repeats, least=1)
        self.bar = None if bar is None else self._bar(bar)
        """The number in the place of A, None if A is run."""
        self.values: Floats = np.empty((0, self.options))
        """A row for each block, MISSING where an option was not run."""
        self._items: list[Hashable] = []
        self._begun: list[tuple[Hashable, list[float]]] = []
        self._has_values = False
        self._quantity = self._estimated()

    def observe(self, value: float | bool | None, option: int = 1, item: Hashable = None) -> None:
        """Add the value of a run, None if it failed: its block is the first one of the item that lacks this option."""
        option = place(self.options, option)
        if option == 0 and self.bar is not None:
            raise ValueError(f"option 0 is the bar, {self.bar:g}, which is not run: observe option 1")
        self.check_item(item)
        number = self.checked(option, value)
        places = (at for at, (begun, row) in enumerate(self._begun) if begun == item and math.isnan(row[option]))
        at = next(places, len(self._begun))
        if at == len(self._begun):
            first = MISSING if self.bar is None else self.bar
            self._begun.append((item, [first, *[MISSING] * (self.options - 1)]))
        row = self._begun[at][1]
        row[option] = number
        if not any(map(math.isnan, row)):
            self._begun.pop(at)
            self.add(row, item)

    def checked(self, option: int, value: float | bool | None) -> float:
        """A value as a number, FAILED for None; ValueError unless it is finite and within the bounds."""
        if value is None:
            return FAILED
        is_bit = isinstance(value, bool | np.bool_)
        number = float(value) if is_bit else _finite(option, value)
        if self.bounds and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise ValueError(f"value of option {option} must be within the bounds, {low:g} to {high:g}, got {number:g}")
        if is_bit and not self._has_values and (self.spread, self.bounds, self.quantile) == (None, None, None):
            self.bounds = 0.0, 1.0
        self._has_values = True
        return number

    def check_item(self, item: Hashable) -> None:
        """Raise ValueError if only some runs have an item."""
        if self._items and (self._items[0] is None) != (item is None):
            raise ValueError(f"item must be given with every run or with none, got {item!r} after {self._items[0]!r}")
        if item is not None and self.quantile is not None:
            raise ValueError(f"items are compared by their differences, not by a quantile: drop item, got {item!r}")

    def add(self, row: Sequence[float], item: Hashable = None) -> None:
        """Add a block: the `checked` value of each option, MISSING where it was not run."""
        self.values = np.vstack([self.values, row])
        self._items.append(item)
        self._quantity = self._estimated()

    @property
    def blocks(self) -> int:
        """Number of blocks with runs of at least two options, failed ones included."""
        return int(((~np.isnan(self.values)).sum(axis=1) > 1).sum())

    @property
    def pairs(self) -> int:
        """Number of observations: blocks, or items of which there are enough."""
        return self.blocks if self.items == 0 else len(self._observed(1, 0)[1])

    @property
    def items(self) -> int:
        """Number of different items; 0 without items."""
        return len({item for item in self._items if item is not None})

    @property
    def quantity(self) -> str:
        """The quantity that the interval is about.

        "median change"; "difference of means" for values with bounds and for those that are all 0 or 1; "mean change"
        with a ``spread``; with a ``quantile`` "change of the 0.99-quantile".
        """
        return self._quantity.name

    @property
    def is_relative(self) -> bool:
        """True if changes are relative, B / A - 1: all values are above 0. Otherwise they are differences, B - A."""
        return self._quantity.is_relative

    @property
    def is_share(self) -> bool:
        """True if a mean is the share of runs that have 1."""
        return self._quantity.is_share

    def interval(self, level: float = 0.95, option: int = 1, against: int = 0) -> Change:
        """Change of an option against another, which is within the ends at all times with probability ``level``."""
        quantity, confidence = self._quantity, 1 - self._quantity.risk * (1 - level)
        if option == against:
            return Change(0.0, 0.0, 0.0)
        if self.quantile is None:
            estimate, lower, upper = quantity.sequence(self.differences(option, against), confidence=confidence)
        else:
            estimate, lower, upper = self._change_of_quantiles(option, against, confidence)
        if tick := self.tick(option, against):
            lower = lower - tick if lower <= 0 else max(lower - tick, min(lower, POSITIVE))
            upper = upper + tick if upper >= 0 else min(upper + tick, max(upper, -POSITIVE))
        change = Change(estimate, lower, upper)
        return Change(*map(expm1, change)) if quantity.is_relative else change

    def evalue(self, claim: Claim = "better", margin: float = 0.0, option: int = 1, against: int = 0) -> float:
        """Evidence for a claim: where it is false, the expected value is at most 1 at any stopping time.

        Parameters
        ----------
        claim : {"better", "worse", "not better", "not worse", "different", "equal"}
            That an option is this, against another, by more than the margin. "different" is half the larger one of
            "better" and "worse": without a margin it is at least 1 / alpha exactly if the interval at 1 - alpha
            excludes 0. "equal" is the smaller one of "not better" and "not worse".
        margin : float
            In the units of a change: 0.01 is 1% where changes are relative.
        option, against : int
        """
        if claim not in CLAIMS:
            raise ValueError(f"claim must be one of {', '.join(map(repr, CLAIMS))}, got {claim!r}")
        if not margin >= 0:
            raise ValueError(f"margin must be a number of at least 0, got {margin!r}")
        if claim == "different":
            return max(self.evalue(each, margin, option, against) for each in ("better", "worse")) / 2
        if claim == "equal":
            return min(self.evalue(each, margin, option, against) for each in ("not better", "not worse"))
        is_more = claim.endswith("better") == (self.goal == "maximize")
        is_beyond = not claim.startswith("not")
        if claim.startswith("not"):
            is_more = not is_more
        log = self._log_more(option, against, margin if is_more == is_beyond else -margin, is_more)
        return self._quantity.risk * (math.exp(log) if log < 700 else math.inf)

    def _log_more(self, option: int, against: int, bar: float, is_more: bool) -> float:
        """Logarithm of the evidence that a change is more than ``bar``, or less if not ``is_more``."""
        sign = 1.0 if is_more else -1.0
        bar = sign * ((math.log1p(bar) if bar > -1 else -math.inf) if self.is_relative else bar)
        tick = self.tick(option, against)
        if tick and bar > -math.inf:
            bar = bar + tick if bar > 0 else min(bar + tick, 0.0)
        if self.quantile is None:
            return self._quantity.log_stake(self.differences(option, against), sign * bar, sign)
        quantile = self.quantile if is_more else 1 - self.quantile
        one, other = np.sort(sign * self._runs(option) - bar), np.sort(-sign * self._runs(against))
        if self.bar is not None:
            return _quantile_stake(one, -float(other[0]), quantile) if len(other) else 0.0
        known = np.unique(np.concatenate([one, -other]))
        cuts = (known[:-1] + np.diff(known) / 2)[np.isfinite(known[1:]) & np.isfinite(known[:-1])]
        # If the quantile of one is at most that of the other, each cut makes one of two bets on a false claim, and the
        # smaller one is at most their sum, whatever the cut. The bets fall and rise with it.
        best, low, high = -math.inf, 0, len(cuts) - 1
        while low <= high:
            middle = (low + high) // 2
            first = _quantile_stake(one, cuts[middle], quantile)
            second = _quantile_stake(other, -cuts[middle], 1 - quantile)
            best = max(best, min(first, second))
            low, high = (middle + 1, high) if first > second else (low, middle - 1)
        return best - math.log(2)

    def tick(self, option: int = 1, against: int = 0) -> float:
        """Error of a median change by the ticks of the clock: 0 unless two runs of a pair have the same value.

        A tick is the smallest gap between two values; inf if there is none. Each value is off by at most half a tick,
        the difference of two by one. Its sign is right: the larger of two readings is that of the larger value.
        """
        pairs = self.values[:, [option, against]]
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        if self.quantity != "median change" or not (pairs[:, 0] == pairs[:, 1]).any():
            return 0.0
        gaps = np.diff(np.unique(pairs))
        gap = float(min(gaps[gaps > 1e-9 * np.abs(pairs).max()], default=math.inf))
        return math.log1p(gap / float(np.median(pairs, axis=0).min())) if self.is_relative else gap

    def failed_alone(self, option: int = 1, against: int = 0) -> tuple[int, int]:
        """Number of blocks in which only the one has failed, and only the other; 0 where means count failures."""
        if self.quantity == "difference of means":
            return 0, 0
        one, other = self.values[:, option], self.values[:, against]
        return int(((one == FAILED) & np.isfinite(other)).sum()), int(((other == FAILED) & np.isfinite(one)).sum())

    def differences(self, option: int = 1, against: int = 0) -> Floats:
        """Observed differences of two options, of logarithms where changes are relative, (pairs,)."""
        return self._observed(option, against)[0]

    def _observed(self, option: int, against: int) -> tuple[Floats, list[Hashable]]:
        """Differences, and the item of each."""
        pairs = self.values[:, [option, against]]
        there = np.flatnonzero(~np.isnan(pairs).any(axis=1))
        pairs = pairs[there]
        have_failed = pairs == FAILED
        scaled = np.where(have_failed, self._quantity.failed, np.log(pairs) if self.is_relative else pairs)
        known = ~np.isnan(scaled).any(axis=1)
        scaled[have_failed.all(axis=1)] = 0.0
        differences = np.asarray((scaled[:, 0] - scaled[:, 1])[known])
        if not self.items:
            return differences, [None] * len(differences)
        groups: dict[Hashable, list[float]] = {}
        means: dict[Hashable, float] = {}
        centre = np.mean if "mean" in self.quantity else np.median
        for row, difference in zip(there[known].tolist(), differences.tolist(), strict=True):
            group = groups.setdefault(self._items[row], [])
            group.append(difference)
            if len(group) == self.repeats:
                with np.errstate(invalid="ignore"):
                    middle = float(centre(group))
                means[self._items[row]] = 0.0 if math.isnan(middle) else middle
        return np.array(list(means.values())), list(means)

    def _runs(self, option: int) -> Floats:
        """All runs of an option, of logarithms where changes are relative; failed ones are beyond all others."""
        values = self.values[:, option]
        values = values[~np.isnan(values)]
        failed = values == FAILED
        return np.where(failed, self._quantity.failed, np.log(values) if self.is_relative else values)

    def _change_of_quantiles(self, option: int, against: int, confidence: float) -> tuple[float, float, float]:
        """Change of a quantile: each of the two has half of the risk."""
        quantile, one, other = self.quantile or 0.5, self._runs(option), self._runs(against)
        if self.bar is not None and len(other):
            return tuple(each - float(other[0]) for each in quantile_sequence(one, quantile, confidence))  # type: ignore[return-value]
        (a, a_low, a_high), (b, b_low, b_high) = (
            quantile_sequence(each, quantile, (1 + confidence) / 2) for each in (other, one)
        )
        lower, upper = b_low - a_high, b_high - a_low
        estimate = b - a if math.isfinite(a) or math.isfinite(b) else math.nan
        return estimate, -math.inf if math.isnan(lower) else lower, math.inf if math.isnan(upper) else upper

    def _estimated(self) -> Quantity:
        """The quantity that suits the values so far.

        If all values are 0 or 1 up to the first block without a failure, medians and means share the risk, so that
        later values choose between statements that hold together.
        """
        is_relative = not bool((self.values <= 0).any())
        worst = math.inf if self.goal == "minimize" else -math.inf
        if self.spread is not None:
            mean = partial(catoni_sequence, spread=self.spread)
            stake = partial(_catoni_stake, spread=self.spread)
            return Quantity("mean change", mean, stake, MISSING, is_relative, 1 - FAILURE_SHARE)
        if self.quantile is not None:
            name = f"change of the {self.quantile:g}-quantile"
            return Quantity(name, median_sequence, _median_stake, worst, is_relative)
        known = np.isfinite(self.values)
        if self.bar is not None:
            known[:, 0] = False
        are_bits = ((self.values == 0) | (self.values == 1) | ~known).all(axis=1)
        complete = np.flatnonzero((self.values != FAILED).all(axis=1))
        is_share = bool(complete.size) and bool(are_bits.all()) and (self.bar is None or 0 <= self.bar <= 1)
        is_guessed = self.bounds is None and bool(are_bits[: complete[0] + 1 if complete.size else None].all())
        low, high = self.bounds or (0.0, 1.0)
        if self.bounds or is_share:
            a_low, a_high = (low, high) if self.bar is None else (self.bar, self.bar)
            ends = low - a_high, high - a_low
            means = partial(bounded_sequence, low=ends[0], high=ends[1])
            worst = high if self.goal == "minimize" else low
            is_share &= (low, high) == (0, 1)
            risk = 0.5 if is_guessed else 1.0
            return Quantity("difference of means", means, partial(_mean_stake, ends=ends), worst, False, risk, is_share)
        return Quantity("median change", median_sequence, _median_stake, worst, is_relative, 0.5 if is_guessed else 1.0)

    def _bar(self, given: Any) -> float:
        if self.options != 2:
            raise ValueError(f"a bar is in the place of A, so there are two options, got {self.options}")
        bar = _finite(0, given)
        if self.bounds and not self.bounds[0] <= bar <= self.bounds[1]:
            raise ValueError(f"bar must be within the bounds, {self.bounds[0]:g} to {self.bounds[1]:g}, got {bar:g}")
        return bar


def _median_stake(values: Floats, bar: float, sign: float) -> float:
    wins = int((sign * values > sign * bar).sum())
    return log_stake(wins, len(values) - wins)


def _mean_stake(values: Floats, bar: float, sign: float, ends: tuple[float, float]) -> float:
    return log_mean_stake(sign * values, sign * bar, *sorted((sign * ends[0], sign * ends[1])))


def _catoni_stake(values: Floats, bar: float, sign: float, spread: float) -> float:
    return log_catoni_stake(sign * values, sign * bar, spread)


def _quantile_stake(ordered: Floats, bar: float, quantile: float) -> float:
    """Logarithm of the evidence that the quantile of sorted values is above ``bar``."""
    wins = len(ordered) - int(np.searchsorted(ordered, bar, side="right"))
    return log_stake(wins, len(ordered) - wins, 1 - quantile)


def checked_bounds(given: Any) -> tuple[float, float]:
    """Bounds of values; ValueError unless they are two finite numbers."""
    try:
        low, high = map(checked_value, given)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ValueError(f"bounds must be two finite numbers, the smaller one first, like (0, 1), got {given!r}")
    return low, high


def whole(name: str, given: Any, least: int = 2) -> int:
    """A whole number of at least ``least``; ValueError for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {given!r}")
    return int(given)


def positive(name: str, given: Any) -> float:
    """A finite number above 0; ValueError for anything else."""
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {given!r}")
    return float(given)


def place(options: int, given: Any) -> int:
    """Number of an option; ValueError if there is none of it."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 0 <= given < options:
        raise ValueError(f"option must be a whole number from 0 to {options - 1}, got {given!r}")
    return int(given)


def _finite(option: int, given: Any) -> float:
    try:
        return checked_value(given)
    except ValueError:
        wanted = f"value of option {option} must be a finite number"
        raise ValueError(f"{wanted}, got {given!r}: pass None if the run failed") from None


def expm1(value: float) -> float:
    """A difference of logarithms as a relative change; infinite ones, of failed runs, stay as they are."""
    return value if value == -math.inf else math.expm1(value) if value < 700 else math.inf
