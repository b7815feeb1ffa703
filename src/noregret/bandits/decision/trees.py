"""Loops on a tree of cells: `ThresholdTree` (GP-ThreDS) and `AdaptivePartition` (Ada-BKB).

`ThresholdTree` searches the cells for values above a rising threshold. `AdaptivePartition` is UCB on the centres of a
partition that becomes finer where f may be large: M. Rando, L. Carratino, S. Villa, L. Rosasco. Ada-BKB: scalable
Gaussian process optimization on continuous domains by adaptive discretization. AISTATS 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple

import numpy as np

from noregret.bandits.belief.arms import Box, located
from noregret.bandits.decision.loops import Best, Play, Pull, vouched, with_arms
from noregret.bandits.decision.region import Region
from noregret.bandits.decision.rules import UCB
from noregret.gp.arrays import is_tensor, numpy_of
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Floats, Ints, Model, Posterior, Rng, Schedule, convert_numbers

# GP-ThreDS

DEEPEST = 40
"""Depth of the tree: cells of side 2^-40 of the arms' bounding box are not split."""


class Level(NamedTuple):
    """Pass through the cells of one size."""

    arms: Floats
    """(N, d)."""
    place: Floats
    """Arms in units of their bounding box, (N, d) in [0, 1)."""
    active: Ints
    """Arms in the cells of this size."""
    threshold: float
    number: int
    """1 for the whole bounding box; the side is 2^(1 - number)."""


