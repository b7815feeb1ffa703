"""Region: the part of a box whose points pass a list of tests; and searches for maxima on a box.

Uniform points of it are drawn by rejection. The proposals come from the whole box while at least one in `WASTE` is
accepted. After that they come from small boxes around known points of the region, one of which is drawn at random; a
proposal that lies in m of the boxes is kept with probability 1/m, so that accepted points are uniform on the part of
the region that the boxes cover. A box reaches as far as the largest distance of a known point to its nearest neighbour.
A piece of the region can be missed only if no earlier known point lies in or near it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from noregret.bandits.belief.arms import Bools, Box
from noregret.gp.posterior import Floats, Ints, Rng

Test = Callable[[Floats], Bools]

WASTE = 50
"""Proposals per accepted point above which proposals come from smaller boxes."""
CLOUD = 1000
"""Number of uniform points that describe a region."""
ENOUGH = 20
"""Least number of known points for small boxes; fewer only after `PATIENCE` proposals."""
BATCH, PATIENCE = 2000, 10_000
"""Proposals tested at once; proposals after which the points found so far must suffice."""
ANCHORS = 100
"""Largest number of small boxes."""
NARROWINGS = 40
"""Number of times the boxes are made smaller (at most halved) before only known points represent the region."""
NEIGHBOURS = 6
"""Number of nearest points that a point is joined to, if the midpoint lies in the region too."""
LINKS = 5
"""Number of nearest pairs of points of two pieces; the pieces are one if a line between a pair lies in the region."""
SMALLEST_PIECE = 0.02
"""Least share of the known points for a separate piece of the region."""
STEP = 1e-4
"""Last step of the search for a maximum, as a share of the box's sides."""
PEAKS = 4
"""Number of starting points of `highest_point`: the highest of those above their neighbours."""
TALLEST = 200
"""Number of the highest arms among which starting points are looked for."""
DIFFERENCE = 1e-5
"""Step of the differences that give its gradient, as a share of the box's sides."""
ITERATIONS = 25
"""Largest number of its steps, of L-BFGS-B."""


@dataclass(frozen=True, eq=False)
class Cover:
    """Union of the boxes anchor -+ reach, anchors (m, d), reach (d,)."""

    anchors: Floats
    reach: Floats

    @classmethod
    def around(cls, points: Floats, spacing: Floats) -> Cover:
        """Up to `ANCHORS` boxes that contain all these points and reach one spacing beyond each.

        The spacing is the largest distance of a point to its nearest neighbour, or the given one if there are too few
        points.
        """
        if len(points) < ENOUGH:
            return cls(points, spacing)
        unit = np.maximum(np.ptp(points, axis=0), 1e-9 * spacing)
        scaled = points / unit
        nearest = np.asarray(cKDTree(scaled).query(scaled, 2, p=np.inf)[0])[:, 1]
        chosen, radius = _centres(scaled, ANCHORS)
        return cls(points[chosen], unit * radius + np.minimum(unit * nearest.max(), spacing))

    def sample(self, count: int, rng: Rng) -> Floats:
        """Uniform points, at most ``count``, (n, d)."""
        centres = self.anchors[rng.integers(len(self.anchors), size=count)]
        points = centres + self.reach * rng.uniform(-1, 1, centres.shape)
        boxes = (cdist(points / self.reach, self.anchors / self.reach, "chebyshev") <= 1).sum(axis=1)
        return np.asarray(points[rng.random(count) * np.maximum(boxes, 1) < 1])


def _centres(points: Floats, count: int) -> tuple[list[int], float]:
    """Points, each the farthest from those before, and the largest distance of any point to the nearest of them."""
    chosen, distance = [0], np.full(len(points), np.inf)
    while True:
        distance = np.minimum(distance, np.abs(points - points[chosen[-1]]).max(axis=1))
        if len(chosen) == count:
            return chosen, float(distance.max())
        chosen.append(int(np.argmax(distance)))


@dataclass(frozen=True, eq=False)
class Nearest:
    """Test that the nearest of some points, in units of the box's sides, has a given label."""

    tree: Any
    sides: Floats
    labels: Ints
    label: int

    def __call__(self, points: Floats) -> Bools:
        return np.asarray(self.labels[self.tree.query(points / self.sides)[1]] == self.label)


