"""Numbers and outputs that the README and the documentation quote: ``python -m benchmarks.quotes`` updates them.

``benchmarks/results/claims.json`` lists for each page the sentences that claim something measured, with names in place
of it, as in ``a million rounds take {million.seconds} seconds``. Names and values come from the files of
benchmarks/results: measured.json as it stands (a number, or the lines of an output), peers.csv as mean ranks,
``rank.50.spikes.noregret``, and CPU seconds of a run, ``seconds.50.noregret``, and noisy.csv as mean ranks at 50
evaluations per dimension, ``bbob.50.uniform.noregret``; story.csv as mean losses, ``story.tpe.claimed``; and
judges.jsonl as mean ranks by group and budget, ``judges.kernels.50.noregret``, of the comparison on all problems.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import provenance, story
from benchmarks.judges import page as judges
from benchmarks.lines import stored
from benchmarks.noisy import results as noisy
from benchmarks.noisy.functions import KINDS
from benchmarks.noisy.optimisers import ON_ALL
from benchmarks.noisy.ranks import mean_ranks as ranks_on_suite
from benchmarks.peers import results
from benchmarks.peers.ranks import mean_ranks
from benchmarks.peers.worlds import NOISES

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "benchmarks" / "results" / "measured.json"
JUDGED = ROOT / "benchmarks" / "results" / "judges.jsonl"
CLAIMS = ROOT / "benchmarks" / "results" / "claims.json"
DAY = r"\d{4}-\d\d-\d\d"
NAME = re.compile(r"\{([\w.-]+)\}")
BUDGETS = (50, 200)
STORED = {"rank": "peers.csv", "seconds": "peers.csv", "bbob": "noisy.csv"}
STORED |= {"story": "story.csv", "judges": "judges.jsonl"}
"""Result of a name, by its first part; other names are entries of measured.json."""


def main() -> None:
    """Update all pages."""
    for name, claimed in claims().items():
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), claimed), encoding="utf-8")


def claims() -> dict[str, list[str]]:
    """The claims of each page, by the page's path."""
    found: dict[str, list[str]] = json.loads(CLAIMS.read_text(encoding="utf-8"))
    return found


def filled(text: str, claimed: list[str]) -> str:
    """The page with the values of all claims as they are in the results; ValueError if a claim is not on it once."""
    for claim in claimed:
        names = NAME.findall(claim)
        values = [(numbers() | outputs())[name] for name in names]
        parts = [r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in NAME.split(claim)[::2]]
        holes = [_hole(name) for name in names]
        pattern = parts[0] + "".join(hole + part for hole, part in zip(holes, parts[1:], strict=True))
        found = list(re.finditer(pattern, text, re.DOTALL))
        if len(found) != 1:
            raise ValueError(f"{len(found)} places match the claim {claim!r}: it must stand on the page once")
        for i in reversed(range(len(names))):
            start, end = found[0].span(i + 1)
            text = text[:start] + values[i] + text[end:]
    return text


def quoted() -> dict[str, dict[str, list[str]]]:
    """Claims with their values, without outputs, by page and result."""
    found: dict[str, dict[str, list[str]]] = {}
    for page, claimed in claims().items():
        by_result = found.setdefault(page, {})
        for claim in claimed:
            text = NAME.sub(lambda name: numbers().get(name[1], "\0"), claim).partition("\0")[0]
            for name in NAME.findall(claim):
                first = name.partition(".")[0]
                by_result.setdefault(STORED.get(first, f"measured.json#{first}"), []).append(text)
    return found


def _hole(name: str) -> str:
    """Pattern of a value on a page."""
    if name in outputs():
        return r"((?:(?!```).)*?)"
    return rf"({DAY}(?: to {DAY})?)" if name.endswith(".on") else r"([\d.,]*\d)"


@cache
def outputs() -> dict[str, str]:
    """Every output that can be quoted, by its name."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    return {name: "\n".join(entry["output"]) + "\n" for name, entry in measured.items() if "output" in entry}


@cache
def numbers() -> dict[str, str]:
    """Every number that can be quoted, by its name, as it is printed."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    found = {f"{name}.{key}": f"{value:,}" for name, entry in measured.items() for key, value in entry.items()
             if isinstance(value, int | float)}  # fmt: skip
    for name, entry in provenance.entries().items():
        found[f"{re.split('[.#]', name)[-1 if '#' in name else 0]}.on"] = provenance.measured_on(entry)
    return found | _of_peers() | _of_suite() | _of_story() | _of_judges()


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


def _of_story() -> dict[str, str]:
    """Claimed and true losses of the README's picture, and the runs in which the interval contains the truth."""
    runs = story.stored()
    its = [run for run in runs if run.tool == "noregret"]
    found = {"story.runs": f"{len(its)}", "story.held": f"{sum(run.lower <= run.true <= run.upper for run in its)}"}
    for tool, (claimed, true) in story.summary(runs).items():
        found |= {f"story.{tool}.claimed": f"{claimed:.2f}", f"story.{tool}.true": f"{true:.2f}"}
    return found


def _of_judges() -> dict[str, str]:
    """Mean ranks, numbers of problems and methods, and intervals that hold, on problems unused in development."""
    new = [cell for cell in judges.cells(stored(JUDGED)) if not cell.used]
    found = {"judges.problems": f"{len({cell.problem for cell in new})}"}
    for group, budget, chosen, methods in judges.comparisons(new):  # that on all problems is the last
        place = f"judges.{group}.{budget}"
        found |= {f"{place}.problems": f"{len(chosen)}", f"{place}.methods": f"{len(methods)}"}
        ranks = judges.mean_ranks(chosen, methods)
        found |= {f"{place}.{name.replace(' ', '_')}": f"{rank.mean:.1f}" for name, rank in ranks.items()}
    for (group, budget, here), name in product(judges.by_budget(new), ("best", "gain")):
        held = judges.held(here, name)
        place = f"judges.{group}.{budget}.{name}"
        found |= {f"{place}.held": f"{sum(held)}", f"{place}.readings": f"{len(held)}"}
        found[f"{place}.percent"] = f"{100 * np.mean(held):.0f}"
    return found


def _seconds(rows: list[results.Row], peer: str, budget: int) -> float:
    """Mean of a run, over the problems that all optimisers met."""
    met = (row for row in rows if row["noise"] in NOISES and (row["peer"], row["budget"]) == (peer, budget))
    return float(np.mean([row["seconds"] for row in met]))


if __name__ == "__main__":
    main()
