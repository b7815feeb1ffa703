"""Tables of a study file, read key by key: every error names the file, the line and the key."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from noregret.tune.study import checks
from noregret.tune.study.study import StudyError

T = TypeVar("T")

TEXT = re.compile(r"""("{3}(?:\\.|[^\\])*?"{3}|'{3}.*?'{3})|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""", re.DOTALL)
"""Matches the texts and the comments of a TOML file."""


@dataclass
class Section:
    """A table of the file, whose keys are taken one by one."""

    path: Path
    source: str
    name: str
    content: dict[str, Any]
    _taken: list[str] = field(default_factory=list)

    def get(self, key: str, check: Callable[[Any], T], *default: T) -> T:
        """The checked value of a key, which must be there unless it has a default."""
        self._taken.append(key)
        if key in self.content:
            try:
                return check(self.content[key])
            except ValueError as error:
                self.refuse(key, str(error))
        if not default:
            for typo in get_close_matches(key, self.content.keys() - set(self._taken), 1):
                self.refuse(typo, f"unknown key: did you mean {key!r}?")
            self.refuse("", f"{key!r} is missing")
        return default[0]

    def section(self, key: str) -> Section:
        """A table inside this one, empty if it is not there."""
        return Section(self.path, self.source, f"{self.name}.{key}".lstrip("."), self.get(key, checks.table, {}))

    def nothing_else(self) -> None:
        """Refuse keys that nobody has taken."""
        for key in self.content:
            if key not in self._taken:
                close = get_close_matches(key, self._taken, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(self._taken))}"
                self.refuse(key, f"unknown key: {hint}")

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise StudyError that names the place of a key, or of the table itself."""
        line = line_of(self.source, [*filter(None, self.name.split(".")), *filter(None, [key])])
        place = f"{self.path}:{line}" if line else str(self.path)
        table = f"[{self.name}] " if self.name else ""
        raise StudyError(f"{place}: {table}{key}{': ' if key else ''}{reason}")


def line_of(source: str, key: list[str]) -> int | None:
    r"""The line where a key or table stands, else the one its table starts in; None if neither is found.

    >>> line_of('[parameters.x]\ntype = "int"\nlow = 3', ["parameters", "x", "low"])
    3
    """
    table: list[str] = []
    lines: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(TEXT.sub(_emptied, source).split("\n"), 1):
        found: list[str] = []
        if header := re.match(r"\s*\[+([^\]]+)\]", line):
            found = table = _parts(header[1])
        elif entry := re.match(r"\s*([\w.\"' -]+?)\s*=", line):
            found = [*table, *_parts(entry[1])]
        for length in range(1, len(found) + 1):
            lines.setdefault(tuple(found[:length]), number)
    places = (lines.get(tuple(key[:length])) for length in range(len(key), 0, -1))
    return next((number for number in places if number), None)


def _emptied(text: re.Match[str]) -> str:
    """Text of several lines without what stands in it."""
    return "\n" * text[0].count("\n") if text[0][:3] in ('"""', "'''") else text[0]


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
