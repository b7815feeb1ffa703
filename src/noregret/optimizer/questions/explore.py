"""Exploring: the questions that look where the fitted belief would not, so that no run stays on a wrong hill.

Every question t at which ``share`` t^(2/3) passes a whole number explores: their number grows without end, their share
vanishes. Before that, two of three do as long as the noise hides f: what looks best then is mostly luck. Four kinds
take turns, and now and then a fifth:

- hole: the candidate farthest from all that was measured, and from the edges of the cube;
- leap: the best point measured with one parameter moved to where the upper bound, mean + ``width`` std, is highest;
- bold: what would improve on the best most if f had higher hills than fitted;
- rough: the same if it had narrower ones too. A hill that was hit but is too narrow for the fit is looked at again,
  and climbed;
- again: one of the first points, in order that the best of them is known in the end by its own values alone.

The holes make the points that are measured dense in the space, whatever is fitted, and what is asked again makes
regret vanish (docs/guarantees.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.optimizer.questions.candidates import around, loosened, shifted, sobol, top
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.space.space import Space

Bools = NDArray[np.bool_]

Kind = Literal["hole", "leap", "bold", "rough", "again"]
TURNS: tuple[Kind, ...] = (*("hole", "rough", "leap", "hole", "rough", "bold") * 4, "again")
EARLY: tuple[Kind | None, ...] = (None, "rough", "hole")
"""How questions explore in turn while the noise hides f."""


Score = Callable[[Floats], Floats]
"""The scores of (n, d) points, (n,)."""

EDGE = 0.1
"""A hole counts as at least this part of its distance from what was measured, however near an edge of the cube."""

HOLE = 0.075
"""A place is unexplored if no measurement is nearer than this times sqrt(d), d the number of parameters."""

COVER, CLOUD, CENTRES, SIZES = 256, 128, 4, (1.0, 0.5, 0.2)
"""Points of a cover and of a cloud, how many of the best it is drawn around, and the sizes of its parts."""


@dataclass(frozen=True)
class Exploring:
    """When to explore, and how far beyond the mean to look."""

    share: float = 4.0
    after: int = 200
    width: float = 4.0
    values: int = 40
    """How many values of each parameter a leap may go to."""
    ratio: float = 0.35
    """The lengthscales of a rougher f are this part of the fitted ones."""
    typical: float = 2.0
    """The best hill is so many standard deviations high, if f has higher hills than fitted."""
    margin: float = 0.25
    """An improvement counts from so many standard deviations of f on: there is always a little one on the best hill."""

    hidden: float = 1.5
    """The noise hides f if it is larger than so many standard deviations of f."""

    def turn(self, question: int, fit: Fit) -> Kind | None:
        """How this question explores, the belief having this fit; None if it does not."""
        if question <= self.after:
            return EARLY[question % len(EARLY)] if fit.noise > self.hidden * fit.size else None
        passed = self._passed(question)
        return None if passed == self._passed(question - 1) else TURNS[(passed - 1) % len(TURNS)]

    def _passed(self, question: int) -> int:
        """How many whole numbers share t^(2/3) has passed since the first questions."""
        return math.floor(self.share * math.cbrt(question) ** 2) - math.floor(self.share * math.cbrt(self.after) ** 2)

    def doubting(self, kind: Kind, fit: Fit, highest: float) -> Fit:
        """The fit of a bold or rough question, if the highest mean lies so far above the prior one."""
        return fit.scaled(self.ratio if kind == "rough" else 1.0, max(1.0, highest / (self.typical * fit.size)))

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


def unexplored_from(parameters: int) -> float:
    """How far from all that was measured a place is unexplored, where so many parameters apply."""
    return HOLE * math.sqrt(parameters)


def hole(places: Floats, measured: Floats, worthwhile: Bools, least: float = 0.0) -> int | None:
    """Of those (n, d) places that are worthwhile, or else of all, the one farthest from all (m, d) points measured.

    None if all of them are as near to what was measured as ``least``.

    Near an edge of the cube most of what a measurement could tell about lies outside, so a place counts as no farther
    away than its mirror image beyond the edge; but as at least `EDGE` of its distance, so that edges have their turn.
    """
    distances, edges = cKDTree(measured).query(places)[0], np.minimum(places, 1 - places).min(axis=1)
    scores = np.minimum(distances, 2 * edges + EDGE * distances)
    scores = np.where(worthwhile, scores, 0.0) if worthwhile.any() else scores
    scores = np.where(distances > least, scores, 0.0)
    return int(np.argmax(scores)) if scores.max() > 0 else None


def sought(space: Space, starts: Floats, radii: Floats, score: Score, rng: Rng) -> Floats:
    """The point that scores highest, (d,): of (n, d) starts, a cover of the space, and a cloud around the best of both.

    Parts of the cloud have ``radii``, (d,), half and a fifth of them.
    """
    groups = np.array(space.groups)
    points = np.vstack([starts, space.snap(shifted(sobol(COVER, groups.size, 0), rng))])
    best = points[top(score(points), CENTRES)]
    sizes = np.resize(np.repeat(SIZES, CENTRES), CLOUD)[:, None]
    cloud = space.snap(around(loosened(space, best, rng), CLOUD, sizes * radii, groups, rng))
    near = np.vstack([best, cloud])
    return np.asarray(near[np.argmax(score(near))])


def leaps(points: Floats, groups: Ints, rng: Rng) -> Floats:
    """The (n, d) points with one parameter of each moved anywhere, (n, d): the first ones' first, and so on."""
    parameters = int(groups.max()) + 1
    moved = (np.arange(len(points)) * parameters // len(points))[:, None] == groups
    return np.where(moved, rng.random(points.shape), points)
