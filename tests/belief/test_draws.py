"""Joint samples on many arms: the law of the waves, before and after pulls, on the exact posterior and on a sketch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from noregret import ExactGP, Linear, Matern, Nystrom, RationalQuadratic, SparseGP, SquaredExponential
from noregret.belief.numerics import draws
from noregret.belief.numerics.draws import PriorDraws, spectral_frequencies, waves

SE = SquaredExponential(0.3)
KERNELS = [
    SE,
    SquaredExponential((0.2, 0.7)),
    Matern(0.5, 0.4),
    Matern(2.5, (0.3, 0.5)),
    RationalQuadratic(0.8, 0.3),
    2.5 * Matern(1.5, 0.3),
    0.5 * SE + 2.0 * Matern(1.5, 0.1),
    SE * RationalQuadratic(1.0, 0.5),
]
POINTS = np.random.default_rng(0).random((25, 2))


@pytest.fixture
def many(monkeypatch):
    """Every number of arms counts as many, and a draw is a sum of 128 waves, as it is on a million arms."""
    monkeypatch.setattr(draws, "ROOT_ARMS", 0)
    monkeypatch.setattr("noregret.belief.exact.FEW_ARMS", 0)
    monkeypatch.setattr(draws, "MOST", 128)


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


@pytest.mark.parametrize("model", [ExactGP(SE, 0.1), SparseGP(Nystrom(SE, 2.0), 0.1)], ids=["exact", "sketch"])
def test_many_arms_need_no_matrix_of_all_of_them(model, monkeypatch):
    arms, asked = np.random.default_rng(0).random((3000, 2)), []
    belief = model.prior(arms)
    belief.update([0, 7, 7], [1.0, 2.0, 3.0])
    kernel = SquaredExponential.__call__
    monkeypatch.setattr(
        SquaredExponential, "__call__", lambda self, X, Y: (asked.append(len(X) * len(Y)), kernel(self, X, Y))[1]
    )
    draw = belief.sample(np.random.default_rng(1))
    assert draw.shape == (3000,)
    assert sum(asked) < 3000 * 10
    assert not np.array_equal(draw, belief.sample(np.random.default_rng(2)))
    assert np.array_equal(draw, belief.sample(np.random.default_rng(1)))


def test_kernels_without_a_spectral_law_keep_their_root(many):
    drawn = PriorDraws(Linear(0.1) + SE, POINTS)
    assert drawn.draw(np.random.default_rng(0)).shape == (25,)
    assert drawn._root is not None
    with pytest.raises(ValueError, match="no spectral density is known for Linear"):
        spectral_frequencies(Linear(), 5, 2, np.random.default_rng(0))


def test_blocks_of_arms_are_waves_of_one_draw():
    """Arms that are there twice, in blocks far apart, get the same value."""
    arms = np.random.default_rng(0).random((2500, 3))
    draw = waves(Matern(0.5, 0.2), np.vstack([arms, arms]), np.random.default_rng(0))
    np.testing.assert_allclose(draw[:2500], draw[2500:], atol=1e-9)


def test_rough_kernels_have_finite_draws():
    assert np.isfinite(
        waves(Matern(0.01, 0.1), np.random.default_rng(0).random((3000, 2)), np.random.default_rng(0))
    ).all()


def test_the_cosine_is_right_to_rounding():
    turns = np.random.default_rng(0).uniform(-50, 50, 10_000)
    np.testing.assert_allclose(draws._cosine(turns.copy()), np.cos(2 * np.pi * turns), atol=1e-12)
