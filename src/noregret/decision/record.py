"""Algorithms as JSON: a frozen dataclass is its class's name and its fields, all the way down.

Arrays are kept beside the JSON. Nothing is unpickled or imported on the way back. Only dataclasses of this library and
classes that the caller names are built, and all of them are looked up before the first is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
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
        return {"class": _name(type(value)), "fields": content}
    return {"opaque": repr(value)}


def rebuild(record: Any, arrays: Arrays | None = None, trusted: Iterable[type] = ()) -> Any:
    """Return the value that `describe` recorded.

    ValueError, before anything is built, where the record names a class that is neither this library's nor among the
    ``trusted``, or holds something that no file can bring back.
    """
    given = {_name(kind): kind for kind in trusted}
    classes = {name: given.get(name) or _own(name) for name in _classes(record)}
    return _built(record, arrays or {}, classes)


def _built(record: Any, arrays: Arrays, classes: dict[str, type]) -> Any:
    if not isinstance(record, dict):
        return record
    if "array" in record:
        return _stored(record, arrays)
    if "tuple" in record:
        return tuple(_built(item, arrays, classes) for item in record["tuple"])
    content = {name: _built(value, arrays, classes) for name, value in record["fields"].items()}
    return classes[record["class"]](**content)


def _classes(record: Any) -> Iterator[str]:
    """The names of all classes in a record."""
    if not isinstance(record, dict) or "array" in record:
        return
    if "opaque" in record:
        raise ValueError(f"{record['opaque']} cannot be rebuilt from a file: only dataclasses can")
    if "class" in record:
        yield record["class"]
    for item in record["tuple"] if "tuple" in record else record["fields"].values():
        yield from _classes(item)


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


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _own(name: str) -> type:
    """The dataclass of this library with this name, wherever in the library it is now."""
    module, _, path = name.partition(":")
    ours = sorted(loaded for loaded in sys.modules if loaded.startswith("noregret."))
    for candidate in (module, *ours) if module.startswith("noregret.") else ():
        found: Any = sys.modules.get(candidate)
        for part in path.split("."):
            found = getattr(found, part, None)
        if isinstance(found, type) and is_dataclass(found) and found.__module__.startswith("noregret."):
            return found
    raise ValueError(
        f"{name} is not a dataclass of noregret, and a file builds no others: if you trust it, pass "
        f"Policy.load(path, trusted=[{path.rpartition('.')[2]}])"
    )
