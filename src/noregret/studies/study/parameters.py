"""Parameters as plain JSON or TOML, and back: in study files, in stored studies, over HTTP, and in messages."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from noregret.optimizer import Choice, Float, Int, ProblemDescription, checked_constraints, condition_in_words

Form = dict[str, Any]
OPTIONS = tuple(its.name for its in fields(ProblemDescription))
"""Names of the options of a problem."""


def form(its: Float | Int | Choice, words: Sequence[Sequence[str]] | None = None) -> Form:
    """Parameter as JSON; step and condition only if it has them. A flag has ``words``, of off and of on.

    >>> form(Int(2, 64, step=2, when={"mode": "fast"}))
    {'type': 'int', 'low': 2, 'high': 64, 'log': False, 'step': 2, 'when': {'mode': ['fast']}}
    """
    if words is not None:
        entry: Form = {"type": "flag", "off": list(words[0]), "on": list(words[1])}
    elif isinstance(its, Choice):
        entry = {"type": "choice", "choices": list(its.options)}
    else:
        entry = {"type": "float" if isinstance(its, Float) else "int", "low": its.low, "high": its.high, "log": its.log}
        entry |= {} if its.step is None else {"step": its.step}
    return {**entry, "when": dict(its.when)} if its.when else entry


def parameter(described: Mapping[str, Any]) -> Float | Int | Choice:
    """Parameter that a form describes; step, log and condition are optional. ValueError if it is invalid.

    Flags and booleans are choices of False and True.

    >>> parameter({"type": "int", "low": 2, "high": 64, "step": 2})
    Int(low=2, high=64, log=False, step=2)
    """
    when = described.get("when")
    if described["type"] in ("choice", "flag", "bool"):
        return Choice(described.get("choices", [False, True]), when=when)
    kind = Float if described["type"] == "float" else Int
    log, step = described.get("log", False), described.get("step")
    return kind(described["low"], described["high"], log=log, step=step, when=when)


SIDES = {"<=": "max", ">=": "min"}
"""Name of a bound on a constraint as JSON, by its sign."""


def problem_form(problem: ProblemDescription) -> Form:
    """Problem as JSON, as the service takes it; options that are not given are left out.

    >>> problem_form(ProblemDescription(space={"x": Float(0, 1)}, constraints={"memory": ("<=", 512)}))["constraints"]
    {'memory': {'max': 512.0}}
    """
    space, usual = problem.space, ProblemDescription(space=None).options
    options = {
        name: option
        for name, option in problem.options.items()
        if not (option is None or (isinstance(option, str | int | float) and option == usual[name]))
        and not (isinstance(option, Mapping | list | tuple) and not option)
    }
    for name in ("space", "context", "fidelity"):
        if isinstance(options.get(name), Mapping):
            options[name] = {each: form(parameter) for each, parameter in options[name].items()}
    if not isinstance(space, Mapping):
        options["table"] = [dict(row) for row in options.pop("space")]
    if problem.goals:
        options |= {"goals": dict(problem.goals), "goal": None}
    if problem.constraints:
        limits = checked_constraints(problem.constraints)
        options["constraints"] = {name: {SIDES[limit.operator]: limit.bound} for name, limit in limits.items()}
    return options


def problem_in(described: Mapping[str, Any]) -> ProblemDescription:
    """Problem that a form describes, as `problem_form` makes it; other entries are left out."""
    options: dict[str, Any] = {name: part for name, part in described.items() if name in OPTIONS and part is not None}
    for name in ("space", "context", "fidelity"):
        if name in options:
            options[name] = {each: parameter(description) for each, description in options[name].items()}
    options["constraints"] = {
        name: next((sign, description[side]) for sign, side in SIDES.items() if description.get(side) is not None)
        for name, description in options.get("constraints", {}).items()
    }
    options.setdefault("space", described.get("table"))
    return ProblemDescription(**options)


def read_form(stored: Any) -> Any:
    """Stored description of a parameter in the current form; earlier versions stored its repr.

    >>> read_form("Choice(options=('a', 2, False))")
    {'type': 'choice', 'choices': ['a', 2, False]}
    """
    if not isinstance(stored, str) or not stored.startswith(("Float(", "Int(", "Choice(")):
        return stored
    call = ast.parse(stored, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    kinds: dict[str, Any] = {"Float": Float, "Int": Int, "Choice": Choice}
    return form(kinds[call.func.id](**values))


def in_words(described: Any) -> str:
    """Stored description of a part of a study, for people.

    >>> in_words(form(Float(0.5, 2, log=True))), in_words(form(Choice(["a", True])))
    ('float from 0.5 to 2, log', "choice of 'a', true")
    """
    if not isinstance(described, Mapping):
        return str(described)
    if described["type"] == "flag":
        said = " or ".join(shlex.join(described[key]) or "nothing" for key in ("off", "on"))
        said = f"flag for {said}"
    elif described["type"] == "choice":
        said = f"choice of {', '.join(map(_shown, described['choices']))}"
    else:
        said = f"{described['type']} from {described['low']:g} to {described['high']:g}{', log' * described['log']}"
        said += f", step {described['step']:g}" if "step" in described else ""
    return f"{said}, when {condition_in_words(described['when'])}" if "when" in described else said


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
