"""Parameters as Optuna's distributions, and back; and the structure of a study: which trials have which parameters.

An objective may suggest a parameter in some trials only, ``if model == "forest": depth = trial.suggest_int(...)``.
The completed trials show the condition: depth is there when model is "forest", and not when it is anything
else. A parameter with one range in some trials and another one in others counts as two, if a condition says which; else
as one with a range that has all values of both: an objective was edited.

Conditions are sought among the parameters with few values that are present whenever the other one is, and in further
trials: the values with which it was present, and those between them if they are numbers. Of several parameters that
separate the trials with it from those without it, the one that separates most is taken, then, if some remain, the next.
A parameter with unexplained trials is left out of the structure, unless each of the last `IN_A_ROW` trials has it: the
objective has a new parameter, and trials without it are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from threading import Lock
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from noregret.optimizer import EXACT, MOST_OPTIONS, Choice, Float, Int, axis_of


def distribution(parameter: Float | Int | Choice) -> BaseDistribution:
    """Distribution with the values of a parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.options)
    if isinstance(parameter, Float):
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step or 1)


def column_distribution(values: list[Any]) -> BaseDistribution:
    """Distribution that holds the values of one column of a table."""
    if all(isinstance(value, int) for value in values):
        return IntDistribution(min(values), max(values))
    if all(isinstance(value, float) for value in values):
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(list(dict.fromkeys(values)))


def parameter(its: BaseDistribution, when: Mapping[str, Any] | None = None) -> Float | Int | Choice:
    """Parameter with the values of a distribution, on this condition."""
    if isinstance(its, CategoricalDistribution):
        return Choice(its.choices, when=when)
    assert isinstance(its, FloatDistribution | IntDistribution)
    step = None if its.log else its.step
    if isinstance(its, FloatDistribution):
        return Float(its.low, its.high, its.log, step, when)
    return Int(its.low, its.high, its.log, None if step is None else int(step), when)


@dataclass(frozen=True)
class Parameter:
    """One of Optuna's distributions as the optimizer's parameter: choices by index, steps as whole numbers."""

    distribution: BaseDistribution

    @property
    def parameter(self) -> Float | Int | Choice:
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Choice(list(range(len(d.choices))))
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            return Int(0, round((d.high - d.low) / self._step))
        return Float(d.low, d.high, d.log) if isinstance(d, FloatDistribution) else Int(d.low, d.high, d.log)

    def value(self, ours: Any) -> Any:
        """The value as Optuna has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[ours]
        assert isinstance(d, FloatDistribution | IntDistribution)
        return ours if self._step is None else min(d.low + self._step * ours, d.high)

    def ours(self, value: Any) -> Any:
        """The value as the optimizer has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return int(d.to_internal_repr(value))
        assert isinstance(d, FloatDistribution | IntDistribution)
        return value if self._step is None else round((value - d.low) / self._step)

    @property
    def _step(self) -> float | None:
        d = self.distribution
        if isinstance(d, FloatDistribution):
            return d.step
        if not isinstance(d, IntDistribution) or d.log:
            return None
        is_exact = d.low >= -EXACT and d.high <= EXACT
        coarser = 1 + (d.high - d.low) // d.step // EXACT
        return None if d.step == 1 and is_exact else d.step * coarser


IN_A_ROW = 20
"""Completed trials in a row that must have a parameter which earlier ones lack. By taste."""

SAME_STEP = 1e-8
"""Difference, in steps, up to which values are the same. Optuna's."""

MOST_DECIDING = 100
"""Largest number of values of an Int in a condition: with more, any two trials have different ones."""

When = Mapping[str, tuple[Any, ...]]
Profile = Mapping[str, Any]
"""Label of each column of a trial, and its value if it can be in a condition."""


@dataclass(frozen=True)
class ConditionalParameter:
    """A parameter with one range, and the values of other columns, by their label, with which it is present."""

    name: str
    distribution: BaseDistribution
    when: When = field(default_factory=dict)

    @property
    def parameter(self) -> Float | Int | Choice:
        """The parameter of the optimizer that it is."""
        return replace(
            Parameter(self.distribution).parameter, when={label: list(options) for label, options in self.when.items()}
        )

    def holds(self, trial: FrozenTrial) -> bool:
        """Return True if a trial has a value of it."""
        if self.name not in trial.params:
            return False
        return bool(self.distribution._contains(self.distribution.to_internal_repr(trial.params[self.name])))

    def applies(self, ours: Mapping[str, Any]) -> bool:
        """Return True if it is present, given the values of the other columns, as the optimizer has them."""
        return all(label in ours and ours[label] in options for label, options in self.when.items())


