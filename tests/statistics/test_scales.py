"""Scales of parameters: the values choose, and noise alone chooses none; three seeds each."""

import numpy as np
import pytest
from tests.optimizer.test_scales import is_logarithmic, logarithms, squares, tuned


@pytest.mark.parametrize(("function", "expected", "regret"), [(logarithms, True, 0.03), (squares, False, 0.03)])
def test_the_values_choose_the_scale(function, expected, regret):
    for seed in range(3):
        opt = tuned(function, 40, seed)
        assert is_logarithmic(opt) == expected
        assert function(np.array(list(opt.best().params.values()))) < regret


def test_noise_alone_chooses_no_scale_and_recommends_the_baseline():
    baseline = dict.fromkeys("abc", 20.0)
    for seed in range(3):
        opt = tuned(lambda x: 0.0, 30, seed, noise=1.0, baseline=baseline)
        assert opt.best().params == baseline
