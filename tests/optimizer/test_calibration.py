"""The steps from observations to a posterior, one by one."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student
from tests.optimizer.configs import answer_of, fit_of, observed, with_rule

from noregret import Choice, ExactGP, ExpectedImprovement, Float, Int, Matern, Optimizer
from noregret.gp.improvement import log_expected_improvement
from noregret.optimizer import OptimizerConfig
from noregret.optimizer.config import SimultaneousWidth
from noregret.optimizer.model import learning, posterior
from noregret.optimizer.model.candidates import Candidates, around, shifted
from noregret.optimizer.model.evidence import Evidence, subset
from noregret.optimizer.model.failures import hopeless
from noregret.optimizer.model.fit import FitMatern, Likelihood, log_likelihood
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import milestone
from noregret.optimizer.model.kernel import CENTRE
from noregret.optimizer.model.learning import representative
from noregret.optimizer.model.noise import GaussianNoise, StudentNoise, smoothed
from noregret.optimizer.model.sobol import sobol
from noregret.optimizer.model.transforms import Logarithms, RobustScale, ValueScale
from noregret.optimizer.questions.questions import AMONG_NAMES, Improve, Optimism, SaturatedImprovement
from noregret.optimizer.space.space import ParameterSpace


def evidence(points=30, measurements=45, dimension=3, seed=0, told=False, noise=None):
    """Observations of a smooth function, some points repeated, some with known noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((points, dimension))
    where = np.concatenate([np.arange(points), rng.integers(points, size=measurements - points)])
    draws = rng.standard_normal(measurements) if noise is None else noise(rng, measurements)
    known = np.where(rng.random(measurements) < 0.3, 0.2, np.nan) if told else np.full(measurements, np.nan)
    values = np.sin(5 * X[where, 0]) + X[where, 1] + 0.2 * draws
    return Evidence(X, where, values, known, np.arange(dimension))


def test_medians_by_point():
    data = Evidence(
        np.zeros((3, 1)), np.array([0, 2, 0, 1, 0, 1]), np.array([5.0, 9, 1, 2, 3, 4]), np.full(6, np.nan), None
    )
    assert data.medians().tolist() == [3.0, 3.0, 9.0]


# --- scaling -----------------------------------------------------------------------------------------------------


def test_the_scale_of_gaussian_values_is_their_own():
    values = 7 + 3 * np.random.default_rng(0).standard_normal(2000)
    data = Evidence(np.zeros((2000, 1)), np.arange(2000), values, np.full(2000, np.nan), np.zeros(1, int))
    scale = RobustScale()(data)
    assert scale.centre == pytest.approx(7, abs=0.2)
    assert scale.unit == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize("absurd", [1e9, -1e9, 1e300, -1e300])
def test_absurd_values_do_not_move_the_scale(absurd):
    values = np.random.default_rng(0).standard_normal(40)
    data = lambda v: Evidence(np.zeros((40, 1)), np.arange(40), v, np.full(40, np.nan), np.zeros(1, int))  # noqa: E731
    spoilt = np.where(np.arange(40) < 3, absurd, values)
    before, after = RobustScale()(data(values)), RobustScale()(data(spoilt))
    assert abs(after.centre - before.centre) < 0.3
    assert 0.6 < after.unit / before.unit < 1.6
    assert np.isfinite(after.standard(spoilt) ** 2).all()


def test_where_nothing_spreads_the_unit_is_the_size_of_the_values_or_one():
    def data(value):
        return Evidence(np.zeros((5, 1)), np.arange(5), np.full(5, value), np.full(5, np.nan), np.zeros(1, int))

    assert RobustScale()(data(4.0)) == ValueScale(4.0, 4.0, RobustScale().bend, floor=-36.0)
    assert RobustScale()(data(0.0)) == ValueScale(0.0, 1.0, RobustScale().bend, floor=-10.0)


@pytest.mark.parametrize("points", [4, 6, 9])
@pytest.mark.parametrize("absurd", [1e9, -1e9, 1e300, -1e300])
def test_one_absurd_point_of_a_few_does_not_move_the_scale_far(absurd, points):
    values = np.random.default_rng(points).standard_normal(points)
    data = lambda values: Evidence(  # noqa: E731
        np.zeros((points, 1)), np.arange(points), values, np.full(points, np.nan), np.zeros(1, int)
    )
    before, after = RobustScale()(data(values)), RobustScale()(data(np.append(values[1:], absurd)))
    assert abs(after.centre - before.centre) < 3 * before.unit
    assert after.unit < 12 * before.unit
    assert after.floor > before.centre - 400 * before.unit


