"""Receipts as files: ``noregret versus --receipt`` writes one, ``noregret verify`` checks it on another machine.

`noregret.comparison.receipts` has their form.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noregret.comparison import Comparison
from noregret.comparison.receipts import FIELDS, FORM, faults
from noregret.studies.errors import StudyError
from noregret.terminal import printable, say


def read(path: Path) -> dict[str, Any]:
    """The receipt in a file; StudyError if it is none."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or "receipt" not in content:
        raise StudyError(f"{path} is no receipt: 'noregret versus A B --receipt {path.name}' writes one")
    if content["receipt"] != FORM:
        raise StudyError(f"{path} has a receipt of form {content['receipt']!r}, and this version reads form {FORM}")
    if content.keys() != FIELDS or not isinstance(content["commands"], list):
        wrong = ", ".join(sorted(content.keys() ^ FIELDS)) or "commands"
        raise StudyError(f"{path} is no complete receipt: {wrong} must be there as 'versus --receipt' writes it")
    return content


def checked(path: Path) -> dict[str, Any]:
    """The receipt in a file; StudyError unless its statement follows from its runs."""
    content = read(path)
    if wrong := faults(content):
        raise StudyError(f"{path}: the statement does not follow: {'; '.join(wrong)}")
    return content


def values(found: Mapping[str, Any], name: str | None) -> list[float | None]:
    """Values of a command of a receipt in their order, None for failed runs; of A if no command has this name."""
    option = found["commands"].index(name) if name in found["commands"] else 0
    return [value for told, value, *_ in found["comparison"]["runs"] if told == option]


def verify(args: Namespace) -> int:
    """Say of each receipt whether its statement follows from its runs: 0 if so, 1 if not."""
    code = 0
    for path in args.receipts:
        content = read(path)
        wrong = faults(content)
        code = max(code, bool(wrong))
        name = printable(str(path))
        if wrong:
            say(f"{name}: the statement does not follow", *(f"  {printable(each)}" for each in wrong))
        else:
            say(f"{name}: the statement follows: {Comparison.replay(content['comparison'])}")
    return code
