"""Catoni's mean in elimination: the influence function, the mean and its bound by hand, coverage, absurd rewards."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from noregret import Box, Policy, SquaredExponential
from noregret.algorithms import catoni_bpe, catoni_reds, reds
from noregret.bandits.algorithms.catoni import CatoniWidth
from noregret.bandits.algorithms.heavy_tails import Tail
from noregret.bandits.belief.robust import LADDER, CatoniGP
from noregret.gp.influence import influence
from noregret.testing import check_model

SE = SquaredExponential(0.2)
ARMS = np.random.default_rng(0).random((12, 1))


def constant_events(belief):
    """l = 4, whatever the belief."""
    return 4.0


@pytest.mark.parametrize("alpha", [1.0, 0.9, 0.5, 0.1, 1e-3])
def test_the_influence_function_is_what_the_proof_needs(alpha):
    """exp(psi(z)) <= 1 + z + |z|^p / p and exp(-psi(z)) <= 1 - z + |z|^p / p, from tiny to huge z of both signs."""
    p, size = 1 + alpha, np.concatenate([np.geomspace(1e-8, 1e4, 4001), np.linspace(0.5, 5, 4001)])
    for z in (size, -size):
        most = 1 + z + np.abs(z) ** p / p
        assert (np.exp(influence(z, alpha)) <= most * (1 + 1e-12)).all()
        np.testing.assert_allclose(influence(-z, alpha), -influence(z, alpha))
    assert np.isfinite(influence(np.array([1e300, -1e300]), alpha)).all()


def direct(points, noise, arms, ridge, alpha, norm=1.5, moment=0.02, events=4.0):
    """Weights (n, N), and the two parts of the half-widths (N,), by solving for every pull on its own."""
    p, K, columns = 1 + alpha, SE(points, points), SE(points, arms)
    weights = np.linalg.solve(K + ridge * np.diag(noise), columns)
    bias = np.sqrt(SE.diag(arms) - 2 * (weights * columns).sum(axis=0) + (weights * (K @ weights)).sum(axis=0))
    size = (np.abs(weights) ** p).sum(axis=0) ** (1 / p)
    return weights, norm * bias, moment ** (1 / p) * (p * events / alpha) ** (alpha / p) * size


@pytest.mark.parametrize("alpha", [1.0, 0.6])
def test_mean_and_half_widths_are_those_of_the_best_weights_of_all_pulls(alpha):
    rng = np.random.default_rng(1)
    pulls, rewards, noise = rng.integers(12, size=30), rng.standard_t(2, 30), 1 + rng.random(30)
    belief = CatoniGP(SE, 0.7, 1.5, 0.02, alpha, constant_events).prior(ARMS)
    np.testing.assert_allclose(belief.half_widths, 1.5)
    belief.update(pulls[:7], rewards[:7], noise=noise[:7])
    belief.update(pulls[7:], rewards[7:], noise=noise[7:])
    points, p = ARMS[pulls], 1 + alpha
    unit = 0.02 ** (2 / p) / 1.5**2 * 30 ** ((1 - alpha) / p)
    found = [direct(points, noise, ARMS, ridge, alpha) for ridge in (0.7, *(unit * LADDER))]
    halves = np.array([bias + part for _, bias, part in found])
    assert len(set(halves.argmin(axis=0))) > 1
    np.testing.assert_allclose(belief.half_widths, halves.min(axis=0), rtol=1e-3)
    for arm, best in enumerate(halves.argmin(axis=0)):
        weights = found[best][0][:, arm]
        theta = (4 * p / (alpha * 0.02 * (np.abs(weights) ** p).sum())) ** (1 / p)
        expected = influence(theta * weights * rewards, alpha).sum() / theta
        np.testing.assert_allclose(belief.mean[arm], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(belief.predict(ARMS[:3])[0], belief.mean[:3])
    width = CatoniWidth(1.5, Tail(0.02, alpha), constant_events)
    assert (belief.half_widths <= width(belief) * belief.std * (1 + 1e-6)).all()


def test_the_width_by_hand():
    """alpha = 1: sqrt(B^2 + 2 v l / ridge); alpha = 1/2 after 16 rewards: c = (v 2)^(2/3) (3 l)^(1/3)."""
    now = SimpleNamespace(ridge=0.5, rounds=16)
    assert CatoniWidth(2.0, Tail(3.0), constant_events)(now) == pytest.approx(math.sqrt(4 + 2 * 3 * 4 / 0.5))
    c = (3.0 * 2) ** (2 / 3) * (3 * 4) ** (1 / 3)
    assert CatoniWidth(2.0, Tail(3.0, 0.5), constant_events)(now) == pytest.approx(math.sqrt(4 + c**2 / 0.5))
    assert CatoniWidth(2.0, Tail(3.0), constant_events, scale=0.0)(now) == 2.0


def test_without_outliers_and_with_a_generous_moment_it_is_least_squares():
    """As v and B grow, theta goes to 0 and psi(z) to z: every arm has least squares with one of the ridges."""
    rng = np.random.default_rng(2)
    pulls, rewards = rng.integers(12, size=30), rng.standard_normal(30)
    belief = CatoniGP(SE, 0.7, 1e6, 1e12, 1.0, constant_events).prior(ARMS)
    belief.update(pulls, rewards)
    means = []
    for ridge in (0.7, *LADDER):
        plain = reds(SE, ridge=ridge).model.prior(ARMS)
        plain.update(pulls, rewards)
        means.append(plain.mean)
    np.testing.assert_allclose(np.abs(np.array(means) - belief.mean).min(axis=0), 0, atol=2e-3)


def test_the_belief_keeps_the_contract():
    check_model(CatoniGP(SE, 0.5, 1.0, 2.0, 1.0, constant_events), ARMS, linear=False)


def test_one_absurd_reward_moves_the_mean_by_little():
    rng = np.random.default_rng(3)
    pulls, rewards = rng.integers(12, size=200), rng.standard_normal(200)
    means = []
    for reward in (rewards[0], 1e12, 1e300):
        belief = CatoniGP(SE, 1.0, 1.0, 1.0, 1.0, constant_events).prior(ARMS)
        belief.update(pulls, np.concatenate([[reward], rewards[1:]]))
        means.append(belief.mean)
    assert np.abs(means[1] - means[0]).max() < 5  # of the order of ln(1e24) / theta
    assert np.isfinite(means[2]).all()


@pytest.mark.parametrize("build", [catoni_reds, catoni_bpe])
def test_a_box_is_refused(build):
    with pytest.raises(ValueError, match="need finitely many arms"):
        Policy(build(SE, horizon=100), Box([[0, 1]]), rng=0).ask()


def test_a_planned_epoch_leaves_the_mean_alone():
    belief = CatoniGP(SE, 1.0, 1.0, 1.0, 1.0, constant_events).prior(ARMS)
    belief.update([0, 1], [1.0, 2.0])
    before = belief.mean.copy()
    belief.update([2, 3, 3])
    np.testing.assert_array_equal(belief.mean, before)
