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


def test_ties_widen_both_ends_by_a_tick_and_are_never_equal():
    """Ticks are off by half of one each; where most pairs are tied, bounds or a finer clock are needed."""
    comparison = fed([12.0] * 30, [12.0, 12.0, 13.0] * 10, within="1%")
    assert (comparison.estimate, comparison.lower) == (0.0, pytest.approx(12 / 13 - 1))
    assert comparison.upper == pytest.approx((13 / 12) ** 2 - 1)
    assert comparison.verdict == "undecided"
    assert "Most pairs are tied" in comparison.warnings[0]
    assert "give the bounds" in repr(comparison)
    assert fed([12.0] * 30, [12.0] * 30, within="1%").verdict == "undecided"
    few = fed([12.0] * 30, [12.0, 13.0, 11.0] * 10, within="1%")
    assert few.warnings == ["The clock is too coarse for a margin of 1%: measure longer runs"]
    assert fed(np.linspace(10, 12, 30), np.linspace(10, 12, 30) * 1.001, within="1%").warnings == []


def test_ticks_do_not_hide_a_direction():
    """Readings that differ show which value is larger, however coarse the clock is."""
    a, b = [10.0] * 30, [10.0, *[11.0] * 29]
    assert fed(a, b).verdict == "worse"
    assert 0 < fed(a, b).lower < 1e-6
    assert fed(a, b, within="5%").verdict == "undecided"


def test_a_failed_run_loses_its_pair_and_two_are_a_tie():
    b = [0.9, None, *[0.9] * 11]
    comparison = fed([1.0] * 13, b)
    assert (comparison.pairs, comparison.failures) == (13, [0, 1])
    assert (comparison.lower, comparison.upper) == pytest.approx((-0.1, -0.1))
    few = fed([1.0] * 7, b[:7])
    assert (few.verdict, few.lower, few.upper) == ("undecided", pytest.approx(-0.1), math.inf)
    assert repr(few) == "Undecided: -10% (-10% to no limit), 7 pairs; B failed in 1 of 7 runs"
    assert fed([1.0] * 7, b[:7], goal="maximize").lower == -math.inf
    both = fed([1.1, None] * 10, [1.2, None] * 10)
    assert (both.lower, both.upper) == (0.0, pytest.approx(1.2 / 1.1 - 1))
    lost = fed([1.5] * 9, [None, 1.0] * 4 + [None])
    assert (lost.estimate, lost.upper) == (math.inf, math.inf)
    assert repr(lost) == "Undecided: not known (-33.33% to no limit), 9 pairs; B failed in 5 of 9 runs"
    assert "nan" not in repr(fed([None] * 9, [None] * 9))


def test_a_single_failure_holds_back_better_and_equal_but_not_worse():
    a = np.linspace(1, 2, 13)
    slow = fed([None, *a], [1.0, *(0.9 * a)])
    assert repr(slow).startswith("B is better than A by 10% (")
    fast = fed([1.0, *a], [None, *(0.9 * a)])
    assert (fast.verdict, fast.best, fast.is_worse()) == ("undecided", None, None)
    assert repr(fast).startswith("Undecided, as B has failed more often than A: -10")
    assert fed([1.0, *a], [None, *(0.9 * a)], within="20%").verdict == "undecided"
    assert fed([None, *a], [1.0, *(1.1 * a)]).verdict == "worse"
    even = fed([None, 1.0, *a, *a], [1.0, None, *(0.9 * a), *(0.9 * a)])
    assert even.verdict == "better"


def test_versus_stops_for_an_option_that_only_fails():
    found = noregret.versus(lambda: 1.0, lambda: None, rng=0)
    assert (found.runs, found.broken, found.verdict) == ([5, 5], (1,), "undecided")
    assert repr(found) == "Undecided: not known (no limit to no limit), 5 pairs; B failed in 5 of 5 runs"


def pass_or_fail(rates, seed, pairs=300, **options):
    """A comparison of options that pass at these rates."""
    return fed(
        *(np.random.default_rng(seed).random((2, pairs)) < np.transpose([rates])) * 1.0, goal="maximize", **options
    )


@pytest.mark.slow
def test_more_runs_that_pass_are_better():
    check_passes(None, seeds=4)


def check_passes(bounds, seeds):
    """Raise AssertionError unless B, which passes 75%, beats A, 50%, by 5 points: "equal" in 17 of 20 before."""
    found = [pass_or_fail((0.5, 0.75), seed, within=0.05, bounds=bounds) for seed in range(seeds)]
    assert [each.verdict for each in found].count("better") >= seeds - 1
    assert np.median([each.estimate for each in found]) == pytest.approx(0.25, abs=0.05)
    assert {each.quantity for each in found} == {"difference of means"}
    assert all(each.verdict == "undecided" for each in (pass_or_fail((0.5, 0.5), seed) for seed in range(seeds)))


