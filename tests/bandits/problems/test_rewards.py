"""Reward models: their distributions and moments, and the same noise for all algorithms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from noregret.problems import Gaussian, Glitch, Pareto, Payoff, Resampled, Spikes, Stable, StudentT, TwoPoint

MEANS = np.array([0.3, 1.0, 0.05, 0.7])
TABLE = np.random.default_rng(7).exponential(MEANS, size=(50, 4))
MODELS: list[Payoff] = [
    Gaussian(0.5),
    StudentT(3),
    StudentT(2.5, scale=0.3),
    Spikes(0.2, 0.1, 5.0),
    Stable(1.5, 0.4),
    Glitch(1, 10.0),
    Pareto(2),
    TwoPoint(4.0, alpha=0.5),
    Resampled(TABLE),
]
SEEDS = range(4)


def means_of(model: Payoff) -> np.ndarray:
    return model.means if isinstance(model, Resampled) else MEANS


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_batch_draws_what_single_pulls_draw(model: Payoff) -> None:
    means, arms = means_of(model), np.array([0, 1, 1, 3, 2, 0, 1, 1, 1, 2] * 5)
    rng = np.random.default_rng(3)
    single = np.concatenate([model.draw(means, arms[i : i + 1], rng) for i in range(len(arms))])
    np.testing.assert_array_equal(single, model.draw(means, arms, np.random.default_rng(3)))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_arms_do_not_change_the_noise_to_come(model: Payoff) -> None:
    means, left, right = means_of(model), np.random.default_rng(5), np.random.default_rng(5)
    first, second = model.draw(means, np.full(31, 1), left), model.draw(means, np.full(31, 2), right)
    assert left.bit_generator.state == right.bit_generator.state
    if isinstance(model, Gaussian | StudentT | Spikes | Stable):
        np.testing.assert_allclose(first - means[1], second - means[2], atol=1e-12)


@pytest.mark.parametrize("shape", [2.5, 3.0, 10.0])
def test_the_deviation_of_pareto_rewards_is_that_of_scipy(shape):
    expected = stats.pareto(shape, scale=MEANS.max() * (1 - 1 / shape)).std()
    assert Pareto(shape).deviation(MEANS) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", [Gaussian(0.5), Spikes(0.2, 0.1, 5.0), Glitch(1, 10.0), TwoPoint(4.0), MODELS[-1]])
def test_mean_and_deviation(model: Payoff, seed: int) -> None:
    """Within 5 standard errors, and for the deviation within 5%, on 40000 draws of the noisiest arm."""
    means, n = means_of(model), 40_000
    y = model.draw(means, np.full(n, 1), np.random.default_rng(seed))
    deviation = model.deviation(means)
    assert abs(y.mean() - means[1]) < 5 * deviation / math.sqrt(n)
    assert y.std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("model", "law"),
    [
        (Gaussian(0.5), stats.norm(0.7, 0.5)),
        (StudentT(3), stats.t(3, loc=0.7)),
        (StudentT(2.5, scale=0.3), stats.t(2.5, loc=0.7, scale=0.3)),
        (Pareto(2), stats.pareto(2, scale=0.35)),
        (Pareto(1.5), stats.pareto(1.5, scale=0.7 / 3)),
    ],
)
def test_whole_distribution(model: Payoff, law: stats.rv_continuous, seed: int) -> None:
    """Kolmogorov-Smirnov at 1e-4: one false alarm in 500 runs of these 20 cases, were the seeds not fixed."""
    y = model.draw(MEANS, np.full(5000, 3), np.random.default_rng(seed))
    assert law.mean() == pytest.approx(0.7)
    assert stats.kstest(y, law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("index", [1.1, 1.5, 1.9])
def test_stable_noise_by_its_characteristic_function(index: float, seed: int) -> None:
    """E cos(w x) = exp(-|scale w|^index), within 5 / sqrt(n)."""
    n = 20_000
    x = Stable(index, 0.4).noise((n,), np.random.default_rng(seed))
    for w in (0.3, 1.0, 3.0, 10.0):
        assert abs(np.cos(w * x).mean() - math.exp(-((0.4 * w) ** index))) < 5 / math.sqrt(n)
        assert abs(np.sin(w * x).mean()) < 5 / math.sqrt(n)


def test_stable_moment_by_its_characteristic_function() -> None:
    """E|x|^p = c int_0^inf (1 - phi(w)) w^(-1-p) dw with 1/c = int_0^inf (1 - cos w) w^(-1-p) dw, for 0 < p < 2."""
    for index, p in ((1.5, 1.2), (1.8, 1.5), (1.3, 1.1)):
        constant = p * math.gamma(p) * math.sin(math.pi * p / 2) * 2 / math.pi
        total = sum(
            quad(lambda w: -math.expm1(-((0.4 * w) ** index)) * w ** (-1 - p), *part, limit=500)[0]  # noqa: B023
            for part in ((0, 1), (1, np.inf))
        )
        assert Stable(index, 0.4).absolute_moment(p) == pytest.approx(constant * total, rel=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.parametrize("model", [Spikes(0.2, 0.1, 5.0), Glitch(1, 10.0), TwoPoint(4.0), Pareto(5), MODELS[-1]])
def test_moment_bounds_by_simulation(model: Payoff, alpha: float, seed: int) -> None:
    """Mean of |y|^(1 + alpha) on the worst arm, 40000 draws: at most 10% above the bound, at least 60% of it."""
    y = model.draw(means_of(model), np.full(40_000, 1), np.random.default_rng(seed))
    bound = model.moment(means_of(model), alpha)
    assert 0.6 * bound < (np.abs(y) ** (1 + alpha)).mean() < 1.1 * bound


def test_moments_of_the_papers() -> None:
    """v = B^2 + 3 for Student-t with 3 degrees of freedom, B^1.9 / (2^0.9 0.1) for Pareto; here B = 1."""
    assert StudentT(3).moment(MEANS, 1.0) == pytest.approx(1 + 3)
    assert Pareto(2).moment(MEANS, 0.9) == pytest.approx(1 / (2**0.9 * 0.1))
    assert Pareto(2).usual_alpha == pytest.approx(0.9)


def test_two_point_rewards() -> None:
    means = np.array([0.5, -0.25, 0.0])
    model = TwoPoint(4.0, alpha=0.5)
    rng = np.random.default_rng(0)
    values = [model.draw(means, np.full(20_000, i), rng) for i in range(3)]
    assert [set(np.unique(v)) for v in values] == [{0.0, 4.0}, {-4.0, 0.0}, {0.0}]
    assert (values[0] > 0).mean() == pytest.approx(0.5 / 4, abs=0.012)  # 5 standard errors
    assert (values[1] < 0).mean() == pytest.approx(0.25 / 4, abs=0.009)
    assert model.moment(means, 0.5) == pytest.approx(0.5 / 4 * 4**1.5)


def test_spikes_come_at_their_rate_and_on_both_sides() -> None:
    noise = Spikes(0.2, 0.02, 60.0).noise((100_000,), np.random.default_rng(0))
    assert (noise > 30).mean() == pytest.approx(0.01, abs=0.0016)  # 5 standard errors
    assert (noise < -30).mean() == pytest.approx(0.01, abs=0.0016)
    assert noise[np.abs(noise) < 30].std() == pytest.approx(0.2, rel=0.02)


def test_glitch_touches_one_arm() -> None:
    y = Glitch(1, 10.0).draw(MEANS, np.array([0, 1, 2, 3, 1]), np.random.default_rng(0))
    np.testing.assert_array_equal(y[[0, 2, 3]], MEANS[[0, 2, 3]])
    np.testing.assert_allclose(np.abs(y[[1, 4]] - 1.0), 10.0)


def test_resampled_rewards_are_the_column_s_own() -> None:
    y = MODELS[-1].draw(TABLE.mean(axis=0), np.full(2000, 2), np.random.default_rng(0))
    assert set(y) == set(TABLE[:, 2])  # a row is missed with probability 50 exp(-40)


def test_moments_that_do_not_exist_are_infinite() -> None:
    for model in (StudentT(2), StudentT(1.5), Pareto(2), Stable(1.9)):
        assert model.moment(MEANS, 1.0) == math.inf
        assert model.deviation(MEANS) == math.inf
        assert model.moment(MEANS, model.usual_alpha) < math.inf


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(-1.0), "sd must be at least 0"),
        (lambda: StudentT(1), "dof must be above 1"),
        (lambda: StudentT(3, scale=0), "scale must be above 0"),
        (lambda: Pareto(1), "shape must be above 1"),
        (lambda: Spikes(0.1, 1.5, 1.0), "probability must be in"),
        (lambda: Stable(2.0), "index must be in"),
        (lambda: TwoPoint(1.0, alpha=0), "alpha must be in"),
        (lambda: Resampled([[1.0, math.nan]]), "table must be a finite"),
        (lambda: Gaussian(1.0).moment(MEANS, 1.5), "alpha must be in"),
        (lambda: Pareto(2).check(np.array([1.0, 0.0])), "must be positive, got 0.0"),
        (lambda: TwoPoint(0.5).check(MEANS), "at most size = 0.5, got 1.0"),
        (lambda: Glitch(4, 1.0).check(MEANS), r"must be in 0\.\.3, got 4"),
        (lambda: Resampled(TABLE).check(MEANS), "payoff.means"),
    ],
)
def test_errors(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
