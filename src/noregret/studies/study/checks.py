"""Single values of a study file: checks, which return the value or raise ValueError with what must hold, and types.

The types carry the checks and a JSON Schema: pydantic reads both, and nothing here needs it.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
import tomllib
from typing import Annotated, Any, get_args

from noregret.optimizer import (
    VALUE,
    Check,
    Goal,
    checked_confidence,
    checked_possible,
    checked_safe_level,
    checked_tolerance,
    checked_when,
    without_name,
)
from noregret.studies.study.results import JsonField, JsonSteps, LastNumber, MaxRss, Pattern, Result, UserTime, WallTime

Command = tuple[str | tuple[str, ...], ...]
"""Words, and groups of words that are dropped where a parameter in them does not apply."""
FlagWords = tuple[tuple[str, ...], tuple[str, ...]]
"""The words of a flag that is off, and of one that is on."""
PLAIN: dict[str, Result] = {
    "last-number": LastNumber(),
    "wall-time": WallTime(),
    "user-time": UserTime(),
    "max-rss": MaxRss(),
}
"""Readers of results by the words for them."""
WORD = r"[A-Za-z_]\w*"
"""Pattern of a parameter's name."""
FLAG = r"[A-Za-z_][\w-]*"
"""Pattern of a flag's name, which may have hyphens."""


def words(value: Any) -> str:
    """Return text that is not empty and has no zero bytes."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"must be text, got {value!r}")
    return value


def title(value: Any) -> str:
    """Return a name of at most 200 printable characters."""
    if len(words(value)) > 200 or not value.isprintable():
        raise ValueError(f"must be at most 200 printable characters, got {value!r}")
    return str(value)


def storage(value: Any) -> str:
    """Return the text of a storage URL, which is checked when it is opened."""
    try:
        return words(value)
    except ValueError:
        shown = without_password(repr(value))
        raise ValueError(f"must be a URL such as 'sqlite:///study.db', got {shown}") from None


def table(value: Any) -> dict[str, Any]:
    """Return a table of the file as a dict."""
    if not isinstance(value, dict):
        raise ValueError(f"must be a table, got {value!r}")
    return value


def boolean(value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, got {value!r}")
    return value


def place(value: Any) -> str:
    """Return the text of a place, empty for true."""
    if value is True:
        return ""
    try:
        return words(value)
    except ValueError:
        raise ValueError(f"must be text that says where, or true for the default, got {value!r}") from None


def number(value: Any) -> float:
    """Return a finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        plain = ": write it without quotes and unit (times are in seconds)" if isinstance(value, str) else ""
        raise ValueError(f"must be a finite number, got {repr(value)[:60]}{plain}")
    return float(value)


def end(value: Any) -> int | float:
    """Return an end of a range: a finite number, whole if it is written so."""
    number(value)
    return value  # type: ignore[no-any-return]


def seconds(value: Any) -> float:
    """Return a number of seconds above 0."""
    if not number(value) > 0:
        raise ValueError(f"must be a number of seconds above 0, got {value!r}")
    return float(value)


def cap(value: Any) -> float:
    """Return a factor on the time of the best setting, at least 1."""
    if not number(value) >= 1:
        raise ValueError(f"must be a number from 1, such as 2.0 for twice the time of the best setting, got {value!r}")
    return float(value)


def within(value: Any) -> float | str:
    """Return a tolerance: a number above 0, or a part of the best estimate like "2%"."""
    without_name("within", checked_tolerance)(value)
    return value if isinstance(value, str) else float(value)


confidence = without_name("confidence", checked_confidence)
safe = without_name("safe", checked_safe_level)
possible = without_name("possible", lambda value: checked_possible(value, None)[VALUE])


