"""Contexts: the best arm depends on something that is shown before every round."""

from __future__ import annotations

from functools import partial

from noregret.algorithms.contexts_and_drift import cgp_ucb
from noregret.belief.kernels import Columns, KernelLike, SquaredExponential
from noregret.decision.loops import Sequential
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, ComparisonPanel, Entrant, Scale
from noregret.experiments.figures.beyond import figure
from noregret.problems import contextual

ON_ARMS = Columns(SquaredExponential(0.2), (1,))
APART = Columns(SquaredExponential(0.01), (0,)) * ON_ARMS


def ignoring(kernel: KernelLike, *, norm: float, noise: float) -> Sequential:
    """GP-UCB that does not look at the context."""
    return cgp_ucb(ON_ARMS, norm=norm, noise=noise)


def one_by_one(kernel: KernelLike, *, norm: float, noise: float) -> Sequential:
    """GP-UCB for every context apart: what was learnt in one is used only within 0.01 or so of it."""
    return cgp_ucb(APART, norm=norm, noise=noise)


PANEL = ComparisonPanel(
    "contexts",
    "A function of context and arm",
    partial(contextual, points=30, rounds=300),
    {
        "cgp-ucb": Entrant(cgp_ucb, {}),
        "no context": Entrant(ignoring, {}),
        "each context apart": Entrant(one_by_one, {}),
    },
)

FIGURE = figure(
    "contexts",
    "Contexts: CGP-UCB",
    [PANEL],
    [
        Claim(
            "Krause and Ong 2011: CGP-UCB outperforms no use of context", Below(PANEL.key, "cgp-ucb", ["no context"])
        ),
        Claim(
            "Krause and Ong 2011: CGP-UCB outperforms a naive use of context",
            Below(PANEL.key, "cgp-ucb", ["each context apart"]),
        ),
    ],
    says="""
        Krause and Ong (Contextual Gaussian process bandit optimization, NIPS 2011): context-sensitive optimization
        outperforms no or naive use of context.
    """,
    how="""
        30 arms of [0, 1], a context uniform on [0, 1] in every round, and f of known norm under the product of two
        squared exponential kernels, l = 0.2; noise of sd 0.1, the width of AY-UCB. Regret is against the best arm of
        each context. The naive use learns every context apart: its kernel has l = 0.01 on contexts.
    """,
    scale=Scale(300, 20),
    quick=Scale(80, 4),
    minutes=0.2,
)
