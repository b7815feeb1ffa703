"""`Comparison`: which option to run next, and what the runs have shown. `versus` compares two Python functions.

Runs come in blocks: each option in play once, in random order. Values are compared within a block only, so that a
machine that becomes slower, or stalls, affects all options alike. `noregret.comparison.sequences` has the intervals; a
`Quantity` says what one of them is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import permutations
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.comparison.eprocess import (
    FAILED,
    FAILURE_SHARE,
    MISSING,
    Change,
    Claim,
    EProcess,
    expm1,
    place,
    positive,
    whole,
)
from noregret.comparison.sequences import log_stake
from noregret.formatting import as_precise_as
from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.gp.seeds import seed_sequence
from noregret.optimizer import Goal, checked_confidence, checked_tolerance

Verdict = Literal["better", "worse", "equal", "undecided"]

MOST_PAIRS = 10_000
"""The most pairs that `Comparison.pairs_to_come` speaks of."""

EVALUATIONS = 400
"""Most runs of `versus` if neither ``seconds`` nor ``evaluations`` is given."""

FAILURES_OF_BROKEN = 5
"""An option is `Comparison.broken` if it has failed this often and never succeeded."""


class PairSummary(NamedTuple):
    """Summary of the blocks of two options, one against the other."""

    change: Change
    is_tied: bool
    """True if most pairs are tied, so that a median says little about the options."""
    failed_alone: tuple[int, int]
    """Number of blocks in which the one has failed and the other has not, and the reverse; 0 with bounds."""


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
    quantile : float, optional
        Compare this quantile of the runs of each option, such as 0.99: the tail of latencies.
    bar : float, optional
        A number in the place of A: only B is run.
    repeats : int
        Blocks of an item that make one observation, see `tell` and `EProcess`.
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
        quantile: float | None = None,
        bar: float | None = None,
        repeats: int = 1,
        rng: Any = None,
    ) -> None:
        self.evidence = EProcess(
            options, goal=goal, bounds=bounds, spread=spread, quantile=quantile, bar=bar, repeats=repeats
        )
        """Evidence of the complete blocks."""
        self.options, self.goal, self.spread = self.evidence.options, self.evidence.goal, self.evidence.spread
        self.within, self.confidence = within, checked_confidence(confidence)
        self._tolerance = None if within is None else checked_tolerance(within)
        self._rng = np.random.default_rng(seed_sequence(rng))
        self._first: list[int] = []  # the option that was run first in each block
        self._block = [MISSING] * self.options
        self._item: Hashable = None
        self._preset = 0  # values of the block that were known before
        self._waiting: list[int] = []
        self._old: list[float] = []
        self._remaining = list(range(self.options))
        self._pairs: dict[tuple[int, int], PairSummary] = {}
        self._told: list[list[Any]] = []
        self._paired: list[float | None] = []  # old values of A, in the order of their blocks
        self.failures = [0] * self.options
        """Failed runs of each option."""
        self.runs = [0] * self.options
        """Runs of each option, failed ones included; values of `tell_old` are not counted."""

    def ask(self) -> int:
        """Return the option to run next; the same one until its value is known."""
        if not self._waiting:
            self._waiting = [int(option) for option in self._rng.permutation(self._in_play())]
            self._block, self._item, self._preset = [MISSING] * self.options, None, 0
            if 0 in self._waiting and (self._old or self.evidence.bar is not None):
                self._waiting.remove(0)
                self._block[0] = self._old.pop() if self.evidence.bar is None else self.evidence.bar
                self._preset = 1
        return self._waiting[0]

    def tell(self, option: int, value: float | None, item: Hashable = None) -> None:
        """Add the value of a run, or None if it failed.

        The runs of a block may be reported in any order. A failed run loses its pair, or counts as the worse of the
        ``bounds``; two failed runs are a tie. `failures` counts the failures of each option.

        Parameters
        ----------
        option : int
        value : float, bool or None
        item : hashable, optional
            What the runs of a block share, such as a test of a suite, a prompt or a seed: all options are run on it.
            An item counts once, see ``repeats``.
        """
        self.ask()
        option = place(self.options, option)
        if option not in self._waiting:
            now = sorted(self._waiting)
            raise ValueError(f"option must be one of those to run now, {now}, got {option}: ask() returns the next one")
        has_begun = sum(not math.isnan(each) for each in self._block) > self._preset
        if has_begun and item != self._item:
            raise ValueError(f"item must be that of the other runs of this block, {self._item!r}, got {item!r}")
        self.evidence.check_item(item)
        number = self.evidence.checked(option, value)
        if not has_begun:
            self._first.append(option)
            if self._preset and self.evidence.bar is None:
                self._paired.append(None if self._block[0] == FAILED else self._block[0])
        self._item = item
        self._waiting.remove(option)
        self._block[option] = number
        is_bit = isinstance(value, bool | np.bool_)
        self._told.append([option, None if value is None else bool(value) if is_bit else number, item])
        self.runs[option] += 1
        self.failures[option] += value is None
        if not self._waiting:
            self.evidence.add(self._block, self._item)
            self._pairs = {}
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
        if self.evidence.bar is not None:
            raise ValueError("old values of A are in the place of runs of A, and so is the bar: drop one")
        numbers = [self.evidence.checked(0, value) for value in values]
        self._old += [numbers[place] for place in self._rng.permutation(len(numbers))]

    def evalue(self, claim: Claim = "better", option: int = 1, against: int = 0) -> float:
        """Evidence for a claim about an option, see `EProcess.evalue`; the margin is that of `within`.

        It counts for one pair of options; where several are looked at, divide it by their number.
        """
        option, against = place(self.options, option), place(self.options, against)
        return self.evidence.evalue(claim, self.margin(min(option, against)), option, against)

    def document(self) -> dict[str, Any]:
        """All that the verdict follows from, for JSON: the arguments, and the runs in the order in which they came."""
        evidence = self.evidence
        return {
            "options": self.options,
            "within": self.within,
            "confidence": self.confidence,
            "goal": self.goal,
            "spread": self.spread,
            "bounds": None if evidence.bounds is None else list(evidence.bounds),
            "quantile": evidence.quantile,
            "bar": evidence.bar,
            "repeats": evidence.repeats,
            "runs": [list(run) for run in self._told],
            "old": list(self._paired),
        }

    @classmethod
    def replay(cls, document: Mapping[str, Any]) -> Comparison:
        """The comparison of a `document`: the same runs, told again.

        >>> comparison = Comparison(rng=0)
        >>> for value in (10.2, 9.1, 9.0, 10.1):
        ...     comparison.tell(comparison.ask(), value)
        >>> Comparison.replay(comparison.document()).estimate == comparison.estimate
        True
        """
        given = dict(document)
        runs, old = given.pop("runs"), given.pop("old")
        comparison = cls(**given, rng=0)
        comparison._old = [comparison.evidence.checked(0, value) for value in reversed(old)]
        for option, value, item in runs:
            comparison.tell(option, value, tuple(item) if isinstance(item, list) else item)
        return comparison

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
        """Number of blocks with runs of at least two options, failed ones included; of items, if there are any."""
        return self.evidence.pairs

    @property
    def quantity(self) -> str:
        """The quantity that `estimate` and its interval are about, see `EProcess.quantity`."""
        return self.evidence.quantity

    @property
    def is_relative(self) -> bool:
        """True if changes are relative, B / A - 1: all values are above 0. Otherwise they are differences, B - A."""
        return self.evidence.is_relative

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The smallest and the largest possible value, None if they are not known."""
        return self.evidence.bounds

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
        _, lower, upper = self._pair(place(self.options, second), place(self.options, first)).change
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
    def pairs_to_come(self) -> int | None:
        """Number of further pairs that a decision is likely to take, if they are like those so far; None if none shows.

        The logarithm of the evidence grows by the same amount with each pair, but for half the logarithm of their
        number; the half that noise alone adds is taken off. The claim that is nearest to its decision counts.

        >>> comparison = Comparison(rng=0)
        >>> for pair in ((10.2, 9.1), (10.1, 9.0), (10.0, 9.2)):
        ...     for option, value in enumerate(pair):
        ...         comparison.tell(option, value)
        >>> comparison.pairs, comparison.pairs_to_come
        (3, 4)
        """
        pairs = self.evidence.pairs
        if self.decided or not pairs:
            return 0 if self.decided else None
        risk = (1 - self.confidence) / math.comb(self.options, 2)
        first, *others = self._remaining[:2] or [0]
        claims: list[Claim] = ["better", "worse", *(["equal"] if self.within is not None else [])]  # type: ignore[list-item]
        best = max(self.evalue(claim, others[0] if others else 1, first) for claim in claims)
        each = (math.log(max(best, 1e-300)) + 0.5 * math.log(pairs) + math.log(2) - 0.5) / pairs
        counts = np.arange(pairs + 1, max(MOST_PAIRS, pairs + 2))
        enough = counts * each - 0.5 * np.log(counts) - math.log(2) >= math.log(2 / risk)
        return int(enough.argmax()) + 1 if enough.any() else None

    @property
    def warnings(self) -> list[str]:
        """Sentences about the evidence that a reader must know: ties, ticks of the clock, carry-over."""
        sentences, pairs = [], [(option, 0) for option in self._remaining if option]
        if self.pairs and any(self._pair(*pair).is_tied for pair in pairs):
            sentences.append(
                "Most pairs are tied, so the median says little: give the bounds of the values (--bounds) to compare "
                "their means, or measure with a finer clock"
            )
        elif self.within is not None and any(self.evidence.tick(*pair) > self.margin() for pair in pairs):
            sentences.append(f"The clock is too coarse for a margin of {self.within}: measure longer runs")
        if (effect := self._carry_over()) is not None:
            size = f"{100 * abs(expm1(effect)):.2g}%" if self.is_relative else f"{abs(effect):.2g}"
            sentences.append(
                f"A run after B is {size} {'lower' if effect < 0 else 'higher'} than a run after A, so the change is "
                "biased: undo before each run what the last one left behind (--prepare)"
            )
        return sentences

    def change(self, option: int, against: int = 0) -> Change:
        """Change of an option against another, with the interval that holds at every stopping time."""
        return self._pair(place(self.options, option), place(self.options, against)).change

    def _pair(self, option: int, against: int) -> PairSummary:
        if (option, against) not in self._pairs:
            self._pairs[option, against] = self._compared(option, against)
        return self._pairs[option, against]

    def _compared(self, option: int, against: int) -> PairSummary:
        evidence, level = self.evidence, 1 - (1 - self.confidence) / math.comb(self.options, 2)
        differences = evidence.differences(option, against)
        is_tied = evidence.quantity == "median change" and 2 * int((differences == 0).sum()) > len(differences)
        alone = evidence.failed_alone(option, against)
        return PairSummary(evidence.interval(level, option, against), is_tied and option != against, alone)

    def _carry_over(self) -> float | None:
        if self.options > 2 or 0 in self.runs:
            return None
        values = self.evidence.values
        first = np.array(self._first[: len(values)], dtype=np.intp)
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
        known = self.evidence.values[:, option]
        known = known[np.isfinite(known)]
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
    measure_a: Callable[[], float | None] | Iterable[float | None] | float,
    measure_b: Callable[[], float | None],
    *,
    within: float | str | None = None,
    confidence: float = 0.95,
    seconds: float | None = None,
    evaluations: int | None = None,
    goal: Goal = "minimize",
    spread: float | None = None,
    bounds: tuple[float, float] | None = None,
    quantile: float | None = None,
    rng: Any = None,
) -> Comparison:
    """Compare two functions that return a noisy number, and stop as soon as the answer is known.

    Parameters
    ----------
    measure_a, measure_b : callable without arguments -> float
        Each call is one run. None is a run that failed; exceptions are not caught. Instead of the first function, the
        values of A that were measured before, see `Comparison.tell_old`: B is run at most as often as there are values.
        A number is a bar: only B is run.
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
    quantile : float, optional
        Compare this quantile of the runs of each function, such as 0.99.
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
    bar = None if callable(measure_a) or isinstance(measure_a, Iterable) else measure_a
    comparison = Comparison(
        within=within,
        confidence=confidence,
        goal=goal,
        spread=spread,
        bounds=bounds,
        quantile=quantile,
        bar=bar,
        rng=rng,
    )
    if evaluations is None and seconds is None:
        evaluations = EVALUATIONS
    most = math.inf if evaluations is None else whole("evaluations", evaluations)
    end = monotonic() + (math.inf if seconds is None else positive("seconds", seconds))
    measures = {1: measure_b}
    if callable(measure_a):
        measures[0] = measure_a
    elif isinstance(measure_a, Iterable):
        comparison.tell_old(measure_a)
    has_a = 0 in measures or bar is not None
    while not comparison.decided and not comparison.broken and (has_a or comparison.old_left):
        if sum(comparison.runs) + len(measures) > most or monotonic() >= end:
            break
        for _ in measures:
            option = comparison.ask()
            comparison.tell(option, measures[option]())
    return comparison


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
    if comparison.evidence.is_share:
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