@dataclass(frozen=True, eq=False)
class Region:
    """Points of a box that pass every test; ``known`` are (n, d) points of it, uniform except for a few."""

    box: Box
    tests: tuple[Test, ...] = ()
    known: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    cover: Cover | None = field(default=None, repr=False)

    def contains(self, points: Any) -> Bools:
        """Mask of the (n, d) points that are in the region, (n,)."""
        points = np.asarray(points, dtype=float)
        inside = self.box.contains(points)
        for test in self.tests:
            if inside.any():
                inside[inside] = test(points[inside])
        return inside

    def shrunk(self, test: Test, witnesses: Floats, rng: Rng) -> Region:
        """Region with one more test; ``witnesses`` (n, d) are points of it, at least one in every piece."""
        known = np.vstack([witnesses, self.known[test(self.known)]])
        return replace(self, tests=(*self.tests, test), known=known).surveyed(rng)

    def surveyed(self, rng: Rng) -> Region:
        """Same region with `CLOUD` known points, and with proposals of which enough are accepted.

        The cover is remade each time the known points have doubled: parts that it missed lie at its edges, and so do
        some of the new points.
        """
        region, known = self, self.known.reshape(-1, self.box.dimension)
        narrowings = tried = accepted = 0
        made_of = len(known)
        while len(known) < CLOUD and narrowings < NARROWINGS:
            proposed = region.propose(rng)
            inside = proposed[region.contains(proposed)]
            known, tried, accepted = np.vstack([known, inside]), tried + BATCH, accepted + len(inside)
            wasteful = tried > WASTE * accepted and (len(known) >= ENOUGH or tried >= PATIENCE)
            if wasteful or (region.cover and len(known) >= 2 * max(made_of, ENOUGH)):
                region, made_of = replace(region, cover=region.covered(known)), len(known)
                narrowings, tried, accepted = narrowings + wasteful, 0, 0
        return replace(region, known=known, cover=region.covered(known) if region.cover else None)

    def propose(self, rng: Rng) -> Floats:
        """Uniform points of the box or of the cover, (n, d)."""
        return self.cover.sample(BATCH, rng) if self.cover else self.box.sample(BATCH, rng)

    def covered(self, known: Floats) -> Cover:
        """Cover around known points."""
        reach = self.cover.reach if self.cover else self.box.sides
        return Cover.around(known, reach if len(known) >= ENOUGH else reach / 2)

    def sample(self, count: int, rng: Rng) -> Floats:
        """Uniform points, (count, d); known points if `PATIENCE` proposals in a row are rejected."""
        samples, missing, failed = [np.empty((0, self.box.dimension))], count, 0
        while missing > 0 and failed < PATIENCE:
            proposed = self.propose(rng)
            inside = proposed[self.contains(proposed)][:missing]
            samples.append(inside)
            missing, failed = missing - len(inside), 0 if len(inside) else failed + BATCH
        return np.vstack([*samples, self.known[rng.integers(max(len(self.known), 1), size=missing)]])

    def pieces(self) -> list[Region]:
        """Connected parts of the region, as far as its known points distinguish them."""
        labels = _labels(self) if len(self.known) >= CLOUD else np.zeros(1, dtype=np.intp)
        if (labels == labels[0]).all():
            return [self]
        tree, parts = cKDTree(self.known / self.box.sides), []
        spacing = self.cover.reach if self.cover else self.box.sides
        for label in np.unique(labels).tolist():
            test, known = Nearest(tree, self.box.sides, labels, label), self.known[labels == label]
            cover = Cover.around(known, spacing)
            parts.append(replace(self, tests=(test, *self.tests), known=known, cover=cover))
        return parts


def _labels(region: Region) -> Ints:
    """Piece of each known point: neighbours are joined if the midpoint is inside too."""
    points, count = region.known / region.box.sides, len(region.known)
    other = np.asarray(cKDTree(points).query(points, NEIGHBOURS + 1)[1])[:, 1:]
    pairs = np.unique(np.sort(np.column_stack([np.repeat(np.arange(count), NEIGHBOURS), other.reshape(-1)])), axis=0)
    joined = pairs[region.contains(region.known[pairs].mean(axis=1))].astype(np.int32)  # scipy 1.11 needs int32
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(count, count))
    labels = np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)
    large = np.flatnonzero(np.bincount(labels) >= SMALLEST_PIECE * count)
    if large.size < 2:
        return np.zeros_like(labels)
    kept = np.isin(labels, large)
    labels = labels[kept][cKDTree(points[kept]).query(points)[1]]
    for first, second in combinations(large.tolist(), 2):
        if _linked(region, labels == first, labels == second):
            labels[labels == first] = second
    return labels


