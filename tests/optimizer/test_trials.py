"""Trials and their readings: what is told by name, corrections, withdrawals, and their JSON."""

import copy
import json
import math
import string
from dataclasses import fields, replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noregret import Float, Int, Observation, Optimizer, Trial
from noregret.optimizer import Measurement, Reading, dump, key, load

LINE = {"x": Float(0, 1)}
GOALS = {"time": "minimize", "accuracy": "maximize"}
LIMITS = {"memory": ("<=", 512), "size": (">=", 1)}


def value(params, number):
    return (params["x"] - 0.3) ** 2 + 0.01 * math.sin(7 * number)


def told(changes=None, left_out=(), count=14, **options):
    """An optimizer that was told a value of each trial, ``changes`` in place of some, and nothing of those left out."""
    opt, numbers = Optimizer(LINE, rng=0, **options), np.random.default_rng(3).random(count).tolist()
    for number, x in enumerate(numbers):
        if number in left_out:
            continue
        trial = opt.expect({"x": x}, fidelity={"epochs": 9} if opt.fidelity else None, number=number)
        if opt.fidelity:
            opt.report(trial, {"epochs": 1}, 2 + x)
        found = (changes or {}).get(number, value(trial.params, number))
        if found is None:
            opt.fail(trial)
        elif isinstance(found, dict) or not opt.constraints:
            opt.tell(trial, found)
        else:
            opt.tell(trial, found, constraints={"memory": 400 + 300 * x})
    return opt


def is_same(one, other):
    """Return True if two optimizers believe, recommend, spend and ask the same, up to rounding."""
    each = []
    for opt in (one, other):
        best, asked = opt.best(), copy.copy(opt).ask().params
        each.append({"spent": opt._spent, **best.params, "asked": asked["x"], "is": best.estimate})
        each[-1] |= {"lower": best.lower, "upper": best.upper}
    return each[0] == pytest.approx(each[1], rel=1e-6, abs=1e-6)


# --- telling -----------------------------------------------------------------------------------------------------


def test_numbers_that_no_problem_knows_are_tracked_and_change_nothing():
    plain, opt = told(), told({number: {"value": value({"x": x}, number), "watts": 7.5} for number, x in xs()})
    assert is_same(plain, opt)
    assert opt.trials[3].value("watts") == 7.5
    assert "watts" not in plain.trials[3].readings
    assert opt.measures.tracked(opt.trials[3]) == {"watts": Reading(7.5)}
    frame, twin = opt.to_frame(), Optimizer(LINE, rng=0)
    assert frame["measure.watts"].tolist() == [7.5] * 14
    twin.tell_many(frame)
    assert [its.readings for its in twin.trials] == [its.readings for its in opt.trials]


def xs():
    return enumerate(its.params["x"] for its in told().trials)


def test_a_reading_says_of_a_number_what_arguments_say():
    one, other = Optimizer(LINE, rng=0), Optimizer(LINE, rng=0)
    for opt, known, bound in (
        (one, lambda v: {"value": Reading(v, noise=0.1)}, lambda v: {"value": Reading(v, bound="at_least")}),
        (other, lambda v: {"value": v, "noise": 0.1}, lambda v: {"at_least": v}),
    ):
        for x in (0.1, 0.4, 0.9):
            opt.tell({"x": x}, **known(x))
        opt.tell({"x": 0.7}, **bound(2.0))
    assert one.answers == other.answers
    assert one.best() == other.best()
    with pytest.raises(ValueError, match="noise and bounds must be given once"):
        one.tell({"x": 0.1}, Reading(1.0), noise=0.1)
    with pytest.raises(ValueError, match="possible"):
        Optimizer(LINE, possible=(0, 1)).tell({"x": 0.1}, Reading(2.0))