def test_nothing_is_reported_as_absurdly_bad():
    data = evidence(points=12, measurements=12)
    plain = RobustScale()(data)
    lowest = plain.centre - 10 * max(plain.centre - data.values.min(), plain.unit)
    for scale in (plain, *Logarithms()(data, plain)):
        assert scale.original(np.array([-1e6, -50.0])).tolist() == pytest.approx([lowest, lowest])
        np.testing.assert_allclose(scale.original(scale.standard(data.values)), data.values)


@pytest.mark.parametrize("outlier", [1.1, -1e6, 1e9])
def test_one_outlier_among_equal_values_does_not_set_the_unit(outlier):
    values = np.append(np.ones(20), outlier)
    data = Evidence(np.zeros((21, 1)), np.arange(21), values, np.full(21, np.nan), np.zeros(1, int))
    assert RobustScale()(data).unit == 1.0


def test_where_only_a_few_differ_they_set_the_unit():
    data = Evidence(
        np.zeros((21, 1)), np.arange(21), np.eye(1, 21)[0] + np.eye(1, 21, 1)[0], np.full(21, np.nan), np.zeros(1, int)
    )
    assert RobustScale()(data).unit == pytest.approx(1 / 2.563)


def test_a_scale_can_be_undone():
    scale = ValueScale(10.0, 2.0, bend=2.0)
    for value in (-50.0, 0.0, 5.9, 6.1, 10.0, 1e4):
        assert scale.original(float(scale.standard(np.array(value)))) == pytest.approx(value)
    assert scale.standard(np.array([6.0, 12.0])).tolist() == [-2.0, 1.0]
    assert float(scale.standard(np.array(-190.0))) == pytest.approx(-2 - math.log(99))


