"""For mkdocstrings: the tables in docstrings, which are reStructuredText, as Markdown."""

import re
from typing import Any

import griffe

RULE = re.compile(r"^=+(\s+=+)+$")


class Tables(griffe.Extension):
    """Turn the simple tables of every docstring into Markdown ones."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite an object's docstring in place."""
        if obj.docstring:
            obj.docstring.value = converted(obj.docstring.value)


def converted(text: str) -> str:
    """The text with its simple tables as Markdown tables."""
    lines, found = text.split("\n"), []
    while lines:
        line = lines.pop(0)
        if not RULE.match(line.strip()):
            found.append(line)
            continue
        starts = [match.start() for match in re.finditer("=+", line)]
        rows: list[list[str]] = []
        rules = 1
        while lines and rules < 3:
            line = lines.pop(0)
            if RULE.match(line.strip()):
                rules += 1
            else:
                _add(rows, [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)])
        header, *body = rows
        found += [_row(header), _row(["---"] * len(header)), *map(_row, body)]
    return "\n".join(found)


def _add(rows: list[list[str]], cells: list[str]) -> None:
    """Add a row, or continue the last one if the first cell is empty."""
    if cells[0] or not rows:
        rows.append(cells)
    else:
        rows[-1] = [f"{before} {more}".strip() for before, more in zip(rows[-1], cells, strict=True)]


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
