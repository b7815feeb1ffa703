"""The few matrix operations that the posteriors share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from noregret.belief.posterior import Floats, Ints
from noregret.belief.threads import SMALL, threads_for

Array = TypeVar("Array", Floats, Ints)

BLOCK = 128
"""Rows of a triangular system that are solved at once."""


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
    """root^-1 right, (r, r), (r, n) -> (r, n), written over ``right`` where it is contiguous.

    NumPy and SciPy each bring a BLAS with threads of its own, and the threads of one stay busy waiting for a while
    after a large product and slow the other down. So SciPy's triangular solve is given blocks, and one thread; what is
    large are NumPy's products between the blocks.
    """
    right = np.ascontiguousarray(right, dtype=float)
    if len(root) <= BLOCK or right.shape[1] <= BLOCK // 8:
        with threads_for(SMALL - 1):
            return np.asarray(dtrsm(1.0, root.T, right.T, side=1, overwrite_b=1)).T
    half = len(root) // 2
    solve_lower(root[:half, :half], right[:half])
    right[half:] -= root[half:, :half] @ right[:half]
    solve_lower(root[half:, half:], right[half:])
    return right


def pivoted_root(matrix: Floats) -> Floats:
    """(N, rank) root R with R R' = matrix up to rounding, by pivoted Cholesky; singular matrices are fine."""
    factor, pivots, rank, _ = dpstrf(matrix, lower=1)
    root = np.zeros((len(matrix), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    return root
