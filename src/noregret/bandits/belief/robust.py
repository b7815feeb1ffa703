"""Gaussian processes that resist a few large rewards: `ConjugateGP` and `CatoniGP`.

**Weights.** M. Altamirano, F.-X. Briol, J. Knoblauch. Robust and conjugate Gaussian process regression. ICML 2024:
closed-form weights against corrupted rewards (`ConjugateGP`).

**Catoni's mean in place of the least-squares mean** (`CatoniGP`). The mean of a Gaussian process at x is a weighted sum
of the rewards, sum_t a_t y_t with a = (K + ridge I)^-1 k(x). If the arms do not depend on the rewards, as in an epoch
of REDS or BPE, the weights are fixed numbers. A few large rewards spoil the sum; Catoni's influence function psi bounds
their effect:

    mean(x) = (1 / theta) sum_t psi(theta a_t y_t),    psi(z) = sgn(z) ln(1 + |z| + |z|^p / p),    p = 1 + alpha.

For 1 < p <= 2, exp(psi(z)) <= 1 + z + |z|^p / p, and the same for -z. So if E|y|^p <= v, theta mean(x) deviates from
theta sum_t a_t f(x_t) by more than l + theta^p |a|_p^p v / p with probability at most exp(-l) on each side. With the
best theta, theta^p = l p / (alpha |a|_p^p v), mean(x) deviates by at most v^(1/p) (p l / alpha)^(alpha/p) |a|_p. The
bias sum_t a_t f(x_t) - f(x) is at most B |k(x, .) - sum_t a_t k(x_t, .)|. Both norms are computed. This holds for any
weights that do not depend on the rewards, so every arm takes those of ten ridges with the smallest sum, from a sketch
of K: docs/guarantees_details.md has the proof.

**Median of means** (`medians`). With a bound on the moment of the noise, y - f, every arm takes the median of the sums
of k groups of the rewards where its half-width is smaller than that of Catoni's mean.

O. Catoni. Challenging the empirical mean and empirical variance: a deviation study. Annales de l'IHP 48, 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from noregret.bandits.belief.arms import LearnsPoints, as_arms, as_points, learn_at
from noregret.bandits.belief.exact import ExactGP, ExactPosterior
from noregret.bandits.belief.pulls import arms_of, as_pulls
from noregret.gp.arrays import is_tensor
from noregret.gp.influence import influence
from noregret.gp.kernels import Kernel, KernelLike, as_kernel
from noregret.gp.linalg import solve_lower
from noregret.gp.posterior import HUGE, Copyable, Floats, Ints, Rng, set_fields
from noregret.gp.threads import threads_for

# Weights

FARTHEST = 1e60
"""Largest excess u: beyond it a reward has no weight anyway, and a product of two ridges would overflow."""


@dataclass(frozen=True)
class ConjugateGP:
    """Gaussian process that down-weights rewards far from the mean before them.

    With r the residual in units of sqrt(std^2 + ridge) and w^2 = (ridge / 2) / (1 + u^2), u = max(|r| - threshold, 0) /
    softness,

        mean = k' (K + J)^-1 (y - ridge d/dy ln w^2),    J = diag(ridge^2 / (2 w^2)) = ridge diag(1 + u^2).

    So a reward with |r| <= threshold counts as in the exact GP, and the influence of an outlier falls like 1 / |r|.
    Weights are fixed when a reward arrives, so the order of rewards matters if some are outliers.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        The variance of the noise, above 0.
    threshold, softness : float
        c1 and c2 above.

    Examples
    --------
    >>> from noregret import SquaredExponential
    >>> belief = ConjugateGP(SquaredExponential(0.2), ridge=0.01).prior([[0.0], [1.0]])
    >>> belief.update([0, 0, 0], [1.0, 1.1, 1e6])
    >>> belief.mean.round(2)
    array([1.04, 0.  ])
    """

    kernel: Kernel
    ridge: float
    threshold: float
    softness: float

    def __init__(self, kernel: KernelLike, ridge: float, threshold: float = 1.96, softness: float = 1.0) -> None:
        for name, value in {"ridge": ridge, "softness": softness}.items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be positive, got {value}")
        if not threshold >= 0:
            raise ValueError(f"threshold must be at least 0, got {threshold}")
        set_fields(self, kernel=as_kernel(kernel))
        set_fields(self, ridge=float(ridge), threshold=float(threshold), softness=float(softness))

    def prior(self, arms: Any, rng: Rng | None = None) -> ConjugatePosterior:
        """Belief about f on these (N, d) arms before any reward."""
        return ConjugatePosterior(self, ExactGP(self.kernel, self.ridge).prior(arms))

    def observation(self, reward: float, mean: float, std: float, ridge: float) -> tuple[float, float]:
        """Value that replaces a reward, and the factor 1 + u^2 on its ridge."""
        unit = math.hypot(std, math.sqrt(ridge))
        residual = (reward - mean) / unit
        excess = min(max(abs(residual) - self.threshold, 0.0) / self.softness, FARTHEST)
        slope = -2 * excess / (1 + excess**2) * math.copysign(1 / (self.softness * unit), residual)  # d/dy ln w^2
        return reward - ridge * slope, 1 + excess**2


class ConjugatePosterior(LearnsPoints):
    """Belief of `ConjugateGP`: an exact posterior that learns rewards one by one, each with its own ridge."""

    OWN = ("_exact",)
    largest_reward = math.inf

    def __init__(self, model: ConjugateGP, exact: ExactPosterior) -> None:
        self._model, self._exact, self.claimed_gain = model, exact, 0.0

    def __getattr__(self, name: str) -> Any:
        if name == "_exact":  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._exact, name)

    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats, std: Floats) -> None:
        exact = self._exact
        if values is None:
            learn_at(exact, arms, points, None, factors)
            return
        claimed = 0.5 * float(np.log1p(std**2 / (exact.ridge * factors)).sum())
        for i, reward in enumerate(np.clip(values, -HUGE, HUGE).tolist()):
            arm, point, factor = arms[i : i + 1], points[i : i + 1], float(factors[i])
            (mean,), (std,) = (exact.mean[arm], exact.std[arm]) if arm >= 0 else exact.predict(point)
            value, weight = self._model.observation(reward, float(mean), float(std), exact.ridge * factor)
            learn_at(exact, arm, point, value, factor * weight)
        self.claimed_gain += claimed

    def at(self, arms: Any) -> ConjugatePosterior:
        other = ConjugatePosterior(self._model, self._exact.at(arms))
        other.claimed_gain = self.claimed_gain
        return other


# Catoni's mean

PIECE = 1 << 21
"""Numbers psi(theta a_t y_t) that are computed at once, so that memory is bounded."""

LADDER = np.append(np.geomspace(10**-2.5, 10, 8), math.inf)
"""Ridges to choose weights from, as multiples of the one at which bias and noise are of one order; inf: weights 0."""

ACCURACY = 1e-6
"""A sketch of K is large enough if the variance of the pulls that it leaves out is this part of a ridge.

