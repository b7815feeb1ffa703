"""The exact Gaussian-process posterior on N arms."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from noregret.belief.arms import as_arms, as_points
from noregret.belief.arrays import Array, explain_memory, numpy_of, root_of_positive
from noregret.belief.cluster.belief import BlockPosterior
from noregret.belief.cluster.blocks import Blocks
from noregret.belief.conditioning import Conditioning
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.rows import EVERYWHERE, FEWEST
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, as_pulls
from noregret.belief.pulls import first_of_each, pooled
from noregret.belief.schedule import Schedule, as_schedule


@dataclass(frozen=True)
class ExactGP:
    """Gaussian process with this kernel and ridge, conditioned exactly.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        lambda. 0 means noise-free: the smallest nugget that the factorisation allows stands in for it, the
        posterior's ``ridge`` says which, and repeated pulls of an arm tell nothing new.
    truncation : schedule or float, optional
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
    truncation: Schedule | None = None

    def __init__(self, kernel: KernelLike, ridge: float, truncation: Schedule | float | None = None) -> None:
        if not (math.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge must be positive, or 0 for noise-free rewards, got {ridge}")
        object.__setattr__(self, "kernel", as_kernel(kernel))
        object.__setattr__(self, "ridge", float(ridge))
        level = None if truncation is None else as_schedule("truncation", truncation)
        object.__setattr__(self, "truncation", level)

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.prior(arms.first), arms)
        try:
            return ExactPosterior(self, arms)
        except RuntimeError as error:
            explain_memory(error, arms, FEWEST)
            raise


