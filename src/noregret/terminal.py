"""Standard output and error: text of others as text, not as orders to the terminal; readers that have gone."""

from __future__ import annotations

import logging
import os
import sys
import unicodedata
from contextlib import suppress


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


class OutputLost(Exception):
    """Standard output takes nothing more: its reader has gone, or its disk is full. The cause is the OSError."""


def say(*lines: str) -> None:
    """Print lines to standard output at once; OutputLost if it does not take them."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error.strerror) from error


def show(content: bytes) -> None:
    """Write bytes to standard output at once; OutputLost if it does not take them."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error.strerror) from error


def drop_output() -> None:
    """Let everything that is still printed to standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print to standard error; if nobody can be told, nobody is."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class Log(logging.Handler):
    """Prints what the library logs to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"noregret: {printable(self.format(record))}")


def show_log() -> None:
    """Show what the library logs, which is quiet by default."""
    log = logging.getLogger("noregret")
    log.setLevel(logging.DEBUG)
    if not any(isinstance(handler, Log) for handler in log.handlers):
        log.addHandler(Log())
