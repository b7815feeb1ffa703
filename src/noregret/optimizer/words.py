"""Words: where an optimizer stands, as one line and for a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from noregret.formatting import digits_apart, number
from noregret.optimizer.answers.estimate import Estimate, chance_in_words
from noregret.optimizer.answers.gain import Gain
from noregret.optimizer.checking import Constraints


class Standing(NamedTuple):
    """What an optimizer is, and what it has come to; None for what is not known yet."""

    goal: str
    names: Sequence[Any]
    constraints: Constraints
    values: int
    failures: int
    out: int
    best: Estimate | None
    gain: Gain | None
    half_life: float

    def __str__(self) -> str:
        best = "" if self.best is None else f"; best {_interval(self.best)} at {_shown(self.best.params)}"
        return f"<Optimizer, {self._what()}: {self._counts()}{best}{self._remarks()}>"

    def html(self) -> str:
        """The same as a small table."""
        rows = [("goal", self._what()), ("told", self._counts())]
        if self.best is not None:
            rows.append(("best", _interval(self.best) + self._remarks()))
            rows += [(str(name), _shown(value)) for name, value in _items(self.best.params)]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f'<table class="noregret-optimizer"><caption>Optimizer</caption>{cells}</table>'

    def _what(self) -> str:
        bounds = [f"{name} {c.operator} {_shown(c.bound)}" for name, c in self.constraints.items()]
        shown = [str(name) for name in self.names[:4]] + ["..."] * (len(self.names) > 4)
        return f"{self.goal} over {', '.join(shown)}" + (f" with {', '.join(bounds)}" if bounds else "")

    def _counts(self) -> str:
        others = [f"{self.failures} failed"] * bool(self.failures) + [f"{self.out} out"] * bool(self.out)
        return ", ".join([f"{self.values} value" + "s" * (self.values != 1), *others])

    def _remarks(self) -> str:
        """What there is to say about constraints, the baseline and what changes."""
        remarks = []
        if self.best is not None and self.constraints:
            remarks.append(f"; meets the constraints with a probability of {chance_in_words(self.best.feasible)}")
            remarks += ["; nothing is likely to: this is the likeliest"] * self.best.is_likeliest
        remarks += [f"; {self.gain}"] * bool(self.gain)
        remarks += [f"; {change_in_words(self.half_life)}"] * (self.half_life < math.inf)
        return "".join(remarks)


def change_in_words(half_life: float) -> str:
    """How fast things change.

    >>> change_in_words(61.8)
    'what is best changes: half of what was learnt is out of date after about 62 evaluations'
    """
    return f"what is best changes: half of what was learnt is out of date after about {half_life:.2g} evaluations"


def _interval(estimate: Estimate) -> str:
    if math.isinf(estimate.upper):
        return _shown(estimate.estimate)
    digits = digits_apart(estimate.lower, estimate.upper)
    middle, lower, upper = (number(each, digits) for each in (estimate.estimate, estimate.lower, estimate.upper))
    return f"{middle} (between {lower} and {upper}, at {100 * estimate.level:g}%)"


def _items(params: Any) -> list[tuple[Any, Any]]:
    return list(params.items()) if isinstance(params, Mapping) else list(enumerate(params))


def _shown(value: Any) -> str:
    """A value for people: numbers to four digits."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_shown(each)}" for name, each in value.items()) + "}"
    if isinstance(value, float):
        return number(value)
    return str(value)
