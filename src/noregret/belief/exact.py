"""The exact Gaussian-process posterior on N arms.

The state is a Cholesky factor with one row per conditioning, the rows also carried to all arms:

    root root' = K(rows, rows) + diag(noise),    whitened = root^-1 K(rows, arms),    scores = root^-1 y
    mean = scores' whitened,                     s^2 = k(x, x) - column sums of whitened^2

A block of b distinct arms appends b rows at O(r b N), r the rows so far. An arm pulled again at once is pooled into
its row, at O(N) (n pulls with ridge l are one pull of their average with ridge l / n). An arm that comes back later
appends a row too; once the rows far outnumber the u distinct arms, they are refactored into one row per distinct arm,
at O(u^2 N). So r stays within 1.75 u + 32, however many the rounds, and rounding errors do not pile up. Where to
refactor was measured: a row more costs every round to come, a factorisation more costs u / 3 rounds at once. Kernel
columns are computed once per arm.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg.blas import dger

from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.numerics.linalg import REFRESH, enlarged, lower_root, pivoted_root, solve_lower
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, as_arms, check_size

if TYPE_CHECKING:
    from collections.abc import Callable

    Truncation = Callable[["ExactPosterior"], float]

_NUGGET = 64 * np.finfo(float).eps

FEW_ARMS = 500
"""Up to so many arms, draws come from a square root of the posterior covariance, which a pull changes at O(N^2)."""


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
        self.rounds, n = 0, len(self._points)
        self._mean = np.zeros(n)
        self.information_gain = 0.0
        self.misfit = 0.0  # y' (K_t + ridge I)^-1 y
        self._model = model
        self._prior_variance = model.kernel.diag(self._points)
        self._variance = self._prior_variance
        self._std: Floats | None = None
        self._prior_root: Floats | None = None
        self._spread: Floats | None = None  # S, (r, N) with S'S the posterior covariance, once somebody draws
        self.ridge = model.ridge or _NUGGET * max(float(self._prior_variance.max()), np.finfo(float).tiny)
        # per arm: the sum of 1 / noise over its pulls, of reward / noise, and its slot among the distinct arms
        self._precision, self._weighted = np.zeros(n), np.zeros(n)
        self._slot = np.full(n, -1)
        self._distinct, self._pulled, self._columns = 0, np.empty(0, np.intp), np.empty((0, n))
        # per row of the factor
        self._rows, self._row_arms, self._noise, self._scores = 0, np.empty(0, np.intp), np.empty(0), np.empty(0)
        self._whitened, self._root = np.empty((0, n)), np.empty((0, 0))
        self._repeats = 0  # pulls taken into a row that was there

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        return self._points[: self._shown]

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        return self._mean[: self._shown]

    @property
    def std(self) -> Floats:
        """Posterior standard deviation of every arm, (N,)."""
        if self._std is None:
            self._std = np.sqrt(np.maximum(self._variance[: self._shown], 0.0))
        return self._std

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls, = trace of K_t (K_t + ridge I)^-1."""
        pulled = self._pulled[: self._distinct]
        return float(self._precision[pulled] @ np.maximum(self._variance[pulled], 0.0))

    @property
    def rank(self) -> int:
        """Number of distinct arms pulled."""
        return self._distinct

    @property
    def largest_reward(self) -> float:
        """Rewards beyond this size are refused; with truncation none is."""
        return HUGE if self._model.truncation is None else math.inf

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        pulled = self._pulled[: self._distinct]
        return pulled if self._shown == len(self._points) else pulled[pulled < self._shown]

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge."""
        arms = np.asarray(arms, dtype=np.intp).reshape(-1)
        values = self._mean[arms] if rewards is None else self._arrive(arms, np.asarray(rewards, float).reshape(-1))
        ridges = np.full(arms.size, self.ridge) if noise is None else self.ridge * np.broadcast_to(noise, arms.shape)
        if not self._model.ridge:
            arms, values, ridges = self._news(arms, values, ridges)
        if arms.size > 1:
            arms, values, ridges = self._pool(arms, values, ridges)
        if arms.size:
            self._learn(arms, values, ridges)

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        points = as_arms(points)
        kernel, rows = self._model.kernel, self._rows
        if not rows:
            return np.zeros(len(points)), np.sqrt(kernel.diag(points))
        with threads_for(rows * rows * len(points)):
            lifted = solve_lower(self._root[:rows, :rows], kernel(self._points[self._row_arms[:rows]], points))
            variance = kernel.diag(points) - np.einsum("ij,ij->j", lifted, lifted)
            return self._scores[:rows] @ lifted, np.sqrt(np.maximum(variance, 0.0))

    def sample(self, rng: Rng) -> Floats:
        """One joint draw on all arms, (N,): on few arms from a square root of the posterior covariance.

        On many it is a prior draw g, corrected by what it would have been observed as: mean + g - whitened' root^-1
        (g at the rows + noise) has the posterior's law (Matheron's rule), so the one factorisation is the prior's.
        """
        if len(self._mean) <= FEW_ARMS:
            if self._spread is None:
                everywhere = np.arange(len(self._mean))
                self._spread = pivoted_root(self.covariance(everywhere, everywhere)).T.copy()
            draw = self._mean + rng.standard_normal(len(self._spread)) @ self._spread
            return np.asarray(draw[: self._shown])
        if self._prior_root is None:
            self._prior_root = pivoted_root(self._model.kernel(self._points, self._points))
        rows = self._rows
        with threads_for(len(self._mean) * (rows + self._prior_root.shape[1])):
            draw = self._prior_root @ rng.standard_normal(self._prior_root.shape[1])
            seen = draw[self._row_arms[:rows]] + np.sqrt(self._noise[:rows]) * rng.standard_normal(rows)
            correction = solve_lower(self._root[:rows, :rows], seen[:, None])[:, 0] @ self._whitened[:rows]
        return np.asarray((self._mean + draw - correction)[: self._shown])

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name not in ("_points", "_prior_root", "_prior_variance"):
                setattr(twin, name, value.copy())
        return twin

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        left, right = self._whitened[: self._rows, first], self._whitened[: self._rows, second]
        return np.asarray(self._model.kernel(self._points[first], self._points[second]) - left.T @ right)

    def at(self, arms: Any) -> ExactPosterior:
        """The same knowledge about other (N, d) arms; what was learnt at points that are not among them stays."""
        arms = as_arms(arms) + 0.0  # -0.0 becomes 0.0, so that equal points have equal bytes
        pulled = self._pulled[: self._distinct]
        row = {arm.tobytes(): i for i, arm in reversed(list(enumerate(arms)))}
        index = np.array([row.get((point + 0.0).tobytes(), -1) for point in self._points[pulled]], dtype=np.intp)
        lost = index < 0
        index[lost] = len(arms) + np.arange(np.count_nonzero(lost))
        other = ExactPosterior(self._model, arms, self._points[pulled[lost]])
        other.ridge = self.ridge
        if pulled.size:
            ridges = 1 / self._precision[pulled]
            other._learn(*other._pool(index, self._weighted[pulled] * ridges, ridges))  # old arms may be twins
        other.rounds, other.misfit = self.rounds, self.misfit
        return other

    def _arrive(self, arms: Ints, rewards: Floats) -> Floats:
        """Count the rewards, and cut each at the level of its own round."""
        truncation = self._model.truncation
        if truncation is None:
            check_size(arms, rewards, HUGE)
            self.rounds += rewards.size
            return rewards
        kept = rewards.copy()
        for i, reward in enumerate(rewards):
            self.rounds += 1
            if abs(reward) > truncation(self):
                kept[i] = 0.0
        return kept

    def _news(self, arms: Ints, values: Floats, ridges: Floats) -> tuple[Ints, Floats, Floats]:
        """Of noise-free rewards, the first of each arm not pulled before."""
        _, first = np.unique(arms, return_index=True)
        first = np.sort(first[self._slot[arms[first]] < 0])
        return arms[first], values[first], ridges[first]

    def _pool(self, arms: Ints, values: Floats, ridges: Floats) -> tuple[Ints, Floats, Floats]:
        """One observation per distinct arm: the precision-weighted average and its ridge."""
        distinct, first, inverse = np.unique(arms, return_index=True, return_inverse=True)
        precision = np.bincount(inverse, 1 / ridges)
        pooled = np.bincount(inverse, values / ridges) / precision
        self.misfit += float(((values - pooled[inverse]) ** 2 / ridges).sum())
        order = np.argsort(first)  # of the first pulls
        return distinct[order], pooled[order], 1 / precision[order]

    def _learn(self, arms: Ints, values: Floats, ridges: Floats) -> None:
        if arms.size == 1 and self._rows and self._row_arms[self._rows - 1] == arms[0]:
            self._learn_again(int(arms[0]), float(values[0]), float(ridges[0]))
        else:
            with threads_for((self._rows + arms.size) * arms.size * len(self._mean)):
                columns = self._kernel_columns(arms)
                while not self._condition(arms, columns, values, ridges):
                    ridges = ridges * self._raise_nugget()
            self._precision[arms] += 1 / ridges
            self._weighted[arms] += values / ridges
        if self._rows > 1.75 * self._distinct + 32 or self._repeats >= REFRESH:
            with threads_for(self._distinct**2 * len(self._mean)):
                self._refactor()

    def _learn_again(self, arm: int, value: float, ridge: float) -> None:
        """One more pull of the arm of the last row, pooled into it: O(N), and nothing grows."""
        last = self._rows - 1
        row, corner, noise = self._whitened[last], float(self._root[last, last]), float(self._noise[last])
        own, left = max(float(row[arm]), 0.0), noise / corner  # left times the row is the covariance with the arm
        pivot = left * own + ridge
        score = (value - float(self._mean[arm])) / math.sqrt(pivot)
        change = (left / math.sqrt(pivot)) * row
        self._mean = self._mean + score * change
        self._variance = self._variance - change * change
        if self._spread is not None:
            self._spread = _downdated(self._spread, arm, left * row, ridge)
        self.information_gain += 0.5 * math.log(pivot / ridge)
        self.misfit += score * score

        pooled = noise * ridge / (noise + ridge)
        pooled_corner = math.sqrt(corner * own + pooled)
        self._scores[last] = (float(self._scores[last]) + score * left / math.sqrt(pivot)) * pooled_corner / corner
        row *= corner / pooled_corner
        self._root[last, last], self._noise[last] = pooled_corner, pooled
        self._precision[arm] += 1 / ridge
        self._weighted[arm] += value / ridge
        self._std, self._repeats = None, self._repeats + 1

    def _kernel_columns(self, arms: Ints) -> Floats:
        """K(arms, all arms), (b, N), computed at an arm's first pull and kept."""
        new = arms[self._slot[arms] < 0]
        if new.size:
            start, self._distinct = self._distinct, self._distinct + new.size
            self._columns = enlarged(self._columns, self._distinct)
            self._pulled = enlarged(self._pulled, self._distinct)
            self._columns[start : self._distinct] = self._model.kernel(self._points[new], self._points)
            self._pulled[start : self._distinct] = new
            self._slot[new] = np.arange(start, self._distinct)
            if new.size == arms.size:
                return self._columns[start : self._distinct]
        slots = self._slot[arms]
        return np.asarray(self._columns[slots] if slots.size > 1 else self._columns[slots[0]][None])

    def _condition(self, arms: Ints, columns: Floats, values: Floats, ridges: Floats) -> bool:
        """Append the rows of distinct arms; False, and nothing changed, if rounding has eaten a pivot."""
        if arms.size == 1:
            return self._condition_one(int(arms[0]), columns[0], float(values[0]), float(ridges[0]))
        rows, end = self._rows, self._rows + arms.size
        border = self._whitened[:rows, arms].T
        covariance = columns - border @ self._whitened[:rows] if rows else columns.copy()
        corner = lower_root(covariance[:, arms] + np.diag(ridges))
        if corner is None or (corner.diagonal() ** 2 < 0.5 * ridges).any():
            return False
        whitened = solve_lower(corner, covariance)
        scores = solve_lower(corner, (values - self._mean[arms])[:, None])[:, 0]

        self._spread = None
        self._makeroom(end)
        self._whitened[rows:end], self._scores[rows:end] = whitened, scores
        self._root[rows:end, :rows], self._root[rows:end, rows:end] = border, corner
        self._row_arms[rows:end], self._noise[rows:end] = arms, ridges
        self._rows, self._std = end, None
        self._mean = self._mean + scores @ whitened
        self._variance = self._variance - np.einsum("ij,ij->j", whitened, whitened)
        self.information_gain += float(np.log(corner.diagonal()).sum() - 0.5 * np.log(ridges).sum())
        self.misfit += float(scores @ scores)
        return True

    def _condition_one(self, arm: int, column: Floats, value: float, ridge: float) -> bool:
        """The same for one arm in scalars: a third of the time where the calls cost more than the arithmetic."""
        row = self._rows
        border = self._whitened[:row, arm].copy()  # read once: its elements lie a whole row apart
        if self._spread is None:
            covariance = column - border @ self._whitened[:row]
        else:
            covariance = self._spread[:, arm] @ self._spread
        pivot = float(covariance[arm]) + ridge
        if not pivot >= 0.5 * ridge:
            return False
        corner = math.sqrt(pivot)
        whitened = covariance / corner
        score = (value - float(self._mean[arm])) / corner

        if self._spread is not None:
            self._spread = _downdated(self._spread, arm, covariance, ridge)
        self._makeroom(row + 1)
        self._whitened[row], self._scores[row] = whitened, score
        self._root[row, :row], self._root[row, row] = border, corner
        self._row_arms[row], self._noise[row] = arm, ridge
        self._rows, self._std = row + 1, None
        self._mean = self._mean + score * whitened
        self._variance = self._variance - whitened * whitened
        self.information_gain += 0.5 * math.log(pivot / ridge)
        self.misfit += score * score
        return True

    def _refactor(self) -> None:
        """One row per distinct arm, all its pulls pooled; mean, variance and gain afresh from it."""
        precision = self._precision[self._pulled[: self._distinct]]
        known = np.count_nonzero(precision)  # an arm just being learnt comes last, without any
        arms, misfit = self._pulled[:known], self.misfit
        ridges = 1 / self._precision[arms]
        self._rows, self._repeats, self.information_gain, self._spread = 0, 0, 0.0, None
        self._mean, self._variance = np.zeros(len(self._mean)), self._prior_variance
        while not self._condition(arms, self._columns[:known], self._weighted[arms] * ridges, ridges):
            ridges = ridges * self._raise_ridge()
        self.misfit = misfit

    def _raise_nugget(self) -> float:
        """Ten times the nugget for what is known already; the factor for what is being learnt."""
        factor = self._raise_ridge()
        self._refactor()
        self.misfit = float(self._scores[: self._rows] @ self._scores[: self._rows])
        return factor

    def _raise_ridge(self) -> float:
        if self._model.ridge:
            raise ValueError(
                f"ridge {self.ridge} is too small for this kernel and so many pulls: raise it, or pass ridge=0 if "
                "the rewards are noise-free"
            )
        self.ridge *= 10
        self._precision /= 10
        self._weighted /= 10
        return 10.0

    def _makeroom(self, rows: int) -> None:
        if rows > len(self._scores):
            root, old = self._root, len(self._scores)
            self._whitened = enlarged(self._whitened, rows)
            self._scores, self._noise = enlarged(self._scores, rows), enlarged(self._noise, rows)
            self._row_arms = enlarged(self._row_arms, rows)
            self._root = np.zeros((len(self._scores), len(self._scores)))
            self._root[:old, :old] = root


def _downdated(spread: Floats, arm: int, covariance: Floats, ridge: float) -> Floats:
    """S' with S'^T S' = C - c c' / (c_a + ridge), c = C[a], for S^T S = C, (r, N); written over ``spread``."""
    own, size = spread[:, arm].copy(), float(covariance[arm])
    if size <= 0:
        return spread
    shrink = (1 - math.sqrt(ridge / (size + ridge))) / size
    return np.asarray(dger(-shrink, covariance, own, a=spread.T, overwrite_a=1)).T
