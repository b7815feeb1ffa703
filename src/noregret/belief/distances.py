"""Distances between points, and matrices of pairs that are computed in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from noregret.belief.arrays import Array, beside, is_tensor
from noregret.belief.posterior import Floats

Lengthscale = float | tuple[float, ...]
Metric = Literal["euclidean", "sqeuclidean"]

PIECE = 65_536
"""Numbers of a kernel matrix that are computed at once. What fits into a processor's cache is computed two to three
times as fast: at each step of a formula a large matrix would be written to memory and read again."""


def in_pieces(kernel: Callable[[Array, Array], Array], X: Array, Y: Array) -> Array:
    """kernel(X, Y), (n, d), (m, d) -> (n, m), some rows at a time if it is large and NumPy's, see `PIECE`.

    Where X and Y are the same points, what is symmetric is computed once.
    """
    rows = max(PIECE // max(len(Y), 1), 1)
    if len(X) <= rows or is_tensor(Y):
        return kernel(X, Y)
    matrix = np.empty((len(X), len(Y)))
    if np.array_equal(X, Y):
        rows = max(rows // 2, 1)  # smaller pieces leave out more of the other half
        for start in range(0, len(X), rows):
            stop = start + rows
            matrix[start:stop, start:] = kernel(X[start:stop], Y[start:])
            matrix[stop:, start:stop] = matrix[start:stop, stop:].T
        return matrix
    for start in range(0, len(X), rows):
        matrix[start : start + rows] = kernel(X[start : start + rows], Y)
    return matrix


def distance(X: Floats, Y: Floats, lengthscale: Lengthscale, metric: Metric) -> Array:
    """Distances (or squared ones) in units of the lengthscale, by differences: exact at coinciding points."""
    if isinstance(lengthscale, tuple) and Y.shape[1] != len(lengthscale):
        raise ValueError(f"points have {Y.shape[1]} dimensions but the kernel has {len(lengthscale)} lengthscales")
    if is_tensor(Y):
        squared = _squared_distance(X, Y, lengthscale)
        return squared if metric == "sqeuclidean" else squared.sqrt_()
    if isinstance(lengthscale, tuple):
        scale = np.array(lengthscale)
        return _apart(X / scale, Y / scale, metric)
    apart = _apart(X, Y, metric)
    apart /= lengthscale**2 if metric == "sqeuclidean" else lengthscale
    return apart


def _apart(X: Floats, Y: Floats, metric: Metric) -> Floats:
    """Distances (or squared ones), (n, d), (m, d) -> (n, m); along a line faster than cdist, and equal to the bit."""
    if X.shape[1] != 1 or Y.shape[1] != 1:
        return np.asarray(cdist(X, Y, metric))
    gap = np.asarray(X - Y.T, dtype=float)
    return np.asarray(np.abs(gap, out=gap) if metric == "euclidean" else np.multiply(gap, gap, out=gap))


def _squared_distance(X: Array, Y: Array, lengthscale: Lengthscale) -> Array:
    """Squared distances on the device of Y, (n, d), (m, d) -> (n, m), one dimension after the other."""
    squared: Array = None
    for axis, (x, y) in enumerate(zip(beside(Y, X).T, Y.T, strict=True)):
        gap = x[:, None] - y
        if isinstance(lengthscale, tuple):
            gap /= lengthscale[axis]
        squared = gap * gap if squared is None else squared.addcmul_(gap, gap)
    return squared if isinstance(lengthscale, tuple) else squared.div_(lengthscale**2)
