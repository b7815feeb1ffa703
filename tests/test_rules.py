"""Rules: closed forms, Monte Carlo, and who the incumbent is."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from noregret import (
    UCB,
    Constant,
    ExactGP,
    ExpectedImprovement,
    MaxVariance,
    Policy,
    ProbabilityOfImprovement,
    Sequential,
    SquaredExponential,
    Thompson,
    Uniform,
)
from noregret.algorithms.tighter_widths import DMM
from noregret.belief.family import RidgeFamily
from noregret.testing import check_rule

ARMS = np.linspace(0, 1, 12)[:, None]


def belief(mean, std, pulled=()):
    return SimpleNamespace(mean=np.array(mean, float), std=np.array(std, float), pulled=np.array(pulled, np.intp))


def learnt(ridge=0.1):
    posterior = ExactGP(SquaredExponential(0.2), ridge).prior(ARMS)
    posterior.update([2, 7, 7, 10], [1.0, -0.5, 0.7, 0.3])
    return posterior


def expected_improvement(mean, std, incumbent):
    """By quadrature, from the definition."""
    return quad(lambda f: (f - incumbent) * norm.pdf(f, mean, std), incumbent, max(mean, incumbent) + 12 * std)[0]


@pytest.mark.parametrize(
    "rule",
    [
        UCB(Constant(2.0)),
        UCB(Constant(0.0)),
        Thompson(Constant(1.5)),
        ExpectedImprovement(),
        ExpectedImprovement(0.1),
        ProbabilityOfImprovement(),
        MaxVariance(),
        Uniform(),
    ],
    ids=str,
)
@pytest.mark.parametrize("ridge", [0.1, 0.0], ids=["noisy", "noise-free"])
def test_keeps_the_contract(rule, ridge):
    check_rule(rule)
    check_rule(rule, ExactGP(SquaredExponential(0.3), ridge).prior(ARMS))


def test_dmm_keeps_the_contract():
    check_rule(DMM(1.0, 0.3, 0.1), RidgeFamily(SquaredExponential(0.3), (0.1, 0.01, 1.0)).prior(ARMS))


def test_ucb_is_mean_plus_width_std():
    rule, posterior = UCB(lambda posterior: 10.0 * len(posterior.pulled)), belief([1, 2], [0.5, 0.1], [0])
    assert rule(posterior, None).tolist() == [6.0, 3.0]
    lower, upper = rule.bounds(posterior)
    assert (lower.tolist(), upper.tolist()) == ([-4.0, 1.0], [6.0, 3.0])


def test_max_variance_is_the_std():
    assert MaxVariance()(belief([1, 2], [0.5, 0.1]), None).tolist() == [0.5, 0.1]


def test_uniform_prefers_no_arm():
    rng, posterior = np.random.default_rng(0), belief(np.arange(4), np.ones(4))
    counts = np.bincount([np.argmax(Uniform()(posterior, rng)) for _ in range(8000)], minlength=4)
    assert np.abs(counts - 2000).max() < 5 * math.sqrt(8000 * 0.25 * 0.75)


@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_expected_improvement_is_what_its_name_says(margin):
    posterior = belief([0.5, 1.0, 0.2, 3.0, -1.0], [0.4, 0.2, 1.5, 2.0, 0.3], [0, 1])
    scores = ExpectedImprovement(margin)(posterior, None)
    expected = [expected_improvement(m, s, 1.0 + margin) for m, s in zip(posterior.mean, posterior.std, strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)
    draws = np.random.default_rng(0).normal(posterior.mean, posterior.std, (200_000, 5))
    gains = np.maximum(draws - 1.0 - margin, 0)
    assert (np.abs(gains.mean(axis=0) - scores) <= 5 * gains.std(axis=0) / math.sqrt(200_000) + 1e-9).all()


@pytest.mark.parametrize("margin", [0.0, 0.01, 0.3])
def test_probability_of_improvement_is_what_its_name_says(margin):
    posterior = belief([0.5, 1.0, 0.2, 3.0], [0.4, 0.2, 1.5, 2.0], [0, 1])
    scores = ProbabilityOfImprovement(margin)(posterior, None)
    np.testing.assert_allclose(scores, norm.sf(1.0 + margin, posterior.mean, posterior.std), rtol=1e-12)
    draws = np.random.default_rng(0).normal(posterior.mean, posterior.std, (200_000, 4))
    assert np.abs((draws > 1.0 + margin).mean(axis=0) - scores).max() <= 5 * 0.5 / math.sqrt(200_000)


def test_default_margins():
    assert (ExpectedImprovement().margin, ProbabilityOfImprovement().margin) == (0.0, 0.01)


@pytest.mark.parametrize("rule", [ExpectedImprovement(0.0), ProbabilityOfImprovement(0.0)], ids=str)
def test_the_incumbent_is_the_best_mean_among_the_pulled_arms(rule):
    """Arm 3 has the best mean of all but was never pulled: adding it to the pulled ones changes the scores."""
    mean, std = [0.1, 0.4, 0.3, 0.9], [0.2] * 4
    scores = rule(belief(mean, std, [0, 1, 2]), None)
    incumbent = 0.4
    if isinstance(rule, ExpectedImprovement):
        np.testing.assert_allclose(scores, [expected_improvement(m, 0.2, incumbent) for m in mean], rtol=1e-6)
    else:
        np.testing.assert_allclose(scores, norm.sf(incumbent, mean, 0.2))
    assert (rule(belief(mean, std, [0, 1, 2, 3]), None) < scores).all()


def test_the_incumbent_is_a_mean_and_not_a_reward():
    posterior = learnt()
    best_mean, best_reward = posterior.mean[[2, 7, 10]].max(), 1.0
    assert best_mean < best_reward - 0.05
    expected = norm.sf(best_mean + 0.01, posterior.mean, posterior.std)
    np.testing.assert_allclose(ProbabilityOfImprovement()(posterior, None), expected, rtol=1e-9)
    expected = [expected_improvement(m, s, best_mean) for m, s in zip(posterior.mean, posterior.std, strict=True)]
    np.testing.assert_allclose(ExpectedImprovement()(posterior, None), expected, rtol=1e-5, atol=1e-10)


def test_before_any_pull_the_incumbent_is_the_highest_mean():
    posterior = belief([0.0, 0.2], [1.0, 1.0])
    np.testing.assert_allclose(ProbabilityOfImprovement(0.0)(posterior, None), norm.sf([0.2, 0.0]))


def test_without_uncertainty_improvement_is_certain():
    posterior = belief([0.0, 1.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.5], [1])
    ei, pi = ExpectedImprovement()(posterior, None), ProbabilityOfImprovement(0.0)(posterior, None)
    np.testing.assert_allclose(ei, [0.0, 0.0, 1.0, 0.5 / math.sqrt(2 * math.pi)])
    np.testing.assert_allclose(pi, [0.0, 0.0, 1.0, 0.5])
    assert ExpectedImprovement(3.0)(posterior, None)[2] == 0.0


def test_expected_improvement_far_below_the_incumbent_is_tiny_and_not_negative():
    posterior = belief([0.0, *-np.linspace(0, 60, 121)], [1.0] * 122, [0])
    scores = ExpectedImprovement()(posterior, None)
    assert (scores >= 0).all()
    assert scores[21] == pytest.approx(expected_improvement(-10.0, 1.0, 0.0), rel=1e-6)


def test_thompson_scores_are_the_sample_stretched_about_the_mean():
    posterior = learnt()
    scores = Thompson(Constant(3.0))(posterior, np.random.default_rng(4))
    sample = posterior.sample(np.random.default_rng(4))
    np.testing.assert_allclose(scores, posterior.mean + 3.0 * (sample - posterior.mean))
    np.testing.assert_allclose(
        Thompson(Constant(3.0)).bounds(posterior),
        [posterior.mean - 3 * posterior.std, posterior.mean + 3 * posterior.std],
    )


def test_thompson_scores_are_joint():
    """Covariances of 20,000 score vectors are width^2 times the posterior's, to 5 standard errors."""
    posterior, rng, draws = learnt(), np.random.default_rng(0), 20_000
    scores = np.array([Thompson(Constant(2.0))(posterior, rng) for _ in range(draws)])
    kernel, seen = SquaredExponential(0.2), ARMS[[2, 7, 7, 10]]
    across = kernel(seen, ARMS)
    covariance = kernel(ARMS, ARMS) - across.T @ np.linalg.solve(kernel(seen, seen) + 0.1 * np.eye(4), across)
    assert covariance[4, 5] > 0.3  # neighbours move together
    variance = covariance.diagonal()
    error = 4 * np.sqrt((np.outer(variance, variance) + covariance**2) / draws)
    assert (np.abs(np.cov(scores.T) - 4 * covariance) <= 5 * error).all()


