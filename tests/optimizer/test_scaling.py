"""Logarithmic scales: their values, their choice, and that they do no harm."""

import math
from pathlib import Path

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import OptimizerConfig
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.transforms import Logarithm, Logarithms, RobustScale, ValueScale
from noregret.studies.learning.findings import Findings
from noregret.studies.page.page import page
from noregret.studies.study.study import Study

PLAIN = OptimizerConfig(logarithms=Logarithms(gaps=()))


def bowl(points):
    return 4 * ((points - 0.3) ** 2).sum(axis=1)


def evidence(values_at, size=40, seed=0, noise=None):
    """Values to minimise, so signed, at random points of the square."""
    rng = np.random.default_rng(seed)
    points = rng.random((size, 2))
    known = np.full(size, math.nan if noise is None else noise)
    return Evidence(points, np.arange(size), -values_at(bowl(points), rng), known, np.arange(2))


def multiplied(gap, rng):
    return 80 + gap * np.exp(rng.standard_normal(len(gap)))


def added(gap, rng):
    return 80 + gap + 0.3 * rng.standard_normal(len(gap))


def chosen(data):
    return OptimizerConfig().calibrated(data).scale.logarithm


# --- the scale ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e9, -50.0, 0.0, 2.4, 2.6, 2.99, 3.5, 1e4])
def test_a_logarithm_can_be_undone(value):
    scale = ValueScale(-1.0, 2.0, 2.0, Logarithm(3.0, 0.5, 1.0))
    assert scale.original(float(scale.standard(np.array(value)))) == pytest.approx(value, rel=1e-9)


def test_a_logarithm_goes_on_as_its_tangent():
    curve = Logarithm(3.0, 0.5, 1.0)
    assert curve(np.array([2.0, 2.5, 3.0, 4.0])).tolist() == pytest.approx(
        [0.0, math.log(2), math.log(2) + 1, math.log(2) + 3]
    )


@pytest.mark.parametrize("curve", [None, Logarithm(3.0, 0.5, 1.0)])
def test_the_slope_is_the_derivative(curve):
    scale, values, step = ValueScale(-1.0, 2.0, 1.0, curve), np.array([-900.0, -30.0, -5.0, 0.0, 2.7, 3.6]), 1e-6
    numeric = (scale.standard(values + step) - scale.standard(values - step)) / (2 * step)
    assert scale.log_slope(values) == pytest.approx(float(np.log(numeric).sum()), abs=1e-4)


def test_what_is_reported_is_the_mean_of_what_would_be_measured():
    scale, noise = ValueScale(-1.0, 2.0, 9.0, Logarithm(3.0, 1e-3, 1.0)), 0.4
    draws = 0.7 + noise * np.random.default_rng(0).standard_normal(100_000)
    measured = scale.original(draws).mean()
    assert scale.original(0.7, noise) == pytest.approx(measured, abs=0.01)
    assert scale.original(0.7) > scale.original(0.7, noise), "the median is nearer to the ceiling"


def test_noise_that_was_told_is_that_of_the_logarithm_nearby():
    scale = ValueScale(-1.0, 2.0, 9.0, Logarithm(3.0, 0.5, 1.0))
    assert scale.standard_noise(np.array([0.1]), np.array([1.0])) == pytest.approx(0.1 / (2.0 * 2.0))
    step = scale.standard(np.array(1.001)) - scale.standard(np.array(1.0))
    assert float(scale.standard_noise(np.array(0.001), np.array(1.0))) == pytest.approx(
        max(float(step), 1e-3), rel=1e-3
    )


# --- the choice --------------------------------------------------------------------------------------------------


def test_noise_that_is_added_is_not():
    assert sum(chosen(evidence(added, seed=seed)) is not None for seed in range(8)) <= 1


def test_the_choice_does_not_depend_on_the_unit_of_the_values():
    data = evidence(multiplied)
    other = Evidence(data.points, data.where, 5 + 1e4 * data.values, data.noise, data.groups)
    here, there = chosen(data), chosen(other)
    assert there.ceiling == pytest.approx(5 + 1e4 * here.ceiling)
    assert there.knee == pytest.approx(1e4 * here.knee)


def test_where_noise_is_told_nothing_is_guessed():
    assert chosen(evidence(multiplied, noise=0.2)) is None


def test_equal_best_values_do_not_draw_the_ceiling_closer():
    """Without noise the best point returns the same value again: the ceiling is close to it by construction."""
    data = evidence(added, size=30)
    best = int(np.argmax(data.values))
    where = np.append(data.where, [best] * 30)
    values = np.append(data.values, [data.values[best]] * 30)
    spoilt = Evidence(data.points, where, values, np.full(60, np.nan), data.groups)
    found = chosen(spoilt)
    assert found is None or found.knee > 0.01 * RobustScale()(data).unit


def test_nor_do_equal_best_values_of_several_points():
    """As with values that are rounded: whole milliseconds, counts."""
    opt = Optimizer({"size": Int(1, 32), "mode": Choice(["fast", "safe"])}, goal="minimize", rng=0)
    told = [
        (3, "fast", 3.2),
        (4, "safe", 4.1),
        (8, "fast", 2.0),
        (23, "safe", 23.0),
        (4, "fast", 4.0),
        (2, "fast", 2.0),
    ]
    for size, mode, value in [*told, (21, "fast", 21.0), (4, "safe", 30.0)]:
        opt.tell({"size": size, "mode": mode}, value)
    found = opt.predict({"size": 3, "mode": "fast"})
    assert found.estimate > 2.5
    assert found.upper < 200, "not absurd: the worst value is 30"
    logarithm = opt.calibrated.scale.logarithm
    assert logarithm is None or logarithm.knee > 0.01


