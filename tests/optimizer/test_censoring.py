"""Bounds as observations: against integrals, the null case, and through every door of an Optimizer."""

import copy

import numpy as np
import pytest
from scipy.stats import norm
from tests.optimizer.configs import fit_of

from noregret import Float, Optimizer
from noregret.optimizer.model import fit as fitting
from noregret.optimizer.model.censoring import arriving, resolved, sites
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.noise import GaussianNoise, StudentNoise, smoothed


@pytest.mark.parametrize(
    ("mean", "variance", "bound", "side", "noise"),
    [(0, 1, 0.5, 1, 0.1), (0, 1, -3, 1, 0.1), (0, 1, 4, 1, 0.1), (0, 1, -2, -1, 0.01), (0, 0.01, 3, 1, 0.1)],
)
def test_one_bound_has_the_moments_of_the_integral(mean, variance, bound, side, noise):
    x = mean + np.sqrt(variance) * np.linspace(-14, 14, 100_001)
    weights = norm.pdf(x, mean, np.sqrt(variance)) * norm.cdf(side * (x - bound) / np.sqrt(noise))
    mass, weights = weights.sum() * (x[1] - x[0]), weights / weights.sum()
    found = sites(*(np.array([float(each)]) for each in (mean, variance, bound, side, noise)))
    after = 1 / (1 / variance + found.precision[0])
    assert after * (mean / variance + found.precision[0] * found.values[0]) == pytest.approx(weights @ x, rel=1e-6)
    assert after == pytest.approx(weights @ (x - weights @ x) ** 2, rel=1e-6)
    assert found.log_mass[0] == pytest.approx(np.log(mass), rel=1e-6)


@pytest.mark.parametrize("z", [-1e9, -1e4, -31.0, -29.0, 40.0, 1e9])
def test_extreme_bounds_have_finite_sites(z):
    found = sites(np.array([z]), np.array([1.0]), np.zeros(1), np.ones(1), np.array([1e-6]))
    assert np.isfinite(found.values).all()
    assert found.precision[0] > 0
    if z < -100:  # as good as a measurement of the bound
        assert found.values[0] == pytest.approx(0.0, abs=1e-3 * abs(z))


def test_several_bounds_match_the_integral_over_all_points(monkeypatch):
    """Posterior means and variances, and the evidence of a model: a Tobit likelihood on a grid."""
    monkeypatch.setattr(fitting, "CENTRE", 0.0)  # the mean of f is known
    points = np.array([[0.1], [0.3], [0.6]])
    values, bounds = np.array([0.2, 0.8, -0.5, 1.0]), np.array([0, 1, -1, 0])
    evidence = Evidence(points, np.array([0, 1, 2, 2]), values, np.full(4, np.nan), np.array([0]), bounds=bounds)
    fit = fit_of((0.4,), 1.0, 0.3)
    found = resolved(evidence, fit, GaussianNoise())
    precision = found.trust / found.evidence.variance(fit.noise**2)
    mean, variance, _ = smoothed(fit.covariance(evidence), found.evidence, precision, 0.0)

    grid, prior = np.linspace(-4, 4, 81), fit.covariance(evidence)
    f = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    log = -0.5 * np.einsum("ij,jk,ik->i", f, np.linalg.inv(prior), f) - 0.5 * np.linalg.slogdet(2 * np.pi * prior)[1]
    log += norm.logpdf(0.2, f[:, 0], 0.3) + norm.logpdf(1.0, f[:, 2], 0.3)
    log += norm.logcdf((f[:, 1] - 0.8) / 0.3) + norm.logcdf((-0.5 - f[:, 2]) / 0.3)
    weights = np.exp(log)
    nats, weights = np.log(weights.sum() * (grid[1] - grid[0]) ** 3), weights / weights.sum()
    np.testing.assert_allclose(mean, weights @ f, atol=2e-3)
    np.testing.assert_allclose(variance, weights @ (f - weights @ f) ** 2, atol=2e-3)
    assert fitting.log_likelihood(found.evidence, found.trust, fit) + found.nats == pytest.approx(nats, abs=2e-3)


def test_a_bound_far_on_the_wrong_side_is_doubted_as_a_value_there_is():
    believed, doubted = (arriving(b, 1, 0.1, StudentNoise(), 0.0, 0.1) for b in (0.1, 3.0))
    assert believed[2] == 1.0
    assert doubted[2] < 0.05
    assert arriving(3.0, 1, 0.1, StudentNoise(), 0.0, 2.0)[2] > 0.5, "nothing is known there: it is believed"


