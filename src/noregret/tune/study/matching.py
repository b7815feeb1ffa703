"""Regular expressions, matched in a process of their own: some take for ever, and nothing else could end them.

Python's matching holds the interpreter, so that a slow one would stop every thread, and Ctrl-C too. The process ends
itself when its time is up, also if the one that started it is gone.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import NamedTuple

SECONDS = 5
"""The time a match may take; usual ones take milliseconds."""

PROGRAM = """
import json, re, signal, sys
signal.alarm(int(sys.argv[1]))
regex, text, last = json.load(sys.stdin)
found = None
for found in re.finditer(regex, text, re.MULTILINE):
    if not last:
        break
if found:
    group = "value" if "value" in found.re.groupindex else min(found.re.groups, 1)
    json.dump([found[0], found[group] or "", *found.span(group)], sys.stdout)
"""


class TooSlow(ValueError):
    """The match was not found in time."""


class Found(NamedTuple):
    """A match, and its group ``value``, else its first group, else all of it."""

    text: str
    value: str
    start: int
    """Where the value starts in the text."""
    end: int


def search(regex: str, text: str, *, last: bool = False, seconds: int = SECONDS) -> Found | None:
    r"""The first match, or the last one; TooSlow if it takes longer than so many seconds.

    >>> search(r"score: (\d+)", "score: 1\nscore: 23", last=True)
    Found(text='score: 23', value='23', start=16, end=18)
    """
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(seconds)]
    question = json.dumps([regex, text, last])
    done = subprocess.run(command, input=question, capture_output=True, text=True, start_new_session=True)
    if done.returncode == -signal.SIGALRM:
        raise TooSlow(f"the regular expression {regex!r} takes longer than {seconds} s on this output: simplify it")
    if done.returncode:
        raise RuntimeError(f"matching {regex!r} failed: {done.stderr.strip()[-500:]}")
    return Found(*json.loads(done.stdout)) if done.stdout else None