def _linked(region: Region, first: Bools, second: Bools) -> bool:
    """True if a straight line within the region connects two sets of known points."""
    if not (first.any() and second.any()):
        return False
    one, two, sides = region.known[first], region.known[second], region.box.sides
    distance = cdist(one / sides, two / sides)
    nearest = np.argpartition(distance, LINKS, axis=None)[:LINKS]
    i, j = np.unravel_index(nearest, distance.shape)
    at = np.linspace(0, 1, 12)[1:-1, None, None]
    lines = (1 - at) * one[i] + at * two[j]
    inside = region.contains(lines.reshape(-1, lines.shape[-1])).reshape(lines.shape[:2])
    return bool(inside.all(axis=0).any())


def climb(
    value: Callable[[Floats], Floats], starts: Floats, values: Floats, box: Box, step: Floats
) -> tuple[Floats, Floats]:
    """Local maxima (n, d) and their values (n,), by a pattern search from (n, d) starts and their values.

    A point moves to the best of its 2 d neighbours while that helps, then its step is halved, down to `STEP` of the
    box's sides.
    """
    at, best, part = starts.copy(), values.copy(), np.ones(len(starts))
    moves = np.vstack([np.eye(box.dimension), -np.eye(box.dimension)]) * step
    least = STEP * (box.sides / step).min()
    while (going := np.flatnonzero(part > least)).size:
        around = at[going, None] + part[going, None, None] * moves
        heights = value(around.reshape(-1, box.dimension)).reshape(going.size, -1)
        i, each = np.argmax(heights, axis=1), np.arange(going.size)
        better = heights[each, i] > best[going]
        at[going[better]], best[going[better]] = around[each, i][better], heights[each, i][better]
        part[going[~better]] /= 2
    return at, best


def tops(points: Floats, values: Floats, box: Box, count: int) -> Ints:
    """Indices of the (n, d) points that are above their `NEIGHBOURS` nearest ones, the highest first."""
    near = np.asarray(cKDTree(points / box.sides).query(points / box.sides, min(NEIGHBOURS + 1, len(points)))[1])
    local = np.flatnonzero(values >= values[near.reshape(len(points), -1)].max(axis=1))
    return np.asarray(local[np.argsort(-values[local], kind="stable")[:count]])


def highest_point(score: Callable[[Floats], Floats], arms: Floats, scores: Floats, box: Box) -> tuple[Floats, float]:
    """Point of the box with the highest score that was found, (d,), and its score.

    The search is L-BFGS-B from the best of the (N, d) arms, whose (N,) scores are known, with gradients from central
    differences. All starts are one search for the largest sum of their scores, so that a step evaluates one block of
    points. A maximum that has no start nearby is missed.
    """
    listed = np.sort(np.argpartition(-scores, TALLEST)[:TALLEST]) if len(scores) > TALLEST else np.arange(len(scores))
    listed = listed[np.lexsort((listed, -scores[listed]))]
    chosen = listed[tops(arms[listed], scores[listed], box, PEAKS)]
    starts, d = (arms[chosen] - box.lower) / box.sides, box.dimension
    moves = DIFFERENCE * np.vstack([np.zeros((1, d)), np.eye(d), -np.eye(d)])

    def descent(flat: Floats) -> tuple[float, Floats]:
        around = flat.reshape(-1, 1, d) + moves
        values = score(box.lower + box.sides * around.reshape(-1, d)).reshape(len(starts), -1)
        gradient = (values[:, 1 : d + 1] - values[:, d + 1 :]) / (2 * DIFFERENCE)
        return -float(values[:, 0].sum()), -gradient.reshape(-1)

    limits: Any = [(0.0, 1.0)] * starts.size
    optimum = minimize(
        descent, starts.reshape(-1), jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": ITERATIONS}
    )
    points = box.lower + box.sides * np.clip(optimum.x.reshape(-1, d), 0.0, 1.0)
    points = np.clip(points, box.lower, [high for _, high in box.bounds])
    values = score(points)
    best = int(np.argmax(values))
    if values[best] > scores[chosen[0]]:
        return np.asarray(points[best]), float(values[best])
    return arms[chosen[0]], float(scores[chosen[0]])
