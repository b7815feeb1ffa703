"""Importance of parameters."""

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer


def learnt(seed, f, parameters, rounds=40):
    """An optimizer with noisy values at random settings."""
    optimizer, rng = Optimizer(parameters, rng=seed), np.random.default_rng(seed)
    for params in optimizer.space.decode(rng.uniform(size=(rounds, len(optimizer.space.groups)))):
        optimizer.tell(params, f(params) + 0.05 * rng.standard_normal())
    return optimizer


def total_indices(optimizer, f, names, count=2000):
    """The total indices of f itself, on the scale that the optimizer sees it on."""
    rng, scale = np.random.default_rng(0), optimizer.calibrated.scale
    first, second = rng.uniform(size=(2, count, len(names)))

    def values(rows):
        return scale.standard(-f(dict(zip(names, rows.T, strict=True))))

    found = {}
    for i, name in enumerate(names):
        changed = first.copy()
        changed[:, i] = second[:, i]
        found[name] = np.mean((values(first) - values(changed)) ** 2) / 2 / values(first).var()
    return found


def bowl(params):
    return 3 * (params["x"] - 0.3) ** 2 + abs(params["y"] - 0.6)


@pytest.mark.slow
def test_shares_are_between_0_and_1_and_intervals_hold_the_estimates():
    space = {"kind": Choice(["a", "b", "c"]), "n": Int(1, 9), "one": Int(3, 3), "x": Float(0, 1)}
    found = learnt(0, lambda params: (params["kind"] == "b") + 0.01 * params["n"], space).importance()
    assert next(iter(found)) == "kind"
    assert found["kind"].estimate > 0.8
    assert found["one"].upper == pytest.approx(0.0)
    assert all(0 <= share.lower <= share.estimate <= share.upper <= 1 for share in found.values())


@pytest.mark.slow
def test_a_value_that_spoils_everything_does_not_count_among_the_better_half():
    space = {"level": Choice(["none", "low", "high"]), "x": Float(0, 1)}
    optimizer = learnt(0, lambda params: 9 * (params["level"] == "none") + (params["x"] - 0.3) ** 2, space, rounds=60)
    whole, better = optimizer.importance(), optimizer.importance(better_half=True)
    assert next(iter(whole)) == "level"
    assert whole["x"].upper < 0.1
    assert next(iter(better)) == "x"
    assert better["x"].lower > whole["x"].upper
    assert all(0 <= share.lower <= share.estimate <= share.upper <= 1 for share in better.values())


def test_a_function_that_is_the_same_everywhere_has_no_important_parameter():
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=0)
    for _ in range(12):
        optimizer.tell(optimizer.ask(), 1.0)
    assert all(0 <= share.estimate <= 1 for share in optimizer.importance().values())


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-300, 1e299])
def test_shares_do_not_depend_on_the_unit(size):
    settings = np.random.default_rng(0).uniform(size=(12, 2)).tolist()
    found = []
    for unit in (1.0, size):
        optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=0)
        for x, y in settings:
            optimizer.tell({"x": x, "y": y}, unit * (3 * (x - 0.3) ** 2 + abs(y - 0.6)))
        found.append([share for name in "xy" for share in optimizer.importance()[name]])
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def test_what_has_no_importance_is_refused():
    for table in ([[0.0], [1.0]], [{"x": 0.0}, {"x": 1.0}]):
        with pytest.raises(ValueError, match=r"needs a space of Float, Int and Choice, .*, got a table"):
            Optimizer(table).importance()
    with pytest.raises(ValueError, match="without contexts or a fidelity, got contexts"):
        Optimizer({"x": Float(0, 1)}, context={"load": Float(0, 1)}).importance()
    with pytest.raises(ValueError, match="needs at least 2 values, 0 told so far"):
        Optimizer({"x": Float(0, 1)}).importance()


def test_predicting_many_is_predicting_each():
    optimizer = learnt(0, bowl, {name: Float(0, 1) for name in "xyz"}, 20)
    points = [{"x": x, "y": 0.5, "z": 0.1} for x in (0.0, 0.3, 1.0)]
    for one, each in zip(optimizer.predict_many(points), points, strict=True):
        alone = optimizer.predict(each)
        assert (one.estimate, one.lower, one.upper) == pytest.approx((alone.estimate, alone.lower, alone.upper))
    assert optimizer.predict_many([]) == []
