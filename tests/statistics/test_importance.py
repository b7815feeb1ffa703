"""More of `tests.optimizer.test_importance`, nightly."""

import numpy as np
import pytest
from tests.optimizer.test_importance import bowl, learnt, total_indices

from noregret import Float


def test_intervals_hold_the_shares_of_the_function_itself():
    names, hits = ("x", "y", "z"), []
    for seed in range(12):
        optimizer = learnt(seed, bowl, {name: Float(0, 1) for name in names})
        true, found = total_indices(optimizer, bowl, names), optimizer.importance()
        assert next(iter(found)) in ("x", "y")
        assert list(found)[-1] == "z"
        hits += [found[name].lower - 0.01 <= true[name] <= found[name].upper for name in names]
    assert np.mean(hits) >= 0.85  # of 36, stated as 0.95


@pytest.mark.slow
def test_if_noise_alone_explains_everything_no_lower_end_is_above_0():
    for seed in range(4):
        nothing = learnt(seed, lambda params: 0.0, {name: Float(0, 1) for name in "wxyz"})
        assert all(share.lower == 0 for share in nothing.importance().values())
        something = learnt(seed, bowl, {name: Float(0, 1) for name in "xyz"})
        assert next(iter(something.importance().values())).lower > 0