def value(params):
    return 2 + 10 * ((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def told(goal="minimize", cap=None, evaluations=22, seed=0, noise=0.05, **options):
    sign, rng = 1 if goal == "minimize" else -1, np.random.default_rng(seed)
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal=goal, rng=seed, **options)
    for _ in range(evaluations):
        trial = opt.ask(context={"z": 0.5}) if "context" in options else opt.ask()
        found = value(trial.params) + noise * rng.standard_normal()
        if cap is not None and found > cap:
            opt.tell(trial, **{"at_least" if sign > 0 else "at_most": sign * cap})
        else:
            opt.tell(trial, sign * found)
    return opt


@pytest.mark.slow
def test_bounds_that_everything_meets_change_nothing():
    opt = told()
    twin, rng = copy.copy(opt), np.random.default_rng(1)
    for _ in range(10):
        twin.tell({"x": rng.random(), "y": rng.random()}, at_least=-1000.0)
        twin.tell({"x": rng.random(), "y": rng.random()}, at_most=1000.0)
    places = [{"x": x, "y": y} for x in (0.1, 0.5, 0.9) for y in (0.1, 0.6)]
    for one, other in zip(opt.predict_many(places), twin.predict_many(places), strict=True):
        assert other.estimate == pytest.approx(one.estimate, rel=0.02, abs=0.02)
        assert other.upper - other.lower == pytest.approx(one.upper - one.lower, rel=0.1)
    assert twin.best().estimate == pytest.approx(opt.best().estimate, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_bounds_move_the_estimate_beyond_and_are_never_recommended(goal):
    opt = told(goal)
    sign = 1 if goal == "minimize" else -1
    place = {"x": 0.95, "y": 0.02}
    before = sign * opt.predict(place).estimate
    opt.tell(place, **{"at_least" if sign > 0 else "at_most": sign * (before + 3)})
    assert sign * opt.predict(place).estimate > before + 1
    for y in np.linspace(0.55, 0.65, 5):  # "as good as this or better" is no measurement
        opt.tell({"x": 0.3, "y": y}, **{"at_most" if sign > 0 else "at_least": sign * -5.0})
    seen = {tuple(its.params.values()) for its in opt.answers if its.bound is None}
    bounded = {tuple(its.params.values()) for its in opt.answers if its.bound}
    best = tuple(opt.best().params.values())
    assert best in seen or best not in bounded
    assert [its.bound for its in opt.answers][-1] == ("at_most" if sign > 0 else "at_least")


@pytest.mark.slow
def test_a_capped_run_finds_the_same_best():
    capped = told(cap=3.0, evaluations=30)
    assert any(its.bound for its in capped.answers)
    assert value(capped.best().params) < 2.1
    assert "bound" in repr(capped)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"context": {"z": Float(0, 1)}}, {"drift": 30.0}, {"baseline": {"x": 0.9, "y": 0.9}}]
)
def test_bounds_go_with_contexts_drift_and_a_baseline(options):
    opt = told(cap=4.0, evaluations=16, **options)
    assert sum(its.bound is not None for its in opt.answers) > 1
    best = opt.best({"z": 0.5} if "context" in options else None)
    assert best.lower <= best.estimate <= best.upper


@pytest.mark.slow
def test_bounds_survive_frames_files_and_copies(tmp_path):
    opt = told(cap=3.0, evaluations=14, goal="maximize")
    frame = opt.to_frame()
    assert list(frame.columns)[-3:] == ["bound", "started", "seconds"]
    assert set(frame["bound"].dropna()) == {"at_most"}
    twin = Optimizer(opt.space.parameters, goal="maximize", rng=0)
    twin.tell_many(frame)
    opt.save(tmp_path / "opt.json")
    loaded = Optimizer.load(tmp_path / "opt.json")
    for other in (twin, loaded, copy.copy(opt)):
        assert [(*its[:2], its.bound) for its in other.answers] == [(*its[:2], its.bound) for its in opt.answers]
    assert loaded.ask().params == copy.copy(opt).ask().params


def test_frames_without_bounds_have_no_such_column():
    assert "bound" not in told(evaluations=3).to_frame().columns


def test_bounds_come_before_the_first_value():
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    for _ in range(4):
        opt.tell(opt.ask(), at_least=1.0)
    with pytest.raises(ValueError, match="tell one first"):
        opt.best()
    assert opt.cap() == np.inf
    opt.tell(opt.ask(), 0.5)
    opt.tell(opt.ask(), 0.4)
    assert opt.best().estimate < 1.0
    assert [its.bound for its in opt.measurements] == ["at_least"] * 4 + [None] * 2


def test_constraints_of_a_cut_run_may_be_left_out():
    opt = Optimizer({"x": Float(0, 1)}, rng=0, constraints={"memory": ("<=", 1.0)})
    opt.tell(opt.ask(), at_least=1.0)
    opt.tell(opt.ask(), at_least=1.0, constraints={"memory": 2.0})
    assert [its.constraints["memory"] for its in opt.answers] == [None, 2.0]


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"value": 1.0, "at_least": 2.0}, "exactly one of value, at_least and at_most"),
        ({"at_least": 1.0, "at_most": 2.0}, "exactly one"),
        ({}, "value must be a number"),
        ({"at_least": float("nan")}, "finite"),
        ({"at_most": "3"}, "number"),
    ],
)
def test_bad_bounds_change_nothing(told, message):
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    with pytest.raises(ValueError, match=message):
        opt.tell({"x": 0.5}, **told)
    assert not opt.answers


def test_a_frame_with_another_word_for_a_bound_is_refused():
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    with pytest.raises(
        ValueError, match="row 0 of the frame: bound must be 'at_least', 'at_most' or None, got 'above'"
    ):
        opt.tell_many([{"x": 0.5, "value": 1.0, "bound": "above"}])


def test_the_cap_is_above_what_the_best_setting_takes():
    opt, rng = Optimizer({"x": Float(0, 1)}, rng=0), np.random.default_rng(0)
    for x in (0.5, 0.9, 0.5, 0.5, 0.5):
        opt.tell({"x": x}, 10 * x + 0.1 * rng.standard_normal())
    assert 10.0 < opt.cap(2.0) < 30.0
    assert opt.cap(3.0) == pytest.approx(1.5 * opt.cap(2.0))
    with pytest.raises(ValueError, match="from 1"):
        opt.cap(0.5)
    with pytest.raises(ValueError, match="maximizes"):
        Optimizer({"x": Float(0, 1)}, goal="maximize").cap()
