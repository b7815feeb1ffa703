"""`Ledger`: the thresholds of a chain of changes."""

import math

import pytest

import noregret
from noregret.comparison import Comparison, Ledger


def test_the_shares_of_all_proposals_are_positive_and_sum_to_one():
    shares = [1 / (0.05 * Ledger(proposals=count).threshold) for count in range(100_000)]
    assert min(shares) > 0
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1 - math.sqrt(10 / 100_010))


def test_each_keep_lowers_the_threshold_as_a_rule_of_discoveries_does():
    ledger = Ledger(0.1)
    first = ledger.threshold
    assert not ledger.judge(first * (1 - 1e-12))
    assert ledger.judge(ledger.threshold)
    assert (ledger.proposals, ledger.kept) == (2, 1)
    assert ledger.threshold == pytest.approx(Ledger(0.1, proposals=2).threshold / 2)
    assert ledger.threshold == Ledger(0.1, proposals=2, kept=1).threshold
    assert ledger.judge(math.inf)
    assert noregret.Ledger is Ledger


def test_a_comparison_at_its_confidence_is_enough_for_a_keep():
    """And not more than one pair too long: one pair earlier the e-value was too small."""
    ledger = Ledger(proposals=30, kept=2)
    comparison = Comparison(confidence=ledger.confidence, rng=0)
    while not comparison.decided:
        before = comparison.evalue()
        for option in (0, 1):
            comparison.tell(option, [2.0, 1.0][option] + comparison.pairs * 1e-3)
    assert before < ledger.threshold <= comparison.evalue()
    assert ledger.judge(comparison.evalue())


@pytest.mark.parametrize("evalue", [-1.0, math.nan, None, "3", True])
def test_what_is_no_evalue_is_refused_and_counts_for_nothing(evalue):
    ledger = Ledger()
    with pytest.raises(ValueError, match=r"an e-value must be a number of at least 0, got .*: give that of"):
        ledger.judge(evalue)
    assert (ledger.proposals, ledger.kept) == (0, 0)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        Ledger(1.0)
    with pytest.raises(ValueError, match="kept must be from 0 to the number of proposals, got 3 of 2"):
        Ledger(proposals=2, kept=3)
