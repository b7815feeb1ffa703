"""Receipts of comparisons: the values in their order, how they were compared, and the statement that follows.

The digest shows damage and slips, and is no signature: one who makes up values can make up their digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from noregret.comparison.comparison import Comparison
from noregret.extra import version
from noregret.files import write_atomically

FORM = 1
"""Number of this form of receipts."""
FIELDS = {"receipt", "commands", "result", "seed", "baseline", "versions", "time", "comparison", "statement", "digest"}
SAME = 1e-9
"""Largest relative difference of a number that is computed again, by another version of a library."""


def receipt(
    comparison: Comparison, commands: Sequence[str], result: str, seed: int | None = None, baseline: str | None = None
) -> dict[str, Any]:
    """The receipt of a comparison; ``baseline`` names the file if values of A were measured before.

    >>> comparison = Comparison(rng=0)
    >>> for option, value in [(0, 4.0), (1, 5.0)] * 7:
    ...     comparison.tell(option, value)
    >>> found = receipt(comparison, ["old", "new"], "last-number", seed=0)
    >>> found["statement"]["verdict"], faults(found)
    ('worse', [])
    >>> found["comparison"]["runs"][0][1] = 6.0
    >>> faults(found)[:2]
    ['its digest is not that of its content', 'verdict is "worse", and its runs give "undecided"']
    """
    found = {
        "receipt": FORM,
        "commands": list(commands),
        "result": result,
        "seed": seed,
        "baseline": baseline,
        "versions": {"noregret": version(), "python": platform.python_version()},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "comparison": comparison.document(),
        "statement": statement(comparison),
    }
    found = json.loads(json.dumps(found))  # as it will be read
    return {**found, "digest": digest(found)}


def statement(comparison: Comparison) -> dict[str, Any]:
    """The statement of a comparison; None stands for numbers that are not known, and for the e-value of several."""
    evalue = min(comparison.evalue(), sys.float_info.max) if comparison.options == 2 else math.nan
    numbers = {name: getattr(comparison, name) for name in ("estimate", "lower", "upper")}
    return {
        "verdict": comparison.verdict,
        **{name: value if math.isfinite(value) else None for name, value in (numbers | {"evalue": evalue}).items()},
        "quantity": comparison.quantity,
        "relative": comparison.is_relative,
        "level": comparison.confidence,
        "pairs": comparison.pairs,
        "failures": list(comparison.failures),
    }


def digest(found: Mapping[str, Any]) -> str:
    """Digest of all fields but ``digest``."""
    rest = {name: value for name, value in found.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def faults(found: Mapping[str, Any]) -> list[str]:
    """Reasons why the statement of a receipt does not follow from its runs; none if it does."""
    said = [] if digest(found) == found["digest"] else ["its digest is not that of its content"]
    try:
        if found["comparison"]["options"] > len(found["commands"]) + 1:
            raise ValueError("it has more options than commands")
        known = statement(Comparison.replay(found["comparison"]))
        stated = dict(found["statement"])
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        return [*said, f"its runs cannot be compared again: {error}"]
    for name in [*known, *sorted(stated.keys() - known.keys())]:
        given, again = stated.get(name), known.get(name)
        if name not in known or name not in stated:
            said.append(f"{name} is no part of {'a' if name in stated else 'its'} statement")
        elif not _same(given, again):
            said.append(f"{name} is {json.dumps(given)}, and its runs give {json.dumps(again)}")
    return said


def _same(given: Any, again: Any) -> bool:
    if type(given) in (int, float) and type(again) in (int, float):
        return math.isclose(given, again, rel_tol=SAME, abs_tol=1e-12)
    return type(given) is type(again) and bool(given == again)


def write(found: Mapping[str, Any], path: Path) -> None:
    """Write a receipt, or another JSON object; OSError if that fails."""
    text = json.dumps(found, indent=1, allow_nan=False) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))
