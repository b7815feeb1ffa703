"""The ledger in loops of an agent: few false keeps where other rules have many, and improvements that are kept.

The limit is the level itself; the true shares are well below, as an e-value of noise rarely comes near its bound.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not part of the package

from benchmarks import ledger as loops

from noregret.comparison import Ledger


@pytest.mark.parametrize("noise", [loops.calm, loops.stalls])
def test_at_most_a_twentieth_of_the_kept_changes_is_false(noise):
    found = loops.simulated(20, 2.0, noise, loops=100, seed=3)
    false, kept = found["ledger"]
    assert false <= 0.05
    assert kept > 0.3
    assert min(found[rule][0] for rule in ("best of one", "MAD")) > 0.3


def test_improvements_of_one_deviation_are_kept_with_more_runs():
    kept = [loops.simulated(runs, 1.0, loops=100, seed=4)["ledger"][1] for runs in (20, 80)]
    assert kept[0] < 0.1
    assert kept[1] > 0.5


def test_without_any_improvement_false_keeps_are_rare():
    """Then each keep is false: of 400 loops of 200 proposals of 40 pairs, at most 5% keep any."""
    rng, false = np.random.default_rng(5), 0
    for _ in range(400):
        false += loops.kept_by_ledger(loops.highest(rng.standard_normal((200, 40)), False)).any()
    assert 0 < false <= 20


def test_the_bound_is_reached_by_evalues_that_are_all_or_nothing():
    """An e-value of 1 / alpha_t with probability alpha_t, else 0: the share of false keeps is close to 5%, and below.

    So the test above can fail: with a threshold that is half as high, it would be near 10%.
    """
    rng, shares = np.random.default_rng(6), []
    for _ in range(4000):
        ledger, false = Ledger(), 0
        for _ in range(200):
            threshold = ledger.threshold
            false += ledger.judge(threshold if rng.random() < 1 / threshold else 0.0)
        shares.append(false > 0)
    assert 0.03 < np.mean(shares) <= 0.05
