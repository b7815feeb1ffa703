"""Drift: a function that walks, one that jumps, and four ways to forget."""

from __future__ import annotations

from functools import partial
from typing import Any

from noregret.algorithms.contexts_and_drift import r_gp_ucb, sw_gp_ucb, tv_gp_ucb, wgp_ucb
from noregret.algorithms.tighter_widths import ay_ucb
from noregret.experiments.claims import Below
from noregret.experiments.figure import Claim, ComparisonPanel, Entrant, Scale
from noregret.experiments.figures.beyond import figure
from noregret.problems import jump, walk

ROUNDS, MEMORY = 400, 100
SETTINGS: dict[str, Any] = {"scale": 0.4}
ENTRANTS = {
    "ay-ucb": Entrant(ay_ucb, SETTINGS),
    "tv-gp-ucb": Entrant(tv_gp_ucb, SETTINGS | {"rate": 2 / MEMORY}),
    "sw-gp-ucb": Entrant(sw_gp_ucb, SETTINGS | {"window": MEMORY}),
    "r-gp-ucb": Entrant(r_gp_ucb, SETTINGS | {"period": MEMORY}),
    "wgp-ucb": Entrant(wgp_ucb, SETTINGS | {"discount": 1 - 2 / MEMORY}),
}
WALK = ComparisonPanel("walk", "A random walk", partial(walk, rate=2 / MEMORY, points=30, rounds=ROUNDS), ENTRANTS)
JUMP = ComparisonPanel("jump", "One jump", partial(jump, points=30, rounds=ROUNDS), ENTRANTS)

FIGURE = figure(
    "drift",
    "Drift: TV-, SW-, R- and WGP-UCB",
    [WALK, JUMP],
    [
        Claim(
            "Bogunovic et al. 2016, a random walk: TV-GP-UCB outperforms GP-UCB",
            Below(WALK.key, "tv-gp-ucb", ["ay-ucb"]),
        ),
        Claim(
            "Bogunovic et al. 2016, a random walk: resets outperform GP-UCB",
            Below(WALK.key, "r-gp-ucb", ["ay-ucb"]),
        ),
        Claim(
            "Bogunovic et al. 2016, a random walk: gradual forgetting performs better than resets",
            Below(WALK.key, "tv-gp-ucb", ["r-gp-ucb"]),
        ),
        Claim(
            "Zhou and Shroff 2021, one jump: a window does better than GP-UCB", Below(JUMP.key, "sw-gp-ucb", ["ay-ucb"])
        ),
        Claim(
            "Zhou and Shroff 2021, one jump: restarts do better than GP-UCB", Below(JUMP.key, "r-gp-ucb", ["ay-ucb"])
        ),
        Claim(
            "Deng et al. 2022, one jump: WGP-UCB does better than a window and restarts",
            Below(JUMP.key, "wgp-ucb", ["sw-gp-ucb", "r-gp-ucb"]),
            because="""
                Its std counts squared weights, which at a discount of 0.98 are worth 25 rewards, and so it explores
                more than those that remember up to 100.
            """,
        ),
        Claim(
            "Deng et al. 2022, a random walk: WGP-UCB does better than a window and restarts",
            Below(WALK.key, "wgp-ucb", ["sw-gp-ucb", "r-gp-ucb"]),
        ),
    ],
    says="""
        Bogunovic, Scarlett and Cevher (Time-varying Gaussian process bandit optimization, AISTATS 2016): forgetting
        gradually performs favourably compared to resetting, and both significantly outperform GP-UCB. Zhou and Shroff
        (No-regret algorithms for time-varying Bayesian optimization, CISS 2021): restarts and a sliding window bound
        the dynamic regret. Deng et al. (Weighted Gaussian process bandits for non-stationary environments, AISTATS
        2022): weights have favourable gains in many cases when compared to existing methods.
    """,
    how="""
        30 arms of [0, 1], squared exponential kernel, l = 0.2, noise of sd 0.1; dynamic regret, against the best arm of
        every round. The walk renews 2 % of its variance in every round, the jump is to another function in the middle.
        Window and period 100, rate 0.02, discount 0.98. GP-UCB is AY-UCB, which never forgets; the noise part of
        every width is multiplied by 0.4, which for TV-GP-UCB is about the width that its authors ran. That a window and
        restarts do better than GP-UCB is our reading of a theorem.
    """,
    scale=Scale(ROUNDS, 20),
    quick=Scale(ROUNDS, 3),
    minutes=0.5,
)
