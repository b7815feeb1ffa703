"""More of `tests.optimizer.test_scaling`, nightly."""

import math

import numpy as np
import pytest
from tests.optimizer.test_scaling import PLAIN, bowl, chosen, duration, evidence, learnt, multiplied, run

from noregret import Float, Optimizer
from noregret.optimizer import OptimizerConfig
from noregret.optimizer.model.evidence import Evidence
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


@pytest.mark.parametrize("absurd", [-1e300, -1e9, 1e9, 1e300])
def test_absurd_values_do_not_undo_the_choice(absurd):
    for seed in range(3):
        data = evidence(multiplied, seed=seed)
        values = np.where(np.arange(len(data)) == 7, absurd, data.values)
        spoilt = OptimizerConfig().calibrated(Evidence(data.points, data.where, values, data.noise, data.groups))
        assert spoilt.scale.logarithm is not None
        assert np.isfinite(spoilt.scale.standard(values) ** 2).all()
        assert abs(spoilt.scale.logarithm.ceiling - chosen(data).ceiling) < 1


def test_the_estimate_is_the_mean_in_the_values_own_unit():
    """Far from the optimum, where noise multiplies the gap by a factor whose mean is e^0.5."""
    ratios = []
    for seed in range(6):
        opt, data = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, rng=seed), evidence(multiplied, 60, seed)
        for params, value in zip(opt.space.decode(data.points), data.values.tolist(), strict=True):
            opt.tell(params, -value)
        found = opt.predict({"x": 0.8, "y": 0.8})
        assert found.lower <= found.estimate <= found.upper
        ratios.append((found.estimate - 80) / (2.0 * math.exp(0.5)))
    assert 0.5 < np.exp(np.mean(np.log(ratios))) < 2.0


def test_noise_that_is_multiplied_is_seen_on_a_logarithm():
    assert sum(chosen(evidence(multiplied, seed=seed)) is not None for seed in range(8)) >= 7
