"""The baseline: measured first and while it matters, and the gain over it."""

import copy
import math
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.optimizer.configs import fitted

from noregret import Float, Optimizer
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.questions.questions import RemeasureBaseline

SQUARE = {"x": Float(0, 1), "y": Float(0, 1)}
TODAY = {"x": 0.9, "y": 0.8}


def bowl(params):
    """10.76 at TODAY, 10 at best."""
    return 10 + (params["x"] - 0.3) ** 2 + (params["y"] - 0.3) ** 2 + 0.15 * params["x"]


def played(count, seed=0, noise=0.1, function=bowl, goal="minimize", **options):
    """An optimizer after this number of observations."""
    opt = Optimizer(SQUARE, goal=goal, rng=seed, baseline=TODAY, **options)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, function(trial.params) + noise * rng.standard_t(4))
    return opt


def times_measured(opt):
    return sum(m.params == TODAY for m in opt.measurements)


def certificate_of(opt):
    return opt._answers_in(None, "best").certificate


def estimate(value, lower, upper, params=None):
    return Estimate(params or {"x": value}, value, lower, upper)


@pytest.fixture(scope="module")
def noisy():
    return played(60)


@pytest.mark.parametrize(
    ("gain", "noise", "worth"),
    [
        (1.0, 1.4, True),  # the gain has variance 1, of which a measurement takes 0.25 / (1 + 1.4) > 0.1
        (1.0, 1.6, False),
        (39.0, 0.1, True),  # two standard deviations are 2 > 0.05 * 39
        (41.0, 0.1, False),
    ],
)
def test_a_measurement_of_it_is_weighed_against_the_variance_of_the_difference(gain, noise, worth):
    class Correlated:
        mean = np.array([0.0, gain])

        def noise_variance(self, arm):
            assert arm == 0, "the baseline"
            return noise

        def covariance(self, rows, columns):
            return np.array([[1.0, 0.5], [0.5, 1.0]])[np.ix_(rows, columns)]

    state = SimpleNamespace(belief=Correlated())
    assert RemeasureBaseline()._is_worth(state, 1, 0) is worth


def test_it_is_measured_first():
    opt = Optimizer(SQUARE, rng=0, baseline=TODAY)
    first, second = opt.ask(2)
    assert first.params == TODAY
    assert second.params != TODAY, "one is out already"
    opt.fail(first)
    assert opt.ask().params != TODAY, "it has an answer"


def test_it_is_not_measured_first_if_it_is_known():
    opt = Optimizer(SQUARE, rng=0, baseline=TODAY)
    opt.tell(TODAY, 3.0)
    assert opt.ask().params != TODAY


@pytest.mark.slow
def test_it_is_measured_again_while_the_gain_hinges_on_its_noise(noisy):
    assert 3 <= times_measured(noisy) <= RemeasureBaseline().share * 60 + 1


@pytest.mark.slow
def test_it_is_left_alone_once_others_are_the_larger_part():
    """Measured 60 times at once: no measurement more would change the gain."""
    opt, rng = Optimizer(SQUARE, rng=0, baseline=TODAY), np.random.default_rng(0)
    for _ in range(60):
        opt.tell(TODAY, bowl(TODAY) + 0.1 * rng.standard_normal())
    for _ in range(25):
        trial = opt.ask()
        assert trial.params != TODAY
        opt.tell(trial, bowl(trial.params) + 0.1 * rng.standard_normal())


@pytest.mark.slow
def test_the_gain_is_in_the_units_of_the_values(noisy):
    gain = noisy.gain()
    true = bowl(TODAY) - bowl(gain.best.params)
    assert gain.lower <= true <= gain.upper
    assert gain.lower <= gain.estimate <= gain.upper
    assert gain.baseline.params == TODAY
    assert gain.percent.estimate == pytest.approx(100 * gain.estimate / gain.baseline.estimate)
    assert "lower than your settings (between" in str(gain)
    assert str(gain) in repr(noisy)


@pytest.mark.slow
def test_goals_are_each_others_mirror_image(noisy):
    high = played(60, function=lambda p: -bowl(p), goal="maximize", noise=-0.1)
    assert high.gain().estimate == noisy.gain().estimate
    assert (high.gain().lower, high.gain().upper) == (noisy.gain().lower, noisy.gain().upper)
    assert "higher than your settings" in str(high.gain())


