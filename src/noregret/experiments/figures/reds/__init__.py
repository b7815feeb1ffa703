"""Figures of the REDS paper, and what they have in common: three functions, as its App. C ran them."""

from __future__ import annotations

from functools import partial

from noregret.algorithms.domain_shrinking import bpe, gp_threds, reds
from noregret.experiments.figure import ComparisonPanel, Entrant
from noregret.problems import branin, hartmann4, hartmann6, standard
from noregret.problems.functions import Function


def _panel(
    key: str,
    title: str,
    function: Function,
    first_epoch: int,
    width: float,
    bounds: tuple[float, float],
    cell: int,
    patience: int | None,
) -> ComparisonPanel:
    common = {"constants": "experiment", "ridge": 0.2}
    entrants = {
        "reds": Entrant(reds, common | {"first_epoch": first_epoch}),
        "bpe": Entrant(bpe, common | {"first_epoch": first_epoch, "scale": width}),
        "gp-threds": Entrant(gp_threds, common | {"bounds": bounds, "points_per_cell": cell, "patience": patience}),
    }
    return ComparisonPanel(key, title, partial(standard, function), entrants, watch=("active",))


PANELS = (
    _panel("reds-branin", "Branin", branin, 50, 1.0, (0.5, 1.2), 100, 50),
    _panel("reds-hartmann4", "Hartmann-4D", hartmann4, 100, 0.75, (0.0, 3.8), 200, None),
    _panel("reds-hartmann6", "Hartmann-6D", hartmann6, 100, 0.75, (0.0, 3.5), 500, None),
)