def test_a_misspelt_objective_is_refused_and_the_name_that_it_has_no_use_for_is_named():
    for opt in (Optimizer(LINE), Optimizer(LINE, goals=GOALS)):
        missing = next(iter(opt.measures.objectives))
        with pytest.raises(ValueError, match=f"'{missing}' is missing; 'tiem' would only be tracked"):
            opt.tell({"x": 0.1}, {"tiem": 1.0})
        assert not opt.trials
    limited = Optimizer(LINE, constraints=LIMITS)
    with pytest.raises(ValueError, match="'memory' is missing; 'memroy' would only be tracked"):
        limited.tell({"x": 0.1}, {"value": 1.0, "memroy": 1.0, "size": 2})


def test_none_says_that_a_measure_was_not_measured():
    opt = Optimizer(LINE, goals=GOALS, constraints=LIMITS)
    opt.tell({"x": 0.1}, {"time": 1.0, "accuracy": None, "memory": None, "size": 3, "watts": None})
    (trial,) = opt.trials
    assert {name: its[0].value for name, its in trial.readings.items()} == {"time": 1.0, "size": 3.0}
    assert opt.answers[0].constraints == {"memory": None, "size": 3.0}
    with pytest.raises(ValueError, match="at least one of"):
        opt.tell({"x": 0.1}, {"time": None, "accuracy": None, "memory": 1, "size": 3})


def test_repeated_runs_are_several_measurements_of_one_trial():
    runs = [1.0, 1.2, 5.0]
    opt, plain = Optimizer(LINE, rng=0), Optimizer(LINE, rng=0)
    readings = {"value": tuple(map(Reading, runs)), "cost": (Reading(2.0),)}
    opt.add([Trial(7, {"x": 0.5}, state="done", readings=readings), Trial(8, {"x": 0.1}, state="failed")])
    for run in runs:
        plain.tell({"x": 0.5}, run)
    plain.fail({"x": 0.1})
    trial = opt.trials[0]
    assert (trial.number, trial.value(), trial.runs()) == (7, 1.2, [Reading(run) for run in runs])
    assert [its.value for its in opt.answers] == [*runs, None]
    assert opt.best() == plain.best()
    assert opt.weights().keys() == {7}
    frame, twin = opt.to_frame(), Optimizer(LINE, rng=0)
    assert frame["state"].tolist() == ["run", "run", "run", "done", "failed"]
    assert frame["value"].tolist()[:4] == [*runs, 1.2]
    twin.tell_many(frame)
    assert twin.trials[0].runs() == trial.runs()


def test_rows_of_one_number_are_one_trial_only_if_they_are_its_parts():
    """Frames of two optimizers after each other have the same numbers, and other params."""
    frame = [{"trial": i % 2, "x": i / 9, "value": float(i)} for i in range(6)]
    again = [*frame, *({"trial": 0, "x": 0.5, "value": v} for v in (1.0, 2.0))]
    opt = Optimizer(LINE, rng=0)
    opt.tell_many(again)
    assert [its.value for its in opt.answers] == [*range(6), 1.0, 2.0]
    halves = Optimizer(LINE, rng=0)
    halves.tell_many([{"trial": 0, "x": 0.5, "value": v, "state": "run"} for v in (1.0, 2.0)])
    assert halves.trials[0].runs() == [Reading(1.0), Reading(2.0)]
    with pytest.raises(ValueError, match="row 0 of the frame: trial must be a whole number, got 'first'"):
        opt.tell_many([{"trial": "first", "x": 0.5, "value": 1.0}])


READING = {
    "noise": lambda value, x: Reading(value, noise=0.02),
    "bound": lambda value, x: Reading(3.0, bound="at_least") if x > 0.7 else value,
}


