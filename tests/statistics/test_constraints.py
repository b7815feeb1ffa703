"""More of `tests.optimizer.test_constraints`, nightly."""

import numpy as np
from tests.optimizer.test_constraints import opt, played


def test_a_tiny_feasible_region_is_looked_for_before_anything_else():
    """3 % of the square; 40 random questions find it in 70 % of the runs, but once."""

    def distance(params):
        return (params["x"] - 0.75) ** 2 + (params["y"] - 0.35) ** 2

    hits = []
    for seed in range(2):
        opt = played(40, seed, noise=0.005, told=distance, constraints={"near": ("<=", 0.01)})
        hits.append(sum(distance(m.params) <= 0.01 for m in opt.measurements))
        assert distance(opt.best().params) <= 0.015
    assert np.mean(hits) > 8
