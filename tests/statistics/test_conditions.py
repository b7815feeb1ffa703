"""More of `tests.optimizer.test_conditions`, nightly."""

import numpy as np
import pytest
from tests.optimizer.test_conditions import branches

from noregret import Choice, Float, Optimizer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_right_branch_is_found(seed):
    on = {"kind": Choice(["a", "b"]), "x": Float(0, 1, when={"kind": "a"})}
    optimizer, rng = (
        Optimizer(on | {name: Float(0, 1, when={"kind": "b"}) for name in "yz"}, rng=seed),
        np.random.default_rng(seed),
    )
    for _ in range(50):
        trial = optimizer.ask()
        optimizer.tell(trial, branches(trial.params) + 0.05 * rng.standard_t(2))
    best = optimizer.best()
    assert set(best.params) == {"kind", "y", "z"}
    assert branches(best.params) < 0.1
