"""Exact Gaussian-process posterior on N arms: the model, its posterior, and the factor behind it (`Conditioning`)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from noregret.bandits.belief.arms import as_arms, as_points
from noregret.bandits.belief.cluster import BlockPosterior, Blocks
from noregret.bandits.belief.draws import FEW_ARMS, MOST, CovarianceRoot, PriorDraws, Waves, has_spectral_law
from noregret.bandits.belief.factor import COLUMNS_KEPT, EVERYWHERE, FEWEST, Columns, Factor, KernelColumns
from noregret.bandits.belief.pulls import Directory, Pooled, Pulls, as_pulls, first_of_each, places_among, pooled
from noregret.gp.arrays import Array, beside, explain_memory, is_tensor, numpy_of, root_of_positive, stacked
from noregret.gp.kernels import Kernel, KernelLike, as_kernel
from noregret.gp.linalg import REFRESH
from noregret.gp.posterior import HUGE, Copyable, Floats, Ints, Rng, Schedule, as_schedule, set_fields
from noregret.gp.threads import threads_for


@dataclass(frozen=True)
class ExactGP:
    """Gaussian process with this kernel and ridge, conditioned exactly.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        lambda. 0 means noise-free: the smallest nugget that the factorisation allows replaces it (see the posterior's
        ``ridge``), and repeated pulls of an arm add nothing.
    truncation : schedule or float, optional
        Level b_t: the t-th reward is replaced by 0 if its size exceeds b_t on arrival.

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
        level = None if truncation is None else as_schedule("truncation", truncation)
        set_fields(self, kernel=as_kernel(kernel), ridge=float(ridge), truncation=level)

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


