"""A against B: false alarms at any time, coverage at random and adversarial stopping times, more than two options.

Each share may exceed the level only by luck: the limit is the level itself, and the true shares are well below, because
comparisons end after a limited number of pairs.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not part of the package

from benchmarks import versus

from noregret.comparison import Comparison, bounded_sequence, catoni_sequence, median_sequence
from noregret.comparison.comparison import FAILURE_SHARE
from noregret.comparison.sequences import log_stake


@pytest.mark.parametrize("condition", versus.CONDITIONS)
def test_without_a_difference_false_alarms_at_any_time_are_rare(condition):
    """At most 5% of 300 comparisons of up to 100 pairs, whatever the machine does."""
    alarms = [
        versus.compared(condition(200, np.random.default_rng([seed, 3])), 0.0, seed).decided for seed in range(300)
    ]
    assert 0 <= sum(alarms) <= 15


def test_rules_that_are_no_sequences_give_many_false_alarms():
    """The check above can fail: a t-test that is read after each pair does not pass it."""
    alarms = [versus.peeking(versus.calm(200, np.random.default_rng(seed)), seed) for seed in range(300)]
    assert sum(alarms) > 60


SKEWED = 300
"""Sequences of values with different noise of A and B, so that the differences are not symmetric."""


def _skewed(rng, shape):
    """Noise of B is exponential, that of A is normal; the median of B - A, by a sample of 4 million."""
    return rng.exponential(1.0, shape) - 0.3 * rng.standard_normal(shape)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_of_the_median_holds_at_the_worst_and_at_a_random_time(confidence):
    rng = np.random.default_rng(5)
    truth, times = float(np.median(_skewed(rng, 4_000_000))), range(1, 151)
    worst = late = 0
    for values in _skewed(rng, (SKEWED, len(times))):
        missed = [
            not lower <= truth <= upper for _, lower, upper in (median_sequence(values[:n], confidence) for n in times)
        ]
        worst += any(missed)
        late += missed[rng.integers(len(times))]
    assert late <= worst <= (1 - confidence) * SKEWED


def test_the_interval_of_a_coarse_clock_holds_the_median():
    """Ten of the eleven sizes of D are ties with others; its median is 0 because the noise is symmetric."""
    rng, missed = np.random.default_rng(6), 0
    for values in rng.integers(-5, 6, (200, 150)):
        ends = [median_sequence(values[:n], 0.8)[1:] for n in range(1, 151)]
        missed += any(not lower <= 0 <= upper for lower, upper in ends)
    assert missed <= 40


@pytest.mark.parametrize(("freedom", "moment"), [(3.0, 2.0), (1.8, 1.5)])
def test_catonis_interval_of_the_mean_holds_at_the_worst_time(freedom, moment):
    """Student's noise; with 1.8 degrees of freedom it has no variance."""
    tail, _ = quad(lambda x: 2 * x**moment * student.pdf(x, freedom), 0, math.inf)
    rng, missed = np.random.default_rng(7), 0
    for values in 4.0 + rng.standard_t(freedom, (100, 300)):
        ends = [catoni_sequence(values[:n], tail ** (1 / moment), 0.8, moment)[1:] for n in range(10, 301, 10)]
        missed += any(not lower <= 4 <= upper for lower, upper in ends)
    assert missed <= 20


def test_of_equal_options_none_is_dropped():
    """Five options and stalls: at most 5% of 200 comparisons of 60 blocks drop one."""
    dropped = 0
    for seed in range(200):
        comparison, rng = Comparison(5, rng=seed), np.random.default_rng([seed, 4])
        for value in np.exp(versus.stalls(300, rng)):
            comparison.tell(comparison.ask(), float(value))
        dropped += len(comparison.remaining) < 5
    assert dropped <= 10


def test_the_best_of_four_options_is_named():
    """Differences of 5% and 20%, noise 2% and stalls: all of 100 comparisons are decided, at most 5% are wrong."""
    means, runs, wrong = (1.05, 1.0, 1.2, 1.2), [], 0
    for seed in range(100):
        comparison, rng = Comparison(4, rng=seed), np.random.default_rng([seed, 5])
        conditions = iter(np.exp(versus.stalls(800, rng)))
        while not comparison.decided:
            option = comparison.ask()
            comparison.tell(option, means[option] * float(next(conditions)))
        wrong += comparison.best != 1
        runs.append(comparison.runs)
    assert wrong <= 5
    assert np.mean(runs, axis=0)[2:].max() < np.mean(runs, axis=0)[1]


