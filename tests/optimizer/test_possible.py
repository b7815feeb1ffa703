"""The range that values can have."""

import math

import numpy as np
import pytest

from noregret import Float, Optimizer


def told(**options):
    """An optimizer after few accuracies near 1, at random settings."""
    opt, rng = Optimizer({"x": Float(0, 1)}, goal="maximize", rng=0, **options), np.random.default_rng(0)
    for x in rng.random(14).tolist():
        opt.tell({"x": x}, min(1.0, 0.97 + 0.04 * x + 0.02 * rng.standard_normal()))
    return opt


def test_no_end_of_an_interval_leaves_the_range():
    assert told().best().upper > 1, "nothing is known about the values"
    opt = told(possible=(0, 1))
    best = opt.best()
    assert best.upper == 1
    assert best.lower == told().best().lower
    for its in opt.predict_many([{"x": x} for x in (0.0, 0.5, 1.0)]):
        assert 0 <= its.lower <= its.estimate <= its.upper <= 1


def test_a_gain_is_no_larger_than_what_is_left():
    opt = told(possible=(0, 1), baseline={"x": 0.1})
    opt.tell({"x": 0.1}, 0.98)
    gain = opt.gain()
    assert gain.upper <= 1 - gain.baseline.lower
    assert gain.best.upper <= 1


def test_the_range_of_each_objective():
    opt = Optimizer(
        {"x": Float(0, 1)}, rng=0, goals={"time": "minimize", "accuracy": "maximize"}, possible={"time": (0, None)}
    )
    for x in np.linspace(0, 1, 9).tolist():
        opt.tell({"x": x}, {"time": 0.01 + 0.02 * (x > 0.9), "accuracy": x})
    assert min(member.lower["time"] for member in opt.front()) >= 0
    with pytest.raises(
        ValueError, match=r"objective 'time' must be from 0 to inf, as possible=\(0.0, inf\) says, got -1"
    ):
        opt.tell({"x": 0.5}, {"time": -1.0, "accuracy": 0.5})


def test_a_value_that_is_not_possible_changes_nothing():
    opt = told(possible=(0, 1))
    before = len(opt.measurements)
    for value in (1.02, -0.1):
        with pytest.raises(ValueError, match=r"value must be from 0 to 1, as possible=\(0.0, 1.0\) says"):
            opt.tell({"x": 0.5}, value)
    with pytest.raises(ValueError, match="value must be from 0 to 1"):
        opt.tell_many([{"x": 0.1, "value": 0.5}, {"x": 0.2, "value": 2.0}])
    assert len(opt.measurements) == before


@pytest.mark.parametrize("wrong", [(1, 0), (0,), "ab", 3, (math.nan, 1), (0, 0), {"x": (0, 1)}])
def test_bad_ranges_are_refused(wrong):
    with pytest.raises(ValueError, match="possible must be the least and the largest value there can be"):
        Optimizer({"x": Float(0, 1)}, possible=wrong)


def test_bad_ranges_of_several_objectives_are_refused():
    goals = {"a": "minimize", "b": "minimize"}
    with pytest.raises(ValueError, match="possible must be a dict with the range"):
        Optimizer({"x": Float(0, 1)}, goals=goals, possible=(0, 1))
    with pytest.raises(ValueError, match="unknown objective 'c'"):
        Optimizer({"x": Float(0, 1)}, goals=goals, possible={"c": (0, 1)})


def test_a_saved_optimizer_keeps_its_range(tmp_path):
    opt = told(possible=(0, 1))
    opt.save(tmp_path / "opt.json")
    assert Optimizer.load(tmp_path / "opt.json").best().upper == opt.best().upper == 1
    opt = told(possible=(0, None))
    opt.save(tmp_path / "opt.json")
    assert Optimizer.load(tmp_path / "opt.json").best() == opt.best()
