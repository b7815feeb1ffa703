"""Algorithms as JSON: a frozen dataclass is its class's name and its fields, all the way down.

Nothing is unpickled or imported on the way back: a class is looked up among the modules that the program has
imported itself, and must be a dataclass.
"""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def describe(value: Any) -> Any:
    """A JSON-able record of a value made of dataclasses, arrays, numbers, text and tuples of them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, tuple | list):
        return {"tuple": [describe(item) for item in value]}
    if is_dataclass(value) and not isinstance(value, type) and "<locals>" not in type(value).__qualname__:
        content = {field.name: describe(getattr(value, field.name)) for field in fields(value) if field.init}
        return {"class": f"{type(value).__module__}:{type(value).__qualname__}", "fields": content}
    return {"opaque": repr(value)}


def rebuild(record: Any) -> Any:
    """The value that `describe` recorded; ValueError where it holds something that no file can bring back."""
    if not isinstance(record, dict):
        return record
    if "array" in record:
        return np.array(record["array"], dtype=record["dtype"])
    if "tuple" in record:
        return tuple(rebuild(item) for item in record["tuple"])
    if "class" in record:
        return _dataclass(record["class"])(**{name: rebuild(value) for name, value in record["fields"].items()})
    raise ValueError(f"{record['opaque']} cannot be rebuilt from a file: only dataclasses of imported modules can")


def _dataclass(name: str) -> type:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise ValueError(f"{name} is not a dataclass of an imported module: import the module that defines it")
    return found
