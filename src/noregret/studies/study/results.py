"""Readers of the result of a finished run.

Regular expressions are matched in a process of their own, since some never end and could not be interrupted otherwise.
Python's matching holds the interpreter, so a slow match would stop every thread, and Ctrl-C too. The process ends
itself when its time is up, also if its parent is gone.
"""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from noregret.gp.posterior import HUGE
from noregret.optimizer import Goal, Reading

NUMBER = re.compile(
    r"""(?<![\w.])[-+−﹣－–]?(?:
        0[xob][0-9a-f_]+
        | (?:\d+(?:[,_'’\u00a0\u2009\u202f]\d+)*\.?\d*(?:[,_'’]\d+)* | \.\d+)(?:[ed][-+]?\d+)?
        | (?:nan|inf(?:inity)?)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number as programs print it. Spellings that mean another number than their digits read one by one are matched
whole, so that `usable` can refuse them: 0x1F, −5 (which is no hyphen), 1_000, 1'000, 1,000, 1.5D+03."""

BEFORE = re.compile(r"""(?:\A|[\s=(\[{"'|,;$€£]|(?<!\d):|(?<!\w)[A-Za-z_]\w*:)\Z""")
"""Text allowed before a last number. The 30 of 5:30, the 2 of 1/2 and the 7 of model-7 have something else there."""
UNIT = r"(?:%|[nuµμm]?s|sec|min|h|[kKMGT]?i?B|[kMG]?Hz|x)?(?:/[a-z]+)?"
AFTER = re.compile(rf"""{UNIT}(?:\s|\Z|[,;|)\]}}"']|[.:!?]+(?:\s|\Z))""")
"""Text allowed after a last number. The 1.5 of 1.5.2 and the 12 of 12abc have something else there."""
THOUSANDS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})* \Z")
"""Text before the last three digits of 1 000, which are ambiguous: part of a number, or a number of their own."""


SECONDS = 5
"""The time a match may take; usual ones take milliseconds."""
PROGRAM = """
import json, re, signal, sys
signal.alarm(int(sys.argv[1]))
regex, text, which = json.load(sys.stdin)
found, every = None, []
for found in re.finditer(regex, text, re.MULTILINE):
    group = "value" if "value" in found.re.groupindex else min(found.re.groups, 1)
    if which == "steps":
        every.append([found["step"] or "", found[group] or ""])
    if which == "first":
        break
if which == "steps":
    json.dump(every, sys.stdout)
elif found:
    json.dump([found[0], found[group] or "", *found.span(group)], sys.stdout)
"""


class NoResult(ValueError):
    """The run gave no result that can be used; the message says why."""


class NotMeasured(NoResult):
    """The run says that it has not measured this number."""


class Output(Protocol):
    """A finished run, as far as reading its result needs it."""

    @property
    def stdout(self) -> str:
        """Standard output of the command; the end of it if it is long."""

    @property
    def seconds(self) -> float:
        """Duration of the command."""

    @property
    def user_seconds(self) -> float:
        """Processor time of the command and of the processes it waited for, outside of the kernel."""

    @property
    def max_rss(self) -> float | None:
        """Peak memory of the largest of these processes, in bytes; None if unknown."""


class Result(Protocol):
    """A way to read the result of a run."""

    def read(self, output: Output) -> float:
        """The result; NoResult if there is none."""


@dataclass(frozen=True)
class LastNumber:
    """The last number on standard output, which must be clear: see `BEFORE`, `AFTER` and `THOUSANDS`.

    Digits inside of a name, such as p99 or x86_64, are no number.
    """

    def read(self, output: Output) -> float:
        text = output.stdout
        numbers = deque(NUMBER.finditer(text), maxlen=1)
        if not numbers:
            raise NoResult(f"no number on standard output, which was {_shown(text)}")
        last = numbers[0]
        before, after = text[max(last.start() - 100, 0) : last.start()], text[last.end() : last.end() + 100]
        is_group = re.match(r"\d{3}(?!\d)", last[0]) and THOUSANDS.search(before)
        if is_group or not BEFORE.search(before) or not AFTER.match(after):
            line = before.rpartition("\n")[2] + last[0] + after.partition("\n")[0]
            raise NoResult(f"the last number is not clear in {_shown(line)}: print it as plainly as -1234.5 or 1.2e-3")
        return usable(last[0])


