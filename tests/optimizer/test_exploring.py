"""Exploring: its times and places, and that no rule stays at refuted settings."""

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.belief.exact import ExactGP
from noregret.belief.kernels import Matern
from noregret.optimizer.questions.account import Account
from noregret.optimizer.questions.explore import EARLY, TURNS, Exploring, hole, leaps, sought
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.space.table import as_space

NEVER = Exploring(share=0.0, hidden=np.inf)
CLEAR = Fit((0.3,), 1.0, 0.1)


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


def test_explorations_never_end_and_their_share_vanishes():
    exploring = Exploring()
    turns = [question for question in range(100_000) if exploring.turn(question, CLEAR) is not None]
    assert turns[0] > exploring.after
    for count in (1_000, 10_000, 100_000):
        so_far = sum(turn < count for turn in turns)
        expected = exploring.share * (count ** (2 / 3) - exploring.after ** (2 / 3))
        assert abs(so_far - expected) <= 2
    assert tuple(exploring.turn(question, CLEAR) for question in turns[: len(TURNS)]) == TURNS


def test_early_questions_explore_only_while_the_noise_hides_f():
    exploring = Exploring()
    hidden = [exploring.turn(question, Fit((0.3,), 1.0, 1.6)) for question in range(exploring.after + 1)]
    assert hidden[:6] == [*EARLY, *EARLY]
    assert hidden.count(None) == pytest.approx(len(hidden) / 3, abs=1)
    assert not any(exploring.turn(question, Fit((0.3,), 1.0, 1.4)) for question in range(exploring.after + 1))
    late = [exploring.turn(question, Fit((0.3,), 1.0, 1.6)) for question in range(201, 1000)]
    assert late == [exploring.turn(question, CLEAR) for question in range(201, 1000)]


def test_a_leap_moves_one_parameter():
    space = as_space({"x": Float(0, 1), "n": Int(1, 9), "c": Choice(["a", "b", "c"])})
    groups, rng = np.array(space.groups), np.random.default_rng(0)
    start = space.encode([{"x": 0.5, "n": 3, "c": "b"}])[0]
    moved = space.decode(space.snap(leaps(np.tile(start, (30 * (groups.max() + 1), 1)), groups, rng)))
    before = space.decode(start[None])[0]
    changes = [{name for name in before if params[name] != before[name]} for params in moved]
    assert all(len(change) <= 1 for change in changes)
    assert set().union(*changes) == {"x", "n", "c"}


def test_a_leap_goes_where_the_upper_bound_is_highest():
    space, rng = as_space({"x": Float(0, 1), "y": Float(0, 1)}), np.random.default_rng(0)
    belief = ExactGP(Matern(2.5, 0.2), 0.01).prior([[0.5, 0.5], [0.5, 0.1], [0.5, 0.9], [0.9, 0.5]])
    belief.update([0, 1, 2, 3], [1.0, -3.0, -3.0, -3.0])
    point = Exploring(values=400).leap(space, belief, rng)
    assert point[1] == 0.5, "x is moved: above and below y is known to be no better"
    assert point[0] < 0.2, "and to where nothing is known"


def test_a_hole_is_farthest_from_all_that_was_measured():
    places, anywhere = np.array([[0.1], [0.35], [0.6], [0.8]]), np.ones(4, bool)
    assert hole(places, np.array([[0.3], [0.7], [0.9]]), anywhere) == 0
    assert hole(places, np.array([[0.0], [0.3], [0.5]]), anywhere) == 3
    assert hole(places, np.array([[0.0], [0.3], [0.5]]), np.array([True, True, True, False])) != 3
    assert hole(places, np.array([[0.0], [0.3], [0.5]]), ~anywhere) == 3
    assert hole(places, places, anywhere) is None


