"""Suites without a change: any alarm at any time in at most 5%; a slowdown of one name is found."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not part of the package

from benchmarks import suites

from noregret import Suite

COUNT = 200


@pytest.fixture(scope="module")
def same():
    """Suites of 40 equal benchmarks on a machine that drifts and stalls."""
    return np.array([suites.times(60, 0.0, np.random.default_rng([seed, 7])) for seed in range(COUNT)])


def test_without_a_change_few_suites_have_an_alarm_at_any_time(same):
    """The share is at most the level; it is well below it here, so no margin is needed."""
    assert np.isfinite(suites.found_at(same[:, :, 1] - same[:, :, 0])).any(axis=1).sum() <= 0.05 * COUNT


def test_rules_for_single_benchmarks_give_many_false_alarms(same):
    """The check above can fail: t-tests of each name do not pass it, nor do e-values without the number of names."""
    assert sum(suites.differ(suite[:10]).any() for suite in same) > 0.3 * COUNT
    each = [suites.found_at((same[:, :, 1] - same[:, :, 0])[:, :, [name]]) for name in range(40)]
    assert np.isfinite(np.hstack(each)).any(axis=1).sum() > 0.3 * COUNT


def test_names_that_move_together_give_few_suites_with_an_alarm():
    """All names have the same noise: the strongest dependence."""
    rng = np.random.default_rng(8)
    differences = np.repeat(rng.standard_t(2, (COUNT, 60, 1)), 40, axis=2)
    assert np.isfinite(suites.found_at(differences)).any(axis=1).sum() <= 0.05 * COUNT


def test_a_slowdown_of_one_benchmark_is_found_and_few_others_are_named():
    found = np.array([suites.times(60, 0.05, np.random.default_rng([seed, 9])) for seed in range(COUNT)])
    pairs = suites.found_at(found[:, :, 1] - found[:, :, 0])
    assert np.median(pairs[:, 0]) <= 24
    assert np.isfinite(pairs[:, 0]).mean() >= 0.95
    alarms = np.isfinite(pairs)
    assert (alarms[:, 1:].sum(axis=1) / np.maximum(alarms.sum(axis=1), 1)).mean() <= 0.05


def test_a_suite_finds_what_the_table_says(same):
    """`Suite` on the data of the vectorised check: the same names after the same pairs."""
    for seed, data in enumerate([same[0], *(suites.times(60, 0.1, np.random.default_rng([s, 10])) for s in range(2))]):
        names = [f"name {i}" for i in range(40)]
        suite, found = Suite(names, rng=seed), np.full(40, np.inf)
        for pair, values in enumerate(np.exp(data[:30]), 1):
            for _ in range(2):
                option = suite.ask()
                suite.tell(option, dict(zip(names, values[option].tolist(), strict=True)))
            decided = [name not in suite.undecided for name in names]
            found[np.isinf(found) & decided] = pair
        expected = suites.found_at((data[:, 1] - data[:, 0])[None, :30])[0]
        np.testing.assert_array_equal(found, expected)
    assert np.isfinite(expected[0])
