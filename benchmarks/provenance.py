"""Code and date of the stored results: ``python -m benchmarks.provenance`` lists them, and what is stale.

``benchmarks/results/provenance.json`` lists for each file of benchmarks/results, or entry of measured.json, the command
that measured it, the folders of src/noregret on which the numbers depend, and its runs: the day and the digest of these
folders. A result is stale when the digest of one of its runs is not that of today. Comments, docstrings and blank lines
do not count. Pages may quote a stale result with its date only; a test checks that.

Benchmarks call `record` when they store a run, which adds a day to the entry if the code is new. When a result is
measured again from scratch, ``python -m benchmarks.provenance --again judges.jsonl`` forgets its old runs first. Runs
stored before 2026-11-19 have the code of the commit that stored them.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections.abc import Iterable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
INDEX = RESULTS / "provenance.json"

Entry = dict[str, Any]
"""``command``, ``folders`` and ``runs`` of a result; a run has ``on``, a date, and ``code``, a digest or None."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", nargs="+", metavar="RESULT", default=[], help="forget the old runs of these")
    options = parser.parse_args()
    for name in options.again:
        forget(name)
    for name, entry in entries().items():
        print(f"{'stale' if is_stale(entry) else 'new':<6} {name:<24} {measured_on(entry):<24} {entry['command']}")


def entries(index: Path = INDEX) -> dict[str, Entry]:
    """All entries, by the name of the result."""
    found: dict[str, Entry] = json.loads(index.read_text(encoding="utf-8"))
    return found


def digest(folders: Iterable[str], root: Path = ROOT) -> str:
    """Digest of the code in these folders of src/noregret."""
    total, source = hashlib.sha256(), root / "src" / "noregret"
    for path in sorted({path for folder in folders for path in (source / folder).rglob("*.py")}):
        text = f"{path.relative_to(source).as_posix()}\n{_code(path.read_text(encoding='utf-8'))}\n"
        total.update(text.encode())
    return total.hexdigest()[:12]


def record(result: str | Path, index: Path = INDEX) -> None:
    """Enter a run of today's code, for a name or a path; files outside of benchmarks/results have no entry."""
    if (name := _name(result, index)) is None:
        return
    found = entries(index)
    code = digest(found[name]["folders"])
    if code not in [run["code"] for run in found[name]["runs"]]:
        found[name]["runs"].append({"on": date.today().isoformat(), "code": code})
        _write(found, index)


def forget(result: str | Path, index: Path = INDEX) -> None:
    """Remove the runs of a result that is measured again."""
    if (name := _name(result, index)) is None:
        return
    found = entries(index)
    found[name]["runs"] = []
    _write(found, index)


def is_stale(entry: Entry) -> bool:
    """True if some run is of other code."""
    now = digest(entry["folders"])
    return any(run["code"] != now for run in entry["runs"])


def measured_on(entry: Entry) -> str:
    """The day of the runs, or the first and the last one, as pages quote it."""
    days = sorted({run["on"] for run in entry["runs"]})
    return " to ".join(days if len(days) < 2 else [days[0], days[-1]])


def sentence(name: str) -> str:
    """Sentence for a page that is made from a result."""
    return f"Measured on {measured_on(entries()[name])}; `python -m benchmarks.provenance` lists what changed since.\n"


def _name(result: str | Path, index: Path) -> str | None:
    """Name of a result, None for a path outside of the folder of the index."""
    if isinstance(result, Path):
        return result.name if result.resolve().parent == index.resolve().parent else None
    return result


@cache
def _code(text: str) -> str:
    """Lines of a module without docstrings, comment lines and blank lines."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _write(found: dict[str, Entry], index: Path) -> None:
    index.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
