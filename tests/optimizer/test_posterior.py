"""The posterior of a Gaussian process against direct solves with the full covariance."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.configs import observed

from noregret import Float, Matern, Optimizer, SquaredExponential
from noregret.optimizer.model.posterior import ObservationRows, condition, faded, prior_matrix

ALGEBRA = settings(derandomize=True, deadline=None, max_examples=40)
SEEDS = st.integers(0, 2**32 - 1)
KERNELS = st.sampled_from(
    [SquaredExponential(0.3), Matern(1.5, 0.5), 4.0 * Matern(0.5, 0.2), Matern(2.5, 0.3) + 0.5 * Matern(2.5, 1.0)]
)
CENTRES = st.sampled_from([0.0, 0.7])
"""Prior variances of the mean."""


class Direct:
    """The textbook formulas over every single observation: K + diag(noise) is solved directly."""

    def __init__(self, kernel, rows, half_life=math.inf, now=0.0, centre=0.0, factor=1.0):
        self.kernel, self.rows, self.half_life, self.now = kernel, rows, half_life, now
        self.centre, self.factor = centre, factor
        self.prior = self._covariance(rows.points, rows.points, rows.times, rows.times)
        self.noisy = self.prior + np.diag(rows.noise)

    def _covariance(self, first, second, then, later):
        age = 0.0 if then is None or later is None else np.asarray(then)[:, None] - np.asarray(later)
        fading = 1.0 if self.half_life == math.inf else 2 ** (-np.abs(age) / (2 * self.half_life))
        return self.centre + self.factor * self.kernel(first, second) * fading

    def joint(self, points):
        """Mean (n,) and covariance (n, n) at (n, d) points now."""
        times = None if self.rows.times is None else np.full(len(points), self.now)
        shared = self._covariance(self.rows.points, points, self.rows.times, times)
        prior = self.centre + self.factor * self.kernel(points, points)
        mean = shared.T @ np.linalg.solve(self.noisy, self.rows.values)
        return mean, prior - shared.T @ np.linalg.solve(self.noisy, shared)

    @property
    def log_density(self):
        sign, determinant = np.linalg.slogdet(self.noisy)
        assert sign > 0
        return -0.5 * (self.rows.values @ np.linalg.solve(self.noisy, self.rows.values) + determinant)

    @property
    def effective_dimension(self):
        return np.trace(np.linalg.solve(self.noisy, self.prior))

    @property
    def information_gain(self):
        return 0.5 * np.linalg.slogdet(np.eye(len(self.noisy)) + self.prior / self.rows.noise[:, None])[1]


def history(seed, count, arms=7, is_aged=False):
    """Arms in the plane, the arm of each of ``count`` observations, most of them repeated, and their rows."""
    rng = np.random.default_rng(seed)
    points, pulls = rng.random((arms, 2)), (arms * rng.random(count) ** 2).astype(int)
    times = np.sort(rng.uniform(0, 30, count)) if is_aged else None
    noise = np.exp(rng.uniform(-4, 1, count))
    return points, pulls, ObservationRows(points[pulls], 3 * rng.standard_normal(count), noise, times), rng


def assert_knows(posterior, direct):
    """The posterior says the same as the direct solve about its arms, elsewhere and in all."""
    mean, covariance = direct.joint(posterior.arms)
    every = np.arange(len(posterior.arms))
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.variance, covariance.diagonal(), atol=1e-8)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.maximum(covariance.diagonal(), 0.0)), atol=1e-7)
    np.testing.assert_allclose(posterior.covariance(every, every[::2]), covariance[:, ::2], atol=1e-8)
    anywhere = np.random.default_rng(0).random((6, 2)) * 3 - 1
    mean, covariance = direct.joint(anywhere)
    np.testing.assert_allclose(
        posterior.predict(anywhere), (mean, np.sqrt(np.maximum(covariance.diagonal(), 0.0))), atol=1e-7
    )
    np.testing.assert_allclose(posterior.full.joint(anywhere)[1], covariance, atol=1e-8)
    assert posterior.full.log_density == pytest.approx(direct.log_density, rel=1e-8, abs=1e-8)


def told(posterior, pulls, rows, first):
    """The posterior after the rows from ``first`` on, one by one."""
    for i in range(first, len(pulls)):
        posterior = posterior.told(int(pulls[i]), float(rows.values[i]), float(rows.noise[i]))
    return posterior


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, CENTRES, st.integers(1, 30), st.integers(0, 30))
def test_updates_equal_a_direct_solve(seed, kernel, centre, before, later):
    arms, pulls, rows, _ = history(seed, before + later)
    first = rows.only(np.arange(before))
    posterior = condition(kernel, first, mean_variance=centre).at(arms, pulls[:before], 1.0)
    assert_knows(posterior, Direct(kernel, first, centre=centre))
    posterior = told(posterior, pulls, rows, before)
    direct = Direct(kernel, rows, centre=centre)
    assert_knows(posterior, direct)
    assert (posterior.rank, posterior.rounds) == (before + later, before + later)
    assert posterior.pulled.tolist() == list(dict.fromkeys(pulls.tolist()))
    np.testing.assert_array_equal(posterior.rows.values, rows.values)
    assert posterior.effective_dimension == pytest.approx(direct.effective_dimension, rel=1e-7)
    assert posterior.information_gain == pytest.approx(direct.information_gain, rel=1e-7)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, st.integers(1, 20), st.integers(0, 20))
def test_an_update_leaves_the_posterior_before_it_as_it_was(seed, kernel, before, later):
    arms, pulls, rows, rng = history(seed, before + later + 1)
    first = rows.only(np.arange(before))
    posterior = told(condition(kernel, first).at(arms, pulls[:before], 1.0), pulls[:-1], rows, before)
    direct = Direct(kernel, rows.only(np.arange(before + later)))
    one, other = posterior.told(0, 1.0, 0.1), posterior.told(1, -2.0, 0.3)
    posterior.extended(rng.random((2, 2)))
    assert_knows(posterior, direct)
    for after, row in ((one, (0, 1.0, 0.1)), (other, (1, -2.0, 0.3))):
        arm, value, noise = row
        points = np.vstack([direct.rows.points, arms[[arm]]])
        more = ObservationRows(points, np.append(direct.rows.values, value), np.append(direct.rows.noise, noise))
        assert_knows(after, Direct(kernel, more))


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, CENTRES, st.integers(1, 20), st.integers(0, 20), st.integers(0, 20))
def test_more_arms_know_what_was_learnt_and_learn(seed, kernel, centre, before, between, later):
    """Arms are added after the first updates, and updated like the others."""
    arms, pulls, rows, rng = history(seed, before + between + later, arms=9)
    known = before + between
    pulls[:known] = pulls[:known] % 6
    rows = rows._replace(points=arms[pulls])
    posterior = condition(kernel, rows.only(np.arange(before)), mean_variance=centre).at(arms[:6], pulls[:before], 1.0)
    posterior = told(posterior, pulls[:known], rows, before).extended(arms[6:])
    np.testing.assert_array_equal(posterior.arms, arms)
    assert_knows(posterior, Direct(kernel, rows.only(np.arange(known)), centre=centre))
    posterior = told(posterior, pulls, rows, known).extended(rng.random((3, 2)))
    assert_knows(posterior, Direct(kernel, rows, centre=centre))


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, st.floats(1.0, 50.0), st.integers(1, 20), st.integers(0, 15))
def test_where_f_changes_it_equals_conditioning_from_scratch_with_times(seed, kernel, half_life, before, later):
    """Observations, then one at a time with a pause of one answer or more after each."""
    arms, pulls, rows, rng = history(seed, before + later, is_aged=True)
    now, first = float(rows.times[before - 1]) + 1, rows.only(np.arange(before))
    posterior, times = condition(kernel, first, half_life, now).at(arms, pulls[:before], 1.0), rows.times.copy()
    assert_knows(posterior, Direct(kernel, first, half_life, now))
    for i in range(before, before + later):
        times[i] = now
        posterior = posterior.told(int(pulls[i]), float(rows.values[i]), float(rows.noise[i]))
        so_far = rows._replace(times=times).only(np.arange(i + 1))
        assert_knows(posterior, Direct(kernel, so_far, half_life, now))
        pause = float(rng.choice([1, 1, 3]))
        now, posterior = now + pause, posterior.advanced(pause)
    rows = rows._replace(times=times)
    assert_knows(posterior, Direct(kernel, rows, half_life, now))
    again = condition(kernel, rows, half_life, now).at(arms, pulls, 1.0)
    np.testing.assert_allclose(posterior.mean, again.mean, atol=1e-8)
    np.testing.assert_allclose(posterior.variance, again.variance, atol=1e-8)
    np.testing.assert_allclose(posterior.extended(arms[::-1]).mean[len(arms) :], again.mean[::-1], atol=1e-8)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, CENTRES, st.floats(0.0, 3.0), st.booleans(), st.integers(1, 30))
def test_a_conditioned_process_equals_a_direct_solve(seed, kernel, centre, factor, is_aged, count):
    """Also with a factor on the kernel, 0 for a constant f, and with a matrix that is known already."""
    arms, _, rows, _ = history(seed, count, is_aged=is_aged)
    half_life, now = (7.0, 31.0) if is_aged else (math.inf, 0.0)
    direct = Direct(kernel, rows, half_life, now, centre, factor)
    matrix = prior_matrix(kernel, rows, half_life)
    for given_matrix in (None, matrix):
        process = condition(kernel, rows, half_life, now, centre, factor, given_matrix)
        mean, covariance = direct.joint(arms)
        np.testing.assert_allclose(process.joint(arms)[0], mean, atol=1e-8)
        np.testing.assert_allclose(process.joint(arms)[1], covariance, atol=1e-8)
        std = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        np.testing.assert_allclose(process.predict(arms), (mean, std), atol=1e-6)
        assert process.log_density == pytest.approx(direct.log_density, rel=1e-8, abs=1e-8)


@pytest.mark.slow
@ALGEBRA
@given(SEEDS, KERNELS, st.integers(1, 40))
def test_repeats_equal_their_average(seed, kernel, count):
    """n values of a point equal their weighted average with the sum of their precisions."""
    arms, pulls, rows, _ = history(seed, count)
    pulled, where = np.unique(pulls, return_inverse=True)
    precision = np.bincount(where, 1 / rows.noise)
    averages = np.bincount(where, rows.values / rows.noise) / precision
    pooled = condition(kernel, ObservationRows(arms[pulled], averages, 1 / precision)).at(arms, pulled, 1.0)
    single = condition(kernel, rows).at(arms, pulls, 1.0)
    np.testing.assert_allclose(pooled.mean, single.mean, atol=1e-8)
    np.testing.assert_allclose(pooled.variance, single.variance, atol=1e-8)
    assert pooled.effective_dimension == pytest.approx(single.effective_dimension, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_samples_have_the_mean_and_the_covariance(seed):
    arms, pulls, rows, rng = history(seed, 12, arms=5)
    posterior = told(condition(Matern(2.5, 0.3), rows.only(np.arange(6))).at(arms, pulls[:6], 1.0), pulls, rows, 6)
    mean, covariance = Direct(Matern(2.5, 0.3), rows).joint(arms)
    draws = np.array([posterior.sample(rng) for _ in range(4000)])
    std = np.sqrt(covariance.diagonal())
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 5 * std / math.sqrt(4000))
    # the standard error of an entry is at most sqrt(2 / 4000) times the product of the two standard deviations
    np.testing.assert_array_less(np.abs(np.cov(draws.T) - covariance), 5 * math.sqrt(2 / 4000) * np.outer(std, std))


def test_what_was_computed_for_candidates_is_not_computed_again():
    """With V of the arms given, the kernel is not evaluated, and the posterior is the same."""
    rng, looked = np.random.default_rng(0), []

    class Counted(Matern):
        def __call__(self, first, second):
            looked.append((len(first), len(second)))
            return super().__call__(first, second)

    points, arms = rng.random((4, 2)), rng.random((20, 2))
    arms[:4] = points
    process = observed(Counted(2.5, 0.4), points, [0.5, 1.0, 0.8, -1.0], 0.01)
    lifted = process.lifted(arms)
    looked.clear()
    known = process.at(arms, np.arange(4), 1.0, lifted)
    assert not looked
    new = process.at(arms, np.arange(4), 1.0)
    assert looked == [(4, 20)]
    for name in ("mean", "std", "information_gain", "effective_dimension"):
        np.testing.assert_array_equal(getattr(known, name), getattr(new, name))
    looked.clear()
    known.told(7, 0.3, 0.01)
    assert looked == [(1, 20)], "one more observation evaluates one row"


def test_after_a_half_life_half_of_the_variance_is_explained():
    assert faded(np.array([0.0, 5.0, -5.0]), 5.0) ** 2 == pytest.approx([1.0, 0.5, 0.5])
    assert faded(np.array([3.0]), math.inf) == 1.0
    rows = ObservationRows(np.array([[0.5, 0.5]]), np.array([1.0]), np.array([1e-9]), np.array([0.0]))
    posterior = condition(Matern(2.5, 0.3), rows, half_life=5.0).at(rows.points, np.zeros(1, dtype=np.intp), 1.0)
    assert posterior.variance == pytest.approx([0.0], abs=1e-8)
    assert posterior.advanced(5).variance == pytest.approx([0.5])
    assert posterior.advanced(2).advanced(3).mean == pytest.approx(posterior.advanced(5).mean)


def test_rows_that_cannot_be_conditioned_on_are_refused():
    points = np.full((3, 1), 0.5)
    with pytest.raises(ValueError, match="kernel matrix of 3 rows is not positive definite: noise is too small"):
        condition(Matern(2.5, 0.3), ObservationRows(points, np.ones(3), np.full(3, -1e-3)))


def test_a_batch_continues_where_the_last_question_ended():
    """A copy forgets what the last question saw and adds all pending trials again: the next question is the same."""
    opt, rng = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=0), np.random.default_rng(0)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, sum((value - 0.4) ** 2 for value in trial.params.values()) + 0.05 * rng.standard_normal())
    for _ in range(5):
        opt.ask()
        assert copy.copy(opt).ask().params == opt.ask().params


def test_a_value_is_added_alike_under_a_factor_and_an_unknown_mean():
    rng, kernel = np.random.default_rng(0), Matern(2.5, 0.3)
    rows = ObservationRows(rng.random((6, 2)), rng.standard_normal(6), np.full(6, 0.1))
    first = condition(kernel, rows.only(np.arange(5)), mean_variance=0.7, factor=2.5)
    after = first.at(rows.points, np.arange(5), 1.0).told(5, float(rows.values[5]), 0.1)
    mean, covariance = Direct(kernel, rows, centre=0.7, factor=2.5).joint(rows.points)
    np.testing.assert_allclose(after.mean, mean, atol=1e-9)
    np.testing.assert_allclose(after.covariance(np.arange(6), np.arange(6)), covariance, atol=1e-9)


def test_what_is_left_once_f_is_known_elsewhere_is_that_of_noiseless_rows():
    rng = np.random.default_rng(5)
    rows = ObservationRows(rng.random((9, 2)), rng.standard_normal(9), np.full(9, 0.2))
    known, points = rng.random((4, 2)), rng.random((6, 2))
    process = condition(Matern(2.5, 0.4), rows)
    both = np.vstack([points, known])
    mean, std, left = process.given(np.vstack([known, known[:1]]))(both, process.lifted(both))
    more = ObservationRows(np.vstack([rows.points, known]), np.zeros(13), np.append(rows.noise, np.full(4, 1e-10)))
    np.testing.assert_allclose(left, condition(Matern(2.5, 0.4), more).predict(both)[1], atol=2e-5)
    np.testing.assert_allclose((mean, std), process.predict(both))
