"""Scales of parameters: a range that spans a factor of 100 may be logarithmic, and the values say whether it is."""

import copy
import math

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer.space.contexts import checked_contexts
from noregret.optimizer.space.table import as_space

WIDE = Float(0.01, 100)


def logarithms(x):
    return float((np.log(x / 2) ** 2).sum())


def squares(x):
    return float(((x - 20) ** 2).sum() / 400)


def tuned(function, evaluations, seed, space=None, noise=0.05, **options):
    opt = Optimizer(space or {name: Float(0.05, 50) for name in "abc"}, rng=seed, **options)
    rng = np.random.default_rng(100 + seed)
    for _ in range(evaluations):
        trial = opt.ask()
        opt.tell(trial, function(np.array(list(trial.params.values()))) + noise * rng.standard_normal())
    return opt


def is_logarithmic(opt):
    return opt._any_state().history is not opt._history


@pytest.mark.parametrize(
    ("parameter", "is_wide"),
    [
        (Float(0.01, 1), True),
        (Float(0.02, 1), False),
        (Float(0, 100), False),
        (Float(-1, 100), False),
        (Float(1, 100, log=True), False),
        (Float(1, 101, step=1), False),
        (Int(1, 100), True),
        (Int(1, 100, step=1), True),
        (Int(1, 101, step=2), False),
        (Choice([1, 100]), False),
    ],
)
def test_ranges_of_positive_numbers_that_span_a_factor_of_100_may_be_logarithmic(parameter, is_wide):
    other = as_space({"a": parameter, "b": Float(0, 1)}).logarithmic
    assert (other is not None) == is_wide
    if is_wide:
        assert other.parameters["a"].log
        assert other.parameters["b"] == Float(0, 1)


def test_what_surrounds_a_space_has_two_scales_too_but_a_table_has_not():
    contexts = checked_contexts(as_space({"a": WIDE}), {"load": Float(1, 1000)})
    assert contexts.whole.logarithmic.space.parameters["a"].log
    assert not contexts.whole.logarithmic.contexts.parameters["load"].log
    assert contexts.within({"load": 5}).logarithmic.context == {"load": 5}
    restricted = as_space({"a": WIDE, "b": WIDE}, ["a <= b"]).logarithmic
    assert restricted.require == ("a <= b",)
    assert as_space([{"a": 1.0}, {"a": 1000.0}]).logarithmic is None


def test_the_opening_design_takes_both_scales_by_turns():
    opt = Optimizer({"a": Float(1e-4, 1)}, rng=0)
    asked = [opt.ask().params["a"] for _ in range(8)]
    assert sum(value < 0.05 for value in asked[1::2]) >= 2
    assert min(asked[::2]) > min(asked[1::2])


def test_loaded_and_lived_through_are_the_same(tmp_path):
    opt = tuned(logarithms, 25, 1)
    opt.save(tmp_path / "study.json")
    again = Optimizer.load(tmp_path / "study.json")
    assert again.best().params == opt.best().params
    assert again.ask().params == opt.ask().params
    assert is_logarithmic(again)


def test_a_copy_is_independent():
    opt = tuned(logarithms, 25, 2)
    twin = copy.copy(opt)
    rng = np.random.default_rng(0)
    for _ in range(6):
        twin.tell(twin.ask(), rng.standard_normal())
    assert len(opt._history) == 25
    assert len(opt._history.logarithmic.points) == len(opt._history.points)
    assert opt.ask().params == tuned(logarithms, 25, 2).ask().params


def test_params_with_whole_numbers_and_conditions():
    space = {
        "size": Int(1, 1000),
        "kind": Choice(["a", "b"]),
        "rate": Float(0.001, 1, when={"kind": "a"}),
    }
    opt = Optimizer(space, rng=0)
    for _ in range(30):
        trial = opt.ask()
        value = math.log(trial.params["size"] / 10) ** 2 + abs(math.log(trial.params.get("rate", 0.3) / 0.03))
        opt.tell(trial, value)
    assert is_logarithmic(opt)
    best = opt.best().params
    assert isinstance(best["size"], int)
    assert 4 <= best["size"] <= 25


def test_costs_constraints_and_several_objectives_follow_the_scale():
    space = {"a": Float(0.01, 100), "b": Float(0.01, 100)}
    opt = Optimizer(space, rng=0, goals={"x": "minimize", "y": "minimize"}, constraints={"m": ("<=", 5)})
    for _ in range(30):
        trial = opt.ask()
        a, b = (math.log(value) for value in trial.params.values())
        opt.tell(trial, {"x": a**2 + b**2, "y": (a - 1) ** 2 + b**2}, constraints={"m": a + b}, cost=1 + a**2)
    assert is_logarithmic(opt)
    front = opt.front()
    assert all(0.3 < each.params["b"] < 3 for each in front)
    alone = Optimizer(space, rng=0)
    for trial in opt.trials:
        alone.tell(trial.params, trial.value("x"), cost=trial.params["a"])
    assert alone.predict({"a": 50.0, "b": 1.0}).cost == pytest.approx(50, rel=0.2)


@pytest.mark.parametrize("options", [{"drift": "auto"}, {"safe": 0.9, "constraints": {"m": ("<=", 1e9)}}])
def test_with_drift_or_safe_the_given_scale_stays(options):
    baseline = {"baseline": dict.fromkeys("abc", 20.0)} if "safe" in options else {}
    opt = Optimizer({name: Float(0.05, 50) for name in "abc"}, rng=0, **options, **baseline)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(
            trial,
            logarithms(np.array(list(trial.params.values()))),
            constraints={"m": 0.0} if "safe" in options else None,
        )
    assert not is_logarithmic(opt)


def test_importance_is_over_the_given_scale():
    """Of x over (0.01, 100), evenly: nearly all of f = ln x is near 0 on the linear scale, so b matters more there."""
    opt = Optimizer({"a": Float(0.01, 100), "b": Float(0, 1)}, rng=0)
    rng = np.random.default_rng(1)
    for _ in range(60):
        trial = opt.ask()
        opt.tell(trial, math.log(trial.params["a"]) ** 2 + 10 * trial.params["b"] + 0.01 * rng.standard_normal())
    assert is_logarithmic(opt)
    even = np.random.default_rng(2).random(100_000)
    first, second = np.var(np.log(0.01 + 99.99 * even) ** 2), 100 * np.var(even)
    share = opt.importance()["a"]
    assert share.estimate == pytest.approx(first / (first + second), abs=0.1)
