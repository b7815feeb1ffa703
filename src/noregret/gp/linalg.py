"""Matrix operations that the posteriors share."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.arrays import beside, column_squares, joined, slabs
from noregret.gp.posterior import Floats, Ints
from noregret.gp.threads import one_thread

Array = TypeVar("Array", Floats, Ints)

BLOCK = 32
"""Rows of a triangular system that are solved at once."""
NARROW = 16
"""Up to this number of columns, a triangular solve is faster than blocks."""
REFRESH = 1000
"""In-place changes after which a posterior is recomputed from its counts, so that rounding errors do not accumulate."""


def enlarged(array: Array, rows: int) -> Array:
    """Return the array with at least ``rows`` rows; when it grows, its length doubles, and new rows are zero."""
    if rows <= len(array):
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def lower_root(matrix: Floats) -> Floats | None:
    """L with L L' = matrix, lower triangular; None if the matrix is not positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=float)
    except np.linalg.LinAlgError:
        return None


def solve_lower(root: Floats, right: Floats) -> Floats:
    """root^-1 right, (r, r), (r, n) -> (r, n), in the place of ``right``, which is overwritten if it is contiguous.

    NumPy and SciPy each load a BLAS with its own threads. After a large product the threads of one spin for a while and
    slow down the other. So most of the work is done by NumPy products, which are also faster than a triangular solve:
    with the inverses of the diagonal blocks, and between the blocks.
    """
    if isinstance(right, np.ndarray):
        right = np.ascontiguousarray(right, dtype=float)
    if 0 in right.shape:
        return right
    if right.shape[1] <= NARROW and isinstance(right, np.ndarray):
        with one_thread():
            return np.asarray(sp.dtrsm(1.0, root.T, right.T, side=1, overwrite_b=1)).T
    _solve_lower(root, right)
    return right


def _solve_lower(root: Floats, right: Floats) -> None:
    size = len(root)
    if size <= BLOCK:
        right[...] = beside(right, sp.dtrtri(root.T)[0].T) @ right
        return
    half = -(-size // (2 * BLOCK)) * BLOCK
    _solve_lower(root[:half, :half], right[:half])
    right[half:] -= beside(right, root[half:, :half]) @ right[:half]
    _solve_lower(root[half:, half:], right[half:])


def product_squares(left: Floats, table: Any, lower: bool = False) -> Any:
    """Sums of squares of the columns of left @ table, (m, r), (r, N) -> (N,), in the place of the table.

    With ``lower``, ``left`` is lower triangular, and products with most of its zeros are skipped.
    """
    size = len(left)
    ends = [size * quarter // 4 for quarter in (1, 2, 3, 4)] if lower and size >= 4 * BLOCK else [size]
    parts = [(slice(start, end), slice(end if lower else None)) for start, end in pairwise([0, *ends])]
    left = beside(table, left)

    def squares(slab: slice) -> Any:
        return sum(column_squares(left[rows, columns] @ table[columns, slab]) for rows, columns in parts)

    return joined([squares(slab) for slab in slabs(table.T, len(left))])


def pivoted_root(matrix: Floats) -> Floats:
    """(N, rank) root R with R R' = matrix up to rounding, by pivoted Cholesky; the matrix may be singular."""
    factor, pivots, rank, _ = sp.dpstrf(matrix, lower=1)
    root = np.zeros((len(matrix), rank))
    root[pivots - 1] = np.tril(factor)[:, :rank]
    return root
