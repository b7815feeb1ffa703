"""Random features: their average is the kernel, and their error falls as it should."""

import math

import numpy as np
import pytest
from tests.bandits.belief.test_features import RNG, gap, table

from noregret import (
    Matern,
    QuadratureFourier,
    RandomFourier,
    RationalQuadratic,
    SquaredExponential,
)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.3), Matern(1.5, 0.4), Matern(0.5, 1.0),
                                    RationalQuadratic(0.7, 0.3), SquaredExponential((0.2, 0.5))])  # fmt: skip
def test_random_frequencies_average_to_the_kernel(kernel):
    """Over 40 000 frequencies the error is about 1 / 200 in size; 5 of that is allowed."""
    points = RNG(3).random((8, 2))
    error = np.mean([_signed_gap(kernel, points, seed) for seed in range(10)], axis=0)
    assert np.abs(error).max() < 5 / math.sqrt(40_000)


def _signed_gap(kernel, points, seed):
    phi = table(RandomFourier(kernel, 4000), points, seed)
    return phi.T @ phi - kernel(points, points)


def test_random_features_err_as_one_over_the_root_of_their_number():
    points, kernel = RNG(4).random((30, 1)), SquaredExponential(0.2)
    few, many = (np.mean([gap(RandomFourier(kernel, n), points, seed) for seed in range(20)]) for n in (50, 5000))
    assert 6 < few / many < 16  # sqrt(5000 / 50) = 10
    assert gap(QuadratureFourier(kernel, 50), points) < 1e-9 < few
