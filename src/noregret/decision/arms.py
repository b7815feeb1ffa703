"""Names of arms: indices among finitely many arms, coordinates on a box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import numpy as np

from noregret.belief.arms import as_arms
from noregret.belief.arrays import fresh
from noregret.belief.box import Box
from noregret.belief.posterior import Floats, Ints

Bools = np.ndarray[Any, np.dtype[np.bool_]]


def names(arms: Ints | Floats) -> list[Hashable]:
    """Hashable names of (n,) indices or (n, d) points."""
    return arms.tolist() if arms.ndim == 1 else [tuple(point) for point in arms.tolist()]


def remaining(plan: Any, pulled: Any) -> Any:
    """Rest of a plan, in order, without the pulled arms; repetitions are counted."""
    return plan[~among(plan, pulled)]


def among(arms: Any, others: Any) -> Bools:
    """Mask of the (n,) arms that are among the others, (n,). If an arm occurs more often here, its first ones count."""
    if np.array_equal(arms, others):
        return np.ones(len(arms), dtype=bool)
    left, is_among = Counter(names(others)), np.zeros(len(arms), dtype=bool)
    for place, name in enumerate(names(arms)):
        if left[name] > 0:
            left[name] -= 1
            is_among[place] = True
    return is_among


def located(arms: Ints, pulled: Ints) -> tuple[Ints, Bools]:
    """Positions of the pulled arms in these ascending arms, (m,), and mask of the pulled ones among them, (n,)."""
    places = np.minimum(np.searchsorted(arms, pulled), len(arms) - 1)
    is_among = arms[places] == pulled
    return places[is_among], is_among


def as_space(arms: Any) -> Any:
    """Copy of the (N, d) arms in the same place, or the box."""
    return arms if isinstance(arms, Box) else fresh(as_arms(arms))


def checked(space: Floats | Box, arms: Any) -> Any:
    """Check (n,) indices into the arms, or (n, d) points of the box; ValueError if they are not valid."""
    if isinstance(space, Box):
        points, d = np.array(arms, dtype=float), space.dimension
        if points.ndim < 2:
            points = points.reshape(-1, d) if points.size % d == 0 else points.reshape(1, -1)
        if points.ndim != 2 or points.shape[1] != d:
            raise ValueError(f"on a box arms are (n, {d}) points, got shape {np.shape(arms)}")
        outside = ~space.contains(points)
        if outside.any():
            raise ValueError(f"point must lie in {space}, got {points[outside][0].tolist()}")
        return points
    index, count = np.asarray(arms).reshape(-1), len(space)
    if index.size and index.dtype.kind not in "iu":
        raise ValueError(f"arms must be whole numbers, the indices that ask() returns, got {arms!r}")
    outside = (index < 0) | (index >= count)
    if outside.any():
        raise ValueError(f"arm must be in 0..{count - 1}, got {index[outside][0]}")
    return index.astype(np.intp)
