"""Contexts: trials and recommendations for a given context."""

import copy
import pickle

import numpy as np
import pytest
from tests.optimizer.configs import observed

from noregret import Choice, Float, Int, Matern, Optimizer
from noregret.optimizer import OptimizerConfig
from noregret.optimizer.questions.balance import Balancing
from noregret.optimizer.questions.explore import Explore
from noregret.optimizer.questions.questions import RemeasureBaseline
from noregret.optimizer.space.contexts import ContextSpace, FixedContext, InContext
from noregret.optimizer.space.space import ParameterSpace
from noregret.optimizer.space.table import CandidateTable

LINE = {"x": Float(0, 1)}
CONTEXT = {"load": Float(10, 70), "region": Choice(["eu", "us", "as"])}
CALM = {"load": 40, "region": "eu"}


def off(params, context):
    """The best x moves with the load, and jumps with the region."""
    return (params["x"] - context["load"] / 100 - {"eu": 0.2, "us": 0.0, "as": 0.1}[context["region"]]) ** 2


def some_context(rng):
    return {"load": float(rng.uniform(10, 70)), "region": ["eu", "us", "as"][rng.integers(3)]}


def played(rounds=60, seed=0, noise=0.02, **options):
    opt, rng = Optimizer(LINE, rng=seed, context=CONTEXT, **options), np.random.default_rng(seed)
    for _ in range(rounds):
        trial = opt.ask(context=some_context(rng))
        opt.tell(trial, off(trial.params, trial.context) + noise * rng.standard_normal())
    return opt


@pytest.mark.parametrize(
    "space",
    [
        ParameterSpace({"k": Int(1, 3), "c": Choice(["a", "b", "c"]), "z": Float(0, 1, when={"c": "a"})}),
        CandidateTable([{"a": 1, "b": "u"}, {"a": 2, "b": "v"}, {"a": 2, "b": "u"}]),
        CandidateTable(np.random.default_rng(0).random((5, 2))),
    ],
)
def test_pairs_are_a_space_and_one_context_is_a_part_of_it(space):
    contexts = ParameterSpace({"load": Float(10, 70), "on": Choice([True, False])})
    pairs, given = ContextSpace(space, contexts), {"load": 17.3, "on": False}
    within, cube = FixedContext(space, contexts, given), np.random.default_rng(1).random((20, len(pairs.groups)))
    assert len(pairs.active_together) == max(pairs.groups) + 1 == len(pairs.names)
    for part in (pairs, within):
        points, params = part.snap(cube), part.decode(cube)
        np.testing.assert_allclose(part.encode(params), points)
        np.testing.assert_array_equal(part.snap(points), points)
        assert [part.key(p) for p in part.decode(points)] == [part.key(p) for p in params]
    assert {tuple(p.context.items()) for p in within.decode(cube)} == {tuple(given.items())}
    assert within.holds(within.snap(cube)).all()
    assert not within.holds(pairs.snap(cube)).any()
    assert within.count == space.count


def test_everything_there_is_in_a_context():
    pairs = ContextSpace(ParameterSpace({"k": Int(1, 3)}), ParameterSpace({"on": Choice(["y", "n"])}))
    assert len(pairs.everything()) == pairs.count == 6
    within = FixedContext(pairs.space, pairs.contexts, {"on": "n"})
    assert within.decode(within.everything()) == [InContext({"k": k}, {"on": "n"}) for k in (1, 2, 3)]


@pytest.mark.slow
def test_questions_are_about_the_context_asked_for():
    opt, rng = played(30), np.random.default_rng(9)
    for _ in range(5):
        context = some_context(rng)
        trials = opt.ask(2, context)
        assert [trial.context for trial in trials] == [context, context]
        assert trials[0].params != trials[1].params
    opt.tell(trials[1], 0.1)
    opt.fail(trials[0])
    assert opt.measurements[-1].context == context


@pytest.mark.slow
def test_exploring_stays_in_the_context():
    """Every second question explores, from the 20th on."""
    calibration = OptimizerConfig(explore=Explore(balancing=Balancing(blind_weight=1.0, after=20)))
    opt, rng = Optimizer(LINE, rng=0, context=CONTEXT, calibration=calibration), np.random.default_rng(0)
    for _ in range(50):
        context = some_context(rng)
        trial = opt.ask(context=context)
        assert trial.context == context
        opt.tell(trial, off(trial.params, context) + 0.3 * rng.standard_t(1.5))