class ExactPosterior(Copyable):
    """Belief of `ExactGP` (see `noregret.gp.posterior.Posterior` for the contract)."""

    OWN: ClassVar[tuple[str, ...]] = ("_conditioning",)
    arms = property(attrgetter("_arms"))
    kernel = property(attrgetter("_model.kernel"))
    ridge = property(attrgetter("_conditioning.ridge"))  # lambda, or the nugget that replaces 0
    mean = property(attrgetter("_conditioning.factor.mean"))
    information_gain = property(attrgetter("_conditioning.factor.gain"))
    misfit = property(attrgetter("_conditioning.factor.misfit"))

    def __init__(self, model: ExactGP, arms: Floats) -> None:
        self._model, self._arms = model, arms
        self._conditioning = Conditioning(model.kernel, arms, model.ridge)
        self.rounds, self.claimed_gain = 0, 0.0
        self._std: Array = None

    @property
    def std(self) -> Array:
        if self._std is None:
            self._std = root_of_positive(self._conditioning.factor.variance)
        return self._std

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over all pulls, = trace of K_t (K_t + ridge I)^-1."""
        pulls, seen = self._conditioning.pulls, self._conditioning.seen
        share = pulls.weights * self._conditioning.variances(pulls.arms, seen) / self.ridge
        return float(np.clip(share, 0.0, 1.0).sum())  # each is below 1, up to rounding

    @property
    def rank(self) -> int:
        return len(self._conditioning.pulls)

    @property
    def largest_reward(self) -> float:
        return HUGE if self._model.truncation is None else math.inf

    @property
    def pulled(self) -> Ints:
        pulled = self._conditioning.pulls.arms
        return pulled[pulled < len(self._arms)]

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        self._take(*as_pulls(arms, rewards, noise, len(self._arms), self.largest_reward))

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        points = as_points(points, self._arms.shape[1])
        names = self._conditioning.names(points)
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        self._take(names, values, factors, points if (names >= len(self._arms)).any() else None)

    def _take(self, names: Ints, values: Floats | None, noise: Floats | None, points: Floats | None = None) -> None:
        """Learn rewards of points with these names, (n,); the points, (n, d), are needed if some are not arms."""
        planned, rounds, claimed = values is None, self.rounds, 0.0
        try:
            if values is not None:
                values = self._arrive(values)
            elif points is None:
                values = np.asarray(numpy_of(self.mean[names]))
            else:
                values = np.asarray(self._conditioning.predict(points)[0])
            if not self._model.ridge:  # noise-free: only the first pull of each arm matters
                known = self._conditioning.pulls
                first = np.array([i for i in first_of_each(names) if int(names[i]) not in known], np.intp)
                names, values, noise = names[first], values[first], None if noise is None else noise[first]
                points = None if points is None else points[first]
            conditioning = self._conditioning
            if names.size == 1 and points is None:  # in scalars: this is the hot path
                arm, factor = int(names[0]), 1.0 if noise is None else float(noise[0])
                variance = max(float(conditioning.factor.variance[arm]), 0.0)
                claimed = 0.5 * math.log1p(variance / (self.ridge * factor))
                conditioning.learn_one(arm, float(values[0]), factor)
            elif names.size:
                factors = np.ones(names.size) if noise is None else noise
                claimed = conditioning.gain(conditioning.variances(names, points), factors)
                if names.size == 1 and points is not None:
                    conditioning.learn_one(int(names[0]), float(values[0]), float(factors[0]), points)
                else:
                    distinct = None if points is None else points[first_of_each(names)]
                    conditioning.learn(pooled(names, values, factors), distinct)
        except BaseException as error:
            self.rounds = rounds
            explain_memory(error, self._arms, self._conditioning.factor.rows + FEWEST)
            raise
        self._std = None
        if not planned:
            self.claimed_gain += claimed

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        mean, variance = self._conditioning.predict(as_arms(points))
        return mean, root_of_positive(variance)

    def sample(self, rng: Rng, among: int | None = None) -> Array:
        return self._conditioning.draw(rng, among)

    def sample_function(self, rng: Rng, scale: float = 1.0) -> Callable[[Floats], Floats]:
        return self._conditioning.draw_function(rng, scale)

    def covariance(self, first: Ints, second: Ints) -> Floats:
        return self._conditioning.covariance(first, second)

    def at(self, arms: Any) -> Any:
        """Return the same knowledge about other (N, d) arms; observations of points that are not among them stay.

        It costs O(r^2 N) with r rows in the factor.
        """
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self._conditioning.seen)
        other = copy.copy(self)
        other._arms = arms
        other._conditioning, other._std = self._conditioning.moved_to(other._arms), None
        return other

    def _arrive(self, rewards: Floats) -> Floats:
        """Count the rewards, and truncate each at the level of its own round."""
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


class Conditioning(Copyable):
    """Observations of some points as one Cholesky factor, and the belief about N arms that follows.

    The factor (`Factor`) has one row per conditioning. A block of b distinct points appends b
    rows at O(r b N), r the rows so far. If the last point is pulled again at once, the reward is pooled into its row,
    at O(N): n pulls with ridge l are one pull of their average with ridge l / n. A point that comes back later appends
    a row. When the rows far outnumber the u distinct points, they are refactored into one row per point, at O(u^2 N).
    So r stays near 1.75 u + 32, independent of the number of rounds, and rounding errors do not accumulate. These
    numbers were measured: one more row costs every later round, one more factorisation costs as much as u / 3 rounds.
    Other arms keep the rows, which are only evaluated at them, at O(r^2 N).

    Every point has a name: an arm's name is its index, and points that are not arms are named N, N + 1, ... in the
    order in which they came. With ridge 0, the smallest nugget that works replaces it.
    """

    OWN = ("pulls", "_columns", "factor", "_draw_root")
    NUGGET = 64 * np.finfo(float).eps
    """Least noise of a row as a share of the largest prior variance: a smaller one is lost to rounding."""

    def __init__(self, kernel: Kernel, arms: Floats, ridge: float) -> None:
        self._kernel, self._arms, self._noise_free = kernel, arms, not ridge
        self.pulls, self._columns, self._directory = Pulls(), KernelColumns(kernel, arms, COLUMNS_KEPT), Directory(arms)
        self._seen = np.empty((0, arms.shape[1]))  # the first of the distinct points; the others are arms
        self.factor = Factor(self._columns.variance)
        nugget = self.NUGGET * max(float(self._columns.variance.max()), np.finfo(float).tiny)
        self.ridge = ridge or nugget
        self._least_noise = min(self.ridge, nugget)  # of a row
        self._pooled_in_place = 0  # pulls pooled into an existing row since the last refactorisation
        self._draw_root: CovarianceRoot | None = None  # of the posterior, for draws on few arms, made on demand
        self._prior: PriorDraws | None = None  # for draws on many arms, made on demand

    @property
    def seen(self) -> Floats:
        """Distinct points pulled so far, in the order of their first pulls, (u, d)."""
        new = self.pulls.arms[len(self._seen) :]
        if new.size:
            self._seen = np.vstack([self._seen, self._points(new)])
        return self._seen

    def names(self, points: Floats) -> Ints:
        """Names of (n, d) points; new points that are not arms get the next free names."""
        count = len(self._arms)
        elsewhere = self.seen[self.pulls.arms >= count]
        known = {point.tobytes(): count + i for i, point in enumerate(elsewhere + 0.0)}  # -0.0 becomes 0.0: equal bytes
        first_of = {point.tobytes(): i for i, point in reversed(list(enumerate(points + 0.0)))}
        places = places_among(self._directory, points[sorted(first_of.values())])
        arm_of = dict(zip(sorted(first_of.values()), places.tolist(), strict=True))
        names = []
        for point in points + 0.0:
            arm = arm_of[first_of[point.tobytes()]]
            names.append(arm if arm < count else known.setdefault(point.tobytes(), count + len(known)))
        return np.array(names, np.intp)

    def learn_one(self, name: int, value: float, noise: float, point: Floats | None = None) -> None:
        """Learn one pull of an arm, or of a (1, d) ``point`` that is not an arm, with this noise factor."""
        ridge = self.ridge * noise
        if point is not None:
            self._forget_draws(np.array([name]))
        if self._is_due() or not (
            (self.factor.last == name and self._pool_one(name, value, ridge))
            or (
                self._append_one(name, value, ridge) if point is None else self._append_point(name, value, ridge, point)
            )
        ):
            block = Pooled(np.array([name]), np.array([value]), np.array([noise]), 0.0)
            self._learn_afresh(block, self._points(block.arms) if point is None else point)
            return
        if point is not None:
            self._seen = self._seen_with(np.array([name]), point)
        self.pulls.add_one(name, value, noise)

    def learn(self, block: Pooled, points: Floats | None = None) -> None:
        """Learn a block of pulls; ``points``, (n, d), are needed if some are not arms."""
        names, ridges = block.arms, self.ridge * block.noise
        points = self._points(names) if points is None else points
        with threads_for((self.factor.rows + names.size) * names.size * len(self._arms)):
            if self._is_due() or ridges.min() < self._least_noise or not self._append(block, points, ridges):
                self._learn_afresh(block, points)
                return
        self.factor.misfit += block.scatter / self.ridge
        self._seen = self._seen_with(names, points)
        self.pulls.add(block)
        self._forget_draws(names)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and variance, each (n,), at any (n, d) points, in their place."""
        prior = self._kernel.diag(points)
        if not self.factor.rows:
            return 0.0 * prior, prior
        mean, explained = self.factor.told(self.lifted(points))
        return mean, prior - explained

    def lifted(self, points: Floats) -> Floats:
        """root^-1 K(rows, points) for (n, d) points, (r, n); there must be at least one row."""
        with threads_for(self.factor.rows**2 * len(points)):
            return self.factor.lifted(self._kernel(self.seen[self.factor.slots], points))

    def variances(self, names: Ints, points: Floats | None = None) -> Floats:
        """Variances of the points with these names, (n,); ``points``, (n, d), are needed if some are not arms."""
        is_arm = names < len(self._arms)
        if is_arm.all() or points is None:
            return np.asarray(numpy_of(self.factor.variance[names]))
        variance = np.empty(names.size)
        variance[is_arm] = numpy_of(self.factor.variance[names[is_arm]])
        variance[~is_arm] = self.predict(points[~is_arm])[1]
        return variance

    def gain(self, variance: Floats, noise: Floats) -> float:
        """Sum of the gains of single pulls at these variances, 1/2 sum of ln(1 + std^2 / (ridge noise)).

        It is at least the gain of all pulls together.
        """
        return 0.5 * float(np.log1p(np.maximum(variance, 0.0) / (self.ridge * noise)).sum())

    def draw(self, rng: Rng, among: int | None = None) -> Array:
        """Joint draw on all arms, (N,), or its part on these if they are a part of ``among`` arms.

        On few arms it is made with a root of the posterior covariance. On many arms it is a prior draw g (`PriorDraws`)
        with a correction: mean + g - whitened' root^-1 (g at the rows + noise) has the posterior's law if g has the
        prior's (Matheron's rule).
        """
        factor, count = self.factor, len(self._arms)
        if (among or count) <= FEW_ARMS:
            if self._draw_root is None:
                with threads_for(count**3):
                    everywhere = np.arange(count)
                    self._draw_root = CovarianceRoot(self.covariance(everywhere, everywhere))
            with threads_for(self._draw_root.size):
                return factor.mean + beside(factor.mean, self._draw_root.draw(rng))
        if self._prior is None:
            elsewhere = self.seen[self.pulls.arms >= count]
            self._prior = PriorDraws(self._kernel, stacked(self._arms, elsewhere) if len(elsewhere) else self._arms)
        draw = self._prior.draw(rng, among)
        observed = numpy_of(draw[self.pulls.arms[factor.slots]]) + factor.noise_draw(rng)
        with threads_for(count * factor.rows):
            return factor.mean + draw[:count] - factor.explained_draw(observed)

    def draw_function(self, rng: Rng, scale: float) -> Callable[[Floats], Floats]:
        """Function drawn from GP(mean, scale^2 covariance), (n, d) -> (n,), by Matheron's rule as in `draw`.

        The prior part is a sum of 1024 waves (`PriorDraws`), so the kernel must have a spectral density.
        """
        if not has_spectral_law(self._kernel):
            raise ValueError(
                f"a kernel with a spectral density is needed to draw a function, got {self._kernel}: take one made of "
                "SquaredExponential, Matern and RationalQuadratic, or pass finitely many arms"
            )
        prior, rows = Waves(self._kernel, self._points(np.zeros(1, np.intp)), MOST, rng), self.seen[self.factor.slots]
        if not self.factor.rows:
            return lambda points: scale * prior(points)
        weights = self.factor.coefficients(scale * (prior(rows) + self.factor.noise_draw(rng)))
        return lambda points: scale * prior(points) + self._kernel(points, rows) @ weights

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Covariance of some arms with others, (n,), (m,) -> (n, m), as a NumPy array."""
        prior = self._kernel(self._points(first), self._points(second))
        with threads_for(self.factor.rows * prior.size):
            return prior - self.factor.explained_covariance(first, second)

    def moved_to(self, arms: Floats) -> Conditioning:
        """Return the same observations for other arms, at O(r^2 N).

        If the arms are the present ones with n more behind them, it costs O(r (r n + N)).
        """
        places = places_among(arms, self.seen)
        other = copy.copy(self)
        other._arms, other._directory = arms, Directory(arms)
        other._columns = KernelColumns(self._kernel, arms, COLUMNS_KEPT)
        other.pulls, other._draw_root, other._prior = self.pulls.moved(places), None, None
        names, points = places[self.factor.slots], self.seen[self.factor.slots]
        last = int(names[-1]) if names.size else -1
        variance = other._columns.variance
        count, are_here = len(self._arms), not (is_tensor(arms) or is_tensor(self._arms))
        if are_here and self.factor.rows and len(arms) > count and np.array_equal(arms[:count], self._arms):
            lifted = np.hstack([self.factor.border(EVERYWHERE), self.lifted(arms[count:])])
            other.factor = self.factor.moved_with(variance, lifted, last)
            return other
        with threads_for(names.size**2 * len(arms)):
            other.factor = self.factor.moved(variance, lambda slab: other._columns.at(names, points, slab), last)
        return other

    def _points(self, arms: Ints) -> Floats:
        """Some arms as a NumPy array, (n,) -> (n, d)."""
        return np.asarray(numpy_of(self._arms[arms]))

    def _seen_with(self, names: Ints, points: Floats) -> Floats:
        """Distinct points including the new ones among these, (n, d)."""
        return np.vstack([self.seen, points[[name not in self.pulls for name in names.tolist()]]])

    def _columns_of(self, names: Ints, points: Floats) -> Columns:
        """K(points, arms), a slab of arms at a time, (n, m)."""
        if names.max() < len(self._arms) and self._columns.keeps(names):
            return lambda slab: self._columns.copies_of(names)[:, slab]
        return lambda slab: self._columns.at(names, points, slab)

    def _inner(self, names: Ints, points: Floats) -> Floats:
        """K(points, points), (n, n)."""
        if names.max() < len(self._arms) and self._columns.keeps(names):
            return self._columns.among(names)
        return self._columns.between(names, points)

    def _pool_one(self, arm: int, value: float, ridge: float) -> bool:
        """Pool one more reward of the last row's arm into that row, unless its noise would become too small."""
        noise = self.factor.last_noise
        if noise * ridge < self._least_noise * (noise + ridge):
            return False
        if self._draw_root is not None:
            with threads_for(self._draw_root.size):
                self._draw_root.condition(arm, numpy_of(self.factor.last_covariance()), ridge)
        self.factor.observe_again(value, ridge)
        self._pooled_in_place += 1
        return True

    def _append_one(self, arm: int, value: float, ridge: float) -> bool:
        """Append a row; False, and nothing has changed, if its noise would be lost to rounding."""
        work = (self.factor.rows + 1) * len(self._arms) if self._draw_root is None else self._draw_root.size
        with threads_for(work):
            column, slot = self._columns.of_one(arm), self.pulls.slot(arm)
            if self._draw_root is None:
                return ridge >= self._least_noise and self.factor.append_one(arm, slot, column, value, ridge)
            covariance = self._draw_root.row(arm)
            there = beside(self.factor.mean, covariance)
            if ridge < self._least_noise or not self.factor.append_one(arm, slot, column, value, ridge, there):
                return False
            self._draw_root.condition(arm, covariance, ridge)
            return True

    def _append_point(self, name: int, value: float, ridge: float, point: Floats) -> bool:
        """`_append_one` for a (1, d) point that is not an arm."""
        names, slot = np.array([name]), self.pulls.slot(name)
        with threads_for((self.factor.rows + 1) * len(self._arms)):
            column = self._columns.at(names, point, slice(0, len(self._arms)))[0]
            inner = float(self._columns.between(names, point)[0, 0])
            border = self.factor.lifted(self._kernel(self.seen[self.factor.slots], point))[:, 0]
            return ridge >= self._least_noise and self.factor.append_point(
                name, slot, inner, border, column, value, ridge
            )

    def _append(self, block: Pooled, points: Floats, ridges: Floats) -> bool:
        """Append a row for each point of a block; False, and nothing has changed, if a pivot is lost to rounding."""
        names, slots = block.arms, self.pulls.copy().slots(block.arms)
        columns, inner = self._columns_of(names, points), self._inner(names, points)
        if int(names.max()) < len(self._arms):
            border = self.factor.border(names)
        else:
            border = self.factor.lifted(self._kernel(self.seen[self.factor.slots], points))
        return self.factor.append(slots, inner, border, columns, block.values, ridges, int(names[-1]))

    def _is_due(self) -> bool:
        """True if the factor should be rebuilt: its rows far outnumber the points, or were changed in place often."""
        return self.factor.rows > 1.75 * len(self.pulls) + 32 or self._pooled_in_place >= REFRESH

    def _learn_afresh(self, block: Pooled, points: Floats) -> None:
        """Learn a block by rebuilding the factor, with enough noise in its rows to survive rounding.

        Every point gets one row with all its pulls pooled; mean, variance, misfit and gain are recomputed. A row whose
        noise would be lost to rounding gets more, up to the ridge of one pull; the gain is then the sum of the claimed
        gains. A ridge that was given as 0 grows instead. ValueError, and nothing has changed, if that is not enough.
        """
        pulls, seen = self.pulls.copy(), self._seen_with(block.arms, points)
        ridge, least = self.ridge, self._least_noise
        gain = self.factor.gain + self.gain(self.variances(block.arms, points), block.noise)
        pulls.add(block)
        names, averages, weights, last = pulls.arms, pulls.averages, pulls.weights, int(pulls.arms[-1])
        with threads_for(len(pulls) ** 2 * len(self._arms)):
            columns, inner, slots = self._columns_of(names, seen), self._inner(names, seen), np.arange(len(pulls))
            while not self.factor.refactor(slots, inner, columns, averages, np.maximum(ridge / weights, least), last):
                if self._noise_free:
                    ridge *= 10
                elif least < ridge:
                    least = min(ridge, 10 * least)
                else:
                    raise ValueError(
                        f"ridge {ridge} is too small for this kernel and {len(self.pulls)} distinct arms: raise it, or "
                        "pass ridge=0 if the rewards are noise-free"
                    )
        self.factor.misfit += pulls.scatter / ridge
        if ridge / weights.max() < least:
            self.factor.gain = gain
        self.ridge, self._least_noise, self._pooled_in_place = ridge, least, 0
        self.pulls, self._seen = pulls, seen
        self._forget_draws(block.arms)

    def _forget_draws(self, names: Ints) -> None:
        """Drop the roots for draws after points with these names were learnt."""
        self._draw_root = None
        if names.max() >= len(self._arms):
            self._prior = None