# --- fit ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [False, True])
def test_the_likelihood_is_that_of_all_measurements(told):
    data = evidence(told=told)
    if told:  # a point whose measurements are of both kinds is averaged approximately: keep to one kind each
        known = np.where(data.where < 10, 0.2, np.nan)
        data = Evidence(data.points, data.where, data.values, known, data.groups)
    trust = np.random.default_rng(1).uniform(0.2, 1.2, len(data))
    theta = np.log([0.4, 0.8, 1.5, 1.2, 0.2])
    X = data.points[data.where]
    covariance = 1.2**2 * Matern(2.5, (0.4, 0.8, 1.5))(X, X) + CENTRE**2 + np.diag(data.variance(0.2**2) / trust)
    expected = multivariate_normal(np.zeros(len(data)), covariance).logpdf(data.values)
    assert Likelihood(data, trust)(theta)[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("told", [False, True])
def test_the_gradient_is_that_of_the_likelihood(told):
    data = evidence(told=told)
    data = Evidence(data.points, data.where, data.values, data.noise, np.array([0, 1, 1]))
    likelihood = Likelihood(data, np.random.default_rng(1).uniform(0.2, 1.2, len(data)))
    for theta in np.log([0.4, 0.8, 1.2, 0.2]), np.log([0.4, 0.8, 1.2, 0.7, 0.2]):
        steps = 1e-5 * np.eye(len(theta))
        numeric = [(likelihood(theta + h)[0] - likelihood(theta - h)[0]) / 2e-5 for h in steps]
        assert likelihood(theta)[1] == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def test_parameters_that_act_one_by_one_have_a_part_of_the_kernel():
    data = evidence()
    fit, X = fit_of((0.4, 0.8, 1.5), 1.2, 0.2, additive=0.9), data.points
    alone = [Matern(2.5, length)(X[:, [i]], X[:, [i]]) for i, length in enumerate(fit.lengthscales)]
    expected = 1.2**2 * Matern(2.5, fit.lengthscales)(X, X) + 0.9**2 * np.mean(alone, axis=0)
    assert fit.kernel(data.groups)(X, X) == pytest.approx(expected, rel=1e-12)
    covariance = expected[np.ix_(data.where, data.where)] + CENTRE**2 + np.diag(data.variance(0.2**2))
    density = multivariate_normal(np.zeros(len(data)), covariance).logpdf(data.values)
    assert log_likelihood(data, np.ones(len(data)), fit) == pytest.approx(density, rel=1e-9)


@pytest.mark.slow
def test_what_acts_one_by_one_is_foreseen_where_nothing_was_measured():
    """A sum of waves in four dimensions, 80 points: the mean of 4 seeds, against the fit without that part."""

    def waves(X):
        return np.cos(9 * X).sum(axis=1)

    def error(seed, additive):
        rng = np.random.default_rng(seed)
        points, places = rng.random((80, 4)), rng.random((500, 4))
        values = waves(points) + 0.1 * rng.standard_normal(80)
        data = Evidence(points, np.arange(80), values, np.full(80, np.nan), np.arange(4))
        fit = FitMatern()(data, np.ones(80))
        fit = fit if additive else replace(fit, amplitude=fit.size, additive=0.0)
        belief = ExactGP(fit.kernel(data.groups), fit.noise**2).prior(points)
        belief.update(np.arange(80), values - fit.centre)
        return np.sqrt(np.mean((belief.predict(places)[0] + fit.centre - waves(places)) ** 2))

    assert np.mean([error(seed, additive=True) for seed in range(4)]) < 0.4
    assert np.mean([error(seed, additive=False) for seed in range(4)]) > 0.8


def test_what_choices_do_adds_up_from_the_start():
    """Of the 1,024 settings of five choices of four, 20 are measured: the others are foreseen, in the mean of 4 seeds.

    Numbers that are as few are not taken to add up.
    """
    options, groups = np.eye(4), np.repeat(np.arange(5), 4)

    def error(seed):
        rng = np.random.default_rng(seed)
        effects, chosen = rng.standard_normal((5, 4)), rng.integers(4, size=(220, 5))
        points, values = options[chosen].reshape(220, 20), effects[np.arange(5), chosen].sum(axis=1)
        data = Evidence(points[:20], np.arange(20), values[:20], np.full(20, np.nan), groups)
        fit = FitMatern()(data, np.ones(20))
        belief = ExactGP(fit.kernel(groups), fit.noise**2).prior(points[:20])
        belief.update(np.arange(20), values[:20] - fit.centre)
        return np.sqrt(np.mean((belief.predict(points[20:])[0] + fit.centre - values[20:]) ** 2)) / values.std()

    assert np.mean([error(seed) for seed in range(4)]) < 0.3
    numbers = evidence(points=20, measurements=20)
    assert FitMatern()(numbers, np.ones(20)).additive == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_fit_finds_noise_and_relevance(seed):
    data = evidence(points=80, measurements=80, seed=seed)
    fit = FitMatern()(data, np.ones(80))
    assert 0.13 < fit.noise < 0.27, "true: 0.2"
    assert 1.5 * fit.lengthscales[0] < min(fit.lengthscales[1:]), "the others do less"


def test_waves_are_found_from_a_short_start_too():
    """Period 0.15 at 100 random points: from the median lengthscale alone they count as noise in most runs."""

    def shortest(seed, starts):
        rng = np.random.default_rng(seed)
        points = rng.random((100, 2))
        waves = 0.8 * np.cos(2 * np.pi * points / 0.15).sum(axis=1)
        values = waves - 4 * ((points - 0.4) ** 2).sum(axis=1) + 0.3 * rng.standard_normal(100)
        waving = Evidence(points, np.arange(100), values, np.full(100, np.nan), np.arange(2))
        return min(
            FitMatern(length_starts=starts)(RobustScale()(waving).standardised(waving), np.ones(100)).lengthscales
        )

    assert max(shortest(seed, (1.0, 0.25)) for seed in range(5)) < 0.1
    assert max(shortest(seed, (1.0,)) for seed in range(5)) > 0.2


@pytest.mark.parametrize("values", [np.zeros(8), np.eye(1, 8)[0], np.full(8, 1e6), np.arange(8) * 1e-9])
def test_degenerate_values_can_be_fitted(values):
    data = Evidence(np.random.default_rng(0).random((8, 2)), np.arange(8), values, np.full(8, np.nan), np.arange(2))
    fit = OptimizerConfig().calibrated(data).fit
    assert np.isfinite([*fit.lengthscales, fit.amplitude, fit.noise, fit.centre]).all()
    assert fit.noise > 0


def test_the_same_point_many_times_can_be_fitted():
    data = Evidence(np.full((1, 2), 0.5), np.zeros(50, int), np.arange(50.0), np.full(50, np.nan), np.arange(2))
    assert OptimizerConfig().calibrated(data).fit.noise > 0


# --- weights -----------------------------------------------------------------------------------------------------


def test_the_cost_of_trust_makes_the_likelihood_students():
    """With f known, the bound is the Student-t log density exactly."""
    for dof in (2.0, 4.0, 7.5):
        residuals = np.random.default_rng(0).standard_t(dof, 50)
        trust = (dof + 1) / (dof + residuals**2)
        gaussian = norm.logpdf(residuals, scale=1 / np.sqrt(trust)).sum()
        alone = Evidence(np.zeros((50, 1)), np.arange(50), residuals, np.full(50, np.nan), np.zeros(1, int))
        assert gaussian - StudentNoise(dof).cost(alone, trust) == pytest.approx(student.logpdf(residuals, dof).sum())


def test_smoothing_is_the_posterior():
    data, kernel = evidence(), Matern(2.5, 0.5)
    precision = np.random.default_rng(1).uniform(1, 30, len(data))
    mean, variance, _ = smoothed(kernel(data.points, data.points), data, precision, 0.3)
    belief = ExactGP(kernel, 1.0).prior(data.points)
    belief.update(data.where, data.values - 0.3, noise=1 / precision)
    assert mean == pytest.approx(belief.mean + 0.3, abs=1e-8)
    assert variance == pytest.approx(belief.std**2, abs=1e-8)


def test_absurd_measurements_are_not_trusted():
    data = evidence(points=40, measurements=40)
    spoilt = np.where(np.arange(40) % 10 == 3, data.values + 30, data.values)
    data = Evidence(data.points, data.where, spoilt, data.noise, data.groups)
    trust = StudentNoise(4.0).trust(data, fit_of((0.5, 0.5, 2.0), 1.0, 0.2))
    assert (trust[np.arange(40) % 10 == 3] < 0.01).all()
    assert np.median(trust[np.arange(40) % 10 != 3]) > 0.8


@pytest.mark.parametrize("residual", [0.0, 0.5, 3.0, 50.0])
def test_trust_on_arrival_is_the_trust_of_weighing(residual):
    """One observation of an isolated point."""
    fit, weighing = fit_of((0.5,), 1.0, 0.2), StudentNoise(4.0, iterations=60)
    data = Evidence(np.full((1, 1), 0.5), np.zeros(1, int), np.array([residual]), np.full(1, np.nan), np.zeros(1, int))
    assert weighing.arriving(residual, 1.0, 0.2) == pytest.approx(float(weighing.trust(data, fit)[0]), rel=0.02)


def test_repeats_move_the_estimate_to_the_mean():
    """Exponential noise: the mean is 1, the median 0.69."""
    values = np.random.default_rng(0).exponential(size=400)
    fit = fit_of((0.5,), 5.0, 0.7)
    estimates = []
    for growth in (0.0, 0.5):
        data = Evidence(np.full((1, 1), 0.5), np.zeros(400, int), values, np.full(400, np.nan), np.zeros(1, int))
        trust = StudentNoise(2.0, growth).trust(data, fit)
        estimates.append(float(trust @ values / trust.sum()))
    assert estimates[0] < 0.85
    assert estimates[1] == pytest.approx(values.mean(), abs=0.03)


def test_measurements_that_agree_are_trusted_however_far_from_the_others():
    """Noise does not repeat itself: one outlier is ignored, two that differ are, two that agree are not."""
    points = np.random.default_rng(0).random((61, 2))

    def trust(*odd):
        where, values = np.append(np.arange(60), np.full(len(odd), 60)), np.append(points[:60].sum(axis=1), odd)
        data = Evidence(points, where, values, np.full(len(values), np.nan), np.arange(2))
        return StudentNoise(4.0).trust(data, fit_of((1.0, 1.0), 1.0, 0.2))[60:]

    assert trust(6.0)[0] < 0.05
    assert (trust(6.0, 10.0) < 0.05).all()
    assert (trust(6.0, 6.1) > 0.5).all()


def test_values_that_many_share_are_trusted():
    """0 and 1: the rarer one is not an outlier. An extreme value is one, also if repeated."""
    rng = np.random.default_rng(0)
    points, outcomes = rng.random((60, 1)), (rng.random(60) < 0.15).astype(float)
    fit = fit_of((0.5,), 0.3, 0.1)
    data = Evidence(points, np.arange(60), outcomes, np.full(60, np.nan), np.zeros(1, int))
    assert StudentNoise(2.0).trust(data, fit).min() >= 1.0
    once = replace(data, values=np.where(np.arange(60) == 7, 3.1, 0.01 * rng.standard_normal(60)))
    assert StudentNoise(2.0).trust(once, fit)[7] < 0.1
    often = replace(data, values=np.where(np.arange(60) < 4, 1e6, 0.01 * rng.standard_normal(60)))
    assert StudentNoise(2.0).trust(often, fit)[:4].max() < 0.1


def test_of_a_few_points_the_unit_is_no_less_than_the_noise():
    """Two settings that are close to each other by luck say nothing about how far others may be apart."""
    values = np.random.default_rng(0).standard_normal(400)
    where = np.arange(400) % 2
    values -= np.array([np.median(values[where == point]) for point in (0, 1)])[where]
    data = Evidence(np.eye(2), where, values, np.full(400, np.nan), np.zeros(2, int))
    assert 0.8 < RobustScale()(data).unit < 1.2


def test_an_absurd_value_is_ignored_among_repeats_too():
    values = np.append(np.random.default_rng(0).standard_normal(100), 1e4)
    data = Evidence(np.full((1, 1), 0.5), np.zeros(101, int), values, np.full(101, np.nan), np.zeros(1, int))
    trust = StudentNoise(2.0).trust(data, fit_of((0.5,), 5.0, 1.0))
    assert abs(trust @ values / trust.sum() - values[:-1].mean()) < 0.05


def heavy(data):
    return OptimizerConfig().calibrated(data).noise.heavy


def spike(rng, size):
    return rng.standard_normal(size) + 200 * (np.arange(size) == size // 2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 40])
def test_one_spike_is_enough(size):
    assert all(heavy(evidence(size, size, seed=seed, noise=spike)) for seed in range(5))


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "is_fitted"), [(None, False), (lambda rng, size: rng.standard_t(2, size), True)])
def test_heavier_tails_are_fitted_unless_they_are_hopeless(noise, is_fitted):
    """If they are not, the fit without them is used for theirs, in case that tails get heavier before the next one."""
    data = evidence(points=200, measurements=200, noise=noise)
    scale = RobustScale()(data)
    found = OptimizerConfig().noises(scale, scale.standardised(data))
    fits = {each.hypothesis.noise: each.fit for each in found}
    assert (fits[StudentNoise(4.0)] != fits[GaussianNoise()]) == is_fitted
    assert found[0].hypothesis.noise.heavy == is_fitted


