"""The few matrix operations that the posteriors share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from noregret.belief.posterior import Floats, Ints

Array = TypeVar("Array", Floats, Ints)


def room(buffer: Array, size: int) -> Array:
    """The buffer with room for at least ``size`` rows, twice as many as before when it must grow."""
    if size <= len(buffer):
        return buffer
    grown = np.empty((max(size, 2 * len(buffer)), *buffer.shape[1:]), buffer.dtype)
    grown[: len(buffer)] = buffer
    return grown


def cholesky(matrix: Floats) -> Floats | None:
    """Lower root, or None where there is none."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=float)
    except np.linalg.LinAlgError:
        return None


def solve_lower(root: Floats, right: Floats) -> Floats:
    """root^-1 right, written over ``right``, (r, r), (r, n) -> (r, n)."""
    return np.asarray(dtrsm(1.0, root.T, right.T, side=1, overwrite_b=1)).T


def pivoted_root(matrix: Floats) -> Floats:
    """(N, rank) root R with R R' = matrix up to rounding, by pivoted Cholesky; singular matrices are fine."""
    factor, pivots, rank, _ = dpstrf(matrix, lower=1)
    root = np.zeros((len(matrix), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    return root
