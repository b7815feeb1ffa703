"""Suites: e-BH over names, what is observed, the names of the first pair, and bad input."""

import math
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from noregret import Suite
from noregret.comparison.suite import selected


def told(suite, a, b, pairs):
    """The suite after further pairs of runs in which A and B return these values."""
    for _ in range(2 * pairs):
        option = suite.ask()
        suite.tell(option, (a, b)[option])
    return suite


def test_e_bh_by_hand():
    assert selected({"a": 59.9, "b": 19, "c": 1}, 0.05) == set()
    assert selected({"a": 60, "b": 19, "c": 1}, 0.05) == {"a"}
    assert selected({"a": 30, "b": 30, "c": 1}, 0.05) == {"a", "b"}  # neither of them alone
    assert selected({"a": 20, "b": 20, "c": 20}, 0.05) == {"a", "b", "c"}
    assert selected({"a": math.inf}, 0.05, count=1000) == {"a"}
    assert selected({}, 0.05) == set()


@pytest.mark.parametrize(("count", "pairs"), [(1, 7), (40, 13)])
def test_one_name_of_more_needs_more_pairs(count, pairs):
    names = [f"name {i}" for i in range(count)]
    suite, noise = Suite(names, rng=0), np.random.default_rng(0)
    while not suite.named("worse"):
        option = suite.ask()
        slow = {"name 0": (1.0, 1.5)[option]}
        suite.tell(option, {name: slow.get(name, 1.0) * noise.lognormal(sigma=0.01) for name in names})
    assert (suite.pairs, suite.named("worse")) == (pairs, ("name 0",))
    row = suite["name 0"]
    assert row.level == pytest.approx(1 - 0.05 / count)
    assert 0.4 < row.lower < row.estimate < row.upper < 0.6
    assert row.evalue >= count / 0.05


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
@pytest.mark.parametrize("within", [None, "2%"])
def test_a_name_differs_exactly_if_its_interval_excludes_the_margin(goal, within):
    """Names of many sizes of the difference, at each pair: verdicts, e-values and intervals agree."""
    noise, sizes = np.random.default_rng(1), np.linspace(-0.08, 0.08, 17)
    suite = Suite(map(str, range(17)), within=within, goal=goal, rng=1)
    margin = 0.02 if within else 0.0
    for _ in range(60):
        option = suite.ask()
        sized = 1 + option * sizes
        suite.tell(option, {str(i): size * noise.lognormal(sigma=0.02) for i, size in enumerate(sized)})
        rows = suite.rows
        alarms = [row for row in rows if row.verdict in ("better", "worse")]
        for row in rows:
            is_above, is_below = row.lower > margin, row.upper < -margin
            said = (
                {"better": is_below, "worse": is_above}
                if goal == "minimize"
                else {"better": is_above, "worse": is_below}
            )
            equal = within is not None and -margin <= row.lower and row.upper <= margin
            assert row.verdict == next(
                (each for each, holds in said.items() if holds), "equal" if equal else "undecided"
            )
            if row in alarms:
                assert row.level == pytest.approx(1 - 0.05 * len(alarms) / 17)
                assert row.evalue >= 17 / (0.05 * len(alarms)) * (1 - 1e-9)
    assert len(alarms) >= 6
    groups = [{"worse": 0, "better": 2}.get(row.verdict, 1) for row in rows]
    assert groups == sorted(groups)  # worst first
    sign = 1 if goal == "minimize" else -1
    assert all(sign * a.estimate >= sign * b.estimate for a, b in pairwise(rows) if a.verdict == b.verdict)


def test_names_that_are_decided_are_not_observed_any_more():
    suite = told(Suite(["slow", "same"], rng=0), {"slow": 1.0, "same": 1.0}, {"slow": 2.0, "same": 1.0}, 10)
    before = suite["slow"]
    assert (before.verdict, suite.undecided, suite.running) == ("worse", ("same",), ("same",))
    for a, b in [({"same": 1.0}, {"same": 1.0}), ({"same": 1.0, "slow": 5.0}, {"same": 1.0, "slow": 1.0})]:
        told(suite, a, b, 10)
        assert suite["slow"] == before
    assert suite["same"].pairs == 30
    assert repr(suite) == "1 of 2 names is worse, none is better, 1 undecided, 30 pairs"


