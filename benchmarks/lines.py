"""Finished runs in a file of JSON lines, to which benchmarks add one at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import provenance


def stored(path: Path) -> list[dict[str, Any]]:
    """Finished runs of the file, without a line cut short by a crash; none where there is no file."""
    runs = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            runs.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return runs


def add(run: dict[str, Any], path: Path) -> None:
    """Add a run to the file, on a line of its own even if the last one was cut short, and record its code."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_cut = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(("\n" if is_cut else "") + json.dumps(run) + "\n")
    provenance.record(path)