@pytest.mark.parametrize("kind", READING)
@pytest.mark.parametrize("name", ["time", "accuracy", "memory"])
def test_noise_and_bounds_are_known_of_each_number(name, kind):
    """Each of several objectives is estimated as if it were the only one, and a constraint is broken by a bound."""
    joint = Optimizer(LINE, rng=0, goals=GOALS, constraints={"memory": ("<=", 1.0)})
    single, rng = Optimizer(LINE, rng=0, goal=GOALS.get(name)), np.random.default_rng(1)
    for x in np.tile(np.linspace(0, 1, 8), 2).tolist():
        numbers = dict(zip(("time", "accuracy", "memory"), 0.5 + 0.2 * rng.standard_normal(3), strict=True))
        numbers[name] = READING[kind](numbers[name], x)
        joint.tell({"x": x}, numbers)
        single.tell({"x": x}, numbers[name])
    assert joint.trials[0].reading(name).noise == (0.02 if kind == "noise" else None)
    assert joint.trials[7].reading(name).bound == ("at_least" if kind == "bound" else None)
    found, alone = joint.predict({"x": 1.0}), single.predict({"x": 1.0})
    if name == "memory":
        assert (found.feasible < 0.1) == (kind == "bound")
    else:
        ends = found.values[name], found.lower[name], found.upper[name]
        assert ends == pytest.approx((alone.estimate, alone.lower, alone.upper), rel=1e-6)


# --- what was told -----------------------------------------------------------------------------------------------


def test_trials_are_all_trials_by_number():
    opt = Optimizer(LINE, rng=0)
    first, second, third = opt.ask(3)
    opt.tell(third, 1.0)
    opt.fail(first, reason="exit code 1")
    opt.tell({"x": 0.5}, 2.0)
    assert [(its.number, its.state, its.value()) for its in opt.trials] == [
        (0, "failed", None),
        (1, "running", None),
        (2, "done", 1.0),
        (3, "done", 2.0),
    ]
    failed, running, done, past = opt.trials
    assert (failed.failure, running.token, running.params) == ("exit code 1", second.token, second.params)
    assert done.started <= done.ended
    assert done.seconds == (done.ended - done.started).total_seconds()
    assert past.started is past.ended is past.seconds is None
    assert repr(opt.pending) == repr([running])
    opt.tell(first, 3.0)
    assert (opt.trials[0].state, opt.trials[0].value(), opt.trials[0].failure) == ("done", 3.0, "")


def test_a_trial_needs_its_number_params_and_token():
    opt = Optimizer(LINE, rng=0)
    trial = opt.ask()
    opt.tell(Trial(trial.id, trial.params, token=trial.token), 1.0)
    assert opt.trials[0].value() == 1.0
    assert Trial(3, {"x": 0.5}, "t", {"load": 1}, {"epochs": 9}).fidelity == {"epochs": 9}


def test_an_observation_and_a_measurement_unpack():
    opt = Optimizer(LINE, constraints={"memory": ("<=", 1)}, context={"load": Int(1, 9)})
    opt.tell({"x": 0.5}, 2.0, 0.1, {"memory": 3}, {"load": 2}, 4.0)
    params, found, noise, constraints, context, bound, cost, *_ = opt.answers[0]
    assert (params, found, noise, constraints, context) == ({"x": 0.5}, 2.0, 0.1, {"memory": 3.0}, {"load": 2})
    assert (bound, cost, isinstance(opt.answers[0], Observation)) == (None, 4.0, True)
    params, found, trust = opt.measurements[0]
    assert (params, found, trust) == ({"x": 0.5}, 2.0, 1.0)
    assert isinstance(opt.measurements[0], Measurement)
    assert opt.measurements[0].context == {"load": 2}


# --- corrections -------------------------------------------------------------------------------------------------

CORRECTED = {
    "one": ({}, 5, 0.9),
    "a failure": ({}, None, 0.9),
    "to a bound": ({}, 5, Reading(0.4, bound="at_least")),
    "constraints": ({"constraints": {"memory": ("<=", 512)}}, 5, {"value": 0.9, "memory": 700.0}),
    "fidelity": ({"fidelity": {"epochs": Int(1, 9, log=True)}}, 5, 0.9),
    "baseline": ({"baseline": {"x": 0.5}}, 5, 0.9),
    "drift": ({"drift": "auto"}, 5, 0.9),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CORRECTED)
