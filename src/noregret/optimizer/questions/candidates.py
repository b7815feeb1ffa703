"""Candidates: where to look. All there is if that is little, else a cover of the cube refined where it looks good."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from noregret.belief.posterior import Floats, Ints, Posterior, Rng
from noregret.optimizer.space.space import Space

ROUNDING = 1e-6
"""How far rounding may bring a point from where it is in a space, in lengthscales."""


@dataclass(frozen=True)
class Candidates:
    """A scrambled Sobol cover of the cube, and clouds around what scores best, drawn closer step by step.

    Parameters
    ----------
    cover : int
        Points of the cover.
    cloud : int
        Points drawn around the best in each step.
    radii : floats
        Size of the clouds, step by step, in lengthscales.
    centres : int
        How many of the best a cloud is drawn around.
    few : int
        A space of at most so many points is taken whole.
    brought : int
        At most so many of the points measured outside of the space are brought into it, the nearest ones.
    entries : float
        The kernel of candidates and measured points has about so many entries at most: where it would have more, fewer
        points are drawn and brought.
    """

    cover: int = 512
    cloud: int = 128
    radii: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02)
    centres: int = 5
    few: int = 1000
    brought: int = 256
    entries: float = 300_000

    def __call__(self, space: Space, measured: Posterior, lengthscales: Floats, rng: Rng) -> Floats:
        """Points of the space, (N, d), given the belief on what was measured and the lengthscale of each coordinate.

        What was measured is among them, of what lies outside of the space as much as is ``brought`` into it.
        """
        if space.count <= self.few:
            return space.everything()
        groups, part = np.array(space.groups), self._part(len(measured.arms))
        cover, cloud_size = math.ceil(part * self.cover), math.ceil(part * self.cloud)
        near = self._nearest(space, measured.arms, lengthscales, math.ceil(part * self.brought))
        spread_out = shifted(sobol(self.cover, len(groups), 0)[:cover], rng)
        points = np.vstack([space.snap(measured.arms[near]), space.snap(spread_out)])
        mean, std = measured.predict(points)
        for radius in self.radii:
            best = points[np.union1d(top(mean + std, self.centres), top(mean, self.centres))]
            centres = loosened(space, best[np.arange(cloud_size) % len(best)], rng)
            cloud = space.snap(around(centres, cloud_size, radius * lengthscales, groups, rng))
            cloud_mean, cloud_std = measured.predict(cloud)
            points = np.vstack([points, cloud])
            mean, std = np.concatenate([mean, cloud_mean]), np.concatenate([std, cloud_std])
        return points

    def _part(self, measured: int) -> float:
        """Which part of the candidates is drawn, so many points being measured."""
        return min(1.0, self.entries / (measured * (self.cover + self.cloud * len(self.radii) + self.brought)))

    def _nearest(self, space: Space, points: Floats, lengthscales: Floats, most: int) -> Ints:
        """Those of (n, d) points that are in the space and, up to so many, the nearest of the others, in order."""
        away = np.linalg.norm((points - space.snap(points)) / lengthscales, axis=1)
        return np.sort(top(-away, max(most, int(np.count_nonzero(away <= ROUNDING)))))


def top(scores: Floats, count: int) -> Ints:
    """The highest scores' indices."""
    return np.argsort(-scores, kind="stable")[:count]


@lru_cache(maxsize=8)
def sobol(count: int, dimension: int, seed: int) -> Floats:
    """The first points of a scrambled Sobol sequence, (count, d)."""
    from scipy.stats import qmc  # here, as it takes longer to import than the rest of noregret

    power = int(np.ceil(np.log2(max(count, 1))))  # below: seed, not rng, is the name that older scipy knows
    points = np.asarray(qmc.Sobol(dimension, seed=np.random.default_rng(seed)).random_base2(power))[:count]
    points.setflags(write=False)
    return points


def shifted(points: Floats, rng: Rng) -> Floats:
    """All points moved by one random step, around the edges of the cube: as even as before, and elsewhere."""
    return np.asarray((points + rng.random(points.shape[1])) % 1.0)


def loosened(space: Space, points: Floats, rng: Rng) -> Floats:
    """The points with what does not apply drawn at random, so that a move that makes it apply finds it anywhere."""
    applying = space.applying(points)
    if applying.all():
        return points
    return np.where(applying[:, space.groups], points, rng.random(points.shape))


def around(centres: Floats, count: int, radii: Floats, groups: Ints, rng: Rng) -> Floats:
    """Points near the centres, (count, d): Gaussian steps in some of the parameters, and now and then a leap in one."""
    parameters = int(groups.max()) + 1
    start = centres[np.arange(count) % len(centres)]
    moved = rng.random((count, parameters)) < max(0.5, 2 / parameters)
    moved[np.arange(count), rng.integers(parameters, size=count)] = True
    stepped = start + moved[:, groups] * radii * rng.standard_normal(start.shape)
    leaps = rng.random((count, parameters)) < 0.1 / parameters
    return np.where(leaps[:, groups], rng.random(start.shape), np.clip(stepped, 0.0, 1.0))