def whole(least: int, most: int) -> Check[int]:
    """Return the check of whole numbers from ``least`` to ``most``."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}, got {value!r}")
        return value

    return Check(check, {"type": "integer", "minimum": least, "maximum": most})


def repeats(value: Any) -> int | tuple[int, int]:
    """Return a number of runs, or the fewest and the most of them."""
    number = whole(1, 1000).check
    if not isinstance(value, list):
        return number(value)
    if len(value) != 2 or number(value[0]) >= number(value[1]):
        raise ValueError(f"must be a number of runs, or the fewest and the most such as [1, 10], got {value!r}")
    return value[0], value[1]


def one_of(*options: Any) -> Check[Any]:
    """Return the check of a value that is one of ``options``."""

    def check(value: Any) -> Any:
        if value not in options:
            raise ValueError(f"must be one of {', '.join(map(repr, options))}, got {value!r}")
        return value

    return Check(check, {"enum": list(options)})


def _goal(value: Any) -> str:
    is_tail = isinstance(value, str) and re.fullmatch(r"p\d{1,2}(\.\d+)?", value) and float(value[1:]) > 0
    if not is_tail and value not in get_args(Goal):
        raise ValueError(f"must be 'minimize', 'maximize', or a quantile to minimize such as 'p99', got {value!r}")
    return str(value)


GOAL = Check(_goal, {"anyOf": [{"enum": list(get_args(Goal))}, {"type": "string", "pattern": r"^p\d{1,2}(\.\d+)?$"}]})


def command(value: Any, to_use_a_shell: str = "write ['sh', '-c', '...'] to use a shell") -> Command:
    """Return an argument list that starts with a program; lists inside of it are groups of words.

    Text is split into words as a shell does it, but no shell runs it: if it needs one, the error says how to use one.

    >>> command("./measure --size {size} 'two words'")
    ('./measure', '--size', '{size}', 'two words')
    """
    if isinstance(value, str):
        value = _split(value, to_use_a_shell)
    if not isinstance(value, list) or not all(_is_word(part) or _is_group(part) for part in value):
        raise ValueError(
            "must be text such as './measure --size {size}', or a list of words, and of lists of words that are "
            "dropped where a parameter in them does not apply, such as ['./measure', ['--depth', '{depth}']], "
            f"got {value!r}"
        )
    if not value or not value[0] or not isinstance(value[0], str):
        raise ValueError(f"must start with the program to run, got {value!r}")
    return tuple(part if isinstance(part, str) else tuple(part) for part in value)


def _split(text: str, to_use_a_shell: str) -> list[str]:
    """The words of a text by the rules of shells; what else a shell would do with it is refused."""
    if "\0" in text:
        raise ValueError(f"must have no zero bytes in it, got {text!r}")
    reader = shlex.shlex(text, posix=False, punctuation_chars=True)  # keeps quotes, so a quoted | is no operator
    reader.whitespace_split, reader.commenters = True, ""
    try:
        operators = [word for word in reader if set(word) <= set("();<>|&")]
        pieces = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"must be words as in a shell, got {text!r}: {error}") from None
    if operators:
        raise ValueError(f"no shell runs it, so {operators[0]!r} would be a word: {to_use_a_shell}, or quote it")
    return pieces


def flag_words(value: Any) -> tuple[str, ...]:
    """Return the words of a flag: none for empty text, those of a text as a shell splits it, or those of a list."""
    if isinstance(value, str) and "\0" not in value:
        return tuple(shlex.split(value))
    if isinstance(value, list) and all(map(_is_word, value)):
        return tuple(value)
    raise ValueError(f"must be words such as '-funroll-loops', a list of words, or '' for none, got {value!r}")


def flag(value: Any) -> FlagWords:
    """Return the words of a flag that is off and of one that is on."""
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"must be [off, on], such as ['', '-funroll-loops'], got {value!r}")
    off, on = map(flag_words, value)
    if off == on:
        raise ValueError(f"must be [off, on] with different words, got {value!r}")
    return off, on


def environment(value: Any) -> dict[str, str]:
    """Return environment variables by name, as text with placeholders."""
    variables = {}
    for name, given in table(value).items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ValueError(f"must have names of variables such as THREADS, got {name!r}")
        if not isinstance(given, str | int | float) or "\0" in text(given):
            raise ValueError(f"{name} must be text, such as '{{threads}}', or a number, got {given!r}")
        variables[name] = text(given)
    return variables


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_group(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_word, value))


def require(value: Any) -> tuple[str, ...]:
    """Return the expressions of ``[[require]]`` tables; their content is checked with the parameters."""
    tables = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) and list(each) == ["expression"] for each in tables):
        raise ValueError(f"must be [[require]] tables with expression = 'a <= b' each, got {value!r}")
    return tuple(words(each["expression"]) for each in tables)


def regex(value: Any) -> str:
    """Return a regular expression that compiles."""
    try:
        re.compile(words(value))
    except re.error as error:
        raise ValueError(f"must be a regular expression, got {value!r}: {error}") from error
    return str(value)


def exit_codes(value: Any) -> tuple[int, ...]:
    """Return a list of exit codes that is not empty."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be a list of exit codes, such as [0], got {value!r}")
    return tuple(map(whole(0, 255).check, value))


def choices(value: Any) -> list[Any]:
    """Return choices that differ from each other, also as words of a command."""
    if not isinstance(value, list) or not value or not all(isinstance(v, str | int | float | bool) for v in value):
        raise ValueError(f"must be a list of texts, numbers, or true and false, got {value!r}")
    shown = list(map(text, value))
    if any("\0" in word for word in shown) or not all(math.isfinite(v) for v in value if isinstance(v, float)):
        raise ValueError(f"must have no nan, inf or zero bytes in it, got {value!r}")
    for i, word in enumerate(shown):
        if word in shown[:i]:
            raise ValueError(f"must differ from each other on the command line, but {word!r} comes twice: drop one")
    return value


def result(value: Any) -> Result:
    """Return the reader of results that the value describes."""
    if isinstance(value, str) and value in PLAIN:
        return PLAIN[value]
    if isinstance(value, dict) and list(value) == ["json"]:
        return JsonField(words(value["json"]))
    if isinstance(value, dict) and value.keys() == {"json", "step"}:
        return JsonSteps(words(value["json"]), words(value["step"]))
    if isinstance(value, dict) and list(value) == ["regex"]:
        return Pattern(regex(value["regex"]))
    named = ", ".join(map(repr, PLAIN))
    raise ValueError(f"must be {named}, {{json = 'field'}} or {{regex = '...'}}, got {value!r}")


