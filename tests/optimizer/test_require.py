"""Conditions that tie parameters to each other: never violated by a question or a recommendation."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from noregret import Choice, Float, Int, Optimizer, report
from noregret.optimizer.model.candidates import sobol, spread_out
from noregret.optimizer.space.require import MOST_WORK, Condition, Restricted
from noregret.optimizer.space.space import ParameterSpace
from noregret.optimizer.space.table import as_space

MIXED = {
    "threads": Int(1, 64, log=True),
    "batch": Choice([16, 32, 64, 128]),
    "rate": Float(0, 1),
    "mode": Choice(["fast", "safe", "off"]),
    "depth": Int(1, 9, when={"mode": "fast"}),
    "unroll": Choice([False, True]),
}
RULES = {
    "threads * batch <= 512": lambda p: p["threads"] * p["batch"] <= 512,
    "mode != 'safe' or rate < 0.5": lambda p: p["mode"] != "safe" or p["rate"] < 0.5,
    "0.1 <= rate <= 0.9 and not (unroll and batch == 128)": lambda p: (
        0.1 <= p["rate"] <= 0.9 and not (p["unroll"] and p["batch"] == 128)
    ),
    "depth + threads // 8 <= max(6, abs(-2) ** 2)": lambda p: (
        p.get("depth", 0) + p["threads"] // 8 <= 6 or "depth" not in p
    ),
}


def loss(params):
    return (params["rate"] - 0.95) ** 2 - 0.01 * params["threads"] + 0.001 * params["batch"]


def broken(params, rules=RULES):
    return [text for text, rule in rules.items() if not rule(params)]


@pytest.mark.slow
@pytest.mark.parametrize("context", [None, {"load": Float(0, 1)}])
def test_no_question_and_no_recommendation_violates_a_condition(context):
    world, given_context = np.random.default_rng(0), None if context is None else {"load": 0.25}
    opt = Optimizer(MIXED, require=list(RULES), context=context, rng=1)
    past = {"threads": 64, "batch": 128, "rate": 1.0, "mode": "off", "unroll": True}
    for _ in range(3):  # as good as can be, and forbidden
        opt.tell(past, -9.0, context=given_context)
    assert broken(opt.best(context=given_context).params) == []
    for _ in range(5):
        for trial in opt.ask(4, context=given_context):
            assert broken(trial.params) == []
            if world.random() < 0.1:
                opt.fail(trial)
            else:
                opt.tell(trial, loss(trial.params) + 0.05 * world.standard_normal())
        assert broken(opt.best(context=given_context).params) == []
    assert opt.predict(past, context=given_context).estimate < -1, "the past is evidence"
    if context is None:
        assert set(opt.importance()) == set(MIXED)
        assert broken(pickle.loads(pickle.dumps(opt)).ask().params) == []


@pytest.mark.slow
def test_explorers_stay_inside_too():
    """The balance begins after 200 answers in real spaces, and at once in small ones."""
    world = np.random.default_rng(0)
    opt = Optimizer({"a": Float(0, 1), "b": Float(0, 1)}, require=["a + b <= 0.8"], rng=0)
    small = Optimizer({"a": Int(0, 5), "b": Int(0, 5)}, require=["a < b"], rng=0)
    opt.tell({"a": 1.0, "b": 1.0}, -50.0)
    small.tell({"a": 5, "b": 0}, -50.0)
    for _ in range(60):
        sum_of = world.dirichlet([1, 1, 1])[:2] * 0.8
        opt.tell({"a": sum_of[0], "b": sum_of[1]}, float(sum_of.sum() + world.standard_normal()))
    for _ in range(150):
        opt.tell({"a": 0.1, "b": 0.1}, float(world.standard_normal()))
    for _ in range(20):
        trial = opt.ask()
        assert trial.params["a"] + trial.params["b"] <= 0.8
        opt.tell(trial, float(world.standard_normal()))
    for _ in range(60):
        trial = small.ask()
        assert trial.params["a"] < trial.params["b"]
        small.tell(trial, float(trial.params["a"] + world.standard_normal()))
    assert small.space.count == 15


numbers = st.floats(-2, 2).map(lambda x: round(x, 2))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(numbers, min_size=3, max_size=3), numbers, st.integers(0, 1000))
def test_snapped_and_spread_points_meet_a_linear_condition(weights, bound, seed):
    text = " + ".join(f"{weight} * {name}" for weight, name in zip(weights, "xyz", strict=True)) + f" <= {bound}"
    parameters = {"x": Float(0, 1), "y": Int(0, 10), "z": Float(0.01, 1, log=True)}
    try:
        space = Restricted(parameters, require=(text,))
    except ValueError:  # hardly any setting meets it
        reject()
    points = np.random.default_rng(seed).random((40, 3))
    for drawn in (
        space.snap(points),
        spread_out(space, 40, seed),
        spread_out(space, 9, 0, np.random.default_rng(seed)),
    ):
        rows = space.decode(drawn)
        assert all(sum(w * row[name] for w, name in zip(weights, "xyz", strict=True)) <= bound for row in rows)
        assert np.array_equal(space.snap(drawn), drawn), "what is inside stays"
    inside = space.holds(points)
    assert np.array_equal(space.snap(points)[inside], ParameterSpace(parameters).snap(points)[inside])


def test_what_is_allowed_is_covered_evenly_and_its_edge_is_reached():
    space = Restricted({"a": Float(0, 1), "b": Float(0, 1)}, require=("a <= b", "b <= 0.5"))
    assert space.share == pytest.approx(1 / 8, abs=0.03)
    drawn = spread_out(space, 256, 0)
    on_the_edge = (drawn[:, 1] - drawn[:, 0] < 1e-3) | (drawn[:, 1] > 0.499)
    assert on_the_edge.mean() < 0.05, "drawn inside, not pushed to the edge"
    assert np.histogram(drawn[:, 1], bins=4, range=(0, 0.5))[0].tolist() == pytest.approx([16, 48, 80, 112], abs=14)
    moved = space.snap(np.array([[0.4, 0.35]]))
    assert moved == pytest.approx(np.array([[0.37, 0.37]]), abs=0.03), "to the nearest part of the edge, about"


def test_unconditional_spaces_are_covered_as_ever():
    space = ParameterSpace({"a": Float(0, 1), "b": Int(0, 9)})
    assert np.array_equal(spread_out(space, 20, 3), space.snap(sobol(20, 2, 3)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a <= c", r"require 'a <= c' names 'c', which is none of the parameters \['a', 'b', 'kind'\]"),
        ("a <=", "require 'a <=' is not an expression: invalid syntax"),
        ("1 <= 2", "must name a parameter"),
        ("a + b", "must be true or false"),
        ("not a", "needs true or false where it has 'a', which is a number"),
        ("a + kind < 1", "needs a number where it has 'kind', which is text"),
        ("kind < 'x'", "by == and != only"),
        ("kind == 'z'", r"with 'z', which is none of its options \['x', 'y'\]"),
        ("a == 'x'", "compares 'a', a number, with \"'x'\", text"),
        ("a < 1e999", "nothing else, got"),
        ("__import__('os').getcwd() == 'x'", "nothing else, got"),
        ("a.real < 1", "nothing else, got 'a.real'"),
        ("(a := 1) < 2", "nothing else, got"),
        ("[a][0] < 1", "nothing else, got"),
        ("max(a, key=b) < 1", "nothing else, got"),
        ("a in (1, 2)", "nothing else, got"),
        ("-" * 990 + "a < 1", "nested too deeply|not an expression"),
        ("a" * 1001, "at most 1000 characters"),
        (7, "must be text like 'a <= b'"),
        ("a > 2", "no setting meets require 'a > 2', of 131,072 tried"),
        ("a == b", "no setting meets require 'a == b'"),
    ],
)
def test_what_is_no_condition_is_refused_by_name(text, message):
    with pytest.raises(ValueError, match=message):
        Optimizer({"a": Float(0, 1), "b": Float(0, 1), "kind": Choice(["x", "y"])}, require=[text])


def test_conditions_that_leave_nothing_are_refused():
    space = {"a": Float(0, 1), "b": Float(0, 1)}
    with pytest.raises(ValueError, match=r"'a < 0.3' and 'a > 0.5' together, of 131,072 tried: drop one"):
        Optimizer(space, require=["a < 0.3", "a > 0.5"])
    with pytest.raises(
        ValueError, match=r"at least 1 of 10,000 settings, got \d+ of 131,072 tried \('a \+ b < 0.01'\)"
    ):
        Optimizer(space, require=["a + b < 0.01"])
    with pytest.raises(ValueError, match=r"require must be a list of conditions like \['a <= b'\], got 'a <= b'"):
        Optimizer(space, require="a <= b")
    with pytest.raises(ValueError, match="no setting meets require 'a > b', of 2 tried"):
        Optimizer([{"a": 1, "b": 2}, {"a": 2, "b": 3}], require=["a > b"])
    with pytest.raises(ValueError, match="require needs columns with names"):
        Optimizer(np.eye(3), require=["a > b"])


sums = st.recursive(
    st.sampled_from(["a", "b", "c", "3", "0.5", "-1", "True"]),
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "//", "%"]), parts).map(lambda p: f"({' '.join(p)})"),
        st.tuples(st.sampled_from(["min", "max"]), parts, parts).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        parts.map(lambda part: f"abs(-{part})"),
    ),
    max_leaves=4,
)
comparisons = st.tuples(sums, st.sampled_from(["<", "<=", "==", "!=", ">=", ">"]), sums, st.sampled_from(["", " <= 2"]))
truths = st.recursive(
    comparisons.map("".join),
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from([" and ", " or "]), parts).map(lambda p: f"({''.join(p)})"),
        parts.map(lambda part: f"(not {part})"),
    ),
    max_leaves=3,
)


@pytest.mark.slow
@settings(deadline=None)
@given(truths, st.integers(-4, 4), st.floats(-2, 2), st.sampled_from([True, False]))
def test_conditions_mean_what_they_mean_in_python(text, a, b, c):
    params, kinds = {"a": a, "b": b, "c": c}, {"a": Int(-4, 4), "b": Float(-2, 2), "c": Choice([False, True])}
    try:
        expected = eval(text, {"min": min, "max": max, "abs": abs}, params)
        condition = Condition(text, kinds)
    except (ZeroDivisionError, ValueError):  # such as a condition without a name
        reject()
    assert condition.is_met_by(params) == expected


def test_what_cannot_be_computed_is_no_true_comparison():
    condition = Condition("(1 / a > 2 or 1 / a != 3) and (a >= 0 or a ** 0.5 >= 0)", {"a": Float(-1, 1)})
    assert condition.holds({"a": [0.0, 0.25, -1.0]}, 3).tolist() == [False, True, False]
    guarded = Condition("a == 0 or 1 / a > 2", {"a": Float(0, 1)})
    assert guarded.holds({"a": [0.0, 0.25, 1.0]}, 3).tolist() == [True, True, False]


def test_a_condition_holds_where_a_parameter_does_not_apply():
    space = {"model": Choice(["line", "forest"]), "depth": Int(1, 9, when={"model": "forest"}), "rate": Float(0, 1)}
    opt = Optimizer(space, require=["depth * rate <= 2"], rng=0)
    asked = [trial.params for trial in opt.ask(10)]
    assert any("depth" not in params for params in asked)
    assert all(params.get("depth", 0) * params["rate"] <= 2 for params in asked)


def test_a_baseline_must_meet_the_conditions():
    space = {"a": Float(0, 1), "b": Float(0, 1)}
    with pytest.raises(ValueError, match=r"baseline must meet require, got .*, which violates 'a <= b': change one"):
        Optimizer(space, require=["a <= b"], baseline={"a": 0.8, "b": 0.2})
    assert Optimizer(space, require=["a <= b"], baseline={"a": 0.2, "b": 0.2}).ask().params == {"a": 0.2, "b": 0.2}


def test_the_only_value_is_not_recommended_if_it_violates_a_condition():
    opt = Optimizer({"a": Float(0, 1), "b": Float(0, 1)}, require=["a <= b"], rng=0)
    opt.tell({"a": 0.9, "b": 0.1}, 1.0)
    assert "1 value" in repr(opt)
    with pytest.raises(ValueError, match="a value of params that meet require"):
        opt.best()
    opt.tell({"a": 0.1, "b": 0.9}, 5.0)
    assert opt.best().params["a"] <= opt.best().params["b"]


def test_rows_of_a_table_that_violate_a_condition_are_evidence_only(tmp_path):
    rows = [
        {"machine": m, "nodes": n, "price": n * (2 if m == "large" else 1)}
        for m in ("small", "large")
        for n in range(1, 9)
    ]
    opt = Optimizer(rows, require=["price <= 6", "machine == 'large' or nodes > 2"], rng=0)
    assert opt.space.count == 7
    opt.tell(rows[-1], -100.0)
    for _ in range(20):
        trial = opt.ask()
        assert trial.params["price"] <= 6
        assert trial.params["machine"] == "large" or trial.params["nodes"] > 2
        opt.tell(trial, float(trial.params["nodes"]))
    assert opt.best().params == {"machine": "large", "nodes": 1, "price": 2}
    report(opt, tmp_path / "page.html")


def test_all_conditions_together_have_one_budget_of_work():
    space = {name: Float(0, 1) for name in "ab"}
    long = ["(" + "+".join(["a*b"] * 240) + f") > -{number}" for number in range(1, 30)]
    conditions = [Condition(text, space) for text in [*long, "a > 2"]]
    with pytest.raises(ValueError, match="no setting meets require 'a > 2', of ") as error:
        as_space(space, [*long, "a > 2"])
    tried = int(re.search(r"of ([\d,]+) tried", str(error.value))[1].replace(",", ""))
    block = 2048  # settings are tried in blocks of this size
    assert 1000 < tried <= MOST_WORK / sum(its.size for its in conditions) + block
    with pytest.raises(ValueError, match="of 131,072 tried"):
        as_space(space, ["a > 2"])


def test_a_nested_comparison_is_read_once():
    text = "a"
    while len(text) < 900:
        text = f"0<({text})<2"
    assert Condition(text, {"a": Float(0, 1)}).is_met_by({"a": 0.5})