class ExactPosterior:
    """The belief of `ExactGP` (see `noregret.belief.posterior.Posterior` for the contract)."""

    def __init__(self, model: ExactGP, arms: Floats) -> None:
        self._model, self._arms = model, arms
        self._conditioning = Conditioning(model.kernel, arms, model.ridge)
        self.rounds, self.claimed_gain = 0, 0.0
        self._std: Array = None

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        return self._arms

    @property
    def ridge(self) -> float:
        """lambda, or what stands in for 0."""
        return self._conditioning.ridge

    @property
    def mean(self) -> Array:
        """Posterior mean of every arm, (N,)."""
        return self._conditioning.factor.mean

    @property
    def std(self) -> Array:
        """Posterior standard deviation of every arm, (N,)."""
        if self._std is None:
            self._std = root_of_positive(self._conditioning.factor.variance)
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
        pulls, seen = self._conditioning.pulls, self._conditioning.seen
        share = pulls.weights * self._conditioning.variances(pulls.arms, seen) / self.ridge
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
        return pulled[pulled < len(self._arms)]

    @property
    def pooled(self) -> tuple[Floats, Floats]:
        """Average reward of each pulled arm, and the variance of its noise, two (u,)."""
        pulls = self._conditioning.pulls
        return pulls.averages, self.ridge / pulls.weights

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge."""
        self._take(*as_pulls(arms, rewards, noise, len(self._arms), self.largest_reward))

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points; those that are arms count as pulls of these."""
        points = as_points(points, self._arms.shape[1])
        names = self._conditioning.names(points)
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        self._take(names, values, factors, points if (names >= len(self._arms)).any() else None)

    def _take(self, names: Ints, values: Floats | None, noise: Floats | None, points: Floats | None = None) -> None:
        """Learn from rewards of points with these names, (n,); the points, (n, d), are given where some are no arms."""
        planned, rounds, claimed = values is None, self.rounds, 0.0
        try:
            values = self._means(names, points) if values is None else self._arrive(values)
            if not self._model.ridge:  # noise-free: of each arm's pulls, the first says all
                known = self._conditioning.pulls
                first = np.array([i for i in first_of_each(names) if int(names[i]) not in known], np.intp)
                names, values, noise = names[first], values[first], None if noise is None else noise[first]
                points = None if points is None else points[first]
            if names.size == 1 and points is None:
                arm, factor = int(names[0]), 1.0 if noise is None else float(noise[0])
                variance = max(float(self._conditioning.factor.variance[arm]), 0.0)
                claimed = 0.5 * math.log1p(variance / (self.ridge * factor))
                self._conditioning.learn_one(arm, float(values[0]), factor)
            elif names.size == 1:
                claimed = self._learn_point(int(names[0]), points, float(values[0]), noise)
            elif names.size:
                claimed = self._learn_block(names, values, np.ones(names.size) if noise is None else noise, points)
        except BaseException as error:
            self.rounds = rounds
            explain_memory(error, self._arms, self._conditioning.factor.rows + FEWEST)
            raise
        self._std = None
        if not planned:
            self.claimed_gain += claimed

    def _learn_point(self, name: int, point: Any, value: float, noise: Floats | None) -> float:
        """Learn one reward of a (1, d) point that is no arm; the gain that it claims."""
        factors = np.ones(1) if noise is None else noise
        claimed = self._conditioning.gain(self._conditioning.predict(point)[1], factors)
        self._conditioning.learn_point(name, point, value, float(factors[0]))
        return claimed

    def _means(self, names: Ints, points: Floats | None) -> Floats:
        """The means at points with these names, (n,)."""
        return np.asarray(numpy_of(self.mean[names] if points is None else self._conditioning.predict(points)[0]))

    def _learn_block(self, names: Ints, values: Floats, noise: Floats, points: Floats | None) -> float:
        """Learn a block of rewards; the gain that it claims."""
        conditioning, block = self._conditioning, pooled(names, values, noise)
        claimed = conditioning.gain(conditioning.variances(names, points), noise)
        conditioning.learn(block, None if points is None else points[first_of_each(names)])
        return claimed

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        mean, variance = self._conditioning.predict(as_arms(points))
        return mean, root_of_positive(variance)

    @property
    def scatter(self) -> tuple[float, int]:
        """Sum over the rewards of (reward - average of its arm)^2 / noise variance, and its degrees of freedom."""
        pulls = self._conditioning.pulls
        return pulls.scatter / self.ridge, self.rounds - len(pulls)

    def sample(self, rng: Rng, among: int | None = None) -> Array:
        """One joint draw on all arms, (N,), or its part on these where they are ``among`` so many."""
        return self._conditioning.draw(rng, among)

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        return self._conditioning.covariance(first, second)

    def under(self, kernel: Kernel) -> Self:
        """What the same rewards would say about the pulled arms if f had another kernel."""
        (averages, noise), pulled = self.pooled, self.pulled
        other: Self = ExactGP(kernel, self.ridge).prior(self._arms[pulled])
        other.update(np.arange(len(averages)), averages, noise=noise / self.ridge)
        return other

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._conditioning = self._conditioning.copy()
        return twin

    def lifted(self, points: Floats) -> Floats:
        """What connects the rows of the factor with (n, d) points, (r, n): it makes arms of them cheaply, see `at`."""
        return self._conditioning.lifted(points)

    @property
    def lifted_arms(self) -> Floats:
        """The same of the arms, (r, N)."""
        return self._conditioning.factor.border(EVERYWHERE)

    def told(self, points: Floats, lifted: Floats) -> tuple[Floats, Floats]:
        """What `predict` says of (n, d) points, where `lifted` is known."""
        mean, explained = self._conditioning.factor.told(lifted)
        return mean, root_of_positive(self._model.kernel.diag(points) - explained)

    def at(self, arms: Any, lifted: Floats | None = None) -> Any:
        """The same knowledge about other (N, d) arms; what was learnt at points that are not among them stays.

        It costs O(r^2 N) with r rows in the factor, and O(r N) where `lifted` is known of the arms, (r, N).
        """
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self._conditioning.seen)
        other = copy.copy(self)
        other._arms = arms
        other._conditioning, other._std = self._conditioning.moved_to(other._arms, lifted), None
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
