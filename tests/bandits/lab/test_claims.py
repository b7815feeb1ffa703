"""Intervals against their definition, and their verdicts."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp
from scipy.stats import t as student

from noregret import Trace
from noregret.bandits.lab.figure import Below, Fraction, MeanBelow, decided, final_regret, ratio_of_means, seconds
from noregret.bandits.lab.trace import Interval, fraction_interval


def trace(regret, time=1.0):
    regret = np.atleast_1d(np.asarray(regret, float))
    return Trace(np.zeros(len(regret), int), -regret, regret, time, "mine", "toy", {})


def test_the_interval_ends_where_a_paired_t_test_starts_to_reject():
    rng = np.random.default_rng(0)
    second = rng.gamma(5, size=12)
    first = 0.7 * second + rng.gamma(2, 0.3, size=12)
    ratio = ratio_of_means(first, second)
    assert ratio.value == pytest.approx(first.mean() / second.mean())
    for end in (ratio.low, ratio.high):
        assert ttest_1samp(first - end * second, 0).pvalue == pytest.approx(0.05)


def test_the_interval_covers_the_true_ratio_as_often_as_it_says():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(1000):
        noise = rng.standard_normal((2, 15))
        ratio = ratio_of_means(3 + noise[0], 6 + noise[0] + noise[1])
        inside += ratio.low <= 0.5 <= ratio.high
    assert inside / 1000 == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0], [2.0], Interval(0.5, 0.0, math.inf)),  # one trial decides nothing
        ([1.0, 2.0], [0.0, 1.0], Interval(3.0, 0.0, math.inf)),  # both means may be 0
        ([0.0, 0.0], [0.0, 0.0], Interval(math.inf, 0.0, math.inf)),
        ([1.0, 1.0], [0.0, 0.0], Interval(math.inf, math.inf, math.inf)),  # the second mean is 0, the first is not
        ([0.0, 0.0], [1.0, 1.1], Interval(0.0, 0.0, 0.0)),
    ],
)
def test_ratios_at_the_edge(first, second, expected):
    assert ratio_of_means(first, second) == expected


def results(**regrets):
    return {"panel": {label: [trace(value) for value in values] for label, values in regrets.items()}}


def test_where_only_the_second_mean_may_be_0_the_interval_still_begins_where_the_t_test_rejects():
    first, second = np.array([1.0, 1.2, 0.9, 1.1]), np.array([0.0, 0.1, 0.0, 2.0])
    ratio = ratio_of_means(first, second)
    assert ratio.high == math.inf
    assert ttest_1samp(first - ratio.low * second, 0).pvalue == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        (Interval(0.5, 0.4, 0.6), "as the paper says"),
        (Interval(1.5, 1.1, 1.9), "against the paper"),
        (Interval(0.9, 0.8, 1.1), "undecided"),
        (Interval(0.466, 0.0, math.inf), "undecided"),
        (Interval(1.5, 1.0, 2.0), "undecided"),  # it contains the threshold
        (Interval(math.inf, math.inf, math.inf), "against the paper"),
    ],
)
def test_an_interval_that_contains_the_threshold_decides_nothing(interval, outcome):
    assert decided(interval, 0.0, 1.0) == outcome


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        (Interval(1.0, 0.95, 1.05), "as the paper says"),
        (Interval(0.5, 0.4, 0.6), "against the paper"),
        (Interval(1.0, 0.85, 1.05), "undecided"),
        (Interval(1.0, 0.5, 1.5), "undecided"),
    ],
)
def test_between_two_thresholds(interval, outcome):
    assert decided(interval, 0.9, 1.1) == outcome


def test_below_needs_every_ratio_and_is_refuted_by_one():
    found = results(low=[1.0, 1.1, 0.9], high=[2.0, 2.2, 1.9], near=[1.0, 1.05, 0.9])
    assert Below("panel", "low", ["high"])(found).outcome == "as the paper says"
    assert Below("panel", "low", ["high", "near"])(found).outcome == "undecided"
    assert Below("panel", "low", ["high"], 0.5)(found).outcome == "undecided"
    assert Below("panel", "high", ["low", "near"])(found).outcome == "against the paper"
    assert Below("panel", "near", ["high", "low"], 0.7)(found).outcome == "against the paper"
    assert Below("panel", "low", ["near"], 1.3, above=0.7)(found).outcome == "as the paper says"
    assert Below("panel", "low", ["high"], 1.3, above=0.7)(found).outcome == "against the paper"
    numbers = Below("panel", "low", ["high"])(found).numbers
    assert numbers.startswith("regret: low / high = 0.492 [")
    assert numbers.endswith("; below 1 needed")


def test_other_numbers_than_regret_can_be_compared():
    found = {"panel": {"a": [trace(1, 0.1)] * 3, "b": [trace(1, 0.5)] * 3}}
    finding = Below("panel", "a", ["b"], 0.3, of=seconds, what="time")(found)
    assert finding.outcome == "as the paper says"
    assert "time: a / b = 0.2 [0.2, 0.2]" in finding.numbers


def test_mean_below_is_students_interval():
    values = [0.1, 0.4, 0.2, 0.3]
    half = student.ppf(0.975, 3) * np.std(values, ddof=1) / 2

    def outcome(bound, of=values):
        return MeanBelow("panel", "a", final_regret, bound, "x")(results(a=of)).outcome

    assert outcome(0.25 + half + 1e-9) == "as the paper says"
    assert outcome(0.25 + half - 1e-9) == outcome(0.25 - half + 1e-9) == "undecided"
    assert outcome(0.25 - half - 1e-9) == "against the paper"
    assert outcome(10.0, of=[0.1]) == "undecided"


def test_fraction_is_clopper_and_pearsons_interval():
    def small(trial):
        return final_regret(trial) < 1

    def finding(yes, no):
        return Fraction("panel", "a", small, 0.8, "small")(results(a=[0.0] * yes + [2.0] * no))

    assert finding(20, 0).outcome == "as the paper says"  # 0.025^(1/20) = 0.83
    assert finding(10, 0).outcome == "undecided"  # 0.025^(1/10) = 0.69
    assert finding(16, 4).outcome == "undecided"
    assert finding(0, 20).outcome == finding(5, 15).outcome == "against the paper"
    assert finding(19, 1).numbers == "small: 19 of 20 trials = 0.95 [0.751, 0.999]; above 0.8 needed"


def test_clopper_and_pearsons_interval_is_scipys():
    for yes, n in ((0, 10), (3, 10), (10, 10), (187, 200)):
        expected = binomtest(yes, n).proportion_ci(method="exact")
        assert fraction_interval(yes, n) == pytest.approx((yes / n, expected.low, expected.high))