# --- rules and widths --------------------------------------------------------------------------------------------


def known(counts, means, noise=0.5):
    """A posterior of independent arms, each measured this often with this average."""
    belief = ExactGP(Matern(2.5, 1e-3), noise**2).prior(np.arange(float(len(counts)))[:, None])
    for arm, (count, mean) in enumerate(zip(counts, means, strict=True)):
        belief.update([arm] * count, [mean] * count)
    return belief


def test_a_point_measured_enough_loses_its_appeal():
    belief = known([200, 40, 0], [1.5, 1.4, 0.0])
    plain, saturated = ExpectedImprovement()(belief, None), SaturatedImprovement()(belief, None)
    assert saturated[2] == pytest.approx(plain[2]), "nothing is known: as it is"
    assert saturated[1] == pytest.approx(plain[1] + math.log(5 * belief.std[1] ** 2 / 0.5**2))
    assert np.argmax(SaturatedImprovement()(known([40, 0], [1.0, 0.0]), None)) == 1


def test_a_repeat_of_the_incumbent_is_worth_what_it_can_change():
    """E max(new mean, next best mean) - mean, by a large sample: one more value moves the mean by v / sqrt(v + s^2)."""
    belief = known([3, 5], [1.0, 0.8])
    variance, gap = float(belief.std[0] ** 2), float(belief.mean[0] - belief.mean[1])
    moves = variance / math.sqrt(variance + 0.5**2) * np.random.default_rng(0).standard_normal(2_000_000)
    worth = np.maximum(-gap - moves, 0).mean()
    assert SaturatedImprovement(by_decision=True)(belief, None)[0] == pytest.approx(math.log(worth), abs=0.01)


