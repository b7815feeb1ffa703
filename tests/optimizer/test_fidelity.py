"""Cheap looks: measurements at lower fidelities, reports of running trials, and when they are stopped."""

import copy

import numpy as np
import pytest

from noregret import Choice, Float, Int, Optimizer, report
from noregret.optimizer import Replay
from noregret.optimizer.space.contexts import Fidelity

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}
EPOCHS = {"epochs": Int(1, 81, log=True)}


def loss(params, epochs):
    """Curves that fall to (x - 0.3)^2 + (y - 0.6)^2."""
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2 + 0.5 * epochs**-0.7


def played(trials=20, seed=0, noise=0.01, space=SPACE, **options):
    opt, rng = Optimizer(space, fidelity=EPOCHS, rng=seed, **options), np.random.default_rng(seed)
    for _ in range(trials):
        trial = opt.ask()
        opt.tell(trial, loss(trial.params, trial.fidelity["epochs"]) + noise * rng.standard_normal())
    return opt


def run(opt, trial, noise=0.0):
    """Epochs that a trial took until it was stopped, and its last value."""
    for epoch in range(1, trial.fidelity["epochs"] + 1):
        value = loss(trial.params, epoch) + noise
        opt.report(trial, {"epochs": epoch}, value)
        if opt.should_stop(trial):
            break
    opt.tell(trial, value)
    return epoch, value


def test_rungs_are_evenly_spaced_on_the_scale_of_the_parameter():
    epochs = Fidelity("epochs", Int(1, 81, log=True))
    assert [rung["epochs"] for rung in epochs.rungs] == [1, 3, 9, 27, 81]
    assert [epochs.rung({"epochs": n}) for n in (1, 2, 3, 80, 81)] == [1, 1, 2, 4, 5]
    assert epochs.cost({"epochs": 27}) == 1 / 3
    assert [rung["repeats"] for rung in Fidelity("repeats", Int(1, 3)).rungs] == [1, 2, 3]


def test_answers_are_about_the_highest_fidelity():
    opt = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    for x in np.linspace(0, 1, 4):
        for epochs in (1, 3, 9, 27, 81):
            params = {"x": float(x), "y": 0.6}
            opt.tell(params, loss(params, epochs), fidelity={"epochs": epochs})
    best = opt.best()
    assert best.params["x"] == pytest.approx(0.3, abs=0.15)
    assert best.lower <= loss(best.params, 81) <= best.upper
    assert opt.predict({"x": 0.0, "y": 0.6}).estimate == pytest.approx(0.09 + 0.5 * 81**-0.7, abs=0.03)


def test_the_past_is_of_the_highest_fidelity_unless_it_is_said():
    opt = Optimizer(SPACE, fidelity=EPOCHS)
    opt.tell({"x": 0.1, "y": 0.2}, 1.0)
    opt.tell({"x": 0.1, "y": 0.2}, 2.0, fidelity={"epochs": 3})
    assert [each.fidelity for each in opt.answers] == [{"epochs": 81}, {"epochs": 3}]


@pytest.mark.slow
def test_questions_are_asked_at_several_fidelities_and_cost_less_than_at_the_highest():
    opt = played()
    asked = [each.fidelity["epochs"] for each in opt.answers]
    assert len(set(asked)) > 2
    assert sum(asked) < 0.8 * 81 * len(asked)
    assert loss(opt.best().params, 81) < loss({"x": 0.3, "y": 0.6}, 81) + 0.05


@pytest.mark.slow
def test_a_run_that_cannot_be_the_best_is_stopped_and_the_best_never():
    opt = played(25)
    bad, good = opt.expect({"x": 1.0, "y": 0.0}), opt.expect(opt.best().params)
    epochs, value = run(opt, bad)
    assert epochs < 81
    assert opt.answers[-1].fidelity == {"epochs": epochs}
    assert opt.answers[-1].value == value
    assert run(opt, good)[0] == 81
    assert opt.answers[-1].fidelity == {"epochs": 81}