Then the half-widths are at most 1 + sqrt(ACCURACY) times those of the exact weights of this ridge."""

MOST_FEATURES = 2000
"""Largest size of the sketch. If it is too small, the band is wider."""

SMALLEST = 1e-290
"""Least sum of v |a_t|^p: a smaller one counts as this, so that theta is finite."""

MOST_GROUPS = 199
"""Largest number of groups of a median of means."""

MOST_ESTIMATES = 2000
"""Number of arms with weights of their own, about; if there are more, the others take those of one of these."""


@dataclass(frozen=True)
class CatoniGP:
    """Gaussian process whose mean is Catoni's. The arms must not depend on the rewards that it is updated with.

    ``ridge`` is lambda, positive. f has norm at most ``norm``, and the rewards y have E|y|^(1 + alpha) <= v, with
    ``moment`` v and ``alpha`` in (0, 1]. ``log_events`` is l: each side of the deviation of one arm's mean fails with
    probability at most exp(-l). ``scale`` is a factor on the part of the half-widths that accounts for the noise.

    With ``noise_moment``, E|y - f|^(1 + alpha) is at most that, and a posterior that follows another one
    (`CatoniPosterior.follow`) estimates the residuals of its mean. Of at most `MOST_ESTIMATES` arms, one takes the
    median of means (`medians`) instead where its half-width is smaller, which also fails with probability at most
    2 exp(-l) in all.
    """

    kernel: Any
    ridge: float
    norm: float
    moment: float
    alpha: float
    log_events: Callable[[Any], float]
    scale: float = 1.0
    noise_moment: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge > 0):
            raise ValueError(f"ridge must be positive, got {self.ridge}")
        set_fields(self, kernel=as_kernel(self.kernel))

    def prior(self, arms: Any, rng: Rng | None = None) -> CatoniPosterior:
        arms = as_arms(arms)
        if not isinstance(arms, np.ndarray):
            given = "a tensor: pass arms.cpu().numpy()" if is_tensor(arms) else "arms on a cluster"
            raise ValueError(f"arms must be a NumPy array for Catoni's mean, got {given}")
        return CatoniPosterior(self, arms)

    def residual_moment(self, error: Floats) -> Floats:
        """Bound on E|y - m|^p, (n,), where |f - m| <= ``error``, (n,).

        The smaller of (u^(1/p) + error)^p (Minkowski) and error^p + 2^(2 - p) u (von Bahr and Esseen 1965), u the
        ``noise_moment``.
        """
        p, noise = 1 + self.alpha, self.noise_moment or 0.0
        return np.asarray(np.minimum((noise ** (1 / p) + error) ** p, error**p + 2 ** (2 - p) * noise))


class CatoniPosterior(Copyable):
    """Belief of `CatoniGP`: std, gain and covariances are those of the exact Gaussian process, computed when read.

    With n rewards of u distinct arms and a sketch of size m <= u, mean and half-widths take O(n + u m) for each of at
    most `MOST_ESTIMATES` arms. They are computed when first read after a reward. Rewards may have any finite size.
    """

    OWN = ("_exact", "_waiting", "_told")
    largest_reward = math.inf

    def __init__(self, model: CatoniGP, arms: Floats) -> None:
        self._model, self.arms, self.ridge, self.rounds = model, arms, model.ridge, 0
        self._exact = ExactGP(model.kernel, model.ridge).prior(arms)
        self._waiting: list[tuple[Any, ...]] = []  # updates that the exact process has not seen yet
        self._told: list[Floats] = []  # of each update (n, d + 4): point, residual, 1 / noise factor, centre, moment
        self._offset = np.array([[0.0], [model.moment]])  # centre and moment of each arm's rewards, (2, N) or (2, 1)
        self._found: tuple[Floats, Floats] | None = None  # mean and half-widths of all arms

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._informed, name)

    @property
    def _informed(self) -> Any:
        """Exact process that has learnt all pulls, with rewards of 0."""
        waiting, self._waiting = self._waiting, []
        for update in waiting:
            learn_at(self._exact, *update)
        return self._exact

    @property
    def mean(self) -> Floats:
        """Catoni's mean of every arm, (N,)."""
        return self._estimates()[0]

    @property
    def half_widths(self) -> Floats:
        """Largest error of the mean of every arm, (N,)."""
        return self._estimates()[1]

    def follow(self, last: CatoniPosterior, kept: Any) -> None:
        """Before any reward: estimate residuals of the mean of ``last``, whose arms ``kept`` are the arms here.

        An arm whose residuals would have a larger moment than its rewards keeps the rewards.
        """
        if self._model.noise_moment is not None:
            moment = self._model.residual_moment(last.half_widths[kept])
            gains = moment < self._model.moment
            self._offset = np.where(gains, [last.mean[kept], moment], [[0.0], [self._model.moment]])

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        names, values, factors = as_pulls(arms, rewards, noise, len(self.arms), self.largest_reward)
        self._take(names, self.arms[names], values, factors)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        points = as_points(points, self.arms.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        self._take(arms_of(self.arms, points), points, values, factors)

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        points = as_arms(points)
        return self._estimate(points)[0], self._informed.predict(points)[1]

    def sample(self, rng: Rng, among: int | None = None) -> Floats:
        return np.asarray(self.mean + self._informed.sample(rng, among))

    def at(self, arms: Any) -> Any:
        exact, other = self._informed.at(arms), self.copy()
        other._exact, other.arms, other._found = exact, exact.arms, None
        other._offset = np.array([[0.0], [self._model.moment]])
        return other

    def _take(self, names: Ints, points: Floats, values: Floats | None, noise: Floats | None) -> None:
        self._waiting.append((names, points, None if values is None else np.zeros(len(points)), noise))
        if values is None:
            return
        offset = np.broadcast_to(self._offset, (2, len(self.arms)))[:, names]
        centre, moment = np.where(names >= 0, offset, [[0.0], [self._model.moment]])
        shares = np.ones(len(points)) if noise is None else 1 / noise
        self._told.append(np.column_stack([points, values - centre, shares, centre, moment]))
        self.rounds, self._found = self.rounds + len(points), None

    def _estimates(self) -> tuple[Floats, Floats]:
        if self._found is None:
            self._found = self._estimate(self.arms)
        return self._found

    def _estimate(self, points: Floats) -> tuple[Floats, Floats]:
        """Catoni's mean at (n, d) points and its largest error, (n,) each."""
        if not self._told:
            return np.zeros(len(points)), self._model.norm * np.sqrt(self._model.kernel.diag(points))
        model, told, events = self._model, np.vstack(self._told), self._model.log_events(self)
        mean, half = CatoniMeans(model, told, events).at(points)
        number, share = groups(len(told), events, model.alpha)
        most = ((1 + model.alpha) * events / (model.alpha * number)) ** model.alpha * share / 2 ** (1 - model.alpha)
        is_wider = model.noise_moment is None or model.noise_moment >= most * told[:, -1].mean()  # in its noise part
        if is_wider or len(points) > MOST_ESTIMATES:  # on more arms the groups cost ten times as much
            return mean, half
        median, error = medians(model, told, points, events)
        return np.where(error < half, median, mean), np.minimum(error, half)


def groups(most: int, log_events: float, alpha: float) -> tuple[int, float]:
    """Odd number k <= ``most`` of groups for a median, and the probability q with which one of them may fail.

    With probability at most 2 exp(-log_events) more than half of k independent groups fail: the distribution function
    of Beta(j, j) at q, j = (k + 1) / 2. The factor (k^alpha / q)^(1 / p) of the median's error is the least.
    """
    number = np.arange(1, min(most, MOST_GROUPS) + 1, 2)
    share = betaincinv((number + 1) / 2, (number + 1) / 2, min(2 * math.exp(-log_events), 0.5))
    best = int(np.argmin(number**alpha / share))
    return int(number[best]), float(share[best])


def medians(model: CatoniGP, told: Floats, points: Floats, log_events: float) -> tuple[Floats, Floats]:
    """Median of means at (n, d) points and its largest error, (n,) each, from rows as those of `CatoniMeans`.

    The pulls are dealt to k groups in the order of their points, so that the groups are alike. In each the weighted sum
    of the rewards errs by more than B |k(x, .) - sum_t a_t k(x_t, .)| + (2^(2 - p) u / q)^(1/p) |a|_p with probability
    at most q (von Bahr and Esseen, Markov), u the ``noise_moment``. The error of the median is the largest of the k.
    """
    number, share = groups(len(told), log_events, model.alpha)
    dealt = told[np.lexsort(told[:, :-4].T)]
    dealt[:, -4], dealt[:, -1] = np.clip(dealt[:, -4], -HUGE, HUGE), max(model.noise_moment or 0.0, 1e-9 * model.moment)
    means = [CatoniMeans(model, dealt[group::number], log_events, share).at(points) for group in range(number)]
    return np.median([mean for mean, _ in means], axis=0), np.max([half for _, half in means], axis=0)


class CatoniMeans:
    """Catoni's means of n rewards, (n, d + 4) rows of point, residual, 1 / noise factor, centre and moment.

    With ``share`` they are weighted sums of the rewards instead, as of a group of `medians`, and the half-widths hold
    with probability 1 - share.

    All pulls of a point have the same weight, up to their noise factors. ``seen`` are the distinct points, (u, d), and
    ``where``, (n,), is the place of each reward among them.
    """

    def __init__(self, model: CatoniGP, told: Floats, log_events: float, share: float | None = None) -> None:
        self._model, self._p, self._linear = model, 1 + model.alpha, share is not None
        self._events = self._p * log_events / model.alpha
        self._factor = 2 ** (1 - model.alpha) / share if share else self._events**model.alpha
        residuals, shares, centres, moments = told[:, -4:].T
        self.seen, self._first, where = np.unique(told[:, :-4], axis=0, return_index=True, return_inverse=True)
        self._where, self._numbers = where.ravel(), shares * residuals
        total, self._powers, self._centre = (
            np.bincount(self._where, each).astype(float)
            for each in (shares, moments * shares**self._p, shares * centres)
        )
        unit = moments.mean() ** (2 / self._p) / model.norm**2 * len(told) ** ((1 - model.alpha) / self._p)
        self._ridges = np.append(unit * LADDER, model.ridge)
        self.sketch = Sketch(model.kernel, self.seen, total, ACCURACY * min(unit, model.ridge))

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and half-width of (n, d) points, (n,) each."""
        with threads_for(len(self.seen) * len(self.sketch.values) * len(points)):
            mean, half, *_ = self.own(points) if len(points) <= MOST_ESTIMATES else self.shared(points)
        return mean, half

    def own(self, points: Floats) -> tuple[Floats, ...]:
        """Mean, half-width, its noise part and the part outside the sketch, (n,), and fitted features, (m, n).

        Each of the (n, d) points has the weights of its best ridge.
        """
        mean, half, noise, outside = np.empty((4, len(points)))
        fitted, rows = np.empty((len(self.sketch.values), len(points))), max(PIECE // len(self._numbers), 1)
        for piece in (slice(start, start + rows) for start in range(0, len(points), rows)):
            features, rest = self.sketch.at(points[piece])
            halves = [self._judged(features, rest, ridge)[0] for ridge in self._ridges]
            best = self._ridges[np.argmin(halves, axis=0)]
            half[piece], noise[piece], outside[piece], fitted[:, piece], weights, moment = self._judged(
                features, rest, best
            )
            theta = (self._events / moment) ** (1 / self._p)
            parts = (theta * weights).T[:, self._where] * self._numbers
            parts = parts if self._linear else influence(parts, self._model.alpha)
            mean[piece] = self._centre @ weights + parts.sum(axis=1) / theta
        return mean, half, noise, outside, fitted

    def shared(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and half-width, (n,): each of the (n, d) points takes the best of about `MOST_ESTIMATES` weights.

        Half of these belong to some of the points, half to points that were pulled.
        """
        some = MOST_ESTIMATES // 2
        spread = np.vstack([points[:: len(points) // some], self.seen[self._first.argsort()[:some]]])
        mean, _, noise, outside, fitted = self.own(spread)
        half, taken, rows = np.empty(len(points)), np.empty(len(points), np.intp), PIECE // len(spread)
        for piece in (slice(start, start + rows) for start in range(0, len(points), rows)):
            features, rest = self.sketch.at(points[piece])
            apart = (features**2).sum(axis=0)[:, None] - 2 * features.T @ fitted + (fitted**2).sum(axis=0)
            bias = np.sqrt(np.maximum(apart, 0.0) + (rest[:, None] + outside) ** 2)
            halves = self._model.norm * bias + noise
            taken[piece], half[piece] = halves.argmin(axis=1), halves.min(axis=1)
        return mean[taken], half

    def _judged(self, features: Floats, rest: Floats, ridge: Any) -> tuple[Floats, ...]:
        """As in `own` without the mean; weights, (u, n), and sums of v |a_t|^p, (n,). The ridge is () or (n,)."""
        shrunk = features / (1 + self.sketch.values[:, None] / ridge)
        weights = self.sketch.left @ (shrunk / ridge)
        size = np.abs(weights)
        moment = np.maximum(self._powers @ size**self._p, SMALLEST)
        noise = self._model.scale * (self._factor * moment) ** (1 / self._p)
        outside = self.sketch.strays @ size
        bias = np.sqrt((shrunk**2).sum(axis=0) + (rest + outside) ** 2)
        return self._model.norm * bias + noise, noise, outside, features - shrunk, weights, moment


class Sketch:
    """Low-rank K ~ Z'Z of (u, d) points with these numbers of pulls, by Cholesky with the largest lost variance first.

    It ends when the pulls lose at most ``least`` of variance in all. N = diag(counts), and Z N Z' = diag(``values``).
    With weights w = Z' (Z N Z' + ridge I)^-1 z(x) of a pull, k(x, .) - sum_t a_t k(x_t, .) has the norm of
    ridge (Z N Z' + ridge I)^-1 z(x) in the span of the chosen points, and outside at most rest(x) + ``strays`` |w|.
    """

    def __init__(self, kernel: Kernel, points: Floats, counts: Floats, least: float) -> None:
        left = kernel.diag(points).astype(float)
        smallest, most = 1e-13 * left.max(), min(len(points), MOST_FEATURES)
        root, chosen = np.zeros((most, len(points))), list[int]()
        while len(chosen) < most and counts @ left > least:
            pivot = int(np.argmax(counts * left))
            if left[pivot] <= smallest:
                break
            rank = len(chosen)
            row = kernel(points[pivot : pivot + 1], points)[0] - root[:rank, pivot] @ root[:rank]
            root[rank] = row / math.sqrt(left[pivot])
            left = np.maximum(left - root[rank] ** 2, 0.0)
            left[pivot] = 0.0
            chosen.append(pivot)
        root = root[: len(chosen)]
        self._kernel, self._chosen, self._triangle = kernel, points[chosen], np.tril(root[:, chosen].T)
        self.values, self._vectors = np.linalg.eigh((root * counts) @ root.T)
        self.values = np.maximum(self.values, 0.0)
        self.left, self.strays = root.T @ self._vectors, counts * np.sqrt(left)

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Features z of (n, d) points, (m, n), and the norms of what they lose, (n,)."""
        features = solve_lower(self._triangle, self._kernel(self._chosen, points))
        rest = np.maximum(self._kernel.diag(points) - (features**2).sum(axis=0), 0.0)
        return self._vectors.T @ features, np.sqrt(rest)
