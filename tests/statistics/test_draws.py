"""More of `tests.bandits.belief.test_draws`, nightly."""

import math

import numpy as np
import pytest
from tests.bandits.belief.test_draws import KERNELS, POINTS, SE, many

from noregret import ExactGP, Matern, Nystrom, SparseGP
from noregret.bandits.belief.draws import waves


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_waves_have_the_priors_covariance(many, kernel):
    """1500 draws: every entry within 5.5 standard errors, which are sqrt(2 / 1500) of the variance at most."""
    rng = np.random.default_rng(1)
    drawn = np.array([waves(kernel, POINTS, rng) for _ in range(1500)])
    expected = kernel(POINTS, POINTS)
    assert np.abs(drawn.T @ drawn / 1500 - expected).max() < 5.5 * math.sqrt(2 / 1500) * expected.max()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SE, Matern(1.5, 0.3), Matern(0.5, 0.3)], ids=str)
@pytest.mark.parametrize("model", ["exact", "sketch"])
def test_draws_have_the_posteriors_law(many, kernel, model):
    """2500 draws after 300 pulls, f some tenth of its prior std: mean and covariance, and every arm's quantiles.

    In units of the std, entries of the covariance have a standard error of sqrt(2 / 2500) = 0.03 if all is Gaussian.
    Shares below a quantile have one of 0.01 at most; they are off by up to 0.04, since the law is not quite Gaussian.
    """
    features = Nystrom(kernel, 2.0, root="cholesky", coins="kept")
    belief = (ExactGP(kernel, 0.01) if model == "exact" else SparseGP(features, 0.01)).prior(POINTS)
    rng, everywhere, count = np.random.default_rng(3), np.arange(len(POINTS)), 2500
    belief.update(rng.integers(0, 15, 300), rng.standard_normal(300))
    drawn = (np.array([belief.sample(rng) for _ in range(count)]) - belief.mean) / belief.std
    correlation = belief.covariance(everywhere, everywhere) / np.outer(belief.std, belief.std)
    assert np.abs(drawn.mean(axis=0)).max() < 5 / math.sqrt(count)
    assert np.abs(drawn.T @ drawn / count - correlation).max() < 0.17
    for share, quantile in ((0.05, -1.6449), (0.25, -0.6745), (0.5, 0.0), (0.75, 0.6745), (0.95, 1.6449)):
        assert np.abs((drawn < quantile).mean(axis=0) - share).max() < 0.06