# --- the optimizer -----------------------------------------------------------------------------------------------


def run(noisy, seed, evaluations, calibration=None):
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=seed, calibration=calibration)
    rng, asked = np.random.default_rng(seed + 100), []
    for _ in range(evaluations):
        trial = opt.ask()
        asked.append(tuple(trial.params.values()))
        opt.tell(trial, float(noisy(bowl(np.array([asked[-1]])), rng)[0]))
    return opt, asked


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_where_no_logarithm_wins_the_questions_stay_the_same(seed):
    opt, asked = run(added, seed, 30)
    assert opt.calibrated.scale.logarithm is None
    assert asked == run(added, seed, 30, PLAIN)[1]


# --- statements about it ------------------------------------------------------------------------------------------


def duration(params):
    """A quarter at the best setting, up to 4.2; z does nothing."""
    return 0.25 + bowl(np.array([[params["x"], params["y"]]]))[0]


def learnt(seed=0, size=60, unit=1.0, spread=0.2, **options):
    """An optimizer with durations, each multiplied by a factor whose logarithm has this spread."""
    space = {name: Float(0, 1) for name in ("x", "y", "z")}
    opt, rng = Optimizer(space, rng=seed, **options), np.random.default_rng(seed)
    for params in [*([opt.baseline] * 3 if opt.baseline else []), *opt.space.decode(rng.random((size, 3)))]:
        opt.tell(params, unit * duration(params) * math.exp(spread * rng.standard_normal()))
    assert opt.calibrated.scale.logarithm is not None
    return opt


@pytest.mark.slow
def test_a_gain_is_in_the_values_own_unit():
    baseline = {"x": 0.9, "y": 0.9, "z": 0.5}
    for seed in range(5):
        opt = learnt(seed, baseline=baseline)
        gain = opt.gain()
        true = math.exp(0.02) * (duration(baseline) - duration(opt.best().params))
        assert gain.lower <= true <= gain.upper
        assert 0.6 * true < gain.estimate < 1.6 * true
        assert 80 < gain.percent.estimate < 100
        assert gain.percent.upper < 100, "nothing that is positive is 100% lower than something else"


def test_gaps_and_stopping_are_in_the_values_own_unit():
    even = OptimizerConfig(local_noise=None)  # which would explain these values as well
    opt, rng = Optimizer({"x": Float(0, 1)}, rng=0, calibration=even), np.random.default_rng(0)
    for x in rng.permutation(np.linspace(0, 1, 80)).tolist():
        opt.tell({"x": x}, (1 + 90 * (x - 0.3) ** 2) * math.exp(0.05 * rng.standard_normal()))
    assert opt.calibrated.scale.logarithm is not None
    gap = opt.best().gap
    assert 0 < gap < 1, "a random setting is 17 worse than the best"
    assert opt.done(within=3 * gap)
    assert not opt.done(within=0.1 * gap)
    assert 20 < opt.predict({"x": 0.9}).gap < 50, "it is 32 worse than the best"


@pytest.mark.slow
def test_importance_is_of_values_not_of_logarithms():
    """f = e^(6x) + 40 y: of the values y has a share of 0.014, of their logarithms one of 0.16."""
    for seed in range(3):
        opt, rng = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=seed), np.random.default_rng(seed)
        for x, y in rng.random((80, 2)).tolist():
            opt.tell({"x": x, "y": y}, (math.exp(6 * x) + 40 * y) * math.exp(0.1 * rng.standard_normal()))
        assert opt.calibrated.scale.logarithm is not None
        share = opt.importance()["y"]
        assert share.lower - 0.005 <= 0.014 <= share.upper
        assert share.estimate < 0.03


@pytest.mark.slow
def test_the_page_tells_the_noise_near_the_best_setting():
    opt, space = learnt(unit=1000.0), {name: Float(0, 1) for name in ("x", "y", "z")}
    findings = Findings(Study(Path("s.toml"), ("m",), space=space), opt.trials, opt)
    best = 1000 * duration(opt.best().params)
    assert 0.3 < findings.noise_std / (0.2 * best) < 3
    assert "About two out of three measurements lie within" in page(findings)


@pytest.mark.slow
def test_constraints_have_no_logarithm():
    """Values with added noise and a constraint with multiplied noise: the trials are those without logarithms."""
    asked = []
    for calibration in (None, PLAIN):
        opt = Optimizer({"x": Float(0, 1)}, rng=0, constraints={"time": ("<=", 1.0)}, calibration=calibration)
        rng = np.random.default_rng(0)
        for _ in range(25):
            trial = opt.ask()
            x, (added, factor) = trial.params["x"], rng.standard_normal(2)
            opt.tell(trial, x + 0.2 * added, constraints={"time": 0.01 + 4 * (x - 0.3) ** 2 * math.exp(factor)})
        asked.append([its.params["x"] for its in opt.measurements])
    assert asked[0] == asked[1]