def test_a_run_of_many_reports_adds_few_rows_and_counts_once():
    opt = Optimizer(SPACE, fidelity={"epochs": Int(1, 10_000, log=True)})
    trial = opt.expect({"x": 0.5, "y": 0.5})
    for epoch in range(1, 10_001):
        opt.report(trial, {"epochs": epoch}, 1 / epoch)
    opt.report(trial, {"epochs": 5}, 0.0)  # out of order: ignored
    assert len(opt.answers) == 5
    opt.tell(trial, 1e-4)
    evidence, _ = opt._history.evidence(6)
    assert evidence.values.tolist() == [-1e-4]
    with pytest.raises(ValueError, match="needs at least 2 values, 1 told so far"):
        opt.predict({"x": 0.5, "y": 0.5})


def test_a_run_that_the_user_ends_says_its_fidelity():
    opt = Optimizer(SPACE, fidelity=EPOCHS)
    for fidelity, expected in (({"epochs": 5}, {"epochs": 5}), (None, {"epochs": 81})):
        trial = opt.expect({"x": 0.5, "y": 0.5})
        opt.report(trial, {"epochs": 4}, 1.0)
        opt.tell(trial, 0.9, fidelity=fidelity)
        assert opt.answers[-1].fidelity == expected


def test_reports_do_not_make_other_trials_count_as_lost():
    opt = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    waiting = opt.ask()
    for _ in range(4):
        trial = opt.expect({"x": 0.5, "y": 0.5})
        for epoch in (1, 3, 9, 27, 81):
            opt.report(trial, {"epochs": epoch}, 1.0)
        opt.tell(trial, 1.0)
    assert waiting.id in opt._log.pending()


def test_nothing_is_stopped_before_the_first_fit():
    opt = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    for _ in range(3):
        trial = opt.ask()
        assert not opt.should_stop(trial)
        assert run(opt, trial)[0] == trial.fidelity["epochs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"baseline": {"x": 0.5, "y": 0.5}},
        {"context": {"load": Float(0, 1)}},
        {"constraints": {"c": ("<=", 1.0)}},
        {"space": SPACE | {"kind": Choice(["a", "b"]), "z": Float(0, 1, when={"kind": "b"})}},
        {"space": [{"x": x / 9, "y": 0.6} for x in range(10)]},
        {"require": ["x <= y"]},
    ],
)
def test_the_rest_works_with_a_fidelity_and_survives_being_saved(options, tmp_path):
    space, context = options.get("space", SPACE), {"load": 0.5} if "context" in options else None
    rest = {name: its for name, its in options.items() if name != "space"}
    opt = Optimizer(space, fidelity=EPOCHS, rng=0, **rest)
    told = {"constraints": {"c": 0.5}} if "constraints" in options else {}
    for number in range(7):
        for trial in opt.ask(2, context=context):
            if number == 3:
                opt.fail(trial)
                continue
            value = loss(trial.params, trial.fidelity["epochs"])
            opt.report(trial, {"epochs": 1}, loss(trial.params, 1))
            opt.should_stop(trial)
            opt.tell(trial, value, **told)
    running = opt.ask(context=context)
    opt.report(running, {"epochs": 2}, 0.4)
    opt.save(tmp_path / "opt.json")
    loaded, twin = Optimizer.load(tmp_path / "opt.json"), copy.copy(opt)
    asked = opt.ask(context=context)
    for other in (loaded, twin):
        assert [each.fidelity for each in other.answers] == [each.fidelity for each in opt.answers]
        assert other._log.runs == opt._log.runs
        assert (other.ask(context=context).params, asked.fidelity) == (asked.params, asked.fidelity)
        assert other.best(context).params == opt.best(context).params
    again = Optimizer(space, fidelity=EPOCHS, rng=0, **rest)
    again.tell_many(opt.to_frame())
    assert [(each.params, each.value, each.fidelity) for each in again.answers] == [
        (each.params, each.value, each.fidelity) for each in opt.answers
    ]
    replayed = Replay(space, opt.goal, 0, fidelity=EPOCHS, **rest)(opt.trials)
    assert replayed.answers == [each for each in opt.answers if not each.is_report], "reports are no evidence then"


