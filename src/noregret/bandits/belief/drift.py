"""Models of functions that change: memories that forget (`Recent`, `Discounted`), and a random walk (`VaryingGP`)."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np

from noregret.bandits.belief.arms import LearnsPoints, as_arms, learn_at
from noregret.bandits.belief.cluster import BlockPosterior, Blocks
from noregret.bandits.belief.draws import CovarianceRoot
from noregret.bandits.belief.factor import COLUMNS_KEPT, Columns, Factor, KernelColumns
from noregret.bandits.belief.model_set import ModelSet
from noregret.bandits.belief.pulls import arms_of
from noregret.gp.arrays import Array, beside, numpy_of, root_of_positive
from noregret.gp.kernels import Kernel, KernelLike, as_kernel
from noregret.gp.posterior import HUGE, Floats, Ints, Model, Posterior, Rng, Slot, set_fields
from noregret.gp.threads import threads_for

TINY = 1e-8
"""Least weight of a reward; below it a reward is forgotten."""


class Memory(Protocol):
    """Rule for which of the last rewards count, and with what weight."""

    def kept(self, rounds: int) -> int:
        """Number of the last rewards that count, out of ``rounds``."""

    def noise(self, ages: Ints) -> Floats | None:
        """Factor on the ridge of rewards of these ages, (n,), 0 for the last one; None if all factors are always 1."""


@dataclass(frozen=True)
class Window:
    """Memory of the last ``size`` rewards."""

    size: int

    def __post_init__(self) -> None:
        _check_count("size", self.size)

    def kept(self, rounds: int) -> int:
        """All rewards, up to the size of the window."""
        return min(rounds, self.size)

    def noise(self, ages: Ints) -> None:
        """None: all rewards in the window have the same weight."""


@dataclass(frozen=True)
class Restarts:
    """Memory of the rewards since the last multiple of ``period``: all are forgotten every ``period`` rounds."""

    period: int

    def __post_init__(self) -> None:
        _check_count("period", self.period)

    def kept(self, rounds: int) -> int:
        """0 right after a restart, then one more in every round."""
        return rounds % self.period

    def noise(self, ages: Ints) -> None:
        """None: all rewards since the restart have the same weight."""


@dataclass(frozen=True)
class Discount:
    """Memory in which a reward of age a, 0 for the last one, has weight ``factor``^a, until this is below 1e-8."""

    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < 1:
            raise ValueError(f"factor must be in (0, 1), got {self.factor}")

    def kept(self, rounds: int) -> int:
        """Number of rewards whose weight is at least 1e-8."""
        return min(rounds, 1 + math.floor(math.log(TINY) / math.log(self.factor)))

    def noise(self, ages: Ints) -> Floats:
        """Inverse weights."""
        return np.asarray(self.factor ** -ages.astype(float))


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")


@dataclass(frozen=True)
class Recent:
    """Belief of another model, given only the rewards that a memory keeps.

    A round in which nothing is forgotten costs as much as a round of the model. A round in which something is forgotten
    recomputes the belief: for an exact GP at O(W + u^2 N), with W rewards kept of u distinct arms. The memory use is
    O(W d + u N), independent of the number of rounds.

    Parameters
    ----------
    model : Model
    memory : Window, Restarts or Discount

    Examples
    --------
    >>> from noregret import ExactGP, SquaredExponential
    >>> from noregret.bandits.belief.drift import Window
    >>> belief = Recent(ExactGP(SquaredExponential(0.2), ridge=0.01), Window(2)).prior([[0.0], [1.0]])
    >>> belief.update([0, 0, 1, 1], [5.0, 5.0, 1.0, 1.2])
    >>> belief.mean.round(3), belief.rounds
    (array([0.   , 1.095]), 4)
    """

    model: Model
    memory: Memory

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.prior(arms.first, rng), arms)
        return RecentPosterior(self.memory, self.model.prior(arms, rng))


@dataclass(frozen=True)
class Discounted:
    """Model in which a reward of age a has weight g^a for the mean, and g^(2 a) for the std, with discount g.

    The mean is the model's with ridge / g^a for such a reward, the std and the gain are the model's with
    ridge / g^(2 a). Both are recomputed in every round, as in `Recent`.
    """

    model: Model
    discount: float

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.prior(arms.first, rng), arms)
        once, twice = (Recent(self.model, Discount(self.discount**power)).prior(arms, rng) for power in (1, 2))
        return DiscountedPosterior(once, twice)


class _Log(NamedTuple):
    """Rewards in the order of arrival."""

    points: Floats
    """Their points, (n, d)."""
    arms: Ints
    """Index of the arm that equals each point, -1 if there is none, (n,)."""
    rewards: Floats
    noise: Floats
    """Factor on the ridge of each, (n,)."""

    def teach(self, belief: Posterior) -> None:
        """Update a belief with these rewards."""
        if len(self.rewards):
            learn_at(belief, self.arms, self.points, self.rewards, None if (self.noise == 1).all() else self.noise)


class RecentPosterior(LearnsPoints):
    """Belief of `Recent`: the posterior of its model given the remembered rewards.

    ``rounds`` and ``claimed_gain`` count all rewards; all else comes from the model's posterior. An update without
    rewards lasts until a reward causes a recomputation.
    """

    OWN = ("_recent",)

    def __init__(self, memory: Memory, blank: Posterior) -> None:
        self._memory, self._blank, self._recent = memory, blank, blank.copy()
        self.rounds, self.claimed_gain = 0, 0.0
        self._log = _Log(np.empty((0, blank.arms.shape[1])), np.empty(0, np.intp), np.empty(0), np.empty(0))

    def __getattr__(self, name: str) -> Any:
        if name == "_recent":  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._recent, name)

    @property
    def remembered(self) -> int:
        """Number of rewards that count at present."""
        return len(self._log.rewards)

    @property
    def points(self) -> Floats:
        """Points of the rewards that count at present, (n, d)."""
        return self._log.points

    def at(self, arms: Any) -> Any:
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self.points)
        other = copy.copy(self)
        other._blank, other._recent = self._blank.at(arms), self._recent.at(arms)
        other._log = self._log._replace(arms=arms_of(other._blank.arms, self._log.points))
        return other

    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats, std: Floats) -> None:
        """Learn new rewards, and forget the oldest."""
        if values is None:
            learn_at(self._recent, arms, points, None, factors)
            return
        new = _Log(points, arms, values, factors)
        rounds = self.rounds + len(new.rewards)
        first = self.remembered + len(new.rewards) - self._memory.kept(rounds)
        log = _Log(*(np.concatenate(pair)[first:] for pair in zip(self._log, new, strict=True)))
        claimed = 0.5 * float(np.log1p(std**2 / (self.ridge * new.noise)).sum())
        ages = np.arange(len(log.rewards))[::-1]
        older = self._memory.noise(ages)
        if older is None and len(log.rewards) == self.remembered + len(new.rewards):
            new.teach(self._recent)
        else:
            recent = self._blank.copy()
            (log if older is None else log._replace(noise=log.noise * older)).teach(recent)
            self._recent = recent
        self._log, self.rounds, self.claimed_gain = log, rounds, self.claimed_gain + claimed


class DiscountedPosterior(ModelSet):
    """Belief of `Discounted`: the mean of one posterior, all else of another that discounts twice as fast."""

    def __init__(self, once: RecentPosterior, twice: RecentPosterior) -> None:
        super().__init__({"std": twice, "mean": once})

    @property
    def mean(self) -> Floats:
        mean: Floats = self.members["mean"].mean
        return mean

    @property
    def misfit(self) -> float:
        """Misfit of the rewards under the prior, each with its weight in the mean."""
        misfit: float = self.members["mean"].misfit
        return misfit

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        return self.members["mean"].predict(points)[0], self.members["std"].predict(points)[1]

    def sample(self, rng: Rng) -> Floats:
        draw: Floats = self.mean + (self.members["std"].sample(rng) - self.members["std"].mean)
        return draw

    def at(self, arms: Any) -> Any:
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self.members["mean"].points)
        return super().at(arms)


@dataclass(frozen=True)
class VaryingGP:
    """Gaussian process with a random walk: f_(t+1) = sqrt(1 - rate) f_t + sqrt(rate) g_t, g_t new draws of the kernel.

    So the covariance of f_s(x) and f_t(y) is k(x, y) (1 - rate)^(|t - s| / 2). The belief after t rewards is about
    round t + 1, and a reward belongs to the round in which it came.

    The last W = 10 / rate rewards are remembered, and up to W more. Older ones, whose correlation with the present is
    below exp(-5), are forgotten, W at a time. So on N arms a round costs O(W (W + N)) on average, one in W of them
    O(W^2 (W + N)), and the memory use is O(W (W + N)), independent of the number of rounds.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        The variance of the noise, above 0.
    rate : float
        Share of the variance that is new in every round, in (0, 1).

    Examples
    --------
    >>> from noregret import SquaredExponential
    >>> belief = VaryingGP(SquaredExponential(0.2), ridge=0.01, rate=0.1).prior([[0.0], [1.0]])
    >>> belief.update(0, 1.0)
    >>> belief.mean.round(3), belief.std.round(3)
    (array([0.939, 0.   ]), array([0.33, 1.  ]))
    """

    kernel: Kernel
    ridge: float
    rate: float

    def __init__(self, kernel: KernelLike, ridge: float, rate: float) -> None:
        if not 0 < ridge < math.inf:
            raise ValueError(f"ridge must be positive, got {ridge}")
        if not 0 < rate < 1:
            raise ValueError(f"rate must be in (0, 1), got {rate}")
        set_fields(self, kernel=as_kernel(kernel), ridge=float(ridge), rate=float(rate))

    @property
    def memory(self) -> int:
        """Number of rewards that are always remembered, W."""
        return math.ceil(10 / self.rate)

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.prior(arms.first), arms)
        return VaryingPosterior(self, arms)


class Seen(NamedTuple):
    """Observations, one per row of the factor."""

    points: Floats
    """Their points, (r, d)."""
    arms: Ints
    """Index of the arm that equals each point, -1 if there is none, (r,)."""
    values: Floats
    noise: Floats
    """Noise variance of each, (r,)."""
    rounds: Floats
    """Round of each, (r,)."""


class VaryingPosterior(LearnsPoints):
    """Belief of `VaryingGP` (see `noregret.gp.posterior.Posterior` for the contract).

    Mean, std and covariance are those of the coming round; gain and misfit are those of the remembered observations.
    """

    OWN = ("_columns", "_factor")
    largest_reward = HUGE
    mean = property(attrgetter("_factor.mean"))
    information_gain = property(attrgetter("_factor.gain"))
    misfit = property(attrgetter("_factor.misfit"))
    rank = property(attrgetter("_factor.rows"))

    def __init__(self, model: VaryingGP, arms: Floats) -> None:
        self._model, self.arms, self.ridge = model, arms, model.ridge
        self._columns = KernelColumns(model.kernel, arms, COLUMNS_KEPT)
        self._factor = Factor(self._columns.variance)
        none = np.empty(0)
        self._seen = Seen(np.empty((0, arms.shape[1])), np.empty(0, np.intp), none, none, none)
        self.rounds, self.claimed_gain = 0, 0.0

    @property
    def std(self) -> Array:
        return root_of_positive(self._factor.variance)

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over the remembered pulls, with the std of the coming round."""
        return float((self.predict(self._seen.points)[1] ** 2 / self._seen.noise).sum()) if self.rank else 0.0

    @property
    def pulled(self) -> Ints:
        """Distinct arms among the remembered observations, in the order of first pulls."""
        return np.array(list(dict.fromkeys(self._seen.arms[self._seen.arms >= 0].tolist())), np.intp)

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        points = as_arms(points)
        prior = self._model.kernel.diag(points)
        if not self.rank:
            return 0.0 * prior, root_of_positive(prior)
        mean, explained = self._factor.explained(self._covariances(points))
        return mean, root_of_positive(prior - explained)

    def sample(self, rng: Rng) -> Array:
        """Joint draw on all arms, (N,), at O(N^3)."""
        everywhere = np.arange(len(self.arms))
        with threads_for(len(self.arms) ** 3):
            draw = CovarianceRoot(self.covariance(everywhere, everywhere)).draw(rng)
        return self.mean + beside(self.mean, draw)

    def covariance(self, first: Ints, second: Ints) -> Floats:
        prior = self._model.kernel(numpy_of(self.arms[first]), numpy_of(self.arms[second]))
        return prior - self._factor.explained_covariance(first, second)

    def at(self, arms: Any) -> Any:
        """Return the same knowledge about other (N, d) arms, at O(W^2 N)."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self._seen.points)
        other = copy.copy(self)
        other.arms = arms
        other._columns = KernelColumns(self._model.kernel, other.arms, COLUMNS_KEPT)
        other._seen = self._seen._replace(arms=arms_of(other.arms, self._seen.points))
        with threads_for(self.rank**2 * len(other.arms)):
            other._factor = self._factor.moved(other._columns.variance, other._columns_of(other._seen), -1)
        return other

    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats, std: Floats) -> None:
        """Learn observations; each given value ends a round."""
        ridges = self.ridge * factors
        for i, arm in enumerate(arms.tolist()):
            with threads_for((self.rank + 1) * len(self.arms)):
                value = float(self.predict(points[i : i + 1])[0][0]) if values is None else float(values[i])
                self._observe(arm, points[i], value, float(ridges[i]))
                if values is not None:
                    self.rounds += 1
                    self._factor.fade(math.sqrt(1 - self._model.rate))
            if self.rank >= 2 * self._model.memory:
                self._drop_older_half()
        if values is not None:
            self.claimed_gain += 0.5 * float(np.log1p(std**2 / ridges).sum())

    def _observe(self, arm: int, point: Floats, value: float, ridge: float) -> None:
        """Append a row for the coming round."""
        row, factor = self.rank, self._factor
        if arm >= 0:
            done = factor.append_one(arm, Slot(row), self._columns.of_one(arm), value, ridge)
        else:
            here = point[None]
            border = factor.lifted(self._covariances(here)) if row else np.empty((0, 1))
            columns, name = self._columns, np.array([len(self.arms)])
            done = factor.append(
                np.array([row]),
                self._model.kernel(here, here),
                border,
                lambda slab: columns.at(name, here, slab),
                np.array([value]),
                np.array([ridge]),
                -1,
            )
        if not done:
            raise ValueError(f"ridge must be larger than rounding errors, got {self.ridge}: pass a larger one")
        new = point, arm, value, ridge, self.rounds
        self._seen = Seen(
            *(np.concatenate([old, np.asarray(one)[None]]) for old, one in zip(self._seen, new, strict=True))
        )

    def _drop_older_half(self) -> None:
        rows, seen = self._model.memory, Seen._make(each[-self._model.memory :] for each in self._seen)
        apart = np.abs(seen.rounds[:, None] - seen.rounds)
        with threads_for(rows**2 * (rows + len(self.arms))):
            inner = self._model.kernel(seen.points, seen.points) * (1 - self._model.rate) ** (0.5 * apart)
            columns = self._columns_of(seen)
            self._factor.refactor(np.arange(rows), inner, columns, seen.values, seen.noise, -1)
        self._seen = seen

    def _fading(self, seen: Seen) -> Floats:
        """Correlation of each observation's round with the coming one, (r, 1)."""
        return np.asarray((1 - self._model.rate) ** (0.5 * (self.rounds - seen.rounds)))[:, None]

    def _covariances(self, points: Floats) -> Array:
        """Prior covariance of the observations with (n, d) points in the coming round, (r, n)."""
        columns = self._model.kernel(self._seen.points, points)
        return columns * beside(columns, self._fading(self._seen))

    def _columns_of(self, seen: Seen) -> Columns:
        """Prior covariance of observations with a slab of the arms in the coming round, (r, m)."""
        names, fading = np.arange(len(seen.values)), beside(self._columns.variance, self._fading(seen))
        return lambda slab: self._columns.at(names, seen.points, slab) * fading