@dataclass(frozen=True)
class WallTime:
    """Duration of the command, in seconds."""

    def read(self, output: Output) -> float:
        return output.seconds


@dataclass(frozen=True)
class UserTime:
    """Processor time of the command and of the processes it waited for, in seconds, without time in the kernel."""

    def read(self, output: Output) -> float:
        return output.user_seconds


@dataclass(frozen=True)
class MaxRss:
    """Peak resident memory of the command or of a process it waited for, whichever is larger, in bytes."""

    def read(self, output: Output) -> float:
        if output.max_rss is None:
            raise NoResult("the peak memory is unknown: the process that reads it was killed")
        return float(output.max_rss)


TIMES = WallTime, UserTime
"""Results that are times, in seconds, and vary with the load of the machine."""
FROM_ZERO = WallTime, UserTime, MaxRss
"""Results that cannot be negative."""


def possible(result: Result) -> tuple[float, None] | None:
    """Least and largest value that a result can have, None where nothing is known."""
    return (0.0, None) if isinstance(result, FROM_ZERO) else None


@dataclass(frozen=True)
class JsonField:
    """A field of the last line of standard output that is a JSON object, or of all of it; dots lead inside."""

    field: str

    def read(self, output: Output) -> float:
        value = self.found(output)
        if isinstance(value, bool) or not isinstance(value, int | float):
            kind = NotMeasured if value is None else NoResult
            raise kind(f"field {self.field!r} must be a number, got {json.dumps(value)[:60]}")
        return usable(value)

    def found(self, output: Output) -> Any:
        """The value of the field; NoResult if there is none."""
        value: Any = _last_object(output.stdout)
        for part in self.field.split("."):
            if not isinstance(value, dict) or part not in value:
                raise NoResult(
                    f"no field {self.field!r} in the JSON on standard output, which was {_shown(output.stdout)}"
                )
            value = value[part]
        return value


@dataclass(frozen=True)
class JsonQuantile(JsonField):
    """A quantile of the samples of a run: a list of numbers in a field, as `JsonField` finds it."""

    quantile: float

    def read(self, output: Output) -> float:
        samples = self.found(output)
        if not isinstance(samples, list) or not samples or any(isinstance(each, bool | list) for each in samples):
            raise NoResult(f"field {self.field!r} must be a list of numbers, got {json.dumps(samples)[:60]}")
        return float(np.quantile([usable(each) for each in samples], self.quantile))


def sought(goal: str, result: Result) -> tuple[Goal, Result]:
    """Goal and result, where "p99" stands for a low 0.99-quantile of samples; ValueError for a result without samples.

    >>> sought("p99", JsonField("latencies"))
    ('minimize', JsonQuantile(field='latencies', quantile=0.99))
    """
    if goal in ("minimize", "maximize"):
        return ("minimize" if goal == "minimize" else "maximize"), result
    if type(result) is not JsonField:
        raise ValueError(f"{goal!r} is a quantile of samples: give a JSON field that is a list of numbers as result")
    return "minimize", JsonQuantile(result.field, float(goal[1:]) / 100)


@dataclass(frozen=True)
class Pattern:
    """The group ``value``, else the first group, else all of the last match of a regular expression."""

    regex: str

    def read(self, output: Output) -> float:
        last = search_in_time(self.regex, output.stdout, last=True)
        if last is None:
            text = _shown(output.stdout)
            raise NoResult(f"the regular expression {self.regex!r} does not match standard output, which was {text}")
        _check_whole(output.stdout, last.start, last.end)
        return usable(last.value)

    @property
    def has_steps(self) -> bool:
        """True if there is a group ``step``: each match is the result of that step."""
        return "step" in re.compile(self.regex).groupindex

    def steps(self, text: str) -> list[Reading]:
        """The results with their steps in a part of the standard output; those that are no numbers are left out."""
        readings = []
        with suppress(TooSlow):
            for pair in _matched(self.regex, text, "steps", SECONDS) or ():
                with suppress(NoResult):
                    step, value = map(usable, pair)
                    readings.append(Reading(value, step=step))
        return readings


