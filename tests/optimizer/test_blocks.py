"""Blocks: what measurements share, such as the machine, is estimated and no part of what is said of settings."""

import copy

import numpy as np
import pytest

from noregret.gp.kernels import Matern
from noregret.optimizer import Choice, Float, Optimizer, Reading, Trial
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.fit import FitMatern, Likelihood
from noregret.optimizer.model.kernel import CENTRE
from noregret.optimizer.model.posterior import ObservationRows, Offsets, condition

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def bowl(params):
    return 4 * (params["x"] - 0.3) ** 2 + 3 * (params["y"] - 0.6) ** 2


def measured(count, blocks, offsets=None, noise=0.02, seed=0, **options):
    """Optimizer after questions that machines answer in turn by chance."""
    opt, rng = Optimizer(SPACE, rng=seed, **options), np.random.default_rng(seed)
    for _ in range(count):
        trial, machine = opt.ask(), int(rng.integers(4))
        value = bowl(trial.params) + (0 if offsets is None else offsets[machine]) + noise * rng.standard_normal()
        opt.tell(trial, value, block=blocks(machine))
    return opt


def test_the_posterior_is_that_of_a_dense_solve():
    """Of f without offsets, whether observations are told together or one by one; points repeat in other blocks."""
    rng, kernel = np.random.default_rng(3), 1.5 * Matern(2.5, (0.4, 0.6))
    arms, row_arms = rng.random((9, 2)), np.array([0, 1, 2, 0, 3, 1, 4, 4, 0, 2])
    levels = np.column_stack([rng.integers(0, 3, 10), rng.integers(-1, 2, 10)])
    values, noise, variances = rng.normal(size=10), rng.uniform(0.01, 0.2, 10), np.array([0.5, 0.2])
    same = (levels[:, None] == levels) & (levels >= 0)
    covariance = kernel(arms[row_arms], arms[row_arms]) + same @ variances + np.diag(noise)
    shared = kernel(arms[row_arms], arms)
    mean = shared.T @ np.linalg.solve(covariance, values)
    joint = kernel(arms, arms) - shared.T @ np.linalg.solve(covariance, shared)

    rows = ObservationRows(arms[row_arms[:6]], values[:6], noise[:6], None, Offsets(levels[:6], variances))
    posterior = condition(kernel, rows).at(arms, row_arms[:6], 0.1)
    for i in range(6, 10):
        before = np.linalg.solve(covariance[:i, :i], np.column_stack([values[:i], covariance[:i, i]]))
        expected = posterior.expected(row_arms[i], dict(enumerate(levels[i].tolist())))
        assert expected[0] == pytest.approx(covariance[i, :i] @ before[:, 0])
        assert expected[1] == pytest.approx(covariance[i, i] - noise[i] - covariance[i, :i] @ before[:, 1])
        posterior = posterior.told(row_arms[i], values[i], noise[i], dict(enumerate(levels[i].tolist())))

    every = np.arange(9)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance(every, every), joint, atol=1e-12)
    np.testing.assert_allclose(posterior.full.root @ posterior.full.root.T, covariance, atol=1e-12)
    np.testing.assert_allclose(condition(kernel, posterior.rows).joint(arms)[1], joint, atol=1e-12)
    np.testing.assert_allclose(posterior.extended(arms[:2]).mean[9:], mean[:2], atol=1e-12)
    f, e = kernel(arms[row_arms], arms[row_arms]), covariance - kernel(arms[row_arms], arms[row_arms])
    assert posterior.effective_dimension == pytest.approx(np.trace(f @ np.linalg.inv(covariance)))
    gain = np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(e)[1]
    assert posterior.information_gain == pytest.approx(gain / 2)


def test_rows_without_a_block_have_noise_alone():
    rng, kernel = np.random.default_rng(0), Matern(2.5, (0.4,))
    points, values, noise = rng.random((5, 1)), rng.normal(size=5), np.full(5, 0.1)
    plain = condition(kernel, ObservationRows(points, values, noise))
    none = Offsets(np.full((5, 1), -1), np.array([2.0]))
    assert (condition(kernel, ObservationRows(points, values, noise, None, none)).root == plain.root).all()