def test_results_say_which_quantity_they_are_about():
    found = fed([True, False] * 20, [True] * 40, goal="maximize")
    assert (found.bounds, found.quantity, found.is_relative) == ((0.0, 1.0), "difference of means", False)
    assert repr(found).startswith("B is better than A: 50 points more runs pass (")
    assert "points fewer runs fail" in repr(fed([True, False] * 20, [False] * 40))
    scores = fed([3.0, 5.0] * 20, [6.0, 4.5] * 20, bounds=(0, 10))
    assert repr(scores).startswith("Undecided: mean 1.25 higher (")
    assert fed([1.1], [1.2]).quantity == "median change"
    assert fed([1.1], [1.2], spread=0.3).quantity == "mean change"


def test_values_are_recognised_by_their_first_block():
    """Only comparisons that begin with 0 and 1 share their risk between two quantities."""
    a = np.linspace(1, 2, 8)
    assert fed(a[:7], 0.9 * a[:7]).verdict == "better"
    assert fed([1.0] * 7, [0.9] * 7).verdict == "better"
    late = [1.0, *0.5 * a[1:]]
    assert fed(a[:7], late[:7]).quantity == "median change"
    assert fed(a[:7], late[:7]).verdict == "undecided"
    assert fed([1.0, *a, *a], [1.0, *0.5 * a, *0.5 * a]).verdict == "better"
    assert (fed([1.0] * 3, [0.0] * 3).quantity, fed([1.0] * 4, [0, 0, 0, 0.5]).quantity) == (
        "difference of means",
        "median change",
    )


def test_with_bounds_a_failed_run_counts_as_the_worse_one():
    a, b = [0.5] * 40, [0.7, None] * 20
    for goal, change in (("maximize", -0.15), ("minimize", 0.35)):
        found = fed(a, b, bounds=(0, 1), goal=goal)
        assert found.estimate == pytest.approx(change)
        assert not found.fails_more()
    assert fed([True] * 20, [None, True] * 10, goal="maximize").estimate == -0.5


def test_a_value_outside_the_bounds_changes_nothing():
    comparison = Comparison(bounds=(0, 1), rng=0)
    option = comparison.ask()
    for value in (1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match=f"value of option {option} must be"):
            comparison.tell(option, value)
    assert comparison.runs == [0, 0]
    with pytest.raises(ValueError, match=r"within the bounds, 0 to 1, got 1.5"):
        Comparison(bounds=(0, 1)).tell_old([0.5, 1.5])
    passed = Comparison(rng=0)
    passed.tell(passed.ask(), True)
    with pytest.raises(ValueError, match="within the bounds, 0 to 1, got 2"):
        passed.tell(passed.ask(), 2.0)


def test_a_percent_with_bounds_is_a_part_of_their_range():
    assert Comparison(bounds=(0, 50), within="2%").margin() == 1.0
    assert fed([1.0] * 3, [0.0] * 3, within="5%").margin() == 0.05


def test_bad_values_change_nothing():
    comparison = Comparison(rng=0)
    option = comparison.ask()
    for value in (math.nan, math.inf, "1"):
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
    [
        {"options": 1},
        {"within": 0},
        {"within": "1"},
        {"confidence": 1},
        {"goal": "best"},
        {"spread": -1},
        {"rng": -1},
        {"bounds": (1, 0)},
        {"bounds": 1},
        {"bounds": (0, 1), "spread": 1},
    ],
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


def test_the_last_option_must_beat_those_that_were_dropped():
    """B beats C while A stalls; then A beats B, and A is named only after it has beaten C."""
    comparison, asked = Comparison(3, rng=0), []
    while not comparison.decided:
        option = comparison.ask()
        stalls = comparison.pairs < 20 and comparison.pairs % 2
        comparison.tell(option, ((3.0 if stalls else 1.0), 1.1, 1.3)[option])
        if comparison.remaining == (0,):
            asked.append(option)
    assert comparison.best == 0
    assert comparison.is_worse(2, 0) is comparison.is_worse(1, 0) is True
    assert comparison.runs[2] < comparison.runs[0]


def after_b(effect, seed, pairs=50):
    """A comparison in which a run after B takes longer by this effect."""
    comparison, rng, last = Comparison(rng=seed), np.random.default_rng([seed, 7]), 0
    for _ in range(2 * pairs):
        option = comparison.ask()
        comparison.tell(option, math.exp(0.02 * rng.standard_normal() + effect * last))
        last = option
    return comparison


@pytest.mark.slow
def test_a_run_that_slows_the_next_one_is_remarked():
    """At a level of 1%; 5% slower after B, noise 2%, 50 pairs."""
    found = [after_b(0.05, seed).warnings for seed in range(5)]
    assert sum(map(bool, found)) >= 4
    assert "higher than a run after A, so the change is biased" in next(filter(None, found))[0]
    assert sum(bool(after_b(0.0, seed).warnings) for seed in range(10)) <= 1
