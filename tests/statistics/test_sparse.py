"""The sparse posterior: accuracy of its sketches, and rounding errors over tens of thousands of rounds."""

import numpy as np
import pytest
from tests.bandits.belief import test_sparse
from tests.bandits.belief.test_sparse import EXACT, GRID, direct, told

from noregret import (
    ExactGP,
    Nystrom,
    SparseGP,
    SquaredExponential,
)

one_thread = test_sparse.one_thread


def test_twenty_thousand_rank_one_changes_lose_nothing():
    """At a ridge so small that V^-1 would drift by 6e-8 without periodic recomputation."""
    rng = np.random.default_rng(0)
    belief = SparseGP(EXACT[0], 1e-4).prior(GRID)
    pulls, rewards = rng.integers(40, size=20_000), rng.standard_normal(20_000)
    for arm, reward in zip(pulls, rewards, strict=True):
        belief.update(arm, reward)
    expected = direct(belief, pulls, rewards, np.ones(20_000))
    np.testing.assert_allclose(belief.mean, expected["mean"], atol=1e-8)
    np.testing.assert_allclose(belief.std, expected["std"], rtol=1e-8)
    assert belief.information_gain == pytest.approx(expected["information_gain"], rel=1e-8)


def test_a_sketch_keeps_the_variance_within_its_factor_and_the_subset_starves():
    """With q = 5 the variance is within 3 of the exact one; the subset of regressors loses it away from the data."""
    kernel, arms = SquaredExponential(0.05), np.linspace(0, 1, 200)[:, None]
    pulls = np.random.default_rng(0).integers(100, size=400)
    exact = ExactGP(kernel, 1.0).prior(arms)
    exact.update(pulls, np.zeros(400))
    sketch, starved = (
        told(Nystrom(kernel, 5.0, variance=variance), 1.0, pulls, np.zeros(400), pieces=[1] * 399, arms=arms)
        for variance in ("full", "subset-of-regressors")
    )
    ratio = sketch.std**2 / exact.std**2
    assert ratio.min() > 1 / 3
    assert ratio.max() < 3
    assert sketch.rank < 0.7 * len(sketch.pulled)
    assert starved.std[-1] < 1e-3 < 0.9 < sketch.std[-1]
