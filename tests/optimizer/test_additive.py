"""The additive kernel is the average of Matern kernels, in every implementation."""

import numpy as np
import pytest

from noregret.gp.kernels import Columns, Matern
from noregret.optimizer.model.kernel import AdditiveKernel

LENGTHSCALES, COLUMNS = (0.3, 1.7, 0.05), ((0,), (2, 3), (1,))


def average(lengthscales, columns, X, Y):
    parts = [Columns(Matern(2.5, length), its)(X, Y) for length, its in zip(lengthscales, columns, strict=True)]
    return sum(parts) / len(parts)


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (40, 3), (700, 300)])  # the last one is computed in pieces
def test_it_is_the_average_of_matern_kernels_of_one_parameter(shape):
    rng = np.random.default_rng(0)
    X, Y = (rng.random((count, 4)) for count in shape)
    kernel = AdditiveKernel(LENGTHSCALES, COLUMNS)
    np.testing.assert_allclose(kernel(X, Y), average(LENGTHSCALES, COLUMNS, X, Y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel(X, X).diagonal(), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(kernel(X, Y), kernel(Y, X).T, rtol=1e-12, atol=1e-15)


def test_columns_in_which_all_points_are_one():
    """As those of a context are, of all candidates."""
    rng = np.random.default_rng(1)
    X, Y = rng.random((9, 4)), rng.random((6, 4))
    Y[:, 1:] = [0.2, 0.5, 0.7]
    expected = average(LENGTHSCALES, COLUMNS, X, Y)
    np.testing.assert_allclose(AdditiveKernel(LENGTHSCALES, COLUMNS)(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("lengthscale", [1e-5, 1e-3, 1e3])
def test_lengthscales_for_which_exponentials_of_the_points_would_overflow(lengthscale):
    X, Y = np.linspace(-1, 1, 21)[:, None], np.array([[-1.0], [0.0], [1e-5], [1.0]])
    found = AdditiveKernel((lengthscale,), ((0,),))(X, Y)
    np.testing.assert_allclose(found, Matern(2.5, lengthscale)(X, Y), rtol=1e-10, atol=1e-300)


def test_no_points():
    assert AdditiveKernel((0.3,), ((0,),))(np.empty((0, 1)), np.ones((3, 1))).shape == (0, 3)
    assert AdditiveKernel((0.3,), ((0,),))(np.ones((3, 1)), np.empty((0, 1))).shape == (3, 0)