def test_old_values_give_few_false_alarms_on_an_unchanged_machine():
    """At most 5% of 300 comparisons with 60 old values."""
    alarms = 0
    for seed in range(300):
        comparison, rng = Comparison(rng=seed), np.random.default_rng([seed, 6])
        old, new = np.exp(versus.stalls(120, rng)).reshape(2, 60)
        comparison.tell_old(old)
        for value in new:
            comparison.tell(comparison.ask(), float(value))
            if comparison.decided:
                alarms += 1
                break
    assert alarms <= 15


def _coins(rate):
    return lambda rng, shape: (rng.random(shape) < rate).astype(float), rate


def _ties(rng, shape):
    """Differences of two runs that pass in 10%: most are ties."""
    return (1 + (rng.random(shape) < 0.1).astype(float) - (rng.random(shape) < 0.1)) / 2


@pytest.mark.parametrize(
    ("draw", "mean"),
    [_coins(0.5), _coins(0.01), (lambda rng, shape: rng.random(shape), 0.5), (_ties, 0.5)],
    ids=["coin", "rare", "uniform", "ties"],
)
def test_the_interval_of_a_bounded_mean_holds_at_all_times_together(draw, mean):
    """At 80%, so that misses occur: at most 20% of 200 sequences."""
    rng, missed = np.random.default_rng(3), 0
    for values in draw(rng, (200, 200)):
        ends = [bounded_sequence(values[:n], confidence=0.8)[1:] for n in range(1, 201, 3)]
        missed += any(not lower <= mean <= upper for lower, upper in ends)
        assert ends[-1][1] - ends[-1][0] < 0.25
    assert missed <= 40


def _passes(rates, seed):
    """The verdict of up to 150 pairs of runs that pass at these rates."""
    comparison, rng = Comparison(goal="maximize", rng=seed), np.random.default_rng([seed, 8])
    while comparison.pairs < 150 and not comparison.decided:
        option = comparison.ask()
        comparison.tell(option, float(rng.random() < rates[option]))
    return comparison.verdict


@pytest.mark.parametrize("rate", [0.5, 0.99])
def test_equal_rates_are_rarely_said_to_differ(rate):
    """At most 5% of 200 comparisons."""
    assert [_passes((rate, rate), seed) for seed in range(200)].count("undecided") >= 190


def test_equal_options_that_fail_are_rarely_said_to_differ():
    """Both fail in a quarter of their runs: at most 5% of 200 comparisons of up to 150 pairs."""
    verdicts = []
    for seed in range(200):
        comparison, rng = Comparison(rng=seed), np.random.default_rng([seed, 9])
        while comparison.pairs < 150 and not comparison.decided:
            comparison.tell(comparison.ask(), None if rng.random() < 0.25 else rng.lognormal(sigma=0.02))
        verdicts.append(comparison.verdict)
    assert verdicts.count("undecided") >= 190


def _reached(threshold, tosses):
    """Bound on the probability that the stake of a fair coin ever reaches a threshold, as its mean stays 1."""
    chances, reached, spent = np.array([1.0]), 0.0, 0.0
    for count in range(1, tosses + 1):
        chances = 0.5 * (np.append(chances, 0.0) + np.append(0.0, chances))
        for losses in range(count + 1):
            stake = math.exp(log_stake(count - losses, losses))
            if stake < threshold:
                break
            reached += chances[losses]
            spent += chances[losses] * stake
            chances[losses] = 0.0
    return reached + (1 - spent) / threshold


@pytest.mark.parametrize("confidence", [0.585, 0.8, 0.9, 0.95, 0.9625, 0.97997, 0.99, 0.999, 0.9999])
def test_changes_and_failures_share_the_risk(confidence):
    """A stake jumps beyond its threshold, which leaves enough for "fails more often" at a twentieth of the level."""
    risk = 1 - confidence
    assert 2 * _reached(2 / risk, 300) + 2 * _reached(2 / (FAILURE_SHARE * risk), 300) <= risk


def _after_b(effect, seed):
    comparison, rng, last = Comparison(rng=seed), np.random.default_rng([seed, 7]), 0
    for _ in range(100):
        option = comparison.ask()
        comparison.tell(option, math.exp(0.02 * rng.standard_normal() + effect * last))
        last = option
    return comparison


def test_a_warning_of_carry_over_is_rarely_false():
    """Level 1%; of 400, at most 1% and three standard errors."""
    assert sum(bool(_after_b(0.0, seed).warnings) for seed in range(400)) <= 10
