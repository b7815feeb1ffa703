"""`Comparison`: which option to run next, and what the runs have shown. `versus` compares two Python functions.

Runs come in blocks: each option in play once, in random order. Values are compared within a block only, so that a
machine that becomes slower, or stalls, affects all options alike. `noregret.comparison.sequences` has the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import permutations
from numbers import Real
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np

from noregret.belief.posterior import Floats
from noregret.comparison.sequences import catoni_sequence, median_sequence
from noregret.decision.playing import seed_sequence
from noregret.formatting import as_precise_as
from noregret.optimizer import Goal, checked_confidence, checked_goal, checked_tolerance, checked_value

Verdict = Literal["better", "worse", "equal", "undecided"]

EVALUATIONS = 400
"""Most runs of `versus` if neither ``seconds`` nor ``evaluations`` is given."""

FAILURES = 5
"""An option is `Comparison.broken` if it has failed this often and never succeeded."""

MISSING = float("nan")
"""Value of a run that failed, or was not asked for."""


class Change(NamedTuple):
    """Change of one option against another: estimate, and the interval that holds at every stopping time."""

    estimate: float
    lower: float
    upper: float


class Comparison:
    """Sequential comparison of options by noisy runs, valid at every stopping time.

    Call `ask` for the option to run, run it, pass the value to `tell`, and stop as soon as `decided` is True, or
    whenever you like. The interval from ``lower`` to ``upper`` holds with probability ``confidence``, at all times
    together. It is about the median of the changes B / A - 1 within pairs of runs: 0 is outside of it if one of the two
    is known to win more than half of the pairs. Rare slow runs hardly count; see ``spread`` for the mean.

    Parameters
    ----------
    options : int
        Number of options, at least 2. Option 0 is A, the one that others are compared with; option 1 is B.
    within : float or str, optional
        Margin of equality: a number in the units of `estimate` (0.01 is 1% where the change is relative), or "1%" of A.
        Differences up to it do not count, see `verdict`.
    confidence : float
        Probability that no statement is wrong, at any time, over all options.
    goal : "minimize" or "maximize"
    spread : float, optional
        Compare means instead of medians, so that rare slow runs count: a bound, known in advance, on the standard
        deviation of ln(B / A) within a pair, or of B - A where changes are not relative. See `catoni_sequence`.
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
        rng: Any = None,
    ) -> None:
        self.options, self.within = _whole("options", options), within
        self.goal, self.confidence = checked_goal(goal), checked_confidence(confidence)
        self.spread = None if spread is None else _positive("spread", spread)
        self._tolerance = None if within is None else checked_tolerance(within)
        self._rng = np.random.default_rng(seed_sequence(rng))
        self._values: Floats = np.empty((0, self.options))  # a row per complete block, MISSING where there is none
        self._block = [MISSING] * self.options
        self._waiting: list[int] = []
        self._old: list[float] = []
        self._remaining = list(range(self.options))
        self._changes: dict[tuple[int, int], Change] = {}
        self.failures = [0] * self.options
        """Failed runs of each option."""
        self.runs = [0] * self.options
        """Runs of each option, failed ones included; values of `tell_old` are not counted."""

    def ask(self) -> int:
        """Return the option to run next; the same one until its value is known."""
        if not self._waiting:
            measured = self._remaining if len(self._remaining) > 1 else range(self.options)
            self._waiting = [int(option) for option in self._rng.permutation(measured)]
            self._block = [MISSING] * self.options
            if self._old and 0 in self._waiting:
                self._waiting.remove(0)
                self._block[0] = self._old.pop()
        return self._waiting[0]

    def tell(self, option: int, value: float | None) -> None:
        """Add the value of a run, or None if it failed.

        The runs of a block may be reported in any order. A failed run has no value, so its pair does not count;
        `failures` counts the failures of each option.
        """
        self.ask()
        option = _place(self.options, option)
        if option not in self._waiting:
            now = sorted(self._waiting)
            raise ValueError(f"option must be one of those to run now, {now}, got {option}: ask() returns the next one")
        number = MISSING if value is None else _finite(option, value)
        self._waiting.remove(option)
        self._block[option] = number
        self.runs[option] += 1
        self.failures[option] += value is None
        if not self._waiting:
            self._values = np.vstack([self._values, self._block])
            self._changes = {}
            self._drop_beaten()

    def tell_old(self, values: Iterable[float]) -> None:
        """Add values of A that were measured before: until they are used up, `ask` returns the other options only.

        Each old value makes a pair with a new run, in random order. The guarantee then assumes that old and new values
        were measured under the same conditions and are independent: a machine that has become slower since looks like
        a change. Each old value is used once. `old_left` counts those that are left; after them A is run again.
        """
        if self._waiting:
            raise ValueError(
                f"old values must be added between blocks, but runs of options {sorted(self._waiting)} are awaited: "
                "add them before the first ask(), or tell the values of these runs first"
            )
        numbers = [_finite(0, value) for value in values]
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
        """Number of blocks with values of at least two options; for two options, of complete pairs."""
        return int((np.isfinite(self._values).sum(axis=1) > 1).sum())

    @property
    def is_relative(self) -> bool:
        """True if changes are relative, B / A - 1: all values are above 0. Otherwise they are differences, B - A."""
        return not bool((self._values <= 0).any())

    @property
    def remaining(self) -> tuple[int, ...]:
        """Options that no other option has beaten, and that are not `broken`."""
        return tuple(self._remaining)

    @property
    def broken(self) -> tuple[int, ...]:
        """Options that have failed five times and never succeeded. `versus` stops; of more than two, they drop out."""
        counts = enumerate(zip(self.failures, self.runs, strict=True))
        return tuple(option for option, (failures, runs) in counts if failures == runs >= FAILURES)

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
        """True if an option is worse than another by more than the margin, False if it is not, None if not known."""
        first, second = sorted((option, than))
        _, lower, upper = self.change(second, first)
        if (option == second) != (self.goal == "minimize"):
            lower, upper = -upper, -lower
        margin = self.margin(first)
        return True if lower > margin else False if upper <= margin else None

    @property
    def best(self) -> int | None:
        """The option that is better than all others by more than the margin, None if that is not known (yet)."""
        if self.options == 2:
            return 0 if self.is_worse(1, 0) else 1 if self.is_worse(0, 1) else None
        return self._remaining[0] if len(self._remaining) == 1 else None

    @property
    def verdict(self) -> Verdict:
        """The result so far: "better", "worse", "equal" or "undecided", of B against A.

        The margin divides all changes into three parts: better by more than the margin, equal within it, worse by more.
        The verdict names the part that has the whole interval in it, and is "undecided" if there is none. Without a
        margin it is never "equal". For more than two options: "better" if one of the others is the `best`, "worse" if
        the first is, "equal" if all of `remaining` are equal within the margin.
        """
        if self.best is not None:
            return "better" if self.best else "worse"
        pairs = permutations(self._remaining, 2)
        is_equal = self.within is not None and all(self.is_worse(*pair) is False for pair in pairs)
        return "equal" if is_equal else "undecided"

    @property
    def decided(self) -> bool:
        """True if the verdict is not "undecided"."""
        return self.verdict != "undecided"

    def change(self, option: int, against: int = 0) -> Change:
        """Change of an option against another, with the interval that holds at every stopping time."""
        key = (_place(self.options, option), _place(self.options, against))
        if key not in self._changes:
            self._changes[key] = Change(0.0, 0.0, 0.0) if option == against else self._change(*key)
        return self._changes[key]

    def _change(self, option: int, against: int) -> Change:
        is_relative = self.is_relative
        scaled = np.log(self._values) if is_relative else self._values
        differences = scaled[:, option] - scaled[:, against]
        differences = differences[~np.isnan(differences)]
        confidence = 1 - (1 - self.confidence) / math.comb(self.options, 2)
        if self.spread is None:
            change = median_sequence(differences, confidence)
        else:
            change = catoni_sequence(differences, self.spread, confidence)
        return Change(*map(_expm1, change)) if is_relative else Change(*change)

    def __repr__(self) -> str:
        verdict, said = self.verdict, ""
        if self.options > 2:
            said = f", better than A by {_interval(self, is_size=True)}" if verdict == "better" else ""
        elif self.pairs:
            is_size = verdict in ("better", "worse")
            said = f"{' by' if is_size else ':'} {_interval(self, is_size)}"
        counted = f"{self.pairs} {'pair' if self.options == 2 else 'block'}{'s' * (self.pairs != 1)}"
        counts = enumerate(zip(self.failures, self.runs, strict=True))
        failed = [f"{letter(option)} failed in {count} of {runs} runs" for option, (count, runs) in counts if count]
        return "; ".join([f"{headline(self)}{said}, {counted}", *failed])

    @property
    def _leader(self) -> Change:
        if self.options == 2:
            return self.change(1)
        sign = 1 if self.goal == "minimize" else -1
        changes = [self.change(option) for option in self._remaining]
        return min(changes, key=lambda change: math.inf if math.isnan(change.estimate) else sign * change.estimate)

    def margin(self, option: int = 0) -> float:
        """Margin of equality with an option, in the units of a change; 0 without ``within``."""
        if self._tolerance is None:
            return 0.0
        known = self._values[:, option][~np.isnan(self._values[:, option])]
        return self._tolerance(1.0 if self.is_relative or not known.size else float(np.median(known)))

    def _drop_beaten(self) -> None:
        """Drop options that are broken or that another one in play has beaten, unless these are all of them."""
        if self.options > 2 and len(self._remaining) > 1:
            beaten = {option for option, best in permutations(self._remaining, 2) if self.is_worse(option, best)}
            left = [option for option in self._remaining if option not in beaten | {*self.broken}]
            self._remaining = left or self._remaining


