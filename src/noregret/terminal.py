"""Standard output and error: escaping of control characters, and closed pipes."""

from __future__ import annotations

import logging
import os
import sys
import unicodedata
from contextlib import suppress


def printable(text: str, keep: str = "") -> str:
    r"""Text with every invisible character escaped, except for those in ``keep``.

    These are control characters, which move the cursor, set the title or fill the clipboard; marks that change the
    direction of writing; line ends; and bytes of file names that are not valid text.

    >>> print(printable("a\x1b]0;title\x07 \u202egnp.exe b\nc"))
    a\x1b]0;title\x07 \u202egnp.exe b\nc
    """
    if text.isascii() and text.isprintable():
        return text

    def hidden(character: str) -> bool:
        kind = unicodedata.category(character)
        return (kind.startswith("C") or kind in ("Zl", "Zp")) and character not in keep

    return "".join(each.encode("unicode_escape").decode() if hidden(each) else each for each in text)


class Refused(Exception):
    """Error for a command that cannot run; the message gives the reason."""


class OutputLost(Exception):
    """Error for a closed standard output: its reader is gone, or its disk is full. The cause is the OSError."""


def say(*lines: str) -> None:
    """Print lines to standard output and flush; OutputLost if that fails."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error.strerror) from error


def show(content: bytes) -> None:
    """Write bytes to standard output and flush; OutputLost if that fails."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except OSError as error:
        raise OutputLost(error.strerror) from error


def drop_output() -> None:
    """Discard everything that is printed to standard output from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print to standard error, and ignore errors."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class TerminalHandler(logging.Handler):
    """Handler that prints the library's log records to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(f"noregret: {printable(self.format(record))}")


def show_log() -> None:
    """Print the library's log, which is silent by default."""
    log = logging.getLogger("noregret")
    log.setLevel(logging.DEBUG)
    if not any(isinstance(handler, TerminalHandler) for handler in log.handlers):
        log.addHandler(TerminalHandler())