def test_early_on_a_point_may_be_measured_more_often():
    belief = known([8, 8], [1.0, 0.9])
    assert SaturatedImprovement()(belief, None)[1] == pytest.approx(ExpectedImprovement()(belief, None)[1])
    assert SaturatedImprovement(early=0)(belief, None)[1] < ExpectedImprovement()(belief, None)[1]


def test_the_simultaneous_width_holds_for_all_of_several_gaussians_at_once():
    belief = known([400, 400, 400, 400], [0.0] * 4)
    assert SimultaneousWidth(0.9)(belief) == pytest.approx(math.sqrt(2 * math.log(belief.effective_dimension / 0.1)))
    assert belief.effective_dimension == pytest.approx(4, abs=0.01)
    outside = np.abs(np.random.default_rng(0).standard_normal((4000, 4))) > SimultaneousWidth(0.9)(belief)
    assert outside.any(axis=1).mean() < 0.1
    assert SimultaneousWidth(0.9)(known([0], [0.0])) == pytest.approx(math.sqrt(2 * math.log(10))), "never below one"


# --- candidates, milestones, history -----------------------------------------------------------------------------


def test_candidates_close_in_on_the_best():
    space = ParameterSpace({"x": Float(0, 1), "y": Float(0, 1)})
    measured = np.random.default_rng(0).random((30, 2))
    belief = observed(Matern(2.5, 0.3), measured, -((measured - 0.4) ** 2).sum(axis=1), 1e-4)
    points, lifted = Candidates()(space, belief, measured, np.full(2, 0.3), np.random.default_rng(1))
    np.testing.assert_allclose(lifted, belief.lifted(points), atol=1e-9)
    assert ((points >= 0) & (points <= 1)).all()
    peak = points[np.argmax(belief.predict(points)[0])]
    fine = np.random.default_rng(2).random((20_000, 2))
    assert belief.predict(peak[None])[0][0] >= belief.predict(fine)[0].max() - 1e-4


