"""Statements about items, bars and quantiles: where nothing is to be found, wrong at any look in at most 5%."""

import numpy as np
import pytest

from noregret.comparison import EProcess

LOOKS = 150


def is_ever_wrong(evidence, draw, rng):
    """True if the interval excludes 0 at one of the looks."""
    for look in range(LOOKS):
        draw(evidence, rng)
        if look % 5 == 4:
            interval = evidence.interval(0.95)
            if interval.lower > 0 or interval.upper < 0:
                return True
    return False


def items(evidence, rng):
    """Two runs of each option on an item that changes both the level and, by as much up as down, the effect of B."""
    item, level, effect = len(evidence.values), rng.normal(), rng.normal()
    for _ in range(2):
        evidence.observe(level + 0.2 * rng.normal(), option=0, item=item)
        evidence.observe(level + effect + 0.2 * rng.normal(), option=1, item=item)


def shares(evidence, rng):
    """Tests that are flaky in both options, by different amounts that are 0 on average."""
    item, passes = len(evidence.values), rng.uniform(0.2, 0.8)
    for option, chance in enumerate((passes, passes + rng.choice([-0.2, 0.2]))):
        evidence.observe(bool(rng.random() < chance), option=option, item=item)


def at_the_bar(evidence, rng):
    evidence.observe(3.0 + rng.standard_t(2))


def quantiles(evidence, rng):
    for option in (0, 1):
        evidence.observe(rng.lognormal(), option=option)


def at_a_quantile(evidence, rng):
    evidence.observe(rng.exponential() / -np.log(0.1))


@pytest.mark.parametrize(
    ("draw", "given"),
    [
        (items, {"repeats": 2}),
        (shares, {"bounds": (0, 1)}),
        (at_the_bar, {"bar": 3.0}),
        (quantiles, {"quantile": 0.9}),
        (at_a_quantile, {"bar": 1.0, "quantile": 0.9}),
    ],
)
def test_where_nothing_differs_the_interval_holds_at_all_looks(draw, given):
    """200 runs: with 5%, more than 19 would be wrong in 1% of such tests only."""
    wrong = sum(is_ever_wrong(EProcess(**given), draw, np.random.default_rng(seed)) for seed in range(200))
    assert wrong <= 19


def test_repeats_of_items_as_independent_pairs_would_be_wrong():
    """The items test is one that can fail: ten items, each run again and again, are not hundreds of observations."""

    def counted_as_pairs(seed):
        rng, evidence = np.random.default_rng(seed), EProcess()
        effects = rng.normal(size=10)
        for _ in range(20):
            for effect in effects:
                evidence.observe(0.2 * rng.normal(), option=0)
                evidence.observe(effect + 0.2 * rng.normal(), option=1)
        interval = evidence.interval(0.95)
        return interval.lower > 0 or interval.upper < 0

    assert sum(map(counted_as_pairs, range(60))) > 12


def test_a_tail_that_is_longer_is_found():
    """B has the median of A and a 0.9-quantile that is half as large again: the median says nothing, the tail does."""
    rng, tail, middle = np.random.default_rng(0), EProcess(quantile=0.9), EProcess()
    for _ in range(600):
        for option, sigma in ((0, 0.5), (1, 0.82)):
            value = rng.lognormal(sigma=sigma)
            tail.observe(value, option=option)
            middle.observe(value, option=option)
    assert tail.interval().lower > 0.1
    assert tail.evalue("worse") > 40
    assert middle.interval().lower < 0 < middle.interval().upper
