"""Candidates: the settings at which the posterior is computed.

All settings where there are few, else a Sobol cover of the cube and clouds around the best predictions. In a wide space
the best of these climb.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from noregret.gp.improvement import log_expected_improvement
from noregret.gp.posterior import Floats, Ints, Rng
from noregret.optimizer.model.fit import minimised
from noregret.optimizer.model.posterior import Conditioned
from noregret.optimizer.model.sobol import sobol
from noregret.optimizer.space.space import SAME, Space

MOST_DRAWN = 50_000
"""Coordinates that a cover of a space with conditions takes at most, before those outside are dropped. Not measured."""

HOLE = 0.075
"""A place is unexplored if no measurement is nearer than this times sqrt(d), d the number of parameters. Decision
0238."""

Penalty = Callable[[Floats], Floats]
"""Term that is added to the means at (n, d) points, (n,): the log probability that the constraints are met."""


class Drawn(NamedTuple):
    """Candidates, (n, d), and L^-1 K(rows, candidates), (r, n), of the process they were drawn with."""

    points: Floats
    lifted: Floats


@dataclass(frozen=True)
class Candidates:
    """A scrambled Sobol cover of the cube, and clouds around the best predictions, each narrower than the last.

    Parameters
    ----------
    cover : int
        Points of the cover. Of the points measured outside of the space at most half as many are moved into it, the
        nearest ones.
    cloud : int
        Points drawn around the best in each step.
    radii : floats
        Size of the clouds, step by step, in lengthscales.
    centres : int
        How many of the best a cloud is drawn around. With four times as many coordinates or more, this many candidates
        climb in the end: with fewer, clouds come as high. Decision 0189.
    few : int
        In a space of at most this many points the posterior is made of all that were measured.
    whole : int
        A space of at most this many points is taken whole.
    entries : float
        The kernel of candidates and measured points has about this many entries at most: where it would have more,
        fewer points are drawn and moved.
    """

    cover: int = 512
    """Half of it, and of the cloud, may be worse: decision 0189."""
    cloud: int = 128
    """As for the cover."""
    radii: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02)
    """Not measured."""
    centres: int = 5
    """Not measured."""
    few: int = 1000
    """Decision 0080."""
    whole: int = 5000
    """Not measured."""
    entries: float = 300_000
    """Decision 0080."""

    def __call__(
        self,
        space: Space,
        process: Conditioned,
        measured: Floats,
        lengthscales: Floats,
        rng: Rng,
        penalty: Penalty | None = None,
    ) -> Drawn:
        """Draw points of the space, given the (u, d) measured points and the lengthscale of each coordinate."""
        if space.count <= self.whole:
            return Drawn(space.everything(), process.lifted(space.everything()))
        groups, brought = np.array(space.groups), self.cover // 2
        most = self.cover + self.cloud * len(self.radii) + brought
        part = min(1.0, self.entries / (len(measured) * most))
        cover, cloud_size = math.ceil(part * self.cover), math.ceil(part * self.cloud)
        near = self._nearest(space, measured, lengthscales, math.ceil(part * brought))

        def predict(points: Floats) -> tuple[Floats, Floats, Floats]:
            lifted, mean, std = process.predict_lifted(points)
            return lifted, mean if penalty is None else mean + penalty(points), std

        drawn = [np.vstack([space.snap(measured[near]), spread_out(space, cover, 0, rng)])]
        seen = [predict(drawn[0])]
        for radius in (*self.radii, None):
            points, mean, std = np.vstack(drawn), *(np.concatenate([part[i] for part in seen]) for i in (1, 2))
            if radius is not None:
                best = points[np.union1d(top(mean + std, self.centres), top(mean, self.centres))]
                centres = resample_inactive(space, best[np.arange(cloud_size) % len(best)], rng)
                drawn.append(space.snap(around(centres, cloud_size, radius * lengthscales, groups, rng)))
            elif len(groups) >= 4 * self.centres and math.isinf(space.count):
                incumbent = float(mean[: max(len(near), 1)].max())
                best = points[top(log_expected_improvement(mean - incumbent, std), self.centres)]
                drawn.append(self._climbed(space, predict, best, incumbent, lengthscales))
            else:
                break
            seen.append(predict(drawn[-1]))
        return Drawn(np.vstack(drawn), np.hstack([lifted for lifted, _, _ in seen]))

    def _climbed(
        self, space: Space, predict: Callable[[Floats], Any], starts: Floats, incumbent: float, lengthscales: Floats
    ) -> Floats:
        """Ends of eight steps of L-BFGS from (n, d) points up the slope of ln EI, by differences, all at once."""
        shape, sizes = (len(starts), -1, starts.shape[1]), 10 * SAME * np.minimum(lengthscales, 1.0)
        moves = np.vstack([np.zeros(len(sizes)), np.diag(sizes)])

        def loss(flat: Floats) -> tuple[float, Floats]:
            at = flat.reshape(shape)
            inward = np.where(at > 0.5, -1.0, 1.0)
            _, mean, std = predict(space.snap((at + inward * moves).reshape(-1, len(sizes))))
            scores = log_expected_improvement(mean - incumbent, std).reshape(len(starts), -1)
            slopes = (scores[:, 1:] - scores[:, :1]) / (inward[:, 0] * sizes)
            return -float(scores[:, 0].sum()), -slopes.ravel()

        optimum = minimised(loss, starts.ravel(), np.zeros(starts.size), np.ones(starts.size), steps=8)
        return space.snap(optimum.x.reshape(starts.shape))

    def _nearest(self, space: Space, points: Floats, lengthscales: Floats, most: int) -> Ints:
        """Those of (n, d) points that are in the space and, up to ``most``, the nearest of the others, in order."""
        away = np.linalg.norm((points - space.snap(points)) / lengthscales, axis=1)
        return np.sort(top(-away, max(most, int(np.count_nonzero(away <= SAME)))))


def top(scores: Floats, count: int) -> Ints:
    """Indices of the highest scores."""
    return np.argsort(-scores, kind="stable")[:count]


def shifted(points: Floats, rng: Rng) -> Floats:
    """All points moved by one random step, around the edges of the cube: as even as before, and elsewhere."""
    return np.asarray((points + rng.random(points.shape[1])) % 1.0)


def spread_out(space: Space, count: int, seed: int, rng: Rng | None = None) -> Floats:
    """Points of the space, (count, d): a Sobol sequence with this seed, `shifted` if there is an ``rng``.

    Where settings are excluded, more points are drawn and those inside come first; the others are snapped. Snapped
    points crowd at the edges of what is excluded.
    """
    width = len(space.groups)
    drawn = min(count / space.share, max(count, MOST_DRAWN / width)) if space.share < 1 else count
    points = sobol(1 << (math.ceil(drawn) - 1).bit_length(), width, seed)
    points = points if rng is None else shifted(points, rng)
    if space.share < 1:
        points, inside = space.placed(points)
        points = points[np.argsort(~inside, kind="stable")]
    return space.snap(points[:count])


def resample_inactive(space: Space, points: Floats, rng: Rng) -> Floats:
    """Resample the coordinates of inactive parameters uniformly."""
    applying = space.applying(points)
    if applying.all():
        return points
    return np.where(applying[:, space.groups], points, rng.random(points.shape))


def around(centres: Floats, count: int, radii: Floats, groups: Ints, rng: Rng) -> Floats:
    """Points near the centres, (count, d): Gaussian steps in some of the parameters, rarely a uniform draw in one."""
    parameters = int(groups.max()) + 1
    start = centres[np.arange(count) % len(centres)]
    moved = rng.random((count, parameters)) < max(0.5, 2 / parameters)
    moved[np.arange(count), rng.integers(parameters, size=count)] = True
    stepped = start + moved[:, groups] * radii * rng.standard_normal(start.shape)
    leaps = rng.random((count, parameters)) < 0.1 / parameters
    return np.where(leaps[:, groups], rng.random(start.shape), np.clip(stepped, 0.0, 1.0))


def unexplored_from(parameters: int) -> float:
    """Distance from all that was measured at which a place is unexplored, given the number of parameters that apply."""
    return HOLE * math.sqrt(parameters)
