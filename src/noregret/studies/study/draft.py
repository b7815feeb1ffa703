"""Study files drafted from a command line whose placeholders have values, as ``./bench -t {threads:1..64:log}``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from noregret.optimizer import axis_of
from noregret.studies.study import checks
from noregret.studies.study.parameters import parameter
from noregret.studies.study.study import StudyError

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]\w*)(?::([^{}]*))?\}")
"""``{name}``, ``{name:values}``, or a doubled brace, which stands for itself."""
RANGE = re.compile(r"(.+?)\.\.(.+?)(:log)?")
ADVICE = "write {{{0}:1..64}}, {{{0}:0.001..1:log}} or {{{0}:a|b|c}} where it is first used"
LEAST_ROUNDS = 40
"""Evaluations that a draft plans at least."""
ROUNDS_EACH = 10
"""Evaluations that it plans for each parameter, if that is more."""

Ask = Callable[[str, str, Callable[[str], Any]], str]
"""Function from a question, its default answer and a check, which raises ValueError, to the answer."""


@dataclass(frozen=True)
class Draft:
    """A command with plain placeholders, and the text of the table of each parameter."""

    command: tuple[str, ...]
    tables: Mapping[str, Mapping[str, Any]]

    @property
    def rounds(self) -> int:
        """The number of evaluations that is suggested."""
        return max(LEAST_ROUNDS, ROUNDS_EACH * len(self.tables))


def draft(words: Sequence[str], ask: Callable[[str], str] | None = None) -> Draft:
    """Draft of a study for a command; ``ask`` is called for the values of a parameter that has none.

    >>> draft(["./bench", "-t{threads:1..64:log}", "{mode:fast|safe}", "{{raw}}"]).command
    ('./bench', '-t{threads}', '{mode}', '{{raw}}')
    """
    tables: dict[str, dict[str, Any]] = {}
    missing: list[str] = []

    def plain(found: re.Match[str]) -> str:
        name, values = found[1], found[2]
        if name and values is not None:
            if name in tables:
                raise StudyError(f"{{{name}:{values}}}: {name} has values already: write {{{name}}} the second time")
            tables[name] = table(name, values)
        elif name and name not in tables:
            missing.append(name)
        return f"{{{name}}}" if name else found[0]

    command = tuple(PLACEHOLDER.sub(plain, word) for word in words)
    for name in dict.fromkeys(missing):
        if name in tables:  # it has values further on
            continue
        if ask is None:
            raise StudyError(f"{{{name}}} has no values: {ADVICE.format(name)}")
        tables[name] = table(name, ask(name))
    if not tables:
        raise StudyError(f"the command has no parameter: {ADVICE.format('threads')}")
    return Draft(command, tables)


def table(name: str, values: str) -> dict[str, Any]:
    """Keys of a parameter's table: an int if both ends are written as integers, a float, a choice, or a flag.

    >>> table("threads", "1..64:log")
    {'type': 'int', 'low': 1, 'high': 64, 'log': True}
    >>> table("rate", "1e-3..1"), table("level", "1,2,4")
    ({'type': 'float', 'low': 0.001, 'high': 1.0}, {'type': 'choice', 'choices': [1, 2, 4]})
    >>> table("unroll", "|-funroll-loops")
    {'type': 'flag', 'off': '', 'on': '-funroll-loops'}
    """
    if match := RANGE.fullmatch(values):
        ends = _numbers([match[1], match[2]])
        if ends is None:
            raise StudyError(f"{{{name}:{values}}}: the ends of a range must be numbers, as in {{{name}:1..64}}")
        is_whole = all(isinstance(end, int) for end in ends)
        low, high = ends if is_whole else map(float, ends)
        kind = "int" if is_whole else "float"
        return {"type": kind, "low": low, "high": high, **({"log": True} if match[3] else {})}
    options = re.split(r"[|,]", values)
    if len(options) == 2 and any(options) and not all(options):
        return {"type": "flag", "off": options[0], "on": options[1]}
    if len(options) < 2 or not all(options):
        raise StudyError(f"{{{name}:{values}}}: {name} must have a range or at least two values: {ADVICE.format(name)}")
    return {"type": "choice", "choices": _numbers(options) or options}


def _numbers(texts: Sequence[str]) -> list[int | float] | None:
    """The numbers that are written, None if one of them is none."""
    try:
        return [_number(text) for text in texts]
    except ValueError:
        return None


def _number(text: str) -> int | float:
    """The number that is written; ValueError if it is none, or not finite."""
    try:
        number = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, got {text!r}")
    return number


def answers(drafted: Draft, given: Mapping[str, str], ask: Ask) -> dict[str, str]:
    """Goal, result, budget and baseline of a study, as its file has them; an empty baseline for none.

    ``ask`` is called for those that are not given. StudyError if a given one cannot be used.
    """

    def answer(key: str, question: str, default: str, check: Callable[[str], Any]) -> str:
        if key not in given:
            return ask(question, default, check)
        try:
            check(given[key])
        except ValueError as error:
            raise StudyError(f"--{key}: {error}") from None
        return given[key]

    example = " ".join(f"{name}=..." for name in drafted.tables)
    goal = answer("goal", "goal: minimize or maximize", "minimize", checks.one_of("minimize", "maximize").check)
    kinds = "last-number, wall-time, user-time, max-rss, json=FIELD or regex=PATTERN"
    result = answer("result", f"result: {kinds}", "last-number", _result)
    rounds = answer(
        "evaluations",
        "evaluations in all",
        str(drafted.rounds),
        lambda text: checks.whole(1, 10**7).check(_number(text)),
    )
    usual = answer(
        "baseline", f"the setting in use now, as {example} (empty for none)", "", lambda text: _baseline(text, drafted)
    )
    answered = {
        "goal": toml(goal),
        "result": _result(result),
        "evaluations": rounds,
        "baseline": _baseline(usual, drafted),
    }
    return answered | {"prepare": given.get("prepare", "")}


def _result(text: str) -> str:
    """A result as the file has it; ValueError if it is none."""
    checks.typed_result(text)
    kind, equals, rest = text.partition("=")
    if text.startswith("{"):
        return text
    return f"{{{kind} = {toml(rest)}}}" if equals else toml(text)


def _baseline(text: str, found: Draft) -> str:
    """Lines of the baseline's table; ValueError if it is no setting."""
    values = {}
    for part in re.split(r"[,\s]+", text.strip()) if text.strip() else []:
        name, equals, value = part.partition("=")
        if not equals or name not in found.tables:
            raise ValueError(f"must have the form {' '.join(f'{n}=...' for n in found.tables)}, got {part!r}")
        keys = found.tables[name]
        if keys["type"] == "flag":
            option: Any = {"true": True, "false": False}.get(value, value)
        else:
            option = value if isinstance(keys.get("choices", [0])[0], str) else _number(value)
        axis_of(parameter(keys)).checked(name, option)
        values[name] = option
    if values and len(values) < len(found.tables):
        raise ValueError(f"must have a value of each parameter, got none of {next(iter(found.tables.keys() - values))}")
    return "".join(f"{name} = {toml(value)}\n" for name, value in values.items())


