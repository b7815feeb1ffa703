"""The triangular solve against SciPy's, at all sizes around its blocks."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from noregret.gp.linalg import BLOCK, NARROW, product_squares, solve_lower


@pytest.mark.parametrize("columns", [1, NARROW, NARROW + 1, 200])
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 3])
def test_it_solves_and_says_nothing(size, columns, capfd):
    rng = np.random.default_rng(size)
    root = np.linalg.cholesky(np.eye(size) + (lambda a: a @ a.T)(rng.standard_normal((size, size))))
    right = rng.standard_normal((size, columns))
    expected = solve_triangular(root, right, lower=True) if size else right
    np.testing.assert_allclose(solve_lower(root, right.copy()), expected, rtol=1e-9, atol=1e-12)
    assert capfd.readouterr() == ("", "")


def test_an_ill_conditioned_root_leaves_a_residual_of_rounding():
    x = np.linspace(0, 1, 150)
    root = np.linalg.cholesky(np.exp(-((x[:, None] - x) ** 2) / 0.02) + 1e-10 * np.eye(150))
    right = np.random.default_rng(0).standard_normal((150, 100))
    solved = solve_lower(root, right.copy())
    theirs = solve_triangular(root, right, lower=True)
    scale = np.abs(root) @ np.abs(theirs)
    assert np.abs(root @ solved - right).max() < 300 * np.abs(scale).max() * np.finfo(float).eps


@pytest.mark.parametrize("size", [0, 1, 40, 200])
def test_squares_of_a_product(size):
    rng = np.random.default_rng(size)
    left, table = rng.standard_normal((size, size)), rng.standard_normal((size, 70))
    assert product_squares(left, table) == pytest.approx(((left @ table) ** 2).sum(axis=0))
    triangle = np.tril(left)
    assert product_squares(triangle, table, lower=True) == pytest.approx(((triangle @ table) ** 2).sum(axis=0))
