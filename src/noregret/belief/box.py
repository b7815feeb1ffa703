"""Box: a continuous domain, on which arms are points instead of indices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.posterior import Floats, Rng


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