@pytest.mark.slow
def test_a_table_of_candidates_has_contexts_too():
    rows, rng = [{"cores": c, "memory": m} for c in (1, 2, 4, 8) for m in (8, 16, 32)], np.random.default_rng(0)
    opt = Optimizer(rows, goal="maximize", rng=0, context={"hour": Int(0, 23)})
    for _ in range(60):
        trial = opt.ask(context={"hour": int(rng.integers(24))})
        is_day = 8 <= trial.context["hour"] < 20
        opt.tell(trial, (trial.params["cores"] if is_day else -trial.params["cores"]) + 0.1 * rng.standard_normal())
    assert opt.best({"hour": 13}).params["cores"] == 8
    assert opt.best({"hour": 1}).params["cores"] == 1


def test_few_settings_are_all_asked_for_in_each_context():
    opt = Optimizer({"k": Int(1, 3)}, rng=0, context={"on": Choice(["y", "n"])})
    asked = [opt.ask(context={"on": on}).params["k"] for on in "yyynnn"]
    assert sorted(asked[:3]) == sorted(asked[3:]) == [1, 2, 3]
    trial = opt.ask(context={"on": "y"})
    assert trial.context == {"on": "y"}


def test_done_is_about_one_context():
    """The best setting is known in measured contexts, and not in others."""
    opt, rng = Optimizer({"k": Int(1, 5)}, rng=0, context={"load": Float(0, 1)}), np.random.default_rng(0)
    for load in (0.0, 0.05, 0.1):
        for k in (1, 2, 3, 4, 5) * 3:
            opt.tell({"k": k}, k + 0.01 * rng.standard_normal(), context={"load": load})
    assert opt.done(0.5, by="certificate", context={"load": 0.05})
    assert opt.best({"load": 0.05}).gap < 0.5
    assert not opt.done(0.5, by="certificate", context={"load": 0.9})
    assert opt.best({"load": 0.9}).gap == np.inf


def test_the_past_is_told_with_its_context():
    opt = Optimizer(LINE, rng=0, context=CONTEXT)
    opt.tell({"x": 0.5}, 1.0, context=CALM)
    opt.tell({"x": 0.5}, 3.0, 0.1, context=CALM | {"region": "us"})
    opt.fail({"x": 0.5}, context=CALM)
    waiting = opt.expect({"x": 0.25}, context=CALM)
    opt.tell({"x": 0.25}, 2.0, context=CALM)
    with pytest.raises(
        ValueError, match=r"has a value already: tell\(trial.params, value, context=trial.context\) adds"
    ):
        opt.tell(waiting, 2.0)
    opt.tell(waiting.params, 2.5, context=waiting.context)
    assert [(m.value, m.context["region"]) for m in opt.measurements] == [
        (1.0, "eu"),
        (3.0, "us"),
        (2.0, "eu"),
        (2.5, "eu"),
    ]
    assert opt.predict({"x": 0.5}, CALM).params == {"x": 0.5}


def test_frames_have_a_column_for_each_part_of_the_context():
    pytest.importorskip("pandas")
    opt = played(12)
    opt.fail(opt.ask(context=CALM))
    opt.ask(context=CALM)
    frame = opt.to_frame()
    columns = ["trial", "state", "value", "noise", "x", "context.load", "context.region", "started", "seconds"]
    assert list(frame.columns) == columns
    assert frame["context.load"].iloc[-1] == 40
    other = Optimizer(LINE, rng=0, context=CONTEXT)
    other.tell_many(frame)
    assert [m[:2] for m in other.measurements] == [m[:2] for m in opt.measurements]
    assert [m.context for m in other.measurements] == [m.context for m in opt.measurements]
    assert other.best(CALM) == opt.best(CALM)
    with pytest.raises(ValueError, match=r"row 0 of the frame: context must have .* 'region' is missing"):
        other.tell_many([{"x": 0.5, "value": 1.0, "context.load": 20}])
    assert len(other.measurements) == 12