def test_a_name_that_is_decided_in_the_middle_of_a_pair_is_still_expected_of_its_other_run():
    suite = told(Suite(["a", "b"], rng=0), {"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}, 6)
    assert suite.running == ("a", "b")
    suite.tell(suite.ask(), {"a": 1.0, "b": 1.0})
    assert suite.running == ("a", "b")


def test_a_missing_name_has_failed_and_loses_its_pair():
    suite = told(Suite(["a", "b", "c"], rng=0), {"a": 1.0, "b": 1.0, "c": 1.0}, {"a": None, "b": 1.0}, 12)
    assert (suite.named("worse"), suite.verdict) == (("a", "c"), "worse")
    assert suite["a"].upper == math.inf
    suite = told(Suite(["a"], rng=0), None, {"a": 1.0}, 8)  # all of a run
    assert (suite.verdict, suite.order.failures) == ("better", [8, 0])


def test_a_name_that_fails_more_often_is_not_better_or_equal():
    suite = told(Suite(["a"], within="10%", rng=0), {"a": 1.0}, {"a": None}, 1)
    assert told(suite, {"a": 1.0}, {"a": 0.5}, 30).verdict == "undecided"
    suite = told(Suite(["a"], within="10%", rng=0), {"a": None}, {"a": 1.0}, 1)
    assert told(suite, {"a": 1.0}, {"a": 0.5}, 30).verdict == "better"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ((2.0, 1.0), "worse"),
        ((0.5, 1.0), "better"),
        ((0.5, 2.0), "worse"),
        ((1.001, 0.999), "equal"),
        ((1.0, 0.98), "equal"),
    ],
)
def test_the_verdict_of_all_names(changes, verdict):
    noise = np.random.default_rng(0)
    suite = Suite(["a", "b"], within="5%", rng=0)
    for _ in range(60):
        option = suite.ask()
        means = changes if option else (1.0, 1.0)
        suite.tell(option, {name: mean * noise.lognormal(sigma=0.01) for name, mean in zip("ab", means, strict=True)})
    assert suite.verdict == verdict
    assert suite.decided


def test_names_are_those_of_the_first_pair_that_has_not_failed():
    suite = Suite(rng=0)
    assert (suite.names, suite.undecided, suite.decided, repr(suite)) == ((), (), False, "No names yet, 0 pairs")
    told(suite, None, {"a": 1.0}, 2)
    assert suite.names == ()
    told(suite, {"a": 1.0, "b": 2.0, "d": 1.0}, {"c": 1.0, "b": 3.0, "a": 1.0, "d": None}, 1)
    assert (suite.names, suite.left_out) == (("a", "b"), (("c",), ("d",)))
    assert [row.pairs for row in suite.rows] == [1, 1]


def test_bounded_values_are_compared_by_means():
    noise, suite = np.random.default_rng(0), Suite(["pass"], bounds=(0, 1), goal="maximize", within=0.05, rng=0)
    while not suite.decided:
        option = suite.ask()
        suite.tell(option, {"pass": float(noise.random() < (0.2, 0.8)[option])})
    assert (suite.verdict, suite.is_relative("pass"), suite.margin("pass")) == ("better", False, 0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Suite([]), "names must be a list of text that is not empty, got"),
        (lambda: Suite(["a", "b", "a"]), "names must differ from each other, got 'a', 'a', 'b'"),
        (lambda: Suite(["a"], bounds=(1, 0)), "bounds must be"),
        (lambda: Suite(["a"], confidence=2), "confidence must be"),
        (lambda: Suite(["a"], within="x"), "within must be"),
        (lambda: Suite(["a"], goal="x"), "goal must be"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 1.0, "z": 1.0}, "values must be those of names of the suite, 'a', 'b', got 'z'"),
        ({"b": 1.0, "a": math.nan}, "a must be a finite number, got nan: pass None"),
        ({"b": 1.0, "a": 7.0}, "a must be within the bounds, 0 to 5, got 7"),
    ],
)
def test_bad_values_change_nothing(values, message):
    suite = told(Suite(["a", "b"], bounds=(0, 5), rng=3), {"a": 1.0, "b": 1.0}, {"a": 2.0, "b": 2.0}, 3)
    while suite.ask() == 1:
        suite.tell(1, {"a": 2.0, "b": 2.0})
    before = deepcopy(suite.values), suite.rows, suite.order.awaited
    with pytest.raises(ValueError, match=message):
        suite.tell(0, values)
    with pytest.raises(ValueError, match="option must be"):
        suite.tell(2, {"a": 1.0})
    assert (suite.values, suite.rows, suite.order.awaited) == before


def test_options_without_a_common_name_are_refused():
    suite = Suite(rng=0)
    suite.tell(suite.ask(), {"a": 1.0})
    other = suite.ask()
    with pytest.raises(ValueError, match="A and B must have names in common, got 'a' against 'b'"):
        suite.tell(other, {"b": 1.0})
    suite.tell(other, {"a": 1.0})
    assert suite.names == ("a",)