@pytest.mark.parametrize("is_aged", [False, True])
def test_the_likelihood_has_the_slope_of_its_values_and_is_that_of_the_dense_covariance(is_aged):
    rng, n = np.random.default_rng(1), 20
    blocks = np.column_stack([rng.integers(0, 4, n), rng.integers(-1, 3, n)])
    parts = rng.random((n, 2)), np.arange(n), rng.normal(size=n), np.full(n, np.nan), np.array([0, 1])
    evidence = Evidence(*parts, ages=30 * rng.random(n) if is_aged else None, blocks=blocks)
    likelihood = Likelihood(evidence, np.ones(n))
    theta = np.array([-0.5, -0.3, 0.1, -0.9, *([3.0] if is_aged else []), -0.4, -0.8, -1.2])
    value, slope = likelihood(theta)
    steps = 1e-5 * np.eye(len(theta))
    numeric = [(likelihood(theta + step)[0] - likelihood(theta - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, numeric, atol=1e-5)
    fit = likelihood.fit(theta, 0.0)
    assert fit.blocks == pytest.approx(np.exp([-0.4, -0.8]))
    np.testing.assert_allclose(fit.theta, theta)
    dense = fit.covariance(evidence) + CENTRE**2 + fit.noise**2 * np.eye(n)
    quadratic = evidence.values @ np.linalg.solve(dense, evidence.values)
    assert value == pytest.approx(-0.5 * (quadratic + np.linalg.slogdet(dense)[1] + n * np.log(2 * np.pi)))


def test_the_size_of_the_offsets_is_found():
    rng, n = np.random.default_rng(0), 120
    points, machines, offsets = rng.random((n, 1)), rng.integers(0, 12, n), rng.normal(0, 0.5, 12)
    values = np.sin(6 * points[:, 0]) + offsets[machines] + 0.05 * rng.standard_normal(n)
    evidence = Evidence(points, np.arange(n), values, np.full(n, np.nan), np.array([0]), blocks=machines[:, None])
    fit = FitMatern()(evidence, np.ones(n))
    assert fit.blocks[0] == pytest.approx(offsets.std(), rel=0.4)
    assert fit.noise == pytest.approx(0.05, rel=0.3)


def test_offsets_of_machines_are_no_part_of_an_estimate():
    offsets = [0.4, -0.3, 0.2, -0.3]
    opt = measured(40, lambda machine: {"machine": f"n{machine}"}, offsets)
    blind = measured(40, lambda machine: None, offsets)
    assert bowl(opt.best().params) < 0.02
    assert opt.calibrated.fit.noise * opt.calibrated.scale.unit < 0.05
    assert blind.calibrated.fit.noise * blind.calibrated.scale.unit > 0.1
    assert opt.best().lower < 0 < opt.best().upper
    assert opt.doubts == []


@pytest.mark.parametrize("block", [lambda machine: {"machine": "one"}, lambda machine: {"day": machine}])
def test_a_block_that_nothing_can_be_learnt_about_changes_nothing(block):
    """One machine; or each measurement its own day."""
    days = iter(range(1000))
    told = measured(22, lambda machine: {name: next(days) if name == "day" else it for name, it in block(0).items()})
    plain = measured(22, lambda machine: None)
    assert [its.params for its in told.trials] == [its.params for its in plain.trials]
    assert told.best() == plain.best()
    assert told.calibrated.fit == plain.calibrated.fit


def test_blocks_without_an_effect_cost_next_to_nothing():
    plain, told = measured(40, lambda machine: None), measured(40, lambda machine: {"machine": machine})
    widths = [its.best().upper - its.best().lower for its in (plain, told)]
    assert widths[1] < 1.5 * widths[0]
    assert bowl(told.best().params) < 0.01


def test_a_machine_that_is_met_after_a_fit_has_an_offset_too():
    opt = measured(40, lambda machine: {"machine": machine}, [0.4, -0.3, 0.2, -0.3])
    rate = opt.predict({"x": 0.9, "y": 0.9}).estimate
    for _ in range(2):
        opt.tell({"x": 0.9, "y": 0.9}, bowl({"x": 0.9, "y": 0.9}) + 5, block={"machine": "new"})
    assert opt.predict({"x": 0.9, "y": 0.9}).estimate == pytest.approx(rate, abs=0.5)


def test_one_by_one_and_all_at_once_are_the_same():
    opt = measured(20, lambda machine: {"machine": machine, "half": machine // 2}, [0.4, -0.3, 0.2, -0.3])
    again = Optimizer(SPACE, rng=0)
    again.add(opt.trials)
    assert again.best().estimate == pytest.approx(opt.best().estimate, rel=1e-6)
    assert again.best().params == opt.best().params


def test_several_factors_repeats_failures_constraints_and_drift():
    rng = np.random.default_rng(0)
    opt = Optimizer(SPACE, rng=0, drift="auto", constraints={"memory": ("<=", 1.5)}, baseline={"x": 0.5, "y": 0.5})
    for i in range(24):
        trial, machine = opt.ask(), int(rng.integers(3))
        if i % 11 == 5:
            opt.fail(trial)
            continue
        block = {"machine": machine, "day": "mon" if i < 20 else "tue"} if i % 7 else None
        value = bowl(trial.params) + [0.1, 0.3, -0.2][machine] + 0.02 * rng.standard_normal()
        opt.tell(trial, value, constraints={"memory": trial.params["x"] + machine}, block=block)
    assert np.isfinite(opt.best().estimate)
    assert opt.gain().best == opt.best()
    assert opt.weights()
    assert len(copy.copy(opt).trials) == 24


def test_common_random_numbers_tell_two_settings_apart():
    """Seeds differ ten times as much as the settings."""
    rng, seeds = np.random.default_rng(1), np.random.default_rng(2).normal(size=20)
    told, blind = (Optimizer({"kind": Choice(["a", "b"])}, rng=0, baseline={"kind": "a"}) for _ in range(2))
    for seed in range(20):
        for kind, better in (("a", 0.0), ("b", 0.1)):
            value = 5 - better + seeds[seed] + 0.02 * rng.standard_normal()
            told.tell({"kind": kind}, value, block={"seed": seed})
            blind.tell({"kind": kind}, value)
    gain = told.gain()
    assert gain.lower > 0
    assert gain.lower < 0.1 < gain.upper
    assert gain.upper - gain.lower < 0.1
    assert blind.gain().estimate == 0  # nothing is shown


def test_it_is_saved_and_loaded(tmp_path):
    opt = measured(25, lambda machine: {"machine": f"n{machine}", "seed": machine}, [0.4, -0.3, 0.2, -0.3])
    opt.tell({"x": 0.1, "y": 0.2}, 0.4, block={"machine": "n7"})
    opt.correct(3, 0.5)
    opt.save(tmp_path / "a.json")
    again = Optimizer.load(tmp_path / "a.json")
    assert [its.block for its in again.trials] == [its.block for its in opt.trials]
    assert again.trials[-1].block == {"machine": "n7"}
    assert again.best() == opt.best()
    assert again.ask().params == opt.ask().params


def test_columns_of_a_frame():
    opt = measured(6, lambda machine: {"machine": f"n{machine}", "seed": machine})
    frame = opt.to_frame()
    assert list(frame["block.machine"]) == [its.block["machine"] for its in opt.trials]
    again = Optimizer(SPACE, rng=0)
    again.tell_many(frame)
    assert [its.block for its in again.trials] == [its.block for its in opt.trials]


@pytest.mark.parametrize("block", ["n7", {"machine": None}, {"machine": True}, {"load": 0.5}, {"": 1}, {3: "a"}])
def test_a_bad_block_changes_nothing(block):
    opt = Optimizer(SPACE, rng=0)
    trial = opt.ask()
    with pytest.raises(ValueError, match="block"):
        opt.tell(trial, 1.0, block=block)
    assert len(opt.pending) == 1
    opt.tell(trial, 1.0, block={})
    assert opt.trials[0].block is None


def test_a_corrected_and_a_withdrawn_trial_keep_their_block():
    opt = measured(4, lambda machine: {"machine": machine + 1})
    before = [its.block for its in opt.trials]
    opt.correct(1, 3.0)
    opt.withdraw(2)
    assert [its.block for its in opt.trials] == before
    opt.add([Trial(9, {"x": 0.5, "y": 0.5}, state="done", readings={"value": (Reading(1.0),)}, block={"seed": 4})])
    assert opt.trials[-1].block == {"seed": 4}
