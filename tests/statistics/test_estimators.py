"""Robust estimators with every rule and kind of features: they find a good arm despite spikes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bandits.belief import test_estimators
from tests.bandits.belief.test_estimators import (
    ALGEBRA,
    ANY,
    FEATURES,
    QFF,
    ROBUST,
    SE,
    SEEDS,
    check_despite_spikes,
    data,
    level,
    one_thread,
    plain_truncation,
    told,
)

from noregret import (
    UCB,
    Constant,
    ExpectedImprovement,
    LeastSquares,
    Nystrom,
    Thompson,
    TruncatedDirections,
    TruncatedRewards,
)

one_thread = test_estimators.one_thread


@pytest.mark.parametrize("rule", [UCB(Constant(1.0)), Thompson(Constant(0.5)), ExpectedImprovement()])
@pytest.mark.parametrize("estimator", ANY)
@pytest.mark.parametrize("features", [QFF, Nystrom(SE, 5.0)])
def test_every_estimator_works_with_every_rule_and_feature(features, estimator, rule):
    check_despite_spikes(features, estimator, rule)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ANY)
def test_every_estimator_finds_a_good_arm_despite_spikes(estimator):
    check_despite_spikes(QFF, estimator, UCB(Constant(1.0)))


@ALGEBRA
@given(SEEDS, st.sampled_from(FEATURES), st.sampled_from(["symmetric", "cholesky"]))
def test_truncated_directions_equal_the_plain_sum_over_the_history(seed, features, root):
    pulls, rewards, noise = data(seed)
    belief = told(TruncatedDirections(level, root), features, pulls, rewards, noise)
    expected = plain_truncation(belief, pulls, rewards, noise, level(belief), root)
    np.testing.assert_allclose(belief.mean, expected, rtol=1e-8, atol=1e-8)
    least_squares = told(LeastSquares(), features, pulls, rewards, noise)
    assert np.abs(belief.mean - least_squares.mean).max() > 1e-3


@pytest.mark.parametrize("size", [1e300, -1e300, 1.7e308, -1e101])
@pytest.mark.parametrize("when", [0, 3, 40])
@pytest.mark.parametrize("features", [QFF, Nystrom(SE, 3.0)])
@pytest.mark.parametrize("estimator", ROBUST, ids=lambda e: type(e).__name__ + getattr(e, "root", ""))
def test_an_absurd_reward_does_bounded_harm(estimator, features, when, size):
    """Against the same run with 0 in its place, by the amount that the estimator states; warnings are errors here."""
    pulls, rewards, _ = data(6, size=60, dof=3)
    wild, tame = rewards.copy(), rewards.copy()
    wild[when], tame[when] = size, 0.0
    one, two = (told(estimator, features, pulls, y, pieces=range(1, 60)) for y in (wild, tame))
    moved, (m, t) = np.abs(one.mean - two.mean), (one.rank, one.rounds)
    assert np.isfinite(one.mean).all()
    match estimator:
        case TruncatedRewards():
            assert moved.max() == 0
        case TruncatedDirections():
            assert (moved <= level(one) * math.sqrt(m / 0.7) * one.std + 1e-9).all()
        case _:
            assert moved.max() < 3
    assert (one.rounds, one.information_gain) == (t, two.information_gain)
