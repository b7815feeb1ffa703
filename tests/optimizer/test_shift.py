"""A machine that changes during a study, see `noregret.optimizer.model.step`."""

import numpy as np
import pytest

from noregret import Float, Int, Optimizer
from noregret.optimizer import Shift

SPACE = {"a": Int(16, 65536, log=True), "b": Int(4, 64), "c": Float(0, 1), "d": Float(0, 1)}
TODAY = {"a": 128, "b": 4, "c": 0.5, "d": 0.5}


def played(value, seed, count=24, baseline=TODAY):
    """An optimizer after trials whose value is that of the evaluation's number and the params, times noise of 12%."""
    opt, rng = Optimizer(SPACE, goal="maximize", rng=seed, baseline=baseline), np.random.default_rng([seed, 3])
    for number in range(count):
        trial = opt.ask()
        opt.tell(trial, value(number, trial.params) * rng.lognormal(sigma=0.12))
    return opt


@pytest.mark.slow
def test_values_of_a_machine_that_was_slow_at_first_are_corrected():
    opt = played(lambda number, params: 350 if number < 7 else 800, 0)
    assert opt.shift.evaluations == 7
    assert -600 < opt.shift.by < -300
    assert "the machine changed: the first 7 evaluations gave values about" in repr(opt)
    assert 600 < opt.best().estimate < 1000
    assert all(share.lower == 0 for share in opt.importance().values())
    assert opt.best().params == TODAY


@pytest.mark.slow
def test_nothing_is_found_where_nothing_changed():
    assert played(lambda number, params: 800, 0).shift is None
    assert played(lambda number, params: 400 + 800 * params["c"], 0).shift is None, "an effect of a parameter"


@pytest.mark.slow
def test_without_a_baseline_nothing_is_looked_for():
    assert played(lambda number, params: 350 if number < 7 else 800, 0, baseline=None).shift is None


def test_a_shift_in_words():
    lower = "the machine changed: the first 7 evaluations gave values about 380 lower, and are corrected by that"
    assert str(Shift(7, -378.2)) == lower
    assert "about 0.25 higher" in str(Shift(12, 0.25))
