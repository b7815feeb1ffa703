"""Arms: the box whose points are arms, checks of arms and points, and their names.

Finitely many arms are the rows of an array, and their names are indices; on a `Box` arms are points, and their names
are coordinates. Arms stay where they are: in NumPy, on a device or on a cluster.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.bandits.belief.cluster import Blocks, as_blocks, is_dask
from noregret.bandits.belief.pulls import arms_of, as_pulls
from noregret.gp.arrays import float64_tensor, fresh, is_tensor, namespace, numpy_of, rows
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Copyable, Floats, Ints, Posterior, Rng


@dataclass(frozen=True)
class Box:
    """All points between a lower and an upper bound in every dimension.

    Parameters
    ----------
    bounds : (d, 2) array
        Lower and upper bound of each dimension.

    Examples
    --------
    >>> box = Box([[0, 1], [-5, 10]])
    >>> box.contains([[0.5, 3.0], [2.0, 3.0]])
    array([ True, False])
    """

    bounds: tuple[tuple[float, float], ...]

    def __init__(self, bounds: Any) -> None:
        array = np.array(bounds, dtype=float)
        if array.ndim != 2 or array.shape[1] != 2 or not len(array):
            raise ValueError(
                f"bounds must be (d, 2), a lower and an upper bound per dimension, got shape {array.shape}"
            )
        if not (np.isfinite(array).all() and (array[:, 0] < array[:, 1]).all()):
            raise ValueError(f"bounds must be finite, each lower one below its upper one, got {array.tolist()}")
        object.__setattr__(self, "bounds", tuple((float(low), float(high)) for low, high in array))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point, d."""
        return len(self.bounds)

    @property
    def lower(self) -> Floats:
        """Lower bounds, (d,)."""
        return np.array([low for low, _ in self.bounds])

    @property
    def sides(self) -> Floats:
        """Lengths of the sides, (d,)."""
        return np.array([high - low for low, high in self.bounds])

    @property
    def centre(self) -> Floats:
        """Centre of the box, (d,)."""
        return self.lower + self.sides / 2

    def contains(self, points: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Mask of the (n, d) points that lie in the box, (n,)."""
        points, upper = np.asarray(points, dtype=float), self.lower + self.sides
        return np.asarray(((points >= self.lower) & (points <= upper)).all(axis=1))

    def sample(self, count: int, rng: Rng) -> Floats:
        """Uniform points, (count, d)."""
        return np.asarray(self.lower + self.sides * rng.random((count, self.dimension)))

    def log_discretization(self, kernel: Kernel, fineness: float) -> float:
        """Logarithm of |D_n|, where D_n is a grid with |f(x) - f(nearest of D_n)| <= |f| / n for all f in the RKHS.

        |f(x) - f(y)| is at most |f| times the kernel's distance sqrt(k(x,x) + k(y,y) - 2 k(x,y)). It is measured from
        the centre of the box, which suffices for a stationary kernel. In many dimensions |D_n| itself overflows.
        """
        return float(-self.dimension * math.log(self._step(kernel, fineness)))

    def on_grid(self, points: Floats, kernel: Kernel, fineness: float) -> Floats:
        """Nearest point of the grid D_n of `log_discretization` to each of these (n, d) points of the box, (n, d)."""
        step = self._step(kernel, fineness)
        cells = np.clip(np.floor((points - self.lower) / (step * self.sides)), 0, round(1 / step) - 1)
        return np.asarray(self.lower + step * self.sides * (cells + 0.5))

    def kernel_distances(self, kernel: Kernel, offsets: Floats) -> Floats:
        """Kernel's distance sqrt(k(x,x) + k(c,c) - 2 k(c,x)) of the centre c and x = c + each (n, d) offset, (n,)."""
        middle, moved = self.centre[None], self.centre + offsets
        squared = kernel.diag(moved) + kernel.diag(middle) - 2 * kernel(moved, middle)[:, 0]
        return np.sqrt(np.maximum(squared, 0.0))

    def _step(self, kernel: Kernel, fineness: float) -> float:
        """Distance of neighbouring points of D_n, as a share of the sides: a power of 1/2."""
        steps = 0.5 ** np.arange(60)
        fine = np.flatnonzero(self.kernel_distances(kernel, steps[:, None] * self.sides / 2) <= 1 / fineness)
        if not fine.size:
            raise ValueError(f"{kernel} is not continuous enough for a grid of fineness {fineness}: lower the horizon")
        return float(steps[fine[0]])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        raise ValueError(
            "this needs finitely many arms, got a Box: pass box.sample(count, rng) as arms, or use an algorithm that "
            "plays on a box (igp_ucb, gp_ts, bkb, ada_bkb, reds, bpe)"
        )


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
