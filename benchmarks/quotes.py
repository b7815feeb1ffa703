"""Numbers that the README and the documentation quote: ``python -m benchmarks.quotes`` writes them anew.

A number is followed by a comment with its name, as in ``26<!-- million.seconds -->``. A block of output is preceded by
one, as in ``<!-- output: demo -->``. Names and numbers come from the files of benchmarks/results: measured.json as it
stands, peers.csv as mean ranks, ``rank.50.spikes.noregret``, and CPU seconds of a run, ``seconds.50.noregret``, and
noisy.csv as mean ranks at 50 evaluations per dimension, ``bbob.50.uniform.noregret``.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.noisy import results as noisy
from benchmarks.noisy.functions import KINDS
from benchmarks.noisy.optimisers import ON_ALL
from benchmarks.noisy.ranks import mean_ranks as ranks_on_suite
from benchmarks.peers import results
from benchmarks.peers.ranks import mean_ranks
from benchmarks.peers.worlds import NOISES

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "results" / "measured.json"
NUMBER = re.compile(r"[\d.,]*\d(?=<!-- ([\w.-]+) -->)")
OUTPUT = re.compile(r"(?<=<!-- output: )(\w+)( -->\n+```text\n).*?(?=```)", re.DOTALL)
BUDGETS = (50, 200)


def main() -> None:
    """Fill in all pages."""
    for path in pages():
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


def pages() -> list[Path]:
    """The pages that may quote."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """A page with every quoted number and output as it is in the results."""
    found, outputs = numbers(), _measured("output")
    text = NUMBER.sub(lambda match: found[match[1]], text)
    return OUTPUT.sub(lambda match: f"{match[1]}{match[2]}" + "\n".join(outputs[match[1]]) + "\n", text)


@cache
def numbers() -> dict[str, str]:
    """Every number that can be quoted, by its name, as it is printed."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    found = {f"{name}.{key}": f"{value:,}" for name, entry in measured.items() for key, value in entry.items()
             if isinstance(value, int | float)}  # fmt: skip
    return found | _of_peers() | _of_suite()


def _of_peers() -> dict[str, str]:
    rows, found = results.read(), {}
    for budget in BUDGETS:
        for peer, by_kind in mean_ranks(rows, "recommended", budget).of.items():
            found |= {f"rank.{budget}.{kind}.{peer}": f"{rank.mean:.1f}" for kind, rank in by_kind.items()}
            found[f"seconds.{budget}.{peer}"] = f"{_seconds(rows, peer, budget):.1f}"
    return found


def _of_suite() -> dict[str, str]:
    """Mean ranks by the recommended point of the optimisers that were run on all of bbob-noisy."""
    lines, found = noisy.lines(noisy.read()), {}
    lines = [line for line in lines if line["evaluations"] == 50 * line["dimension"]]
    for kind in KINDS:
        ranks, _ = ranks_on_suite([line for line in lines if line["kind"] == kind], ON_ALL, "recommended")
        found |= {f"bbob.50.{kind}.{peer}": f"{rank.mean:.1f}" for peer, rank in zip(ON_ALL, ranks, strict=True)}
    return found


def _seconds(rows: list[results.Row], peer: str, budget: int) -> float:
    """Mean of a run, over the problems that all optimisers met."""
    met = (row for row in rows if row["noise"] in NOISES and (row["peer"], row["budget"]) == (peer, budget))
    return float(np.mean([row["seconds"] for row in met]))


def _measured(key: str) -> dict[str, list[str]]:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    return {name: entry[key] for name, entry in measured.items() if key in entry}


if __name__ == "__main__":
    main()
