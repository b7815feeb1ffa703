"""The figures and tables of the papers, one file per paper, and claims of later papers."""

from __future__ import annotations

from noregret.bandits.lab.figure import Figure
from noregret.bandits.lab.figures import beyond, bkb, heavy_tails, kernelized_bandits, reds

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

FIGURES: dict[str, Figure] = {
    figure.name: figure for paper in (kernelized_bandits, heavy_tails, bkb, reds, beyond) for figure in paper.FIGURES
}
"""All figures by name, in the order of the page."""
