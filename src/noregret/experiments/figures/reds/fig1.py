"""Fig. 1 (and 2): the regret of REDS is comparable to that of BPE and GP-ThreDS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noregret.experiments import plot
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, Figure, Results, Scale, axes, picture, regret_tables, regrets
from noregret.experiments.figures.reds import PANELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """Regret, and the arms still in play."""
    active = {
        f"{panel.key}-active": picture(
            plot.active_arms(results[panel.key], ax=axes(f"{panel.title}: arms in play"), legend="below")
        )
        for panel in PANELS
    }
    return {**regrets(figure, results), **active}


PATIENCE = "GP-ThreDS depends on a patience that the paper does not give; with ours it is ahead of REDS."

FIGURE = Figure(
    name="reds/fig1",
    title="Fig. 1: regret on Branin, Hartmann-4D, Hartmann-6D",
    says="The regret incurred by REDS is comparable to that of BPE and GP-ThreDS, for all benchmark functions.",
    how="""
        2,000, 7,000, 20,000 uniform points as arms; squared exponential kernel, l = 0.2, 1, 1; Gaussian noise of sd
        0.2, ridge 0.2; width 1 (0.75 for BPE on the Hartmann functions); first epoch 50, 100, 100, doubling for BPE
        too. GP-ThreDS has its bounds and points per cell from the paper; its patience, which is not given, is 50 on
        Branin and T / (2^d epochs) else. Regret is against the best arm, which is 0.001, 0.06 and 0.25 below the
        function's maximum. Width 1 is no confidence width: on the Hartmann functions the best arm is often
        eliminated. 'Comparable' is taken for at most 1.5 times the regret.
    """,
    panels=PANELS,
    claims=[
        Claim(
            f"{panel.title}: REDS is comparable to {name}",
            Below(panel.key, "reds", [label], 1.5),
            because=why,
        )
        for panel in PANELS
        for name, label, why in (("BPE", "bpe", ""), ("GP-ThreDS", "gp-threds", PATIENCE))
    ],
    draw=draw,
    tabulate=regret_tables,
    scale=Scale(1000, 10),
    quick=Scale(300, 4),
    minutes=0.1,
)
