"""Observations in and out as frames, and the state of an optimizer in words."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

import noregret
from noregret import Choice, Estimate, Float, Int, Optimizer
from noregret.optimizer.space.parameters import FloatAxis

SPACE = {"rate": Float(0, 1), "layers": Int(1, 8), "kind": Choice(["a", "b"])}
PAST = [
    {"rate": 0.2, "layers": 3, "kind": "a", "value": 1.5, "noise": 0.1, "constraint.memory": 400},
    {"rate": 0.7, "layers": 5, "kind": "b", "value": 0.5, "noise": None, "constraint.memory": math.nan},
]


def fresh(**options):
    return Optimizer(SPACE, rng=0, constraints={"memory": ("<=", 512)}, **options)


def told(opt):
    return opt._history.answers()


def test_rows_columns_and_single_answers_say_the_same():
    rows, columns, single = fresh(), fresh(), fresh()
    rows.tell_many(PAST)
    columns.tell_many({name: [row[name] for row in PAST] for name in PAST[0]})
    for row in PAST:
        memory = None if math.isnan(row["constraint.memory"]) else row["constraint.memory"]
        params = {name: row[name] for name in SPACE}
        single.tell(params, row["value"], row["noise"], constraints={"memory": memory})
    assert str(told(rows)) == str(told(columns)) == str(told(single))
    assert rows.best() == single.best()


def test_noise_and_constraints_are_optional_in_a_frame():
    opt = fresh()
    opt.tell_many([{"rate": 0.2, "layers": 3, "kind": "a", "value": 1.5}])
    assert opt.answers[0].constraints["memory"] is None, "what has no column was not measured"


def test_an_empty_frame_says_nothing():
    opt = fresh()
    opt.tell_many([])
    opt.tell_many({})
    assert not opt.measurements


def test_rows_of_a_table_are_told_by_column():
    table = Optimizer(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), rng=0)
    table.tell_many([{0: 3.0, 1: 4.0, "value": 7.0}, {0: 1.0, 1: 2.0, "value": 8.0}])
    assert table.best().params.tolist() == [3.0, 4.0]
    names = Optimizer([{"machine": "small"}, {"machine": "large"}], rng=0)
    names.tell_many({"machine": ["large", "small"], "value": [1.0, 2.0]})
    assert names.best().params == {"machine": "large"}


def test_a_frame_answers_the_trials_that_are_out():
    opt = fresh()
    trial = opt.ask()
    opt.tell_many([trial.params | {"value": 1.0}])
    with pytest.raises(ValueError, match="has a value already"):
        opt.tell(trial, 2.0, constraints={"memory": 1})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speed": 3}, "unknown column 'speed': drop it, or rename it to one of"),
        ({"constraint.mass": 3}, "unknown column 'constraint.mass'"),
        ({"value": None}, "row 1 of the frame: it has no value: drop it, or give it the state 'failed'"),
        ({"value": "fast"}, "row 1 of the frame: value must be a number, got 'fast'"),
        ({"rate": 7.0}, "row 1 of the frame: rate"),
        ({"kind": None}, "row 1 of the frame: .*'kind' is missing"),
        ({"noise": -1}, "row 1 of the frame: noise"),
        ({"constraint.memory": "much"}, "row 1 of the frame: constraint 'memory' must be a finite number"),
        ({"state": "lost"}, "row 1 of the frame: state must be one of .*, got 'lost'"),
    ],
)
def test_one_bad_row_and_nothing_is_told(change, message):
    opt = fresh()
    with pytest.raises(ValueError, match=message):
        opt.tell_many([PAST[0], PAST[1] | change])
    assert not opt.answers
    assert not opt._history.params
    opt.tell_many([PAST[0], PAST[1] | {"value": None, "state": "failed"}])
    assert len(opt.measurements) == 1


def test_what_is_no_frame_is_refused():
    for wrong in (3, "past.csv", [1, 2], np.ones((2, 2))):
        with pytest.raises(ValueError, match="must be a DataFrame, a list of dicts or a dict of columns"):
            fresh().tell_many(wrong)
    with pytest.raises(ValueError, match="must be of one length"):
        fresh().tell_many({"rate": [0.1], "value": [1, 2]})


def test_a_parameter_with_the_name_of_a_column_has_one_of_its_own():
    opt, twin = (Optimizer({"value": Float(0, 1), "started": Int(1, 3)}, rng=0) for _ in range(2))
    opt.tell(opt.ask(), 2.0)
    frame = opt.to_frame()
    assert list(frame.columns)[:6] == ["trial", "state", "value", "noise", "params.value", "started"]
    twin.tell_many(frame)
    assert twin.answers == opt.answers
    with pytest.raises(ValueError, match="'value' is missing"):
        twin.tell_many([{"value": 0.5, "started": 1}])


def some_answers():
    opt = fresh(baseline={"rate": 0.5, "layers": 4, "kind": "a"})
    for number in range(12):
        trial = opt.ask()
        opt.tell(trial, 5 + trial.params["rate"] + 0.01 * number, constraints={"memory": 60 * trial.params["layers"]})
    opt.tell({"rate": 0.1, "layers": 2, "kind": "b"}, 4.9, noise=0.5, constraints={"memory": None})
    opt.fail(opt.ask())
    return opt, opt.ask()


def test_frames_go_out_and_come_in_again():
    pytest.importorskip("pandas")
    opt, out = some_answers()
    frame = opt.to_frame()
    assert list(frame.columns) == [
        "trial",
        "state",
        "value",
        "noise",
        *SPACE,
        "constraint.memory",
        "started",
        "seconds",
    ]
    assert frame["state"].value_counts().to_dict() == {"done": 13, "failed": 1, "running": 1}
    assert frame["trial"].tolist() == list(range(15)), "params of the past have numbers of the same sequence"
    assert frame["started"].isna().tolist()[12], "nobody knows when"
    assert frame["seconds"].ge(0).sum() == 13
    assert frame["noise"].tolist()[12] == 0.5
    assert frame["trial"].tolist()[-1] == out.id
    again = fresh(baseline={"rate": 0.5, "layers": 4, "kind": "a"})
    again.tell_many(frame)
    assert again.best() == opt.best()
    assert str(told(again)) == str(told(opt))


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[frames\]'"):
        fresh().to_frame()


@pytest.mark.slow
def test_pandas_is_not_imported_unless_a_frame_is_made():
    program = "import sys, noregret; o = noregret.Optimizer({'x': noregret.Float(0, 1)}, rng=0); "
    program += "o.tell_many({'x': [0.1, 0.2], 'value': [1, 2]}); repr(o); assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_repr_says_what_it_is_and_where_it_stands():
    opt, _ = some_answers()
    assert repr(fresh()) == "<Optimizer, minimize over rate, layers, kind with memory <= 512: 0 values>"
    assert "13 values, 1 failed, 1 out; best " in repr(opt)
    assert "meets the constraints with a probability of" in repr(opt)
    assert "your settings" in repr(opt)
    single = Optimizer({"x": Float(0, 1)}, goal="maximize", rng=0)
    single.tell({"x": 0.123456}, 1.23456)
    assert repr(single) == "<Optimizer, maximize over x: 1 value; best 1.235 at {x: 0.1235}>"


def test_estimates_and_importance_are_printed_with_the_digits_that_their_intervals_support():
    found = Estimate({"rate": 0.0123456789, "kind": "a"}, 0.1234567, 0.0612345, 0.1671234)
    assert repr(found) == "Estimate: 0.123 (0.061 to 0.167, at 95%) of {rate: 0.01235, kind: a}"
    assert found.params["rate"] == 0.0123456789
    assert repr(Estimate({"x": 1}, 1 / 3, -math.inf, math.inf)) == "Estimate: 0.3333 of {x: 1}"
    doubtful = Estimate({"x": 1}, 4321.4321, 4000.0, 5000.0, feasible=0.8)
    assert repr(doubtful) == "Estimate: 4,320 (4,000 to 5,000, at 95%) of {x: 1}, feasible with probability 0.80"
    opt = Optimizer({"x": Float(0, 1), "second": Float(0, 1)}, rng=0)
    for i in range(12):
        opt.tell({"x": i / 11, "second": i % 3 / 2}, float(i))
    shares = opt.importance()
    assert repr(shares).splitlines() == [f"{name:6}  {share}" for name, share in shares.items()]
    assert re.fullmatch(r"[\d.]+% \([\d.]+% to [\d.]+%\)", str(shares["x"]))
    assert shares == dict(shares)


def test_a_notebook_gets_a_table_without_markup_of_others():
    opt = Optimizer({"<b>": Choice(["<script>", "&"])}, rng=0)
    opt.tell({"<b>": "<script>"}, 1.0)
    page = opt._repr_html_()
    assert page.startswith("<table")
    assert page.endswith("</table>")
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_a_policy_says_what_it_is_and_where_it_stands():
    algorithm = noregret.algorithms.igp_ucb(noregret.SquaredExponential(0.2))
    policy = noregret.Policy(algorithm, np.linspace(0, 1, 20)[:, None], rng=0)
    policy.tell(policy.ask(), 1.0)
    policy.ask()
    assert repr(policy) == "<Policy of Sequential on 20 arms, 20 in play: 1 reward, 1 pending>"


def test_every_row_of_a_frame_is_checked_once(monkeypatch):
    opt, checked = Optimizer({"x": Float(0, 1)}, rng=0), []
    check = FloatAxis.checked
    monkeypatch.setattr(
        FloatAxis, "checked", lambda self, name, value: checked.append(value) or check(self, name, value)
    )
    opt.tell_many({"x": np.linspace(0, 1, 50), "value": np.zeros(50)})
    assert checked == np.linspace(0, 1, 50).tolist()


def test_a_frame_tells_what_its_rows_would_tell_one_by_one():
    rng = np.random.default_rng(0)
    space = {"x": Float(0, 1), "n": Int(1, 3), "kind": Choice(["a", "b"])}
    rows = [{"x": x, "n": 1 + i % 3, "kind": "ab"[i % 2], "value": x**2} for i, x in enumerate(rng.random(40).tolist())]
    single, many = (Optimizer(space, rng=0) for _ in range(2))
    for row in rows:
        single.tell({name: row[name] for name in space}, row["value"])
    many.tell_many({name: np.array([row[name] for row in rows]) for name in rows[0]})
    assert many.answers == single.answers
    assert many.ask().params == single.ask().params