@pytest.mark.parametrize(
    ("fidelity", "message"),
    [
        (3, "must be a dict with one Int or Float"),
        ({"a": Int(1, 3), "b": Int(1, 3)}, "must be a dict with one"),
        ({"x": Int(1, 3)}, "that no parameter or context has, got 'x'"),
        ({"epochs": Choice(["a", "b"])}, "must be an Int or Float"),
        ({"epochs": Int(0, 3)}, "must begin above 0"),
    ],
)
def test_a_bad_fidelity_is_refused(fidelity, message):
    with pytest.raises(ValueError, match=message):
        Optimizer(SPACE, fidelity=fidelity)


def test_bad_reports_change_nothing():
    opt, plain = Optimizer(SPACE, fidelity=EPOCHS), Optimizer(SPACE)
    trial = opt.ask()
    for fidelity, value, message in (
        ({"epochs": 9}, float("nan"), "pass a finite number"),
        ({"epochs": 99}, 1.0, "epochs"),
        ({"rounds": 9}, 1.0, "unknown 'rounds'"),
        (9, 1.0, "fidelity must be a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            opt.report(trial, fidelity, value)
    with pytest.raises(ValueError, match="epochs"):
        opt.tell(trial, 1.0, fidelity={"epochs": 99})
    assert not opt.answers
    assert opt.pending[0].id == trial.id
    opt.tell(trial, 1.0)
    with pytest.raises(ValueError, match="has a value already"):
        opt.report(trial, {"epochs": 81}, 1.0)
    with pytest.raises(ValueError, match="needs a fidelity"):
        plain.report(plain.ask(), {"epochs": 1}, 1.0)
    with pytest.raises(ValueError, match="there must be no fidelity"):
        plain.tell({"x": 0.5, "y": 0.5}, 1.0, fidelity={"epochs": 1})
    with pytest.raises(ValueError, match="fidelity or drift"):
        Optimizer(SPACE, fidelity=EPOCHS, drift=20.0)


def test_a_frame_brings_runs_back_as_runs():
    opt = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    for number in range(4):
        trial = opt.expect({"x": number / 4, "y": 0.5})
        for epoch in (1, 9, 81):
            opt.report(trial, {"epochs": epoch}, loss(trial.params, epoch))
        if number < 3:
            opt.tell(trial, loss(trial.params, 81))
    frame = opt.to_frame()
    assert frame.state.tolist() == [*["reported", "reported", "reported", "done"] * 3, *["reported"] * 3, "running"]
    again = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    again.tell_many(frame.iloc[:8])
    again.tell_many(frame.iloc[8:])
    best, same = opt.best(), again.best()
    assert (same.params, same.estimate, same.lower) == (best.params, best.estimate, best.lower)
    assert [its.is_report for its in again.answers] == [its.is_report for its in opt.answers]


@pytest.mark.slow
@pytest.mark.parametrize("space", [SPACE, [[x / 9, 0.6] for x in range(10)]])
def test_a_page_and_a_picture_have_one_measurement_of_each_run(space):
    opt = Optimizer(space, fidelity=EPOCHS, rng=0)
    for _ in range(10):
        trial = opt.ask()
        params = trial.params if isinstance(trial.params, dict) else dict(zip("xy", trial.params, strict=True))
        for epoch in range(1, trial.fidelity["epochs"] + 1):
            opt.report(trial, {"epochs": epoch}, loss(params, epoch))
            if opt.should_stop(trial):
                break
        opt.tell(trial, loss(params, epoch))
    page = report(opt).html
    assert "10 measurements" in page
    assert "at lower epochs" in page
    assert opt.plot.history().get_xlim() == (0.5, 10.5)


@pytest.mark.parametrize("reports", [1, 3])
def test_reports_of_failed_runs_are_no_values(reports, tmp_path):
    opt = Optimizer(SPACE, fidelity=EPOCHS, rng=0)
    for _ in range(15):
        trial = opt.ask()
        for epoch in range(1, reports + 1):
            opt.report(trial, {"epochs": epoch}, trial.params["x"])
        opt.fail(trial)
    opt.save(tmp_path / "o.json")
    for each in (opt, Optimizer.load(tmp_path / "o.json")):
        with pytest.raises(ValueError, match="needs a value: tell one first"):
            each.best()
        assert "15 failed" in repr(each)
        assert "15 failed runs" in report(each).html
        each.tell({"x": 0.5, "y": 0.5}, 1.0)
        assert each.best().params == {"x": 0.5, "y": 0.5}
        assert each.ask()


GOALS = {"loss": "minimize", "size": "minimize"}


def both(params, epochs):
    """The front is the line from (0.3, 0.6) to (0.9, 0.6)."""
    return {"loss": loss(params, epochs), "size": (params["x"] - 0.9) ** 2 + (params["y"] - 0.6) ** 2}


def played_for_both(trials, seed=0, epochs=EPOCHS, runs=False, baseline=None):
    """An optimizer, and the costs in units of one trial at the highest fidelity."""
    opt = Optimizer(SPACE, fidelity=epochs, goals=GOALS, rng=seed, baseline=baseline)
    rng, costs = np.random.default_rng(seed), []
    for _ in range(trials):
        trial = opt.ask()
        at = trial.fidelity["epochs"]
        for rung in (1, 3, 9, 27, 81) if runs else ():
            at = rung
            opt.report(trial, {"epochs": at}, both(trial.params, at))
            if opt.should_stop(trial):
                break
        values = both(trial.params, at)
        opt.tell(trial, {name: value + 0.01 * rng.standard_normal() for name, value in values.items()})
        costs.append(at / 81)
    return opt, costs


def test_several_objectives_have_cheap_looks(tmp_path):
    """The front is found at a lower cost than that of full runs, and its estimates are of the highest fidelity."""
    opt, costs = played_for_both(26, baseline={"x": 0.5, "y": 0.1})
    assert sum(costs) < 0.6 * len(costs)
    assert {1, 3, 9, 27, 81} == {trial.fidelity["epochs"] for trial in opt.trials}
    front = opt.front()
    near = [abs(its.params["y"] - 0.6) < 0.2 and 0.15 < its.params["x"] < 1 for its in front]
    assert np.mean(near) > 0.8
    for its in front:
        assert its.params in [trial.params for trial in opt.trials]  # tried, at whatever fidelity
        assert its.lower["loss"] - 0.05 <= loss(its.params, 81) <= its.upper["loss"] + 0.05
    assert opt.gain().is_better
    opt.save(tmp_path / "opt.json")
    again = Optimizer.load(tmp_path / "opt.json")
    ours, theirs = opt.ask(), again.ask()
    assert (ours.params, ours.fidelity) == (theirs.params, theirs.fidelity)
    told = Optimizer(SPACE, fidelity=EPOCHS, goals=GOALS, rng=0)
    told.tell_many(opt.to_frame())
    assert len(told.front()) >= len(front) / 2  # settings known at lower fidelities, too
    assert "Which parameters matter" not in report(opt).html
    assert len(opt.plot.front().get_lines()[0].get_xdata()) <= sum(cost == 1 for cost in costs)


def test_a_look_at_several_objectives_is_at_the_highest_fidelity_if_that_alone_tells():
    """The null case: with one fidelity there is nothing to choose, and with equal costs the highest tells most."""
    _, costs = played_for_both(14, epochs={"epochs": Int(80, 81)})
    assert np.mean([cost == 1 for cost in costs[10:]]) > 0.5
    _, costs = played_for_both(12, epochs={"epochs": Int(81, 81)})
    assert set(costs) == {1}


@pytest.mark.slow
def test_a_run_is_stopped_that_is_unlikely_to_be_on_the_front():
    opt, _ = played_for_both(20, runs=True)
    for params in ({"x": 0.05, "y": 0.1}, {"x": 0.3, "y": 0.0}):
        trial, reached = opt.expect(params), 0
        for reached in (1, 3, 9, 27, 81):
            opt.report(trial, {"epochs": reached}, both(params, reached))
            if opt.should_stop(trial):
                break
        opt.tell(trial, both(params, reached))
        assert reached < 81
        assert trial.params not in [its.params for its in opt.front()]
    for params in ({"x": 0.3, "y": 0.6}, {"x": 0.9, "y": 0.6}, {"x": 0.6, "y": 0.6}):  # the null case: on the front
        trial = opt.expect(params)
        for epochs in (1, 3, 9, 27, 81):
            opt.report(trial, {"epochs": epochs}, both(params, epochs))
            assert not opt.should_stop(trial), (params, epochs)
        opt.tell(trial, both(params, 81))