def test_the_interval_is_that_of_the_difference():
    """Next to the baseline two settings share their uncertainty: the difference has less than either."""
    opt, rng = Optimizer({"x": Float(0, 1)}, rng=0, baseline={"x": 0.5}), np.random.default_rng(0)
    for x in np.linspace(0, 1, 15):
        opt.tell({"x": x}, 3 + 0.5 * x + 0.3 * rng.standard_normal())
    near, base = opt.predict({"x": 0.48}), opt.predict({"x": 0.5})
    points = opt.space.encode([near.params, base.params])
    lower, upper = certificate_of(opt).difference(points, 2.5)
    assert upper - lower < 0.5 * ((near.upper - near.lower) + (base.upper - base.lower))


@pytest.mark.slow
def test_without_a_bend_it_is_mean_and_std_of_the_difference():
    opt = played(20, noise=0.05)
    found = certificate_of(opt)
    scale = type(found.calibrated.scale)(0.0, 1.0)
    plain = replace(found, calibrated=fitted(found.calibrated.fit, scale))
    points = np.array([[0.2, 0.3], [0.9, 0.8]])
    expected = []
    for model in plain.tenable:
        mean, cov = model.process.joint(points)
        half = 2.5 * math.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
        expected += [mean[0] - mean[1] - half, mean[0] - mean[1] + half]
    assert plain.difference(points, 2.5) == pytest.approx((min(expected), max(expected)), rel=2e-3)


def test_if_the_baseline_is_the_best_the_gain_is_nothing():
    opt = Optimizer([{"k": k} for k in range(5)], rng=0, baseline={"k": 2})
    for k in [0, 1, 2, 3, 4] * 4:
        opt.tell({"k": k}, abs(k - 2) + 0.01 * k)
    gain = opt.gain()
    assert (gain.estimate, gain.lower, gain.upper) == (0.0, 0.0, 0.0)
    assert str(gain) == "your settings are the best that is known"


def test_percent_is_given_only_where_it_makes_sense():
    best = estimate(-1.0, -1.1, -0.9)
    assert Gain(1.0, 0.8, 1.2, best, estimate(0.01, -0.1, 0.1), "minimize").percent is None
    assert (
        str(Gain(1.0, 0.8, 1.2, best, estimate(0.01, -0.1, 0.1), "minimize"))
        == "1 lower than your settings (between 0.8 and 1.2, at 95%)"
    )
    below = Gain(1.0, 0.8, 1.2, best, estimate(-2.0, -2.2, -1.8), "maximize")
    assert below.percent == pytest.approx((50, 40, 60)), "of the size of the baseline"


def test_noise_makes_no_rate_0():
    """An interval may reach 0 where no observation does: then percentages are parts of the estimate."""
    base = estimate(600.0, -90.0, 1290.0)
    rate = Gain(1300.0, 600.0, 1900.0, estimate(1900, 1700, 2100), base, "maximize", is_positive=True)
    assert rate.percent == pytest.approx((216.67, 100, 316.67), abs=0.01)
    time = Gain(300.0, -90.0, 900.0, estimate(300, 200, 400), base, "minimize", is_positive=True)
    assert time.percent == pytest.approx((50, -15, 100)), "nothing positive can be more than 100% lower"
    opt = Optimizer(SQUARE, rng=0, baseline=TODAY)
    for x in range(6):
        opt.tell({"x": x / 6, "y": 0.5}, 1.0 + x)
    opt.tell(TODAY, 3.0)
    assert opt.gain().is_positive
    opt.tell({"x": 0.9, "y": 0.5}, -1.0)
    assert not opt.gain().is_positive


@pytest.mark.slow
def test_percentages_are_unknown_where_the_baseline_may_be_0():
    opt = played(20, function=lambda p: bowl(p) - bowl(TODAY))
    assert certificate_of(opt).relative_difference(opt.space.encode([{"x": 0.1, "y": 0.1}, TODAY]), 2.5) == (
        -math.inf,
        math.inf,
    )
    assert opt.gain().percent is None