def text(found: Draft, said: Mapping[str, str], tune: str) -> str:
    """The study file; ``tune`` is the command that runs it."""
    command = found.command[0] if len(found.command) == 1 else list(found.command)  # text is split by the study
    parts = [
        f"# Run it:   {tune}\n# 'noregret init' without a command writes a file with all keys and comments.\n",
        f"goal = {said['goal']}\ncommand = {toml(command)}\nresult = {said['result']}\n"
        + (f"prepare = {toml(said['prepare'])}\n" if said["prepare"] else ""),
        f"[budget]\nevaluations = {said['evaluations']}\n",
    ]
    if said["baseline"]:
        parts.append(f"[baseline]\n{said['baseline']}")
    else:
        firsts = {name: _first(keys) for name, keys in found.tables.items()}
        lines = [f"# {name} = {toml(value)}" for name, value in firsts.items()]
        parts.append("\n".join(["# The setting in use now, to compare the best one with:", "# [baseline]", *lines, ""]))
    for name, keys in found.tables.items():
        parts.append("".join([f"[parameters.{name}]\n", *(f"{key} = {toml(value)}\n" for key, value in keys.items())]))
    return "\n".join(parts)


def _first(keys: Mapping[str, Any]) -> Any:
    """The first value of a parameter; that of a flag adds no word."""
    if keys["type"] == "flag":
        return not keys["on"]
    return keys["choices"][0] if "choices" in keys else keys["low"]


def toml(value: Any) -> str:
    r"""A value as TOML.

    >>> print(toml(["a\tb", 1, 0.001, True]))
    ["a\tb", 1, 0.001, true]
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