def typed_result(text: str) -> Result:
    """Return the reader of results that a text describes, as it is typed: wall-time, json=field or {json = "field"}.

    >>> typed_result("json=latency.p99"), typed_result('{json = "latency.p99"}')
    (JsonField(field='latency.p99'), JsonField(field='latency.p99'))
    """
    kind, equals, rest = text.partition("=")
    if equals and kind in ("json", "regex"):
        return result({kind: rest})
    try:
        return result(tomllib.loads(f"result = {text}")["result"] if text.startswith("{") else text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"cannot be read: {error}") from None


def named(what: str, example: str, pattern: str = WORD) -> Check[str]:
    """Return the check of a name; ``what`` is empty where a key says it."""

    def check(name: Any) -> str:
        if not isinstance(name, str) or not re.fullmatch(pattern, name):
            raise ValueError(f"{what} must be a word such as {example}, got {name!r}".lstrip())
        return str(name)

    return Check(check, {"type": "string", "pattern": f"^{pattern}$"})


def conditions(value: Any) -> dict[str, list[Any]] | None:
    """Return the values that other parameters must have."""
    for wanted in table(value).values():
        if not all(isinstance(each, str | int | float) for each in (wanted if isinstance(wanted, list) else [wanted])):
            raise ValueError(f"must have a value or a list of values for each parameter, got {wanted!r}")
    return without_name("when", checked_when)(value)


ANY: dict[str, Any] = {"type": ["boolean", "number", "string"]}
WORDS: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
VALUES: dict[str, Any] = {"anyOf": [ANY, {"type": "array", "items": ANY, "minItems": 1}]}
PAIR: dict[str, Any] = {"type": "array", "minItems": 2, "maxItems": 2}
EXPRESSION: dict[str, Any] = {
    "type": "object",
    "properties": {"expression": {"type": "string"}},
    "required": ["expression"],
}
FIELDS: dict[str, Any] = {name: {"type": "string"} for name in ("json", "step", "regex")}
TABLE: dict[str, Any] = {"type": "object", "properties": FIELDS, "additionalProperties": False, "minProperties": 1}

Text = Annotated[str, Check(words)]
Title = Annotated[str, Check(title)]
Storage = Annotated[str, Check(storage)]
Regex = Annotated[str, Check(regex, {"type": "string", "format": "regex"})]
Place = Annotated[str, Check(place, {"type": ["string", "boolean"]})]
Count = Annotated[int, whole(1, 10**7)]
End = Annotated[int | float, Check(end, {"type": "number"})]
Seconds = Annotated[float, Check(seconds, {"type": "number", "exclusiveMinimum": 0})]
Cap = Annotated[float, Check(cap, {"type": "number", "minimum": 1})]
Within = Annotated[float | str, Check(within, {"type": ["number", "string"], "pattern": "%$", "exclusiveMinimum": 0})]
Confidence = Annotated[float, Check(confidence, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})]
SafeLevel = Annotated[float, Check(safe, {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1})]
Possible = Annotated[tuple[float, float], Check(possible, {**PAIR, "items": {"type": "number"}})]
ExitCodes = Annotated[tuple[int, ...], Check(exit_codes)]
Repeats = Annotated[int | tuple[int, int], Check(repeats, {"type": ["integer", "array"], "minimum": 1})]
Words = Annotated[Command, Check(command, {"type": ["string", "array"], "items": WORDS, "minItems": 1})]
Flag = Annotated[FlagWords, Check(flag, {**PAIR, "items": WORDS})]
FlagState = Annotated[tuple[str, ...], Check(flag_words, WORDS)]
Environment = Annotated[dict[str, str], Check(environment, {"type": "object", "additionalProperties": ANY})]
Conditions = Annotated[dict[str, Any] | None, Check(conditions, {"type": "object", "additionalProperties": VALUES})]
Require = Annotated[tuple[str, ...], Check(require, {"type": "array", "items": EXPRESSION})]
Choices = Annotated[list[Any], Check(choices, {"type": "array", "items": ANY, "minItems": 1, "uniqueItems": True})]
Reader = Annotated[Result, Check(result, {"anyOf": [{"enum": list(PLAIN)}, TABLE]})]
"""Types of values in forms: what they become, their check, and their JSON Schema if it says more than the type."""


def without_password(url: str) -> str:
    """A storage URL that can be shown, also if it is misspelt.

    >>> without_password("postgresql://me:secret@host/db?sslpassword=secret")
    'postgresql://me:***@host/db?sslpassword=***'
    """
    shown = re.sub(r"^(\W*+(?:[\w+.]+:/+)?+[^:@]*:).*@", r"\1***@", url)
    return re.sub(r"([?&]\w*password=)[^&]*", r"\1***", shown)


def text(value: Any) -> str:
    """A value as the command gets it: numbers so that they read back exactly, true and false in small letters.

    >>> text(0.1), text(3), text(True), text("a b")
    ('0.1', '3', 'true', 'a b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else str(value)
