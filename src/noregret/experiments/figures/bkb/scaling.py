"""Scaling: BKB on many arms, against exact GPs and against the batched and repeated forms that came after it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from noregret.algorithms.sketching import PlainBKBWidth, bbkb, bkb, mini_gp_ucb
from noregret.belief.exact import ExactGP
from noregret.belief.kernels import Kernel, SquaredExponential
from noregret.decision.loops import Sequential
from noregret.decision.rules import UCB
from noregret.experiments import plot
from noregret.experiments.claims import Below, seconds
from noregret.experiments.figure import (
    Claim,
    ComparisonPanel,
    Entrant,
    Figure,
    Results,
    Scale,
    axes,
    picture,
    regret_tables,
)
from noregret.experiments.figures.bkb.textbook import TextbookGP
from noregret.experiments.plot import style
from noregret.problems import branin, standard

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SETTINGS = {"constants": "experiment", "norm": 3.0}
SKETCH = SETTINGS | {"coins": "fresh"}


def exact(kernel: Kernel, *, norm: float, noise: float, delta: float = 0.1, model: Any = ExactGP) -> Sequential:
    """GP-UCB with BKB's width."""
    return Sequential(model(kernel, noise**2), UCB(PlainBKBWidth(norm, noise, delta)))


ENTRANTS = {
    "textbook GP-UCB": Entrant(partial(exact, model=TextbookGP), SETTINGS),
    "bkb": Entrant(bkb, SKETCH),
    "bbkb": Entrant(bbkb, SKETCH),
    "exact GP-UCB": Entrant(exact, SETTINGS),
    "mini-gp-ucb": Entrant(mini_gp_ucb, SETTINGS),
}
LARGE = {name: ENTRANTS[name] for name in ("bbkb", "exact GP-UCB", "mini-gp-ucb")}
SIZES = (1000, 10_000, 100_000)
PANELS = tuple(
    ComparisonPanel(
        f"branin-{size}",
        f"{size:,} arms",
        partial(standard, branin, points=size, kernel=SquaredExponential(0.5)),
        LARGE if size > 10_000 else ENTRANTS,
        watch=("rank",),
    )
    for size in SIZES
)
MANY = PANELS[1].key


def last_rank(trace: Any) -> float:
    """Features in use at the end."""
    return float(trace.watched["rank"][-1])


def draw(figure: Figure, results: Results) -> dict[str, Picture]:
    """Time against the number of arms; then features and regret over the rounds at 10,000 arms."""
    ax = axes("Time of a trial")
    for name in ENTRANTS:
        traces = {n: results[p.key][name] for n, p in zip(SIZES, PANELS, strict=True) if name in results[p.key]}
        colour, line = style(name)
        times = [np.mean([trace.seconds for trace in those]) for those in traces.values()]
        ax.plot(list(traces), times, "o", ls=line, color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel="arms", ylabel="seconds")
    plot.finish(ax, None, legend="below")
    features = plot.dictionary_size(results[MANY], ax=axes("Features in use, 10,000 arms"), legend="below")
    regret = plot.regret(results[MANY], ax=axes("Regret, 10,000 arms"), log=True, legend="below")
    return {"time": picture(ax), "features": picture(features), "regret": picture(regret)}


FIGURE = Figure(
    name="bkb/scaling",
    title="Scaling study: many arms",
    says="""
        BKB's step costs O(N m^2) for N arms and a dictionary of m, a large improvement over the O(N t^2) of GP-UCB's
        t-th step, and its regret is that of exact GP-UCB up to a constant and a logarithm. The paper has no
        experiments; this study is ours.
    """,
    how="""
        Branin on 1,000 to 100,000 random points, squared exponential kernel, l = 0.5; Gaussian noise of sd 0.2, ridge
        0.04; the width of the authors' code, q = 5 and, as in the paper, coins tossed anew every round; the exact GPs
        have the same width. 'Textbook GP-UCB' factorises the kernel matrix of the whole history in every round, as the
        paper counts; 'exact GP-UCB' is this library's, which appends a row to the factor: O(N u) for u distinct arms
        pulled. It beats BKB until u is of the order of m^2.
    """,
    panels=PANELS,
    claims=[
        Claim(
            "BKB takes a fraction of the time of GP-UCB as the paper counts it",
            Below(MANY, "bkb", ["textbook GP-UCB"], 1.0, of=seconds, what="time"),
        ),
        Claim(
            "Beyond the paper: BKB takes less time than exact GP-UCB with appended rows",
            Below(MANY, "bkb", ["exact GP-UCB"], 1.0, of=seconds, what="time"),
            because="After 300 rounds the arms pulled are far fewer than the square of the dictionary's size.",
        ),
        Claim(
            "BKB's dictionary is smaller than the set of arms pulled",
            Below(MANY, "bkb", ["exact GP-UCB"], of=last_rank, what="features"),
        ),
        Claim("BKB's regret is that of GP-UCB up to a factor of 2", Below(MANY, "bkb", ["exact GP-UCB"], 2.0)),
        Claim("Beyond the paper: BBKB takes less time than BKB", Below(MANY, "bbkb", ["bkb"], of=seconds, what="time")),
    ],
    draw=draw,
    tabulate=regret_tables,
    scale=Scale(300, 4),
    quick=Scale(40, 3),
    minutes=0.5,
)
