"""Fewest changes to the baseline, and what each is worth."""

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer.answers.changes import reverted
from noregret.optimizer.space.space import ParameterSpace

FLAGS = {f"flag{i}": Choice([False, True]) for i in range(6)}
OFF = dict.fromkeys(FLAGS, False)
SEED = 4


def told(space, value, baseline, count=40, noise=0.1, seed=0, **options):
    """An optimizer after values of the baseline and of random settings."""
    opt, rng = Optimizer(space, rng=seed, baseline=baseline, **options), np.random.default_rng(seed)
    places = opt.space.decode(rng.random((count, len(opt.space.groups))))
    for params in [baseline, *places]:
        opt.tell(params, value(params) + noise * rng.standard_normal())
    return opt


def two_matter(params):
    return 10 - 2 * params["flag1"] - params["flag4"]


def test_what_does_not_matter_stays_as_it_was_and_the_rest_is_named_in_order():
    opt = told(FLAGS, two_matter, OFF, seed=SEED)
    best = opt.best()
    assert best.params == OFF | {"flag1": True, "flag4": True}
    assert [change[:3] for change in best.changes] == [("flag1", False, True), ("flag4", False, True)]
    for change, worth in zip(best.changes, (2, 1), strict=True):
        assert change.lower <= worth <= change.upper
        assert change.lower <= change.estimate <= change.upper
        assert change.lower > 0
    assert opt.gain().best.params == best.params


def test_all_changes_of_the_largest_bound_are_kept_on_request():
    opt = told(FLAGS, two_matter, OFF, seed=SEED)
    most = opt.best(fewest_changes=False)
    assert sum(most.params.values()) > 2, "some of what does not matter is on"
    assert len(most.changes) == sum(most.params.values())
    assert most.changes[0].name == "flag1"


def test_without_a_baseline_there_are_no_changes():
    opt = Optimizer({"x": Float(0, 1)}, rng=0)
    with pytest.raises(
        ValueError, match=r"fewest_changes needs something to change: Optimizer\(..., baseline=params\)"
    ):
        opt.best(fewest_changes=True)
    for x in np.linspace(0, 1, 12).tolist():
        opt.tell({"x": x}, x)
    assert opt.best().changes == []
    assert opt.best() == opt.best(fewest_changes=False)


def test_numbers_that_matter_little_stay():
    space = {"x": Float(0, 1), "y": Float(0, 1), "z": Int(1, 9)}
    opt = told(space, lambda p: (p["x"] - 0.8) ** 2, {"x": 0.2, "y": 0.3, "z": 4}, noise=0.005)
    best = opt.best()
    assert (best.params["y"], best.params["z"]) == (0.3, 4)
    assert best.params["x"] == pytest.approx(0.8, abs=0.15)
    assert [change.name for change in best.changes] == ["x"]


def test_a_parameter_goes_back_with_the_one_it_depends_on():
    space = ParameterSpace({"kind": Choice(["a", "b"]), "depth": Int(1, 9, when={"kind": "b"}), "x": Float(0, 1)})
    baseline = {"kind": "a", "x": 0.5}
    assert reverted(space, {"kind": "b", "depth": 3, "x": 0.1}, baseline, "kind") == {"kind": "a", "x": 0.1}
    deep = {"kind": "b", "depth": 7, "x": 0.5}
    assert reverted(space, {"kind": "a", "x": 0.1}, deep, "kind") == {"kind": "b", "depth": 7, "x": 0.1}
    assert reverted(space, {"kind": "b", "depth": 3, "x": 0.1}, deep, "depth") == {"kind": "b", "depth": 7, "x": 0.1}


def test_constraints_that_the_baseline_violates_stay_met():
    space = {"x": Float(0, 1), "y": Float(0, 1)}
    baseline = {"x": 0.1, "y": 0.1}
    opt, rng = Optimizer(space, rng=0, baseline=baseline, constraints={"size": ("<=", 0.6)}), np.random.default_rng(0)
    for x, y in [(0.1, 0.1), *rng.random((40, 2)).tolist()]:
        opt.tell({"x": x, "y": y}, (x - 0.7) ** 2 + 0.01 * rng.standard_normal(), constraints={"size": 1 - y})
    best = opt.best()
    assert best.feasible >= 0.95
    assert best.params["y"] > 0.4


def test_only_rows_of_a_table_are_recommended():
    rows = [{"a": a, "b": b} for a in range(5) for b in range(5) if (a, b) != (4, 0)]
    opt, rng = Optimizer(rows, rng=0, baseline={"a": 0, "b": 0}), np.random.default_rng(0)
    for row in rows * 2:
        opt.tell(row, 10 - row["a"] + 0.01 * rng.standard_normal())
    best = opt.best()
    assert best.params in rows
    assert best.params["a"] == 4
    assert best.changes[0].name == "a"
    assert best.changes[0].estimate == pytest.approx(4, abs=0.5)


def test_changes_are_about_one_context():
    space, context = {"x": Float(0, 1), "y": Float(0, 1)}, {"load": Choice(["low", "high"])}
    opt = Optimizer(space, rng=0, baseline={"x": 0.2, "y": 0.5}, context=context)
    rng = np.random.default_rng(0)
    for x, y in [(0.2, 0.5), *rng.random((30, 2)).tolist()]:
        for load, top in (("low", 0.2), ("high", 0.9)):
            value = (x - top) ** 2 + 0.005 * rng.standard_normal()
            opt.tell({"x": x, "y": y}, value, context={"load": load})
    assert opt.best({"load": "low"}).params == {"x": pytest.approx(0.2, abs=0.1), "y": 0.5}
    high = opt.best({"load": "high"})
    assert high.params["x"] > 0.7
    assert high.changes[0][:2] == ("x", 0.2)
    assert high.changes[0].estimate == pytest.approx(0.49, abs=0.1)


def test_a_gain_that_is_not_shown_says_so_first():
    opt = told(FLAGS, lambda params: 10 - 0.02 * params["flag1"], OFF, noise=0.5)
    gain = opt.gain()
    assert not gain.is_shown
    assert "shown to be better than your settings" in str(gain)[:60]
