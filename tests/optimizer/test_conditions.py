"""Steps, and parameters that apply only when others have certain values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noregret import Choice, Float, Int, Optimizer
from noregret.optimizer import axis_of
from noregret.optimizer.model.candidates import resample_inactive
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.fit import FitMatern
from noregret.optimizer.space.space import ParameterSpace

NESTED = {
    "depth": Int(1, 9, when={"model": "forest"}),  # named before what it depends on
    "model": Choice(["line", "forest", "net"]),
    "solver": Choice(["adam", "sgd"], when={"model": "net"}),
    "momentum": Float(0, 1, when={"solver": "sgd"}),
    "rate": Float(1e-4, 1, log=True),
}
LEGAL = {
    "line": {"model", "rate"},
    "forest": {"model", "rate", "depth"},
    "adam": {"model", "rate", "solver"},
    "sgd": {"model", "rate", "solver", "momentum"},
}
SMALL = {
    "layers": Int(1, 3),
    "first": Choice(["a", "b"]),
    "second": Choice(["a", "b", "c"], when={"layers": [2, 3]}),
    "third": Float(0, 1, step=0.5, when={"layers": 3, "second": ["a", "b"]}),
}


def names(params):
    return LEGAL[params.get("solver", params["model"])]


@given(st.integers(-50, 50), st.integers(1, 40), st.integers(0, 30), st.sampled_from([1.0, 0.1, 0.25, 3.0]))
def test_every_step_comes_back_and_gets_the_same_share_of_the_cube(low, step, count, unit):
    parameter = Float(low * unit, (low + count * step) * unit, step=step * unit)
    values = list(axis_of(parameter).values())
    assert len(values) == axis_of(parameter).count == count + 1
    assert axis_of(parameter).decode(axis_of(parameter).encode(values)) == values
    assert [axis_of(parameter).checked("x", value) for value in values] == values
    middles = (np.arange(count + 1)[:, None] + 0.5) / (count + 1)
    assert axis_of(parameter).decode(middles) == values
    assert np.array_equal(axis_of(parameter).snap(middles), axis_of(parameter).encode(values))


def test_steps_are_as_people_write_them():
    assert list(axis_of(Float(0.1, 0.7, step=0.1)).values()) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert axis_of(Float(0.1, 0.7, step=0.1)).checked("x", 0.1 + 2 * 0.1) == 0.3
    assert axis_of(Float(0.1, 0.7, step=0.2)).checked("x", 0.1 + 3 * 0.2) == 0.7, (
        "rounding is no reason to refuse the end"
    )
    assert list(axis_of(Int(16, 64, step=16)).values()) == [16, 32, 48, 64]
    assert Int(1, 9, step=1) != Int(1, 9)
    assert list(axis_of(Int(1, 9, step=1)).values()) == list(axis_of(Int(1, 9)).values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(0, 1, step=0), "step must be a number above 0, got 0"),
        (lambda: Float(0, 1, step="a"), "step must be a number above 0, got 'a'"),
        (lambda: Int(0, 8, step=-2), "step must be a number above 0, got -2"),
        (lambda: Int(0, 8, step=0.5), "step of an Int must be a whole number, got 0.5: use Float"),
        (lambda: Float(0.1, 1, log=True, step=0.1), "a step or a log scale, not both, got step 0.1: drop one"),
        (lambda: Int(1, 9, log=True, step=2), "a step or a log scale, not both, got step 2: drop one"),
        (lambda: Float(0, 1, step=0.3), "low plus a whole number of steps, .* take 0.9 or 1.2 as high"),
        (lambda: Int(0, 5, step=8), "low plus a whole number of steps, .* take 0 or 8 as high"),
        (lambda: Float(0, 1, step=1e-12), "into at most 1e9 steps, got 1e-12"),
        (lambda: Float(0, 1, when="model"), "when must be a dict from a parameter's name to a value"),
        (lambda: Choice(["a"], when={"model": []}), "at least one value for 'model', got none"),
    ],
)
def test_steps_and_conditions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_advice_about_a_high_end_is_good():
    assert axis_of(Float(0, 0.9, step=0.3)).count == 4


def test_many_steps_are_not_listed():
    """A condition on one of a billion numbers takes no memory for the others."""
    space = ParameterSpace({"n": Float(0, 1, step=1e-9), "x": Float(0, 1, step=0.5, when={"n": 0.25})})
    assert space.count == float("inf")
    assert space.checked({"n": 0.25, "x": 0.5}) == {"n": 0.25, "x": 0.5}


def test_a_value_beyond_the_ends_or_between_two_steps_is_refused():
    for value in (-0.25, 1.25, 1.3):
        with pytest.raises(ValueError, match=f"x must be from 0 to 1, got {value}"):
            ParameterSpace({"x": Float(0, 1, step=0.25)}).checked({"x": value})
    with pytest.raises(
        ValueError, match=r"x must be 0 plus a whole number of steps of 0.25, got 0.3: 0.25 and 0.5 are"
    ):
        ParameterSpace({"x": Float(0, 1, step=0.25)}).checked({"x": 0.3})
    with pytest.raises(
        ValueError, match=r"n must be 2 plus a whole number of steps of 2, got 5: 4 and 6 are next to it"
    ):
        ParameterSpace({"n": Int(2, 8, step=2)}).checked({"n": 5})


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"x": Float(0, 1, when={"y": 1})}, r"'x' has a condition on 'y', which is none of \['x'\]"),
        ({"m": Choice(["a", "b"]), "x": Float(0, 1, when={"m": "c"})}, "a value that 'm' cannot take .* got 'c'"),
        ({"m": Choice(["a", "b"]), "x": Float(0, 1, when={"m": ("a", "b")})}, "several values are given as a list"),
        (
            {"y": Float(0, 1), "x": Float(0, 1, when={"y": 1})},
            "'y', which must have finitely many values: give it a st",
        ),
        ({"x": Int(0, 1, when={"x": 1})}, "must not go in a circle, got x -> x"),
        (
            {"x": Int(0, 1, when={"y": 1}), "y": Int(0, 1, when={"z": 1}), "z": Int(0, 1, when={"x": 1})},
            "must not go in a circle, got x -> y -> z -> x: drop one",
        ),
        (
            {"m": Int(1, 2), "y": Int(0, 1, when={"m": 1}), "x": Int(0, 1, when={"m": 2, "y": 1})},
            "parameter 'x' can never apply: .* different values of 'm'",
        ),
    ],
)
def test_conditions_that_cannot_hold_are_refused(space, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(space)


def test_the_advice_about_a_condition_on_a_float_is_good():
    space = ParameterSpace({"y": Float(0, 1, step=0.5), "x": Float(0, 1, when={"y": [0.5, 1]})})
    assert space.checked({"y": 0.0}) == {"y": 0.0}
    assert space.checked({"x": 0.2, "y": 0.5}) == {"x": 0.2, "y": 0.5}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "forest", "rate": 0.1}, "'depth' is missing, which applies when model is 'forest'"),
        ({"model": "line", "rate": 0.1, "depth": 3}, "leave out 'depth', which applies only when model is 'forest'"),
        ({"model": "net", "rate": 0.1, "solver": "adam", "momentum": 0.1}, "leave out 'momentum', .* solver is 'sgd'"),
        ({"model": "line", "rate": 0.1, "momentum": 0.1}, "leave out 'momentum'"),
        ({"rate": 0.1, "depth": 3}, "'model' is missing"),
        ({"model": "line", "rate": 0.1, "odd": 3}, "unknown 'odd'"),
    ],
)
def test_params_must_have_what_applies_and_nothing_else(params, message):
    optimizer = Optimizer(NESTED)
    for told in (lambda: optimizer.tell(params, 1.0), lambda: optimizer.expect(params), lambda: optimizer.fail(params)):
        with pytest.raises(ValueError, match=message):
            told()
    assert not optimizer.measurements


def test_points_of_the_cube_become_legal_params_and_come_back():
    space, rng = ParameterSpace(NESTED), np.random.default_rng(0)
    points = space.snap(rng.random((500, len(space.groups))))
    params = space.decode(points)
    assert {frozenset(p) for p in params} == {frozenset(its) for its in LEGAL.values()}
    assert all(set(p) == names(p) for p in params)
    assert [space.checked(p) for p in params] == params
    assert np.allclose(space.encode(params), points)
    assert np.allclose(space.snap(points), points)
    assert len({space.key(p) for p in params}) == len({point.tobytes() for point in points})
    assert space.decode(points[:0]) == []


def test_what_does_not_apply_makes_no_two_points_look_different():
    space = ParameterSpace(NESTED)
    cube = np.random.default_rng(0).random((300, len(space.groups)))
    cube[:, [1, 2, 3]], cube[:, -1] = [1.0, 0.0, 0.0], 0.3  # the line, at one rate: other coordinates are arbitrary
    assert len(np.unique(space.snap(cube), axis=0)) == 1


def test_everything_is_each_legal_setting_once():
    space = ParameterSpace(SMALL)
    assert space.count == 2 + 2 * 3 + 2 * (2 * 3 + 1)
    points = space.everything()
    params = space.decode(points)
    assert len(points) == len({space.key(p) for p in params}) == space.count
    assert [space.checked(p) for p in params] == params
    drawn = space.snap(np.random.default_rng(0).random((3000, len(space.groups))))
    assert {point.tobytes() for point in drawn} == {point.tobytes() for point in points}


def test_many_settings_are_not_counted_one_by_one():
    chain = {"p0": Int(0, 1)} | {f"p{i}": Int(0, 1, when={f"p{i - 1}": 1}) for i in range(1, 60)}
    assert ParameterSpace(chain).count == 61
    broad = {f"p{i}": Int(0, 1) for i in range(60)} | {f"x{i}": Int(0, 1, when={f"p{i}": 1}) for i in range(60)}
    assert ParameterSpace(broad).count == float("inf")
    assert ParameterSpace({f"p{i}": Int(0, 1) for i in range(60)}).count == 2**60


def test_what_a_move_makes_apply_may_be_anywhere():
    space, rng = ParameterSpace(NESTED), np.random.default_rng(0)
    lines = np.tile(space.encode([{"model": "line", "rate": 0.01}]), (200, 1))
    loose = resample_inactive(space, lines, rng)
    assert np.array_equal(space.snap(loose), lines)
    loose[:, [1, 2, 3]] = [0.0, 1.0, 0.0]
    assert {p["depth"] for p in space.decode(loose)} == set(range(1, 10))


@pytest.mark.slow
@pytest.mark.parametrize("space", [NESTED, SMALL])
def test_questions_and_recommendations_are_legal(space):
    """Also with pending trials, failures, and earlier observations."""
    optimizer, rng = Optimizer(space, rng=0), np.random.default_rng(0)
    its = ParameterSpace(space)
    for turn in range(12):
        for trial in optimizer.ask(3):
            assert its.checked(trial.params) == trial.params
            if turn % 4 == 1:
                optimizer.fail(trial)
            else:
                optimizer.tell(trial, len(trial.params) + 0.1 * rng.standard_normal())
        best = optimizer.best()
        assert its.checked(best.params) == best.params


@pytest.mark.slow
def test_exploring_another_branch_is_legal():
    space = {"kind": Choice(["a", "b"]), "x": Float(0, 1, when={"kind": "a"}), "y": Float(0, 1, when={"kind": "b"})}
    optimizer, rng = Optimizer(space, rng=0), np.random.default_rng(0)
    for turn in range(260):  # exploring begins after 200
        trial = optimizer.ask() if turn > 195 else None
        params = trial.params if trial else {"kind": "a", "x": rng.random()}
        assert set(params) == {"kind", "x" if params["kind"] == "a" else "y"}
        optimizer.tell(trial or params, params.get("x", 0.5) + 0.1 * rng.standard_normal())


def branches(params):
    """The right branch is b; a is good everywhere, b only near y = 0.8 and z = 0.2."""
    if params["kind"] == "a":
        return 0.2 + 0.3 * (params["x"] - 0.3) ** 2
    return 2 * ((params["y"] - 0.8) ** 2 + (params["z"] - 0.2) ** 2)


@pytest.mark.slow
def test_a_finite_conditional_space_is_certified():
    optimizer = Optimizer({"m": Choice(["a", "b"]), "n": Int(1, 4, when={"m": "b"})}, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        trial = optimizer.ask()
        optimizer.tell(trial, 1 + 0.2 * trial.params.get("n", 7) + 0.01 * rng.standard_normal())
    best = optimizer.best()
    assert best.params == {"m": "b", "n": 1}
    assert best.gap < 0.2
    assert optimizer.done(within=0.2)


def test_lengthscales_are_expected_by_how_many_parameters_apply_together():
    """Those of a branch with one parameter do not grow with the parameters of other branches."""
    space = ParameterSpace(NESTED)
    assert dict(zip(NESTED, space.active_together, strict=True)) == {
        "depth": 3,
        "model": 5,
        "solver": 4,
        "momentum": 4,
        "rate": 5,
    }
    assert ParameterSpace({"x": Float(0, 1), "n": Int(1, 9)}).active_together == (2, 2)
    points, nothing = np.zeros((3, 2)), np.full(3, np.nan)
    alike = [Evidence(points, np.arange(3), np.zeros(3), nothing, np.arange(2), its) for its in (None, (2, 2), (1, 16))]
    fits = [FitMatern()(evidence, np.ones(3)).lengthscales for evidence in alike]
    assert fits[0] == fits[1] == pytest.approx([0.3 * 2**0.25] * 2)
    assert fits[2] == pytest.approx([0.3, 0.6])


@pytest.mark.parametrize("order", [1, -1])
def test_a_long_chain_of_conditions_is_refused(order):
    chain = {"p0": Choice([0, 1])} | {f"p{i}": Choice([0, 1], when={f"p{i - 1}": 1}) for i in range(1, 1000)}
    with pytest.raises(ValueError, match="must depend on at most 100 others: give it fewer conditions, or shorter"):
        Optimizer(dict(list(chain.items())[::order]))
    assert Optimizer(dict(list(chain.items())[:20])).space.names
