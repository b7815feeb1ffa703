"""The keeper: a small process that ends running commands when the process that started them is gone.

A process that is killed cannot clean up after itself. So each call keeps one more process that does nothing but read
a pipe: a line ``+123`` says that process group 123 has started, ``-123`` that it is over, ``.`` that all are. The pipe
ends when the caller does, however that came about, and then the groups that are left are killed. A command that had
started but was not announced yet is found by a mark in its environment, where there is a /proc.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import Any, Self

PROGRAM = """
import glob, os, signal, sys, time

def kill(how, number):
    try:
        how(number, signal.SIGKILL)
    except OSError:
        pass

def marked(path):
    try:
        with open(path, "rb") as file:
            return sys.argv[1].encode() in file.read()
    except OSError:
        return False

signal.signal(signal.SIGINT, signal.SIG_IGN)
groups = set()
for line in sys.stdin:
    if line[0] == ".":
        sys.exit()
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    kill(os.killpg, group)
for _ in range(3):
    for path in filter(marked, glob.glob("/proc/[0-9]*/environ")):
        kill(os.kill, int(path.split("/")[2]))
    time.sleep(0.1)
"""


class Keeper:
    """Knows the commands that must not outlive this process."""

    def __init__(self) -> None:
        self._mark = f"NOREGRET_MARK={secrets.token_hex(16)}"
        self._lock, self._groups = Lock(), set[int]()
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, self._mark]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        """Let the keeper go; after an exception, it ends what may be left first."""
        assert self._process.stdin
        if kind is None:
            self._say(".\n")
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def environment(self) -> dict[str, str]:
        """The environment that commands must be started with."""
        name, _, value = self._mark.partition("=")
        return {**os.environ, name: value}

    def add(self, group: int) -> None:
        """A process group has started."""
        self._groups.add(group)
        self._say(f"+{group}\n")

    def remove(self, group: int) -> None:
        """A process group is over."""
        self._groups.discard(group)
        self._say(f"-{group}\n")

    def _say(self, line: str) -> None:
        with self._lock:
            try:
                self._write(line)
            except BrokenPipeError:  # somebody has killed the keeper
                self._process.wait()
                self._process = self._started()
                with suppress(BrokenPipeError):
                    self._write("".join(f"+{group}\n" for group in list(self._groups)) + line)

    def _write(self, text: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()
