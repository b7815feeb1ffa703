"""A slip of the pen among few values: it is doubted, said, and does not spoil the rest."""

import html

import numpy as np
import pytest

from noregret import Float, Optimizer, report
from noregret.optimizer import Doubt


def valley(x):
    return float(40 + 60 * abs(x[0] - 0.3) + 20 * x[1:].sum())


def cliff(x):
    return float(50 + 30 * (x[0] > 0.5) + 20 * x[1:].sum())


def peak(x):
    return float(50 - 30 * np.exp(-((x - 0.3) ** 2).sum() / 0.02) + 5 * x.sum())


def played(function, seed, at=None, dimension=3, count=24, goals=None):
    opt = Optimizer({f"x{i}": Float(0, 1) for i in range(dimension)}, rng=seed, goals=goals)
    rng = np.random.default_rng([seed, 7])
    for number in range(count):
        trial = opt.ask()
        value = function(np.array(list(trial.params.values()))) * (1 + 0.02 * rng.standard_normal())
        value = value / 10 if number == at else value
        opt.tell(trial, {"a": value, "b": sum(trial.params.values())} if goals else value)
    return opt


@pytest.mark.parametrize("function", [valley, cliff])
def test_one_value_divided_by_ten_is_doubted_and_said(function):
    for seed in range(2):
        opt = played(function, seed, at=14)
        assert opt.weights()[14] < 0.2
        assert [doubt.trial for doubt in opt.doubts] == [14]
        assert opt.doubts[0].deviations > 10
        assert f"{opt.doubts[0]} if not: opt.correct(14, value)" in repr(opt)
        assert opt.best().upper - opt.best().lower < 15


def test_the_page_says_it(tmp_path):
    report(played(valley, 0, at=14), tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text("utf-8"))
    assert "what its neighbours say: is it right? 'correct' replaces a value." in page


def test_a_corrected_value_is_believed():
    opt = played(valley, 0, at=14)
    right = valley(np.array(list(opt.trials[14].params.values())))
    opt.correct(14, right)
    assert opt.doubts == []
    assert opt.weights()[14] > 0.5


@pytest.mark.parametrize("function", [valley, cliff, peak, lambda x: 50.0])
def test_nothing_is_doubted_where_nothing_is_wrong(function):
    for seed in range(3):
        opt = played(function, seed, count=18)
        assert opt.doubts == []
        assert "is it right" not in repr(opt)


@pytest.mark.slow
def test_a_narrow_peak_that_is_measured_again_is_believed():
    """What repeats is no slip: a second value near the first clears it."""
    opt = played(valley, 0, at=14)
    where = opt.trials[14].params
    for value in (4.1, 4.2, 4.0):
        opt.tell(where, value)
    assert opt.doubts == []


def test_each_objective_has_its_own_doubts():
    opt = played(valley, 0, at=14, goals={"a": "minimize", "b": "maximize"})
    assert [doubt.trial for doubt in opt.doubts] == [14]
    assert opt.doubts[0].value == opt.trials[14].value("a")


def test_before_there_are_values_nothing_is_doubted():
    assert Optimizer({"x": Float(0, 1)}).doubts == []


def test_a_doubt_in_words():
    said = "trial 14 (8) is 30 standard deviations from what its neighbours say: is it right?"
    assert str(Doubt(14, 8.0, 30.2)) == said
