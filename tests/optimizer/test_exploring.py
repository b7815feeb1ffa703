"""Exploring: the places that the safe bases choose."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.optimizer.configs import fit_of, fitted, observed

from noregret import Float, Int, Optimizer
from noregret.optimizer.model.current import CANDIDATE, Snapshot
from noregret.optimizer.model.history import History
from noregret.optimizer.model.kernel import Fit
from noregret.optimizer.questions.balance import Balancing
from noregret.optimizer.questions.explore import Explore, ShorterLengthscales, best_of_cloud, farthest_of
from noregret.optimizer.questions.state import state_of
from noregret.optimizer.space.table import as_space

NEVER = Explore(balancing=Balancing(after=10**9, small=0))


def two_hills(x):
    """A broad hill of height 0.5 at 0.2, and one of height 1 at 0.8."""
    return 0.5 * np.exp(-(((x - 0.2) / 0.15) ** 2)) + np.exp(-(((x - 0.8) / 0.1) ** 2))


def asked(calibration, count, seed=0):
    """Settings that an optimizer of `two_hills` evaluates, with Gaussian noise of 0.1."""
    opt, noise = Optimizer({"x": Float(0, 1)}, goal="maximize", rng=seed, calibration=calibration), []
    rng = np.random.default_rng(seed)
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, two_hills(trial.params["x"]) + 0.1 * rng.standard_normal())
        noise.append(trial.params["x"])
    return np.array(noise)


def test_the_farthest_place_is_farthest_from_all_that_was_measured():
    places, anywhere = np.array([[0.1], [0.35], [0.6], [0.8]]), np.ones(4, bool)
    assert farthest_of(places, np.array([[0.3], [0.7], [0.9]]), anywhere) == 0
    assert farthest_of(places, np.array([[0.0], [0.3], [0.5]]), anywhere) == 3
    assert farthest_of(places, np.array([[0.0], [0.3], [0.5]]), np.array([True, True, True, False])) != 3
    assert farthest_of(places, np.array([[0.0], [0.3], [0.5]]), ~anywhere) == 3
    assert farthest_of(places, places, anywhere) is None


@pytest.mark.slow
def test_without_noise_trials_that_are_out_are_not_asked_for_again():
    for seed in (1, 2):  # with others the logarithm of values near 0 may look noisy
        opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="minimize", rng=seed)
        for _ in range(20):
            trial = opt.ask()
            opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + 0.5 * (trial.params["y"] - 0.6) ** 2)
        assert len({tuple(trial.params.values()) for trial in opt.ask(8)}) == 8


def test_a_place_at_an_edge_counts_for_less_but_has_its_turn():
    places, anywhere = np.array([[0.02], [0.6]]), np.ones(2, bool)
    assert farthest_of(places, np.array([[0.3], [0.4]]), anywhere) == 1, (
        "0.28 away, but most of its surroundings are outside"
    )
    assert farthest_of(places, np.array([[0.3], [0.59]]), anywhere) == 0
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    measured = corners[[0]]
    for _ in range(3):
        found = farthest_of(corners, measured, np.ones(4, bool))
        assert not (measured == corners[found]).all(axis=1).any()
        measured = np.vstack([measured, corners[found]])


@pytest.mark.parametrize("dimension", [3, 5])
def test_the_farthest_places_are_not_mostly_at_the_edges(dimension):
    """Of 60 places no larger share lies within 0.05 of an edge than of random points, on each of 3 seeds."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        measured = rng.random((20, dimension))
        for _ in range(60):
            places = rng.random((500, dimension))
            measured = np.vstack([measured, places[farthest_of(places, measured, np.ones(500, bool))]])
        edges = np.minimum(measured, 1 - measured)[20:].min(axis=1)
        assert np.mean(edges < 0.05) <= 1 - 0.9**dimension


