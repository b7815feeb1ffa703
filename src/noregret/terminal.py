"""What is shown on a terminal: text of others as text, never as orders to the terminal."""

from __future__ import annotations

import unicodedata


def printable(text: str, keep: str = "") -> str:
    r"""Text in which every character that is not meant to be seen is spelled out, but for those in ``keep``.

    These are control characters, which move the cursor, set the title or fill the clipboard; marks that turn the
    direction of writing; line ends; and bytes of file names that are no text.

    >>> print(printable("a\x1b]0;title\x07 \u202egnp.exe b\nc"))
    a\x1b]0;title\x07 \u202egnp.exe b\nc
    """
    return "".join(_spelled_out(character) if _hidden(character, keep) else character for character in text)


def _hidden(character: str, keep: str) -> bool:
    kind = unicodedata.category(character)
    return (kind.startswith("C") or kind in ("Zl", "Zp")) and character not in keep


def _spelled_out(character: str) -> str:
    return character.encode("unicode_escape").decode()
