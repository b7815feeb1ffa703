"""Posterior of a Gaussian process, given rows of observations.

The prior is c + f(x) with c ~ N(0, mean_variance) and f ~ GP(0, k). With observations y of noise variances D at the
rows X and L L' = K(X, X) + D, the posterior at arms A is

    V = L^-1 K(X, A),    mean = V' L^-1 y,    variance = k(a, a) - the sums of squares of the columns of V.

One more observation is one more row of V, in O(rows * arms). Operations return a new posterior and share arrays.
Where f changes, k is multiplied by 2^(-|t - s| / (2 h)) between times t and s, h the half-life in answers; the arms are
at the time ``now``.

Observations of one block, such as those of one machine, share an offset b ~ N(0, t^2). It is a part of their noise: D
gains t^2 wherever two rows are of one block. Predictions are of f, without any offset.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from noregret.gp.kernels import Kernel
from noregret.gp.linalg import lower_root, pivoted_root, solve_lower
from noregret.gp.posterior import Floats, Ints, Rng

POINTS_AT_ONCE = 4096
"""Points that are predicted at once, so that memory is bounded. Not measured."""


class Offsets(NamedTuple):
    """Level of each of k factors that each row has, (r, k), -1 for none, and the variance of each factor, (k,)."""

    levels: Ints
    variances: Floats

    def covariance(self, others: Ints) -> Floats:
        """Covariance of the offsets of these rows with those of (m, k) levels, (r, m).

        >>> Offsets(np.array([[0], [1], [-1]]), np.array([4.0])).covariance(np.array([[0], [-1]]))
        array([[4., 0.],
               [0., 0.],
               [0., 0.]])
        """
        same = (self.levels[:, None] == others) & (others >= 0)
        return np.asarray(same @ self.variances)

    def of(self, block: Mapping[int, int]) -> Ints:
        """Levels of an observation, (1, k), given those of its factors by their numbers."""
        return np.array([[block.get(factor, -1) for factor in range(len(self.variances))]])


class ObservationRows(NamedTuple):
    """Observations at (r, d) points: values, noise variances and times, each (r,); times are None if f stays."""

    points: Floats
    values: Floats
    noise: Floats
    times: Floats | None = None
    blocks: Offsets | None = None

    def only(self, kept: Ints) -> ObservationRows:
        """Some of the rows, in this order."""
        times = None if self.times is None else self.times[kept]
        blocks = self.blocks and self.blocks._replace(levels=self.blocks.levels[kept])
        return ObservationRows(self.points[kept], self.values[kept], self.noise[kept], times, blocks)

    @property
    def noise_matrix(self) -> Floats:
        """Covariance of the noise, offsets of blocks included, (r, r)."""
        own = np.diag(self.noise)
        return own if self.blocks is None else own + self.blocks.covariance(self.blocks.levels)


def faded(answers: Floats, half_life: float) -> Floats:
    """2^(-|answers| / 2h): correlation of f with f that many answers ago. Its square is 1/2 at the half-life h."""
    return np.asarray(np.exp2(-np.abs(answers) / (2 * half_life)))


@dataclass(frozen=True, eq=False)
class Conditioned:
    """Gaussian process given rows: ``root`` is L, (r, r), and ``whitened`` is L^-1 y, (r,)."""

    kernel: Kernel
    rows: ObservationRows
    root: Floats
    whitened: Floats
    half_life: float
    now: float
    mean_variance: float
    factor: float
    """Factor on the kernel."""

    @property
    def log_density(self) -> float:
        """Log density of the values, but for -r/2 ln(2 pi)."""
        return -0.5 * float(self.whitened @ self.whitened) - float(np.log(self.root.diagonal()).sum())

    def prior(self, points: Floats) -> Floats:
        """Prior variances at (n, d) points, (n,)."""
        return np.asarray(self.mean_variance + self.factor * self.kernel.diag(points))

    def prior_covariance(self, first: Floats, second: Floats) -> Floats:
        """Prior covariance of (n, d) points with (m, d) points at one time, (n, m)."""
        return np.asarray(self.mean_variance + self.factor * self.kernel(first, second))

    def shared(self, points: Floats) -> Floats:
        """Prior covariance of the rows with (n, d) points now, (r, n)."""
        matrix = self.kernel(self.rows.points, points)
        if self.factor != 1:
            matrix = self.factor * matrix
        if self.rows.times is not None:
            matrix = matrix * faded(self.now - self.rows.times, self.half_life)[:, None]
        return matrix + self.mean_variance if self.mean_variance else matrix

    def lifted(self, points: Floats) -> Floats:
        """L^-1 K(rows, points), (r, n)."""
        return solve_lower(self.root, self.shared(points))

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std at (n, d) points, each (n,)."""
        starts = range(0, max(len(points), 1), POINTS_AT_ONCE)
        parts = [self.predict_lifted(points[start : start + POINTS_AT_ONCE])[1:] for start in starts]
        mean, std = (np.concatenate(column) for column in zip(*parts, strict=True))
        return mean, std

    def predict_lifted(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """`lifted`, mean and std at (n, d) points."""
        lifted = self.lifted(points)
        variance = self.prior(points) - np.einsum("ij,ij->j", lifted, lifted)
        return lifted, self.whitened @ lifted, np.sqrt(np.maximum(variance, 0.0))

    def offset(self, block: Mapping[int, int] | None) -> tuple[Floats, float]:
        """L^-1 C, (r,), and the prior variance: C the covariance of the rows with the offset of an observation."""
        if block is None or self.rows.blocks is None:
            return np.zeros(len(self.root)), 0.0
        levels = self.rows.blocks.of(block)
        lifted = solve_lower(self.root, self.rows.blocks.covariance(levels))[:, 0]
        return lifted, float(self.rows.blocks.variances[levels[0] >= 0].sum())

    def offsets(self, blocks: Iterable[Mapping[int, int] | None]) -> Floats:
        """Expected offset of an observation in each of n blocks, (n,)."""
        return np.array([float(self.offset(block)[0] @ self.whitened) for block in blocks])

    def given(self, known: Floats) -> Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]:
        """Function of (n, d) points, which are lifted to (r, n) already.

        It returns the mean, the std, and the std that would remain if f were known at (k, d) others, each (n,).
        """
        at_known = self.lifted(known)
        inverse = np.linalg.pinv(pivoted_root(self.prior_covariance(known, known) - at_known.T @ at_known))

        def predict(points: Floats, lifted: Floats) -> tuple[Floats, Floats, Floats]:
            variance = self.prior(points) - np.einsum("ij,ij->j", lifted, lifted)
            shared = inverse @ (self.prior_covariance(known, points) - at_known.T @ lifted)
            remaining = variance - np.einsum("ij,ij->j", shared, shared)
            return self.whitened @ lifted, np.sqrt(np.maximum(variance, 0.0)), np.sqrt(np.maximum(remaining, 0.0))

        return predict

    def joint(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) at (n, d) points."""
        lifted = self.lifted(points)
        return self.whitened @ lifted, self.prior_covariance(points, points) - lifted.T @ lifted

    def at(self, arms: Floats, row_arms: Ints, ridge: Floats | float, lifted: Floats | None = None) -> PosteriorAtArms:
        """Posterior at (N, d) arms, ``row_arms`` being the arm of each row; ``lifted`` is computed if it is unknown.

        The ``ridge`` is the noise variance of one more observation, of each arm or of all.
        """
        lifted = self.lifted(arms) if lifted is None else lifted
        prior = self.prior(arms)
        variance = prior - np.einsum("ij,ij->j", lifted, lifted)
        about = self.whitened @ lifted, variance, prior, lifted
        return PosteriorAtArms(self, arms, row_arms, *about, np.empty((0, len(arms))), ridge, len(row_arms))


def condition(
    kernel: Kernel,
    rows: ObservationRows,
    half_life: float = math.inf,
    now: float = 0.0,
    mean_variance: float = 0.0,
    factor: float = 1.0,
    matrix: Floats | None = None,
) -> Conditioned:
    """Condition on rows; ``matrix`` is `prior_matrix` of the rows, if it is known already."""
    matrix = prior_matrix(kernel, rows, half_life) if matrix is None else matrix
    root = lower_root(factor * matrix + mean_variance + rows.noise_matrix)
    if root is None:
        raise ValueError(f"kernel matrix of {len(rows.noise)} rows is not positive definite: noise is too small for it")
    whitened = solve_lower(root, rows.values[:, None].copy())[:, 0]
    return Conditioned(kernel, rows, root, whitened, half_life, now, mean_variance, factor)


def prior_matrix(kernel: Kernel, rows: ObservationRows, half_life: float = math.inf) -> Floats:
    """Prior covariance of f at the rows, each at its time, (r, r)."""
    matrix = kernel(rows.points, rows.points)
    return matrix if rows.times is None else matrix * faded(rows.times[:, None] - rows.times, half_life)


class LaterRow(NamedTuple):
    """An observation since the factorisation: its own columns, and its row of L and of L^-1 y."""

    value: float
    noise: float
    time: float
    left: Floats
    """Row of L left of the diagonal."""
    corner: float
    """The diagonal."""
    whitened: float
    block: Mapping[int, int] | None = None


@dataclass(frozen=True, eq=False)
class PosteriorAtArms:
    """Posterior at N arms, given ``first`` and one row for each later observation.

    It has what rules and schedules read of `noregret.gp.posterior.Posterior`.
    """

    first: Conditioned
    arms: Floats
    row_arms: Ints
    """Arm of each row, the later ones included."""
    mean: Floats
    variance: Floats
    prior: Floats
    lifted: Floats
    """V of the first rows, (r, N)."""
    steps: Floats
    """V of the later rows, (m, N)."""
    ridge: Floats | float
    """Noise variance of an observation: one number, or one of each arm."""
    rounds: int
    """Number of observations."""
    later: tuple[LaterRow, ...] = ()
    only_pulled: Ints | None = None
    """Arms that rules take for pulled, if not all that are."""

    @cached_property
    def std(self) -> Floats:
        """Standard deviations, (N,)."""
        return np.sqrt(np.maximum(self.variance, 0.0))

    @cached_property
    def pulled(self) -> Ints:
        """Arms with an observation, in order of the first one."""
        if self.only_pulled is not None:
            return self.only_pulled
        arms, first = np.unique(self.row_arms, return_index=True)
        return np.asarray(arms[np.argsort(first)])

    @property
    def rank(self) -> int:
        """Number of rows."""
        return len(self.row_arms)

    @cached_property
    def rows(self) -> ObservationRows:
        """All rows."""
        first, arms = self.first.rows, self.row_arms[len(self.first.rows.values) :]
        values, noise, times = (np.array([row[i] for row in self.later]) for i in range(3))
        blocks = first.blocks
        if blocks is not None:
            levels = np.vstack([blocks.levels, *(blocks.of(row.block or {}) for row in self.later)])
            blocks = blocks._replace(levels=levels)
        return ObservationRows(
            np.vstack([first.points, self.arms[arms]]),
            np.concatenate([first.values, values]),
            np.concatenate([first.noise, noise]),
            None if first.times is None else np.concatenate([first.times, times]),
            blocks,
        )

    @property
    def effective_dimension(self) -> float:
        """Trace of K (K + D)^-1: the sum of variance / noise over the rows, if D is diagonal."""
        if self.rows.blocks is not None:
            inverse = solve_lower(self.full.root, np.eye(self.rank))
            return self.rank - float(np.einsum("ij,ij->", self.rows.noise_matrix, inverse.T @ inverse))
        return float((np.maximum(self.variance[self.row_arms], 0.0) / self.rows.noise).sum())

    @property
    def information_gain(self) -> float:
        """1/2 ln det(I + K / D)."""
        noise = np.log(self.rows.noise).sum()
        if self.rows.blocks is not None:
            noise = np.linalg.slogdet(self.rows.noise_matrix)[1]
        return float(np.log(self.full.root.diagonal()).sum() - 0.5 * noise)

    @cached_property
    def full(self) -> Conditioned:
        """The process given all rows."""
        if not self.later:
            return self.first
        size, rank = len(self.first.root), self.rank
        root = np.zeros((rank, rank))
        root[:size, :size] = self.first.root
        for i, row in enumerate(self.later, size):
            root[i, :i], root[i, i] = row.left, row.corner
        whitened = np.append(self.first.whitened, [row.whitened for row in self.later])
        return replace(self.first, rows=self.rows, root=root, whitened=whitened)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std at (n, d) points, each (n,)."""
        return self.full.predict(points)

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        explained = self.lifted[:, first].T @ self.lifted[:, second] + self.steps[:, first].T @ self.steps[:, second]
        return np.asarray(self.first.prior_covariance(self.arms[first], self.arms[second]) - explained)

    def sample(self, rng: Rng) -> Floats:
        """Joint draw at all arms, (N,)."""
        every = np.arange(len(self.arms))
        root = pivoted_root(self.covariance(every, every))
        return np.asarray(self.mean + root @ rng.standard_normal(root.shape[1]))

    def noise_variance(self, arm: int) -> float:
        """Noise variance of an observation of an arm."""
        return float(np.broadcast_to(self.ridge, self.mean.shape)[arm])

    def expected(self, arm: int, block: Mapping[int, int] | None = None) -> tuple[float, float, Floats]:
        """Mean and variance of the next value of an arm in a block, without noise of its own, and its row of L."""
        mean, variance = float(self.mean[arm]), max(float(self.variance[arm]), 0.0)
        left = np.concatenate([self.lifted[:, arm], self.steps[:, arm]])
        if block is None or self.first.rows.blocks is None:
            return mean, variance, left
        offset, prior = self.full.offset(block)
        variance += prior - float((2 * left + offset) @ offset)
        return mean + float(offset @ self.full.whitened), max(variance, 0.0), left + offset

    def told(self, arm: int, value: float, noise: float, block: Mapping[int, int] | None = None) -> PosteriorAtArms:
        """Posterior after one more value of an arm, of this noise variance, now, in a block."""
        mean, variance, left = self.expected(arm, block)
        corner = math.sqrt(variance + noise)
        shared = self.first.prior_covariance(self.arms[[arm]], self.arms)[0]
        step = (shared - left[: len(self.lifted)] @ self.lifted - left[len(self.lifted) :] @ self.steps) / corner
        whitened = (value - mean) / corner
        return replace(
            self,
            row_arms=np.append(self.row_arms, arm),
            mean=self.mean + whitened * step,
            variance=self.variance - step**2,
            steps=np.vstack([self.steps, step]),
            later=(*self.later, LaterRow(value, noise, self.first.now, left, corner, whitened, block)),
            rounds=self.rounds + 1,
        )

    def advanced(self, answers: float) -> PosteriorAtArms:
        """Posterior as of this many answers later, where f changes and its prior mean is known."""
        kept = float(faded(np.array(answers), self.first.half_life))
        return replace(
            self,
            first=replace(self.first, now=self.first.now + answers),
            mean=kept * self.mean,
            variance=self.prior - kept**2 * (self.prior - self.variance),
            lifted=kept * self.lifted,
            steps=kept * self.steps,
        )

    def extended(self, points: Floats) -> PosteriorAtArms:
        """Posterior with (n, d) more arms."""
        lifted = self.full.lifted(points)
        prior, size = self.first.prior(points), len(self.lifted)
        variance = prior - np.einsum("ij,ij->j", lifted, lifted)
        return replace(
            self,
            arms=np.vstack([self.arms, points]),
            mean=np.concatenate([self.mean, self.full.whitened @ lifted]),
            variance=np.concatenate([self.variance, variance]),
            prior=np.concatenate([self.prior, prior]),
            lifted=np.hstack([self.lifted, lifted[:size]]),
            steps=np.hstack([self.steps, lifted[size:]]),
        )
