"""More of `tests.optimizer.test_certificate`, nightly."""

import numpy as np
import pytest
from tests.optimizer.test_certificate import LINE, bowl

from noregret import Optimizer


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