def versus(
    measure_a: Callable[[], float | None] | Iterable[float],
    measure_b: Callable[[], float | None],
    *,
    within: float | str | None = None,
    confidence: float = 0.95,
    seconds: float | None = None,
    evaluations: int | None = None,
    goal: Goal = "minimize",
    spread: float | None = None,
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
    rng : None, int, SeedSequence or Generator

    Returns
    -------
    Comparison
        With ``estimate``, ``lower``, ``upper``, ``verdict`` and ``pairs``.

    Examples
    --------
    >>> noise = np.random.default_rng(0)
    >>> versus(lambda: noise.normal(10, 1), lambda: noise.normal(13, 1), goal="maximize", rng=0)
    B is better than A by 39% (23% to 67%), 7 pairs
    """
    comparison = Comparison(within=within, confidence=confidence, goal=goal, spread=spread, rng=rng)
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
    return math.expm1(value) if value < 700 else math.inf


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
        undecided = f"Undecided with a margin of {within}" if within else "Undecided"
        return {"undecided": undecided, "equal": f"B equals A within {within}"}.get(verdict, f"B is {verdict} than A")
    *others, last = map(letter, comparison.remaining)
    names = f"{', '.join(others)} and {last}" if others else last
    heads = {"undecided": f"Undecided between {names}", "equal": f"{names} are equal within {within}"}
    return heads.get(verdict, f"{names} is the best of {comparison.options} {noun}")


def _interval(comparison: Comparison, is_size: bool = False) -> str:
    """The estimate with its interval, in percent if it is relative; of the size of the change if ``is_size``."""
    change = Change(comparison.estimate, comparison.lower, comparison.upper)
    if is_size and change.estimate < 0:
        change = Change(-change.estimate, -change.upper, -change.lower)
    factor, unit = (100, "%") if comparison.is_relative else (1, "")
    lower, upper = factor * change.lower, factor * change.upper
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return f"{factor * change.estimate:.3g}{unit} (no interval yet)"
    for digits in (2, 3, 4):  # enough that an end beyond 0 is not printed as 0
        written = [as_precise_as(lower, upper, factor * each, digits) for each in change]
        if all(float(text.replace(",", "")) or not each for text, each in zip(written[1:], change[1:], strict=True)):
            break
    return f"{written[0]}{unit} ({written[1]}{unit} to {written[2]}{unit})"
