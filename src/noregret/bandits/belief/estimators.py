"""Estimators, which compute the mean from the rewards: least squares, and four that resist outliers.

The mean of a `noregret.SparseGP` is phi(x)'theta. With phi_a the features of pulled arm a, V = ridge I + the sum of
phi phi' over all pulls, and y the rewards, an estimator computes theta:

=========================  =========================================================================
`LeastSquares`             theta = V^-1 sum phi y: exact for light tails, not robust to one outlier
`TruncatedRewards`         the same, each reward replaced by 0 if beyond a level on arrival
`ClippedResiduals`         the same, each reward clipped to near the mean on arrival, and weighted
`TruncatedDirections`      theta = V^-1/2 r, r_i = the sum of (V^-1/2 phi)_i y without the large terms
`MedianOfMeans`            theta of one group of rewards, the one nearest to most others
=========================  =========================================================================

A new estimator is a frozen dataclass that inherits from `Estimator` and overrides what differs from least squares:
``arrive`` if it changes each reward once, ``memory`` and ``theta`` if it needs more than the sums of the rewards.
"""

from __future__ import annotations

import copy
import math
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from scipy.spatial.distance import cdist

from noregret.gp.linalg import enlarged, solve_lower
from noregret.gp.posterior import Copyable, Floats, Ints, Posterior, Schedule, convert_numbers


