"""The exact posterior: the law of its samples, and rounding errors over tens of thousands of rounds."""

import numpy as np
import pytest
from tests.bandits.belief import test_exact
from tests.bandits.belief.test_exact import GRID, Direct, assert_knows

from noregret import ExactGP, Matern, SquaredExponential

one_thread = test_exact.one_thread


@pytest.mark.parametrize("in_a_row", [1, 400])
def test_thirty_thousand_rounds_lose_nothing(in_a_row):
    """Heavy repetition on 100 arms, mixed with blocks: still 1e-8 of a direct solve on the pooled system."""
    rng, ridge, kernel = np.random.default_rng(0), 0.01, SquaredExponential(0.2)
    belief = ExactGP(kernel, ridge).prior(GRID)
    counts, sums, squares = np.zeros(100), np.zeros(100), np.zeros(100)
    while belief.rounds < 30_000:
        pulls = (100 * rng.random(int(rng.choice([1] * 19 + [40]))) ** 3).astype(int)
        for _ in range(in_a_row if pulls.size == 1 else 1):
            rewards = np.sin(5 * GRID[pulls, 0]) + rng.standard_normal(pulls.size)
            belief.update(pulls, rewards)
            np.add.at(counts, pulls, 1)
            np.add.at(sums, pulls, rewards)
            np.add.at(squares, pulls, rewards**2)
    seen = np.flatnonzero(counts)
    pooled = Direct(kernel, GRID, seen, sums[seen] / counts[seen], ridge / counts[seen])
    pooled.misfit += (squares - sums**2 / np.maximum(counts, 1)).sum() / ridge
    assert_knows(belief, pooled)
    np.testing.assert_allclose(np.transpose(belief.predict(GRID)), np.transpose((pooled.mean, pooled.std)), atol=1e-7)
    assert belief.rounds == counts.sum()


@pytest.mark.parametrize("ridge", [0.1, 0.0], ids=["noisy", "noise-free"])
@pytest.mark.parametrize("rounds", [0, 8, 120])
def test_samples_have_the_posteriors_mean_and_covariance(ridge, rounds):
    """20,000 draws; each moment within 5 of its standard errors. Covariances too: a draw is joint."""
    rng, kernel, draws = np.random.default_rng(5), Matern(2.5, 0.4), 20_000
    arms = rng.random((8, 1))
    pulls, rewards = rng.integers(5, size=rounds), rng.standard_normal(rounds)
    belief = ExactGP(kernel, ridge).prior(arms)
    for pull, reward in zip(pulls, rewards, strict=True):
        belief.update(pull, reward)
    if not ridge:
        pulls, first = np.unique(pulls, return_index=True)
        rewards = rewards[first]
    direct = Direct(kernel, arms, pulls, rewards, np.full(len(pulls), belief.ridge))
    samples = np.array([belief.sample(rng) for _ in range(draws)])
    variance = np.maximum(direct.covariance.diagonal(), 0)
    error = np.sqrt(variance / draws)
    assert (np.abs(samples.mean(axis=0) - direct.mean) <= 5 * error + 1e-6).all()
    error = np.sqrt((np.outer(variance, variance) + direct.covariance**2) / draws)
    assert (np.abs(np.cov(samples.T) - direct.covariance) <= 5 * error + 1e-6).all()
