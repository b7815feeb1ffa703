"""Gaussian-process posterior on a few features: the model, its posterior, and the regression behind it.

The state is small: with features that span r dimensions, and the u distinct arms pulled so far,

    V = ridge I + seen diag(weights) seen',    (r, r), seen the features of these arms, (r, u)
    mean = phi'theta,    s^2 = unexplained + ridge phi' V^-1 phi

where the estimator computes theta, and unexplained is the prior variance that the features do not carry. All of it is
in coordinates of the span: the m features themselves if they span m dimensions. With unchanged features a pull costs
O(r N), and so does one more feature (`FeatureRegression`). When other features change, all is recomputed, O(r^2 N).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Self

import numpy as np
from scipy.special import ellipj, ellipkm1

from noregret.bandits.belief.arms import as_arms, as_points
from noregret.bandits.belief.cluster import BlockPosterior, Blocks
from noregret.bandits.belief.estimators import Estimator, LeastSquares
from noregret.bandits.belief.features import Features
from noregret.bandits.belief.pulls import Pooled, Pulls, as_pulls, places_among, pooled
from noregret.gp.arrays import Array, beside, column_squares, numpy_of, root_of_positive, stacked
from noregret.gp.linalg import BLOCK, REFRESH, enlarged, product_squares, solve_lower
from noregret.gp.posterior import HUGE, Copyable, Floats, Ints, Rng
from noregret.gp.threads import threads_for


@dataclass(frozen=True)
class SparseGP:
    """Gaussian process on features, with a choice of how rewards become its mean.

    Parameters
    ----------
    features : QuadratureFourier, RandomFourier or Nystrom
    ridge : float
        lambda, positive.
    estimator : Estimator, optional
        Least squares by default. To use another one with the exact Gaussian process, take ``Nystrom(kernel,
        math.inf)``.

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

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward; without ``rng``, random features use a fixed seed."""
        arms, rng = as_arms(arms), np.random.default_rng(0) if rng is None else rng
        if isinstance(arms, Blocks):
            return BlockPosterior(self.prior(arms.first, rng), arms)
        return SparsePosterior(self, arms, rng)


class SparsePosterior(Copyable):
    """Belief of `SparseGP` (see `noregret.gp.posterior.Posterior` for the contract)."""

    OWN = ("_map", "_memory", "_pulls", "_regression")
    span = property(attrgetter("_map.span"))
    gram = property(attrgetter("_regression.gram"))
    inverse = property(attrgetter("_regression.inverse"))
    inverse_root_times = property(attrgetter("_regression.inverse_root_times"))
    information_gain = property(attrgetter("_regression.gain"))

    def __init__(self, model: SparseGP, arms: Floats, rng: Rng) -> None:
        self._points, self._shown = arms, len(arms)  # the arms, then pulled points that are not arms
        self.rounds, self.ridge = 0, model.ridge
        self.claimed_gain = 0.0
        self._estimator, self._memory = model.estimator, model.estimator.memory()
        self._map = model.features.on(arms, model.ridge, rng)
        self._pulls = Pulls()
        self._mean: Array = None
        self._std: Array = None
        self._theta: Floats | None = None
        self._seen: Floats | None = None
        self._linear = type(model.estimator).theta is Estimator.theta  # whether theta = V^-1 sum phi y
        self._looked = LookedAt(self._map.table)
        self._rebuild()

    @property
    def arms(self) -> Floats:
        return self._points[: self._shown]

    @property
    def mean(self) -> Array:
        if self._mean is None:
            self._mean = self._fresh_mean()
        return self._mean[: self._shown]

    def _fresh_mean(self) -> Array:
        with threads_for(math.prod(self._map.table.shape)):
            return beside(self._map.table, self.theta) @ self._map.table

    @property
    def std(self) -> Array:
        if self._std is None:
            self._std = root_of_positive(self._regression.variance[: self._shown])
        return self._std

    @property
    def theta(self) -> Floats:
        if self._theta is None:
            size = len(self.gram)
            with threads_for(size**3):
                self._theta = self._estimator.theta(self, self._memory) if len(self._pulls) else np.zeros(size)
        return self._theta

    @property
    def seen(self) -> Floats:
        if self._seen is None:
            self._seen = np.asarray(numpy_of(self._map.table[:, self._pulls.arms]))
        return self._seen

    @property
    def norm_bounds(self) -> Floats:
        pulled = self._pulls.arms
        carried = np.maximum(numpy_of(self._regression.variance[pulled] - self._map.unexplained[pulled]), 0.0)
        return np.asarray(np.sqrt((carried + self._regression.blur) / self.ridge))

    @property
    def effective_dimension(self) -> float:
        variance = np.maximum(numpy_of(self._regression.variance[self._pulls.arms]), 0.0)
        return float(self._pulls.weights @ variance) / self.ridge

    @property
    def unexplained_sum(self) -> float:
        """E, the sum over the pulls of the prior variance that the features do not carry: tr(K_t - K~_t)."""
        return float(self._pulls.weights @ numpy_of(self._map.unexplained[self._pulls.arms]))

    @property
    def misfit(self) -> float:
        """Misfit under the kernel of the features, the least value of |theta|^2 + |y - phi'theta|^2 / ridge."""
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
        return math.inf if self._estimator.robust else HUGE

    @property
    def pulled(self) -> Ints:
        pulled = self._pulls.arms
        return pulled if self._shown == len(self._points) else pulled[pulled < self._shown]

    @property
    def generator(self) -> Rng | None:
        """Generator of the features; None if nothing is drawn after the start."""
        return getattr(self._map, "rng", None)

    @property
    def dictionary(self) -> Floats:
        """Points of the current Nystrom dictionary, (m, d); empty for other features."""
        return self._points[getattr(self._map, "members", np.empty(0, np.intp))]

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Update with one or many rewards; None changes the variance only; ``noise`` scales each one's ridge.

        Features that depend on the pulls are then redrawn, from the variance before the update; not if None.
        """
        self._update(*as_pulls(arms, rewards, noise, self._shown, self.largest_reward))

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Update with rewards of any (n, d) points; those that equal arms count as pulls of them.

        New points get features first, at O(r^2 N).
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
        """Learn values of points with these indices, (n,); None changes the variance only."""
        if not arms.size:
            return
        factors = np.ones(arms.size) if factors is None else factors
        if values is None:
            self._mean = self._fresh_mean() if self._mean is None else self._mean
            self._record(arms, numpy_of(self._mean[arms]), factors)
            return
        values, before = np.clip(values, -HUGE, HUGE), self._regression.variance
        gain = 0.5 * float(np.log1p(np.maximum(numpy_of(before[arms]), 0.0) / (self.ridge * factors)).sum())
        saved = {"rounds": self.rounds}  # all else that one `_record` changes is unchanged when it fails
        if self._estimator.one_by_one and arms.size > 1:
            saved = {name: value for name, value in vars(self.copy()).items() if name != "_map"}
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
        points = as_arms(points)
        with threads_for(len(self.gram) ** 2 * len(points)):
            table, unexplained = self._map.at(points)
            variance = unexplained + self.ridge * (table * (beside(table, self.inverse) @ table)).sum(axis=0)
            return beside(table, self.theta) @ table, root_of_positive(variance)

    def sample(self, rng: Rng, among: int | None = None) -> Array:
        """Joint draw on all arms, (N,): coefficients from N(theta, ridge V^-1), plus the part without features."""
        if among is not None:
            raise ValueError(
                f"draws on {among} arms of a cluster need ExactGP, got SparseGP: take it, or another rule than Thompson"
            )
        size = len(self.gram)
        with threads_for(size * (len(self._points) + size**2)):
            error = np.linalg.solve(np.linalg.cholesky(self.gram).T, rng.standard_normal(size))
            carried = math.sqrt(self.ridge) * (beside(self._map.table, error) @ self._map.table)
            return self.mean + (carried + self._map.unexplained_draw(rng))[: self._shown]

    def covariance(self, first: Ints, second: Ints) -> Floats:
        if self._looked.table is not self._map.table:
            self._looked = LookedAt(self._map.table)
        left, right = self._looked.features(first), self._looked.features(second)
        with threads_for(left.size * right.shape[1]):
            carried = np.linalg.multi_dot([left.T, self.inverse, right])
            return np.asarray(self._map.unexplained_covariance(first, second, left, right) + self.ridge * carried)

    def at(self, arms: Any) -> Any:
        """Return the same knowledge about other (N, d) arms; observations of points that are not among them stay.

        It costs O(m^2 N), and O(m (m n + N)) if the arms are the present ones with n more behind them, for features
        that can be extended.
        """
        arms, pulled = as_arms(arms), self._pulls.arms
        points, known = numpy_of(self._points[pulled]), len(self._points)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, points)
        extended: Any = getattr(self._map, "extended", None)
        if extended and self._shown == known < len(arms) and np.array_equal(arms[:known], self._points):
            other = self.copy()
            other._map, other._points, other._shown = extended(arms), arms, len(arms)
            other._mean = other._std = None
            other._regression.extend(other._map.table, other._map.unexplained)
            return other
        places = places_among(arms, points)
        other = copy.copy(self)
        other._points, other._shown = stacked(arms, points[places >= len(arms)]), len(arms)
        index = np.full(known, -1)
        index[pulled] = places
        other._map, other._memory = self._map.move(other._points, index), self._memory.copy()
        other._pulls = self._pulls.moved(places)
        other._rebuild()
        return other

    def _take(self, arms: Ints, rewards: Floats, noise: Floats, before: Floats | None = None) -> None:
        """Count rewards, pass them to the estimator if it handles single rewards, and learn them."""
        self.rounds += arms.size
        if self._estimator.one_by_one:
            shown, arm = self._shown, int(arms[0])
            if arm >= shown:  # a point that is not an arm: all points count as arms meanwhile
                self._shown, self._std = len(self._points), None
            try:
                value, factor = self._estimator.arrive(self, arm, float(rewards[0]))
            finally:
                if arm >= shown:
                    self._shown, self._std = shown, None
            rewards, noise = np.array([value]), factor * noise
        self._theta = None
        self._record(arms, rewards, noise, before)

    def _record(self, arms: Ints, values: Floats, noise: Floats, before: Floats | None = None) -> None:
        """Learn values, (n,); then redraw the features if the variance ``before`` the round is given."""
        if self._linear:
            if self._mean is None and arms.size == 1:  # always: reading the mean must not change the rounding
                self._mean = self._fresh_mean()
            self._theta = None
        block, pulls = pooled(arms, values, noise), self._pulls.copy()
        pulls.add(block)
        pulled = pulls.arms
        features = unchanged = len(self.gram)
        if before is not None:
            unchanged = self._map.redraw(pulled, pulls.weights, numpy_of(before[pulled]), int(arms[-1]))
        # nothing below this line can fail
        if unchanged == features < len(self._map.table):  # add the new features to V
            seen = np.vstack([self.seen, numpy_of(self._map.table[len(self.seen) :, self._pulls.arms])])
            self._regression.grow(self._map.table, self._map.unexplained, seen, self._pulls.weights)
            self._seen, self._theta, self._mean = seen, None, None
        if self._seen is not None and unchanged == features and len(pulls) > len(self._pulls):
            new = numpy_of(self._map.table[:, pulled[len(self._pulls) :]])
            self._seen = np.hstack([self._seen, new])
        self._pulls = pulls
        self._memory.take(pulls.slots(arms), values / noise)
        self._rebuild() if unchanged < features else self._learn(block)
        self._std = None

    def _learn(self, block: Pooled) -> None:
        """Learn pulls; update the mean for a single pull under least squares, else recompute it on demand."""
        if block.arms.size > 1:
            self._regression.learn(block.arms, 1 / block.noise)
            self._mean = None
            return
        arm = int(block.arms[0])
        change = self._regression.learn_one(arm, 1 / float(block.noise[0]))
        if change is None or not self._linear:
            self._mean = None
        elif self._mean is not None:
            self._mean = self._mean + (float(block.values[0]) - float(self._mean[arm])) * change

    def _rebuild(self) -> None:
        """Recompute V and everything that depends on it, for new features."""
        self._seen = self._theta = self._mean = self._std = None
        table, unexplained, weights = self._map.table, self._map.unexplained, self._pulls.weights
        with threads_for(len(table) ** 2 * len(self._points)):
            self._regression = FeatureRegression(self.ridge, table, unexplained, self.seen, weights)


class LookedAt:
    """Features of single arms, kept until the table changes: its columns are far apart in memory, and slow to read."""

    def __init__(self, table: Array) -> None:
        self.table = table
        self._rows = np.empty((0, len(table)))
        self._place: dict[int, int] = {}  # by arm: its row

    def features(self, arms: Ints) -> Floats:
        """Features of some arms, (n,) -> (r, n)."""
        arms = np.asarray(arms, np.intp)
        new = [arm for arm in dict.fromkeys(arms.tolist()) if arm not in self._place]
        if new:
            start, end = len(self._place), len(self._place) + len(new)
            self._rows = enlarged(self._rows, end)
            self._rows[start:end] = numpy_of(self.table[:, new]).T
            self._place |= zip(new, range(start, end), strict=True)
        return np.asarray(self._rows[[self._place[arm] for arm in arms.tolist()]].T)


BLUR = 1e-12
"""Rounding error of a variance, as a share of the largest one."""


class FeatureRegression(Copyable):
    """Ridge regression on features: V, its inverse, and the variance s^2 of all arms, as at the top of this file.

    A pull changes V^-1 and s^2 by a rank-one term, O(r N), and so does one more feature.
    """

    OWN = ("gram", "inverse")
    gram: Floats  # V, (r, r)
    inverse: Floats  # V^-1, (r, r)
    variance: Array  # s^2 of all arms, (N,), replaced, never changed in place; may be below 0 by rounding
    gain: float  # 1/2 ln det(V / ridge)
    blur: float  # rounding error of a variance
    _changes: int  # since V^-1 was last recomputed
    _inverse_root: InverseRoot | None  # of V, made on demand
    _last_row: tuple[int, Array] | None  # the arm of the last pull, and its phi' V^-1 phi with all arms

    def __init__(self, ridge: float, table: Array, unexplained: Array, seen: Floats, weights: Floats) -> None:
        self._ridge, self._table, self._unexplained = ridge, table, unexplained
        self.gram = ridge * np.eye(len(table)) + (weights * seen) @ seen.T
        self._refresh()

    def inverse_root_times(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,), with the symmetric root."""
        if self._inverse_root is None:
            self._inverse_root = InverseRoot(self.gram)
        return self._inverse_root @ right

    def grow(self, table: Array, unexplained: Array, seen: Floats, weights: Floats) -> None:
        """Replace the table by one with b more features; ``seen`` are all features of the arms pulled, (r + b, u).

        With G the block of V between the old features and the new, H = V^-1 G, and D = ridge I + new diag(weights) new'
        - G'H, the inverse gains the terms of |D^-1/2 (H'phi - new)|^2.
        """
        size = len(self.gram)
        new = table[size:]
        with threads_for(len(new) * table.size):
            weighted = weights * seen[size:]
            between, corner = seen[:size] @ weighted.T, weighted @ seen[size:].T + self._ridge * np.eye(len(new))
            lifted = self.inverse @ between
            root = np.asarray(np.linalg.cholesky(corner - between.T @ lifted), dtype=float)
            border = solve_lower(root, np.hstack([lifted.T, -np.eye(len(new))]))
            carried = self._ridge * column_squares(solve_lower(root, lifted.T @ table[:size] - new))
        inverse = border.T @ border
        inverse[:size, :size] += self.inverse
        self.gram, self.inverse = np.block([[self.gram, between], [between.T, corner]]), inverse
        self.variance = self.variance + (unexplained - self._unexplained) + carried
        self.gain += float(np.log(root.diagonal()).sum() - 0.5 * len(new) * math.log(self._ridge))
        self._table, self._unexplained, self._changes = table, unexplained, self._changes + len(new)
        self._inverse_root = self._last_row = None

    def extend(self, table: Array, unexplained: Array) -> None:
        """Replace the table by one with more arms behind the present ones, and the same features."""
        count = self._table.shape[1]
        new = table[:, count:]
        carried = self._ridge * (new * (self.inverse @ new)).sum(axis=0)
        self.variance = np.concatenate([self.variance, unexplained[count:] + carried])
        self._table, self._unexplained, self._last_row = table, unexplained, None

    def learn(self, arms: Ints, weights: Floats) -> None:
        """Learn pulls of distinct arms."""
        size = len(self.gram)
        with threads_for(size * (size + min(arms.size, BLOCK) * self._table.shape[1])):
            features, self._last_row = numpy_of(self._table[:, arms]), None
            self.gram += (weights * features) @ features.T
            if 2 * arms.size > size or self._changes >= REFRESH:
                self._refresh()
                return
            for start in range(0, arms.size, BLOCK):
                self._pull(features[:, start : start + BLOCK], weights[start : start + BLOCK])

    def learn_one(self, arm: int, weight: float) -> Array:
        """Learn a pull of one arm, at O(N) if it is the arm of the previous pull.

        Returns the change of the least-squares mean of all arms per unit of (reward - mean), (N,); None if everything
        was recomputed.
        """
        if self._changes >= REFRESH:
            self.learn(np.array([arm]), np.array([weight]))
            return None
        features, size = np.array(numpy_of(self._table[:, arm])), len(self.gram)
        with threads_for(size * (size + self._table.shape[1])):
            direction = self.inverse @ features
            if self._last_row is not None and self._last_row[0] == arm:
                row = self._last_row[1]
            else:  # the products phi' V^-1 phi of this arm with all arms, (N,)
                row = beside(self._table, direction) @ self._table
            pivot = 1 + weight * float(features @ direction)
            self.gram += np.outer(weight * features, features)
            self.inverse -= np.outer(direction, (weight / pivot) * direction)
        self.variance = self.variance - (self._ridge * weight / pivot) * (row * row)
        self.gain += 0.5 * math.log(pivot)
        self._changes, self._last_row = self._changes + 1, (arm, row / pivot)
        self._follow(math.sqrt(weight) * features)
        return weight * self._last_row[1]

    def copy(self) -> Self:
        twin = super().copy()
        twin._inverse_root = None
        return twin

    def _pull(self, features: Floats, weights: Floats) -> None:
        """Update V^-1, the variance and the gain for pulls of b distinct arms with these features, (r, b)."""
        directions = self.inverse @ features
        root = np.asarray(np.linalg.cholesky(np.diag(1 / weights) + features.T @ directions), dtype=float)
        directions = solve_lower(root, directions.T)
        self.inverse -= directions.T @ directions
        self.variance = self.variance - self._ridge * product_squares(directions, self._table)
        self.gain += float(np.log(root.diagonal()).sum() + 0.5 * np.log(weights).sum())
        self._changes += weights.size
        for column in (np.sqrt(weights) * features).T:
            self._follow(column)

    def _follow(self, column: Floats) -> None:
        """Update the root of V, if there is one, to V + column column'."""
        if self._inverse_root is not None and not self._inverse_root.add(column):
            self._inverse_root = None

    def _refresh(self) -> None:
        """Recompute V^-1, variance and gain from V."""
        root, size = np.asarray(np.linalg.cholesky(self.gram), dtype=float), len(self.gram)
        lower = solve_lower(root, np.eye(size)) if size else np.eye(0)
        self.inverse = lower.T @ lower
        # V is well-conditioned, and a product is faster than a solve
        self.variance = self._unexplained + self._ridge * product_squares(lower, self._table, lower=True)
        self.blur = BLUR * float(self.variance.max())
        self.gain = float(np.log(root.diagonal()).sum() - 0.5 * size * math.log(self._ridge))
        self._changes, self._inverse_root, self._last_row = 0, None, None


