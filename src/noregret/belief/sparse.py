"""The Gaussian-process posterior on a few features.

The state is small: with features that span r dimensions, and the u distinct arms pulled so far,

    V = ridge I + seen diag(weights) seen',    (r, r), seen the features of these arms, (r, u)
    mean = phi'theta,    s^2 = unexplained + ridge phi' V^-1 phi

where the estimator says what theta is, and unexplained is the prior variance that the features do not carry. All of it
is in coordinates of the span: the m features themselves, where they span as many dimensions. While they stay, a pull
changes V^-1 and s^2 by a rank-one term, O(r N), and so does one more feature; when others change, all is made afresh,
O(r^2 N).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from noregret.belief.arrays import Array, beside, column_squares, numpy_of, root_of_positive, stacked
from noregret.belief.estimators import Estimator
from noregret.belief.estimators.estimators import LeastSquares
from noregret.belief.estimators.roots import InverseRoot
from noregret.belief.features import Features
from noregret.belief.numerics.linalg import BLOCK, REFRESH, product_squares, solve_lower
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import HUGE, Floats, Ints, Rng, as_arms, as_points, as_pulls
from noregret.belief.pulls import Pulls, places_among, pooled

BLUR = 1e-12
"""What rounding may have added to or taken from a variance, as a share of the largest."""


@dataclass(frozen=True)
class SparseGP:
    """Gaussian process on features, with a choice of how rewards become its mean.

    Parameters
    ----------
    features : QuadratureFourier, RandomFourier or Nystrom
    ridge : float
        lambda, positive.
    estimator : Estimator, optional
        Least squares unless given. ``Nystrom(kernel, math.inf)`` is how another meets the exact Gaussian process.

    Examples
    --------
    >>> from noregret import Nystrom, SparseGP, SquaredExponential
    >>> belief = SparseGP(Nystrom(SquaredExponential(0.2), math.inf), ridge=0.01).prior([[0.0], [0.5], [1.0]])
    >>> belief.update([0, 0, 2], [1.0, 1.2, -1.0])
    >>> belief.mean.round(3), belief.std.round(3), belief.rank
    (array([ 1.095,  0.005, -0.99 ]), array([0.071, 0.998, 0.1  ]), 2)
    """

    features: Features
    ridge: float
    estimator: Estimator = field(default_factory=LeastSquares)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge > 0):
            raise ValueError(f"ridge must be positive, got {self.ridge}")
        if not hasattr(self.features, "on"):
            raise ValueError(f"features must be such as QuadratureFourier or Nystrom, got {self.features!r}")
        if not isinstance(self.estimator, Estimator):
            raise ValueError(f"estimator must be an Estimator such as LeastSquares(), got {self.estimator!r}")

    def prior(self, arms: Any, rng: Rng | None = None) -> SparsePosterior:
        """Belief about f on these (N, d) arms; without ``rng``, features that are drawn are the same every time."""
        return SparsePosterior(self, as_arms(arms), np.random.default_rng(0) if rng is None else rng)


class SparsePosterior:
    """The belief of `SparseGP` (see `noregret.belief.posterior.Posterior` for the contract)."""

    gram: Floats  # V, (r, r)
    inverse: Floats  # V^-1, (r, r)
    information_gain: float  # that of the features' kernel, 1/2 ln det(V / ridge)

    def __init__(self, model: SparseGP, arms: Floats, rng: Rng) -> None:
        self._points, self._shown = arms, len(arms)  # points that were pulled and are arms no more come last
        self.rounds, self.ridge = 0, model.ridge
        self.claimed_gain = 0.0
        self._estimator, self._memory = model.estimator, model.estimator.memory()
        self._map = model.features.on(arms, model.ridge, rng)
        self._pulls = Pulls()
        self._mean: Array = None
        self._std: Array = None
        self._theta: Floats | None = None
        self._seen: Floats | None = None
        self._variance: Array = np.empty(0)
        self._blur, self._changes = 0.0, 0
        self._inverse_root: InverseRoot | None = None  # of V, once somebody wants it
        self._linear = type(model.estimator).theta is Estimator.theta  # whether theta = V^-1 sum phi y
        self._last_row: tuple[int, Floats] | None = None  # the arm of the last pull, and phi' V^-1 phi of all with it
        self._rebuild()

    @property
    def arms(self) -> Floats:
        """The arms, (N, d)."""
        return self._points[: self._shown]

    @property
    def mean(self) -> Array:
        """Posterior mean of every arm, (N,)."""
        if self._mean is None:
            with threads_for(math.prod(self._map.table.shape)):
                self._mean = beside(self._map.table, self.theta) @ self._map.table
        return self._mean[: self._shown]

    @property
    def std(self) -> Array:
        """Posterior standard deviation of every arm, (N,)."""
        if self._std is None:
            self._std = root_of_positive(self._variance[: self._shown])
        return self._std

    @property
    def theta(self) -> Floats:
        """Coefficients of the mean on the features, in the basis of their span, (r,)."""
        if self._theta is None:
            size = len(self.gram)
            with threads_for(size**3):
                self._theta = self._estimator.theta(self, self._memory) if len(self._pulls) else np.zeros(size)
        return self._theta

    @property
    def seen(self) -> Floats:
        """Features of the distinct points pulled, in the basis of the span, (r, u)."""
        if self._seen is None:
            self._seen = np.asarray(numpy_of(self._map.table[:, self._pulls.arms]))
        return self._seen

    @property
    def span(self) -> Floats | None:
        """Orthonormal basis of what the features span, (m, r); None for the unit vectors."""
        return self._map.span

    @property
    def norm_bounds(self) -> Floats:
        """No less than the norm of V^-1/2 phi, for the features of each distinct point pulled, (u,)."""
        pulled = self._pulls.arms
        carried = np.maximum(numpy_of(self._variance[pulled] - self._map.unexplained[pulled]), 0.0)
        return np.asarray(np.sqrt((carried + self._blur) / self.ridge))

    def inverse_root_times(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,), with the symmetric root."""
        if self._inverse_root is None:
            self._inverse_root = InverseRoot(self.gram)
        return self._inverse_root @ right

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls."""
        variance = np.maximum(numpy_of(self._variance[self._pulls.arms]), 0.0)
        return float(self._pulls.weights @ variance) / self.ridge

    @property
    def misfit(self) -> float:
        """Misfit in the features' kernel, which is the least value of |theta|^2 + |y - phi'theta|^2 / ridge."""
        weights, averages = self._pulls.weights, self._pulls.averages
        with threads_for(self.inverse.size + self.seen.size):
            theta = self.inverse @ (self.seen @ (weights * averages))
            scatter = self._pulls.scatter + float(weights @ (averages - theta @ self.seen) ** 2)
            return float(theta @ theta) + scatter / self.ridge

    @property
    def rank(self) -> int:
        """Number of features in use, m."""
        return len(self._map.table if self._map.span is None else self._map.span)

    @property
    def largest_reward(self) -> float:
        """Rewards beyond this size are refused; by a robust estimator none is."""
        return math.inf if self._estimator.robust else HUGE

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        pulled = self._pulls.arms
        return pulled if self._shown == len(self._points) else pulled[pulled < self._shown]

    @property
    def dictionary(self) -> Floats:
        """The points that Nystrom features are made of now, (m, d); none for other features."""
        return self._points[getattr(self._map, "members", np.empty(0, np.intp))]

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge.

        Features that depend on the pulls are chosen anew at the end, from the variance of before; not if None.
        """
        self._update(*as_pulls(arms, rewards, noise, self._shown, self.largest_reward))

    def learn(self, points: Any, rewards: Any, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points; those that are arms count as pulls of these.

        Points that are new are given features first, at O(r^2 N).
        """
        points = as_points(points, self._points.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        distinct, kinds = np.unique(points + 0.0, axis=0, return_inverse=True)  # -0.0 becomes 0.0
        places, known = places_among(self._points, distinct), len(self._points)
        if (places >= known).any():
            stack = stacked(self._points, distinct[places >= known])
            self._map, self._points = self._map.move(stack, np.arange(known)), stack
            self._rebuild()
        self._update(places[kinds.reshape(-1)], values, factors)

    def _update(self, arms: Ints, values: Floats | None, factors: Floats | None) -> None:
        """Learn from values of points with these places, (n,); None changes the variance only."""
        if not arms.size:
            return
        factors = np.ones(arms.size) if factors is None else factors
        if values is None:
            self._record(arms, numpy_of(self.mean[arms]), factors)
            return
        values, before = np.clip(values, -HUGE, HUGE), self._variance
        gain = 0.5 * float(np.log1p(np.maximum(numpy_of(before[arms]), 0.0) / (self.ridge * factors)).sum())
        saved = self._saved(arms.size)
        try:
            while self._estimator.one_by_one and arms.size > 1:
                self._take(arms[:1], values[:1], factors[:1])
                arms, values, factors = arms[1:], values[1:], factors[1:]
            self._take(arms, values, factors, before)
        except BaseException:
            vars(self).update(saved)
            raise
        self.claimed_gain += gain

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        points = as_arms(points)
        with threads_for(len(self.gram) ** 2 * len(points)):
            table, unexplained = self._map.at(points)
            variance = unexplained + self.ridge * (table * (beside(table, self.inverse) @ table)).sum(axis=0)
            return beside(table, self.theta) @ table, root_of_positive(variance)

    def sample(self, rng: Rng) -> Array:
        """One joint draw on all arms, (N,): coefficients from N(theta, ridge V^-1), and the part without features."""
        size = len(self.gram)
        with threads_for(size * (len(self._points) + size**2)):
            error = np.linalg.solve(np.linalg.cholesky(self.gram).T, rng.standard_normal(size))
            carried = math.sqrt(self.ridge) * (beside(self._map.table, error) @ self._map.table)
            return self.mean + (carried + self._map.unexplained_draw(rng))[: self._shown]

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        left, right = numpy_of(self._map.table[:, first]), numpy_of(self._map.table[:, second])
        with threads_for(left.size * right.shape[1]):
            carried = np.linalg.multi_dot([left.T, self.inverse, right])
            return np.asarray(self._map.unexplained_covariance(first, second) + self.ridge * carried)

    def at(self, arms: Any) -> SparsePosterior:
        """The same knowledge about other (N, d) arms; what was learnt at points that are not among them stays."""
        arms, pulled = as_arms(arms), self._pulls.arms
        points = numpy_of(self._points[pulled])
        places = places_among(arms, points)
        other = copy.copy(self)
        other._points, other._shown = stacked(arms, points[places >= len(arms)]), len(arms)
        index = np.full(len(self._points), -1)
        index[pulled] = places
        other._map, other._memory = self._map.move(other._points, index), self._memory.copy()
        other._pulls = self._pulls.moved(places)
        other._rebuild()
        return other

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._map, twin._memory, twin._inverse_root = self._map.copy(), self._memory.copy(), None
        twin._pulls, twin.gram, twin.inverse = self._pulls.copy(), self.gram.copy(), self.inverse.copy()
        return twin

    def _saved(self, rewards: int) -> dict[str, Any]:
        """What an update with so many rewards may have changed when it fails."""
        if not self._estimator.one_by_one or rewards == 1:  # `_record` changes nothing when it fails
            return {"rounds": self.rounds}
        return {name: value for name, value in vars(self.copy()).items() if name != "_map"}

    def _take(self, arms: Ints, rewards: Floats, noise: Floats, before: Floats | None = None) -> None:
        """Count rewards, let the estimator see them on arrival if it wants to, and learn from them."""
        self.rounds += arms.size
        if self._estimator.one_by_one:
            value, factor = self._estimator.arrive(self, int(arms[0]), float(rewards[0]))
            rewards, noise = np.array([value]), factor * noise
        self._theta = None
        self._record(arms, rewards, noise, before)

    def _record(self, arms: Ints, values: Floats, noise: Floats, before: Floats | None = None) -> None:
        """Learn from values, (n,); then choose the features anew if given the variance ``before`` the round."""
        block, pulls = pooled(arms, values, noise), self._pulls.copy()
        pulls.add(block)
        pulled = pulls.arms
        features = unchanged = len(self.gram)
        unexplained = self._map.unexplained
        if before is not None:
            unchanged = self._map.redraw(pulled, pulls.weights, numpy_of(before[pulled]), int(arms[-1]))
        # all that may fail has been done: from here on things change
        if unchanged == features < len(self._map.table):
            self._grow(unexplained)
        if len(pulls) > len(self._pulls):
            self._seen = None
        self._pulls = pulls
        self._memory.take(pulls.slots(arms), values / noise)
        if unchanged < features:
            self._rebuild()
        elif block.arms.size == 1 and self._changes < REFRESH:
            self._learn_one(int(block.arms[0]), float(block.values[0]), 1 / float(block.noise[0]))
        else:
            self._learn(block.arms, 1 / block.noise)

    def _grow(self, unexplained: Floats) -> None:
        """V, V^-1, the variance and the gain with the features that the table has beyond those of V, (b, N).

        With G the block of V between the old features and the new, H = V^-1 G, and D = ridge I + new diag(weights) new'
        - G'H, the inverse gains the terms of |D^-1/2 (H'phi - new)|^2; ``unexplained`` is the one of before, (N,).
        """
        size, pulled, weights = len(self.gram), self._pulls.arms, self._pulls.weights
        old, new = self._map.table[:size], self._map.table[size:]
        with threads_for(len(new) * self._map.table.size):
            seen = self._map.table[:, pulled]
            weighted = weights * seen[size:]
            between, corner = seen[:size] @ weighted.T, weighted @ seen[size:].T + self.ridge * np.eye(len(new))
            lifted = self.inverse @ between
            root = np.asarray(np.linalg.cholesky(corner - between.T @ lifted), dtype=float)
            border = solve_lower(root, np.hstack([lifted.T, -np.eye(len(new))]))
            missed = solve_lower(root, lifted.T @ old - new)
            self.gram = np.block([[self.gram, between], [between.T, corner]])
            inverse = border.T @ border
            inverse[:size, :size] += self.inverse
            self.inverse, self._seen = inverse, seen
            carried = self.ridge * column_squares(missed)
            self._variance = self._variance + (self._map.unexplained - unexplained) + carried
        self.information_gain += float(np.log(root.diagonal()).sum() - 0.5 * len(new) * math.log(self.ridge))
        self._changes += len(new)
        self._theta = self._mean = self._std = self._inverse_root = self._last_row = None

    def _learn(self, arms: Ints, weights: Floats) -> None:
        """V and the variance after these pulls of distinct arms."""
        size = len(self.gram)
        with threads_for(size * (size + min(arms.size, BLOCK) * len(self._points))):
            features = numpy_of(self._map.table[:, arms])
            self.gram += (weights * features) @ features.T
            self._std = self._mean = self._last_row = None
            if 2 * arms.size > size or self._changes >= REFRESH:
                self._refresh()
                return
            for start in range(0, arms.size, BLOCK):
                self._pull(features[:, start : start + BLOCK], weights[start : start + BLOCK])

    def _learn_one(self, arm: int, value: float, weight: float) -> None:
        """What `_learn` does for one arm, the mean included; at O(N) for the arm of the pull before."""
        features, size = numpy_of(self._map.table[:, arm]).copy(), len(self.gram)
        with threads_for(size * (size + len(self._points))):
            direction = self.inverse @ features
            pivot = 1 + weight * float(features @ direction)
            again = self._last_row is not None and self._last_row[0] == arm
            carried = self._last_row[1] if self._last_row and again else None
            row = beside(self._map.table, direction) @ self._map.table if carried is None else carried
            self.gram += np.outer(weight * features, features)
            self.inverse -= np.outer(direction, (weight / pivot) * direction)
        if self._mean is not None:
            innovation = value - float(self._mean[arm])
            self._mean = self._mean + (innovation * weight / pivot) * row if self._linear else None
        self._variance = self._variance - (self.ridge * weight / pivot) * (row * row)
        self.information_gain += 0.5 * math.log(pivot)
        self._changes, self._std, self._last_row = self._changes + 1, None, (arm, row / pivot)
        if self._inverse_root is not None and not self._inverse_root.add(math.sqrt(weight) * features):
            self._inverse_root = None

    def _pull(self, features: Floats, weights: Floats) -> None:
        """V^-1, the variance and the gain after pulls of b distinct arms with these features, (r, b)."""
        directions = self.inverse @ features
        root = np.asarray(np.linalg.cholesky(np.diag(1 / weights) + features.T @ directions), dtype=float)
        directions = solve_lower(root, directions.T)
        self.inverse -= directions.T @ directions
        self._variance = self._variance - self.ridge * product_squares(directions, self._map.table)
        self.information_gain += float(np.log(root.diagonal()).sum() + 0.5 * np.log(weights).sum())
        self._changes += weights.size
        for column in (np.sqrt(weights) * features).T:
            if self._inverse_root is not None and not self._inverse_root.add(column):
                self._inverse_root = None

    def _rebuild(self) -> None:
        """V and all that follows, in features that are new."""
        self._seen = self._theta = self._mean = None
        size = len(self._map.table)
        with threads_for(size**2 * len(self._points)):
            self.gram = self.ridge * np.eye(size) + (self._pulls.weights * self.seen) @ self.seen.T
            self._refresh()

    def _refresh(self) -> None:
        """V^-1, variance and gain afresh from V."""
        root, size = np.asarray(np.linalg.cholesky(self.gram), dtype=float), len(self.gram)
        lower = solve_lower(root, np.eye(size)) if size else np.eye(0)
        self.inverse = lower.T @ lower
        # V is well-conditioned, and a product is faster than a solve
        self._variance = self._map.unexplained + self.ridge * product_squares(lower, self._map.table)
        self._blur = BLUR * float(self._variance.max())
        self.information_gain = float(np.log(root.diagonal()).sum() - 0.5 * size * math.log(self.ridge))
        self._changes, self._std, self._inverse_root, self._last_row = 0, None, None, None