class Regression(Posterior, Protocol):
    """Belief as seen by its estimator: a regression on the features of the u distinct arms pulled."""

    @property
    def seen(self) -> Floats:
        """Features of the distinct arms pulled, (r, u), in the order of their first pull."""

    @property
    def gram(self) -> Floats:
        """V = ridge I + seen diag(weights) seen', (r, r)."""

    @property
    def inverse(self) -> Floats:
        """V^-1, (r, r)."""

    @property
    def span(self) -> Floats | None:
        """Orthonormal basis of the coordinates above in the m features, (m, r); None for the unit vectors."""

    def inverse_root_times(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,), with the symmetric root."""

    @property
    def norm_bounds(self) -> Floats:
        """Upper bound on the norm of V^-1/2 phi, for each column phi of ``seen``, (u,)."""


class Estimator(ABC):  # noqa: B024  every method has a default: that of least squares
    """Computation of the mean from the rewards: least squares, except for what a subclass overrides."""

    robust: ClassVar[bool] = True
    """True if one outlier has a bounded effect. If not, rewards beyond 1e100 in size are refused."""
    one_by_one: ClassVar[bool] = False
    """True if each reward must pass through ``arrive``, with the belief just before it."""

    def arrive(self, belief: Posterior, arm: int, reward: float) -> tuple[float, float]:
        """Return the value that replaces the reward, and a factor on its ridge; ``belief.rounds`` counts it already."""
        return reward, 1.0

    def memory(self) -> Any:
        """Return an empty memory: an object with methods ``take(slots, values)`` and ``copy()``.

        It takes weighted rewards, (n,), of the arms in these slots, (n,): positions in the order of first pulls. A
        reward y with noise factor n has weight 1 / n and enters as y / n.
        """
        return Sums()

    def theta(self, belief: Regression, memory: Any) -> Floats:
        """Coefficients of the mean on the features, in the basis of their span, (r,)."""
        return np.asarray(belief.inverse @ (belief.seen @ memory.total))


Product = Callable[[Floats], Floats]
"""Multiplication by a matrix from the left."""


@dataclass(frozen=True)
class LeastSquares(Estimator):
    """theta = V^-1 sum phi y, the mean of the Gaussian process. Rewards beyond 1e100 in size are refused."""

    robust: ClassVar[bool] = False


@dataclass(frozen=True)
class TruncatedRewards(Estimator):
    """Least squares on y 1{|y| <= b_t}, b_t the level when reward t arrives (heavy-tails paper, Alg. 1).

    One reward at point x' moves the mean by at most b_t s(x) s(x') / ridge; a reward beyond the level does not move it.
    """

    level: Schedule
    one_by_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        convert_numbers(self, "level")

    def arrive(self, belief: Posterior, arm: int, reward: float) -> tuple[float, float]:
        return (reward if abs(reward) <= self.level(belief) else 0.0), 1.0


@dataclass(frozen=True)
class ClippedResiduals(Estimator):
    """Least squares on mean + sigma clip((y - mean) / sigma, -tau, tau), each reward with its ridge times sigma^2.

    At the arm, before the reward, sigma = max(spread, inflation * std / sqrt(ridge)), and tau = b_t sqrt(1 + w^2) / w
    with w = std / (sigma sqrt(ridge)) and the level b_t. In the form theta += V^-1 (phi / sigma) clip(...) this is the
    one-pass Huber regression of Hvt-UCB (J. Wang, Y.-J. Zhang, P. Zhao, Z.-H. Zhou, ICML 2025). No reward is stored.
    One reward moves the mean by at most b_t s(x) / sqrt(ridge).
    """

    level: Schedule
    spread: float
    inflation: float = 1.0
    one_by_one: ClassVar[bool] = True

    def __post_init__(self) -> None:
        convert_numbers(self, "level")

    def arrive(self, belief: Posterior, arm: int, reward: float) -> tuple[float, float]:
        mean, std = float(belief.mean[arm]), float(belief.std[arm]) / math.sqrt(belief.ridge)
        sigma = max(self.spread, self.inflation * std)
        cut = self.level(belief) * sigma * math.hypot(sigma, std) / std if std > 0 else math.inf
        return mean + min(max(reward - mean, -cut), cut), sigma**2


@dataclass(frozen=True)
class TruncatedDirections(Estimator):
    """theta = V^-1/2 r with r_i = sum_t u_it y_t 1{|u_it y_t| <= b}, u_t = V^-1/2 phi_t (heavy-tails paper, Alg. 2).

    The sum is over all rewards with the current level b; the rows of u are the directions. Each arm's rewards are kept
    sorted, so a round costs O(m u log n) for u distinct arms pulled n times each, independent of the number of rounds.
    One reward moves each r_i by at most b, and so the mean by at most b sqrt(m / ridge) s(x). The part of theta outside
    the span of the arms' features, which does not change the mean of any arm, is dropped.

    ``root`` is the root of V: "symmetric" as in the paper, or "cholesky", whose inverse also has rows of norm at most
    1, so that the theorems hold for it. It needs no eigenvalues, and gives a different estimator.
    """

    level: Schedule
    root: Literal["symmetric", "cholesky"] = "symmetric"

    def __post_init__(self) -> None:
        convert_numbers(self, "level")
        if self.root not in ("symmetric", "cholesky"):
            raise ValueError(f"root must be 'symmetric' or 'cholesky', got {self.root!r}")

    def memory(self) -> SortedRewards:
        return SortedRewards()

    def theta(self, belief: Regression, memory: SortedRewards) -> Floats:
        level = self.level(belief)
        near = memory.reaching(belief.norm_bounds, level)  # every other arm's rewards are all kept, in all directions
        theta = belief.inverse @ (belief.seen @ memory.total(leave=near))
        if near.size:
            to_directions, from_directions = (_cholesky_root if self.root == "cholesky" else _symmetric_root)(belief)
            theta += from_directions(memory.kept(near, to_directions(belief.seen[:, near]), level))
        return np.asarray(theta)


@dataclass(frozen=True)
class MedianOfMeans(Estimator):
    """Least squares in each of k groups of rewards; of the k thetas, the one nearest to the others.

    Nearest is the smallest median distance in the norm of V (H. Shao et al., NeurIPS 2018). The rewards of an arm go
    round the groups, so k pulls in a row give each group one; a group's own matrix is taken for ridge I + (V - ridge
    I) / k, which it is then. Only sums are kept. One reward spoils one group: fewer than half of them spoilt, the mean
    stays within twice the largest distance between two of the sound ones.
    """

    groups: int

    def __post_init__(self) -> None:
        if self.groups != int(self.groups) or self.groups < 1:
            raise ValueError(f"groups must be a whole number from 1, got {self.groups}")

    def memory(self) -> GroupSums:
        return GroupSums(self.groups)

    def theta(self, belief: Regression, memory: GroupSums) -> Floats:
        ridge = belief.ridge * np.eye(len(belief.gram))
        root = np.asarray(np.linalg.cholesky(ridge + (belief.gram - ridge) / self.groups), dtype=float)
        lifted = solve_lower(root, belief.seen @ memory.total)  # root' theta of every group, (m, k)
        middle = self.groups // 2  # the lower median of the others' distances, its own 0 counted
        distance = np.partition(cdist(lifted.T, lifted.T), middle, axis=1)[:, middle]
        return np.asarray(np.linalg.solve(root.T, lifted[:, np.argmin(distance)]))


def _symmetric_root(belief: Regression) -> tuple[Product, Product]:
    """Multiplication by V^-1/2, from the basis of the span to the unit vectors, (m, r), and by its transpose."""
    span = belief.span
    if span is None:
        return belief.inverse_root_times, belief.inverse_root_times
    return lambda x: span @ belief.inverse_root_times(x), lambda x: belief.inverse_root_times(span.T @ x)


def _cholesky_root(belief: Regression) -> tuple[Product, Product]:
    """Multiplication by L^-1, L L' = V, from the basis of the span to the unit vectors, and by its transpose.

    Off the span, V is the ridge.
    """
    gram, span = belief.gram, belief.span
    if span is not None:
        ridge = belief.ridge
        gram = ridge * np.eye(len(span)) + span @ (gram - ridge * np.eye(len(gram))) @ span.T
    root = solve_lower(np.asarray(np.linalg.cholesky(gram), dtype=float), np.eye(len(gram)))
    root = root if span is None else root @ span
    return lambda x: root @ x, lambda x: root.T @ x


class Sums(Copyable):
    """Sum of each arm's rewards."""

    OWN: ClassVar[tuple[str, ...]] = ("_sums",)

    def __init__(self) -> None:
        self._sums: Floats = np.empty(0)
        self._arms = 0

    @property
    def total(self) -> Floats:
        """Sum of each arm's rewards, (u,), or of those in each group, (u, k)."""
        return self._sums[: self._arms]

    def take(self, slots: Ints, values: Floats) -> None:
        self._arms = max(self._arms, int(slots.max()) + 1)
        self._sums = enlarged(self._sums, self._arms)
        np.add.at(self._sums, slots, values)


