"""Checks of arms and points. Arms stay where they are: in NumPy, on a device or on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np

from noregret.belief.arrays import float64_tensor, is_tensor, namespace, numpy_of
from noregret.belief.cluster.blocks import Blocks, as_blocks, is_dask
from noregret.belief.posterior import Floats


def as_arms(arms: Any, first: int = 0) -> Any:
    """Check arms and return them as an (N, d) array of float64 in the same place.

    ``first`` is the index of the first arm, for error messages.
    """
    if isinstance(arms, Blocks):
        return arms
    if is_dask(arms):
        return as_blocks(arms, as_arms)
    array = float64_tensor(arms) if is_tensor(arms) else np.asarray(arms, dtype=float)
    if array.ndim != 2 or 0 in array.shape:
        advice = "numbers go in as numbers[:, None]" if array.ndim == 1 else "N and d are at least 1"
        raise ValueError(f"arms must be an (N, d) array, got shape {tuple(array.shape)}: {advice}")
    xp = namespace(array)
    if not xp.isfinite(array).all():
        row = int(np.argmin(numpy_of(xp.isfinite(array)).all(axis=1)))
        raise ValueError(f"arm {first + row} is not finite: drop it or fill its missing values")
    return array


def as_points(points: Any, dimension: int) -> Floats:
    """Check points and return them as an (n, d) NumPy array; they must have as many columns as the arms."""
    given = np.asarray(numpy_of(points) if is_tensor(points) else points, dtype=float)
    array: Floats = as_arms(given[None] if given.ndim == 1 else given)
    if array.shape[1] != dimension:
        raise ValueError(f"points must have {dimension} columns like the arms, got {array.shape[1]}")
    return array