@pytest.mark.slow
def test_copies_go_on_alike():
    opt = played(20)
    for twin in (copy.copy(opt), pickle.loads(pickle.dumps(opt))):
        assert twin.best(CALM) == opt.best(CALM)
        assert twin.ask(context=CALM).params == copy.copy(opt).ask(context=CALM).params


@pytest.mark.slow
@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, r"context must have a value for each of \['load', 'region'\], got none: pass context="),
        ({"load": 20}, "context must have a value for each of .*: 'region' is missing"),
        (CALM | {"hour": 3}, "context must have a value for each of .*: unknown 'hour'"),
        (CALM | {"load": 80}, "load must be from 10 to 70, got 80"),
        (CALM | {"region": "uk"}, "region must be one of"),
        (CALM | {"load": float("nan")}, "load must be"),
        ([40, "eu"], "context must be a dict"),
    ],
)
def test_a_bad_context_changes_nothing(context, words):
    opt, same = played(12), played(12)
    calls = [
        lambda: opt.ask(context=context),
        lambda: opt.ask(3, context),
        lambda: opt.expect({"x": 0.5}, context),
        lambda: opt.tell({"x": 0.5}, 1.0, context=context),
        lambda: opt.fail({"x": 0.5}, context),
        lambda: opt.best(context),
        lambda: opt.predict({"x": 0.5}, context),
        lambda: opt.done(0.1, context=context),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=words):
            call()
    assert len(opt.measurements) == 12
    assert opt.ask(context=CALM).params == same.ask(context=CALM).params


def test_without_contexts_there_is_none():
    opt = Optimizer(LINE, rng=0)
    trial = opt.ask()
    assert trial.context is None
    with pytest.raises(ValueError, match="there must be no context, as the optimizer was made without one"):
        opt.ask(context=CALM)
    with pytest.raises(ValueError, match="there must be no context"):
        opt.tell({"x": 0.5}, 1.0, context={})
    opt.tell(trial, 1.0)
    assert len(opt.measurements) == 1


def test_a_trial_brings_its_context():
    opt = Optimizer(LINE, rng=0, context=CONTEXT)
    trial = opt.ask(context=CALM)
    assert "context={'load': 40.0, 'region': 'eu'}" in repr(trial)
    with pytest.raises(ValueError, match=r"a trial knows its context, got .*: leave it out"):
        opt.tell(trial, 1.0, context=CALM)
    opt.tell(trial, 1.0)
    assert opt.best(CALM).params == trial.params


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({}, "context must be a dict of Float, Int and Choice with at least one entry"),
        ([1, 2], "context must be a dict of Float, Int and Choice"),
        ({"load": 3}, "context must be a dict of Float, Int and Choice: parameter 'load' must be a Float"),
        ({3: Float(0, 1)}, "context must be .*: a parameter's name must be text, got 3: write '3'"),
    ],
)
def test_what_contexts_there_are_is_checked(context, words):
    with pytest.raises(ValueError, match=words):
        Optimizer(LINE, context=context)


@pytest.fixture(scope="module")
def compared():
    return played(70, seed=2, noise=0.01, baseline={"x": 0.5})


@pytest.mark.slow
def test_the_baseline_is_measured_first_and_where_the_gain_hinges_on_it(compared):
    measured = [i for i, m in enumerate(compared.measurements) if m.params == {"x": 0.5}]
    assert measured[0] == 0
    assert 3 <= len(measured) <= RemeasureBaseline().share * 70 + 1
    assert len({tuple(compared.measurements[i].context.items()) for i in measured}) > 2


def test_the_baseline_is_out_once():
    opt = Optimizer(LINE, rng=0, context=CONTEXT, baseline={"x": 0.5})
    first, second = opt.ask(2, CALM)
    other = opt.ask(context=CALM | {"region": "us"})
    assert first.params == {"x": 0.5} != second.params
    assert other.params != {"x": 0.5}
    opt.fail(first)
    assert opt.ask(context=CALM).params != {"x": 0.5}


