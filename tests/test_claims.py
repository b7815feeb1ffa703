"""Intervals against their definition, and which side of the bound they decide for."""

import math

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from noregret import Trace
from noregret.experiments.judging.claims import Below, Fraction, MeanBelow, final_regret, ratio_of_means, seconds
from noregret.experiments.running.summary import Interval


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
        ([1.0, 2.0], [0.0, 1.0], Interval(3.0, 0.0, math.inf)),  # the second mean may be 0
        ([1.0, 1.0], [0.0, 0.0], Interval(math.inf, 0.0, math.inf)),
        ([0.0, 0.0], [1.0, 1.1], Interval(0.0, 0.0, 0.0)),
    ],
)
def test_ratios_at_the_edge(first, second, expected):
    assert ratio_of_means(first, second) == expected


def results(**regrets):
    return {"panel": {label: [trace(value) for value in values] for label, values in regrets.items()}}


def test_below_needs_the_whole_interval_of_every_ratio():
    found = results(low=[1.0, 1.1, 0.9], high=[2.0, 2.2, 1.9], near=[1.0, 1.05, 0.9])
    assert Below("panel", "low", ["high"])(found).holds
    assert not Below("panel", "low", ["high", "near"])(found).holds
    assert not Below("panel", "low", ["high"], 0.5)(found).holds
    assert Below("panel", "low", ["near"], 1.3, above=0.7)(found).holds
    assert not Below("panel", "low", ["high"], 1.3, above=0.7)(found).holds
    numbers = Below("panel", "low", ["high"])(found).numbers
    assert numbers.startswith("regret: low / high = 0.492 [")
    assert numbers.endswith("; below 1 needed")


def test_other_numbers_than_regret_can_be_compared():
    found = {"panel": {"a": [trace(1, 0.1)] * 3, "b": [trace(1, 0.5)] * 3}}
    finding = Below("panel", "a", ["b"], 0.3, of=seconds, what="time")(found)
    assert finding.holds
    assert "time: a / b = 0.2 [0.2, 0.2]" in finding.numbers


def test_mean_below_is_students_interval():
    values = [0.1, 0.4, 0.2, 0.3]
    half = student.ppf(0.975, 3) * np.std(values, ddof=1) / 2
    found = results(a=values)
    assert MeanBelow("panel", "a", final_regret, 0.25 + half + 1e-9, "x")(found).holds
    assert not MeanBelow("panel", "a", final_regret, 0.25 + half - 1e-9, "x")(found).holds
    assert not MeanBelow("panel", "a", final_regret, 10.0, "x")(results(a=[0.1])).holds


def test_fraction_is_clopper_and_pearsons_bound():
    def small(trial):
        return final_regret(trial) < 1

    all_of_them = Fraction("panel", "a", small, 0.8, "small")
    assert all_of_them(results(a=[0.0] * 20)).holds  # 0.05^(1/20) = 0.86
    assert not all_of_them(results(a=[0.0] * 10)).holds  # 0.05^(1/10) = 0.74
    assert not all_of_them(results(a=[2.0] * 20)).holds
    assert "small: 19 of 20 trials" in all_of_them(results(a=[0.0] * 19 + [2.0])).numbers
