"""Who holds a trial, so that others see when nobody works on it any more: at once where they share the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

HOLDER = "noregret:holder"
"""The attribute of a trial that names the process that runs it."""


def myself() -> dict[str, Any]:
    """What tells this process from all others; empty where that cannot be known (without Linux's /proc)."""
    began = _began(os.getpid())
    return {"machine": _machine(), "pid": os.getpid(), "began": began} if began else {}


def gone(holder: dict[str, Any]) -> bool:
    """Whether a process has certainly ended; about one on another machine nothing is certain."""
    if not holder or holder.get("machine") != _machine():
        return False
    return _began(int(holder["pid"])) != str(holder["began"])


def holder(token: str) -> dict[str, Any]:
    """Who holds a trial, by a word that nobody else has; a heartbeat writes the same with another time."""
    return {**myself(), "token": token, "beat": monotonic()}


class LeaseMonitor:
    """How long nothing was heard of those who hold trials, by the watch of who listens.

    Clocks of others are never read: a heartbeat is something that changes. Between two looks no more than a third of
    the lease counts, since who could not look, because the server or the machine was stopped, has learned nothing.
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._looked, self._lock = monotonic(), Lock()
        self._heard: dict[int, tuple[Any, float]] = {}

    def abandoned(self, holders: Mapping[int, Any]) -> list[int]:
        """Look at who holds which trial; the trials whose process has ended, or is silent for longer than the lease."""
        with self._lock:
            passed, self._looked = min(monotonic() - self._looked, self._lease / 3), monotonic()
            before, self._heard = self._heard, {}
            for number, who in holders.items():
                last, silence = before.get(number, (None, 0.0))
                self._heard[number] = who, silence + passed if who == last else 0.0
            return [number for number, (who, silence) in self._heard.items() if gone(who) or silence > self._lease]


def _machine() -> str:
    """Which boot of which machine, and where its processes are numbered (containers count for themselves)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _began(pid: int) -> str:
    """When a process started, empty if it runs no more."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
