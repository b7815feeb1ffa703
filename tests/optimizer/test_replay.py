"""Replay: continuing from the last history gives the same as a new start, in less time."""

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

from noregret import Float
from noregret.optimizer import Reading, Replay, Trial, replay
from noregret.optimizer.model.current import Beliefs
from noregret.optimizer.model.hypotheses import ModelConfig

SPACE = {"x": Float(0, 1), "y": Float(0, 1)}


def history(count, seed=0):
    rng = np.random.default_rng(seed)
    points = [{"x": x, "y": y} for x, y in rng.random((count, 2)).tolist()]
    return [done(i, p, None if i % 9 == 5 else (p["x"] - 0.3) ** 2 + p["y"]) for i, p in enumerate(points)]


def done(number, params, value, **others):
    """A trial with these readings, which has failed if its value is None."""
    readings = {name: (Reading(its),) for name, its in {"value": value, **others}.items() if its is not None}
    return Trial(number, params, state="failed" if value is None else "done", readings=readings)


@pytest.fixture
def begun(monkeypatch):
    """A list with an entry for every optimizer that is created."""
    made, optimizer = [], replay.Optimizer

    def counted(*args, **kwargs):
        made.append(None)
        return optimizer(*args, **kwargs)

    monkeypatch.setattr(replay, "Optimizer", counted)
    return made


@pytest.mark.slow
def test_going_on_is_starting_afresh(begun):
    answers, going = history(10), Replay(SPACE, "minimize", 0)
    for _ in range(15):
        pending = [Trial(100, {"x": 0.5, "y": 0.5}), Trial(101, {"x": 0.1, "y": 0.2})]
        params = going(answers, pending).ask().params
        fresh = Replay(SPACE, "minimize", 0)(answers, pending).ask().params
        assert params == pytest.approx(fresh, abs=1e-6)
        answers = [*answers, done(len(answers), params, (params["x"] - 0.3) ** 2 + params["y"])]
    assert len(begun) == 1 + 15, "the continued one was started once"


def test_another_history_is_begun_afresh(begun):
    going = Replay(SPACE, "minimize", 0)
    going(history(20))
    other = history(15, seed=1)
    assert going(other).ask().params == Replay(SPACE, "minimize", 0)(other).ask().params
    assert len(begun) == 3


def test_only_what_is_settled_is_kept(begun):
    """The eleventh answer comes late, and then before the others."""
    answers, going = history(14), Replay(SPACE, "minimize", 0)
    early = going([*answers[:10], *answers[11:]], [Trial(10, answers[10].params)], settled=10)
    assert len(early.measurements) == 12
    assert going(answers).ask().params == Replay(SPACE, "minimize", 0)(answers).ask().params
    assert len(begun) == 2


@pytest.mark.slow
def test_the_optimizers_given_away_are_free():
    answers, going = history(12), Replay(SPACE, "minimize", 0)
    first = going(answers)
    for _ in range(5):
        first.tell(first.ask(), 0.1)
    assert going(answers).ask().params == Replay(SPACE, "minimize", 0)(answers).ask().params


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_it_can_be_copied(copied):
    going = Replay(SPACE, "minimize", 0)
    going(history(12))
    assert copied(going)(history(12)).ask().params == going(history(12)).ask().params


def test_nothing_is_fitted_while_the_first_questions_are_asked(monkeypatch):
    fits, calibrated = [], ModelConfig.calibrated
    monkeypatch.setattr(ModelConfig, "calibrated", lambda its, evidence: fits.append(0) or calibrated(its, evidence))
    going = Replay(SPACE, "minimize", 0)
    asked = [going(history(count)).ask().params for count in range(5)]
    assert not fits
    assert asked[4] == Replay(SPACE, "minimize", 0)(history(4)).ask().params
    going(history(11)).ask()
    assert fits


@pytest.mark.slow
def test_fits_of_constraints_are_made_once_too(monkeypatch):
    fits, fitted = [], ModelConfig.calibrated

    def counted(self, evidence):
        fits.append(evidence)
        return fitted(self, evidence)

    monkeypatch.setattr(ModelConfig, "calibrated", counted)
    answers = [done(i, its.params, its.value(), c=its.params["x"]) for i, its in enumerate(history(14)) if its.value()]
    going = Replay(SPACE, "minimize", 0, constraints={"c": ("<=", 0.5)})
    params = going(answers).ask().params
    made = len(fits)
    assert made == 2, "one of the values and one of the constraint"
    assert going(answers).ask().params == params
    assert pickle.loads(pickle.dumps(going))(answers).ask().params == params
    assert going(answers, settled=5).ask().params == params
    assert len(fits) <= 2 * made + 4


@pytest.mark.slow
def test_trials_out_do_not_make_a_belief_begin_again(monkeypatch):
    """Points that were chosen before the last candidates get their own arms."""
    calls = Counter()
    for name in ("_weigh", "_draw"):
        original = getattr(Beliefs, name)
        monkeypatch.setattr(
            Beliefs,
            name,
            lambda *given, name=name, original=original: (calls.update([name]), original(*given))[1],
        )
    led, answers, out = Replay(SPACE, "minimize", 0), [], []
    for number in range(30):
        out.append(led(answers, out).ask())
        if len(out) == 5:
            trial = out.pop(number % 3)
            answers.append(done(trial.id, trial.params, (trial.params["x"] - 0.3) ** 2))
    assert calls["_draw"] == calls["_weigh"] > 10
