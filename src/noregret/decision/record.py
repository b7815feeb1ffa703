"""Algorithms as JSON: a frozen dataclass is its class's name and its fields, all the way down.

Arrays are kept beside the JSON. Nothing is unpickled or imported on the way back: a class is looked up among the
modules that the program has imported itself, and must be a dataclass.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

Arrays = dict[str, Any]


def describe(value: Any, arrays: Arrays | None = None) -> Any:
    """A JSON-able record of a value made of dataclasses, arrays, numbers, text and tuples of them.

    Its arrays are added to ``arrays``, under names of their own; without that they are part of the record.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        return _array(value, arrays)
    if isinstance(value, tuple | list):
        return {"tuple": [describe(item, arrays) for item in value]}
    if is_dataclass(value) and not isinstance(value, type) and "<locals>" not in type(value).__qualname__:
        content = {field.name: describe(getattr(value, field.name), arrays) for field in fields(value) if field.init}
        return {"class": f"{type(value).__module__}:{type(value).__qualname__}", "fields": content}
    return {"opaque": repr(value)}


def rebuild(record: Any, arrays: Arrays | None = None) -> Any:
    """The value that `describe` recorded; ValueError where it holds something that no file can bring back."""
    if not isinstance(record, dict):
        return record
    if "array" in record:
        return _stored(record, arrays or {})
    if "tuple" in record:
        return tuple(rebuild(item, arrays) for item in record["tuple"])
    if "class" in record:
        content = {name: rebuild(value, arrays) for name, value in record["fields"].items()}
        return _dataclass(record["class"])(**content)
    raise ValueError(f"{record['opaque']} cannot be rebuilt from a file: only dataclasses of imported modules can")


def nameless(record: Any) -> Any:
    """A record, or a repr, without what differs from process to process or when files move.

    These are the addresses of functions, and the modules of this library's classes.
    """
    if isinstance(record, str):
        return re.sub(r"^noregret\.[\w.]*:", "noregret:", re.sub(r" at 0x[0-9a-fA-F]+", "", record))
    if isinstance(record, dict):
        return {name: nameless(value) for name, value in record.items()}
    return [nameless(value) for value in record] if isinstance(record, list) else record


def _array(value: Any, arrays: Arrays | None) -> dict[str, Any]:
    if arrays is None:
        return {"array": value.tolist(), "dtype": value.dtype.str}
    name = f"algorithm_{len(arrays)}"
    arrays[name] = value
    return {"array": name}


def _stored(record: dict[str, Any], arrays: Arrays) -> Any:
    stored = record["array"]
    if not isinstance(stored, str):
        return np.array(stored, dtype=record["dtype"])
    if stored not in arrays:
        raise ValueError(f"the array {stored} is missing")
    return arrays[stored]


def _dataclass(name: str) -> type:
    module, _, path = name.partition(":")
    for candidate in (module, *_elsewhere(module)):
        found: Any = sys.modules.get(candidate)
        for part in path.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and is_dataclass(found):
            return found
    raise ValueError(f"{name} is not a dataclass of an imported module: import the module that defines it")


def _elsewhere(module: str) -> list[str]:
    """Where a class of this library may have moved to."""
    ours = "noregret."
    return sorted(name for name in sys.modules if name.startswith(ours)) if module.startswith(ours) else []
