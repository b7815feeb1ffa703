"""Evidence: intervals and e-values follow from the same bets, and no claim that is false gains on average."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from noregret.comparison import Comparison, EProcess, quantile_sequence, versus

KINDS = {
    "median": {},
    "mean": {"bounds": (0, 1)},
    "quantile": {"quantile": 0.9},
    "bar": {"bar": 0.6},
    "mean and bar": {"bar": 0.6, "bounds": (0, 1)},
    "quantile and bar": {"bar": 0.9, "quantile": 0.9},
}


def filled(evidence, pairs, rng, shift=0.0):
    for _ in range(pairs):
        if evidence.bar is None:
            evidence.observe(rng.uniform(), option=0)
        evidence.observe(min(rng.uniform() + shift, 1.0))
    return evidence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shift", [0.0, 0.2, 0.6])
def test_the_interval_excludes_zero_exactly_if_the_evidence_of_a_difference_is_enough(kind, shift):
    evidence, rng, decided = EProcess(**KINDS[kind]), np.random.default_rng(1), 0
    for _ in range(12):
        filled(evidence, 10, rng, shift)
        for level in (0.5, 0.8, 0.95, 0.99):
            interval, evalue = evidence.interval(level), evidence.evalue("different")
            is_excluded = not interval.lower <= 0 <= interval.upper
            assert is_excluded == (evalue >= 1 / (1 - level))
            decided += is_excluded
    assert decided > 0 or shift < 0.6


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_claims_are_those_of_the_verdict(goal):
    rng = np.random.default_rng(2)
    for shift in (0.5, 1.0, 1.04, 2.0):
        comparison = Comparison(within=0.1, goal=goal, rng=0)
        for _ in range(300):
            option = comparison.ask()
            comparison.tell(option, rng.lognormal(sigma=0.1) * (shift if option else 1.0))
        enough = {claim: comparison.evalue(claim) >= 2 / 0.05 for claim in ("better", "worse", "equal")}
        shown = [claim for claim, is_so in enough.items() if is_so]
        assert shown == ([] if comparison.verdict == "undecided" else [comparison.verdict])


@pytest.mark.parametrize("claim", ["better", "worse", "different"])
def test_a_fair_coin_gains_nothing_on_average(claim):
    """All 2^8 results of eight fair pairs: the mean of the evidence is at most 1, and stays above 0.5."""
    values = []
    for wins in product((1.0, 2.0), repeat=8):
        evidence = EProcess(bar=1.5)
        for value in wins:
            evidence.observe(value)
        values.append(evidence.evalue(claim))
    assert 0.5 <= np.mean(values) <= 1 + 1e-9


def test_evidence_about_a_quantile_gains_nothing_on_average():
    """Whatever the cut, the smaller of two bets is one on a false claim: the mean at a stopping time is at most 1."""
    rng, values = np.random.default_rng(3), []
    for _ in range(400):
        evidence = EProcess(quantile=0.8)
        for _ in range(8):
            filled(evidence, 5, rng)
            if evidence.evalue("worse") > 2:
                break
        values.append(evidence.evalue("worse"))
    assert np.mean(values) + 2 * np.std(values) / math.sqrt(len(values)) < 1


def test_a_quantile_sequence_is_between_order_statistics_that_a_binomial_test_does_not_refute():
    values = np.arange(1000.0)
    _, lower, upper = quantile_sequence(values, 0.9)
    assert lower < 900 < upper
    for end, exact in zip((lower, upper), (binom.ppf(0.025, 1000, 0.9), binom.ppf(0.975, 1000, 0.9)), strict=True):
        assert 1 < abs(end - 900) / abs(exact - 900) < 2.5  # valid at all times: wider than at one
    with pytest.raises(ValueError, match="quantile must be between 0 and 1"):
        quantile_sequence(values, 1.0)


def test_an_item_counts_once():
    rng = np.random.default_rng(4)
    once, often = (Comparison(rng=0) for _ in range(2))
    for item in range(8):
        effect = rng.normal()  # of this item, in both options
        for comparison, repeats in ((once, 1), (often, 6)):
            for _ in range(repeats):
                for _ in range(2):
                    option = comparison.ask()
                    comparison.tell(option, 10 + effect + option * (1 + 0.1 * effect), item=f"item {item}")
    assert once.pairs == often.pairs == 8
    assert once.intervals == often.intervals
    assert often.evidence.blocks == 48


def test_of_items_that_differ_a_repeat_is_no_new_evidence():
    """B is better on 3 of 6 items by luck of the draw: a thousand runs on them say nothing about other items."""
    comparison = Comparison(bounds=(0, 1), goal="maximize", rng=0)
    for turn in range(600):
        item = turn % 6
        for _ in range(2):
            option = comparison.ask()
            comparison.tell(option, float(option and item < 5), item=item)
    assert comparison.pairs == 6
    assert comparison.verdict == "undecided"


def test_repeats_of_an_item_are_averaged_where_their_number_is_given():
    comparison = Comparison(bounds=(0, 1), repeats=2, rng=0)
    for item, value in ((1, 0.0), (2, 1.0), (1, 1.0)):
        comparison.tell(comparison.ask(), 0.0, item=item)
        comparison.tell(comparison.ask(), value, item=item)
    assert comparison.pairs == 1
    assert abs(comparison.estimate) == 0.5


def test_runs_of_a_block_are_on_one_item():
    comparison = Comparison(rng=0)
    comparison.tell(comparison.ask(), 1.0, item="a")
    for wrong in ("b", None):
        with pytest.raises(ValueError, match="item must be that of the other runs of this block, 'a'"):
            comparison.tell(comparison.ask(), 1.0, item=wrong)
    comparison.tell(comparison.ask(), 1.0, item="a")
    with pytest.raises(ValueError, match="item must be given with every run or with none"):
        comparison.tell(comparison.ask(), 1.0)
    assert comparison.pairs == 1


def test_one_option_against_a_bar():
    rng = np.random.default_rng(5)
    found = versus(3.28, lambda: rng.normal(3.27, 0.005), rng=0)
    assert found.verdict == "better"
    assert found.runs[0] == 0
    assert found.runs[1] == found.pairs >= 7
    assert found.lower <= 3.27 / 3.28 - 1 <= found.upper
    same = versus(3.28, lambda: rng.normal(3.28, 0.005), evaluations=200, rng=0)
    assert same.verdict == "undecided"


@pytest.mark.parametrize(
    "given",
    [
        {"bar": math.nan},
        {"bar": 2.0, "bounds": (0, 1)},
        {"bar": 1.0, "options": 3},
        {"quantile": 1.0},
        {"quantile": 0.5, "bounds": (0, 1)},
        {"repeats": 0},
    ],
)
def test_arguments_that_make_no_sense_are_refused(given):
    with pytest.raises(
        ValueError, match=r"bar must|a bar is|value of option 0|quantile must|one of bounds|repeats must"
    ):
        Comparison(**given)


@pytest.mark.parametrize("options", [2, 3])
def test_a_document_has_all_that_the_verdict_follows_from(options):
    comparison, rng = Comparison(options, within="1%", rng=0), np.random.default_rng(6)
    comparison.tell_old([1.0, 1.1, None] if options == 2 else [])
    for turn in range(60):
        option = comparison.ask()
        comparison.tell(option, None if turn == 7 else rng.lognormal(sigma=0.1) + 0.3 * option)
    again = Comparison.replay(comparison.document())
    assert again.verdict == comparison.verdict
    assert again.intervals == comparison.intervals
    assert again.evalue() == comparison.evalue()
    assert again.failures == comparison.failures
    assert again.remaining == comparison.remaining
