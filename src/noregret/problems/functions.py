"""Test functions on the unit cube, (n, d) -> (n,), to be maximised.

Branin and the Hartmann functions in 4 and 6 dimensions are scaled as in the REDS paper (App. C); Hartmann in 3
dimensions and Rosenbrock are the textbook functions with the opposite sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from noregret.belief.posterior import Floats

Function = Callable[[Floats], Floats]

_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
_C3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_A6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_C6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(X: Floats) -> Floats:
    """Branin, scaled: -((v - 5.1 u^2/(4 pi^2) + 5 u/pi - 6)^2 + (10 - 10/(8 pi)) cos u - 44.81) / 51.95.

    u = 15 x1 - 5 and v = 15 x2. Its largest value, 1.04739, is attained at three points.
    """
    x1, x2 = _columns(X, 2)
    u, v = 15 * x1 - 5, 15 * x2
    valley = v - 5.1 * u**2 / (4 * np.pi**2) + 5 * u / np.pi - 6
    return np.asarray(-(valley**2 + (10 - 10 / (8 * np.pi)) * np.cos(u) - 44.81) / 51.95)


def rosenbrock(X: Floats) -> Floats:
    """Rosenbrock, -(100 (v - u^2)^2 + (1 - u)^2) with (u, v) = 15 x - 5 in [-5, 10]^2.

    The domain is scaled to the unit square, the values are not: 0 at x = (0.4, 0.4), -1102581 at x = (1, 0).
    """
    u, v = 15 * _columns(X, 2) - 5
    return np.asarray(-(100 * (v - u**2) ** 2 + (1 - u) ** 2))


def hartmann3(X: Floats) -> Floats:
    """Hartmann in 3 dimensions, sum_i w_i exp(-sum_j A_ij (x_j - C_ij)^2). Largest value 3.86278."""
    return _hartmann(X, _A3, _C3)


def hartmann4(X: Floats) -> Floats:
    """Hartmann in 4 dimensions: the first four columns of the 6-dimensional function. Largest value 3.72984."""
    return _hartmann(X, _A6[:, :4], _C6[:, :4])


def hartmann6(X: Floats) -> Floats:
    """Hartmann in 6 dimensions, sum_i w_i exp(-sum_j A_ij (x_j - C_ij)^2). Largest value 3.32237."""
    return _hartmann(X, _A6, _C6)


MAXIMA: dict[Function, float] = {
    branin: 1.0473939,
    rosenbrock: 0.0,
    hartmann3: 3.8627798,
    hartmann4: 3.7298407,
    hartmann6: 3.3223680,
}
"""Largest value of each function on the whole unit cube; the best of finitely many arms is below it."""


def _hartmann(X: Floats, a: Floats, centres: Floats) -> Floats:
    x = _columns(X, a.shape[1])
    squares = [((x - c[:, None]) ** 2 * row[:, None]).sum(axis=0) for row, c in zip(a, centres, strict=True)]
    return np.asarray(_WEIGHTS @ np.exp(-np.array(squares)))


def _columns(X: Floats, dimension: int) -> Floats:
    """Columns of the points, (d, n)."""
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or points.shape[1] != dimension:
        raise ValueError(f"points must have shape (n, {dimension}), got {points.shape}")
    return points.T
