"""More of `tests.optimizer.test_scaling`, nightly."""

import math

import numpy as np
import pytest
from tests.optimizer.test_scaling import PLAIN, bowl, duration, learnt, multiplied, run

from noregret.optimizer import OptimizerConfig
from noregret.optimizer.model.transforms import Logarithms


def test_multiplied_noise_is_optimised_better():
    """Regret of the recommended point, geometric mean over 3 seeds; a random point's is about 1."""
    regrets = {}
    for name, calibration in {"logarithm": None, "plain": PLAIN}.items():
        best = [run(multiplied, seed, 40, calibration)[0].best().params for seed in range(3)]
        regrets[name] = np.exp(np.mean(np.log([bowl(np.array([list(p.values())]))[0] + 1e-6 for p in best])))
    assert regrets["logarithm"] < 0.5 * regrets["plain"]


def test_estimates_hold_and_medians_are_smaller():
    here, there = {"x": 0.3, "y": 0.3, "z": 0.5}, {"x": 0.9, "y": 0.9, "z": 0.5}
    for seed in range(5):
        opt = learnt(seed)
        for params in (here, there):
            found = opt.predict(params)
            assert found.lower <= duration(params) * math.exp(0.02) <= found.upper
        assert 0.7 < opt.predict(there).estimate / duration(there) < 1.4
    medians = learnt(0, calibration=OptimizerConfig(logarithms=Logarithms(correction=0.0)))
    assert medians.predict(there).estimate < learnt(0).predict(there).estimate


@pytest.mark.slow
@pytest.mark.parametrize("absurd", [1e300, -1e300])
def test_an_absurd_value_after_the_fit_does_no_harm(absurd):
    opt, _ = run(multiplied, 0, 40)
    assert opt.calibrated.scale.logarithm is not None
    before = opt.best()
    opt.tell({"x": 0.9, "y": 0.9}, absurd)
    after = opt.best()
    assert bowl(np.array([list(after.params.values())]))[0] < bowl(np.array([list(before.params.values())]))[0] + 0.1
    assert absurd > 0 or opt.measurements[-1].trust < 0.1, "a very bad corner may be true"
    assert abs(after.estimate - before.estimate) < 1
