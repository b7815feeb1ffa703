"""More of `tests.optimizer.test_objectives`, nightly."""

import numpy as np
import pytest
from tests.optimizer.test_objectives import GOALS

from noregret import Float, Optimizer


def test_four_objectives_are_scalarised():
    opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goals=dict.fromkeys("abcd", "minimize"), rng=0)
    for _ in range(16):
        trial = opt.ask()
        x, y = trial.params["x"], trial.params["y"]
        opt.tell(trial, {"a": x, "b": 1 - x, "c": y, "d": 1 - y})
    assert len(opt.front()) > 4


def test_two_equal_objectives_are_like_one():
    """The null case: the front is next to one setting, and the optimum of both."""
    opt, rng = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goals=GOALS, rng=0), np.random.default_rng(0)
    for _ in range(25):
        trial = opt.ask()
        value = (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2 + 0.01 * rng.standard_normal()
        opt.tell(trial, {"latency": value, "cost": value})
    for its in opt.front():
        assert abs(its.params["x"] - 0.3) < 0.15
        assert abs(its.params["y"] - 0.6) < 0.15
