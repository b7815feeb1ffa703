"""Several objectives: a history and a posterior of each.

An objective has its own scale, noise model, kernel and trust, as if it were the only one. So one may have outliers and
the other not. Objectives are independent, given the observations: heuristic, as with constraints.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.model.current import CurrentBelief, Snapshot
from noregret.optimizer.model.history import History
from noregret.optimizer.space.space import Bools, Space


class ObjectiveBeliefs:
    """Computes snapshots of several objectives, in place of a `CurrentBelief`.

    The history of an objective is that of all answers with its values, point by point and answer by answer.
    """

    def __init__(self, count: int, make: Callable[[], CurrentBelief]) -> None:
        self._beliefs = [make() for _ in range(count)]
        self._histories: list[History] = []

    def __copy__(self) -> ObjectiveBeliefs:
        twin = ObjectiveBeliefs.__new__(ObjectiveBeliefs)
        twin._beliefs = [copy.copy(belief) for belief in self._beliefs]
        twin._histories = [history.copy() for history in self._histories]
        return twin

    @property
    def space(self) -> Space:
        """Space of the last snapshot, or all of it."""
        return self._beliefs[0].space

    def snapshot(self, history: History, space: Space, needed: Iterable[int] = ()) -> Snapshot:
        """Snapshot of the first objective with two values, and in ``objectives`` those of each."""
        needed, found, first = tuple(needed), list[Snapshot | None](), self._beliefs[0]
        for own, belief in zip(self._of_each(history), self._beliefs, strict=True):
            belief.share_constraints(first)
            found.append(belief.snapshot(own, space, needed) if own.measured > 1 else None)
        return replace(next(each for each in found if each is not None), objectives=tuple(found))

    def _of_each(self, history: History) -> list[History]:
        """History of each objective, up to date."""
        if not self._histories:
            self._histories = [History(history.space, history.baseline) for _ in self._beliefs]
        for index, own in enumerate(self._histories):
            for number in range(len(own.params), len(history.params)):
                own.intern(history.params[number], history.point(number))
            for arrival in history.arrivals[len(own.arrivals) :]:
                own.add(arrival.of_objective(index))
        return self._histories


def nondominated(values: Floats) -> Ints:
    """Rows of (n, m) values that no other row exceeds in one column and equals at least in all; larger is better.

    Of equal rows the first counts.

    >>> nondominated(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])).tolist()
    [0, 1, 3]
    """
    order = np.lexsort([-column for column in values.T[::-1]])  # a row is dominated by earlier ones only
    kept: list[int] = []
    for row in order.tolist():
        if not kept or not (values[kept] >= values[row]).all(axis=1).any():
            kept.append(row)
    return np.sort(np.array(kept, dtype=np.intp))


def is_dominated(values: Floats, others: Floats) -> Bools:
    """Mask of the (n, m) values that some of the (k, m) others exceed in one column and are nowhere below, (n,)."""
    least: Bools = np.all(values[:, None] <= others, axis=2)
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
    return np.column_stack([its.models.reported(its.models.fit.centre + column) for its, column in columns])
