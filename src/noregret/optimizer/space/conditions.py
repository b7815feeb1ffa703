"""Conditions: which parameters apply, given the values of others.

A parameter with ``when={"model": ["forest"]}`` applies where the parameter above it, ``model``, applies and has one of
these values. What must hold in all is a `Requirement`: a set of values for each parameter above it, however far up.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from noregret.optimizer.space.parameters import Parameter, axis_of

Requirement = Mapping[str, frozenset[Hashable]]
"""The keys that the values of other parameters must have, by name; empty for a parameter that always applies."""

MOST_ABOVE = 100
"""Parameters that one may depend on, through those above it too: the work for a chain grows with its square."""


def requirements(parameters: Mapping[str, Parameter]) -> dict[str, Requirement]:
    """Requirement of each parameter; ValueError where its condition makes no sense, or rests on too many others."""
    found: dict[str, Requirement] = {}

    def required(name: str, below: tuple[str, ...]) -> Requirement:
        if name in below:
            circle = " -> ".join((*below[below.index(name) :], name))
            raise ValueError(f"the conditions of parameters must not go in a circle, got {circle}: drop one of them")
        if len(below) > MOST_ABOVE:
            raise ValueError(_too_deep(below[0]))
        if name not in found:
            needed: dict[str, frozenset[Hashable]] = {}
            for parent, values in (parameters[name].when or {}).items():
                keys = _keys(name, parent, values, parameters)
                for above, its in ((parent, keys), *required(parent, (*below, name)).items()):
                    needed[above] = needed.get(above, its) & its
            if len(needed) > MOST_ABOVE:
                raise ValueError(_too_deep(name))
            found[name] = needed
            _check_possible(name, needed)
        return found[name]

    return {name: required(name, ()) for name in parameters}


def _too_deep(name: str) -> str:
    return f"parameter {name!r} must depend on at most {MOST_ABOVE} others: give it fewer conditions, or shorter chains"


def _keys(name: str, parent: str, values: Sequence[Any], parameters: Mapping[str, Parameter]) -> frozenset[Hashable]:
    """The keys of the values that a condition names."""
    if parent not in parameters:
        raise ValueError(f"parameter {name!r} has a condition on {parent!r}, which is none of {list(parameters)}")
    axis = axis_of(parameters[parent])
    if math.isinf(axis.count):
        raise ValueError(
            f"parameter {name!r} has a condition on {parent!r}, which must have finitely many values: give it a step"
        )
    try:
        return frozenset(axis.key(axis.checked(parent, value)) for value in values)
    except ValueError as error:
        raise ValueError(
            f"parameter {name!r} has a condition on a value that {parent!r} cannot take ({error}); "
            "several values are given as a list"
        ) from None


def _check_possible(name: str, needed: Requirement) -> None:
    """Raise ValueError if a parameter can never apply."""
    for above, keys in needed.items():
        if not keys:
            raise ValueError(
                f"parameter {name!r} can never apply: its condition and those of the parameters above it ask for "
                f"different values of {above!r}"
            )


def applies(requirement: Requirement, keys: Mapping[str, Hashable]) -> bool:
    """Return True if a parameter applies, given the keys of the values that there are."""
    return all(above in keys and keys[above] in allowed for above, allowed in requirement.items())


def compatible(first: Requirement, second: Requirement) -> bool:
    """Return True if two parameters may apply together."""
    return all(allowed & second.get(above, allowed) for above, allowed in first.items())


def settings(parameters: Mapping[str, Parameter], required: Mapping[str, Requirement]) -> Iterator[dict[str, Any]]:
    """Every legal setting of parameters with finitely many values, once; who is above another is among them."""
    names = sorted(parameters, key=lambda name: len(required[name]))  # a parameter comes after those above it

    def completed(setting: dict[str, Any], keys: dict[str, Hashable], rest: Sequence[str]) -> Iterator[dict[str, Any]]:
        if not rest:
            yield setting
        elif not applies(required[rest[0]], keys):
            yield from completed(setting, keys, rest[1:])
        else:
            name, axis = rest[0], axis_of(parameters[rest[0]])
            for value in axis.values():
                yield from completed({**setting, name: value}, {**keys, name: axis.key(value)}, rest[1:])

    return completed({}, {}, names)


def in_words(when: Mapping[str, Sequence[Any]]) -> str:
    """A condition as people say it.

    >>> in_words({"model": ["forest"], "depth": [1, 2]})
    "model is 'forest' and depth is 1 or 2"
    """
    return " and ".join(f"{name} is {' or '.join(map(repr, values))}" for name, values in when.items())
