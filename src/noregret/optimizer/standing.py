"""Standing: the state of an optimizer in one line, or as a small HTML table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from noregret.formatting import digits_apart, number, shown
from noregret.optimizer.answers.estimate import Estimate, Gain, chance_in_words
from noregret.optimizer.measures import Constraints


class Shift(NamedTuple):
    """Change of the machine: the values of the first ``evaluations`` were larger by ``by``, in the units of the values.

    >>> print(Shift(7, -378.2))
    the machine changed: the first 7 evaluations gave values about 380 lower, and are corrected by that
    """

    evaluations: int
    by: float

    def __str__(self) -> str:
        size = f"{number(abs(self.by), 2)} {'higher' if self.by > 0 else 'lower'}"
        which = f"the first {self.evaluations} evaluations gave values about {size}"
        return f"the machine changed: {which}, and are corrected by that"


class Doubt(NamedTuple):
    """A trial's value that lies absurdly far from what all others say: a slip of the pen, a stall, or a narrow peak.

    >>> print(Doubt(14, 8.0, 30.2))
    trial 14 (8) is 30 standard deviations from what its neighbours say: is it right?
    """

    trial: int
    value: float
    deviations: float

    def __str__(self) -> str:
        away = f"{number(self.deviations, 2)} standard deviations from what its neighbours say"
        return f"trial {self.trial} ({shown(self.value)}) is {away}: is it right?"


class Standing(NamedTuple):
    """State of an optimizer; None for what is not known yet."""

    goal: str
    names: Sequence[Any]
    constraints: Constraints
    values: int
    failures: int
    out: int
    best: Estimate | None
    gain: Gain | None
    half_life: float
    bounds: int
    front: Sequence[Any] | None = None
    """Estimates of the best compromises between several objectives."""
    shift: Shift | None = None
    doubts: Sequence[Doubt] = ()

    def __str__(self) -> str:
        best = "" if self.best is None else f"; best {_interval(self.best)} at {shown(self.best.params)}"
        front = "" if self.front is None else f"; {_settings(self.front)} on the front"
        return f"<Optimizer, {self._what()}: {self._counts()}{best}{front}{self._remarks()}>"

    def html(self) -> str:
        """Small HTML table."""
        rows = [("goal", self._what()), ("told", self._counts())]
        if self.best is not None:
            rows.append(("best", _interval(self.best) + self._remarks()))
            params = self.best.params
            items = params.items() if isinstance(params, Mapping) else enumerate(params)
            rows += [(str(name), shown(value)) for name, value in items]
        if self.front is not None:
            rows.append(("front", _settings(self.front) + self._remarks()))
            rows += [(", ".join(f"{n} {row.in_words(n)}" for n in row.values), shown(row.params)) for row in self.front]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f'<table class="noregret-optimizer"><caption>Optimizer</caption>{cells}</table>'

    def _what(self) -> str:
        bounds = [f"{name} {c.operator} {shown(c.bound)}" for name, c in self.constraints.items()]
        names = [str(name) for name in self.names[:4]] + ["..."] * (len(self.names) > 4)
        return f"{self.goal} over {', '.join(names)}" + (f" with {', '.join(bounds)}" if bounds else "")

    def _counts(self) -> str:
        others = [f"{self.bounds} bound" + "s" * (self.bounds != 1)] * bool(self.bounds)
        others += [f"{self.failures} failed"] * bool(self.failures) + [f"{self.out} out"] * bool(self.out)
        return ", ".join([f"{self.values} value" + "s" * (self.values != 1), *others])

    def _remarks(self) -> str:
        """Remarks about constraints, the baseline and drift."""
        remarks = []
        if self.best is not None and self.constraints:
            remarks.append(f"; meets the constraints with a probability of {chance_in_words(self.best.feasible)}")
            remarks += ["; nothing is likely to: this is the likeliest"] * self.best.is_likeliest
        remarks += [f"; {self.gain}"] * bool(self.gain)
        remarks += [f"; {change_in_words(self.half_life)}"] * (self.half_life < math.inf)
        remarks += [f"; {self.shift}"] if self.shift else []
        remarks += [f"; {doubt} if not: opt.correct({doubt.trial}, value)" for doubt in self.doubts]
        return "".join(remarks)


def change_in_words(half_life: float) -> str:
    """Drift in words.

    >>> change_in_words(61.8)
    'what is best changes: half of what was learnt is out of date after about 62 evaluations'
    """
    return f"what is best changes: half of what was learnt is out of date after about {half_life:.2g} evaluations"


def _interval(estimate: Estimate) -> str:
    if math.isinf(estimate.upper):
        return shown(estimate.estimate)
    digits = digits_apart(estimate.lower, estimate.upper)
    middle, lower, upper = (number(each, digits) for each in (estimate.estimate, estimate.lower, estimate.upper))
    return f"{middle} (between {lower} and {upper}, at {100 * estimate.level:g}%)"


def _settings(front: Sequence[Any]) -> str:
    return f"{len(front)} setting" + "s" * (len(front) != 1)
