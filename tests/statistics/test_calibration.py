"""More of `tests.optimizer.test_calibration`, nightly."""

import numpy as np
import pytest

from noregret.optimizer import Evidence
from noregret.optimizer.fitting.matern import FitMatern


@pytest.mark.slow
def test_a_sharp_top_has_details_and_a_round_one_has_none():
    """A cone and a bowl, half of the points where a run would crowd: a cone is found out for most of 6 seeds."""

    def part(top, seed):
        rng = np.random.default_rng(seed)
        points = 0.5 + np.vstack([rng.random((120, 3)) - 0.5, 0.1 * (rng.random((120, 3)) - 0.5)])
        values = top(np.linalg.norm(points - 0.5, axis=1)) + 0.1 * rng.standard_normal(240)
        data = Evidence(points, np.arange(240), values, np.full(240, np.nan), np.arange(3))
        return FitMatern()(data, np.ones(240)).detail

    cones = [part(lambda distance: -4 * distance, seed) for seed in range(6)]
    bowls = [part(lambda distance: -4 * distance**2, seed) for seed in range(6)]
    assert np.count_nonzero(cones) >= 3
    assert np.count_nonzero(bowls) == 0
