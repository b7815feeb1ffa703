"""`Comparison` and `versus`: blocks, verdicts, failures, old values, more than two options, and what they print."""

import math
from itertools import cycle

import numpy as np
import pytest

import noregret
from noregret.comparison import Comparison


def fed(a, b, **options):
    """A comparison with these values of A and B, in pairs."""
    comparison = Comparison(rng=0, **options)
    for pair in zip(a, b, strict=True):
        for _ in pair:
            option = comparison.ask()
            comparison.tell(option, pair[option])
    return comparison


def test_runs_come_in_pairs_in_random_order():
    comparison, asked = Comparison(rng=1), []
    for _ in range(40):
        option = comparison.ask()
        assert comparison.ask() == option
        asked.append(option)
        comparison.tell(option, 1.0)
    pairs = np.reshape(asked, (20, 2))
    assert (pairs.sum(axis=1) == 1).all()
    assert 5 <= pairs[:, 0].sum() <= 15
    assert comparison.runs == [20, 20]
    assert comparison.pairs == 20


@pytest.mark.parametrize(
    ("factor", "goal", "verdict", "best"),
    [
        (0.9, "minimize", "better", 1),
        (0.9, "maximize", "worse", 0),
        (1.1, "minimize", "worse", 0),
        (1.1, "maximize", "better", 1),
    ],
)
def test_seven_pairs_that_agree_decide(factor, goal, verdict, best):
    a = np.linspace(1, 2, 7)
    six, seven = (fed(a[:count], factor * a[:count], goal=goal) for count in (6, 7))
    assert (six.verdict, six.best, six.decided) == ("undecided", None, False)
    assert (seven.verdict, seven.best, seven.decided) == (verdict, best, True)
    assert seven.estimate == pytest.approx(factor - 1)
    assert (seven.lower, seven.upper) == pytest.approx((factor - 1, factor - 1))


def test_the_interval_is_between_order_statistics_of_the_ratios():
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(size=(2, 100))
    comparison, ratios = fed(a, b), np.sort(b / a) - 1
    assert (comparison.lower, comparison.upper) == pytest.approx((ratios[33], ratios[66]))
    assert comparison.estimate == pytest.approx(math.sqrt((ratios[49] + 1) * (ratios[50] + 1)) - 1)


def test_values_that_are_not_positive_are_compared_by_differences():
    a = np.array([-3.0, 0.0, 1.0, 2.0, -1.0, 5.0, 4.0])
    comparison = fed(a, a - 0.5)
    assert not comparison.is_relative
    assert comparison.intervals == [(0.0, 0.0, 0.0), (-0.5, -0.5, -0.5)]
    assert repr(comparison) == "B is better than A by 0.5 (0.5 to 0.5), 7 pairs"


@pytest.mark.parametrize(
    ("within", "change", "verdict"),
    [
        ("1%", 0.005, "equal"),
        (0.01, 0.005, "equal"),
        ("1%", 0.02, "worse"),
        ("3%", -0.02, "equal"),
        (None, 0, "undecided"),
    ],
)
def test_equal_within_a_margin(within, change, verdict):
    a = np.linspace(1, 2, 20)
    assert fed(a, a * (1 + change), within=within).verdict == verdict
    if within == "1%":  # of the median of A where changes are differences
        assert fed(a - 3, a - 3 + change, within=within).verdict == verdict


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_the_verdict_is_the_part_with_the_whole_interval_in_it(goal):
    """With a margin, a change that is known to differ from 0 decides only if all of it is within or beyond."""
    worse, better = ("worse", "better") if goal == "minimize" else ("better", "worse")
    one = np.ones(7)
    for b, verdict in (
        (np.linspace(1.002, 1.008, 7), "equal"),
        (np.linspace(1.002, 1.02, 7), "undecided"),
        (np.linspace(1.011, 1.02, 7), worse),
        (np.linspace(0.98, 0.989, 7), better),
        (np.linspace(0.98, 0.998, 7), "undecided"),
        (np.linspace(0.98, 1.009, 7), "undecided"),
    ):
        found = fed(one, b, within="1%", goal=goal)
        assert found.verdict == verdict
        upper = b[-1] - 1 if goal == "minimize" else 1 - b[0]
        assert found.is_worse() is (True if verdict == "worse" else False if upper <= 0.01 else None)
    assert repr(found).startswith("Undecided with a margin of 1%: ")
    assert fed(one, np.linspace(1.002, 1.02, 7), goal=goal).verdict == worse


def test_an_end_beyond_zero_is_not_printed_as_zero():
    assert repr(fed([1.0] * 7, [1.001, *[1.4] * 5, 1.6])) == "B is worse than A by 40.0% (0.1% to 60.0%), 7 pairs"


def test_ties_of_a_coarse_clock_are_equal_and_not_undefined():
    comparison = fed([12.0] * 30, [12.0, 12.0, 13.0] * 10, within="1%")
    assert (comparison.estimate, comparison.lower, comparison.upper) == (0.0, 0.0, pytest.approx(1 / 12))
    assert comparison.verdict == "undecided"
    assert fed([12.0] * 30, [12.0] * 30, within="1%").verdict == "equal"