def test_a_small_space_is_taken_whole():
    space = ParameterSpace({"a": Int(1, 20), "b": Choice(["x", "y", "z"])})
    measured = space.everything()[:3]
    belief = observed(Matern(2.5, 0.3), measured, np.zeros(3), 1e-2)
    points, lifted = Candidates()(space, belief, measured, np.full(4, 0.3), np.random.default_rng(0))
    assert len(points) == 60
    np.testing.assert_allclose(lifted, belief.lifted(points), atol=1e-9)


def test_candidates_belong_to_the_space():
    space = ParameterSpace({"a": Float(0, 1), "b": Int(1, 5), "c": Choice(["x", "y", "z"])})
    measured = space.snap(sobol(8, 5, 0))
    belief = observed(Matern(2.5, 0.3), measured, np.arange(8.0), 1e-2)
    points = Candidates()(space, belief, measured, np.full(5, 0.3), np.random.default_rng(0)).points
    assert np.array_equal(points, space.snap(points))
    assert {(p["b"], p["c"]) for p in space.decode(points)} == {(b, c) for b in range(1, 6) for c in "xyz"}


@pytest.mark.slow  # the import of scipy.stats
@pytest.mark.parametrize("dimension", [1, 2, 7, 100, 101])
def test_sobol_points_are_those_of_scipy(dimension):
    from scipy.stats import qmc

    theirs = qmc.Sobol(dimension, seed=np.random.default_rng(5)).random_base2(7)
    assert np.array_equal(sobol(100, dimension, 5), theirs[:100])


def test_sobol_points_are_nested_and_even():
    assert np.array_equal(sobol(64, 3, 7)[:20], sobol(20, 3, 7))
    moved = shifted(sobol(256, 2, 0), np.random.default_rng(0))
    counts = np.histogram2d(moved[:, 0], moved[:, 1], bins=4, range=[[0, 1], [0, 1]])[0]
    assert counts.min() > 8, "16 a cell on average"


def test_steps_stay_near_but_for_a_leap_now_and_then():
    centre = np.full((1, 4), 0.5)
    cloud = around(centre, 1000, np.full(4, 0.01), np.arange(4), np.random.default_rng(0))
    assert (np.abs(cloud - 0.5).max(axis=1) < 0.06).mean() > 0.85
    assert (np.abs(cloud - 0.5).max(axis=1) > 0.1).any()
    assert (cloud != 0.5).any(axis=1).all()


def test_milestones_come_at_a_growing_distance():
    reached = sorted({milestone(count, 5, 40, 2.0) for count in range(5, 200)})
    assert reached == [5, 6, 7, 8, 9, 11, 14, 18, 26, 42, 84, 168]
    assert milestone(3, 5, 40, 2.0) == 3


@pytest.mark.slow
def test_milestones_are_never_far_apart():
    found = sorted({milestone(count, 5, 2000, 1.05, 100) for count in range(5, 6000)})
    assert max(np.diff(found)) == 100
    assert [m for m in found if m < 1900] == sorted({milestone(c, 5, 2000, 1.05) for c in range(5, 1900)})


@pytest.mark.slow
def test_representative_points_cover_everything_and_crowd_where_it_is_best():
    rng = np.random.default_rng(0)
    points = rng.random((400, 2))
    values = -((points - 0.3) ** 2).sum(axis=1)
    given = Evidence(points, np.arange(400), values, np.full(400, np.nan), np.array([0, 1]))
    calibrated = OptimizerConfig().calibrated(given)
    kept = representative(calibrated, calibrated.scale.standardised(given), 60)
    assert kept.size == 60
    far = np.sqrt(((points[:, None] - points[kept]) ** 2).sum(axis=2)).min(axis=1)
    assert far.max() < 0.25, "thirty points that cover the square leave none farther from them"
    best = np.argsort(-values)[:20]
    assert np.isin(best, kept).all()