@dataclass(frozen=True)
class ThresholdTree:
    """GP-ThreDS: keep the cells that contain a value above a threshold, halve their sides, raise the threshold.

    The largest mean is assumed to lie in ``interval`` = (a, b), and the threshold is its midpoint. Each cell is
    searched with a separate belief about a random sample of its arms: the arm with the largest upper bound is pulled
    until all upper bounds are below the threshold minus ``slack`` times the cell's side. Whenever a lower bound exceeds
    the threshold, or after ``patience`` pulls without this, the half-side cell around the arm with the largest lower
    bound is kept for the next level and its arms leave this search. If no cell was kept, a and b fall by (b - a) / 2;
    otherwise a rises to the threshold - 0.4 2^-level (b_0 - a_0).

    When a single arm is left, or at depth `DEEPEST`, the arm with the largest lower bound is pulled from then on.
    Rewards of arms outside the sample of the current cell are not used.

    Parameters
    ----------
    model : Model
    width : Schedule
        The bounds are mean -+ width * std.
    interval : (float, float)
    points_per_cell : int
        Size of a cell's sample.
    patience : int, optional
        By default T / (16 2^d), at least 3, with T the ``horizon``, and 12 without one: 16 levels, each with all the
        2^d children of one cell, then fit into the run.
    slack : float
    horizon : int, optional
        T, used only for the patience.
    """

    model: Model
    width: Schedule
    interval: tuple[float, float]
    points_per_cell: int = 200
    patience: int | None = None
    slack: float = 0.2
    horizon: int | None = None

    def __post_init__(self) -> None:
        convert_numbers(self, "width")
        low, high = self.interval
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(f"bounds must be two numbers a < b with a <= max f <= b, got {self.interval}")
        for name in ("points_per_cell", "patience", "horizon"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise ValueError(f"{name} must be a whole number from 1, got {value!r}")
        if not 0 <= self.slack < np.inf:
            raise ValueError(f"slack must be at least 0, got {self.slack}")

    def play(self, arms: Floats, rng: Rng) -> Play:
        """Search all cells of a level, then move the threshold; at the end pull the best arm for ever."""
        arms = numpy_of(arms) if is_tensor(arms) else np.asarray(arms)  # each belief is about few of them
        low_corner, side = arms.min(axis=0), np.ptp(arms, axis=0)
        place = np.minimum((arms - low_corner) / np.where(side > 0, side, 1.0), np.nextafter(1.0, 0.0))
        active = np.arange(len(arms))
        (low, high), number, cells, best = self.interval, 1, [active], None
        while len(active) > 1 and number <= DEEPEST:
            level, kept = Level(arms, place, active, (low + high) / 2, number), []
            for cell in cells:
                children, best = yield from self._search(level, cell, best, rng)
                kept += children
            if kept:
                low = level.threshold - 0.4 * 0.5**number * (self.interval[1] - self.interval[0])
                cells, active, number = kept, np.sort(np.concatenate(kept)), number + 1
            else:
                low, high = low - (high - low) / 2, level.threshold
        about = np.array([best.arm if best else active[0]])
        belief = self.model.prior(arms[about], rng)
        while True:
            pulled, rewards = yield Pull(about, belief, active, about)
            places, is_sampled = located(about, pulled)
            belief.update(places, rewards[is_sampled])

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ width * std, each (N,)."""
        return UCB(self.width).bounds(belief)

    def _search(
        self, level: Level, cell: Ints, before: Best | None, rng: Rng
    ) -> Generator[Pull, tuple[Ints, Floats], tuple[list[Ints], Best | None]]:
        """Return the half-side cells to keep, and the best arm so far, of this cell or before."""
        # in which half of its cell of side 2^(1 - level) each arm lies, in each dimension: (n, d) of 0 and 1
        halves, drawn = np.floor(level.place[cell] * 2.0**level.number) % 2, np.arange(len(cell))
        if len(cell) > self.points_per_cell:
            drawn = np.sort(rng.choice(len(cell), self.points_per_cell, replace=False))
        sample, half, kept = cell[drawn], halves[drawn], []
        belief, patience = self.model.prior(level.arms[sample], rng), self._patience(halves.shape[1])
        alive, waited, best = np.full(len(sample), True), 0, before
        while alive.any():
            lower, upper = self.bounds(belief)
            if belief.rounds:
                best = vouched(belief, (lower, upper), sample)
                best = before if before is not None and before.lower >= best.lower else best
                if upper[alive].max() < level.threshold - self.slack * 0.5 ** (level.number - 1):
                    break
                if lower[alive].max() > level.threshold or waited >= patience:
                    chosen = half[np.argmax(np.where(alive, lower, -np.inf))]
                    kept.append(cell[(halves == chosen).all(axis=1)])
                    alive, waited = alive & (half != chosen).any(axis=1), 0
                    continue
            arm = np.argmax(np.where(alive, upper, -np.inf))
            pulled, rewards = yield Pull(sample[arm].reshape(1), belief, level.active, sample, best)
            places, is_sampled = located(sample, pulled)
            belief.update(places, rewards[is_sampled])
            waited += places.size
        return kept, best

    def _patience(self, dimension: int) -> int:
        """Patience, or its default for arms with d columns."""
        if self.patience is None:
            return max(3, self.horizon // (16 * 2**dimension)) if self.horizon else 12
        return self.patience


# Ada-BKB

PARTS = 3
"""Number of parts of a cell: an odd number, so that the middle part has the cell's own centre."""
FINEST = 1e-6
"""Cells of a box with a smaller radius are not divided: double precision does not resolve much smaller distances."""
BLOCK = 16
"""Number of the highest indices that are renewed at the start of a round; later, those of the parts of one cell."""


@dataclass(frozen=True)
class AdaptivePartition:
    """Loop of Ada-BKB: divide the cell with the highest index, or pull its centre.

    A cell with centre c and radius V, the largest B d(c, x) of its points x with the kernel's distance d, has the index

        the smallest of mean(c) + width std(c) + V now and earlier, and of the index of the cell it is a part of.

    If the band holds at all rounds, f is at most the index in the whole cell. The cell with the highest index is
    divided into three if width std(c) <= V; otherwise its centre is pulled. Then f* - f(c) <= 2 width std(c) + V <= 3
    width std(c): the regret is at most 3/2 of the bound for UCB with exact maxima. Indices only fall, so an old one is
    an upper bound, and only those at the top are renewed in a round.

    On a box a cell is a box, divided along the side that is longest in the kernel's distance; the kernel must be
    stationary and fall with the distance. Cells of a radius below 1e-6 B are not divided, which adds at most that to
    the regret of a round. On finitely many arms a cell is a set of arms and its centre one of them, so V is 0 in the
    end.

    Parameters
    ----------
    model : Model
    rule : UCB
    norm : float
        B, a bound on the RKHS norm of f.
    kernel : Kernel
        Kernel of the model.
    """

    model: Model
    rule: UCB
    norm: float
    kernel: Kernel

    def play(self, arms: Floats | Box, rng: Rng) -> Play:
        """Divide, pull, learn; for ever."""
        return self._on_box(arms, rng) if isinstance(arms, Box) else self._on_arms(arms, rng)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Mean -+ width * std, each (N,)."""
        return self.rule.bounds(belief)

    def _on_box(self, box: Box, rng: Rng) -> Play:
        cells, region = _BoxCells(box, self.kernel, self.norm), Region(box)
        leaves, belief = _Leaves(cells.whole), self.model.prior(box.centre[None], rng)
        places = {box.centre.tobytes(): 0}  # of the belief's arms
        while True:
            point = leaves.highest(belief.predict, self.rule.width(belief)).centre[None]
            pulled, rewards = yield Pull(point, belief, region, belief.arms)
            names = [point.tobytes() for point in pulled]
            if any(name not in places for name in names):
                belief = with_arms(belief, pulled)
                places |= {belief.arms[i].tobytes(): i for i in range(len(places), len(belief.arms))}
            belief.update([places[name] for name in names], rewards)

    def _on_arms(self, arms: Any, rng: Rng) -> Play:
        points = numpy_of(arms) if is_tensor(arms) else np.asarray(arms)
        belief, active = self.model.prior(arms, rng), np.arange(len(points))
        leaves = _Leaves(_ArmCell(active, points, self.kernel, self.norm))

        def known(chosen: Any) -> tuple[Floats, Floats]:
            places = np.array(chosen, np.intp)
            return np.asarray(numpy_of(belief.mean[places])), np.asarray(numpy_of(belief.std[places]))

        while True:
            arm = leaves.highest(known, self.rule.width(belief)).centre
            pulled, rewards = yield Pull(np.array([arm], np.intp), belief, active)
            belief.update(pulled, rewards)


class _Leaf(NamedTuple):
    """Undivided cell in a heap, the highest index first, the oldest on ties."""

    below: float
    """Minus the index."""
    number: int
    cell: Any
    renewed: int = -1
    """Round in which the index was renewed."""
    half_width: float = np.inf
    """width * std of the centre in that round."""


class _Leaves:
    """Leaves of the tree of cells."""

    def __init__(self, cell: Any) -> None:
        self._heap, self._count, self._round = [_Leaf(-np.inf, 0, cell)], 1, 0

    def highest(self, believed: Callable[[Any], tuple[Floats, Floats]], width: float) -> Any:
        """Cell with the highest index that is not to be divided; ``believed`` returns mean and std of some centres."""
        self._round += 1
        self._renew(believed, width, BLOCK)
        while True:
            leaf = self._heap[0]
            if leaf.renewed < self._round:
                self._renew(believed, width, PARTS)
            elif leaf.half_width <= leaf.cell.radius and (parts := leaf.cell.parts()):
                heapreplace(self._heap, _Leaf(leaf.below, self._count, parts[0]))
                for i, part in enumerate(parts[1:], start=1):
                    heappush(self._heap, _Leaf(leaf.below, self._count + i, part))
                self._count += len(parts)
            else:
                return leaf.cell

    def _renew(self, believed: Callable[[Any], tuple[Floats, Floats]], width: float, most: int) -> None:
        """Renew the highest indices, ``most`` of them at most, as far as they are old."""
        old: list[_Leaf] = []
        while self._heap and len(old) < most and self._heap[0].renewed < self._round:
            old.append(heappop(self._heap))
        means, stds = believed([leaf.cell.centre for leaf in old])
        for leaf, mean, half_width in zip(old, means.tolist(), (width * stds).tolist(), strict=True):
            below = max(leaf.below, -(mean + half_width + leaf.cell.radius))
            heappush(self._heap, _Leaf(below, leaf.number, leaf.cell, self._round, half_width))


class _BoxCells:
    """Cells of a box: those of one depth have the same sides."""

    def __init__(self, box: Box, kernel: Kernel, norm: float) -> None:
        self._box, self._kernel, self._norm = box, kernel, norm
        self._halves = [box.sides / 2]  # half the sides of a cell, by depth
        self._divided: list[int] = []  # coordinate along which cells are divided, by depth
        self.radii = [norm * float(box.kernel_distances(kernel, box.sides[None] / 2)[0])]

    @property
    def whole(self) -> _BoxCell:
        """The box."""
        return _BoxCell(self, 0, self._box.centre)

    def divided(self, cell: _BoxCell) -> list[_BoxCell]:
        """Parts of a cell; none if it is too small."""
        if self.radii[cell.depth] <= FINEST * self._norm:
            return []
        if cell.depth == len(self._divided):
            halves = self._halves[-1].copy()
            side = int(np.argmax(self._box.kernel_distances(self._kernel, np.diag(halves))))
            halves[side] /= PARTS
            self._divided.append(side)
            self._halves.append(halves)
            self.radii.append(self._norm * float(self._box.kernel_distances(self._kernel, halves[None])[0]))
        side = self._divided[cell.depth]
        step, centres = 2 * self._halves[cell.depth + 1][side], np.tile(cell.centre, (PARTS, 1))
        centres[:, side] += step * (np.arange(PARTS) - PARTS // 2)
        return [_BoxCell(self, cell.depth + 1, centre) for centre in centres]


class _BoxCell(NamedTuple):
    cells: _BoxCells
    depth: int
    centre: Floats

    @property
    def radius(self) -> float:
        return self.cells.radii[self.depth]

    def parts(self) -> list[_BoxCell]:
        return self.cells.divided(self)


@dataclass(frozen=True, eq=False)
class _ArmCell:
    """Set of arms, by their indices; the centre is the arm nearest to the middle of their bounding box."""

    members: Ints
    points: Floats
    kernel: Kernel
    norm: float

    @cached_property
    def centre(self) -> int:
        """Arm nearest to the middle, in units of the sides."""
        own = self.points[self.members]
        low, side = own.min(axis=0), np.ptp(own, axis=0)
        away = (own - low - side / 2) / np.where(side > 0, side, 1.0)
        return int(self.members[int(np.argmin((away**2).sum(axis=1)))])

    @cached_property
    def radius(self) -> float:
        """Largest B d(centre, x) of its arms x."""
        own, centre = self.points[self.members], self.points[[self.centre]]
        squared = self.kernel.diag(own) + self.kernel.diag(centre) - 2 * self.kernel(centre, own)[0]
        return self.norm * float(np.sqrt(max(float(squared.max()), 0.0))) if len(own) > 1 else 0.0

    def parts(self) -> list[_ArmCell]:
        """Thirds along the side that is longest in the kernel's distance; equal arms one by one."""
        own = self.points[self.members]
        if len(own) == 1:
            return []
        low, side = own.min(axis=0), np.ptp(own, axis=0)
        corners = low + np.diag(side)
        squared = self.kernel.diag(corners) + self.kernel.diag(low[None]) - 2 * self.kernel(low[None], corners)[0]
        squared[side == 0] = -1.0
        longest = int(np.argmax(squared))
        if side[longest] > 0:
            third = np.minimum((PARTS * (own[:, longest] - low[longest]) / side[longest]).astype(np.intp), PARTS - 1)
        else:
            third = np.arange(len(own))
        groups = [self.members[third == part] for part in np.unique(third)]
        return [_ArmCell(group, self.points, self.kernel, self.norm) for group in groups]