@pytest.mark.slow
def test_without_noise_trials_that_are_out_are_not_asked_for_again():
    for seed in range(2):
        opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="minimize", rng=seed)
        for _ in range(20):
            trial = opt.ask()
            opt.tell(trial, (trial.params["x"] - 0.3) ** 2 + 0.5 * (trial.params["y"] - 0.6) ** 2)
        assert len({tuple(trial.params.values()) for trial in opt.ask(8)}) == 8


def test_a_hole_at_an_edge_counts_for_less_but_has_its_turn():
    places, anywhere = np.array([[0.02], [0.6]]), np.ones(2, bool)
    assert hole(places, np.array([[0.3], [0.4]]), anywhere) == 1, "0.28 away, but most of its surroundings are outside"
    assert hole(places, np.array([[0.3], [0.59]]), anywhere) == 0
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    measured = corners[[0]]
    for _ in range(3):
        found = hole(corners, measured, np.ones(4, bool))
        assert not (measured == corners[found]).all(axis=1).any()
        measured = np.vstack([measured, corners[found]])


@pytest.mark.parametrize("dimension", [3, 5])
def test_holes_are_not_mostly_at_the_edges(dimension):
    """Of 60 holes no larger share lies within 0.05 of an edge than of random points, on each of 3 seeds."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        measured = rng.random((20, dimension))
        for _ in range(60):
            places = rng.random((500, dimension))
            measured = np.vstack([measured, places[hole(places, measured, np.ones(500, bool))]])
        edges = np.minimum(measured, 1 - measured)[20:].min(axis=1)
        assert np.mean(edges < 0.05) <= 1 - 0.9**dimension


def test_what_is_sought_is_found_near_a_start_or_in_between():
    space, rng = as_space({"x": Float(0, 1), "y": Float(0, 1)}), np.random.default_rng(0)
    start = np.array([[0.8, 0.2]])
    for target in ([0.81, 0.21], [0.3, 0.7]):
        point = sought(space, start, np.full(2, 0.1), lambda points, t=target: -((points - t) ** 2).sum(axis=1), rng)
        assert np.abs(point - target).max() < 0.03


def test_a_bold_question_raises_the_hills_and_a_rough_one_narrows_them_too():
    exploring, fit = Exploring(), Fit((0.2, 0.4), 0.3, 0.1, additive=0.4)
    bold, rough = (exploring.doubting(kind, fit, 2.0) for kind in ("bold", "rough"))
    assert bold.lengthscales == fit.lengthscales
    assert rough.lengthscales == pytest.approx((0.07, 0.14))
    assert (bold.size, rough.size) == pytest.approx((1.0, 1.0)), "the best hill is two standard deviations high"
    assert exploring.doubting("bold", fit, 0.5) == fit, "they are high enough"


def test_the_account_is_of_the_values_alone():
    rng, account = np.random.default_rng(0), Account()
    where, values = rng.integers(0, 7, 300), rng.standard_normal(300) + 5.0
    values[where == 3] += 0.5
    for _ in range(8):
        account.meet()
    for number, value in zip(where.tolist(), values.tolist(), strict=True):
        account.add(number, value)
    assert [account.count(number) for number in range(8)] == np.bincount(where, minlength=8).tolist()
    width = values.std() * np.log(300) / np.sqrt(np.bincount(where))
    means = np.bincount(where, values) / np.bincount(where)
    assert (means - width).max() < values[256:].mean(), "nothing is refuted yet"
    assert account.refuting() is None
    assert account.contender() == np.argmax(means + width)
    copied = account.copy()
    for _ in range(600):  # to a power of two and beyond
        account.add(3, 7.0)
        account.add(0, 4.0)
    assert account.refuting() == 3
    assert copied.refuting() is None
    assert copied.count(3) == np.count_nonzero(where == 3)


def test_values_near_the_largest_float_refute_nothing():
    account = Account()
    account.meet()
    account.meet()
    for value in (1e308, -1e308, 1e308, -1e308, 1.0):
        account.add(0, value)
        account.add(1, -value)
        assert account.refuting() is None
        assert account.contender() in (0, 1)