def test_a_pair_with_a_failure_does_not_count():
    b = [0.9, None, 0.9, 0.9, 0.9, 0.9, 0.9]
    comparison = fed([1.0] * 7, b)
    assert (comparison.pairs, comparison.verdict, comparison.failures) == (6, "undecided", [0, 1])
    assert repr(comparison).endswith("; B failed in 1 of 7 runs")


def test_versus_stops_for_an_option_that_only_fails():
    found = noregret.versus(lambda: 1.0, lambda: None, rng=0)
    assert (found.runs, found.broken, found.verdict) == ([5, 5], (1,), "undecided")
    assert repr(found) == "Undecided, 0 pairs; B failed in 5 of 5 runs"


def test_bad_values_change_nothing():
    comparison = Comparison(rng=0)
    option = comparison.ask()
    for value in (math.nan, math.inf, "1", True):
        with pytest.raises(ValueError, match=f"value of option {option} must be a finite number, got"):
            comparison.tell(option, value)
    with pytest.raises(ValueError, match="option must be a whole number from 0 to 1, got 2"):
        comparison.tell(2, 1.0)
    comparison.tell(option, 1.0)
    with pytest.raises(ValueError, match=rf"run now, \[{1 - option}\], got {option}"):
        comparison.tell(option, 1.0)
    with pytest.raises(ValueError, match="between blocks"):
        comparison.tell_old([1.0])
    assert sum(comparison.runs) == 1


@pytest.mark.parametrize(
    "given",
    [{"options": 1}, {"within": 0}, {"within": "1"}, {"confidence": 1}, {"goal": "best"}, {"spread": -1}, {"rng": -1}],
)
def test_bad_arguments_are_refused_by_name(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        Comparison(**given)


def test_versus_has_bounds():
    numbers = cycle([1.0, 2.0, 2.0, 1.0])
    assert sum(noregret.versus(lambda: next(numbers), lambda: next(numbers), rng=0).runs) == 400
    assert sum(noregret.versus(lambda: 1.0, lambda: 1.0, evaluations=21, rng=0).runs) == 20
    assert sum(noregret.versus(lambda: 1.0, lambda: 1.0, seconds=1e-9, rng=0).runs) <= 2
    with pytest.raises(ValueError, match="seconds"):
        noregret.versus(lambda: 1.0, lambda: 1.0, seconds=0)
    with pytest.raises(ValueError, match="evaluations"):
        noregret.versus(lambda: 1.0, lambda: 1.0, evaluations=1)


def test_old_values_of_a_pair_with_new_runs_of_b():
    comparison = Comparison(rng=0)
    comparison.tell_old(np.linspace(1.0, 1.1, 8))
    for left in range(7, -1, -1):
        assert comparison.ask() == 1
        comparison.tell(1, 0.8)
        assert comparison.old_left == left
    assert (comparison.verdict, comparison.pairs, comparison.runs) == ("better", 8, [0, 8])
    comparison.ask()
    assert sorted(comparison.awaited) == [0, 1]
    found = noregret.versus(np.linspace(1.0, 1.1, 8), lambda: 1.05, within="1%", rng=0)
    assert (found.verdict, found.old_left, found.runs) == ("undecided", 0, [0, 8])
    assert noregret.versus([1.0] * 9, lambda: 0.9, evaluations=7).runs == [0, 7]


def test_of_three_options_the_beaten_are_dropped_and_the_best_is_named():
    comparison, noise = Comparison(3, rng=0), np.random.default_rng(0)
    while not comparison.decided:
        option = comparison.ask()
        comparison.tell(option, (1.0, 0.97, 1.5)[option] * noise.lognormal(sigma=0.02))
    assert (comparison.best, comparison.verdict, comparison.remaining) == (1, "better", (1,))
    assert comparison.runs[2] < comparison.runs[0] == comparison.runs[1]
    assert comparison.estimate == comparison.intervals[1].estimate == pytest.approx(-0.03, abs=0.02)
    assert repr(comparison).startswith("B is the best of 3 options, better than A by ")


def test_of_three_options_two_may_be_equal_and_one_broken():
    comparison, noise = Comparison(4, within="3%", rng=0), np.random.default_rng(0)
    while not comparison.decided:
        option = comparison.ask()
        comparison.tell(
            option, (1.0, 2.0, None, 1.0)[option] and (1.0, 2.0, None, 1.0)[option] * noise.lognormal(sigma=0.01)
        )
    assert (comparison.verdict, comparison.best, comparison.remaining) == ("equal", None, (0, 3))
    assert comparison.runs[2] == 5
    assert repr(comparison).startswith("A and D are equal within 3%, ")


@pytest.mark.slow
def test_a_spread_compares_means_where_rare_runs_count():
    """One run of B in ten takes three times as long: the median says better, the mean says worse."""
    a, b = np.ones(2000), np.where(np.arange(2000) % 10 == 9, 3.0, 0.99)
    assert fed(a[:30], b[:30]).verdict == "better"
    assert fed(a, b, spread=0.4).verdict == "worse"
    assert noregret.versus([1.0] * 3, lambda: 2.0, spread=0.4, rng=0).spread == 0.4
