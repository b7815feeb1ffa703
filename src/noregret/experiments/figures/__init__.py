"""The papers' figures and tables, one file each, and claims of later papers."""

from __future__ import annotations

from noregret.experiments.figure import Figure
from noregret.experiments.figures.beyond import contexts, drift, robust, sketching, unknown, widths
from noregret.experiments.figures.bkb import fig1 as starvation
from noregret.experiments.figures.bkb import scaling
from noregret.experiments.figures.heavy_tails import fig1a, fig1b, fig1c, fig1d, fig1e, fig1f
from noregret.experiments.figures.kernelized import fig1, fig2, fig3, fig4
from noregret.experiments.figures.reds import fig1 as shrinking
from noregret.experiments.figures.reds import noise_free, random_exploration, table1

PAPERS = {
    "kernelized": "On kernelized multi-armed bandits (Chowdhury and Gopalan, ICML 2017)",
    "heavy-tails": "Bayesian optimization under heavy-tailed payoffs (Chowdhury and Gopalan, NeurIPS 2019)",
    "bkb": "Gaussian process optimization with adaptive sketching: scalable and no regret "
    "(Calandriello, Carratino, Lazaric, Valko and Rosasco, COLT 2019)",
    "reds": "Random exploration in Bayesian optimization: order-optimal regret and computational efficiency "
    "(Salgia, Vakili and Zhao, ICML 2024)",
    "beyond": "Claims of papers beyond the four",
}
"""The papers by the first part of their figures' names."""

_MODULES = (
    *(fig1, fig2, fig3, fig4),
    *(fig1a, fig1b, fig1c, fig1d, fig1e, fig1f),
    *(starvation, scaling),
    *(shrinking, table1, random_exploration, noise_free),
    *(widths, sketching, robust, unknown, contexts, drift),
)

FIGURES: dict[str, Figure] = {module.FIGURE.name: module.FIGURE for module in _MODULES}
"""All figures by their names, in the order of the page."""
