"""The exact Gaussian-process posterior on N arms."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from noregret.belief.conditioning import Conditioning
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, as_arms, as_pulls
from noregret.belief.pulls import first_of_each, places_among, pooled

if TYPE_CHECKING:
    from collections.abc import Callable

    Truncation = Callable[["ExactPosterior"], float]


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

    def __init__(self, model: ExactGP, arms: Floats) -> None:
        # points that were pulled once and are arms no more come after the arms, and are never shown
        self._model, self._points, self._shown = model, arms, len(arms)
        self._conditioning = Conditioning(model.kernel, arms, model.ridge)
        self.rounds, self.claimed_gain = 0, 0.0
        self._std: Floats | None = None

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        return self._points[: self._shown]

    @property
    def ridge(self) -> float:
        """lambda, or what stands in for 0."""
        return self._conditioning.ridge

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        return self._conditioning.factor.mean[: self._shown]

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of every arm, (N,)."""
        if self._std is None:
            self._std = np.sqrt(np.maximum(self._conditioning.factor.variance[: self._shown], 0.0))
        return self._std

    @property
    def information_gain(self) -> float:
        """Realised gain, 1/2 ln det(I + K_t / ridge)."""
        return self._conditioning.factor.gain

    @property
    def misfit(self) -> float:
        """Y' (K_t + ridge I)^-1 y, for the rewards y."""
        return self._conditioning.factor.misfit

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls, = trace of K_t (K_t + ridge I)^-1."""
        pulls = self._conditioning.pulls
        share = pulls.weights * self._conditioning.factor.variance[pulls.arms] / self.ridge
        return float(np.clip(share, 0.0, 1.0).sum())  # each is below 1, but for rounding

    @property
    def rank(self) -> int:
        """Number of distinct arms pulled."""
        return len(self._conditioning.pulls)

    @property
    def largest_reward(self) -> float:
        """Rewards beyond this size are refused; with truncation none is."""
        return HUGE if self._model.truncation is None else math.inf

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        pulled = self._conditioning.pulls.arms
        return pulled if self._shown == len(self._points) else pulled[pulled < self._shown]

    @property
    def pooled(self) -> tuple[Floats, Floats]:
        """Average reward of each pulled arm, and the variance of its noise, two (u,)."""
        pulls = self._conditioning.pulls
        return pulls.averages, self.ridge / pulls.weights

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge."""
        arms, values, factors = as_pulls(arms, rewards, noise, self._shown, self.largest_reward)
        planned, rounds, claimed = values is None, self.rounds, 0.0
        try:
            values = self.mean[arms] if values is None else self._arrive(values)
            if not self._model.ridge:  # noise-free: of each arm's pulls, the first says all
                known = self._conditioning.pulls
                first = np.array([i for i in first_of_each(arms) if int(arms[i]) not in known], np.intp)
                arms, values, factors = arms[first], values[first], None if factors is None else factors[first]
            if arms.size == 1:
                arm, factor = int(arms[0]), 1.0 if factors is None else float(factors[0])
                variance = max(float(self._conditioning.factor.variance[arm]), 0.0)
                claimed = 0.5 * math.log1p(variance / (self.ridge * factor))
                self._conditioning.learn_one(arm, float(values[0]), factor)
            elif arms.size:
                factors = np.ones(arms.size) if factors is None else factors
                claimed = self._conditioning.gain(arms, factors)
                self._conditioning.learn(pooled(arms, values, factors))
        except BaseException:
            self.rounds = rounds
            raise
        self._std = None
        if not planned:
            self.claimed_gain += claimed

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        points = as_arms(points)
        kernel, factor = self._model.kernel, self._conditioning.factor
        if not factor.rows:
            return np.zeros(len(points)), np.sqrt(kernel.diag(points))
        with threads_for(factor.rows**2 * len(points)):
            mean, explained = factor.explained(kernel(self._points[factor.arms], points))
            return mean, np.sqrt(np.maximum(kernel.diag(points) - explained, 0.0))

    def sample(self, rng: Rng) -> Floats:
        """One joint draw on all arms, (N,)."""
        return self._conditioning.draw(rng)[: self._shown]

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        return self._conditioning.covariance(first, second)

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._conditioning = self._conditioning.copy()
        return twin

    def at(self, arms: Any) -> ExactPosterior:
        """The same knowledge about other (N, d) arms; what was learnt at points that are not among them stays."""
        arms, pulled = as_arms(arms), self._conditioning.pulls.arms
        places = places_among(arms, self._points[pulled])
        other = copy.copy(self)
        other._points, other._shown = np.vstack([arms, self._points[pulled[places >= len(arms)]]]), len(arms)
        other._conditioning, other._std = self._conditioning.moved_to(other._points, places), None
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
