"""Drift: the best setting changes, the half-life is estimated, and statements are about the present."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal
from tests.optimizer.configs import fit_of

from noregret import Float, Optimizer
from noregret.gp.threads import one_thread
from noregret.optimizer import OptimizerConfig
from noregret.optimizer import optimizer as optimizer_module
from noregret.optimizer.model.candidates import Candidates
from noregret.optimizer.model.drift import DriftTest
from noregret.optimizer.model.evidence import Evidence, recent
from noregret.optimizer.model.fit import FitMatern, Likelihood, log_likelihood
from noregret.optimizer.model.hypotheses import ModelConfig, _nats
from noregret.optimizer.model.kernel import CENTRE
from noregret.optimizer.model.noise import GaussianNoise, StudentNoise

LINE = {"x": Float(0, 1)}
NOISE = 0.05
QUICK = OptimizerConfig(candidates=Candidates(cover=64, cloud=16))


def jumps(i):
    return 0.2 if i < 50 else 0.8


def glides(i):
    return 0.1 + 0.006 * i


def played(best_at, rounds, seed, **options):
    """An optimizer after this number of rounds, and the error of each trial."""
    opt, rng, off = Optimizer(LINE, rng=seed, calibration=QUICK, **options), np.random.default_rng(seed), []
    for i in range(rounds):
        trial = opt.ask()
        off.append((trial.params["x"] - best_at(i)) ** 2)
        opt.tell(trial, off[-1] + NOISE * rng.standard_normal())
    return opt, np.array(off)


@pytest.mark.parametrize("bad", [0, -3, 0.5, math.inf, math.nan, True, "fast", "60", [60], 1e9])
def test_a_half_life_is_a_number_of_evaluations(bad):
    with pytest.raises(ValueError, match="a half-life, which must be a number of evaluations from 1 to 10000, got"):
        Optimizer(LINE, drift=bad)


@pytest.mark.slow
def test_after_a_jump_everything_is_about_now():
    opt, _ = played(jumps, 80, seed=1, drift="auto")
    assert 3 < opt.half_life < 100
    at_old, at_new = opt.predict({"x": 0.2}), opt.predict({"x": 0.8})
    assert at_old.estimate > 0.2 > at_new.estimate
    assert at_new.lower <= 0.0 <= at_new.upper
    assert opt.best().gap > 0
    assert "half of what was learnt is out of date after about" in repr(opt)
    assert "out of date" in opt._repr_html_()


@pytest.mark.slow
def test_a_half_life_that_is_given_is_used_from_the_first_fit_on():
    opt, off = played(jumps, 80, seed=0, drift=15)
    assert opt.half_life == pytest.approx(15)
    assert np.median(off[65:]) < 0.05


@pytest.mark.slow
def test_memory_is_bounded_and_trials_that_are_out_survive(monkeypatch):
    monkeypatch.setattr(optimizer_module, "REMEMBERED", 30)
    opt, rng = Optimizer(LINE, rng=0, drift="auto", baseline={"x": 0.5}), np.random.default_rng(0)
    trials = []
    for i in range(200):
        trials.append(opt.ask() if i % 20 == 0 else opt.expect({"x": float(rng.random())}))
        if len(trials) > 3:
            told = trials[-3]
            opt.tell(told, (told.params["x"] - 0.3) ** 2 + NOISE * rng.standard_normal())
    assert len(opt.answers) == len(opt.measurements) < 60
    sizes = [len(opt._history.params), len(opt._log._kept), len(opt._log._unanswered)]
    assert max(sizes) < 70
    assert abs(opt.best().params["x"] - 0.3) < 0.2
    assert opt.ask().params == opt.baseline  # what was known of it is forgotten
    opt.tell(trials[-1], 0.1)
    with pytest.raises(ValueError, match="it was forgotten: tell its params instead"):
        opt.tell(trials[5], 0.1)
    opt.tell(trials[5].params, 0.1)
    assert opt.answers[-1].params == trials[5].params
    unbounded = Optimizer(LINE, rng=0)
    for x in rng.random(70):
        unbounded.tell({"x": float(x)}, float(x))
    assert len(unbounded.answers) == 70


@pytest.mark.slow
def test_drift_goes_with_a_baseline_constraints_and_failures():
    options = {"baseline": {"x": 0.5}, "constraints": {"size": ("<=", 0.9)}, "drift": 20}
    opt, rng = Optimizer(LINE, rng=0, **options), np.random.default_rng(0)
    for i in range(80):
        trial = opt.ask()
        x = trial.params["x"]
        if i % 10 == 9:
            opt.fail(trial)
            continue
        value = (x - (0.2 if i < 40 else 0.8)) ** 2 + NOISE * rng.standard_normal()
        opt.tell(trial, value, constraints={"size": x + 0.01 * rng.standard_normal()})
    best = opt.best()
    assert 0.65 < best.params["x"] < 0.95
    assert best.feasible > 0.9
    assert opt.gain().estimate > 0
    assert not opt.done(0.001)
    assert set(opt.importance()) == {"x"}


@pytest.mark.slow
def test_drift_goes_with_contexts():
    opt, rng = Optimizer(LINE, rng=0, context={"load": Float(0, 1)}, drift=20), np.random.default_rng(0)
    for i in range(60):
        trial = opt.ask(context={"load": float(rng.integers(2))})
        best = (0.2 if i < 30 else 0.6) + 0.2 * trial.context["load"]
        opt.tell(trial, (trial.params["x"] - best) ** 2 + NOISE * rng.standard_normal())
    for load in (0.0, 1.0):
        assert abs(opt.best({"load": load}).params["x"] - 0.6 - 0.2 * load) < 0.2


def aged(count=12, seed=0):
    rng = np.random.default_rng(seed)
    points, values = rng.random((count, 2)), rng.standard_normal(count)
    nobody = np.full(count, np.nan)
    evidence = Evidence(points, np.arange(count), values, nobody, np.arange(2), when=np.arange(count))
    return evidence.aged(np.arange(count), count + 3)


@pytest.mark.parametrize("parts", [1, 2])
def test_the_slope_of_the_likelihood_with_ages(parts):
    likelihood, rng = Likelihood(aged(), np.ones(12)), np.random.default_rng(1)
    theta = np.log([0.4, 0.7, *[1.2, 0.5][:parts], 6.0, 0.4])
    for _ in range(3):
        at = theta + 0.3 * rng.standard_normal(theta.size)
        assert check_grad(lambda t: likelihood(t)[0], lambda t: likelihood(t)[1], at) < 1e-4


def repeated(count=40, places=7, seed=0):
    """Measurements of few points, some of whose noise is known."""
    rng = np.random.default_rng(seed)
    noise = np.where(np.arange(count) % 4 == 0, 0.3, np.nan)
    where = np.append(np.arange(places), rng.integers(places, size=count - places))
    values = rng.standard_normal(count)
    return Evidence(rng.random((places, 2)), where, values, noise, np.arange(2), when=np.arange(count))


@pytest.mark.parametrize("additive", [0.0, 0.6])
def test_the_likelihood_of_pooled_measurements_is_that_of_all_of_them(additive):
    evidence, trust = repeated(), 0.2 + np.random.default_rng(1).random(40)
    fit = fit_of((0.4, 0.7), 1.3, 0.2, additive=additive)
    points = evidence.points[evidence.where]
    covariance = fit.kernel(evidence.groups)(points, points) + CENTRE**2
    noise = np.diag(evidence.variance(fit.noise**2) / trust)
    expected = multivariate_normal(np.zeros(40), covariance + noise).logpdf(evidence.values)
    assert log_likelihood(evidence, trust, fit) == pytest.approx(expected)
    likelihood = Likelihood(evidence, trust)
    assert check_grad(lambda t: likelihood(t)[0], lambda t: likelihood(t)[1], fit.theta) < 1e-3
    changing = replace(fit, half_life=8.0)
    age = np.arange(40)
    faded = 2 ** (-abs(age[:, None] - age) / 16)
    expected = multivariate_normal(np.zeros(40), (covariance - CENTRE**2) * faded + CENTRE**2 + noise)
    aged_evidence = evidence.aged(age, 40)
    assert log_likelihood(aged_evidence, trust, changing) == pytest.approx(expected.logpdf(evidence.values))


class Seen(ModelConfig):
    """Keeps what was fitted to."""

    def explain(self, hypothesis, evidence, *rest):
        seen.append(evidence)
        return super().explain(hypothesis, evidence, *rest)


seen: list[Evidence] = []


@pytest.mark.slow
@pytest.mark.parametrize("weighing", [GaussianNoise(), StudentNoise(4.0), StudentNoise(2.0)])
def test_one_who_believes_in_no_change_explains_what_an_endless_half_life_explains(weighing):
    seen.clear()
    DriftTest(None).fitted(Seen(), repeated(60), 60)
    moving, still = seen[0], seen[-1]
    assert (moving.ages is None, still.ages is None) == (False, True)
    trust, fit = np.random.default_rng(1).random(60), fit_of((0.4, 0.7), 1.3, 0.2)
    endless = _nats(moving, trust, weighing, replace(fit, half_life=1e12))
    assert _nats(still, trust, weighing, fit) == pytest.approx(endless, abs=1e-4)
    np.testing.assert_allclose(
        weighing.trust(still, fit), weighing.trust(moving, replace(fit, half_life=1e12)), rtol=1e-5
    )
    fits = [FitMatern()(evidence, np.ones(60)) for evidence in (moving, still)]
    assert [its.additive > 0 for its in fits] == [True, True]


def test_half_of_the_variance_is_new_after_a_half_life():
    fit, evidence = fit_of((0.4, 0.7), 1.3, 0.2, half_life=3.0), aged()
    covariance, still = fit.covariance(evidence), fit.kernel(evidence.groups)(evidence.points, evidence.points)
    assert (covariance[0, 3] / still[0, 3]) ** 2 == pytest.approx(0.5)


def test_the_newest_are_looked_at_and_some_of_the_older():
    np.testing.assert_array_equal(recent(10, 3, 2), [0, 6, 7, 8, 9])
    np.testing.assert_array_equal(recent(4, 5, 2), np.arange(4))


def half_life_of(evidence):
    """Result after all observations, on one thread as in an optimizer."""
    with one_thread():
        return DriftTest(None).fitted(ModelConfig(), evidence, len(evidence)).fit.half_life


@pytest.mark.slow
def test_noise_is_not_taken_for_change():
    rng = np.random.default_rng(0)
    for tails in (np.inf, 2.0):
        points = rng.random((100, 1))
        values = -((points[:, 0] - 0.4) ** 2) + 0.1 * (
            rng.standard_normal(100) if tails == np.inf else rng.standard_t(2, 100)
        )
        evidence = Evidence(points, np.arange(100), values, np.full(100, np.nan), np.zeros(1, int), when=np.arange(100))
        assert half_life_of(evidence) == math.inf


@pytest.mark.slow
def test_repeats_with_noise_that_has_no_variance_are_not_taken_for_change():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        places, where = rng.random((20, 1)), np.append(np.arange(20), rng.integers(4, size=60))
        values = -((places[where, 0] - 0.4) ** 2) + 0.1 * rng.standard_t(1.5, 80)
        evidence = Evidence(places, where, values, np.full(80, np.nan), np.zeros(1, int), when=np.arange(80))
        assert half_life_of(evidence) == math.inf


@pytest.mark.slow
def test_heavy_tails_do_not_explain_away_a_past_that_is_a_third_of_all():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        old, new = np.array([0.2, 0.3]), np.array([0.8, 0.7])
        points = np.vstack([rng.random((20, 2)), old + 0.1 * rng.standard_normal((20, 2))])
        points = np.clip(np.vstack([points, new + 0.15 * rng.standard_normal((80, 2))]), 0, 1)
        off = points - np.repeat([old, new], [40, 80], axis=0)
        values = -(off**2).sum(axis=1) + 0.05 * rng.standard_t(3, 120)
        nobody = np.full(120, np.nan)
        evidence = Evidence(points, np.arange(120), values, nobody, np.arange(2), when=np.arange(120))
        assert half_life_of(evidence) < math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("now", "before", "is_found"), [(7.0, -9.0, True), (-5.0, 7.0, True), (5.0, 5.0, False), (-7.0, 9.0, False)]
)
def test_a_change_that_was_found_is_believed_in_unless_as_much_speaks_against_it(monkeypatch, now, before, is_found):
    explain, ends = ModelConfig.explain, []

    def scored(self, hypothesis, evidence):
        """As fitted, but that change explains so much more than no change."""
        found = explain(self, hypothesis, evidence)
        if evidence.ages is None:
            return found._replace(nats=0.0)
        ends.append(int(evidence.when.max()))
        return found._replace(nats=now if ends[-1] == ends[0] else before)

    monkeypatch.setattr(ModelConfig, "explain", scored)
    found = DriftTest(None).fitted(ModelConfig(), repeated(100), 100)
    assert (found.fit.half_life < math.inf) == is_found
    assert set(ends) <= {99, 59}
