"""Several objectives: fronts of values, the volume that they dominate, and all posteriors at the same points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.space.space import Bools


def nondominated(values: Floats) -> Ints:
    """Rows of (n, m) values that no other row exceeds in one column and equals at least in all; larger is better.

    Of equal rows the first counts.

    >>> nondominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])).tolist()
    [0, 1, 3]
    """
    order = np.lexsort([-column for column in values.T[::-1]])  # a row is dominated by earlier ones only
    if values.shape[1] == 2:
        second = values[order, 1]
        is_kept = np.diff(np.maximum.accumulate(second), prepend=-math.inf) > 0
        return np.sort(order[is_kept])
    kept: list[int] = []
    for row in order.tolist():
        if not kept or not (values[kept] >= values[row]).all(axis=1).any():
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.intp))


def is_dominated(values: Floats, others: Floats) -> Bools:
    """Mask of the (n, m) values that some of the (k, m) others exceed in one column and are nowhere below, (n,)."""
    least = np.all(values[:, None] <= others, axis=2)
    return np.asarray(np.any(least & np.any(values[:, None] < others, axis=2), axis=1))


def hypervolume(values: Floats, reference: Floats) -> float:
    """Volume that (n, m) values dominate above a reference, (m,); larger is better.

    >>> hypervolume(np.array([[1.0, 3.0], [2.0, 1.0]]), np.zeros(2))
    4.0
    """
    above = values[(values > reference).all(axis=1)]
    if not len(above):
        return 0.0
    if values.shape[1] == 1:
        return float(above.max() - reference[0])
    above = above[np.argsort(-above[:, -1], kind="stable")]
    ends = np.append(above[1:, -1], reference[-1])
    if values.shape[1] == 2:
        return float(((np.maximum.accumulate(above[:, 0]) - reference[0]) * (above[:, 1] - ends)).sum())
    slabs = [(index + 1, height) for index, height in enumerate((above[:, -1] - ends).tolist()) if height > 0]
    return math.fsum(height * hypervolume(above[:count, :-1], reference[:-1]) for count, height in slabs)


def means_at(objectives: Sequence[Snapshot], points: Floats) -> tuple[Floats, Floats]:
    """Mean and std of each objective at (n, d) points, in its standard units, each (n, m)."""
    mean, std = zip(*(each.belief.predict(points) for each in objectives), strict=True)
    return np.column_stack(mean), np.column_stack(std)


def reported(objectives: Sequence[Snapshot], numbers: Floats) -> Floats:
    """Values with larger ones better, where f less its prior mean has these (n, m) numbers, (n, m)."""
    columns = zip(objectives, numbers.T, strict=True)
    return np.column_stack([state.models.reported(state.models.fit.centre + column) for state, column in columns])
