"""Confidence sequences against direct computation."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from noregret.comparison import bounded_sequence, catoni_sequence, median_sequence
from noregret.comparison.sequences import log_stake, losses_allowed


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (7, 0), (0, 7), (5, 3), (30, 12)])
def test_the_stake_is_the_mean_of_bets_on_a_win(wins, losses):
    """2^n p^w (1 - p)^l under the density of Beta(1/2, 1/2) on p > 1/2; p = sin^2 makes it uniform."""
    stake, _ = quad(
        lambda angle: 2 ** (wins + losses) * math.sin(angle) ** (2 * wins) * math.cos(angle) ** (2 * losses),
        math.pi / 4,
        math.pi / 2,
    )
    assert math.exp(log_stake(wins, losses)) == pytest.approx(stake * 4 / math.pi)


def test_the_stake_of_a_fair_coin_does_not_grow_on_average():
    for wins, losses in [(0, 0), (3, 0), (4, 9), (50, 20)]:
        after = [math.exp(log_stake(*state)) for state in ((wins + 1, losses), (wins, losses + 1))]
        assert np.mean(after) == pytest.approx(math.exp(log_stake(wins, losses)))


def test_the_losses_allowed_are_the_most_that_refute():
    for count in (7, 50, 1000):
        for confidence in (0.8, 0.95, 0.999):
            stakes = np.array([log_stake(count - losses, losses) for losses in range(count + 1)])
            assert (np.diff(stakes) < 0).all()
            assert losses_allowed(count, confidence) == int((stakes >= math.log(2 / (1 - confidence))).sum()) - 1


def test_the_median_is_between_order_statistics():
    values = np.random.default_rng(0).permutation(50.0 + np.arange(200))
    k = losses_allowed(200, 0.9)
    assert median_sequence(values, 0.9) == (149.5, 50 + k, 249 - k)
    assert median_sequence(values[:3]) == (np.median(values[:3]), -math.inf, math.inf)
    assert math.isnan(median_sequence([])[0])


@pytest.mark.parametrize("moment", [2.0, 1.5])
def test_catonis_interval_holds_the_means_that_are_not_refuted(moment):
    values = np.random.default_rng(1).standard_t(3, size=200)
    estimate, lower, upper = catoni_sequence(values, 1.8, 0.9, moment)
    counts, risk = np.arange(1, 201), math.log(20)
    rates = np.minimum((moment * risk / ((moment - 1) * counts * np.log(1 + counts))) ** (1 / moment), 1) / 1.8
    most = ((rates * 1.8) ** moment / moment).sum() + risk
    for mean, total in ((estimate, 0.0), (lower, most), (upper, -most)):
        z = rates * (values - mean)
        assert (np.sign(z) * np.log(1 + np.abs(z) + np.abs(z) ** moment / moment)).sum() == pytest.approx(
            total, abs=1e-6
        )


def test_an_outlier_moves_catonis_interval_by_little():
    """It would move the mean of 501 values by 2000."""
    values = np.random.default_rng(2).standard_normal(500)
    ends = np.array([catoni_sequence(np.append(values, far), 2.0)[1:] for far in (1e3, 1e6)])
    assert np.ptp(ends, axis=0).max() < 1


@pytest.mark.parametrize("given", [{"spread": 0.0}, {"spread": math.nan}, {"spread": 1.0, "moment": 1.0}])
def test_catonis_constants_are_checked(given):
    with pytest.raises(ValueError, match=list(given)[-1]):
        catoni_sequence([1.0], **given)


@pytest.mark.parametrize("counts", [(7, 0), (5, 3), (30, 12)])
def test_the_bets_on_bounded_values_are_those_on_signs(counts):
    """Values 0 and 1 and the mean 1/2: the stake that `log_stake` has in closed form."""
    shares, target = np.repeat([1.0, 0.0], counts), log_stake(*counts)
    least = bounded_sequence(shares, confidence=1 - 2 * math.exp(-target))[1]
    assert least == pytest.approx(0.5, abs=0.002)


def test_a_bounded_mean_is_known_better_than_by_hoeffdings_bound():
    """Robbins' mixture for a standard deviation of half the range, at its best for 100 values, is wider."""
    rng = np.random.default_rng(0)
    variance, best = 200 / 4, 100 / 4 / 8
    hoeffding = 2 * math.sqrt((variance + best) * (math.log((variance + best) / best) + 2 * math.log(40))) / 200
    for values, most in ((rng.random(200) < 0.02, 0.6), (rng.random(200), 0.7), (rng.random(200) < 0.5, 1.05)):
        _, lower, upper = bounded_sequence(values)
        assert upper - lower < most * hoeffding
    assert bounded_sequence(np.zeros(1000), -1, 1)[2] < 0.005


def test_bounds_of_a_sequence_are_checked():
    assert bounded_sequence([], -1, 1)[1:] == (-1, 1)
    with pytest.raises(ValueError, match=r"values must be from 0 to 1, got 0.5 to 1.5: widen the bounds"):
        bounded_sequence([0.5, 1.5], 0, 1)
    with pytest.raises(ValueError, match="low must be below high"):
        bounded_sequence([0.5], 1, 0)
