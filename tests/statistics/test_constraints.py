"""More of `tests.optimizer.test_constraints`, nightly."""

import numpy as np
import pytest
from tests.optimizer.test_constraints import opt, played, runs

from noregret import Float, Optimizer


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


def test_the_stated_probability_is_that_of_the_true_constraint():
    """Measured near the bound with much noise: the stated probabilities are about right."""
    said, true = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        slope, bound = rng.uniform(0.5, 2), rng.uniform(0.3, 0.7)
        opt = Optimizer({"x": Float(0, 1)}, rng=seed, constraints={"c": ("<=", slope * bound)})
        for x in rng.random(25):
            opt.tell({"x": x}, x, constraints={"c": slope * x + 0.2 * rng.standard_normal()})
        for x in np.linspace(0.1, 0.9, 9):
            said.append(opt.predict({"x": x}).feasible)
            true.append(x <= bound)
    said, true = np.array(said), np.array(true)
    assert abs(said.mean() - true.mean()) < 0.08
    assert true[said > 0.9].mean() > 0.85
    assert true[said < 0.1].mean() < 0.15