Columns = dict[str, ConditionalParameter]
"""Columns of a structure by their label, each after those of its condition."""


def params_of(columns: Columns, trial: FrozenTrial) -> dict[str, Any] | None:
    """Params of a trial in these columns, as the optimizer has them; None if one is missing."""
    ours: dict[str, Any] = {}
    for label, column in columns.items():
        if column.applies(ours):
            if not column.holds(trial):
                return None
            ours[label] = Parameter(column.distribution).ours(trial.params[column.name])
    return ours


class Structure:
    """Structure inferred from the completed trials of a study; each trial is read once, for all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._begin()

    def __reduce__(self) -> tuple[type[Structure], tuple[()]]:
        return Structure, ()

    def _begin(self) -> None:
        self._seen: dict[int, FrozenTrial] = {}
        self._ranges: dict[str, list[BaseDistribution]] = {}  # of each name, in the order of appearance
        self._profiles: dict[tuple[Any, ...], Profile] = {}  # of distinct trials
        self._patterns: set[frozenset[str]] = set()  # the labels that trials had together
        self._rows: dict[str, int] = {}  # the last trials in a row that had each name
        self._found: Columns | None = {}

    def __call__(self, trials: Sequence[FrozenTrial]) -> Columns:
        """Return the columns whose condition is known from the completed ones of these trials."""
        complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        with self._lock:
            new = [trial for trial in complete if self._seen.get(trial.number) is not trial]
            is_other = len(complete) - len(new) < len(self._seen)
            if is_other or any(trial.number < max(self._seen, default=0) for trial in new):
                self._begin()  # another study, or a late trial: the order must not depend on the time of reading
                new = complete
            for trial in new:
                self._take(trial)
            if self._found is None:
                self._found = self._explained()
            return self._found

    def _take(self, trial: FrozenTrial) -> None:
        self._seen[trial.number], values = trial, dict[str, Any]()
        for name, distribution in trial.distributions.items():
            ranges = self._ranges.setdefault(name, [])
            if distribution not in ranges:
                ranges.append(distribution)
            value = Parameter(distribution).ours(trial.params[name]) if may_decide(distribution) else None
            values[_label(name, ranges.index(distribution))] = value
        rows = {name: self._rows.get(name, 0) + 1 if name in trial.params else 0 for name in self._ranges}
        if any((count < IN_A_ROW) != (self._rows.get(name, 0) < IN_A_ROW) for name, count in rows.items()):
            self._found = None
        self._rows, profile, pattern = rows, dict(sorted(values.items())), frozenset(values)
        is_new = self._profiles.setdefault(tuple(profile.items()), profile) is profile
        if pattern not in self._patterns or (is_new and len(self._patterns) > 1):
            self._found = None
        self._patterns.add(pattern)

    def _explained(self) -> Columns:
        """Columns with conditions that explain all trials; ranges that nothing explains are united."""
        columns, profiles = self._columns(), list(self._profiles.values())
        placed = explained(columns, profiles)
        wide = {name: union(ranges) for name, ranges in self._ranges.items() if len(ranges) > 1}
        unclear = {column.name for label, column in columns.items() if label not in placed}
        united = {name: domain for name, domain in wide.items() if name in unclear and domain is not None}
        if united:
            profiles = [dict(_united(*entry, columns, united) for entry in profile.items()) for profile in profiles]
            columns = {label: column for label, column in columns.items() if column.name not in united}
            columns |= {name: ConditionalParameter(name, domain) for name, domain in united.items()}
            placed = explained(columns, profiles)
        new = {name: axis for name, axis in columns.items() if name not in placed and not too_many(axis.distribution)}
        several = [name for name, ranges in self._ranges.items() if len(ranges) > 1 and name not in united]
        return placed | {
            label: axis for label, axis in new.items() if self._rows[axis.name] >= IN_A_ROW and axis.name not in several
        }

    def _columns(self) -> Columns:
        """All columns there are, without conditions."""
        return {
            _label(name, number): ConditionalParameter(name, domain)
            for name, ranges in sorted(self._ranges.items())
            for number, domain in enumerate(ranges)
        }


def _label(name: str, number: int) -> str:
    """The name; further ranges of a parameter get a number."""
    return name if number == 0 else f"{name}\n{number}"


def union(ranges: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """Range with all values of these, None if they are choices or of different kinds."""
    first = ranges[0]
    if isinstance(first, CategoricalDistribution) or any(type(each) is not type(first) for each in ranges):
        return None
    numeric: list[Any] = list(ranges)
    low, high, log = min(d.low for d in numeric), max(d.high for d in numeric), numeric[0].log
    if any(each.log != log for each in numeric):
        return None
    if isinstance(first, IntDistribution):
        whole = 1 if log else gcd(*(d.step for d in numeric), *(d.low - low for d in numeric))
        return IntDistribution(low, high, log=log, step=whole)
    step: float | None = numeric[0].step
    steps = [] if step is None else [(d.low - low) / step for d in numeric if d.step == step]
    is_even = len(steps) == len(numeric) and all(abs(each - round(each)) <= SAME_STEP for each in steps)
    return FloatDistribution(low, high, log=log, step=step if is_even else None)


def nearest(its: BaseDistribution, value: float) -> Any:
    """The value of a numeric distribution that is nearest to a number."""
    assert isinstance(its, FloatDistribution | IntDistribution)
    value = min(max(value, its.low), its.high)
    if its.step is not None and not its.log:
        value = min(its.low + its.step * round((value - its.low) / its.step), its.high)
    return int(value) if isinstance(its, IntDistribution) else float(value)


def _united(label: str, value: Any, columns: Columns, united: Mapping[str, BaseDistribution]) -> tuple[str, Any]:
    """Entry of a profile where some parameters have the union of their ranges."""
    name, own = columns[label].name, columns[label].distribution
    if name not in united:
        return label, value
    if not may_decide(united[name]):
        return name, None
    theirs = Parameter(own).value(value) if value is not None else axis_of(parameter(own)).values()[0]
    return name, Parameter(united[name]).ours(theirs)


def too_many(distribution: BaseDistribution) -> bool:
    """Return True if it has more choices than an optimizer takes."""
    return isinstance(distribution, CategoricalDistribution) and len(distribution.choices) > MOST_OPTIONS


def may_decide(distribution: BaseDistribution) -> bool:
    """Return True if a parameter has more than one value, but few enough for a condition."""
    if too_many(distribution):
        return False
    most = MOST_OPTIONS if isinstance(distribution, CategoricalDistribution) else MOST_DECIDING
    return 1 < axis_of(Parameter(distribution).parameter).count <= most


def explained(columns: Columns, profiles: Sequence[Profile]) -> Columns:
    """Columns, which have no conditions yet, with the conditions that explain the profiles of distinct trials.

    Columns that nothing explains are left out.
    """
    presence = {label: sum(label in profile for profile in profiles) for label in columns}
    placed: Columns = {}
    for label in sorted(columns, key=lambda label: -presence[label]):  # a column of a condition is present more often
        above = {other: columns[other] for other in placed if presence[other] > presence[label]}
        when = condition(label, above, profiles)
        if when is not None and not too_many(columns[label].distribution):
            placed[label] = replace(columns[label], when=when)
    return placed


def condition(label: str, above: Columns, profiles: Sequence[Profile]) -> When | None:
    """Values of other columns with which, and only with which, this one is present; None if there are none."""
    present = [profile for profile in profiles if label in profile]
    absent = [profile for profile in profiles if label not in profile]
    deciding = [name for name, column in above.items() if may_decide(column.distribution)]
    options = {key: _allowed(key, above[key], present, absent) for key in deciding if all(key in p for p in present)}
    when: dict[str, tuple[Any, ...]] = {}
    while absent:
        left = {name: [p for p in absent if name in p and p[name] in values] for name, values in options.items()}
        best = min(left, key=lambda name: len(left[name]), default=None)
        if best is None or len(left[best]) == len(absent):
            return None
        when[best], absent = options.pop(best), left[best]
    return when


def _allowed(
    label: str, column: ConditionalParameter, present: Sequence[Profile], absent: Sequence[Profile]
) -> tuple[Any, ...]:
    """Values of a column with which another one was present, or that are nearer to those than to the others."""
    with_it = {profile[label] for profile in present}
    without = {profile[label] for profile in absent if label in profile} - with_it
    if isinstance(column.distribution, CategoricalDistribution):
        return tuple(sorted(with_it))
    low, high = min(with_it), max(with_it)

    def is_nearer(value: float) -> bool:
        distance = min(abs(value - end) for end in (low, high))
        return low <= value <= high or all(abs(value - other) >= distance for other in without)

    return tuple(value for value in axis_of(Parameter(column.distribution).parameter).values() if is_nearer(value))
