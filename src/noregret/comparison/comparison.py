"""`Comparison`: which option to run next, and what the runs have shown. `versus` compares two Python functions.

Runs come in blocks: each option in play once, in random order. Values are compared within a block only, so that a
machine that becomes slower, or stalls, affects all options alike. `noregret.comparison.sequences` has the intervals; a
`Quantity` says what one of them is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import permutations
from numbers import Real
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.comparison.sequences import bounded_sequence, catoni_sequence, log_stake, median_sequence
from noregret.formatting import as_precise_as
from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.gp.seeds import seed_sequence
from noregret.optimizer import Goal, checked_confidence, checked_goal, checked_tolerance, checked_value

Verdict = Literal["better", "worse", "equal", "undecided"]

EVALUATIONS = 400
"""Most runs of `versus` if neither ``seconds`` nor ``evaluations`` is given."""

FAILURES_OF_BROKEN = 5
"""An option is `Comparison.broken` if it has failed this often and never succeeded."""

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


class PairSummary(NamedTuple):
    """Summary of the blocks of two options, one against the other."""

    change: Change
    is_tied: bool
    """True if most pairs are tied, so that a median says little about the options."""
    failed_alone: tuple[int, int]
    """Number of blocks in which the one has failed and the other has not, and the reverse; 0 with bounds."""


class Quantity(NamedTuple):
    """The number that a comparison estimates from the differences within pairs of runs."""

    name: Literal["median change", "difference of means", "mean change"]
    sequence: Callable[..., tuple[float, float, float]]
    """Estimate and interval of values at a ``confidence``, valid at all numbers of pairs together."""
    failed: float
    """Value of a failed run: beyond all others, the worse bound, or MISSING."""
    is_relative: bool
    """True if differences are those of logarithms."""
    risk: float = 1.0
    """Share of 1 - confidence that the interval uses."""
    is_share: bool = False
    """True if a mean is the share of runs that have 1, as all values are 0 or 1."""


class Comparison:
    """Sequential comparison of options by noisy runs, valid at every stopping time.

    Call `ask` for the option to run, run it, pass the value to `tell`, and stop as soon as `decided` is True, or
    whenever you like. The interval from ``lower`` to ``upper`` holds with probability ``confidence``, at all times
    together. It is about the median of the changes B / A - 1 within pairs of runs: 0 is outside of it if one of the two
    is known to win more than half of the pairs. Rare slow runs hardly count; see ``bounds`` and ``spread`` for means.
    `quantity` says which of these it is about. A failed run loses its pair against one that finished.

    Parameters
    ----------
    options : int
        Number of options, at least 2. Option 0 is A, the one that others are compared with; option 1 is B.
    within : float or str, optional
        Margin of equality: a number in the units of `estimate` (0.01 is 1% where the change is relative), or "1%" of A.
        Differences up to it do not count, see `verdict`. With ``bounds``, "1%" is a part of their range.
    confidence : float
        Probability that no statement is wrong, at any time, over all options.
    goal : "minimize" or "maximize"
    spread : float, optional
        Compare means instead of medians, so that rare slow runs count: a bound, known in advance, on the standard
        deviation of ln(B / A) within a pair, or of B - A where changes are not relative. See `catoni_sequence`.
    bounds : pair of floats, optional
        The smallest and the largest possible value of scores, rates, and results that pass or fail. The interval is
        then about the difference of means, see `bounded_sequence`, and a failed run counts as the worse bound. A first
        value of True or False sets the bounds 0 and 1. Without bounds, values that are all 0 or 1 are recognised.
    rng : None, int, SeedSequence or Generator
        Draws the order of the runs.

    Examples
    --------
    >>> noise = np.random.default_rng(0)
    >>> comparison = Comparison(rng=0)
    >>> while not comparison.decided:
    ...     option = comparison.ask()
    ...     comparison.tell(option, [1.0, 0.9][option] * noise.lognormal(sigma=0.03))
    >>> comparison
    B is better than A by 8.5% (4.1% to 11.4%), 7 pairs
    """

    def __init__(
        self,
        options: int = 2,
        *,
        within: float | str | None = None,
        confidence: float = 0.95,
        goal: Goal = "minimize",
        spread: float | None = None,
        bounds: tuple[float, float] | None = None,
        rng: Any = None,
    ) -> None:
        if bounds is not None and spread is not None:
            raise ValueError(f"a comparison has bounds or a spread, not both, got {bounds} and {spread}: drop one")
        self.options, self.within = _whole("options", options), within
        self.goal, self.confidence = checked_goal(goal), checked_confidence(confidence)
        self.spread = None if spread is None else _positive("spread", spread)
        self.bounds = None if bounds is None else _bounds(bounds)
        """The smallest and the largest possible value, None if they are not known."""
        self._tolerance = None if within is None else checked_tolerance(within)
        self._rng = np.random.default_rng(seed_sequence(rng))
        self._values: Floats = np.empty((0, self.options))  # a row per complete block
        self._first: list[int] = []  # the option that was run first in each block
        self._block = [MISSING] * self.options
        self._quantity = self._estimated()
        self._waiting: list[int] = []
        self._old: list[float] = []
        self._remaining = list(range(self.options))
        self._evidence: dict[tuple[int, int], PairSummary] = {}
        self.failures = [0] * self.options
        """Failed runs of each option."""
        self.runs = [0] * self.options
        """Runs of each option, failed ones included; values of `tell_old` are not counted."""

    def ask(self) -> int:
        """Return the option to run next; the same one until its value is known."""
        if not self._waiting:
            self._waiting = [int(option) for option in self._rng.permutation(self._in_play())]
            self._block = [MISSING] * self.options
            if self._old and 0 in self._waiting:
                self._waiting.remove(0)
                self._block[0] = self._old.pop()
        return self._waiting[0]

    def tell(self, option: int, value: float | None) -> None:
        """Add the value of a run, or None if it failed.

        The runs of a block may be reported in any order. A failed run loses its pair, or counts as the worse of the
        ``bounds``; two failed runs are a tie. `failures` counts the failures of each option.
        """
        self.ask()
        option = _place(self.options, option)
        if option not in self._waiting:
            now = sorted(self._waiting)
            raise ValueError(f"option must be one of those to run now, {now}, got {option}: ask() returns the next one")
        number = FAILED if value is None else self._checked(option, value)
        has_values = np.isfinite(self._values).any() or np.isfinite(self._block).any()
        if isinstance(value, bool | np.bool_) and self.spread is self.bounds is None and not has_values:
            self.bounds = 0.0, 1.0
        if len(self._first) == len(self._values):
            self._first.append(option)
        self._waiting.remove(option)
        self._block[option] = number
        self.runs[option] += 1
        self.failures[option] += value is None
        if not self._waiting:
            self._values = np.vstack([self._values, self._block])
            self._quantity, self._evidence = self._estimated(), {}
            self._drop_beaten()

    def tell_old(self, values: Iterable[float | None]) -> None:
        """Add values of A that were measured before: until they are used up, `ask` returns the other options only.

        Each old value makes a pair with a new run, in random order. The guarantee then assumes that old and new values
        were measured under the same conditions and are independent: a machine that has become slower since looks like
        a change. Each old value is used once. `old_left` counts those that are left; after them A is run again. None is
        a run that failed: if those of A are left out, an option that fails as often seems to fail more often.
        """
        if self._waiting:
            raise ValueError(
                f"old values must be added between blocks, but runs of options {sorted(self._waiting)} are awaited: "
                "add them before the first ask(), or tell the values of these runs first"
            )
        numbers = [FAILED if value is None else self._checked(0, value) for value in values]
        self._old += [numbers[place] for place in self._rng.permutation(len(numbers))]

    @property
    def awaited(self) -> tuple[int, ...]:
        """Options of the current block that are still to be run; none between two blocks."""
        return tuple(self._waiting)

    @property
    def old_left(self) -> int:
        """Number of values of `tell_old` that have not been paired yet."""
        return len(self._old)

    @property
    def pairs(self) -> int:
        """Number of blocks with runs of at least two options, failed ones included; for two options, of pairs."""
        return int(((~np.isnan(self._values)).sum(axis=1) > 1).sum())

    @property
    def quantity(self) -> str:
        """The quantity that `estimate` and its interval are about.

        "median change"; "difference of means" for values with bounds and for those that are all 0 or 1; "mean change"
        with a ``spread``.
        """
        return self._quantity.name

    @property
    def is_relative(self) -> bool:
        """True if changes are relative, B / A - 1: all values are above 0. Otherwise they are differences, B - A."""
        return self._quantity.is_relative

    def _estimated(self) -> Quantity:
        """The quantity that suits the values so far.

        If all values are 0 or 1 up to the first block without a failure, medians and means share the risk, so that
        later values choose between statements that hold together.
        """
        is_relative = not bool((self._values <= 0).any())
        if self.spread is not None:
            mean = partial(catoni_sequence, spread=self.spread)
            return Quantity("mean change", mean, MISSING, is_relative, 1 - FAILURE_SHARE)
        known = np.isfinite(self._values)
        are_bits = ((self._values == 0) | (self._values == 1) | ~known).all(axis=1)
        complete = np.flatnonzero((self._values != FAILED).all(axis=1))
        is_share = bool(complete.size) and bool(are_bits.all())
        is_guessed = self.bounds is None and bool(are_bits[: complete[0] + 1 if complete.size else None].all())
        low, high = self.bounds or (0.0, 1.0)
        if self.bounds or is_share:
            means = partial(bounded_sequence, low=low - high, high=high - low)
            worst = high if self.goal == "minimize" else low
            is_share &= (low, high) == (0, 1)
            return Quantity("difference of means", means, worst, False, 0.5 if is_guessed else 1.0, is_share)
        worst = math.inf if self.goal == "minimize" else -math.inf
        return Quantity("median change", median_sequence, worst, is_relative, 0.5 if is_guessed else 1.0)

    @property
    def remaining(self) -> tuple[int, ...]:
        """Options that no other option has beaten, and that are not `broken`."""
        return tuple(self._remaining)

    @property
    def broken(self) -> tuple[int, ...]:
        """Options that have failed five times and never succeeded. `versus` stops; of more than two, they drop out."""
        counts = enumerate(zip(self.failures, self.runs, strict=True))
        return tuple(option for option, (failures, runs) in counts if failures == runs >= FAILURES_OF_BROKEN)

    @property
    def intervals(self) -> list[Change]:
        """Change of each option against the first, with its interval; 0 for the first itself."""
        return [self.change(option) for option in range(self.options)]

    @property
    def estimate(self) -> float:
        """Median change of B against A, relative if `is_relative`; for more options, of the leading one."""
        return self._leader.estimate

    @property
    def lower(self) -> float:
        """Lower end of the interval of `estimate`."""
        return self._leader.lower

    @property
    def upper(self) -> float:
        """Upper end of the interval of `estimate`."""
        return self._leader.upper

    def is_worse(self, option: int = 1, than: int = 0) -> bool | None:
        """True if an option is worse than another by more than the margin, False if it is not, None if not known.

        An option that is shown to fail more often is worse. As long as it has failed more often in the blocks of both,
        it is not known to be no worse.
        """
        if self._excess(option, than)[0] > self.margin(min(option, than)) or self.fails_more(option, than):
            return True
        more, less = self._pair(option, than).failed_alone
        return False if more <= less and self._is_within(option, than) else None

    def fails_more(self, option: int = 1, than: int = 0) -> bool:
        """True if an option is shown to fail more often than another.

        If both fail equally often, each block in which only one of them fails is a fair coin: `log_stake` is the bet
        against it, and a twentieth of 1 - ``confidence`` its level. With ``bounds`` failures are part of the means, and
        nothing is said about them alone.
        """
        more, less = self._pair(option, than).failed_alone
        level = FAILURE_SHARE * (1 - self.confidence) / math.comb(self.options, 2)
        return more > less and log_stake(more, less) >= math.log(2 / level)

    def _excess(self, option: int, than: int) -> tuple[float, float]:
        """Interval of the change of an option against another, above 0 where it is worse."""
        first, second = sorted((option, than))
        _, lower, upper = self._pair(_place(self.options, second), _place(self.options, first)).change
        return (lower, upper) if (option == second) == (self.goal == "minimize") else (-upper, -lower)

    def _is_within(self, option: int, than: int) -> bool:
        """True if the change shows that an option is not worse than another by more than the margin."""
        upper = self._excess(option, than)[1]
        return upper <= self.margin(min(option, than)) and not self._pair(option, than).is_tied

    def _beats(self, option: int, other: int) -> bool:
        return self.is_worse(other, option) is True and self.is_worse(option, other) is False

    @property
    def best(self) -> int | None:
        """The option that is better than each of the others by more than the margin, None if that is not known (yet).

        It has beaten those that were dropped, too: an option may lose to one that a third one beats.
        """
        rest = [option for option in range(self.options) if self.options == 2 or option not in self.broken]
        best = [option for option in rest if all(self._beats(option, other) for other in rest if other != option)]
        return best[0] if len(rest) > 1 and best else None

    @property
    def verdict(self) -> Verdict:
        """The result so far: "better", "worse", "equal" or "undecided", of B against A.

        The margin divides all changes into three parts: better by more than the margin, equal within it, worse by more.
        The verdict names the part that has the whole interval in it, and is "undecided" if there is none. Without a
        margin it is never "equal". B is also "worse" if it is shown to fail more often. It is not "better" or "equal"
        as long as it has failed more often, and not "equal" as long as most pairs are tied. For more than two options:
        "better" if one of the others is the `best`, "worse" if the first is, "equal" if all of `remaining` are equal
        within the margin.
        """
        if self.best is not None:
            return "better" if self.best else "worse"
        if self.options == 2 and self.is_worse():
            return "worse"
        first, *rest = self._remaining or [0]
        is_equal = rest and self.within is not None and all(self.is_worse(option, first) is False for option in rest)
        is_equal = is_equal and all(self._is_within(*pair) for pair in permutations((first, *rest), 2))
        return "equal" if is_equal else "undecided"

    @property
    def decided(self) -> bool:
        """True if the verdict is not "undecided"."""
        return self.verdict != "undecided"

    @property
    def warnings(self) -> list[str]:
        """Sentences about the evidence that a reader must know: ties, ticks of the clock, carry-over."""
        sentences, pairs = [], [(option, 0) for option in self._remaining if option]
        if self.pairs and any(self._pair(*pair).is_tied for pair in pairs):
            sentences.append(
                "Most pairs are tied, so the median says little: give the bounds of the values (--bounds) to compare "
                "their means, or measure with a finer clock"
            )
        elif self.within is not None and any(self._tick(*pair) > self.margin() for pair in pairs):
            sentences.append(f"The clock is too coarse for a margin of {self.within}: measure longer runs")
        if (effect := self._carry_over()) is not None:
            size = f"{100 * abs(_expm1(effect)):.2g}%" if self.is_relative else f"{abs(effect):.2g}"
            sentences.append(
                f"A run after B is {size} {'lower' if effect < 0 else 'higher'} than a run after A, so the change is "
                "biased: undo before each run what the last one left behind (--prepare)"
            )
        return sentences

    def change(self, option: int, against: int = 0) -> Change:
        """Change of an option against another, with the interval that holds at every stopping time."""
        return self._pair(_place(self.options, option), _place(self.options, against)).change

    def _pair(self, option: int, against: int) -> PairSummary:
        if (option, against) not in self._evidence:
            self._evidence[option, against] = self._compared(option, against)
        return self._evidence[option, against]

    def _compared(self, option: int, against: int) -> PairSummary:
        if option == against:
            return PairSummary(Change(0.0, 0.0, 0.0), False, (0, 0))
        quantity, differences = self._quantity, self._differences(option, against)
        confidence = 1 - quantity.risk * (1 - self.confidence) / math.comb(self.options, 2)
        estimate, lower, upper = quantity.sequence(differences, confidence=confidence)
        if tick := self._tick(option, against):
            lower = lower - tick if lower <= 0 else max(lower - tick, min(lower, POSITIVE))
            upper = upper + tick if upper >= 0 else min(upper + tick, max(upper, -POSITIVE))
        change = Change(estimate, lower, upper)
        is_median, ties = quantity.name == "median change", int((differences == 0).sum())
        one, other = self._values[:, option], self._values[:, against]
        alone = int(((one == FAILED) & np.isfinite(other)).sum()), int(((other == FAILED) & np.isfinite(one)).sum())
        return PairSummary(
            Change(*map(_expm1, change)) if quantity.is_relative else change,
            is_median and 2 * ties > len(differences),
            (0, 0) if quantity.name == "difference of means" else alone,
        )

    def _differences(self, option: int, against: int) -> Floats:
        """Differences within the pairs of two options, of logarithms where changes are relative."""
        pairs = self._values[:, [option, against]]
        pairs = pairs[~np.isnan(pairs).any(axis=1)]
        have_failed = pairs == FAILED
        scaled = np.where(have_failed, self._quantity.failed, np.log(pairs) if self.is_relative else pairs)
        known = ~np.isnan(scaled).any(axis=1)
        scaled[have_failed.all(axis=1)] = 0.0
        return np.asarray((scaled[:, 0] - scaled[:, 1])[known])

    def _tick(self, option: int, against: int) -> float:
        """Error of a median change by the ticks of the clock: 0 unless two runs of a pair have the same value.

        A tick is the smallest gap between two values; inf if there is none. Each value is off by at most half a tick,
        the difference of two by one. Its sign is right: the larger of two readings is that of the larger value.
        """
        pairs = self._values[:, [option, against]]
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        if self.quantity != "median change" or not (pairs[:, 0] == pairs[:, 1]).any():
            return 0.0
        gaps = np.diff(np.unique(pairs))
        gap = float(min(gaps[gaps > 1e-9 * np.abs(pairs).max()], default=math.inf))
        return math.log1p(gap / float(np.median(pairs, axis=0).min())) if self.is_relative else gap

    def _carry_over(self) -> float | None:
        if self.options > 2 or 0 in self.runs:
            return None
        values, first = self._values, np.array(self._first[: len(self._values)], dtype=np.intp)
        return carry_over(np.log(values) if self.is_relative else values, first)

    def __repr__(self) -> str:
        verdict, said = self.verdict, ""
        if self.options > 2:
            said = f", better than A by {_interval(self, is_size=True)}" if verdict == "better" else ""
        elif self.quantity == "difference of means":
            said = f": {means(self, self.change(1))}"
        elif self.pairs:
            is_size = verdict in ("better", "worse") and not self.fails_more()
            said = f"{' by' if is_size else ':'} {_interval(self, is_size)}"
        counted = f"{self.pairs} {'pair' if self.options == 2 else 'block'}{'s' * (self.pairs != 1)}"
        counts = enumerate(zip(self.failures, self.runs, strict=True))
        failed = [f"{letter(option)} failed in {count} of {runs} runs" for option, (count, runs) in counts if count]
        return "; ".join([f"{headline(self)}{said}, {counted}", *failed, *self.warnings])

    @property
    def _leader(self) -> Change:
        if self.options == 2:
            return self.change(1)
        sign = 1 if self.goal == "minimize" else -1
        changes = [self.change(option) for option in self._remaining or range(self.options)]
        return min(changes, key=lambda change: math.inf if math.isnan(change.estimate) else sign * change.estimate)

    def margin(self, option: int = 0) -> float:
        """Margin of equality with an option, in the units of a change; 0 without ``within``."""
        if self._tolerance is None:
            return 0.0
        if self.quantity == "difference of means":
            low, high = self.bounds or (0.0, 1.0)
            return self._tolerance(high - low)
        if self.is_relative:
            return self._tolerance(1.0)
        known = self._values[:, option][np.isfinite(self._values[:, option])]
        return self._tolerance(float(np.median(known)) if known.size else 1.0)

    def _in_play(self) -> list[int]:
        """Options of the next block: those that may still be the best, or the last one and those it must still beat."""
        if self.options == 2 or len(self._remaining) > 1:
            return self._remaining
        working = [option for option in range(self.options) if option not in self.broken]
        for winner in self._remaining:
            working = [each for each in working if each == winner or not self._beats(winner, each)]
        return working if len(working) > 1 else list(range(self.options))

    def _drop_beaten(self) -> None:
        """Drop options that another one has beaten, and those that are broken unless these are all of them."""
        if self.options > 2:
            beaten = {option for option, best in permutations(range(self.options), 2) if self.is_worse(option, best)}
            unbeaten = [option for option in self._remaining if option not in beaten]
            self._remaining = [option for option in unbeaten if option not in self.broken] or unbeaten

    def _checked(self, option: int, given: Any) -> float:
        """A value as a float; ValueError unless it is a finite number within the bounds."""
        number = float(given) if isinstance(given, bool | np.bool_) else _finite(option, given)
        if self.bounds and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise ValueError(f"value of option {option} must be within the bounds, {low:g} to {high:g}, got {number:g}")
        return number


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


def versus(
    measure_a: Callable[[], float | None] | Iterable[float | None],
    measure_b: Callable[[], float | None],
    *,
    within: float | str | None = None,
    confidence: float = 0.95,
    seconds: float | None = None,
    evaluations: int | None = None,
    goal: Goal = "minimize",
    spread: float | None = None,
    bounds: tuple[float, float] | None = None,
    rng: Any = None,
) -> Comparison:
    """Compare two functions that return a noisy number, and stop as soon as the answer is known.

    Parameters
    ----------
    measure_a, measure_b : callable without arguments -> float
        Each call is one run. None is a run that failed; exceptions are not caught. Instead of the first function, the
        values of A that were measured before, see `Comparison.tell_old`: B is run at most as often as there are values.
    within : float or str, optional
        Margin of equality, see `Comparison`. Without it the verdict is never "equal".
    confidence : float
        Probability that no statement is wrong, at any time.
    seconds, evaluations : float and int, optional
        Limits on the time and on the number of calls. Pairs that have begun are finished. Without either limit,
        400 calls.
    goal : "minimize" or "maximize"
    spread : float, optional
        Compare means, see `Comparison`.
    bounds : pair of floats, optional
        The smallest and the largest possible value: compare means of scores or rates, see `Comparison`. For functions
        that return True or False they are 0 and 1.
    rng : None, int, SeedSequence or Generator

    Returns
    -------
    Comparison
        With ``estimate``, ``lower``, ``upper``, ``quantity``, ``verdict`` and ``pairs``.

    Examples
    --------
    >>> noise = np.random.default_rng(0)
    >>> versus(lambda: noise.normal(10, 1), lambda: noise.normal(13, 1), goal="maximize", rng=0)
    B is better than A by 39% (23% to 67%), 7 pairs
    """
    comparison = Comparison(within=within, confidence=confidence, goal=goal, spread=spread, bounds=bounds, rng=rng)
    if evaluations is None and seconds is None:
        evaluations = EVALUATIONS
    most = math.inf if evaluations is None else _whole("evaluations", evaluations)
    end = monotonic() + (math.inf if seconds is None else _positive("seconds", seconds))
    measures = {1: measure_b}
    if callable(measure_a):
        measures[0] = measure_a
    else:
        comparison.tell_old(measure_a)
    while not comparison.decided and not comparison.broken and (0 in measures or comparison.old_left):
        if sum(comparison.runs) + len(measures) > most or monotonic() >= end:
            break
        for _ in measures:
            option = comparison.ask()
            comparison.tell(option, measures[option]())
    return comparison


def _bounds(given: Any) -> tuple[float, float]:
    try:
        low, high = map(checked_value, given)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ValueError(f"bounds must be two finite numbers, the smaller one first, like (0, 1), got {given!r}")
    return low, high


def _whole(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 2:
        raise ValueError(f"{name} must be a whole number of at least 2, got {given!r}")
    return int(given)


def _positive(name: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {given!r}")
    return float(given)


def _place(options: int, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 0 <= given < options:
        raise ValueError(f"option must be a whole number from 0 to {options - 1}, got {given!r}")
    return int(given)


def _finite(option: int, given: Any) -> float:
    try:
        return checked_value(given)
    except ValueError:
        wanted = f"value of option {option} must be a finite number"
        raise ValueError(f"{wanted}, got {given!r}: pass None if the run failed") from None


def _expm1(value: float) -> float:
    """A difference of logarithms as a relative change; infinite ones, of failed runs, stay as they are."""
    return value if value == -math.inf else math.expm1(value) if value < 700 else math.inf


def letter(option: int) -> str:
    """Name of an option: A is the first.

    >>> letter(0), letter(1), letter(26)
    ('A', 'B', 'A1')
    """
    return chr(ord("A") + option % 26) + (str(option // 26) if option >= 26 else "")


def headline(comparison: Comparison, noun: str = "options") -> str:
    """The verdict in words."""
    verdict, within = comparison.verdict, comparison.within
    if comparison.options == 2:
        said = {"equal": f"B equals A within {within}", "undecided": "Undecided"}.get(verdict, f"B is {verdict} than A")
        if comparison.fails_more():
            return f"{said}, as it fails more often"
        if verdict == "undecided" and comparison.is_worse() is None and comparison._is_within(1, 0):
            return f"{said}, as B has failed more often than A"
        return f"{said} with a margin of {within}" if verdict == "undecided" and within else said
    if not comparison.remaining:
        return f"None of the {comparison.options} {noun} is the best: each is worse than another"
    *others, last = map(letter, comparison.remaining)
    names = f"{', '.join(others)} and {last}" if others else last
    undecided = f"Undecided between {names}" if others else f"Undecided, {names} is not beaten by any other so far"
    heads = {"undecided": undecided, "equal": f"{names} are equal within {within}"}
    return heads.get(verdict, f"{names} is the best of {comparison.options} {noun}")


def means(comparison: Comparison, change: Change) -> str:
    """A difference of means in words.

    >>> means(Comparison(bounds=(0, 10)), Change(0.5, -0.25, 1.25))
    'mean 0.50 higher (0.25 lower to 1.25 higher)'
    """
    if comparison._quantity.is_share:
        points = Change(*(100 * each for each in change))
        noun = " runs pass" if comparison.goal == "maximize" else " runs fail"
        return directed(points, "points fewer", "points more", noun=noun, digits=2)
    return f"mean {directed(change, 'lower', 'higher')}"


def directed(
    change: Change, less: str, more: str, unit: str = "", noun: str = "", digits: int = 3, missing: str = "yet"
) -> str:
    """A change and its interval, with a word for each direction.

    >>> directed(Change(-3.1, -4.2, -1.9), "less", "more", "%", " time")
    '3.10% less time (1.90% to 4.20%)'
    >>> directed(Change(2, -1, math.inf), "less", "more")
    '2 more (1 less to no limit)'
    """
    estimate, lower, upper = change
    if math.isnan(estimate):
        return "not known yet"

    def written(value: float, word: str = "") -> str:
        if math.isinf(value):
            return "no limit"
        return f"{as_precise_as(lower, upper, abs(value), digits)}{unit}{word}"

    if math.isinf(lower) and math.isinf(upper):
        ends = f"no interval {missing}"
    elif lower < 0 < upper:
        ends = f"{written(lower, f' {less}')} to {written(upper, f' {more}')}"
    else:
        ends = " to ".join(map(written, sorted((lower, upper), key=abs)))
    if math.isinf(estimate):
        return f"no estimate, as most pairs have a failed run ({ends})"
    return f"{written(estimate)} {more if estimate > 0 else less}{noun} ({ends})"


def _interval(comparison: Comparison, is_size: bool = False) -> str:
    """The estimate with its interval, in percent if it is relative; of the size of the change if ``is_size``."""
    change = Change(comparison.estimate, comparison.lower, comparison.upper)
    if is_size and change.upper < 0:
        change = Change(-change.estimate, -change.upper, -change.lower)
    factor, unit = (100, "%") if comparison.is_relative else (1, "")
    lower, upper = factor * change.lower, factor * change.upper
    for digits in (2, 3, 4):  # enough that an end beyond 0 is not printed as 0
        written = [f"{as_precise_as(lower, upper, factor * each, digits)}{unit}" for each in change]
        if all(
            float(text.rstrip("%").replace(",", "")) or not each for text, each in zip(written, change, strict=True)
        ):
            break
    written = [text if math.isfinite(each) else "no limit" for text, each in zip(written, change, strict=True)]
    if not math.isfinite(change.estimate):
        written[0] = "not known"
    elif math.isinf(lower) and math.isinf(upper):
        return f"{factor * change.estimate:.3g}{unit} (no interval yet)"
    return f"{written[0]} ({written[1]} to {written[2]})"
