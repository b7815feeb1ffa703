"""`Suite`: many named numbers of each run, compared with one error budget for all.

Each name has an `EProcess`. If nothing differs, its e-value e_i is at most 1 on average at any stopping time. Of n
names the k with the largest e-values are called different, where k is the largest number with

    e_(k) >= n / (alpha k),    alpha = 1 - confidence.

This is the e-BH procedure. The expected share of wrong ones among them is at most alpha, at any stopping time and
whatever the dependence between the names. Proof: a name that is wrongly among them has 1 <= e_i alpha k / n. So the
share of wrong ones, a sum of terms 1 / k, is at most the sum of e_i alpha / n over names without a difference, and its
expected value is at most alpha.

The e-value of "different" is half of the larger one of those of "better" and "worse", so a name is among the k exactly
if its interval at level 1 - alpha k / n excludes all changes within the margin. As the names are selected by their
data, this is also the level at which at most a share alpha of their intervals is wrong (Xu, Wang and Ramdas, 2022).
With a margin the names that are equal within it are found by the same rule among those e-values, with a k' of their own
and intervals at level 1 - alpha k' / n. All other names have the level of the next one to be different, which is
1 - alpha (k + 1) / n.

R. Wang, A. Ramdas. False discovery rate control with e-values. JRSS B, 2022 (arXiv 2009.02824).
Z. Xu, R. Wang, A. Ramdas. Post-selection inference for e-value based confidence intervals. 2022 (arXiv 2203.12572).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from noregret.comparison.comparison import Comparison, Verdict
from noregret.comparison.eprocess import EProcess
from noregret.optimizer import Goal, checked_tolerance, checked_value

LARGEST = 1e300
"""Largest e-value that is reported."""

Values = Mapping[str, float | None]


class NamedChange(NamedTuple):
    """The change of one name of a suite, B against A."""

    name: str
    verdict: Verdict
    estimate: float
    lower: float
    upper: float
    evalue: float
    """Evidence that the name differs by more than the margin: at most 1 on average if it does not."""
    level: float
    """Level of the interval from ``lower`` to ``upper``, at all times together."""
    pairs: int


class Suite:
    """Sequential comparison of two options whose runs return many named numbers each.

    Call `ask` for the option to run, run it, and pass its numbers to `tell`, until `decided` is True or as long as you
    like. At every stopping time at most 5% (1 - ``confidence``) of the names that are called "better" or "worse" are
    wrong in expectation, whatever the dependence between the names. The same holds for those that are "equal". A name
    that is decided is not observed any more: only those in `undecided` need be run.

    Parameters
    ----------
    names : iterable of str, optional
        The names to compare. By default those with a value in both runs of the first pair, see `left_out`.
    within : float or str, optional
        Margin of equality of each name, see `Comparison`. Without it no name is ever "equal".
    confidence : float
        1 - the expected share of wrong ones among the statements.
    goal : "minimize" or "maximize"
    bounds : pair of floats, optional
        The smallest and the largest possible value of all names: compare means, see `Comparison`.
    rng : None, int, SeedSequence or Generator
        Draws the order of the runs.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0)
    >>> suite = Suite(["parse", "sort", "write"], rng=0)
    >>> for _ in range(40):
    ...     option = suite.ask()
    ...     means = {"parse": 2.0, "sort": [1.0, 1.1][option], "write": 3.0}
    ...     suite.tell(option, {name: mean * noise.lognormal(sigma=0.03) for name, mean in means.items()})
    >>> suite
    1 of 3 names is worse, none is better, 2 undecided, 20 pairs
    >>> suite["sort"].verdict, round(suite["sort"].estimate, 2)
    ('worse', 0.09)
    """

    def __init__(
        self,
        names: Iterable[str] | None = None,
        *,
        within: float | str | None = None,
        confidence: float = 0.95,
        goal: Goal = "minimize",
        bounds: tuple[float, float] | None = None,
        rng: Any = None,
    ) -> None:
        self.order = Comparison(within=within, confidence=confidence, goal=goal, bounds=bounds, rng=rng)
        """The order of the runs, with the number of them and of those that failed; the values in it mean nothing."""
        self.within, self.confidence, self.goal, self.bounds = within, self.order.confidence, goal, self.order.bounds
        self.names: tuple[str, ...] = ()
        """The names that are compared; none before they are known."""
        self.left_out: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
        """Names that the first run of A has no value of, and the first run of B, if the names were not given."""
        self.values: dict[str, tuple[list[float | None], list[float | None]]] = {}
        """Values of each name in the runs of A and of B, None for failed ones."""
        self._processes: dict[str, EProcess] = {}
        self._rows: dict[str, NamedChange] | None = None
        self._final: dict[str, tuple[float, float]] = {}
        self._running: tuple[str, ...] = ()
        self._first: dict[int, Values] = {}
        if names is not None:
            self._begin(_distinct(names))

    def _begin(self, names: tuple[str, ...]) -> None:
        self.names = self._running = names
        self.values = {name: ([], []) for name in names}
        self._processes = {name: EProcess(goal=self.goal, bounds=self.bounds) for name in names}

    def ask(self) -> int:
        """Return the option to run next: 0 for A, 1 for B; the same one until its values are known."""
        return self.order.ask()

    @property
    def running(self) -> tuple[str, ...]:
        """Names that the next run needs: those that were undecided when its pair began."""
        return self._running if len(self.order.awaited) == 1 else self.undecided

    def tell(self, option: int, values: Values | None) -> None:
        """Add the values of a run by name, or None if all of it failed.

        A name with the value None, or that is missing, has failed in this run, unless it was decided when its pair
        began. A failed name loses its pair against one that did not fail.
        """
        self.order.ask()
        numbers = None if values is None else {name: self._checked(name, value) for name, value in values.items()}
        is_first = not self.names
        if is_first and numbers is not None and len(self.order.awaited) == 1:
            self._common(*self._first.values(), numbers)
        running = self.running
        self.order.tell(option, None if values is None else self.bounds[0] if self.bounds else 0.0)
        self._running, self._rows = running, self._rows if self.order.awaited else None
        if not is_first:
            self._observe(option, numbers or {})
            return
        self._first |= {} if numbers is None else {option: numbers}
        if not self.order.awaited:
            runs, self._first = self._first, {}
            if len(runs) == 2:
                names = self._common(*runs.values())
                every = dict.fromkeys([*runs[0], *runs[1]])
                a, b = (tuple(name for name in every if run.get(name) is None) for _, run in sorted(runs.items()))
                self.left_out = a, b
                self._begin(names)
                for each, run in runs.items():
                    self._observe(each, run)

    @staticmethod
    def _common(*runs: Values) -> tuple[str, ...]:
        """Names that have a value in all runs; ValueError if there is none."""
        common = tuple(name for name in runs[0] if all(run.get(name) is not None for run in runs))
        if not common and len(runs) > 1:
            raise ValueError(
                f"A and B must have names in common, got {' against '.join(_some(run) for run in runs)}: "
                "let both run the same"
            )
        return common

    def _observe(self, option: int, numbers: Values) -> None:
        for name in self._running:
            value = numbers.get(name)
            self.values[name][option].append(value)
            self._processes[name].observe(value, option)

    def _checked(self, name: str, value: float | None) -> float | None:
        if self.names and name not in self._processes:
            raise ValueError(f"values must be those of names of the suite, {_some(self.names)}, got {name!r}")
        if value is None:
            return None
        try:
            number = float(value) if isinstance(value, bool | np.bool_) else checked_value(value)
        except ValueError:
            raise ValueError(f"{name} must be a finite number, got {value!r}: pass None if it failed") from None
        if self.bounds and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise ValueError(f"{name} must be within the bounds, {low:g} to {high:g}, got {number:g}")
        return value

    @property
    def pairs(self) -> int:
        """Number of pairs of runs, failed ones included."""
        return self.order.pairs

    @property
    def rows(self) -> list[NamedChange]:
        """The names, worst first: those that are worse, then the others by their change, then those that are better."""
        sign = 1 if self.goal == "minimize" else -1

        def place(row: NamedChange) -> tuple[int, float]:
            group = {"worse": 0, "better": 2}.get(row.verdict, 1)
            return group, math.inf if math.isnan(row.estimate) else -sign * row.estimate

        return sorted(self._judged().values(), key=place)

    def __getitem__(self, name: str) -> NamedChange:
        return self._judged()[name]

    def named(self, verdict: Verdict) -> tuple[str, ...]:
        """The names with a verdict."""
        return tuple(name for name, row in self._judged().items() if row.verdict == verdict)

    @property
    def undecided(self) -> tuple[str, ...]:
        """The names that need further runs."""
        return self.named("undecided")

    @property
    def decided(self) -> bool:
        """True if no name is undecided."""
        return bool(self.names) and not self.undecided

    @property
    def verdict(self) -> Verdict:
        """The verdict on B: "worse" if any name is, else "better" if any is; "equal" if all are, else "undecided"."""
        verdicts = [row.verdict for row in self._judged().values()]
        shown: list[Verdict] = [each for each in ("worse", "better") if each in verdicts]
        return shown[0] if shown else "equal" if verdicts and set(verdicts) == {"equal"} else "undecided"

    def is_relative(self, name: str) -> bool:
        """True if the change of a name is relative, B / A - 1: all of its values are above 0."""
        return self._processes[name].is_relative

    def margin(self, name: str) -> float:
        """Margin of equality of a name, in the units of its change; 0 without ``within``."""
        if self.within is None:
            return 0.0
        tolerance, process = checked_tolerance(self.within), self._processes[name]
        if process.quantity == "difference of means":
            low, high = self.bounds or (0.0, 1.0)
            return tolerance(high - low)
        known = [value for value in self.values[name][0] if value is not None]
        return tolerance(1.0 if process.is_relative or not known else sorted(known)[len(known) // 2])

    def _judged(self) -> dict[str, NamedChange]:
        if self._rows is None:
            alpha, count = 1 - self.confidence, len(self.names)
            evidence = {name: self._final.get(name) or self._evidence(name) for name in self.names}
            different = selected({name: each for name, (each, _) in evidence.items()}, alpha)
            equal = selected(
                {name: each for name, (_, each) in evidence.items() if name not in different}, alpha, count
            )
            self._rows = {}
            for name in self.names:
                process = self._processes[name]
                k = len(different) + (name not in different)
                level = 1 - alpha * (len(equal) if name in equal else min(k, count)) / count
                change = process.interval(level)
                is_better = (change.estimate < 0) == (self.goal == "minimize")
                said: Verdict = "better" if is_better else "worse"
                verdict: Verdict = said if name in different else "equal" if name in equal else "undecided"
                if verdict != "undecided":
                    self._final[name] = evidence[name]
                evalue = min(evidence[name][0], LARGEST)
                self._rows[name] = NamedChange(name, verdict, *change, evalue, level, process.pairs)
        return self._rows

    def _evidence(self, name: str) -> tuple[float, float]:
        """The e-values of "different", and half of that of "equal": its interval is within the margin.

        The first is at most that of "worse", and the second is 0, if B has failed more often where A did not.
        """
        process, margin = self._processes[name], self.margin(name)
        more, less = process.failed_alone()
        if more > less:
            return process.evalue("worse", margin) / 2, 0.0
        return process.evalue("different", margin), process.evalue("equal", margin) / 2 if self.within else 0.0

    def __repr__(self) -> str:
        return f"{self.headline()}, {self.pairs} pair{'s' * (self.pairs != 1)}"

    def headline(self) -> str:
        """The numbers of names by verdict, in words."""
        if not self.names:
            return "No names yet"
        worse, better, equal, undecided = (
            len(self.named(verdict)) for verdict in ("worse", "better", "equal", "undecided")
        )
        total = f" of {len(self.names)} name{'s' * (len(self.names) != 1)}"
        parts = [_counted(worse, "worse", total), _counted(better, "better")]
        parts += [f"{equal} equal within {self.within}"] * bool(equal) + [f"{undecided} undecided"] * bool(undecided)
        return ", ".join(parts)


def selected(evalues: Mapping[str, float], alpha: float, count: int | None = None) -> set[str]:
    """Names that e-BH selects: the k largest of ``count`` e-values, the k-th of which is at least count / (alpha k).

    >>> sorted(selected({"a": 90, "b": 45, "c": 1}, 0.05))
    ['a', 'b']
    """
    count = len(evalues) if count is None else count
    ordered = sorted(evalues.values(), reverse=True)
    k = max((k for k, each in enumerate(ordered, 1) if alpha * k * each >= count), default=0)
    return {name for name, each in evalues.items() if k and alpha * k * each >= count}


def _counted(number: int, verdict: str, total: str = "") -> str:
    return f"{number or 'none'}{total} {'are' if number > 1 else 'is'} {verdict}"


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    given = tuple(names)
    if isinstance(names, str) or not given or not all(isinstance(name, str) for name in given):
        raise ValueError(f"names must be a list of text that is not empty, got {names!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"names must differ from each other, got {_some(sorted(given))}")
    return given


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(map(repr, listed[:3])) + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")
