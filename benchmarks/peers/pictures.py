"""The pictures of docs/peers.md: ranks by noise, regret against evaluations, regret against CPU seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.ranks import KINDS, Ranks
from benchmarks.peers.results import Row
from benchmarks.peers.worlds import NOISES

LOOKS = {
    "noregret": ("#0072b2", "-"),
    "cma-es": ("#d55e00", "--"),
    "optuna-tpe": ("#009e73", "-."),
    "random": ("#666666", ":"),
    "botorch-lognei": ("#cc79a7", "-"),
    "botorch-ucb": ("#e69f00", "--"),
    "optuna-gp": ("#56b4e9", "-."),
    "bayesian-optimization": ("#8c4a00", "--"),
    "scikit-optimize": ("#d55e00", ":"),
}
WORDS = {
    "noregret": "noregret",
    "botorch-lognei": "BoTorch qLogNoisyEI",
    "botorch-ucb": "BoTorch UCB",
    "optuna-gp": "Optuna GPSampler",
    "optuna-tpe": "Optuna TPESampler",
    "gaussian-0.1": "Gaussian 0.1",
    "gaussian-0.5": "Gaussian 0.5",
    "student-3": "Student-t(3)",
    "student-1.5": "Student-t(1.5)",
    "pareto": "Pareto",
}
GROUPS = {"Gaussian noise": ("gaussian-0.1", "gaussian-0.5"), "heavy tails": tuple(NOISES)[2:]}

READINGS, SECONDS, REGRETS = (10, 20, 50, 100, 200), (0.1, 1, 10), (0.02, 0.05, 0.1, 0.2, 0.5)


def words(name: str) -> str:
    """Display name of an optimiser or a noise."""
    return WORDS.get(name, name)


def draw_ranks(ranks: Ranks, path: Path) -> None:
    """A panel for each noise: mean ranks of the optimisers, with their intervals; the best of each panel is filled."""
    plt = pyplot(path)
    peers = list(ranks.of)
    figure, panels = plt.subplots(
        1, len(KINDS), figsize=(11, 1.3 + 0.27 * len(peers)), sharey=True, layout="constrained"
    )
    for panel, kind in zip(panels, KINDS, strict=True):
        for place, peer in enumerate(peers):
            mean, low, high = ranks.of[peer][kind]
            colour = LOOKS["noregret"][0] if peer == "noregret" else "#777777"
            panel.plot([low, high], [place, place], color=colour, linewidth=3, alpha=0.35, solid_capstyle="butt")
            face = colour if peer == ranks.first(kind) else "white"
            panel.plot(mean, place, "o", color=colour, markerfacecolor=face, markersize=7)
        panel.set_title(words(kind), fontsize=10)
        panel.set_xlim(0.6, len(peers) + 0.4)
        panel.set_xticks(range(1, len(peers) + 1, 1 + len(peers) // 4))
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(peers)), [words(peer) for peer in peers])
    panels[0].set_ylim(len(peers) - 0.4, -0.6)
    figure.supxlabel(f"mean rank after {ranks.budget} evaluations (1 is best; bars: 95%)", fontsize=10)
    save(figure, path)


def draw_regret(rows: Sequence[Row], peers: Sequence[str], path: Path) -> None:
    """Regret of the recommended point against evaluations, a panel for each noise; one reading is a dot."""
    plt = pyplot(path)
    figure, panels = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
    for panel, noise in zip(panels.flat, NOISES, strict=True):
        for peer in peers:
            readings = mean_curve([row for row in rows if row["peer"] == peer and row["noise"] == noise])
            colour, style = LOOKS[peer]
            regrets = [regret for regret, _ in readings.values()]
            panel.plot(list(readings), regrets, style, marker="o", color=colour, markersize=4, label=words(peer))
        panel.set(title=words(noise), xscale="log", yscale="log")
        panel.set_xticks(READINGS, map(str, READINGS))
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    for panel in panels[1]:
        panel.set_xlabel("evaluations")
    figure.supylabel("mean regret of the recommended point (a random point's is 1)")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


def draw_seconds(rows: Sequence[Row], peers: Sequence[str], path: Path) -> None:
    """Regret of the recommended point against the optimiser's CPU seconds; the numbers at the dots are evaluations."""
    plt = pyplot(path)
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained")
    for panel, (title, noises) in zip(panels, GROUPS.items(), strict=True):
        for peer in peers:
            readings = mean_curve([row for row in rows if row["peer"] == peer and row["noise"] in noises])
            regrets, seconds = zip(*readings.values(), strict=True)
            colour, style = LOOKS[peer]
            panel.plot(seconds, regrets, style, marker="o", color=colour, markersize=4, label=words(peer))
            for evaluations, at in readings.items():
                panel.annotate(f" {evaluations}", (at[1], at[0]), fontsize=7, color=colour, va="bottom")
        panel.set(title=title, xscale="log", yscale="log", xlabel="CPU seconds of the optimiser")
        panel.set_xticks(SECONDS, map(str, SECONDS))
        panel.set_yticks(REGRETS, map(str, REGRETS))
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("mean regret of the recommended point")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


def mean_curve(rows: Iterable[Row]) -> dict[int, tuple[float, float]]:
    """Mean regret and mean seconds by budget, over the problems; budgets at which a problem is missing are left out."""
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["budget"], []).append(row)
    most = max(map(len, found.values()))
    whole = {budget: group for budget, group in sorted(found.items()) if len(group) == most}
    return {
        budget: (float(np.mean([r["recommended"] for r in group])), float(np.mean([r["seconds"] for r in group])))
        for budget, group in whole.items()
    }


def pyplot(path: Path) -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = path.name  # the same results give the same file
    from matplotlib import pyplot as plt

    return plt


def save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
