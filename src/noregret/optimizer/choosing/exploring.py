"""Exploring: the questions that look where the fitted belief would not, so that no run stays on a wrong hill.

Every question t at which ``share`` sqrt(t) passes a whole number explores: their number grows without end, their share
vanishes. Three kinds take turns:

- the candidate with the highest upper bound, mean + ``width`` std;
- a leap: the best point measured with one parameter moved anywhere, where that upper bound is highest;
- the next point of the design that the first questions came from, which depends on the seed alone.

The third kind makes the points that are measured dense in the space, whatever is fitted (docs/guarantees.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.optimizer.choosing.candidates import loosened
from noregret.optimizer.spaces.space import Space


@dataclass(frozen=True)
class Exploring:
    """When to explore, and how far beyond the mean to look."""

    share: float = 3.0
    after: int = 200
    width: float = 4.0
    values: int = 40
    """How many values of each parameter a leap may go to."""

    def turn(self, question: int) -> int | None:
        """The number of this exploring question, from 1; None if it does not explore."""
        turn = self._passed(question)
        return turn if question > self.after and turn > self._passed(question - 1) else None

    def _passed(self, question: int) -> int:
        """How many whole numbers share sqrt(t) has passed since the first questions."""
        return math.floor(self.share * math.sqrt(question)) - math.floor(self.share * math.sqrt(self.after))

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


def leaps(points: Floats, groups: Ints, rng: Rng) -> Floats:
    """The (n, d) points with one parameter of each moved anywhere, (n, d): the first ones' first, and so on."""
    parameters = int(groups.max()) + 1
    moved = (np.arange(len(points)) * parameters // len(points))[:, None] == groups
    return np.where(moved, rng.random(points.shape), points)
