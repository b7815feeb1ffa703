"""Figures of the heavy-tails paper, and what (a) to (e) have in common.

``constants="experiment"``: the widths and levels of the authors' code, far below the theorems' but still wide. B and v
are what the paper passed, ``problem.paper``; neither need be a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from noregret.algorithms.heavy_tails import ata_gp_ucb, tgp_ucb
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, ComparisonPanel, Entrant, Figure, Scale, regret_tables, regrets

SETTINGS: dict[str, Any] = {"constants": "experiment"}
TGP = Entrant(tgp_ucb, SETTINGS)
NYSTROM = Entrant(ata_gp_ucb, SETTINGS | {"features": "nystrom", "epsilon": 0.1})
QFF = Entrant(ata_gp_ucb, SETTINGS | {"features": "qff", "order": 32})
ENTRANTS = {"tgp-ucb": TGP, "ata-gp-ucb-nystrom": NYSTROM}

NO_WORSE = 1.1
"""A regret up to this factor of another's is no worse than it."""


def claims(panel: ComparisonPanel) -> list[Claim]:
    """What the paper says of every panel."""
    atas = [label for label in panel.entrants if label != "tgp-ucb"]
    found = [Claim(f"{label} outperforms tgp-ucb", Below(panel.key, label, ["tgp-ucb"])) for label in reversed(atas)]
    if len(atas) > 1:
        best = Below(panel.key, "ata-gp-ucb-nystrom", ["ata-gp-ucb-qff"], NO_WORSE)
        found.append(Claim("The Nyström approximation is no worse than the QFF one", best))
    return found


def figure(
    letter: str,
    title: str,
    panel: ComparisonPanel,
    how: str,
    *,
    trials: int,
    minutes: float,
    quick: Scale,
    unlike: str = "",
) -> Figure:
    """A panel of Fig. 1 with its claims: time-average regret."""
    return Figure(
        name=f"heavy-tails/fig1{letter}",
        title=f"Fig. 1 ({letter}): {title}",
        says="""
            ATA-GP-UCB outperforms TGP-UCB uniformly over all experiments, and its performance under the Nyström
            approximation is no worse than that under the QFF approximation.
        """,
        how=how,
        panels=[panel],
        claims=claims(panel),
        draw=partial(regrets, average=True),
        tabulate=regret_tables,
        scale=Scale(20_000, trials),
        quick=quick,
        minutes=minutes,
    )


__all__: Sequence[str] = ["ENTRANTS", "NYSTROM", "QFF", "SETTINGS", "TGP", "figure"]
