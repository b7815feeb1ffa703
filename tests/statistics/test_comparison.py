"""More of `tests.comparison.test_comparison`, nightly."""

import numpy as np
import pytest
from tests.comparison.test_comparison import after_b, check_passes

from noregret.comparison import Comparison


def test_a_slower_program_is_never_equal_on_a_coarse_clock():
    """True difference 2%, noise 1%, ticks of 5%, margin 1%: "equal" in 20 of 20 before."""
    for seed in range(20):
        comparison, rng = Comparison(within="1%", rng=seed), np.random.default_rng(seed)
        for _ in range(160):
            option = comparison.ask()
            value = (1.0, 1.02)[option] * (1 + 0.01 * rng.standard_normal())
            comparison.tell(option, 0.05 * round(value / 0.05))
            assert comparison.verdict != "equal"


def test_an_option_that_has_failed_more_often_is_not_better_and_soon_worse():
    """B is 5% faster and fails in a quarter of its runs: "better" in 20 of 20 before."""
    verdicts = []
    for seed in range(20):
        comparison, rng = Comparison(rng=seed), np.random.default_rng([seed, 99])
        while sum(comparison.runs) < 400 and not comparison.decided:
            option = comparison.ask()
            has_failed = rng.random() < (0, 0.25)[option]
            comparison.tell(option, None if has_failed else (1, 0.95)[option] * rng.lognormal(sigma=0.01))
        assert comparison.verdict != "better" or not comparison.failures[1]
        assert comparison.is_worse() is not False or not comparison.failures[1]
        verdicts.append(comparison.verdict)
    assert verdicts.count("worse") >= 17
    assert "B is worse than A, as it fails more often: -" in repr(comparison)


def test_of_a_cycle_no_best_is_named():
    """Each option loses to another in two of three blocks: a best in 40 of 40 before."""
    for seed in range(20):
        comparison, rng = Comparison(3, rng=seed), np.random.default_rng(seed)
        while sum(comparison.runs) < 300 and not comparison.decided:
            if not comparison.awaited:
                state = rng.integers(3)
            option = comparison.ask()
            comparison.tell(option, (1.0 + 0.1 * ((option + state) % 3)) * rng.lognormal(sigma=0.01))
        assert (comparison.best, comparison.verdict) == (None, "undecided")
    comparison._remaining = []
    assert repr(comparison).startswith("None of the 3 options is the best: each is worse than another, ")


@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_more_runs_that_pass_are_better(bounds):
    check_passes(bounds, seeds=20)


def test_a_warning_of_a_run_that_slows_the_next_one_is_seldom_missing_or_false():
    """At a level of 1%; 5% slower after B, noise 2%, 50 pairs."""
    assert sum(bool(after_b(0.05, seed).warnings) for seed in range(20)) >= 18
    assert sum(bool(after_b(0.0, seed).warnings) for seed in range(60)) <= 3
