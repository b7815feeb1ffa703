"""The certificate: intervals of estimates, bounds on better settings, and stopping."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
from tests.optimizer.configs import fit_of, fitted

from noregret import Choice, Float, Optimizer
from noregret.bandits.belief.exact import ExactGP
from noregret.gp.kernels import Matern
from noregret.optimizer.answers.certificate import (
    SIZES,
    Certificate,
    alpha_spending,
    clopper_pearson_test,
    half_height,
)
from noregret.optimizer.model.evidence import MOST_FITTED, REFUTED
from noregret.optimizer.model.kernel import CENTRE
from noregret.optimizer.model.posterior import ObservationRows
from noregret.optimizer.model.tenable import PooledRows, models, unrefuted, widest
from noregret.optimizer.space.table import as_space

LINE = {"x": Float(0, 1)}


def bowl(x):
    return (x - 0.3) ** 2


def told(count, function=bowl, noise=0.01, seed=0, goal="minimize"):
    """An optimizer after this number of observations, evenly spaced, in random order."""
    opt, rng = Optimizer(LINE, goal=goal, rng=seed), np.random.default_rng(seed)
    for x in rng.permutation(np.linspace(0, 1, count)).tolist():
        opt.tell({"x": x}, function(x) + noise * rng.standard_normal())
    return opt


def certificate_of(points, values, fit, noise=0.01, others=None, space=LINE):
    """The certificate after values at (u, 1) points in standard units."""
    calibrated = fitted(fit)
    others = points if others is None else others
    pooled, seed = pooled_of(points, values, np.full(len(points), noise**2)), np.random.SeedSequence(0)
    anchors = np.empty(0, dtype=np.intp)
    return Certificate(calibrated, as_space(space), pooled, values, others, seed, len(points), anchors, is_free=False)


def pooled_of(points, values, noise, scatter=0.0, freedom=0, **options):
    """Observations of (u, d) points, of these noise variances, and their scatter."""
    return PooledRows(ObservationRows(points, values, noise), scatter, freedom, now=0.0, **options)


def tenable(*given):
    """The models under which the worst is stated."""
    return widest(unrefuted(*given))


def model_of(pooled, fit, amplitude=1.0, noise=1.0):
    """One model: the fit with these factors on its amplitude and noise."""
    return models(fitted(fit), np.zeros(1, dtype=np.intp), pooled, 1.0, [(amplitude, noise)])[0]


def test_best_states_its_level_and_how_much_better_others_may_be():
    best = told(60).best()
    assert (best.level, best.feasible) == (0.95, 1.0)
    assert 0 <= best.gap < 0.1, "the worst is 0.49"
    assert best.lower <= best.estimate <= best.upper


def test_any_params_have_a_gap_that_is_as_large_as_they_are_bad():
    assert 0.3 < told(60).predict({"x": 0.9}).gap < 0.5, "it is 0.36 worse than the best"


def test_after_one_value_nothing_is_known():
    opt = told(1)
    assert opt.best().gap == math.inf
    assert opt.best().lower == -math.inf


def test_a_gap_is_of_when_the_estimate_was_made():
    opt = told(60)
    early, same = opt.best(), opt.best()
    opt.tell({"x": 0.3}, -5.0)
    opt.tell({"x": 0.3}, -5.0)
    assert early.gap == same.gap < 0.1
    assert pickle.loads(pickle.dumps(early)) == early
    assert pickle.loads(pickle.dumps(early)).gap == early.gap


@pytest.mark.slow
def test_gap_and_answer_do_not_depend_on_who_looked_before():
    quiet, curious = told(60), told(60)
    for within in (0.001, 0.01, 1.0):
        curious.done(within)
    assert curious.predict({"x": 0.5}).gap > 0
    for twin in (curious, copy.copy(curious), pickle.loads(pickle.dumps(curious))):
        assert twin.best() == quiet.best()
        assert twin.best().gap == quiet.best().gap
        assert twin.done(0.05) == quiet.done(0.05)


def test_goals_are_each_others_mirror_image():
    low, high = told(60), told(60, lambda x: -bowl(x), goal="maximize", noise=-0.01)
    assert low.best().gap == high.best().gap
    assert [low.done(within) for within in (0.001, 0.05)] == [high.done(within) for within in (0.001, 0.05)]


def test_units_are_those_of_the_values():
    small, large = told(60), Optimizer(LINE, rng=0)
    for measurement in small.measurements:
        large.tell(measurement.params, 5 + 1024 * measurement.value)
    assert large.best().gap == pytest.approx(1024 * small.best().gap, rel=0.01)


def test_the_gap_is_that_of_draws_of_the_maximum():
    arms, fit = np.linspace(0, 1, 60)[:, None], fit_of((0.2,), 1.0, 0.05)
    values = np.sin(7 * arms[::3, 0])
    found = certificate_of(arms[::3], values, fit, 0.05, arms)
    one = found._contest(model_of(found.pooled, fit), arms[[30]])
    belief, rng = (
        ExactGP(CENTRE**2 * Matern(2.5, 1e6) + Matern(2.5, 0.2), 0.05**2).prior(arms),
        np.random.default_rng(1),
    )
    belief.update(np.arange(0, 60, 3), values)
    draws = np.array([belief.sample(rng) for _ in range(4000)])
    expected = np.quantile(draws.max(axis=1) - draws[:, 30], 0.95)
    assert np.quantile(one.excess(4000, rng), 0.95) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("lengthscale", [0.4, 0.1, 0.02])
@pytest.mark.parametrize(("amplitude", "noise"), [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (0.0, 2.0)])
def test_a_model_is_the_posterior_of_its_model(lengthscale, amplitude, noise):
    """A direct solve with the prior covariance CENTRE^2 + a^2 k and all measurements, repeated ones too."""
    rng = np.random.default_rng(0)
    points, where, values = rng.random((8, 1)), np.repeat(np.arange(8), 3), rng.standard_normal(24)
    averages, variance = values.reshape(8, 3).mean(axis=1), 0.15
    scatter = float(((values - averages[where]) ** 2).sum()) / variance
    pooled = pooled_of(points, averages, np.full(8, variance / 3), scatter, 16)
    found = model_of(pooled, fit_of((lengthscale,), 1.0, 0.3), amplitude, noise)

    places = np.vstack([points, [[0.5], [2.0]]])
    prior = CENTRE**2 + amplitude**2 * Matern(2.5, lengthscale)(places, places)
    matrix = prior[np.ix_(where, where)] + noise**2 * variance * np.eye(24)
    shared = prior[:, where]
    mean, covariance = shared @ np.linalg.solve(matrix, values), prior - shared @ np.linalg.solve(matrix, shared.T)
    np.testing.assert_allclose(found.process.predict(places), (mean, np.sqrt(np.diag(covariance))), atol=1e-9)
    np.testing.assert_allclose(found.process.joint(places)[1], covariance, atol=1e-9)
    density = -0.5 * (values @ np.linalg.solve(matrix, values) + np.linalg.slogdet(matrix)[1])
    constant = -0.5 * (16 * np.log(variance) + 8 * np.log(3))  # the same for all models
    assert found.likelihood == pytest.approx(density - constant)


def test_the_noise_that_explains_everything_is_the_most_likely_one():
    rng = np.random.default_rng(0)
    pooled = pooled_of(rng.random((30, 1)), rng.standard_normal(30), np.full(30, 0.01), 4.0, 5)
    fit, best = fit_of((0.2,), 1.0, 0.1), pooled.noise_alone()
    likelihoods = [model_of(pooled, fit, 0.0, best * factor).likelihood for factor in (0.95, 1.0, 1.05)]
    assert np.argmax(likelihoods) == 1


@pytest.mark.parametrize(("spread", "factor"), [(0.0, 1.0), (0.3, 1.0), (2.0, 4.0)])
def test_a_constant_f_never_explains_the_values_with_less_noise_than_there_is(spread, factor):
    values = spread * np.array([-1.0, 1.0, -1.0, 1.0])
    pooled = pooled_of(np.linspace(0, 1, 4)[:, None], values, np.full(4, 0.5**2))
    assert pooled.noise_alone() == pytest.approx(factor)


def test_models_that_the_measurements_refute_are_dropped_and_the_right_one_never():
    points, fit = np.linspace(0, 1, 20)[:, None], fit_of((0.4,), 0.5, 0.05)
    for seed in range(20):
        covariance = Matern(2.5, 0.1)(points, points) + 0.05**2 * np.eye(20)
        values = np.linalg.cholesky(covariance) @ np.random.default_rng(seed).standard_normal(20)
        pooled = pooled_of(points, values, np.full(20, 0.05**2))
        found = tenable(fitted(fit), np.zeros(1, dtype=np.intp), pooled)
        assert any((each.ratio, each.amplitude) == (0.25, 2.0) for each in found), "the right one"
        assert model_of(pooled, fit).likelihood < max(each.likelihood for each in found) - REFUTED
        assert not any((each.ratio, each.amplitude) == (1.0, 2.0) for each in found)


def test_noise_alone_is_refuted_by_a_signal_and_by_nothing_else():
    """20 points measured once, with a noise that was fitted far too small: noise alone is still tried, and kept."""
    points, fit, groups = np.linspace(0, 1, 20)[:, None], fit_of((0.1,), 1.0, 0.05), np.zeros(1, dtype=np.intp)
    for seed in range(20):
        noise = np.random.default_rng(seed).standard_normal(20)
        nothing = tenable(fitted(fit), groups, pooled_of(points, noise, np.full(20, 0.05**2)))
        assert any(each.amplitude == 0 for each in nothing)
        signal = 3 * np.sin(6 * points[:, 0]) + 0.1 * noise
        something = tenable(fitted(fit_of((0.4,), 2.0, 0.1)), groups, pooled_of(points, signal, np.full(20, 0.1**2)))
        assert all(each.amplitude > 0 for each in something)


def test_repeats_refute_a_larger_noise_and_a_told_noise_is_not_doubted():
    points, groups = np.linspace(0, 1, 6)[:, None], np.zeros(1, dtype=np.intp)
    values, noise = np.array([0.0, 0.4, -0.3, 0.2, 0.1, -0.2]), np.full(6, 0.3**2)

    def noises(**repeats):
        found = tenable(fitted(fit_of((0.3,), 0.3, 0.3)), groups, pooled_of(points, values, noise, **repeats))
        return sum(each.ratio == 1.0 for each in found)

    assert noises(scatter=40.0, freedom=40) < noises()
    assert noises(is_noise_known=True) <= 2, "the fit, and a constant"


def test_there_are_models_whatever_was_measured():
    """Also where all values are equal."""
    for values in (np.zeros(30), np.full(30, 1e-12), np.linspace(-2, 2, 30)):
        pooled = pooled_of(np.linspace(0, 1, 30)[:, None], values, np.full(30, 1e-6), 0.0, 300)
        found = tenable(fitted(fit_of((0.3,), 0.02, 1e-3)), np.zeros(1, dtype=np.intp), pooled)
        assert any(each.amplitude > 0 for each in found)
        assert max(each.likelihood for each in found) - REFUTED <= min(each.likelihood for each in found[1:] or found)


def test_what_one_fit_excludes_another_leaves_open():
    """A hill fits between observations that a short lengthscale explains nearly as well as a long one does."""
    points, values = np.linspace(0, 1, 6)[:, None], np.array([0.0, 0.1, 0.0, -0.1, 0.0, 0.1])
    found = certificate_of(points, values, fit_of((1.0,), 1.0, 0.1), 0.1, np.linspace(0, 1, 200)[:, None])
    gaps = [
        np.quantile(found._contest(each, points[[1]]).excess(500, np.random.default_rng(0)), 0.95)
        for each in found.tenable
    ]
    assert len(gaps) > 1
    assert max(gaps) > 1.5 * gaps[0]
    middle = np.array([[0.5]])
    own = np.array(model_of(found.pooled, fit_of((1.0,), 1.0, 0.1)).process.predict(middle))[:, 0]
    assert found.interval(middle, 3.0)[1] > own[0] + 3 * own[1]


def test_nothing_is_promised_while_a_place_is_unexplored():
    points = np.linspace(0, 1, 41)[:, None]
    values, fit = -((points[:, 0] - 0.3) ** 2), fit_of((0.5,), 1.0, 0.01)
    assert certificate_of(points, values, fit).unexplored == 0
    assert certificate_of(points, values, fit).gap(points[[12]]) < 0.05
    hole = np.abs(points[:, 0] - 0.7) > 0.09
    holed = certificate_of(points[hole], values[hole], fit)
    assert 0.04 < holed.unexplored < 0.06, "of a gap of 0.2, a measurement is near up to 0.075 from each end"
    assert holed.gap(points[[12]]) == math.inf
    assert not holed.is_within(points[[12]], 1e6, 0.05)
    assert holed.is_within(points[[12]], 1e6, 0.2), "half of this risk is more than what is unexplored"


def test_short_lengthscales_need_closer_measurements():
    points, rng = np.linspace(0, 1, 21)[:, None], np.random.default_rng(0)
    rough = certificate_of(points, rng.standard_normal(21), fit_of((0.05,), 1.0, 0.01))
    assert min(model.ratio for model in rough.tenable) < 1
    assert rough.unexplored > 0.1
    smooth = certificate_of(points, points[:, 0], fit_of((0.8,), 1.0, 0.01))
    assert smooth.unexplored == 0


def test_names_without_features_are_explored_when_all_are_measured():
    opt = Optimizer({"name": Choice([f"n{i}" for i in range(14)])}, rng=0)
    for i in range(13):
        opt.tell({"name": f"n{i}"}, float(i))
    assert not opt.done(1e6, by="certificate")
    opt.tell({"name": "n13"}, 13.0)
    assert opt.done(1e6, by="certificate")


def test_settings_that_never_work_are_no_alternatives():
    opt = told(40)
    before = len(opt.best()._certificate.others)
    for _ in range(4):
        opt.fail({"x": 0.111})
    after = opt.best()._certificate
    assert not np.any(after.others == 0.111)
    assert len(after.others) > before // 2


def test_long_histories_are_bounded():
    rng = np.random.default_rng(0)
    points = rng.random((700, 1))
    found = certificate_of(points, -((points[:, 0] - 0.3) ** 2), fit_of((0.5,), 1.0, 0.01))
    kept = found.tenable[0].process.rows.points
    assert len(kept) == MOST_FITTED
    assert np.abs(kept - 0.3).min() == np.abs(points - 0.3).min(), "the best is among them"
    assert np.diff(np.sort(kept[:, 0])).max() < 0.02, "and they are everywhere"


def test_done_is_no_while_values_are_few():
    opt = Optimizer(LINE, rng=0)
    assert not opt.done(1e6)
    for x in np.linspace(0, 1, 8).tolist():
        opt.tell({"x": x}, x)
        assert not opt.done(1e6)


def test_within_may_be_a_part_of_the_best_estimate():
    opt = told(60, lambda x: 100 + 50 * bowl(x), noise=0.1)
    left = opt.best().remaining
    assert opt.done("50%")
    assert opt.done(" 50 %")
    assert not opt.done(f"{0.2 * left}%"), "the best is about 100"
    assert opt.done(50)
    assert not opt.done(0.2 * left)


@pytest.mark.parametrize(
    "within", [0, -1, math.nan, math.inf, "2", "%", "-2%", "nan%", "inf%", None, True, [1, 2], "x%", "5"]
)
def test_bad_tolerances_are_refused(within):
    for opt in (told(0), told(12)):
        with pytest.raises(ValueError, match=r"within must be a number above 0, or a part .* like '2%'"):
            opt.done(within)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan, "0.95", None, True])
def test_bad_confidences_are_refused(confidence):
    with pytest.raises(ValueError, match="confidence must be a probability between 0 and 1"):
        told(0).done(0.1, confidence=confidence)


def test_what_advice_says_is_accepted():
    assert told(60).done(within=10.0, confidence=0.95)
    assert isinstance(told(60).done(within="2%"), bool)


def test_done_by_the_model_is_what_remains_and_the_certificate_is_stricter():
    opt = told(60)
    best = opt.best()
    assert 0 < best.remaining < 0.1
    assert opt.done(1.01 * best.remaining)
    assert not opt.done(0.99 * best.remaining)
    assert not opt.done(best.remaining, by="certificate")
    hill = f"if no hill is narrower than {best.narrowest:.1g} of each range"
    assert f"at most {best.remaining:.2g} left to gain (95%), {hill}" in repr(best)
    assert "left to gain" not in repr(opt.predict({"x": 0.5}))


def test_what_remains_is_a_percentage_where_the_estimate_is_not_near_0():
    opt = told(60, lambda x: 100 + 50 * bowl(x), noise=0.1)
    best = opt.best()
    percent, hill = (
        100 * best.remaining / best.estimate,
        f"if no hill is narrower than {best.narrowest:.1g} of each range",
    )
    assert best.remaining_in_words(" s") == f"by the model, at most {percent:.2g}% left to gain (95%), {hill}"


def test_what_remains_is_said_if_it_may_be_more_than_the_estimate():
    best = told(60, lambda x: 100 + 50 * bowl(x), noise=0.1).best()
    assert 0 < best._likely < best.remaining
    vars(best).update(remaining=3.0 * 128, estimate=128.0, _likely=64.0)
    assert best.remaining_in_words(" s") == (
        "by the model, likely at most 50% left to gain (50%), but up to 380 s (95%), more than the estimate itself, is "
        "not excluded"
    )
    vars(best)["_likely"] = 200.0
    said = "by the model, other settings may be better by up to 380 s (95%), more than the estimate itself: too few"
    assert best.remaining_in_words(" s").startswith(said)


def test_before_the_first_fit_nothing_is_said_about_what_remains():
    opt = told(5)
    assert opt.best().remaining == math.inf
    assert "left to gain" not in repr(opt.best())


def test_what_remains_is_unknown_while_noise_alone_may_explain_the_values():
    opt = told(12, lambda x: 0.0, noise=1.0)
    assert opt.best().remaining == math.inf
    said = "no setting is shown to be better than another: noise alone may explain the results"
    assert said in repr(opt.best())
    assert not opt.done(1e6)


def test_draws_for_what_remains_look_between_the_candidates():
    """In three dimensions and with few trials, hills fit between any 100 candidates."""
    rng = np.random.default_rng(0)
    points = rng.random((15, 3))
    space = {name: Float(0, 1) for name in "xyz"}
    found = certificate_of(points, 9 * points[:, 0], fit_of((0.2,) * 3, 1.0, 0.1), 0.1, rng.random((50, 3)), space)
    found = dataclasses.replace(found, pooled=dataclasses.replace(found.pooled, is_noise_known=True))
    free = dataclasses.replace(found, is_free=True)
    assert free.remaining(points[[0]], 0.95) > 1.2 * found.remaining(points[[0]], 0.95)


def test_the_narrowest_hill_is_as_wide_as_the_lengthscale_of_the_roughest_model():
    best = told(60).best()
    model = best._certificate.doubtful[-1]
    hill = min(2 * half_height() * model.ratio * best._certificate.calibrated.fit.lengthscales[0], 1.0)
    assert best.narrowest == pytest.approx(hill)
    kernel, half = Matern(2.5, 1.0), np.array([[0.0], [half_height()]])
    assert kernel(half, half)[0, 1] == pytest.approx(0.5)


def test_bad_stop_rules_are_refused():
    with pytest.raises(ValueError, match="by must be 'model' or 'certificate', got 'luck'"):
        told(0).done(0.1, by="luck")


def test_rare_is_wrong_no_more_often_than_the_risk():
    share, risk = 0.1, 0.2
    rng = np.random.default_rng(0)
    wrong = sum(clopper_pearson_test(lambda n: rng.binomial(n, 1.0001 * share), share, risk) for _ in range(400))
    assert wrong <= 400 * risk
    assert sum(clopper_pearson_test(lambda n: rng.binomial(n, 0.5 * share), share, risk) for _ in range(100)) > 90


def test_what_never_happens_is_rare_soon_and_what_is_undecided_is_not():
    asked = []
    assert clopper_pearson_test(lambda n: asked.append(n) or 0, 0.025, 1e-4)
    assert sum(asked) < 600
    asked.clear()
    assert not clopper_pearson_test(lambda n: asked.append(n) or round(0.025 * n), 0.025, 1e-4)
    assert sum(asked) == SIZES[-1]


def test_asking_after_every_answer_spends_no_more_than_the_risk():
    assert alpha_spending(0.05, 10) == pytest.approx(0.05 * 0.1 / 1.1 * 10**-1.1)
    assert sum(alpha_spending(0.05, answers) for answers in range(1, 10**5)) < 0.05


def test_a_hidden_hill_is_not_stopped_at():
    """A bowl that leads away from a narrow hill: a belief that trusts its fit would stop."""

    def hidden(x):
        return bowl(x) - 2 * math.exp(-0.5 * ((x - 0.87) / 0.02) ** 2)

    opt = Optimizer(LINE, rng=0)
    for x in [*np.linspace(0, 0.7, 40).tolist(), 0.97, 1.0]:
        opt.tell({"x": x}, hidden(x))
    assert not opt.done(0.1, by="certificate")
    assert opt.best().gap == math.inf


def test_before_the_first_fit_the_gap_is_infinite():
    """Two observations, one for each of two settings, say nothing about the noise."""
    opt = Optimizer({"k": Choice(["a", "b"])}, goal="minimize", rng=0)
    for value in (1.0, 1.2, 0.9, 1.1, 1.0, 1.1, 0.8, 1.2, 1.1):
        assert not opt.answers or opt.best().gap == math.inf
        assert not opt.answers or not opt.done(within=100.0)
        opt.tell(opt.ask(), value)
    assert opt.best().gap < math.inf


@pytest.mark.slow
def test_where_nothing_meets_the_constraints_the_gap_is_infinite():
    opt = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0, constraints={"m": ("<=", -5)})
    for _ in range(15):
        trial = opt.ask()
        opt.tell(trial, trial.params["x"], constraints={"m": (trial.params["x"] - 0.7) ** 2})
    assert opt.best().is_likeliest
    assert opt.best().gap == math.inf