def test_the_headline():
    base = estimate(100.0, 95.0, 105.0)
    assert str(Gain(18.2, 12.1, 23.4, estimate(82, 80, 84), base, "minimize")) == (
        "18% lower than your settings (between 12% and 23%, at 95%)"
    )
    assert str(Gain(2.0, -3.0, 7.0, estimate(98, 97, 99), base, "minimize")) == (
        "not shown to be better than your settings: 2% lower (between 7% lower and 3% higher, at 95%)"
    )
    assert str(Gain(1.5, 0.2, 3.0, estimate(101, 97, 99), base, "maximize")) == (
        "1.5% higher than your settings (between 0.2% and 3%, at 95%)"
    )
    assert str(Gain(102.0, 98.8, 105.9, estimate(-2, -6, 1), base, "minimize")) == (
        "102% lower than your settings (between 99% and 106%, at 95%)"
    )


@pytest.mark.slow
def test_an_infeasible_baseline_is_allowed_and_said():
    opt = Optimizer(SQUARE, rng=0, baseline=TODAY, constraints={"sum": ("<=", 1.0)})
    rng = np.random.default_rng(0)
    for _ in range(25):
        trial = opt.ask()
        total = trial.params["x"] + trial.params["y"] + 0.02 * rng.standard_normal()
        opt.tell(trial, bowl(trial.params) + 0.02 * rng.standard_normal(), constraints={"sum": total})
    gain = opt.gain()
    assert gain.baseline.feasible < 0.05
    assert "your settings meet the constraints with a probability of less than 0.01" in str(gain)
    assert gain.best.feasible > 0.9


@pytest.mark.slow
def test_a_baseline_survives_a_long_history():
    """The belief is made of at most 500 points, the certificate of 300: the baseline is always one of them."""
    opt, rng = Optimizer(SQUARE, rng=0, baseline=TODAY), np.random.default_rng(0)
    near = [TODAY["x"], TODAY["y"]] + 0.003 * rng.standard_normal((60, 2))
    rows = [{"x": x, "y": y} for x, y in np.vstack([rng.random((300, 2)), near, rng.random((300, 2))])]
    rows.insert(340, TODAY)
    opt.tell_many([row | {"value": bowl(row) + 0.1 * rng.standard_normal()} for row in rows])
    found = certificate_of(opt)
    assert len(found.pooled.rows.points) < 550
    assert found.pooled.rows.points[found.anchors[0]] == pytest.approx([0.9, 0.8])
    assert found.anchors[0] in found._telling()
    gain = opt.gain()
    assert gain.lower <= bowl(TODAY) - bowl(gain.best.params) <= gain.upper


def test_copies_and_replays_agree(noisy):
    again = Optimizer(SQUARE, rng=0, baseline=TODAY)
    for measurement in noisy.measurements:
        again.tell(measurement.params, measurement.value)
    assert again.ask().params == pytest.approx(copy.copy(noisy).ask().params)
    assert again.gain() == noisy.gain()
    assert pickle.loads(pickle.dumps(noisy)).gain() == noisy.gain()


def test_bad_input_is_refused():
    for wrong in ({"x": 2.0, "y": 0.1}, {"x": 0.5}, 3):
        with pytest.raises(ValueError, match="baseline must be params of the space"):
            Optimizer(SQUARE, baseline=wrong)
    with pytest.raises(ValueError, match=r"Optimizer\(..., baseline=params\)"):
        Optimizer(SQUARE, rng=0).gain()
    opt = Optimizer(SQUARE, rng=0, baseline=TODAY)
    with pytest.raises(ValueError, match="needs a value of the baseline"):
        opt.gain()
    opt.tell(TODAY, 3.0)
    with pytest.raises(ValueError, match="and one more"):
        opt.gain()
    opt.tell({"x": 0.1, "y": 0.1}, 1.0)
    assert opt.gain().estimate == 0, "noise alone may explain two values"


def test_two_values_of_unknown_noise_have_no_interval():
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    opt.tell({"x": 0.2}, 1.0)
    opt.tell({"x": 0.7}, 2.0)
    assert (opt.best().lower, opt.best().upper) == (-math.inf, math.inf)
    assert "at 95" not in repr(opt)
    told = Optimizer({"x": Float(0, 1)}, rng=0)
    told.tell({"x": 0.2}, 1.0, noise=0.1)
    told.tell({"x": 0.7}, 2.0, noise=0.1)
    assert -math.inf < told.best().lower < 1.0 < told.best().upper < math.inf
