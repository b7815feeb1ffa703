"""The exact Gaussian-process posterior on N arms.

The belief is a Cholesky factor (`noregret.belief.numerics.factor`) with one row per conditioning. A block of b distinct
arms appends b rows at O(r b N), r the rows so far. An arm pulled again at once is pooled into its row, at O(N): n pulls
with ridge l are one pull of their average with ridge l / n. An arm that comes back later appends a row too. Once the
rows far outnumber the u distinct arms, they are refactored into one row per distinct arm, at O(u^2 N), so that r stays
near 1.75 u + 32, however many the rounds, and rounding errors do not pile up. Where to refactor was measured: a row
more costs every round to come, a factorisation more costs u / 3 rounds at once. Kernel columns are computed once per
arm.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.columns import KernelColumns
from noregret.belief.numerics.draws import FEW_ARMS, CovarianceRoot
from noregret.belief.numerics.factor import Factor
from noregret.belief.numerics.linalg import REFRESH, pivoted_root
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, as_arms, as_pulls
from noregret.belief.pulls import Pooled, Pulls, first_of_each, places_among, pooled

if TYPE_CHECKING:
    from collections.abc import Callable

    Truncation = Callable[["ExactPosterior"], float]

_NUGGET = 64 * np.finfo(float).eps


@dataclass(frozen=True)
class ExactGP:
    """Gaussian process with this kernel and ridge, conditioned exactly.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        lambda. 0 means noise-free: the smallest nugget that the factorisation allows stands in for it, the
        posterior's ``ridge`` says which, and repeated pulls of an arm tell nothing new.
    truncation : schedule, optional
        Level b_t: the t-th reward counts as 0 if its size exceeds b_t on arrival.

    Examples
    --------
    >>> from noregret import ExactGP, SquaredExponential
    >>> belief = ExactGP(SquaredExponential(0.2), ridge=0.01).prior([[0.0], [0.5], [1.0]])
    >>> belief.update([0, 0, 2], [1.0, 1.2, -1.0])
    >>> belief.mean.round(3), belief.std.round(3)
    (array([ 1.095,  0.005, -0.99 ]), array([0.071, 0.998, 0.1  ]))
    """

    kernel: Kernel
    ridge: float
    truncation: Truncation | None = None

    def __init__(self, kernel: KernelLike, ridge: float, truncation: Truncation | None = None) -> None:
        if not (math.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge must be positive, or 0 for noise-free rewards, got {ridge}")
        object.__setattr__(self, "kernel", as_kernel(kernel))
        object.__setattr__(self, "ridge", float(ridge))
        object.__setattr__(self, "truncation", truncation)

    def prior(self, arms: Any, rng: Rng | None = None) -> ExactPosterior:
        """Belief about f on these (N, d) arms before any reward."""
        return ExactPosterior(self, as_arms(arms))


class ExactPosterior:
    """The belief of `ExactGP` (see `noregret.belief.posterior.Posterior` for the contract)."""

    def __init__(self, model: ExactGP, arms: Floats, hidden: Floats | None = None) -> None:
        # hidden: points that were pulled once and are arms no more; they come last, and are never shown
        self._points, self._shown = arms if hidden is None else np.vstack([arms, hidden]), len(arms)
        self._model, self.rounds, self.claimed_gain = model, 0, 0.0
        self._pulls, self._columns = Pulls(), KernelColumns(model.kernel, self._points)
        self._factor = Factor(self._columns.variance)
        nugget = _NUGGET * max(float(self._columns.variance.max()), np.finfo(float).tiny)
        self.ridge = model.ridge or nugget
        self._least_noise = min(self.ridge, nugget)  # of a row: rounding would eat a smaller one
        self._pooled_in_place = 0  # pulls taken into a row that was there, since the factor was last made afresh
        self._std: Floats | None = None
        self._draw_root: CovarianceRoot | None = None  # of the posterior, once somebody draws on few arms
        self._prior_root: Floats | None = None  # once somebody draws on many

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        return self._points[: self._shown]

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        return self._factor.mean[: self._shown]

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of every arm, (N,)."""
        if self._std is None:
            self._std = np.sqrt(np.maximum(self._factor.variance[: self._shown], 0.0))
        return self._std

    @property
    def information_gain(self) -> float:
        """Realised gain, 1/2 ln det(I + K_t / ridge)."""
        return self._factor.gain

    @property
    def misfit(self) -> float:
        """Y' (K_t + ridge I)^-1 y, for the rewards y."""
        return self._factor.misfit

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls, = trace of K_t (K_t + ridge I)^-1."""
        share = self._pulls.weights * self._factor.variance[self._pulls.arms] / self.ridge
        return float(np.clip(share, 0.0, 1.0).sum())  # each is below 1, but for rounding

    @property
    def rank(self) -> int:
        """Number of distinct arms pulled."""
        return len(self._pulls)

    @property
    def largest_reward(self) -> float:
        """Rewards beyond this size are refused; with truncation none is."""
        return HUGE if self._model.truncation is None else math.inf

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        pulled = self._pulls.arms
        return pulled if self._shown == len(self._points) else pulled[pulled < self._shown]

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge."""
        arms, values, factors = as_pulls(arms, rewards, noise, self._shown, self.largest_reward)
        planned, rounds, claimed = values is None, self.rounds, 0.0
        try:
            values = self.mean[arms] if values is None else self._arrive(values)
            if not self._model.ridge:  # noise-free: of each arm's pulls, the first says all
                first = np.array([i for i in first_of_each(arms) if int(arms[i]) not in self._pulls], np.intp)
                arms, values, factors = arms[first], values[first], None if factors is None else factors[first]
            if arms.size == 1:
                arm, factor = int(arms[0]), 1.0 if factors is None else float(factors[0])
                claimed = 0.5 * math.log1p(max(float(self._factor.variance[arm]), 0.0) / (self.ridge * factor))
                self._learn_one(arm, float(values[0]), factor)
            elif arms.size:
                factors = np.ones(arms.size) if factors is None else factors
                claimed = self._gain(arms, factors)
                self._learn(pooled(arms, values, factors))
        except BaseException:
            self.rounds = rounds
            raise
        if not planned:
            self.claimed_gain += claimed

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        points = as_arms(points)
        kernel, factor = self._model.kernel, self._factor
        if not factor.rows:
            return np.zeros(len(points)), np.sqrt(kernel.diag(points))
        with threads_for(factor.rows**2 * len(points)):
            mean, explained = factor.explained(kernel(self._points[factor.arms], points))
            return mean, np.sqrt(np.maximum(kernel.diag(points) - explained, 0.0))

    def sample(self, rng: Rng) -> Floats:
        """One joint draw on all arms, (N,): on few arms from a root of the posterior covariance.

        On many it is a prior draw g, corrected by what it would have been observed as: mean + g - whitened' root^-1
        (g at the rows + noise) has the posterior's law (Matheron's rule), so the one factorisation is the prior's.
        """
        factor, everywhere = self._factor, np.arange(len(self._points))
        if len(everywhere) <= FEW_ARMS:
            if self._draw_root is None:
                with threads_for(len(everywhere) ** 3):
                    self._draw_root = CovarianceRoot(self.covariance(everywhere, everywhere))
            with threads_for(self._draw_root.size):
                return np.asarray((factor.mean + self._draw_root.draw(rng))[: self._shown])
        if self._prior_root is None:
            self._prior_root = pivoted_root(self._model.kernel(self._points, self._points))
        rank = self._prior_root.shape[1]
        with threads_for(len(everywhere) * (factor.rows + rank)):
            draw = self._prior_root @ rng.standard_normal(rank)
            return np.asarray((factor.mean + draw - factor.explained_draw(draw, rng))[: self._shown])

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        prior = self._model.kernel(self._points[first], self._points[second])
        with threads_for(self._factor.rows * prior.size):
            return np.asarray(prior - self._factor.explained_covariance(first, second))

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._pulls, twin._columns, twin._factor = self._pulls.copy(), self._columns.copy(), self._factor.copy()
        twin._draw_root = None if self._draw_root is None else self._draw_root.copy()
        return twin

    def at(self, arms: Any) -> ExactPosterior:
        """The same knowledge about other (N, d) arms; what was learnt at points that are not among them stays."""
        arms, pulled = as_arms(arms), self._pulls.arms
        places = places_among(arms, self._points[pulled])
        other = ExactPosterior(self._model, arms, self._points[pulled[places >= len(arms)]])
        other.ridge, other._least_noise = self.ridge, self._least_noise
        other.rounds, other.claimed_gain = self.rounds, self.claimed_gain
        if pulled.size:
            other._refactor(self._pulls.moved(places), self.information_gain)
        return other

    def _arrive(self, rewards: Floats) -> Floats:
        """Count the rewards, and cut each at the level of its own round."""
        truncation = self._model.truncation
        if truncation is None:
            self.rounds += rewards.size
            return rewards
        kept = rewards.copy()
        for i, reward in enumerate(rewards):
            self.rounds += 1
            if abs(reward) > truncation(self):
                kept[i] = 0.0
        return kept

    def _learn_one(self, arm: int, value: float, noise: float) -> None:
        again, ridge = self._factor.last_arm == arm, self.ridge * noise
        if self._is_due() or not (self._pool_one if again else self._append_one)(arm, value, ridge):
            self._learn_afresh(Pooled(np.array([arm]), np.array([value]), np.array([noise]), 0.0))
            return
        self._std = None
        self._pulls.add_one(arm, value, noise)

    def _pool_one(self, arm: int, value: float, ridge: float) -> bool:
        """Take one more reward of the last row's arm into that row, unless that leaves it with too little noise."""
        noise = self._factor.last_noise
        if noise * ridge < self._least_noise * (noise + ridge):
            return self._append_one(arm, value, ridge)
        if self._draw_root is not None:
            with threads_for(self._draw_root.size):
                self._draw_root.condition(arm, self._factor.last_covariance(), ridge)
        self._factor.observe_again(value, ridge)
        self._pooled_in_place += 1
        return True

    def _append_one(self, arm: int, value: float, ridge: float) -> bool:
        """Append a row; False, and nothing is changed, if rounding would eat its noise."""
        work = (self._factor.rows + 1) * len(self._points) if self._draw_root is None else self._draw_root.size
        with threads_for(work):
            column = self._columns.of_one(arm)
            covariance = None if self._draw_root is None else self._draw_root.row(arm)
            if ridge < self._least_noise or not self._factor.append_one(arm, column, value, ridge, covariance):
                return False
            if self._draw_root is not None and covariance is not None:
                self._draw_root.condition(arm, covariance, ridge)
            return True

    def _learn(self, block: Pooled) -> None:
        factor, arms, ridges = self._factor, block.arms, self.ridge * block.noise
        with threads_for((factor.rows + arms.size) * arms.size * len(self._points)):
            columns = self._columns.of(arms)
            eaten = ridges.min() < self._least_noise
            if self._is_due() or eaten or not factor.append(arms, columns, block.values, ridges):
                self._learn_afresh(block)
                return
        factor.misfit += block.scatter / self.ridge
        self._std = self._draw_root = None
        self._pulls.add(block)

    def _is_due(self) -> bool:
        """Whether to make the factor afresh: its rows far outnumber the arms, or were changed in place many times."""
        return self._factor.rows > 1.75 * len(self._pulls) + 32 or self._pooled_in_place >= REFRESH

    def _learn_afresh(self, block: Pooled) -> None:
        """Take in a block by making the factor afresh, with so much noise in its rows that rounding does not eat it."""
        pulls = self._pulls.copy()
        pulls.add(block)
        self._refactor(pulls, self.information_gain + self._gain(block.arms, block.noise))

    def _gain(self, arms: Ints, noise: Floats) -> float:
        """The gain of pulls, each for itself, 1/2 sum of ln(1 + std^2 / (ridge noise)): no less than that of all."""
        variance = np.maximum(self._factor.variance[arms], 0.0)
        return 0.5 * float(np.log1p(variance / (self.ridge * noise)).sum())

    def _refactor(self, pulls: Pulls, gain: float) -> None:
        """One row per distinct arm, all its pulls pooled; mean, variance, misfit and gain afresh from it.

        A row whose noise rounding would eat gets more, up to the ridge of one pull; the gain is then taken to be the
        one given. ValueError, and nothing is changed, if that is not enough.
        """
        ridge, least = self.ridge, self._least_noise
        with threads_for(len(pulls) ** 2 * len(self._points)):
            columns, averages, weights = self._columns.of(pulls.arms), pulls.averages, pulls.weights
            while not self._factor.refactor(pulls.arms, columns, averages, np.maximum(ridge / weights, least)):
                ridge, least = self._raised(ridge, least)
        self._factor.misfit += pulls.scatter / ridge
        if ridge / weights.max() < least:
            self._factor.gain = gain
        self.ridge, self._least_noise, self._pulls, self._pooled_in_place = ridge, least, pulls, 0
        self._std = self._draw_root = None

    def _raised(self, ridge: float, least: float) -> tuple[float, float]:
        """Ten times the ridge, where none was given, or ten times the least noise of a row."""
        if not self._model.ridge:
            return 10 * ridge, least
        if least >= ridge:
            raise ValueError(
                f"ridge {ridge} is too small for this kernel and so many pulls: raise it, or pass ridge=0 if "
                "the rewards are noise-free"
            )
        return ridge, min(ridge, 10 * least)
