"""What was found, how sure that is and why it is over, in a few lines."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from noregret.optimizer.estimate import Estimate
from noregret.optimizer.showing.words import change_in_words
from noregret.terminal import printable
from noregret.tune.learning.findings import Findings
from noregret.tune.page import words
from noregret.tune.page.prose import feasibility, room_left, why_over
from noregret.tune.study.study import Study


def conclusion(found: Findings) -> str:
    """What was found, and why nothing more is measured."""
    if found.best is None:
        return "\n".join(["no result yet", *why_over(found)])
    return "\n".join([*_found(found, found.best), *why_over(found), _evidence(found.study)])


def _found(found: Findings, best: Estimate) -> Iterator[str]:
    if found.gain:
        yield str(found.gain)
    yield f"best: {words.number(best.estimate)}{found.unit}, {words.likely(best, found.unit)}"
    width = max(map(len, best.params))
    yield from (f"  {name:<{width}}  {words.value(value)}" for name, value in best.params.items())
    yield from how_good(found, best)


def how_good(found: Findings, best: Estimate) -> Iterator[str]:
    """How the recommended setting stands to the constraints and to all others, and whether that will change."""
    if found.study.constraints:
        yield feasibility(best)
    if best.has_gap:
        yield room_left(best, found.unit)
    if found.half_life < math.inf:
        yield change_in_words(found.half_life)


def _evidence(study: Study) -> str:
    return f"the evidence: noregret report {printable(shlex.quote(str(study.path)))}"