FULL = 16
"""Number of terms after which a new decomposition is cheaper than one more term."""
FEW_ROWS = 48
"""Matrices with fewer rows are decomposed again at every term, which is cheaper than updating."""
STEEP = 1e6
"""Matrices with a larger condition number are decomposed again at every term: they would need many nodes."""
HEADROOM = 4.0
"""The nodes are valid for eigenvalues up to this factor times the largest one, which grows with the terms."""


class InverseRoot:
    """Symmetric inverse root of a positive definite (r, r) matrix V that changes by rank-one terms.

    An eigendecomposition gives V^-1/2 directly, at about 9 r^3 operations. Between two of them,

        V^-1/2 = sum over j of w_j (V + s_j I)^-1

    with nodes s and weights w for which this holds up to rounding for all eigenvalues in a range (N. Hale, N. J. Higham
    and L. N. Trefethen, SIAM J. Numer. Anal. 46, 2008). A term z z' changes each inverse by the rank-one term
    c_j d_j d_j' with d_j = (V + s_j I)^-1 z, so a new root costs O(J k r) operations, for J nodes and k terms since the
    decomposition.
    """

    def __init__(self, matrix: Floats) -> None:
        self._values, self._vectors = np.linalg.eigh(matrix)
        low, high = float(self._values[0]), float(self._values[-1])
        self._count, self._spare = 0, -1.0  # terms so far, and the remaining growth of the largest eigenvalue
        if len(matrix) < FEW_ROWS or HEADROOM * high > STEEP * low:
            return
        self._spare = (HEADROOM - 1) * high
        nodes, self._weights = _quadrature(low, HEADROOM * high)
        self._start = 1 / (self._values + nodes[:, None])  # (J, r): the inverses before any term, on the diagonal
        self._steps = np.empty((len(nodes), FULL, len(matrix)))  # d, in coordinates of the eigenvectors
        self._factors = np.empty((len(nodes), FULL))  # c

    def add(self, term: Floats) -> bool:
        """Update to V + z z' for z = ``term``, (r,); False, and nothing has changed, if a new decomposition is due."""
        k, size = self._count, float(term @ term)
        if k == FULL or size > self._spare:
            return False
        z = term @ self._vectors
        steps = self._start * z
        if k:
            before, factors = self._steps[:, :k], self._factors[:, :k]
            steps -= ((factors * (before @ z))[:, None] @ before)[:, 0]
        self._steps[:, k], self._factors[:, k] = steps, 1 / (1 + steps @ z)
        self._count, self._spare = k + 1, self._spare - size
        return True

    def __matmul__(self, right: Floats) -> Floats:
        """V^-1/2 times (r, n) or (r,)."""
        inside = self._vectors.T @ right
        scale = self._values**-0.5
        scaled = (inside.T * scale).T
        if self._count:
            steps = self._steps[:, : self._count].reshape(-1, len(scale))
            weights = (self._weights[:, None] * self._factors[:, : self._count]).reshape(-1)
            scaled -= steps.T @ ((steps @ inside).T * weights).T
        return np.asarray(self._vectors @ scaled)


def _quadrature(low: float, high: float) -> tuple[Floats, Floats]:
    """Nodes and weights, (J,), with the sum over j of w_j / (x + s_j) = x^-1/2 up to rounding for x in [low, high]."""
    ratio = low / high
    count = math.ceil((math.log(1 / ratio) + 3) * math.log(1 / np.finfo(float).eps) / (2 * math.pi**2))
    quarter = float(ellipkm1(ratio))
    sn, cn, dn, _ = ellipj((np.arange(count) + 0.5) * quarter / count, 1 - ratio)
    weights = 2 / math.pi * math.sqrt(low) * quarter / count * dn / cn**2
    return np.asarray(low * (sn / cn) ** 2, dtype=float), np.asarray(weights, dtype=float)
