"""REDS on a continuous box: its bounds over many seeds."""

import math

import numpy as np
import pytest
from tests.bandits.decision.test_box import LINE, ONE_AT_A_TIME, SQUARE, play, played

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


def test_without_noise_the_maximum_is_found_to_many_digits():
    """A sum of kernels of norm 1: the best point is never lost, and its value found to 1e-4."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        kernel, centres, weights = Matern(2.5, 0.3), rng.random((8, 2)), rng.standard_normal(8)
        weights /= math.sqrt(weights @ kernel(centres, centres) @ weights)

        def f(points, kernel=kernel, centres=centres, weights=weights):
            return kernel(points, centres) @ weights

        fine = np.stack(np.meshgrid(*[np.linspace(0, 1, 401)] * 2), axis=-1).reshape(-1, 2)
        top = fine[[np.argmax(f(fine))]]
        policy = Policy(algorithms.reds(kernel, norm=1.0, noise=0, first_epoch=40), SQUARE, rng=seed)
        regions = play(policy, f, 300)
        assert all(region.contains(top)[0] for region in regions[:2])
        best = policy.best()
        assert f(best.arm[None])[0] >= f(top)[0] - 1e-4
        assert best.lower - 1e-6 <= f(best.arm[None])[0] <= best.upper + 1e-6


@pytest.mark.parametrize("name", ONE_AT_A_TIME)
def test_a_point_at_a_time_finds_the_hill_and_continues_from_a_file(name, tmp_path):
    algorithm = ONE_AT_A_TIME[name]
    policy = played(Policy(algorithm, LINE, rng=0), 40)
    best = policy.best()
    assert best.lower <= 1.0 <= best.upper
    assert best.arm == pytest.approx([1.3], abs=0.1)
    asked = policy.ask()
    assert asked.shape[1] == 1
    assert LINE.contains(asked).all()
    policy.save(tmp_path / "policy.npz")
    loaded = Policy.load(tmp_path / "policy.npz")
    assert (loaded.ask() == asked).all()
    assert (played(loaded, 45).ask() == played(policy, 45).ask()).all()