@pytest.mark.parametrize(("scores", "arm"), [([1.0, 3.0, 3.0, 0.0], 1), ([2.0] * 4, 0), ([0.0, -0.0, 0.0, 0.0], 0)])
def test_the_lowest_index_wins_a_tie(scores, arm):
    algorithm = Sequential(ExactGP(SquaredExponential(0.2), 0.1), lambda posterior, rng: np.array(scores))
    assert Policy(algorithm, ARMS[:4], rng=0).ask().tolist() == [arm]


def test_bounds_of_a_sequential_are_the_bands_the_rules_or_two_std():
    posterior, model = learnt(), ExactGP(SquaredExponential(0.2), 0.1)
    for algorithm, width in [
        (Sequential(model, UCB(Constant(5.0))), 5.0),
        (Sequential(model, Thompson(Constant(5.0))), 5.0),
        (Sequential(model, UCB(Constant(5.0)), UCB(Constant(7.0))), 7.0),
        (Sequential(model, ExpectedImprovement(), UCB(Constant(7.0))), 7.0),
        (Sequential(model, ExpectedImprovement()), 2.0),
    ]:
        lower, upper = algorithm.bounds(posterior)
        np.testing.assert_allclose(lower, posterior.mean - width * posterior.std)
        np.testing.assert_allclose(upper, posterior.mean + width * posterior.std)