def test_after_a_correction_all_is_as_if_it_had_been_told_so(kind, tmp_path):
    options, number, right = CORRECTED[kind]
    opt, number = told({} if number else {5: None}, **options), 5
    out = opt.ask()  # it has computed all before
    before, expected = opt.trials[number], told({number: right}, **options)
    opt.correct(number, right, reason="the clock was wrong")
    trial, (earlier,) = opt.trials[number], opt.trials[number].earlier
    assert (earlier.readings, earlier.state, earlier.failure) == (before.readings, "withdrawn", "the clock was wrong")
    assert trial.reading() == (Reading(right) if isinstance(right, float) else expected.trials[number].reading())
    assert (trial.started, trial.params, trial.state, trial.failure) == (before.started, before.params, "done", "")
    expected.expect(out.params, fidelity=out.fidelity)
    assert is_same(opt, expected)
    assert opt.answers == expected.answers
    opt.save(tmp_path / "opt.json")
    loaded = Optimizer.load(tmp_path / "opt.json")
    assert is_same(loaded, expected)
    assert [dump(its) for its in loaded.trials] == [dump(its) for its in opt.trials]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in CORRECTED if kind != "a failure"])
def test_after_a_withdrawal_all_is_as_if_it_had_not_been_told(kind, tmp_path):
    options = CORRECTED[kind][0]
    opt, expected = told(**options), told(left_out=[5], **options)
    limits = {"constraints": {"memory": 500.0}} if opt.constraints else {}
    opt.best()
    opt.withdraw(opt.trials[5], "another program was running")
    assert (opt.trials[5].state, opt.trials[5].failure) == ("withdrawn", "another program was running")
    assert opt.trials[5].readings == told(**options).trials[5].readings, "it stays on record"
    assert opt._log._count == expected._log._count
    assert opt.answers == expected.answers
    assert is_same(opt, expected)
    opt.save(tmp_path / "opt.json")
    loaded = Optimizer.load(tmp_path / "opt.json")
    assert [dump(its) for its in loaded.trials] == [dump(its) for its in opt.trials]
    with pytest.raises(ValueError, match="has a value already"):
        opt.tell(Trial(5, opt.trials[5].params, opt.trials[5].token), 1.0, **limits)
    loaded.correct(5, value(opt.trials[5].params, 5), **limits)
    assert sorted(its.value for its in loaded.answers) == sorted(its.value for its in told(**options).answers)


def test_a_correction_to_the_same_value_changes_nothing_but_the_record():
    opt, same = told(), told()
    opt.correct(5, opt.trials[5].value())
    assert is_same(opt, same)
    assert opt.answers == same.answers
    assert opt.trials[5].earlier == (), "nothing was corrected"


def test_a_correction_keeps_what_it_does_not_name():
    opt = Optimizer(LINE, constraints=LIMITS, budget=9.0)
    trial = opt.ask()
    opt.tell(trial, {"value": 1.0, "memory": 3, "size": 4, "watts": Reading(5, noise=0.1)}, cost=2.0)
    opt.correct(trial, {"memory": 30, "size": None, "cost": 3.0})
    found = opt.trials[0]
    assert {name: found.value(name) for name in found.readings} == {"value": 1, "memory": 30, "watts": 5, "cost": 3}
    assert found.reading("watts").noise == 0.1
    assert opt._spent == 3.0
    opt.correct(trial, 2.0, constraints={"size": 7})
    assert (opt.trials[0].value(), opt.trials[0].value("size"), len(opt.trials[0].earlier)) == (2.0, 7.0, 2)
    opt.withdraw(trial)
    assert opt._spent == 3.0, "it is spent"


def test_bad_corrections_are_refused_and_change_nothing():
    opt, other = Optimizer(LINE, rng=0), Optimizer(LINE, rng=1)
    trial, waiting = opt.ask(2)
    opt.tell(trial, 1.0)
    other.tell(other.ask(), 1.0)
    for number, found, words in [
        (99, 1.0, "there is no trial 99"),
        (waiting, 1.0, "trial 1 has no outcome yet: tell it"),
        (other.trials[0], 1.0, "trial 0 is not one of this optimizer's"),
        (trial, float("nan"), "finite"),
        (trial, None, "must have a number"),
        (trial, {"speed": 1, "value": None}, "must have a number"),
    ]:
        with pytest.raises(ValueError, match=words):
            opt.correct(number, found)
    assert (opt.trials[0].value(), opt.trials[0].earlier) == (1.0, ())


