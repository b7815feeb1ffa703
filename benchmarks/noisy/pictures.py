"""Run-time distributions: the share of targets reached against evaluations per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.noisy.functions import KINDS
from benchmarks.noisy.ranks import Line, shared, shares_reached, to_one_end
from benchmarks.peers.pictures import LOOKS, pyplot, save

MEASURES = {"recommended": "recommended", "evaluated": "best evaluated"}


def picture(lines: list[Line], optimisers: Sequence[str], path: Path) -> None:
    """A row for the recommended and one for the best evaluated point, a column for each kind of noise.

    Only what all of the optimisers have run counts, as far as all of it was run.
    """
    plt = pyplot(path)
    lines = to_one_end(shared(lines, optimisers))
    figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
    for row, measure in zip(axes, MEASURES, strict=True):
        for panel, kind in zip(row, KINDS, strict=True):
            panel.set_xscale("log")
            panel.xaxis.set_major_formatter("{x:g}")
            panel.grid(alpha=0.3)
            for name in optimisers:
                own = [line for line in lines if line["kind"] == kind and line["optimiser"] == name]
                colour, style = LOOKS[name]
                panel.plot(*shares_reached(own, measure), color=colour, linestyle=style, label=name)
        row[0].set_ylabel(f"share of targets reached,\n{MEASURES[measure]} point")
    for panel, kind in zip(axes[0], KINDS, strict=True):
        panel.set_title(f"{kind.capitalize()} noise")
    for panel in axes[1]:
        panel.set_xlabel("evaluations / dimension")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(optimisers))
    save(figure, path)
