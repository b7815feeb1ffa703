"""Checks of arms, points and their rewards. Arms stay where they are: in NumPy, on a device or on a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from noregret.belief.arrays import float64_tensor, is_tensor, namespace, numpy_of, rows
from noregret.belief.cluster.blocks import Blocks, as_blocks, is_dask
from noregret.belief.posterior import Copyable, Floats, Ints, Posterior, as_pulls
from noregret.belief.pulls import arms_of


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


class LearnsPoints(Copyable, ABC):
    """Part of a posterior that learns rewards of arms and of other points in one way, in the method ``_take``."""

    def update(self: Any, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        places, values, factors = as_pulls(arms, rewards, noise, len(self.arms), self.largest_reward)
        factors = np.ones(places.size) if factors is None else factors
        self._take(places, rows(self.arms, places), values, factors, numpy_of(self.std[places]))

    def learn(self: Any, points: Any, rewards: Any = None, noise: Any = None) -> None:
        points = as_points(points, self.arms.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        factors = np.ones(len(points)) if factors is None else factors
        std = numpy_of(self.predict(points)[1])
        self._take(arms_of(self.arms, points), points, values, factors, std)

    @abstractmethod
    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats, std: Floats) -> None:
        """Learn values of these points, None to change the variance only.

        Each, (n,), has the index of the arm that equals it, -1 if there is none, a factor on its ridge, and the std
        before.
        """


def learn_at(belief: Posterior, arms: Ints, points: Floats, values: Any, noise: Any) -> None:
    """Update a belief with values of points, (n,); ``arms`` are their indices, -1 for points that are not arms."""
    if (arms >= 0).all():
        belief.update(arms, values, noise=noise)
    else:
        belief.learn(points, values, noise)