def test_frames_have_what_was_corrected_and_withdrawn():
    opt, twin = told(count=4), Optimizer(LINE, rng=0)
    opt.correct(1, 5.0, reason="typo")
    opt.withdraw(2, "noisy")
    frame = opt.to_frame().set_index("trial", drop=False)
    assert frame["state"].tolist().count("withdrawn") == 2
    assert frame.loc[1, "state"].tolist() == ["withdrawn", "done"]
    twin.tell_many(frame)
    assert sorted(its.value for its in twin.answers) == sorted(its.value for its in opt.answers)
    assert {(its.state, its.value(), len(its.earlier)) for its in twin.trials} == {
        (its.state, its.value(), len(its.earlier)) for its in opt.trials
    }


def test_values_that_are_too_large_are_taken_for_the_largest():
    opt = Optimizer(LINE, rng=0, constraints={"memory": ("<=", 1)})
    numbers = [1e308, -1e308, 0.0, 1.0, 2.0, 3.0]
    readings = [{"value": (Reading(n),), "memory": (Reading(-n),)} for n in numbers]
    opt.add(Trial(i, {"x": i / 9}, state="done", readings=its) for i, its in enumerate(readings))
    assert [its.value for its in opt.answers][:2] == [1e300, -1e300]
    assert math.isfinite(opt.best().estimate)
    assert opt.ask()


# --- JSON --------------------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e300, 1e300)
READINGS = st.builds(
    Reading,
    NUMBERS,
    noise=st.none() | st.floats(1e-9, 1e9),
    bound=st.sampled_from([None, "at_least", "at_most"]),
    step=st.none() | st.floats(0, 100),
)
NAMES = st.text(string.ascii_letters, min_size=1, max_size=5)
PARAMS = st.dictionaries(NAMES, NUMBERS | st.booleans() | NAMES, max_size=3)
TIMES = st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1))
PLAIN = {
    "id": st.integers(0, 10**6),
    "params": PARAMS,
    "token": NAMES,
    "context": st.none() | PARAMS,
    "fidelity": st.none() | st.fixed_dictionaries({"epochs": st.integers(1, 9)}),
    "state": st.sampled_from(["waiting", "running", "done", "failed", "pruned", "withdrawn"]),
    "readings": st.dictionaries(NAMES, st.lists(READINGS, min_size=1, max_size=3).map(tuple), max_size=3),
    "failure": NAMES,
    "started": TIMES,
    "ended": TIMES,
    "seconds": st.none() | st.floats(0, 1e6),
    "is_stopped": st.booleans(),
    "pair": NAMES,
    "block": st.none() | st.dictionaries(NAMES, st.integers(0, 9) | NAMES, min_size=1, max_size=3),
}
TRIALS = st.builds(Trial, **PLAIN, earlier=st.lists(st.builds(Trial, **PLAIN), max_size=2).map(tuple))


def parts(trial):
    """All parts of a trial, its earlier ones too."""
    return {its.name: getattr(trial, its.name) for its in fields(Trial)} | {"earlier": list(map(parts, trial.earlier))}


@given(TRIALS)
def test_json_of_a_trial_has_everything(trial):
    assert set(PLAIN) | {"earlier"} == {its.name for its in fields(Trial)}, "a new field is tested too"
    again = load(json.loads(json.dumps(dump(trial), allow_nan=False)))
    assert parts(again) == parts(trial)
    assert key(again) == key(trial)


def test_parts_of_later_versions_are_left_out():
    assert parts(load({"id": 1, "params": {}, "colour": "red"})) == parts(Trial(1, {}))


