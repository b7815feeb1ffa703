"""ThresholdTree: a tree of cells, searched for values above a rising threshold (GP-ThreDS)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from noregret.belief.arrays import is_tensor, numpy_of
from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng, Schedule, convert_numbers
from noregret.decision.arms import located
from noregret.decision.loops import Best, Play, Pull, vouched
from noregret.decision.rules import UCB

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
            level, found = Level(arms, place, active, (low + high) / 2, number), []
            for cell in cells:
                children, best = yield from self._search(level, cell, best, rng)
                found += children
            if found:
                low = level.threshold - 0.4 * 0.5**number * (self.interval[1] - self.interval[0])
                cells, active, number = found, np.sort(np.concatenate(found)), number + 1
            else:
                low, high = low - (high - low) / 2, level.threshold
        yield from self._exploit(arms, best.arm if best else int(active[0]), active, rng)

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

    def _exploit(self, arms: Floats, arm: int, active: Ints, rng: Rng) -> Play:
        """Pull one arm for ever."""
        about = np.array([arm])
        belief = self.model.prior(arms[about], rng)
        while True:
            pulled, rewards = yield Pull(about, belief, active, about)
            places, is_sampled = located(about, pulled)
            belief.update(places, rewards[is_sampled])
