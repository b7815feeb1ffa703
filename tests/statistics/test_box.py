"""REDS on a continuous box: its bounds over many seeds."""

import math

import numpy as np
from tests.decision.test_box import play

from noregret import Box, Matern, Policy, algorithms


def test_the_theorys_bounds_hold_under_noise():
    """delta = 0.1: max f in [lower bound of the best, its upper bound], and one of its maximisers is kept, 10 runs."""
    held = 0
    for seed in range(10):
        reds = algorithms.reds(Matern(2.5, 0.5), norm=3, noise=0.05, horizon=400)
        policy = Policy(reds, Box([[0, 3]]), rng=seed)
        regions = play(policy, lambda p: np.sin(2 * p[:, 0]), 150, sd=0.05, seed=seed)
        best = policy.best()
        held += best.lower <= math.sin(2 * best.arm[0]) <= best.upper and regions[-1].contains([[np.pi / 4]])[0]
        assert regions[-1].contains([[2.4]])[0] == (len(regions) == 1)
    assert held >= 9
