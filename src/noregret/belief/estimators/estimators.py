"""The estimators themselves: least squares, and four that one absurd reward cannot spoil."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.spatial.distance import cdist

from noregret.belief.estimators import Estimator, Regression
from noregret.belief.estimators.memory import GroupSums, SortedRewards
from noregret.belief.numerics.linalg import solve_lower
from noregret.belief.posterior import Floats, Posterior
from noregret.belief.schedule import Schedule, convert_numbers

Product = Callable[[Floats], Floats]
"""Multiplication by a matrix from the left."""


@dataclass(frozen=True)
class LeastSquares(Estimator):
    """theta = V^-1 sum phi y, the mean of the Gaussian process. A reward beyond 1e100 in size is refused."""

    robust: ClassVar[bool] = False


@dataclass(frozen=True)
class TruncatedRewards(Estimator):
    """Least squares on y 1{|y| <= b_t}, b_t the level when reward t arrives (heavy-tails paper, Alg. 1).

    One reward at point x' moves the mean by at most b_t s(x) s(x') / ridge, and one beyond the level not at all.
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
    one-pass Huber regression of Hvt-UCB (J. Wang, Y.-J. Zhang, P. Zhao, Z.-H. Zhou, ICML 2025). No reward is kept. One
    reward moves the mean by at most b_t s(x) / sqrt(ridge).
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

    The sum goes over all rewards with the level b of now, the rows of u being the directions. Each arm's rewards are
    kept sorted, so a round costs O(m u log n) for u distinct arms pulled n times each, however many rounds there were.
    One reward moves each r_i by at most b, hence the mean by at most b sqrt(m / ridge) s(x). What theta has outside the
    span of the arms' features, which no arm sees, is dropped.

    ``root`` is the one of V: "symmetric", the paper's, or "cholesky", whose inverse also has rows of norm at most 1, so
    that the theorems hold for it. It needs no eigenvalues, and is another estimator.
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
    """Multiplication by V^-1/2 from the basis of the span to the unit vectors, (m, r), and by its transpose."""
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
