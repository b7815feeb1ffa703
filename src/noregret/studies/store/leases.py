"""Leases on trials: the process that holds a trial, and detection of processes that have stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any


def gone(holder: Mapping[str, Any]) -> bool:
    """Return True if a process has certainly ended; nothing is certain about one on another machine."""
    if not holder or holder.get("machine") != _machine():
        return False
    return _began(int(holder["pid"])) != str(holder["began"])


def holder(token: str) -> dict[str, Any]:
    """Identity of this process with a unique token, as a trial has it; a heartbeat writes the same with another time.

    The process itself is left out where it cannot be known (without Linux's /proc).
    """
    began = _began(os.getpid())
    process = {"machine": _machine(), "pid": os.getpid(), "began": began} if began else {}
    return {**process, "token": token, "beat": monotonic()}


class LeaseMonitor:
    """Time since the last heartbeat of each trial's holder, by the clock of this process.

    Clocks of other machines are never read: a heartbeat is a value that changes. Between two calls no more than a third
    of the lease counts: in a longer pause this process, its machine or the server was stopped, and missed heartbeats.
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._looked, self._lock = monotonic(), Lock()
        self._heard: dict[int, tuple[Any, float]] = {}

    def abandoned(self, holders: Mapping[int, Any]) -> list[int]:
        """Take in the holder of each trial; return the trials whose holder has ended, or is silent for over a lease."""
        with self._lock:
            passed, self._looked = min(monotonic() - self._looked, self._lease / 3), monotonic()
            before, self._heard = self._heard, {}
            for number, who in holders.items():
                last, silence = before.get(number, (None, 0.0))
                self._heard[number] = who, silence + passed if who == last else 0.0
            return [number for number, (who, silence) in self._heard.items() if gone(who) or silence > self._lease]


def _machine() -> str:
    """Identity of the boot of this machine, and of the namespace of its process ids (containers have their own)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _began(pid: int) -> str:
    """Start time of a process, empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