def test_of_very_many_points_a_bounded_number_is_considered_and_those_measured_often_are_among_them(monkeypatch):
    rng, considered = np.random.default_rng(0), []
    where = np.concatenate([np.arange(500), np.full(500, 7)])[rng.permutation(1000)]
    given = Evidence(rng.random((500, 2)), where, rng.random(1000), np.full(1000, np.nan), np.array([0, 1]))
    calibrated, spread = OptimizerConfig().calibrated(given), learning.spread
    monkeypatch.setattr(learning, "CONSIDERED", 100)
    monkeypatch.setattr(learning, "spread", lambda points, n: considered.append(len(points)) or spread(points, n))
    kept = representative(calibrated, calibrated.scale.standardised(given), 40)
    assert kept.size == 40
    assert 0 < considered[0] <= 100
    assert 7 in representative(calibrated, calibrated.scale.standardised(given), 100)


def test_many_points_are_predicted_as_few_are(monkeypatch):
    belief = observed(Matern(2.5, 0.3), np.random.default_rng(0).random((3, 2)), [1.0, 2.0, 3.0], 0.1)
    points, lifted, sizes = np.random.default_rng(1).random((20, 2)), posterior.Conditioned.lifted, []
    expected = belief.predict(points)
    monkeypatch.setattr(posterior, "POINTS_AT_ONCE", 7)
    monkeypatch.setattr(posterior.Conditioned, "lifted", lambda its, part: sizes.append(len(part)) or lifted(its, part))
    for pieces, whole in zip(belief.predict(points), expected, strict=True):
        np.testing.assert_allclose(pieces, whole, atol=1e-12)
    assert sizes == [7, 7, 6]
    assert [column.shape for column in belief.predict(points[:0])] == [(0,), (0,)]


@pytest.mark.parametrize("width", [19, 20])
def test_in_twenty_dimensions_and_more_the_best_candidates_climb(width):
    space, rng = ParameterSpace({f"x{i}": Float(0, 1) for i in range(width)}), np.random.default_rng(0)
    measured = rng.random((40, width))
    belief = observed(Matern(2.5, 2.0), measured, -((measured - 0.5) ** 2).sum(axis=1), 0.01)
    points = Candidates()(space, belief, measured, np.full(width, 2.0), rng).points
    mean, std = belief.predict(points)
    scores = log_expected_improvement(mean - belief.predict(measured)[0].max(), std)
    assert (min(scores[-5:]) > max(scores[:-5])) == (width >= 20)


@pytest.mark.parametrize(("parameters", "answers"), [(1, 9), (20, 28), (50, 28)])
def test_the_first_fit_waits_for_a_few_answers(parameters, answers):
    assert OptimizerConfig().first(ParameterSpace({f"x{i}": Float(0, 1) for i in range(parameters)})) == answers


def test_only_a_list_of_names_has_a_rule_of_its_own():
    improve, letters = Improve(), Choice(["a", "b", "c"])

    def rule(question, space, is_moving=False, noise=0.3, is_rough=False, arms=(0, -1)):
        models = SimpleNamespace(fit=replace(fit_of((0.3,), 1.0, noise), is_rough=is_rough))
        state = {"space": ParameterSpace(space), "is_moving": is_moving, "models": models, "numbers": np.array(arms)}
        return question._rule(SimpleNamespace(**state))

    assert rule(improve, {"x": letters}) == AMONG_NAMES
    assert rule(improve, {"x": letters}, is_moving=True) == improve.moving_rule == Optimism(2.0)
    for space in ({"x": letters, "y": letters}, {"x": Int(1, 3)}, {"x": Float(0, 1)}):
        assert rule(improve, space) == SaturatedImprovement()
        assert rule(improve, space, noise=0.01) == SaturatedImprovement(by_decision=True), "next to no noise"
    assert rule(improve, {"x": Int(1, 3)}, is_rough=True) == SaturatedImprovement(), "a noisy list is measured again"
    table = {"x": Int(1, 3), "y": Int(1, 3)}
    assert rule(improve, table, is_rough=True) == SaturatedImprovement(by_decision=True), "at any noise"
    assert rule(improve, table, is_rough=True, arms=(0, 1)) == SaturatedImprovement(), "all settings are measured"
    assert rule(Improve(rule=ExpectedImprovement()), {"x": letters}) == ExpectedImprovement()
    assert with_rule(None) == OptimizerConfig(), "the helper of these tests is up to date"


