"""Who holds a trial, so that others on the same machine see at once when that process is gone."""

from __future__ import annotations

import os
from pathlib import Path
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
