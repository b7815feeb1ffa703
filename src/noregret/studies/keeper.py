"""The keeper: a small process that ends running commands when the process that started them is gone.

A killed process cannot clean up after itself. The keeper does nothing but read a pipe: a line ``7 0`` says that command
7 is about to start, ``7 123`` that it is process 123, ``7 over`` that it has ended, ``.`` that all have. The pipe ends
when its writer does, however that happens. Then the sessions of the commands that have not ended are killed. A command
that was about to start is found by the mark in its environment, where there is a /proc.

Each command begins a session. A process that has begun another one stays: a server that ``prepare`` has restarted.

This file is run by its path, so it imports the standard library only.
"""

from __future__ import annotations

import glob
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress


def kill_sessions(sessions: Collection[int], marks: Collection[bytes] = ()) -> None:
    """Kill the processes of some sessions, in whichever groups, and those with a mark in their environment.

    Without a /proc, it kills the groups of the first processes of these sessions.
    """
    for session in sessions:
        _kill(os.killpg, session)
    for number in range(3):  # processes that were started meanwhile are found the next time
        processes = [
            path for path in glob.glob("/proc/[0-9]*") if _session(path) in sessions or (marks and _has(path, marks))
        ]
        for path in processes:
            _kill(os.kill, int(path.split("/")[2]))
        if marks:  # a child has its mark only after it has begun its program
            time.sleep(0.1)
        elif not processes and number:
            break


def _session(path: str) -> int:
    """Session of a process, 0 if it has ended; zombies are killed already."""
    try:
        with open(f"{path}/stat", encoding="utf-8", errors="replace") as file:
            state, _, _, session = file.read().rpartition(")")[2].split()[:4]
        return 0 if state == "Z" else int(session)
    except (OSError, ValueError):
        return 0


def _has(path: str, marks: Collection[bytes]) -> bool:
    """Return True if the environment of a process has one of these marks."""
    try:
        with open(f"{path}/environ", "rb") as file:
            return any(mark in marks for mark in file.read().split(b"\0"))
    except OSError:
        return False


def _kill(how: Callable[[int, int], None], number: int) -> None:
    with suppress(OSError):
        how(number, signal.SIGKILL)


def main(mark: str) -> None:
    """Read the pipe to its end, and then kill what is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[str, int] = {}
    for line in sys.stdin:
        if line[0] == ".":
            return
        number, process = line.split()
        if process == "over":
            running.pop(number, None)
        else:
            running[number] = int(process)
    starting = [number for number, process in running.items() if not process]
    kill_sessions(set(filter(None, running.values())), [f"{mark}-{number}".encode() for number in starting])


if __name__ == "__main__":
    main(sys.argv[1])
