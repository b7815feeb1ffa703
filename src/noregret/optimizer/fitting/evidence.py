"""Evidence: what was measured where, in the form that the calibration works on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from noregret.belief.posterior import Floats, Ints


@dataclass(frozen=True)
class Evidence:
    """n measurements at u distinct points, larger being better.

    Parameters
    ----------
    points : (u, d) floats
        The distinct points, in the unit cube.
    where : (n,) ints
        The point of each measurement.
    values : (n,) floats
    noise : (n,) floats
        Standard deviation of each measurement, nan where nobody knows it.
    groups : (d,) ints
        The lengthscale that each coordinate has; coordinates of one parameter share theirs.
    company : tuple of ints, optional
        How many parameters apply together with each, itself among them; all, if nobody says.
    """

    points: Floats
    where: Ints
    values: Floats
    noise: Floats
    groups: Ints
    company: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def only(self, kept: Ints) -> Evidence:
        """The measurements of these points alone, in the order that they have."""
        rank = np.full(len(self.points), -1)
        rank[kept] = np.arange(kept.size)
        mine = rank[self.where] >= 0
        where, values, noise = rank[self.where[mine]], self.values[mine], self.noise[mine]
        return replace(self, points=self.points[kept], where=where, values=values, noise=noise)

    def variance(self, default: float) -> Floats:
        """Noise variance of each measurement, (n,), ``default`` where nobody knows it."""
        return np.where(np.isnan(self.noise), default, self.noise**2)

    def pooled(self, precision: Floats) -> tuple[Floats, Floats]:
        """Weighted average and total precision of the measurements of each point, two (u,)."""
        total = self.summed(precision)
        return self.summed(precision * self.values) / total, total

    def summed(self, numbers: Floats) -> Floats:
        """Sum of a number per measurement over the measurements of each point, (n,) -> (u,)."""
        return np.asarray(np.bincount(self.where, numbers, len(self.points)), dtype=float)

    def medians(self) -> Floats:
        """Median measurement of each point, (u,)."""
        order = np.lexsort((self.values, self.where))
        counts = np.bincount(self.where, minlength=len(self.points))
        start = np.cumsum(counts) - counts
        ranked = self.values[order]
        return np.asarray(0.5 * (ranked[start + (counts - 1) // 2] + ranked[start + counts // 2]))

    def second_best(self) -> float:
        """The best measurement of all points but the one that has the best; that one, if there is no other point."""
        others = self.where != self.where[np.argmax(self.values)]
        return float(self.values[others].max() if others.any() else self.values.max())