@pytest.mark.slow
def test_looking_at_a_gain_changes_nothing(compared):
    looked = copy.copy(compared)
    for load in (15, 33, 64):
        looked.gain({"load": load, "region": "eu"})
    assert looked.ask(context=CALM).params == copy.copy(compared).ask(context=CALM).params
    assert pickle.loads(pickle.dumps(compared)).gain(CALM) == compared.gain(CALM)


def test_a_gain_needs_a_context_and_a_value_of_the_baseline(compared):
    with pytest.raises(ValueError, match="context must have a value for each"):
        compared.gain()
    with pytest.raises(ValueError, match=r"needs something to compare with: Optimizer\(..., baseline=params\)"):
        played(3).gain(CALM)
    opt = Optimizer(LINE, rng=0, context=CONTEXT, baseline={"x": 0.5})
    for x in (0.1, 0.9):
        opt.tell({"x": x}, x, context=CALM)
    with pytest.raises(ValueError, match="needs a value of the baseline and one more: tell them first"):
        opt.gain(CALM)
    opt.tell({"x": 0.5}, 0.5, context=CALM)
    assert opt.gain(CALM).estimate == 0, "noise alone may explain three values"
    with pytest.raises(ValueError, match="there must be no context"):
        Optimizer(LINE, baseline={"x": 0.5}).gain(CALM)
    with pytest.raises(ValueError, match="baseline must be params of the space"):
        Optimizer(LINE, context=CONTEXT, baseline={"x": 2})


@pytest.mark.slow
def test_failures_in_one_context_leave_the_others_alone():
    """A context in which everything fails still gets a recommendation, for that context."""
    opt = Optimizer({"k": Int(1, 4)}, goal="maximize", rng=0, context={"on": Choice(["y", "n"])})
    for _ in range(12):
        for on in "yn":
            trial = opt.ask(context={"on": on})
            assert trial.context == {"on": on}
            if on == "n":
                opt.fail(trial)
            else:
                opt.tell(trial, float(trial.params["k"]))
    assert opt.best({"on": "y"}).params == {"k": 4}
    assert opt.best({"on": "n"}).params["k"] in (1, 2, 3, 4)
    assert opt.best({"on": "n"}).gap == np.inf
    assert opt.done(0.5, context={"on": "y"})
    assert not opt.done(0.5, by="certificate", context={"on": "n"})


def test_nobody_knows_a_context_before_the_first_answer():
    opt = Optimizer(LINE, rng=0, context=CONTEXT)
    with pytest.raises(ValueError, match="needs a value: tell one first"):
        opt.best(CALM)
    with pytest.raises(ValueError, match="needs at least 2 values"):
        opt.predict({"x": 0.5}, CALM)
    assert not opt.done(0.1, by="certificate", context=CALM)
    opt.tell({"x": 0.25}, 1.0, context=CALM)
    opt.tell({"x": 0.75}, 2.0, context=CALM)
    assert abs(opt.best(CALM | {"load": 50}).params["x"] - 0.25) < 0.1


def test_the_more_is_known_the_fewer_candidates_a_context_has():
    """So that a trial in a new context stays cheap; the settings of the nearest contexts are among them."""
    rng, space = np.random.default_rng(0), ContextSpace(ParameterSpace(LINE), ParameterSpace({"load": Float(0, 1)}))
    within, draw = FixedContext(space.space, space.contexts, {"load": 0.3}), OptimizerConfig().candidates_within
    for count in (100, 400):
        measured = rng.random((count, 2))
        process = observed(Matern(2.5, 0.3), measured, rng.standard_normal(count), 0.01)
        drawn = draw(within, process, measured, np.array([0.3, 0.3]), np.random.default_rng(1)).points
        brought = set(drawn[:, 0]) & set(measured[:, 0])
        away = np.abs(measured[:, 1] - 0.3)
        assert len(drawn) * count < 1.1 * draw.entries
        assert brought == set(measured[np.argsort(away)[: len(brought)], 0])
    assert 50 < len(brought) < 100
    lengthscales, candidates = np.array([0.3, 0.3]), OptimizerConfig().candidates
    everywhere = candidates(space, process, measured, lengthscales, np.random.default_rng(1)).points
    np.testing.assert_array_equal(everywhere[:400], measured)
    assert len(drawn) < len(everywhere) - 400 < 1.1 * candidates.entries / 400
