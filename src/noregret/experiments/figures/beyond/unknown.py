"""Unknown constants: a lengthscale four times too long, and what finds the hill that it hides."""

from __future__ import annotations

from typing import Any

import numpy as np

from noregret.algorithms.kernelized_bandits import igp_ucb
from noregret.algorithms.unknown_constants import a_gp_ucb, lb_gp_ucb
from noregret.belief.kernels import SquaredExponential
from noregret.decision.balancing import Balanced
from noregret.decision.loops import Sequential
from noregret.experiments.claims import Below, Fraction
from noregret.experiments.figure import Claim, ComparisonPanel, Entrant, Scale
from noregret.experiments.figures.beyond import figure
from noregret.problems import Gaussian, Problem, rkhs_norm
from noregret.problems.problem import Seed

FACTOR, LENGTHSCALE, NOISE = 4.0, 0.03, 0.03
LONG = SquaredExponential(FACTOR * LENGTHSCALE)


def valley(*, points: int = 200, rng: Seed = None) -> Problem:
    """A hill of height 0.6, four times as broad as one of height 1 which stands in a valley as broad."""
    generator, arms = np.random.default_rng(rng), np.linspace(0, 1, points)[:, None]
    broad, narrow = generator.uniform(0.1, 0.3), generator.uniform(0.65, 0.9)

    def hill(centre: float, width: float) -> Any:
        return np.exp(-0.5 * ((arms[:, 0] - centre) / width) ** 2)

    wide = FACTOR * LENGTHSCALE
    means = 0.6 * hill(broad, wide) - hill(narrow, wide) + 2 * hill(narrow, LENGTHSCALE)
    means = means if generator.random() < 0.5 else means[::-1]
    kernel = SquaredExponential(LENGTHSCALE)
    return Problem("valley", arms, means, kernel, Gaussian(NOISE), rkhs_norm(kernel(arms, arms), means))


def known(kernel: SquaredExponential, *, norm: float, noise: float) -> Sequential:
    """IGP-UCB with ridge R^2 and everything known."""
    return igp_ucb(kernel, norm=norm, noise=noise, ridge=noise**2)


def too_long(kernel: SquaredExponential, *, norm: float, noise: float) -> Sequential:
    """The same with a lengthscale four times too long."""
    return igp_ucb(LONG, norm=norm, noise=noise, ridge=noise**2)


def adapted(kernel: SquaredExponential, *, norm: float, noise: float) -> Balanced:
    """A-GP-UCB from the long lengthscale, with the norm that gives the right lengthscale the right one."""
    return a_gp_ucb(LONG, norm=norm / FACTOR, noise=noise)


def balanced(kernel: SquaredExponential, *, norm: float, noise: float) -> Balanced:
    """LB-GP-UCB from the long lengthscale, with the norm that gives the right lengthscale the right one."""
    return lb_gp_ucb(LONG, norm=norm / FACTOR**0.5, noise=noise)


def is_stuck(trace: Any) -> bool:
    """Whether the mean regret of the last tenth of the rounds is above 0.2, half of what the broad hill is lower."""
    return bool(trace.regret[-max(len(trace.regret) // 10, 1) :].mean() > 0.2)


def is_there(trace: Any) -> bool:
    """Whether a run is not stuck."""
    return not is_stuck(trace)


PANEL = ComparisonPanel(
    "valley",
    "A narrow hill in a valley",
    valley,
    {
        "igp-ucb": Entrant(known, {}),
        "igp-ucb, 4 times too long": Entrant(too_long, {}),
        "a-gp-ucb": Entrant(adapted, {}),
        "lb-gp-ucb": Entrant(balanced, {}),
    },
)

FIGURE = figure(
    "unknown",
    "Unknown constants: A-GP-UCB and LB-GP-UCB",
    [PANEL],
    [
        Claim(
            "Berkenkamp et al. 2019: with a wrong lengthscale GP-UCB often ends in a poor local optimum",
            Fraction(PANEL.key, "igp-ucb, 4 times too long", is_stuck, 0.1, "stuck"),
        ),
        Claim(
            "Berkenkamp et al. 2019: A-GP-UCB finds the optimum",
            Fraction(PANEL.key, "a-gp-ucb", is_there, 0.8, "not stuck"),
        ),
        Claim(
            "Ziomek et al. 2024: LB-GP-UCB finds the optimum",
            Fraction(PANEL.key, "lb-gp-ucb", is_there, 0.8, "not stuck"),
        ),
        Claim(
            "Ziomek et al. 2024: LB-GP-UCB does better than A-GP-UCB, which explores too much",
            Below(PANEL.key, "lb-gp-ucb", ["a-gp-ucb"]),
            because="""
                In one dimension and few rounds there is little to over-explore: g(2000) is 6.7, and A-GP-UCB passes the
                right lengthscale, a quarter of the longest, at round 256.
            """,
        ),
    ],
    says="""
        Berkenkamp, Schoellig and Krause (No-regret Bayesian optimization with unknown hyperparameters, JMLR 2019):
        misspecified hyperparameters often lead to poor local optima; A-GP-UCB finds the optimum without knowing them.
        Ziomek, Adachi and Osborne (Bayesian optimisation with unknown hyperparameters, NeurIPS 2024): A-GP-UCB
        over-explores; LB-GP-UCB is closer to an oracle that knows the lengthscale.
    """,
    how="""
        A broad hill, and a higher one of lengthscale 0.03 in a broad valley; 200 arms of [0, 1], noise of sd 0.03. All
        but the first take the lengthscale for 0.12 at most, with the widths of the theory. The ladders start from a
        norm that gives the right rung the true one. A
        run is stuck if the mean regret of its last tenth of rounds is above 0.2, half of what the broad hill is lower.
        'Often' is taken for more than one run in ten, 'finds' for more than eight.
    """,
    scale=Scale(2000, 40),
    quick=Scale(150, 4),
    minutes=0.4,
)
