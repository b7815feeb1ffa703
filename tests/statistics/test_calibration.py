"""More of `tests.optimizer.test_calibration`, nightly."""

import pytest
from tests.optimizer.test_calibration import evidence, heavy


@pytest.mark.parametrize("size", [10, 40])
def test_gaussian_noise_is_taken_for_gaussian(size):
    assert sum(heavy(evidence(size, size, seed=seed)) for seed in range(8)) <= 1


def test_heavy_tails_are_found_in_time():
    draws = lambda rng, size: rng.standard_t(1.5, size)  # noqa: E731
    assert sum(heavy(evidence(60, 60, seed=seed, noise=draws)) for seed in range(8)) >= 7
