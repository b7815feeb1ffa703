"""More of `tests.bandits.algorithms.test_kernelized_bandits`, nightly."""

import pytest
from tests.bandits.algorithms.test_kernelized_bandits import runs_covered

from noregret import Matern, SquaredExponential, algorithms


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [algorithms.igp_ucb, algorithms.gp_ts, algorithms.ay_ucb, algorithms.amm_ucb, algorithms.dmm_ucb],
)
def test_the_band_holds_at_all_rounds_in_at_least_1_minus_delta_of_runs(build):
    kernel = Matern(2.5, 0.2) if build is algorithms.amm_ucb else SquaredExponential(0.2)
    assert runs_covered(build, kernel) >= 18