def test_what_is_sought_is_found_near_a_start_or_in_between():
    space, rng = as_space({"x": Float(0, 1), "y": Float(0, 1)}), np.random.default_rng(0)
    start = np.array([[0.8, 0.2]])
    for target in ([0.81, 0.21], [0.3, 0.7]):

        def score(points, target=target):
            return -((points - target) ** 2).sum(axis=1)

        point = best_of_cloud(space, start, score(start), np.full(2, 0.1), score, rng)
        assert np.abs(point - target).max() < 0.03


def snapshot(space, points, values, fit, kernel):
    """The state after these standardised values at (n, d) points, which are all of the arms."""
    history, points = History(space), np.array(points, dtype=float)
    models = fitted(fit)
    belief = observed(kernel, points, values, fit.noise**2).at(points, np.arange(len(points)), fit.noise**2)
    numbers, trust = np.full(len(points), CANDIDATE), np.ones(len(points))
    return Snapshot(history, space, models, belief, numbers, [], learnt=None, trust=trust)


def test_a_rougher_f_has_narrower_hills_and_higher_ones_if_need_be(monkeypatch):
    space, fit = as_space({"x": Float(0, 1), "y": Float(0, 1)}), fit_of((0.2, 0.4), 0.3, 0.1, additive=0.4)
    kernel, plain, rougher = Fit.kernel, fit.kernel(np.arange(2)), []
    monkeypatch.setattr(Fit, "kernel", lambda its, groups: rougher.append(its) or kernel(its, groups))

    def doubting(highest):
        """The fit that the question works with, if this is the highest mean."""
        state = snapshot(space, [[0.2, 0.3], [0.7, 0.8]], [0.1, 0.2], fit, plain)
        state = replace(state, belief=replace(state.belief, mean=np.array([highest, 0.0])))
        rougher.clear()
        assert ShorterLengthscales()(state, np.random.default_rng(0)).shape == (2,)
        (found,) = rougher
        return found

    rough = doubting(2.0)
    assert rough.lengthscales == pytest.approx((0.07, 0.14))
    assert rough.size == pytest.approx(1.0), "the best hill is two standard deviations high"
    assert doubting(0.5).size == pytest.approx(fit.size), "they are high enough"


def test_an_explorer_does_not_ask_for_a_setting_that_only_fails():
    class Named(Explore):
        def bases(self, settings):
            return (lambda state, rng: state.space.encode([{"n": named}])[0],)

    opt = Optimizer({"n": Int(1, 1000)}, rng=0)
    for n in (10, 200, 400, 600, 900):
        opt.tell({"n": n}, float(n))
    for _ in range(3):
        opt.fail({"n": 500})
    turn = SimpleNamespace(turn=lambda history, pending: 1, is_comparable=True)
    state = state_of(opt._any_state(), (), turn)
    named = 500
    assert Named()(state, None) is None
    named = 501
    assert opt.space.decode(Named()(state, None)[None]) == [{"n": 501}]


LONE = np.array([0.75, 0.25])


def told_of_a_hill(*more):
    """An optimizer that knows a broad hill at 25 settings, one value that is better than that, and more values."""
    opt, rng = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="maximize", rng=0), np.random.default_rng(0)
    for x in np.array([(a / 4, b / 4) for a in range(5) for b in range(5)]):
        value = np.exp(-8 * ((x - [0.3, 0.7]) ** 2).sum()) + (0.3 if (x == LONE).all() else 0.0)
        opt.tell({"x": x[0], "y": x[1]}, value + 0.02 * rng.standard_normal())
    for params, value in more:
        opt.tell(params, value)
    return opt


def test_around_a_lone_surprise_is_asked_once():
    opt = told_of_a_hill()
    reach, asked = ShorterLengthscales().reach(opt._any_state()), opt.ask().params
    assert 0 < np.linalg.norm((np.array(list(asked.values())) - LONE) / reach) < 1
    again = np.array(list(told_of_a_hill((asked, 0.05)).ask().params.values()))
    assert np.linalg.norm((again - LONE) / reach) > 1, "the value is not alone any more"
