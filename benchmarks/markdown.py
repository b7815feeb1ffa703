"""Tables and paragraphs in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A head and its rows, ending in a newline."""
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


def wrapped(sentences: str) -> str:
    """A paragraph on lines of at most 112 characters, ending in a newline."""
    return textwrap.fill(sentences, 112, break_long_words=False, break_on_hyphens=False) + "\n"