def test_a_subset_spreads_over_time():
    data = evidence(points=30, measurements=60)
    part = subset(data, 10)
    assert len(part.points) == 10
    assert np.array_equal(part.points[0], data.points[0])
    assert np.array_equal(part.points[-1], data.points[-1])
    assert len(part) == np.isin(data.points[data.where], part.points).all(axis=1).sum()
    assert subset(data, 30) is data


def test_points_that_only_failed_count_as_bad():
    history = History(ParameterSpace({"x": Float(0, 1)}))
    for i in range(11):
        history.add(answer_of(history.intern({"x": i / 20}), value=float(i)))
    history.add(answer_of(history.intern({"x": 0.9})))
    history.add(answer_of(history.intern({"x": 0.05})))  # has a value: its failure does not count
    data, numbers = history.evidence(13)
    assert len(data) == 12
    assert (numbers[data.where[-1]], data.values[-1]) == (11, 1.0)
    assert history.hopeless.tolist() == history.unproven.tolist() == [11]


# --- failures ----------------------------------------------------------------------------------------------------


def judged(points, successes, failures):
    points = np.array(points, dtype=float)
    return hopeless(points, np.array(successes), np.array(failures), points.shape[1]).tolist()


def test_one_failure_is_enough_where_failures_are_rare():
    points = [[x] for x in (0.0, 0.1, 0.2, 0.3, 0.9)]
    assert judged(points, [1, 1, 1, 1, 0], [0, 0, 0, 0, 1]) == [4]


def test_a_failure_amid_settings_that_work_is_bad_luck():
    points = [[x] for x in (0.48, 0.49, 0.5, 0.51, 0.52, 0.9)]
    assert judged(points, [1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]) == []
    assert judged(points, [1, 1, 0, 1, 1, 1], [0, 0, 3, 0, 0, 0]) == [2], "but three in a row are not"


def test_where_everything_fails_now_and_then_a_lone_failure_is_bad_luck():
    points = [[x] for x in (0.0, 0.3, 0.6, 0.9)]
    assert judged(points, [7, 7, 7, 0], [3, 3, 3, 1]) == []
    assert judged(points, [7, 7, 7, 0], [0, 0, 0, 1]) == [3]


def test_neighbours_that_fail_make_a_setting_hopeless():
    """Failures are as common elsewhere in both."""
    points = [[x] for x in (0.0, 0.3, 0.6, 0.88, 0.9, 0.92)]
    assert judged(points, [7, 7, 7, 0, 0, 0], [3, 3, 3, 1, 1, 1]) == [3, 4, 5]


def test_nothing_failed_and_nothing_else_tried():
    assert judged([[0.5]], [1], [0]) == []
    assert judged([[0.5]], [0], [1]) == [0]
    assert judged([[0.5], [0.6]], [0, 0], [1, 0]) == [0], "what is only under way is no neighbour"


def repeated(*settings):
    """Evidence with these values of each setting."""
    where = np.repeat(np.arange(len(settings)), [len(values) for values in settings])
    values = np.concatenate([np.array(values, dtype=float) for values in settings])
    points = np.linspace(0, 1, len(settings))[:, None]
    return Evidence(points, where, values, np.full(len(values), np.nan), np.zeros(1, int))


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        ([[0.25] * 4, [0.9], [0.8]], 3),  # one that always fails to learn
        ([[0.25] * 4, [0.9, 0.8], [0.7, 0.7]], 4),  # others disagree
        ([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]], 0),  # four agree: there is no noise
        ([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.5]], 3),
        ([[0.1], [0.9] * 5], 0),  # four repeats of the best one
        ([[0.1], [0.9] * 4], 3),
        ([[0.1], [0.2]], 0),
    ],
)
def test_repeats_that_agree_say_little_about_the_noise(settings, ignored):
    assert repeated(*settings).agreement() == ignored


@pytest.mark.parametrize(("count", "outliers"), [(40, 1), (100, 1), (60, 3)])
@pytest.mark.parametrize("outlier", [100.0, -1e5])
def test_equal_values_and_few_outliers_are_estimated_near_the_equal_ones(count, outliers, outlier):
    opt, rng = Optimizer({"x": Float(0, 1)}, goal="maximize", rng=0), np.random.default_rng(count)
    values = np.ones(count)
    values[rng.choice(np.arange(5, count - 5), outliers, replace=False)] = outlier
    for x, value in zip(rng.random(count).tolist(), values.tolist(), strict=True):
        opt.tell({"x": x}, value)
    assert opt.predict({"x": 0.5}).estimate == pytest.approx(1, abs=0.5)
