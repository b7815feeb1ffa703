"""Explore: questions that look where the fitted models would not, so that no run stays on a wrong hill.

Every question t at which ``share`` t^(2/3) passes a whole number explores: their number grows without end, their share
vanishes. Before that, two of three do as long as the noise hides f: what looks best then is mostly luck. Four kinds
take turns, and now and then a fifth:

- farthest: the candidate farthest from all that was measured, and from the edges of the cube;
- one parameter: the best point measured with one parameter moved to where mean + ``width`` std is highest;
- higher: the largest expected improvement if f had higher hills than fitted;
- shorter: the same if it had narrower ones too;
- repeat: one of the first points, so that the best of them is known in the end by its own values alone.

The farthest points make the measured points dense in the space, whatever is fitted, and the repeats make regret vanish
(docs/guarantees.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree

from noregret.belief.posterior import Floats, Ints, Rng
from noregret.decision.rules import log_expected_improvement
from noregret.optimizer.model.candidates import around, resample_inactive, shifted, sobol, top
from noregret.optimizer.model.constraints import IGNORE
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.model.posterior import condition
from noregret.optimizer.space.space import Bools, Space

Kind = Literal["farthest", "one parameter", "higher", "shorter", "repeat"]
TURNS: tuple[Kind, ...] = (
    *("farthest", "shorter", "one parameter", "farthest", "shorter", "higher") * 4,
    "repeat",
)
EARLY: tuple[Kind | None, ...] = (None, "shorter", "farthest")
"""How questions explore in turn while the noise hides f."""

Score = Callable[[Floats], Floats]
"""Scores of (n, d) points, (n,)."""

EDGE = 0.1
"""Part of the distance from what was measured that a point counts as at least, however near an edge of the cube."""

COVER, CLOUD, CENTRES, SIZES = 256, 128, 4, (1.0, 0.5, 0.2)
"""Points of a cover and of a cloud, how many of the best it is drawn around, and the sizes of its parts."""


@dataclass(frozen=True)
class Explore:
    """When to explore, and how far beyond the mean to look."""

    share: float = 4.0
    after: int = 200
    width: float = 4.0
    values: int = 40
    """Values of each parameter that a change of one may go to."""
    ratio: float = 0.35
    """Part of the fitted lengthscales that those of a rougher f are."""
    typical: float = 2.0
    """Height of the best hill in standard deviations, if f has higher hills than fitted."""
    margin: float = 0.25
    """Standard deviations of f from which on an improvement counts: there is always a little one on the best hill."""
    hidden: float = 1.5
    """Standard deviations of f from which on the noise hides it."""

    def __call__(self, state: Snapshot, rng: Rng) -> int | Floats | None:
        """Return what to measure, None if this question does not explore or there is nothing left to explore."""
        kind = self.turn(state.known, state.models.fit)
        if kind is None:
            return None
        if kind == "repeat" and state.is_plain:
            number = state.history.account.contender()
            return int(state.arms([number])[0]) if state.arms([number]).size else state.history.point(number)
        if kind in ("repeat", "farthest"):
            return farthest(state)
        best = state.incumbents
        if kind == "one parameter":
            return self.one_parameter(state, best, rng)
        return self.doubtful(kind, state, best, rng)

    def turn(self, question: int, fit: Fit) -> Kind | None:
        """How this question explores, given the fit; None if it does not."""
        if question <= self.after:
            return EARLY[question % len(EARLY)] if fit.noise > self.hidden * fit.size else None
        passed = self._passed(question)
        return None if passed == self._passed(question - 1) else TURNS[(passed - 1) % len(TURNS)]

    def _passed(self, question: int) -> int:
        """Whole numbers that share t^(2/3) has passed since the first questions."""
        return math.floor(self.share * math.cbrt(question) ** 2) - math.floor(self.share * math.cbrt(self.after) ** 2)

    def one_parameter(self, state: Snapshot, arms: Ints, rng: Rng) -> Floats:
        """The best of the arms with one parameter moved to where the upper bound is highest, (d,)."""
        space, belief = state.space, state.belief
        best = belief.arms[arms[np.argmax(belief.mean[arms])]]
        starts = resample_inactive(space, np.tile(best, (self.values * (max(space.groups) + 1), 1)), rng)
        points = space.snap(one_moved(starts, np.array(space.groups), rng))
        mean, std = belief.predict(points)
        return np.asarray(points[np.argmax(mean + self.width * std + state.log_feasible_at(points))])

    def doubtful(self, kind: Kind, state: Snapshot, arms: Ints, rng: Rng) -> Floats:
        """Where the improvement on the best of the arms would be largest if f were not what was fitted, (d,)."""
        fit, belief, space = state.models.fit, state.belief, state.space
        highest = float(belief.mean[arms].max())
        fit = fit.scaled(self.ratio if kind == "shorter" else 1.0, max(1.0, highest / (self.typical * fit.size)))
        other = condition(fit.kernel(np.array(space.groups)), belief.rows, fit.half_life, belief.first.now)
        incumbent = float(other.predict(belief.arms[arms])[0].max()) + self.margin * fit.size

        def score(points: Floats) -> Floats:
            mean, std = other.predict(points)
            return np.asarray(log_expected_improvement(mean - incumbent, std) + state.log_feasible_at(points))

        return best_of_cloud(space, belief.arms[arms], np.array(fit.lengthscales)[list(space.groups)], score, rng)


def farthest(state: Snapshot, least: float = 0.0) -> int | None:
    """Arm farthest from all that was measured, of those that may be feasible if there are any.

    None if all of them are as near as ``least``, or the farthest is hopeless.
    """
    arms = np.flatnonzero(state.in_context)
    measured = state.belief.arms[state.belief.pulled] if state.is_moving else state.history.points
    worthwhile = state.log_feasible[arms] >= math.log(IGNORE)
    found = farthest_of(state.belief.arms[arms], measured, worthwhile, least)
    return None if found is None or not state.allowed[arms[found]] else int(arms[found])


def farthest_of(places: Floats, measured: Floats, worthwhile: Bools, least: float = 0.0) -> int | None:
    """Of the worthwhile of (n, d) places, or else of all, the one farthest from all (m, d) measured points.

    Near an edge of the cube most of what a measurement could tell about lies outside, so a place counts as no farther
    away than its mirror image beyond the edge; but as at least `EDGE` of its distance, so that edges have their turn.
    """
    distances, edges = cKDTree(measured).query(places)[0], np.minimum(places, 1 - places).min(axis=1)
    scores = np.minimum(distances, 2 * edges + EDGE * distances)
    scores = np.where(worthwhile, scores, 0.0) if worthwhile.any() else scores
    scores = np.where(distances > least, scores, 0.0)
    return int(np.argmax(scores)) if scores.max() > 0 else None


def best_of_cloud(space: Space, starts: Floats, radii: Floats, score: Score, rng: Rng) -> Floats:
    """Point with the highest score, (d,): of (n, d) starts, a cover of the space, and a cloud around the best of both.

    Parts of the cloud have ``radii``, (d,), half and a fifth of them.
    """
    groups = np.array(space.groups)
    points = np.vstack([starts, space.snap(shifted(sobol(COVER, groups.size, 0), rng))])
    best = points[top(score(points), CENTRES)]
    sizes = np.resize(np.repeat(SIZES, CENTRES), CLOUD)[:, None]
    cloud = space.snap(around(resample_inactive(space, best, rng), CLOUD, sizes * radii, groups, rng))
    near = np.vstack([best, cloud])
    return np.asarray(near[np.argmax(score(near))])


def one_moved(points: Floats, groups: Ints, rng: Rng) -> Floats:
    """The (n, d) points with one parameter of each moved anywhere, (n, d): the first ones' first, and so on."""
    parameters = int(groups.max()) + 1
    moved = (np.arange(len(points)) * parameters // len(points))[:, None] == groups
    return np.where(moved, rng.random(points.shape), points)
