"""Joint samples on many arms: the law of the waves, before and after pulls, on the exact posterior and on a sketch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from noregret import ExactGP, Linear, Matern, Nystrom, RationalQuadratic, SparseGP, SquaredExponential
from noregret.bandits.belief import draws
from noregret.bandits.belief.draws import PriorDraws, spectral_frequencies, waves

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
    monkeypatch.setattr("noregret.bandits.belief.exact.FEW_ARMS", 0)
    monkeypatch.setattr(draws, "MOST", 128)


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


@pytest.mark.slow
def test_a_drawn_function_has_the_mean_and_the_covariance_of_the_posterior():
    """Over 3000 draws, to 5 standard errors; twice the scale doubles the deviation from the mean."""
    arms, points = np.linspace(0, 1, 30)[:, None], np.array([[0.11], [0.12], [0.5], [0.93]])
    belief = ExactGP(SquaredExponential(0.2), 0.1).prior(np.vstack([arms, points]))
    belief.update([3, 3, 10, 28], [1.0, 2.0, -1.0, 0.5])
    places, rng = np.arange(30, 34), np.random.default_rng(0)
    draws = np.array([belief.sample_function(rng, 2.0)(points) for _ in range(3000)])
    covariance = 4 * belief.covariance(places, places)
    std = np.sqrt(covariance.diagonal())
    assert np.abs(draws.mean(axis=0) - belief.mean[places]).max() < 5 * std.max() / math.sqrt(3000)
    error = np.abs(np.cov(draws.T) - covariance) / np.outer(std, std)
    assert error.max() < 5 * math.sqrt(2 / 3000)
    again = [belief.sample_function(np.random.default_rng(7))(points) for _ in range(2)]
    assert (again[0] == again[1]).all()
