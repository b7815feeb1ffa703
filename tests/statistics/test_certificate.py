"""More of `tests.optimizer.test_certificate`, nightly."""

import math

import numpy as np
import pytest
from tests.optimizer.test_certificate import LINE, bowl, told

from noregret import Float, Optimizer


@pytest.mark.slow
def test_done_comes_with_measurements_and_later_for_tighter_tolerances():
    first = {}
    opt, rng = Optimizer(LINE, rng=0), np.random.default_rng(0)
    for answers in range(1, 121):
        trial = opt.ask()
        opt.tell(trial, bowl(trial.params["x"]) + 0.01 * rng.standard_normal())
        for within in (1.0, 0.1):
            if within not in first and opt.done(within):
                first[within] = answers
    assert 9 <= first[1.0] <= first[0.1] <= 120
    assert not opt.done(1e-6), "noise of 0.01 leaves that open"


def two_hills(params):
    """Hills of deviation 0.18 and height 0.8, and of deviation 0.08 and height 1."""
    apart = [(params["x"] - x) ** 2 + (params["y"] - y) ** 2 for x, y in ((0.3, 0.35), (0.75, 0.75))]
    return max(0.8 * math.exp(-apart[0] / (2 * 0.18**2)), math.exp(-apart[1] / (2 * 0.08**2)))


@pytest.mark.parametrize("spikes", [False, True])
def test_a_second_hill_that_was_not_found_remains(spikes):
    opt, rng = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="maximize", rng=0), np.random.default_rng(0)
    for _ in range(36):
        trial = opt.ask()
        spike = 3.0 if spikes and rng.random() < 0.03 else 0.0
        opt.tell(trial, two_hills(trial.params) + spike + 0.02 * rng.standard_normal())
    best = opt.best()
    assert two_hills(best.params) < 0.85, "this run sits on the first hill"
    assert best.remaining > 0.15
    assert not opt.done(within=0.15)


def test_intervals_and_stops_keep_their_level():
    """Twenty runs on several hills: one in twenty may be wrong."""

    def hills(x):
        return bowl(x) - 0.1 * math.cos(20 * (x - 0.3))

    stopped = broken = exceeded = missed = 0
    for seed in range(20):
        opt = told(50, hills, 0.03, seed)
        best = opt.best()
        truth = hills(best.params["x"])
        missed += not best.lower <= truth <= best.upper
        exceeded += truth - hills(0.3) > best.gap
        if opt.done(0.2, by="certificate"):
            stopped += 1
            broken += truth - hills(0.3) > 0.2
    assert stopped >= 10
    assert max(broken, exceeded, missed) <= 1


def test_more_confidence_takes_more():
    opt = told(60)
    for by in ("model", "certificate"):
        levels = [opt.done(0.03, confidence, by) for confidence in (0.05, 0.5, 0.9, 0.99, 0.999999999)]
        assert levels == sorted(levels, reverse=True)
        assert (levels[0], levels[-1]) == (True, False)
