"""Exploring: when it is time, where it looks, and that what the design has refuted is not asked for."""

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.belief.exact import ExactGP
from noregret.belief.kernels import Matern
from noregret.optimizer.calibration import Calibration
from noregret.optimizer.choosing.exploring import TURNS, Exploring, hole, leaps, rough
from noregret.optimizer.spaces.table import as_space

NEVER = Exploring(share=0.0)


def two_hills(x):
    """A broad hill of height 0.5 at 0.2, and one of height 1 at 0.8."""
    return 0.5 * np.exp(-(((x - 0.2) / 0.15) ** 2)) + np.exp(-(((x - 0.8) / 0.1) ** 2))


def near_the_lower_hill(posterior, rng):
    """A rule that wants nothing but the top of the lower hill."""
    return -np.abs(posterior.arms[:, 0] - 0.2)


def asked(calibration, count, seed=0):
    """Where an optimizer of `two_hills` looks, with Gaussian noise of 0.1."""
    opt, noise = Optimizer({"x": Float(0, 1)}, goal="maximize", rng=seed, calibration=calibration), []
    rng = np.random.default_rng(seed)
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, two_hills(trial.params["x"]) + 0.1 * rng.standard_normal())
        noise.append(trial.params["x"])
    return np.array(noise)


def test_explorations_never_end_and_their_share_vanishes():
    exploring = Exploring()
    turns = [question for question in range(100_000) if exploring.turn(question) is not None]
    assert turns[0] > exploring.after
    for count in (1_000, 10_000, 100_000):
        so_far = sum(turn < count for turn in turns)
        expected = exploring.share * (count ** (2 / 3) - exploring.after ** (2 / 3))
        assert abs(so_far - expected) <= 2
    assert tuple(exploring.turn(question) for question in turns[: len(TURNS)]) == TURNS


@pytest.mark.slow
def test_the_first_questions_are_the_same_without_it():
    there, without = (asked(Calibration(exploring=exploring), 70) for exploring in (Exploring(after=50), NEVER))
    assert there[:51].tolist() == without[:51].tolist()
    assert there.tolist() != without.tolist()


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


def test_a_narrow_hill_that_a_smooth_fit_overlooks_is_the_best_of_a_rougher_f():
    belief = ExactGP(Matern(2.5, 2.0), 0.25).prior(np.linspace(0, 1, 11)[:, None])
    belief.update(np.arange(11), [0.2, 0.3, 0.4, 2.0, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2])
    pulled = belief.pulled
    assert pulled[np.argmax(belief.mean[pulled])] == 10
    assert rough(belief, Matern(2.5, 2.0), pulled) == 10
    assert rough(belief, Matern(2.5, 0.05), pulled) == 3
    assert rough(belief, Matern(2.5, 0.05), pulled[4:]) == 10


@pytest.mark.slow
def test_a_narrow_hill_far_from_a_broad_one_is_found():
    """In at least 1 of 2 runs of 600 questions; without exploring, in none. The best is 0.1 wide, of 1 by 1."""

    def value(x, y):
        narrow = 1.6 * np.exp(-0.5 * ((x - 0.2) ** 2 + (y - 0.8) ** 2) / 0.07**2)
        return narrow - (x - 0.7) ** 2 - (y - 0.3) ** 2

    def found(seed, exploring):
        space, rng = {"x": Float(0, 1), "y": Float(0, 1)}, np.random.default_rng(seed)
        opt = Optimizer(space, goal="maximize", rng=seed, calibration=Calibration(exploring=exploring))
        for _ in range(600):
            trial = opt.ask()
            opt.tell(trial, value(**trial.params) + 0.1 * rng.standard_normal())
        return value(**opt.best().params) > 0.9

    assert any(found(seed, Exploring()) for seed in range(2))
    assert not found(0, NEVER)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_part_of_the_space_is_left_out_for_ever(seed):
    """With more exploring than by default, so that a test sees it; the rule wants nothing but one hill's top."""

    def widest_gap(exploring):
        questions = asked(Calibration(exploring=exploring, rule=near_the_lower_hill), 150, seed)
        return np.diff(np.sort([0.0, *questions, 1.0])).max()

    assert widest_gap(Exploring(share=12.0, after=20)) < 0.06
    assert widest_gap(NEVER) > 0.08
