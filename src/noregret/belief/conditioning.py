"""All pulls of an exact posterior as one Cholesky factor that stays small and sound.

The factor (`noregret.belief.numerics.factor`) has one row per conditioning. A block of b distinct points appends b rows
at O(r b N), r the rows so far. A point pulled again at once is pooled into its row, at O(N): n pulls with ridge l are
one pull of their average with ridge l / n. A point that comes back later appends a row too. Once the rows far outnumber
the u distinct points, they are refactored into one row per distinct point, at O(u^2 N), so that r stays near 1.75 u +
32, however many the rounds, and rounding errors do not pile up. Where to refactor was measured: a row more costs every
round to come, a factorisation more costs u / 3 rounds at once. Kernel columns are computed once per point.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.columns import KernelColumns
from noregret.belief.numerics.draws import FEW_ARMS, CovarianceRoot, PriorDraws
from noregret.belief.numerics.factor import Factor
from noregret.belief.numerics.linalg import REFRESH
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints, Rng
from noregret.belief.pulls import Pooled, Pulls

_NUGGET = 64 * np.finfo(float).eps


class Conditioning:
    """What pulls of some of N points tell about all of them; with ridge 0 the smallest nugget that works stands in."""

    def __init__(self, kernel: Kernel, points: Floats, ridge: float) -> None:
        self._kernel, self._points, self._noise_free = kernel, points, not ridge
        self.pulls, self._columns = Pulls(), KernelColumns(kernel, points)
        self.factor = Factor(self._columns.variance)
        nugget = _NUGGET * max(float(self._columns.variance.max()), np.finfo(float).tiny)
        self.ridge = ridge or nugget
        self._least_noise = min(self.ridge, nugget)  # of a row: rounding would eat a smaller one
        self._pooled_in_place = 0  # pulls taken into a row that was there, since the factor was last made afresh
        self._draw_root: CovarianceRoot | None = None  # of the posterior, once somebody draws on few points
        self._prior = PriorDraws(kernel, points)  # for draws on many

    def learn_one(self, arm: int, value: float, noise: float) -> None:
        """Take in one pull of a point, with this noise factor."""
        again, ridge = self.factor.last_arm == arm, self.ridge * noise
        if self._is_due() or not (self._pool_one if again else self._append_one)(arm, value, ridge):
            self._learn_afresh(Pooled(np.array([arm]), np.array([value]), np.array([noise]), 0.0))
            return
        self.pulls.add_one(arm, value, noise)

    def learn(self, block: Pooled) -> None:
        """Take in a block of pulls."""
        arms, ridges = block.arms, self.ridge * block.noise
        with threads_for((self.factor.rows + arms.size) * arms.size * len(self._points)):
            columns = self._columns.of(arms)
            eaten = ridges.min() < self._least_noise
            if self._is_due() or eaten or not self.factor.append(arms, columns, block.values, ridges):
                self._learn_afresh(block)
                return
        self.factor.misfit += block.scatter / self.ridge
        self._draw_root = None
        self.pulls.add(block)

    def gain(self, arms: Ints, noise: Floats) -> float:
        """The gain of pulls, each for itself, 1/2 sum of ln(1 + std^2 / (ridge noise)): no less than that of all."""
        variance = np.maximum(self.factor.variance[arms], 0.0)
        return 0.5 * float(np.log1p(variance / (self.ridge * noise)).sum())

    def draw(self, rng: Rng) -> Floats:
        """One joint draw on all points, (N,): on few points from a root of the posterior covariance.

        On many it is a prior draw g (`PriorDraws`), corrected by what it would have been observed as: mean + g -
        whitened' root^-1 (g at the rows + noise) has the posterior's law if g has the prior's (Matheron's rule).
        """
        factor, everywhere = self.factor, np.arange(len(self._points))
        if len(everywhere) <= FEW_ARMS:
            if self._draw_root is None:
                with threads_for(len(everywhere) ** 3):
                    self._draw_root = CovarianceRoot(self.covariance(everywhere, everywhere))
            with threads_for(self._draw_root.size):
                return np.asarray(factor.mean + self._draw_root.draw(rng))
        draw = self._prior.draw(rng)
        with threads_for(len(everywhere) * factor.rows):
            return np.asarray(factor.mean + draw - factor.explained_draw(draw, rng))

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Covariance of some points with others, (n,), (m,) -> (n, m)."""
        prior = self._kernel(self._points[first], self._points[second])
        with threads_for(self.factor.rows * prior.size):
            return np.asarray(prior - self.factor.explained_covariance(first, second))

    def moved_to(self, points: Floats, places: Ints) -> Conditioning:
        """The same pulls, in order of first pulls, among other points; ``places`` says which, (u,)."""
        other = Conditioning(self._kernel, points, 0.0 if self._noise_free else self.ridge)
        other.ridge, other._least_noise = self.ridge, self._least_noise
        if places.size:
            other._refactor(self.pulls.moved(places), self.factor.gain)
        return other

    def copy(self) -> Self:
        """Independent, with the same pulls."""
        twin = copy.copy(self)
        twin.pulls, twin._columns, twin.factor = self.pulls.copy(), self._columns.copy(), self.factor.copy()
        twin._draw_root = None if self._draw_root is None else self._draw_root.copy()
        return twin

    def _pool_one(self, arm: int, value: float, ridge: float) -> bool:
        """Take one more reward of the last row's point into that row, unless that leaves it with too little noise."""
        noise = self.factor.last_noise
        if noise * ridge < self._least_noise * (noise + ridge):
            return self._append_one(arm, value, ridge)
        if self._draw_root is not None:
            with threads_for(self._draw_root.size):
                self._draw_root.condition(arm, self.factor.last_covariance(), ridge)
        self.factor.observe_again(value, ridge)
        self._pooled_in_place += 1
        return True

    def _append_one(self, arm: int, value: float, ridge: float) -> bool:
        """Append a row; False, and nothing is changed, if rounding would eat its noise."""
        work = (self.factor.rows + 1) * len(self._points) if self._draw_root is None else self._draw_root.size
        with threads_for(work):
            column = self._columns.of_one(arm)
            covariance = None if self._draw_root is None else self._draw_root.row(arm)
            if ridge < self._least_noise or not self.factor.append_one(arm, column, value, ridge, covariance):
                return False
            if self._draw_root is not None and covariance is not None:
                self._draw_root.condition(arm, covariance, ridge)
            return True

    def _is_due(self) -> bool:
        """Whether to make the factor afresh: its rows far outnumber the points, or were changed in place many times."""
        return self.factor.rows > 1.75 * len(self.pulls) + 32 or self._pooled_in_place >= REFRESH

    def _learn_afresh(self, block: Pooled) -> None:
        """Take in a block by making the factor afresh, with so much noise in its rows that rounding does not eat it."""
        pulls = self.pulls.copy()
        pulls.add(block)
        self._refactor(pulls, self.factor.gain + self.gain(block.arms, block.noise))

    def _refactor(self, pulls: Pulls, gain: float) -> None:
        """One row per distinct point, all its pulls pooled; mean, variance, misfit and gain afresh from it.

        A row whose noise rounding would eat gets more, up to the ridge of one pull; the gain is then taken to be the
        one given. ValueError, and nothing is changed, if that is not enough.
        """
        ridge, least = self.ridge, self._least_noise
        with threads_for(len(pulls) ** 2 * len(self._points)):
            columns, averages, weights = self._columns.of(pulls.arms), pulls.averages, pulls.weights
            while not self.factor.refactor(pulls.arms, columns, averages, np.maximum(ridge / weights, least)):
                ridge, least = self._raised(ridge, least)
        self.factor.misfit += pulls.scatter / ridge
        if ridge / weights.max() < least:
            self.factor.gain = gain
        self.ridge, self._least_noise, self.pulls, self._pooled_in_place = ridge, least, pulls, 0
        self._draw_root = None

    def _raised(self, ridge: float, least: float) -> tuple[float, float]:
        """Ten times the ridge, where none was given, or ten times the least noise of a row."""
        if self._noise_free:
            return 10 * ridge, least
        if least >= ridge:
            raise ValueError(
                f"ridge {ridge} is too small for this kernel and so many pulls: raise it, or pass ridge=0 if "
                "the rewards are noise-free"
            )
        return ridge, min(ridge, 10 * least)
