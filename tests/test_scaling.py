"""Logarithmic scales: what they are, when they are chosen, and that they do no harm."""

import math

import numpy as np
import pytest

from noregret import Float, Optimizer
from noregret.optimizer.calibration import Calibration
from noregret.optimizer.fitting.evidence import Evidence
from noregret.optimizer.fitting.scaling import Logarithm, Logarithms, RobustScale, Scale

PLAIN = Calibration(logarithms=Logarithms(gaps=()))


def bowl(points):
    return 4 * ((points - 0.3) ** 2).sum(axis=1)


def evidence(values_at, size=40, seed=0, noise=None):
    """Values to be made small, so signed, at random points of the square."""
    rng = np.random.default_rng(seed)
    points = rng.random((size, 2))
    known = np.full(size, math.nan if noise is None else noise)
    return Evidence(points, np.arange(size), -values_at(bowl(points), rng), known, np.arange(2))


def multiplied(gap, rng):
    return 80 + gap * np.exp(rng.standard_normal(len(gap)))


def added(gap, rng):
    return 80 + gap + 0.3 * rng.standard_normal(len(gap))


def chosen(data):
    return Calibration().calibrated(data).scale.logarithm


# --- the scale ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1e9, -50.0, 0.0, 2.4, 2.6, 2.99, 3.5, 1e4])
def test_a_logarithm_can_be_undone(value):
    scale = Scale(-1.0, 2.0, 2.0, Logarithm(3.0, 0.5))
    assert scale.original(float(scale.standard(np.array(value)))) == pytest.approx(value, rel=1e-9)


def test_a_logarithm_goes_on_as_its_tangent():
    curve = Logarithm(3.0, 0.5)
    assert curve(np.array([2.0, 2.5, 3.0, 4.0])).tolist() == pytest.approx(
        [0.0, math.log(2), math.log(2) + 1, math.log(2) + 3]
    )


@pytest.mark.parametrize("curve", [None, Logarithm(3.0, 0.5)])
def test_the_slope_is_the_derivative(curve):
    scale, values, step = Scale(-1.0, 2.0, 1.0, curve), np.array([-900.0, -30.0, -5.0, 0.0, 2.7, 3.6]), 1e-6
    numeric = (scale.standard(values + step) - scale.standard(values - step)) / (2 * step)
    assert scale.log_slope(values) == pytest.approx(float(np.log(numeric).sum()), abs=1e-4)


def test_what_is_reported_is_the_mean_of_what_would_be_measured():
    scale, noise = Scale(-1.0, 2.0, 9.0, Logarithm(3.0, 1e-3)), 0.4
    draws = 0.7 + noise * np.random.default_rng(0).standard_normal(100_000)
    measured = np.mean([scale.original(number) for number in draws])
    assert scale.original(0.7, noise) == pytest.approx(measured, abs=0.01)
    assert scale.original(0.7) > scale.original(0.7, noise), "the median is nearer to the ceiling"


def test_noise_that_was_told_is_that_of_the_logarithm_nearby():
    scale = Scale(-1.0, 2.0, 9.0, Logarithm(3.0, 0.5))
    assert scale.standard_noise(np.array([0.1]), np.array([1.0])) == pytest.approx(0.1 / (2.0 * 2.0))
    step = scale.standard(np.array(1.001)) - scale.standard(np.array(1.0))
    assert float(scale.standard_noise(np.array(0.001), np.array(1.0))) == pytest.approx(
        max(float(step), 1e-3), rel=1e-3
    )


# --- the choice --------------------------------------------------------------------------------------------------


def test_noise_that_is_multiplied_is_seen_on_a_logarithm():
    assert sum(chosen(evidence(multiplied, seed=seed)) is not None for seed in range(8)) >= 7


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


@pytest.mark.parametrize("absurd", [-1e300, -1e9, 1e9, 1e300])
def test_absurd_values_do_not_undo_the_choice(absurd):
    for seed in range(3):
        data = evidence(multiplied, seed=seed)
        values = np.where(np.arange(len(data)) == 7, absurd, data.values)
        spoilt = Calibration().calibrated(Evidence(data.points, data.where, values, data.noise, data.groups))
        assert spoilt.scale.logarithm is not None
        assert np.isfinite(spoilt.scale.standard(values) ** 2).all()
        assert abs(spoilt.scale.logarithm.ceiling + 80) < 1


def test_equal_best_values_do_not_draw_the_ceiling_closer():
    """Without noise the best point gives the same value again: the ceiling is close to it because it was put there."""
    data = evidence(added, size=30)
    best = int(np.argmax(data.values))
    where = np.append(data.where, [best] * 30)
    values = np.append(data.values, [data.values[best]] * 30)
    spoilt = Evidence(data.points, where, values, np.full(60, np.nan), data.groups)
    found = chosen(spoilt)
    assert found is None or found.knee > 0.01 * RobustScale()(data).unit


# --- the optimizer -----------------------------------------------------------------------------------------------


def run(noisy, seed, evaluations, calibration=None):
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=seed, calibration=calibration)
    rng, asked = np.random.default_rng(seed + 100), []
    for _ in range(evaluations):
        trial = opt.ask()
        asked.append(tuple(trial.params.values()))
        opt.tell(trial, float(noisy(bowl(np.array([asked[-1]])), rng)[0]))
    return opt, asked


@pytest.mark.parametrize("seed", range(3))
def test_where_no_logarithm_wins_the_questions_stay_the_same(seed):
    opt, asked = run(added, seed, 30)
    assert opt.calibrated.scale.logarithm is None
    assert asked == run(added, seed, 30, PLAIN)[1]


def test_multiplied_noise_is_optimised_better():
    """Regret of the recommended point, geometric mean over 6 seeds; a random point's is about 1."""
    regrets = {}
    for name, calibration in {"logarithm": None, "plain": PLAIN}.items():
        best = [run(multiplied, seed, 50, calibration)[0].best().params for seed in range(6)]
        regrets[name] = np.exp(np.mean(np.log([bowl(np.array([list(p.values())]))[0] + 1e-6 for p in best])))
    assert regrets["logarithm"] < 0.5 * regrets["plain"]


def test_the_estimate_is_the_mean_in_the_values_own_unit():
    """Far from the optimum, where noise multiplies the gap by a factor whose mean is e^0.5."""
    ratios = []
    for seed in range(6):
        opt, _ = run(multiplied, seed, 60)
        found = opt.predict({"x": 0.8, "y": 0.8})
        assert found.lower <= found.estimate <= found.upper
        ratios.append((found.estimate - 80) / (2.0 * math.exp(0.5)))
    assert 0.5 < np.exp(np.mean(np.log(ratios))) < 2.0


@pytest.mark.parametrize("absurd", [1e300, -1e300])
def test_an_absurd_value_after_the_fit_does_no_harm(absurd):
    opt, _ = run(multiplied, 0, 40)
    assert opt.calibrated.scale.logarithm is not None
    before = opt.best()
    opt.tell({"x": 0.9, "y": 0.9}, absurd)
    after = opt.best()
    assert bowl(np.array([list(after.params.values())]))[0] < bowl(np.array([list(before.params.values())]))[0] + 0.1
    assert opt.measurements[-1].trust < 0.1
    assert abs(after.estimate - before.estimate) < 1
