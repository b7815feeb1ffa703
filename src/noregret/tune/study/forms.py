"""Parameters as JSON: how a study remembers what it was about, and how people read it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from noregret.optimizer.spaces.conditions import in_words as condition_in_words
from noregret.optimizer.spaces.parameters import Choice, Float, Int

Form = dict[str, Any]


def form(parameter: Float | Int | Choice) -> Form:
    """A parameter as JSON; step and condition only if it has them.

    >>> form(Int(2, 64, step=2, when={"mode": "fast"}))
    {'type': 'int', 'low': 2, 'high': 64, 'log': False, 'step': 2, 'when': {'mode': ['fast']}}
    """
    if isinstance(parameter, Choice):
        found: Form = {"type": "choice", "choices": list(parameter.options)}
    else:
        kind = "float" if isinstance(parameter, Float) else "int"
        found = {"type": kind, "low": parameter.low, "high": parameter.high, "log": parameter.log}
        found |= {} if parameter.step is None else {"step": parameter.step}
    return {**found, "when": dict(parameter.when)} if parameter.when else found


def read_form(stored: Any) -> Any:
    """What was stored about a parameter, in the form of now; earlier versions stored what Python shows of it.

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
    """What is stored about a part of a study, for people.

    >>> in_words(form(Float(0.5, 2, log=True))), in_words(form(Choice(["a", True])))
    ('float from 0.5 to 2, log', "choice of 'a', true")
    """
    if not isinstance(described, Mapping):
        return str(described)
    if described["type"] == "choice":
        said = f"choice of {', '.join(map(_shown, described['choices']))}"
    else:
        said = f"{described['type']} from {described['low']:g} to {described['high']:g}{', log' * described['log']}"
        said += f", step {described['step']:g}" if "step" in described else ""
    return f"{said}, when {condition_in_words(described['when'])}" if "when" in described else said


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
