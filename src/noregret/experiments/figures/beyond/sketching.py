"""After BKB: batches whose posterior waits, and arms that are repeated until they have told enough."""

from __future__ import annotations

from functools import partial

from noregret.belief.kernels import SquaredExponential
from noregret.experiments.claims import Below, seconds
from noregret.experiments.figure import Claim, ComparisonPanel, Scale
from noregret.experiments.figures.beyond import figure
from noregret.experiments.figures.bkb.scaling import ENTRANTS, last_rank
from noregret.problems import branin, standard

PANEL = ComparisonPanel(
    "after-bkb",
    "Branin, 2,000 arms",
    partial(standard, branin, points=2000, kernel=SquaredExponential(0.5)),
    {name: ENTRANTS[name] for name in ("bkb", "bbkb", "exact GP-UCB", "mini-gp-ucb")},
    watch=("rank",),
)

FIGURE = figure(
    "sketching",
    "After BKB: BBKB and mini-GP-UCB",
    [PANEL],
    [
        Claim(
            "Calandriello et al. 2020: BBKB is much faster than BKB",
            Below(PANEL.key, "bbkb", ["bkb"], 0.5, of=seconds, what="time"),
        ),
        Claim(
            "Calandriello et al. 2020: BBKB's regret is that of BKB up to a factor of 2",
            Below(PANEL.key, "bbkb", ["bkb"], 2.0),
        ),
        Claim(
            "Calandriello et al. 2022: mini-GP-UCB takes less time than GP-UCB",
            Below(PANEL.key, "mini-gp-ucb", ["exact GP-UCB"], of=seconds, what="time"),
        ),
        Claim(
            "Calandriello et al. 2022: mini-GP-UCB pulls fewer distinct arms than GP-UCB",
            Below(PANEL.key, "mini-gp-ucb", ["exact GP-UCB"], of=last_rank, what="distinct arms"),
        ),
        Claim(
            "Calandriello et al. 2022: mini-GP-UCB's regret is that of GP-UCB up to a factor of 2",
            Below(PANEL.key, "mini-gp-ucb", ["exact GP-UCB"], 2.0),
        ),
    ],
    says="""
        Calandriello et al. (Near-linear time Gaussian process optimization with adaptive batching and
        resparsification, ICML 2020): BBKB selects in batches, has no regret and is much faster than the
        state of the art. Calandriello et al. (Scaling Gaussian process optimization by evaluating a few unique
        candidates multiple times, ICML 2022): to stay with a candidate and switch only when necessary keeps the
        no-regret guarantees and improves the runtime.
    """,
    how="""
        The setting of the scaling study, on fewer arms and for more rounds. The exact GP-UCB has BKB's width, and
        appends rows at O(N u) for u distinct arms. 'Much faster' is taken for half the time.
    """,
    scale=Scale(1000, 8),
    quick=Scale(100, 3),
    minutes=0.2,
)
