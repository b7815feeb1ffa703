"""Rules: closed forms, Monte Carlo, and the incumbent."""

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
from noregret.bandits.algorithms.tighter_widths import DMM
from noregret.bandits.belief.model_set import RidgeFamily
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
    scores = np.exp(ExpectedImprovement(margin)(posterior, None))
    expected = [expected_improvement(m, s, 1.0 + margin) for m, s in zip(posterior.mean, posterior.std, strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-12)
    draws = np.random.default_rng(0).normal(posterior.mean, posterior.std, (200_000, 5))
    gains = np.maximum(draws - 1.0 - margin, 0)
    assert (np.abs(gains.mean(axis=0) - scores) <= 5 * gains.std(axis=0) / math.sqrt(200_000) + 1e-9).all()


@pytest.mark.parametrize("margin", [0.0, 0.01, 0.3])
def test_probability_of_improvement_is_what_its_name_says(margin):
    posterior = belief([0.5, 1.0, 0.2, 3.0], [0.4, 0.2, 1.5, 2.0], [0, 1])
    scores = np.exp(ProbabilityOfImprovement(margin)(posterior, None))
    np.testing.assert_allclose(scores, norm.sf(1.0 + margin, posterior.mean, posterior.std), rtol=1e-12)
    draws = np.random.default_rng(0).normal(posterior.mean, posterior.std, (200_000, 4))
    assert np.abs((draws > 1.0 + margin).mean(axis=0) - scores).max() <= 5 * 0.5 / math.sqrt(200_000)


def test_default_margins():
    assert (ExpectedImprovement().margin, ProbabilityOfImprovement().margin) == (0.0, 0.01)


@pytest.mark.parametrize("rule", [ExpectedImprovement(0.0), ProbabilityOfImprovement(0.0)], ids=str)
def test_the_incumbent_is_the_best_mean_among_the_pulled_arms(rule):
    """Arm 3 has the best mean of all but was never pulled: adding it to the pulled ones changes the scores."""
    mean, std = [0.1, 0.4, 0.3, 0.9], [0.2] * 4
    scores = np.exp(rule(belief(mean, std, [0, 1, 2]), None))
    incumbent = 0.4
    if isinstance(rule, ExpectedImprovement):
        np.testing.assert_allclose(scores, [expected_improvement(m, 0.2, incumbent) for m in mean], rtol=1e-6)
    else:
        np.testing.assert_allclose(scores, norm.sf(incumbent, mean, 0.2))
    assert (np.exp(rule(belief(mean, std, [0, 1, 2, 3]), None)) < scores).all()


def test_the_incumbent_is_a_mean_and_not_a_reward():
    posterior = learnt()
    best_mean, best_reward = posterior.mean[[2, 7, 10]].max(), 1.0
    assert best_mean < best_reward - 0.05
    expected = norm.sf(best_mean + 0.01, posterior.mean, posterior.std)
    np.testing.assert_allclose(np.exp(ProbabilityOfImprovement()(posterior, None)), expected, rtol=1e-9)
    expected = [expected_improvement(m, s, best_mean) for m, s in zip(posterior.mean, posterior.std, strict=True)]
    np.testing.assert_allclose(np.exp(ExpectedImprovement()(posterior, None)), expected, rtol=1e-5, atol=1e-10)


def test_before_any_pull_the_incumbent_is_the_highest_mean():
    posterior = belief([0.0, 0.2], [1.0, 1.0])
    np.testing.assert_allclose(np.exp(ProbabilityOfImprovement(0.0)(posterior, None)), norm.sf([0.2, 0.0]))


def test_without_uncertainty_improvement_is_certain():
    posterior = belief([0.0, 1.0, 2.0, 1.0], [0.0, 0.0, 0.0, 0.5], [1])
    ei, pi = (np.exp(rule(posterior, None)) for rule in (ExpectedImprovement(), ProbabilityOfImprovement(0.0)))
    np.testing.assert_allclose(ei, [0.0, 0.0, 1.0, 0.5 / math.sqrt(2 * math.pi)])
    np.testing.assert_allclose(pi, [0.0, 0.0, 1.0, 0.5])
    assert np.exp(ExpectedImprovement(3.0)(posterior, None)[2]) == 0.0


LOGARITHMS = [  # z, ln(phi(z) + z Phi(z)) and ln Phi(z), with 60 digits
    (-1e6, -500000000028.54996, -500000000014.73445),
    (-1e4, -50000019.339619307, -50000010.129278915),
    (-1e3, -500014.73445209116, -500007.82669481218),
    (-150, -11260.940342433996, -11255.929618266808),
    (-101, -5110.649473554864, -5106.034157055638),
    (-99, -4910.6094842154551, -4906.0141603877319),
    (-50, -1258.7441828684609, -1254.8313611394199),
    (-38.5, -749.34727420782292, -745.69527029041108),
    (-10, -55.553122036122356, -53.231285150512471),
    (-3, -7.8696860596030285, -6.6077262215103495),
    (-1.0000001, -2.4851212161397683, -1.8410217975227951),
    (-1, -2.4851210257126413, -1.8410216450092635),
    (-0.5, -1.6205162643873199, -1.1759117615936186),
    (0, -0.91893853320467274, -0.69314718055994531),
    (0.5, -0.35982768374506382, -0.36894641528865639),
    (3, 1.0987396653277078, -0.0013508099647481938),
    (10, 2.3025850929940457, -7.6198530241605261e-24),
    (29, 3.367295829986474, 0.0),
    (40, 3.6888794541139363, 0.0),
    (1e4, 9.210340371976184, 0.0),
]


@pytest.mark.parametrize("std", [1.0, 1e-3])
def test_improvement_is_scored_in_logarithms_where_the_plain_number_is_0(std):
    z, log_expected, log_probability = np.array(LOGARITHMS).T
    posterior = belief([0.0, *(z * std)], [0.0, *[std] * len(z)], [0])
    ei, pi = ExpectedImprovement()(posterior, None)[1:], ProbabilityOfImprovement(0.0)(posterior, None)[1:]
    np.testing.assert_allclose(ei, log_expected + math.log(std), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(pi, log_probability, rtol=1e-12, atol=1e-16)


def test_logarithms_of_improvement_rise_with_the_mean_across_every_formula():
    z = np.concatenate([-np.geomspace(1e6, 1e-3, 20_000), np.geomspace(1e-3, 1e3, 2000)])
    posterior = belief([0.0, *z], [1.0] * (len(z) + 1), [0])
    for rule in (ExpectedImprovement(), ProbabilityOfImprovement(0.0)):
        scores = rule(posterior, None)[1:]
        assert (np.diff(scores) >= 0).all()
        assert (np.diff(scores)[z[1:] < 0] > 0).all()


@pytest.mark.parametrize("rule", [ExpectedImprovement(0.5), ProbabilityOfImprovement(0.5)], ids=str)
def test_where_no_arm_can_improve_the_best_mean_is_pulled(rule):
    scores = rule(belief([0.0, 1.0, 0.3], [0.0, 0.0, 0.0], [0, 1, 2]), None)
    assert np.argmax(scores) == 1
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("rule", [ExpectedImprovement(), ProbabilityOfImprovement(0.0)], ids=str)
def test_an_arm_known_for_certain_is_left_for_one_with_hardly_any_chance(rule):
    assert np.argmax(rule(belief([1.0, 0.0], [0.0, 1e-4], [0]), None)) == 1


@pytest.mark.parametrize("rule", [ExpectedImprovement(0.5), ProbabilityOfImprovement(0.5)], ids=str)
def test_scores_that_underflow_do_not_pull_the_first_arm_for_ever(rule):
    means = np.array([0.0, 1.0, 0.5])
    policy = Policy(Sequential(ExactGP(SquaredExponential(0.01), 1e-4), rule), [[0.0], [0.5], [1.0]], rng=0)
    pulls = []
    for _ in range(60):
        pulls.append(int(policy.ask()[0]))
        policy.tell(pulls[-1], means[pulls[-1]])
    assert pulls.count(1) > 40


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