def test_the_key_is_that_of_the_observation():
    trial = Trial(3, {"a": 1, "b": 2}, state="done", readings={"value": (Reading(2.0),), "cost": (Reading(1.0),)})
    same = {"id": 4, "token": "t", "params": {"b": 2, "a": 1}, "started": datetime.now(), "seconds": 3.0}
    assert key(replace(trial, **same, readings={"value": (Reading(2.0),)})) == key(trial)
    for change in (
        {"params": {"a": 1, "b": 3}},
        {"context": {"load": 1}},
        {"fidelity": {"epochs": 1}},
        {"readings": {"value": (Reading(2.0, noise=0.1),)}},
        {"readings": {"value": (Reading(2.0), Reading(2.0))}},
    ):
        assert key(replace(trial, **change)) != key(trial), change


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"value": math.inf}, "pass a finite number"),
        ({"value": "fast"}, "value must be a number, got 'fast'"),
        ({"value": 1, "noise": 0}, "noise must be .* above 0, got 0"),
        ({"value": 1, "bound": "above"}, "bound must be 'at_least', 'at_most' or None, got 'above'"),
    ],
)
def test_bad_readings_are_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        Reading(**parts)


def test_times_are_those_of_the_run():
    opt, start = Optimizer(LINE, rng=0), datetime(2024, 1, 1)
    timed = {"started": start, "ended": start + timedelta(seconds=9), "seconds": 8.0}
    opt.add([Trial(0, {"x": 0.5}, state="done", readings={"value": (Reading(1.0),)}, **timed)])
    assert {name: getattr(opt.trials[0], name) for name in timed} == timed


def test_trials_that_are_done_without_a_value_are_not_added():
    opt = Optimizer(LINE, rng=0, constraints=LIMITS)
    good = Trial(0, {"x": 0.5}, state="done", readings={"value": (Reading(1.0),)})
    for readings in ({}, {"memory": (Reading(3.0),)}, {"value": (Reading(1.0, step=1.0),)}):
        bad = Trial(1, {"x": 0.1}, state="done", readings=readings)
        with pytest.raises(ValueError, match=r"trial 1 is done and has no value of \['value'\].*the state 'failed'"):
            opt.add([good, bad])
    assert opt.trials == []
    opt.add([good, replace(bad, state="failed")])  # as the message says
    assert [trial.state for trial in opt.trials] == ["done", "failed"]
    cut = Trial(2, {"x": 0.2}, state="done", readings={"value": (Reading(1.0, bound="at_least"),)})
    opt.add([cut])
    assert opt.trials[-1].readings == cut.readings


def test_each_run_of_a_trial_with_reports_is_evidence_and_its_reports_are_replaced():
    optimizer = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0, fidelity={"epochs": Int(1, 9)})
    runs = Reading(5.0, step=1), Reading(4.0, step=3), Reading(2.0), Reading(3.0)
    optimizer.add([Trial(0, {"x": 0.5}, fidelity={"epochs": 9}, state="done", readings={"value": runs})])
    assert [(its.value, its.is_report) for its in optimizer.answers] == [
        (5.0, True),
        (4.0, True),
        (2.0, False),
        (3.0, False),
    ]
    assert optimizer.trials[0].readings["value"] == runs


def test_a_constraint_that_was_read_more_often_than_the_value_is_no_failure():
    opt = Optimizer({"x": Float(0, 1)}, goal="minimize", rng=0, constraints={"memory": ("<=", 5)})
    readings = {"value": (Reading(1.0),), "memory": (Reading(1.0), Reading(2.0), Reading(4.0))}
    opt.add([Trial(0, {"x": 0.5}, state="done", readings=readings)])
    assert (opt.trials[0].state, opt.trials[0].readings) == ("done", readings)
    assert [(its.value, its.constraints) for its in opt.answers] == [(1.0, {"memory": 2.0})]


def test_the_median_of_runs_that_were_cut_short_is_a_bound():
    late = Reading(9.0, bound="at_least")
    for runs, bound in (([late, late], "at_least"), ([Reading(1.0), Reading(2.0), late], None)):
        assert Trial(0, {}, readings={"value": tuple(runs)}).reading().bound == bound
