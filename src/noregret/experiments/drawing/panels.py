"""Drawings that several figures share: one picture per panel, narrow enough for a phone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from noregret.experiments.drawing import plot
from noregret.experiments.judging.figure import Figure, Results, Table
from noregret.experiments.running.summary import summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

WIDTH, HEIGHT = 5.2, 4.4
"""Of a picture, in inches, with its legend."""


def axes(title: str) -> Axes:
    """Axes of a picture for the page."""
    ax = plot.new_axes(WIDTH, HEIGHT)
    ax.set_title(title, loc="left", fontsize=11)
    return ax


def picture(ax: Axes) -> Picture:
    """The picture that holds these axes."""
    whole: Any = ax.figure
    held: Picture = whole
    return held


def regrets(
    figure: Figure, results: Results, *, log: bool = False, average: bool = False, rates: bool = False
) -> Mapping[str, Picture]:
    """The regret of every algorithm, one picture per panel."""
    return {
        panel.key: picture(
            plot.regret(results[panel.key], ax=axes(panel.title), log=log, average=average, rates=rates, legend="below")
        )
        for panel in figure.panels
    }


def regret_tables(figure: Figure, results: Results) -> list[Table]:
    """Regret at the end and time per round of every algorithm, one table per panel."""
    return [
        Table(
            panel.title,
            ("algorithm", "regret", "sd", "µs/round"),
            [
                (row.algorithm, f"{row.regret:.4g}", f"{row.sd:.3g}", f"{row.microseconds:,.0f}")
                for row in summarise(results[panel.key])
            ],
        )
        for panel in figure.panels
    ]
