"""Exploring: the questions that look where the fitted belief would not, so that no run stays on a wrong hill.

Every question t at which ``share`` t^(2/3) passes a whole number explores: their number grows without end, their share
vanishes. Four kinds take turns:

- upper: the candidate with the highest upper bound, mean + ``width`` std;
- hole: the candidate farthest from all that was measured;
- leap: the best point measured with one parameter moved anywhere, where that upper bound is highest;
- rough: the measured point that would be the best if f were rougher than fitted. It is often one of the best hill, and
  then costs nothing; else a hill too narrow for the fit has been hit, and is looked at again.

The holes make the points that are measured dense in the space, whatever is fitted (docs/guarantees.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from noregret.belief.drift.varying import VaryingPosterior
from noregret.belief.exact import ExactPosterior
from noregret.belief.kernels import Kernel
from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.optimizer.choosing.candidates import loosened
from noregret.optimizer.spaces.space import Space

Bools = NDArray[np.bool_]

Kind = Literal["upper", "hole", "leap", "rough"]
TURNS: tuple[Kind, ...] = ("upper", "hole", "leap", "hole", "rough", "hole")


@dataclass(frozen=True)
class Exploring:
    """When to explore, and how far beyond the mean to look."""

    share: float = 2.5
    after: int = 200
    width: float = 4.0
    values: int = 40
    """How many values of each parameter a leap may go to."""
    ratio: float = 0.35
    """The lengthscales of a rougher f are this part of the fitted ones."""

    def turn(self, question: int) -> Kind | None:
        """How this question explores; None if it does not."""
        passed = self._passed(question)
        if question <= self.after or passed == self._passed(question - 1):
            return None
        return TURNS[(passed - 1) % len(TURNS)]

    def _passed(self, question: int) -> int:
        """How many whole numbers share t^(2/3) has passed since the first questions."""
        return math.floor(self.share * math.cbrt(question) ** 2) - math.floor(self.share * math.cbrt(self.after) ** 2)

    def upper(self, mean: Floats, std: Floats) -> Floats:
        """Upper bounds, (n,)."""
        return np.asarray(mean + self.width * std)

    def leap(self, space: Space, belief: Posterior, rng: Rng) -> Floats:
        """The best point measured with one parameter moved to where the upper bound is highest, (d,)."""
        pulled = belief.pulled
        best = belief.arms[pulled[np.argmax(belief.mean[pulled])]]
        starts = loosened(space, np.tile(best, (self.values * (max(space.groups) + 1), 1)), rng)
        points = space.snap(leaps(starts, np.array(space.groups), rng))
        return np.asarray(points[np.argmax(self.upper(*belief.predict(points)))])


def hole(places: Floats, measured: Floats, worthwhile: Bools) -> int:
    """Of those (n, d) places that are worthwhile, or else of all, the one farthest from all (m, d) points measured."""
    distances = cKDTree(measured).query(places)[0]
    return int(np.argmax(np.where(worthwhile, distances, -1.0) if worthwhile.any() else distances))


def rough(belief: ExactPosterior | VaryingPosterior, kernel: Kernel, among: Ints) -> int:
    """Of these pulled arms the one that would be best, with some luck, if f had this kernel."""
    other = belief.under(kernel)
    scores = np.where(np.isin(belief.pulled, among), other.mean + other.std, -np.inf)
    return int(belief.pulled[np.argmax(scores)])


def leaps(points: Floats, groups: Ints, rng: Rng) -> Floats:
    """The (n, d) points with one parameter of each moved anywhere, (n, d): the first ones' first, and so on."""
    parameters = int(groups.max()) + 1
    moved = (np.arange(len(points)) * parameters // len(points))[:, None] == groups
    return np.where(moved, rng.random(points.shape), points)
