"""A small problem on which the choice of arms must not depend on their device."""

import inspect

import numpy as np

from noregret import Policy, SquaredExponential
from noregret.algorithms import NAMES

ARMS = np.random.default_rng(1).random((60, 2))
SE = SquaredExponential(0.3)
MEANS = SE(ARMS, ARMS[[3, 14, 25, 33, 46]]) @ [-0.5, 1.0, -1.0, 0.2, 0.8]
FACTS = {
    "noise": 0.1,
    "delta": 0.1,
    "horizon": 80,
    "alpha": 1.0,
    "moment": 1.0,
    "bounds": (float(MEANS.max()) - 0.5, float(MEANS.max()) + 0.5),
    "constants": "experiment",
}


def build(name):
    """Algorithm of this name with the facts of the problem that its builder takes."""
    builder = NAMES[name]
    return builder(SE, **{k: v for k, v in FACTS.items() if k in inspect.signature(builder).parameters})


def played(algorithm, arms, rounds=60, between=None):
    """The arms that were asked for, and the policy; one reward is known at the start, so that arms do not tie.

    ``between(n)`` is called after n rounds, if given.
    """
    policy, world, asked = Policy(algorithm, arms, rng=0), np.random.default_rng(1), []
    policy.tell(7, 0.3)
    while len(asked) < rounds:
        pulls = policy.ask()
        policy.tell(pulls, MEANS[pulls] + 0.1 * world.standard_normal(len(pulls)))
        asked += pulls.tolist()
        if between is not None:
            between(len(asked))
    return asked, policy
