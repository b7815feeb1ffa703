"""More of `tests.optimizer.test_drift`, nightly."""

import copy
import math
import pickle

import numpy as np
import pytest
from tests.optimizer.test_drift import LINE, QUICK, glides, jumps, played

from noregret import Optimizer


def test_after_a_jump_it_recovers_within_25_evaluations_and_without_drift_it_does_not():
    """From 0.2 to 0.8: to recover is to recommend what is nearer to the new best, and in most runs near it."""
    seeds, after = range(3), 25
    found = {
        drift: [abs(played(jumps, 50 + after, seed, drift=drift)[0].best().params["x"] - 0.8) for seed in seeds]
        for drift in (None, "auto")
    }
    assert max(found["auto"]) < 0.3
    assert np.median(found["auto"]) < 0.1
    assert np.median(found[None]) > 0.3


def test_what_glides_is_followed():
    late = {
        d: np.mean([played(glides, 120, seed, drift=d)[1][-30:].mean() for seed in range(2)]) for d in (None, "auto")
    }
    assert late["auto"] < 0.5 * late[None]


@pytest.mark.slow
def test_what_is_believed_is_a_function_of_the_history():
    lived, _ = played(jumps, 73, seed=2, drift="auto")
    assert lived.half_life < math.inf
    told = Optimizer(LINE, rng=2, drift="auto", calibration=QUICK)
    for params, value, *_ in lived.answers:
        told.tell(params, value)
    assert told.half_life == pytest.approx(lived.half_life)
    others = [told, copy.copy(lived), pickle.loads(pickle.dumps(lived))]
    assert [its.best().params["x"] for its in others] == pytest.approx([lived.best().params["x"]] * 3)
    assert [its.ask().params["x"] for its in others] == pytest.approx([lived.ask().params["x"]] * 3)


def stays(_):
    return 0.3


def test_on_a_problem_that_stands_still_the_questions_are_the_same():
    (plain, off), (auto, own) = (played(stays, 70, 0, drift=drift) for drift in (None, "auto"))
    np.testing.assert_array_equal(own, off)
    assert auto.best() == plain.best()
    assert auto.half_life == plain.half_life == math.inf
