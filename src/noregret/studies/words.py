"""Numbers, times and params as text for people; foreign text made safe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from noregret.formatting import between as between
from noregret.formatting import number as number
from noregret.optimizer import Estimate, Reading
from noregret.studies.store.records import Record
from noregret.studies.study.study import text
from noregret.terminal import printable

STDERR_LINES = 8
"""Number of lines shown of the standard error of the first failed run."""


def likely(estimate: Estimate, unit: str = "") -> str:
    """The interval in which a value probably lies, in words.

    >>> likely(Estimate({}, 1.2, 1.0, 2.0), " s")
    'probably between 1 and 2 s (95%)'
    """
    if not math.isfinite(estimate.upper - estimate.lower):
        return "too few results for an interval"
    low, high = between(estimate.lower, estimate.upper)
    return f"probably between {low} and {high}{unit} ({percent(estimate.level)})"


def values(found: Mapping[str, float | None]) -> str:
    """The values of several objectives.

    >>> values({"latency": 3.14159, "cost": None})
    'latency 3.142, cost not measured'
    """
    return ", ".join(f"{name} {'not measured' if known is None else number(known)}" for name, known in found.items())


def with_interval(estimate: float, lower: float, upper: float, unit: str = "") -> str:
    """An estimate and the ends of its interval, if they are known.

    >>> with_interval(1.234, 1.0, 2.0, " s"), with_interval(1.234, -math.inf, math.inf)
    ('1.234 s (1 to 2)', '1.234')
    """
    ends = f" ({' to '.join(between(lower, upper))})" if math.isfinite(upper - lower) else ""
    return f"{number(estimate)}{unit}{ends}"


def sentence(said: str) -> str:
    """A statement as a sentence.

    >>> sentence("better by 3%")
    'Better by 3%.'
    """
    return f"{said[0].upper()}{said[1:]}."


def percent(share: float) -> str:
    """A share in percent, whole but for small ones.

    >>> percent(0.95), percent(0.123), percent(0.004), percent(1e-5), percent(1.0)
    ('95%', '12%', '0.4%', '0%', '100%')
    """
    return f"{100 * share:.0f}%" if share >= 0.01 or share < 0.0005 else f"{100 * share:.1f}%"


def reading(told: Reading) -> str:
    """A reading, with the direction of a bound.

    >>> reading(Reading(3.14159, bound="at_least")), reading(Reading(2.0))
    ('> 3.142', '2')
    """
    side = {"at_least": "> ", "at_most": "< "}[told.bound] if told.bound else ""
    return side + number(told.value)


def last_lines(outcome: Record) -> list[str]:
    """The last lines of the error output of a run, as text."""
    return [printable(line.rstrip()) for line in outcome.stderr.strip().splitlines()[-STDERR_LINES:]]


def cut_short(seconds: float, cap: float | None, timeout: float = math.inf) -> str:
    """The outcome of a run that was stopped by the cap of its study, or by its time-out if that is shorter.

    >>> cut_short(3.14159, 2.0), cut_short(10.0, 1.5)
    ('stopped after 3.142 s: slower than twice the best', 'stopped after 10 s: slower than 1.5 times the best')
    """
    if seconds >= timeout:
        return f"stopped after {number(seconds)} s (timeout): at least that slow"
    times = "" if cap in (None, 1.0) else "twice " if cap == 2 else f"{cap:g} times "
    return f"stopped after {number(seconds)} s: slower than {times}the best"


def params(values: Mapping[str, Any], separator: str = ", ") -> str:
    """Params in one line.

    >>> params({"rate": 0.123456789, "mode": "wal"})
    'rate=0.1235, mode=wal'
    """
    return separator.join(f"{name}={value(option)}" for name, option in values.items())


def cells(values: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Params in the columns of a table, empty where one does not apply.

    >>> cells({"depth": 3}, ["depth", "rate"])
    ['3', '']
    """
    return [value(values[name]) if name in values else "" for name in names]


def value(found: Any) -> str:
    """One parameter's value.

    >>> value(0.123456), value(True), value("")
    ('0.1235', 'true', '(empty)')
    """
    return number(found) if isinstance(found, float) else printable(text(found)) or "(empty)"


def html(anything: str) -> str:
    r"""Foreign text as HTML that shows it, line by line.

    >>> html("<b>\x1b[1m")
    '&lt;b&gt;\\x1b[1m'
    """
    return escape(printable(anything, keep="\n\t"))


def duration(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration(0.0123), duration(12.34), duration(75), duration(7300)
    ('12.3 ms', '12.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"