class GroupSums(Sums):
    """Sum of each arm's rewards in each of k groups; an arm's rewards go to the groups in turn."""

    OWN = ("_sums", "_turn")

    def __init__(self, groups: int) -> None:
        self._sums, self._arms = np.empty((0, groups)), 0
        self._turn: Ints = np.empty(0, np.intp)

    def take(self, slots: Ints, values: Floats) -> None:
        self._arms, groups = max(self._arms, int(slots.max()) + 1), self._sums.shape[1]
        self._sums, self._turn = enlarged(self._sums, self._arms), enlarged(self._turn, self._arms)
        for slot, value in zip(slots, values, strict=True):
            self._sums[slot, self._turn[slot] % groups] += value
            self._turn[slot] += 1


class SortedRewards:
    """Each arm's rewards sorted by size |y|, with cumulative sums, so that a truncated sum is a lookup."""

    def __init__(self) -> None:
        self._sizes: list[Floats] = []  # per slot: |y|, ascending
        self._sums: list[Floats] = []  # per slot: sums of the 0, 1, 2, ... smallest rewards
        self._largest, self._total = np.empty(0), np.empty(0)  # per slot: the largest |y|, the sum of all

    def take(self, slots: Ints, values: Floats) -> None:
        arms = int(slots.max()) + 1
        self._largest, self._total = enlarged(self._largest, arms), enlarged(self._total, arms)
        while len(self._sizes) < arms:
            self._sizes.append(np.empty(0))
            self._sums.append(np.zeros(1))
        for slot, value in zip(slots.tolist(), values.tolist(), strict=True):
            sizes, sums = self._sizes[slot], self._sums[slot]
            at = int(sizes.searchsorted(abs(value), "right"))
            self._sizes[slot] = np.concatenate([sizes[:at], [abs(value)], sizes[at:]])
            self._sums[slot] = np.concatenate([sums[: at + 1], sums[at:] + value])
            self._largest[slot], self._total[slot] = self._sizes[slot][-1], self._sums[slot][-1]

    def reaching(self, weights: Floats, level: float) -> Ints:
        """Slots with a reward y such that |weight y| > level, for one weight per slot, (u,)."""
        return np.flatnonzero(weights * self._largest[: len(self._sizes)] > level)

    def total(self, leave: Ints) -> Floats:
        """Sum of each arm's rewards, (u,), 0 for the slots in ``leave``."""
        total = self._total[: len(self._sizes)].copy()
        total[leave] = 0.0
        return total

    def kept(self, slots: Ints, weights: Floats, level: float) -> Floats:
        """Truncated sums of weighted rewards, (m,), for weights (m, n) of these slots, (n,).

        These are the sums over the slots a and their rewards y of weights[i, a] y 1{|weights[i, a] y| <= level}.
        """
        size = np.abs(weights)
        cut = size * self._largest[slots] > level
        sums = np.where(cut, 0.0, self._total[slots])
        for place in np.flatnonzero(cut.any(axis=0)):
            rows, slot = np.flatnonzero(cut[:, place]), slots[place]
            bound = _largest_kept(size[rows, place], level)
            below = self._sizes[slot].searchsorted(bound, "right")
            sums[rows, place] = self._sums[slot][below]
        return np.asarray(np.einsum("ij,ij->i", weights, sums))

    def copy(self) -> Self:
        return copy.deepcopy(self)


def _largest_kept(weight: Floats, level: float) -> Floats:
    """Largest size whose rounded product with the weight is at most the level, (n,) -> (n,)."""
    bound = level / weight
    above = np.nextafter(bound, np.inf)
    bound = np.where(weight * above <= level, above, bound)
    return np.where(weight * bound > level, np.nextafter(bound, 0.0), bound)
