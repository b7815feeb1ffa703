"""Table 1 (and 2): REDS is the fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from noregret.experiments import plot
from noregret.experiments.claims import Below, seconds
from noregret.experiments.figure import Claim, Figure, Results, Scale, Table, axes, picture
from noregret.experiments.figures.reds import PANELS
from noregret.experiments.plot import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

PAPER = {
    "bpe": (29.84, 38.45, 119.71),
    "gp-threds": (4.37, 7.59, 19.33),
    "reds": (0.32, 0.47, 1.19),
}
"""Seconds of a run on the three functions, as printed in Tables 1 and 2."""

PAPER_SD = {
    "bpe": (6.13, 3.93, 23.75),
    "gp-threds": (0.28, 0.54, 0.54),
    "reds": (0.08, 0.11, 0.08),
}
"""Their standard deviations over the 10 runs, as printed in Table 2."""

SAME_PARTS = "The others are fast here too: all three rest on the same posterior, and BPE plans whole epochs."


def _mean(trials: Any) -> float:
    return float(np.mean([seconds(trial) for trial in trials]))


def tabulate(figure: Figure, results: Results) -> list[Table]:
    """Our seconds beside the paper's, and how many times faster than each other algorithm REDS is."""
    titles = [panel.title for panel in PANELS]
    times = [(name, *(_seconds(results, i, name) for i in range(len(PANELS)))) for name in PAPER]
    others = [(name, *(_speedup(results, i, name) for i in range(len(PANELS)))) for name in ("gp-threds", "bpe")]
    return [
        Table("Seconds per run here, mean ± sd (in the paper)", ("algorithm", *titles), times),
        Table("How many times faster REDS is here (in the paper)", ("than", *titles), others),
    ]


def _seconds(results: Results, i: int, name: str) -> str:
    ours = [seconds(trial) for trial in results[PANELS[i].key][name]]
    sd = float(np.std(ours, ddof=1)) if len(ours) > 1 else float("nan")
    return f"{np.mean(ours):.2g} ± {sd:.1g} ({PAPER[name][i]:g} ± {PAPER_SD[name][i]:g})"


def _speedup(results: Results, i: int, name: str) -> str:
    ours = results[PANELS[i].key]
    return f"{_mean(ours[name]) / _mean(ours['reds']):.1f} ({PAPER[name][i] / PAPER['reds'][i]:.1f})"


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """Our times, and the paper's in pale."""
    ax, places = axes("Seconds per run"), np.arange(len(PANELS))
    for i, (name, printed) in enumerate(PAPER.items()):
        ours = [_mean(results[panel.key][name]) for panel in PANELS]
        colour = style(name)[0]
        ax.bar(places + 0.27 * (i - 1), printed, 0.24, color=colour, alpha=0.25)
        ax.bar(places + 0.27 * (i - 1), ours, 0.24, color=colour, label=name)
    ax.set(yscale="log", ylabel="seconds (pale: the paper)")
    ax.set_xticks(places, [panel.title for panel in PANELS])
    plot.finish(ax, None, legend="below")
    ax.set_xlim(-0.6, len(PANELS) - 0.4)
    return {"times": picture(ax)}


FIGURE = Figure(
    name="reds/table1",
    title="Table 1: time taken",
    says="REDS offers about a 15 times and a 100 times speedup over GP-ThreDS and BPE.",
    how="""
        The runs of Fig. 1; the time is that spent in the algorithm, on one BLAS thread. Here all three run on the
        same posterior, which takes whole epochs in one block and appends single rewards at O(N u). BPE plans an epoch
        by following the few most uncertain arms closely and the rest only when it must. So it does far less than the
        paper's implementation did, and REDS, which was fast already, has little left to gain on it. 'About 15 times'
        is taken for at least 10, 'about 100 times' for at least 50.
    """,
    panels=PANELS,
    claims=[
        claim
        for panel in PANELS
        for claim in (
            Claim(
                f"{panel.title}: REDS is the fastest",
                Below(panel.key, "reds", ["bpe", "gp-threds"], of=seconds, what="time"),
            ),
            Claim(
                f"{panel.title}: REDS is about 15 times faster than GP-ThreDS",
                Below(panel.key, "reds", ["gp-threds"], 0.1, of=seconds, what="time"),
                because=SAME_PARTS,
            ),
            Claim(
                f"{panel.title}: REDS is about 100 times faster than BPE",
                Below(panel.key, "reds", ["bpe"], 0.02, of=seconds, what="time"),
                because=SAME_PARTS,
            ),
        )
    ],
    draw=draw,
    tabulate=tabulate,
    scale=Scale(1000, 10),
    quick=Scale(300, 4),
    minutes=0.1,
)