@dataclass(frozen=True)
class JsonSteps(JsonField):
    """A field of each line of standard output that is a JSON object, with the field that holds its step."""

    step: str

    def steps(self, text: str) -> list[Reading]:
        """The results with their steps in a part of the standard output, as `Pattern.steps`."""
        readings = []
        for line in text.splitlines():
            with suppress(NoResult):
                step, value = (JsonField(field).read(_Line(line)) for field in (self.step, self.field))
                readings.append(Reading(value, step=step))
        return readings


@dataclass(frozen=True)
class _Line:
    """A line of output, as a run that has printed nothing else."""

    stdout: str
    seconds: float = 0.0
    user_seconds: float = 0.0
    max_rss: float | None = None


Steps = JsonSteps | Pattern
"""Results that may be printed several times in a run, each with the step that it belongs to."""


def search_in_time(regex: str, text: str, *, last: bool = False) -> TextMatch | None:
    """The first or last match of a regular expression; NoResult if that takes too long."""
    try:
        return search(regex, text, last=last)
    except TooSlow as error:
        raise NoResult(str(error)) from None


def usable(number: Any) -> float:
    """The number as a float; NoResult unless it is a finite one of a sane size.

    >>> usable("12.5")
    12.5
    """
    try:
        if isinstance(number, str) and "_" in number:  # Python would leave underscores out
            raise ValueError
        value = float(number)
    except ValueError:
        comma = ": print it without commas" if "," in number else ""
        plain = ": print it as plainly as -1234.5 or 1.2e-3" if NUMBER.fullmatch(number) and not comma else ""
        raise NoResult(f"the result must be a number, got {number!r}{comma}{plain}") from None
    except OverflowError:
        value = math.inf
    if not abs(value) <= HUGE:  # programs print larger numbers for 'no result'
        raise NoResult(f"the result must be a finite number between -1e100 and 1e100, got {str(number)[:40]}")
    return value


def _check_whole(text: str, start: int, end: int) -> None:
    """Refuse a group that is a part of a number that cannot be read: the 1 of 1_000, the 5 of −5."""
    for number in NUMBER.finditer(text, max(start - 100, 0), end + 100):
        if number.start() < end and start < number.end():
            usable(number[0])


def _last_object(stdout: str) -> Any:
    for candidate in (stdout, *reversed(stdout.splitlines())):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise NoResult(f"no JSON object on standard output, which was {_shown(stdout)}")


def _shown(stdout: str) -> str:
    end = stdout.strip()[-60:]
    return repr(end) if end else "empty"


class TooSlow(ValueError):
    """The match was not found in time."""


class TextMatch(NamedTuple):
    """A match, and its group ``value``, else its first group, else all of it."""

    text: str
    value: str
    start: int
    """Position of the value in the text."""
    end: int


def search(regex: str, text: str, *, last: bool = False, seconds: int = SECONDS) -> TextMatch | None:
    r"""The first match, or the last one; TooSlow if it takes longer than ``seconds``.

    >>> search(r"score: (\d+)", "score: 1\nscore: 23", last=True)
    TextMatch(text='score: 23', value='23', start=16, end=18)
    """
    match = _matched(regex, text, "last" if last else "first", seconds)
    return TextMatch(*match) if match else None


def _matched(regex: str, text: str, which: Literal["first", "last", "steps"], seconds: int) -> list[Any] | None:
    """Answer of `PROGRAM`; TooSlow if it takes longer than ``seconds``."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(seconds)]
    question = json.dumps([regex, text, which])
    done = subprocess.run(command, input=question, capture_output=True, text=True, start_new_session=True)
    if done.returncode == -signal.SIGALRM:
        raise TooSlow(f"the regular expression {regex!r} takes longer than {seconds} s on this output: simplify it")
    if done.returncode:
        raise RuntimeError(f"matching {regex!r} failed: {done.stderr.strip()[-500:]}")
    return list(json.loads(done.stdout)) if done.stdout else None
