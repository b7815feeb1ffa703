"""Claims of papers beyond the four, run the same way; the scale is ours, and every claim begins with its paper.

Their full texts are no part of this work: the claims are those of the abstracts, and their words are turned into
numbers here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from noregret.experiments.figure import Claim, Figure, Panel, Scale, regret_tables, regrets


def figure(
    name: str,
    title: str,
    panels: Sequence[Panel],
    claims: Sequence[Claim],
    *,
    says: str,
    how: str,
    scale: Scale,
    quick: Scale,
    minutes: float,
) -> Figure:
    """A figure of regrets with its claims."""
    draw = partial(regrets, log=True)
    return Figure(f"beyond/{name}", title, says, how, panels, claims, draw, scale, quick, minutes, regret_tables)
