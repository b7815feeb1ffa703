"""Memories: how many of the last rewards count, and how much each."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from noregret.belief.arms import as_arms, as_points
from noregret.belief.arrays import Array, beside, numpy_of, root_of_positive
from noregret.belief.cluster.belief import BlockPosterior
from noregret.belief.cluster.blocks import Blocks
from noregret.belief.kernels import Kernel, KernelLike, as_kernel
from noregret.belief.model_set import ModelSet
from noregret.belief.numerics.columns import KernelColumns
from noregret.belief.numerics.draws import CovarianceRoot
from noregret.belief.numerics.factor import Columns, Factor
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import HUGE, Floats, Ints, Model, Posterior, Rng, as_pulls
from noregret.belief.pulls import arms_of

TINY = 1e-8
"""A reward whose weight has fallen below this is forgotten."""


class Memory(Protocol):
    """What is remembered of a run."""

    def kept(self, rounds: int) -> int:
        """How many of the last rewards count after so many in all."""
        ...

    def noise(self, ages: Ints) -> Floats | None:
        """The factor on the ridge of rewards of these ages, (n,), 0 for the last one; None if all are 1 for ever."""
        ...


@dataclass(frozen=True)
class Window:
    """The last ``size`` rewards."""

    size: int

    def __post_init__(self) -> None:
        _check_count("size", self.size)

    def kept(self, rounds: int) -> int:
        """As many as there are, up to the window's size."""
        return min(rounds, self.size)

    def noise(self, ages: Ints) -> None:
        """All in the window count alike."""


@dataclass(frozen=True)
class Restarts:
    """The rewards since the last multiple of ``period``: everything is forgotten after every so many."""

    period: int

    def __post_init__(self) -> None:
        _check_count("period", self.period)

    def kept(self, rounds: int) -> int:
        """None right after a restart, then one more in every round."""
        return rounds % self.period

    def noise(self, ages: Ints) -> None:
        """All since the restart count alike."""


@dataclass(frozen=True)
class Discount:
    """A reward of age a, 0 for the last one, counts with weight ``factor``^a, until this is below 1e-8."""

    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < 1:
            raise ValueError(f"factor must be in (0, 1), got {self.factor}")

    def kept(self, rounds: int) -> int:
        """Those whose weight is not tiny."""
        return min(rounds, 1 + math.floor(math.log(TINY) / math.log(self.factor)))

    def noise(self, ages: Ints) -> Floats:
        """One over the weight."""
        return np.asarray(self.factor ** -ages.astype(float))


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1, got {value!r}")


@dataclass(frozen=True)
class Recent:
    """Another model's belief, on those rewards only that a memory keeps.

    A round in which nothing is forgotten costs what it costs the model. A round in which something is forgotten makes
    the belief afresh: for an exact GP at O(W + u^2 N), with W rewards kept of u distinct arms. The memory is O(W d + u
    N), however many the rounds.

    Parameters
    ----------
    model : Model
    memory : Window, Restarts or Discount

    Examples
    --------
    >>> from noregret import ExactGP, SquaredExponential
    >>> from noregret.belief.drift import Window
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
    """A model in which a reward of age a counts with weight g^a for the mean, and g^(2 a) for the std.

    With discount g, the mean is the model's with ridge / g^a for such a reward, and the std that with ridge / g^(2 a).
    Its gain is the latter's. Both are made afresh in every round, as in `Recent`.
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
    """Rewards in the order they came."""

    points: Floats
    """Where they are from, (n, d)."""
    arms: Ints
    """The arm that each point is, -1 if it is none, (n,)."""
    rewards: Floats
    noise: Floats
    """The factor on the ridge of each, (n,)."""

    def with_last(self, new: _Log, kept: int) -> _Log:
        """The last so many rewards, once new ones have come."""
        first = len(self.rewards) + len(new.rewards) - kept
        return _Log(*(np.concatenate(pair)[first:] for pair in zip(self, new, strict=True)))


class RecentPosterior:
    """The belief of `Recent`: that of its model, made of what is remembered.

    What is asked of it is answered by the model's own posterior. ``rounds`` and ``claimed_gain`` count all rewards.
    An update without rewards lasts until a reward makes the belief afresh.
    """

    def __init__(self, memory: Memory, blank: Posterior) -> None:
        self._memory, self._blank, self._recent = memory, blank, blank.copy()
        self.rounds, self.claimed_gain = 0, 0.0
        self._log = _Log(np.empty((0, blank.arms.shape[1])), np.empty(0, np.intp), np.empty(0), np.empty(0))

    def __getattr__(self, name: str) -> Any:
        if name == "_recent":  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._recent, name)

    @property
    def remembered(self) -> int:
        """How many rewards count at present."""
        return len(self._log.rewards)

    @property
    def points(self) -> Floats:
        """Where the rewards that count at present are from, (n, d)."""
        return self._log.points

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each ridge."""
        if rewards is None:
            self._recent.update(arms, noise=noise)
            return
        places, values, factors = as_pulls(arms, rewards, noise, len(self._blank.arms), self.largest_reward)
        assert values is not None
        factors = np.ones(places.size) if factors is None else factors
        std = numpy_of(self.std[places])
        self._take(_Log(np.asarray(numpy_of(self._blank.arms[places])), places, values, factors), std)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points; None changes the variance only; ``noise`` scales each ridge."""
        if rewards is None:
            self._recent.learn(points, noise=noise)
            return
        points = as_points(points, self._blank.arms.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        assert values is not None
        factors = np.ones(len(points)) if factors is None else factors
        std = numpy_of(self.predict(points)[1])
        self._take(_Log(points, arms_of(self._blank.arms, points), values, factors), std)

    def at(self, arms: Any) -> Any:
        """The same knowledge about other (N, d) arms."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self.points)
        other = copy.copy(self)
        other._blank, other._recent = self._blank.at(arms), self._recent.at(arms)
        other._log = self._log._replace(arms=arms_of(other._blank.arms, self._log.points))
        return other

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._recent = self._recent.copy()
        return twin

    def _take(self, new: _Log, std: Floats) -> None:
        """Learn new rewards, of points that have this std before; forget what is too old."""
        rounds = self.rounds + len(new.rewards)
        log = self._log.with_last(new, self._memory.kept(rounds))
        claimed = 0.5 * float(np.log1p(std**2 / (self.ridge * new.noise)).sum())
        ages = np.arange(len(log.rewards))[::-1]
        older = self._memory.noise(ages)
        if older is None and len(log.rewards) == self.remembered + len(new.rewards):
            _tell(self._recent, new)
        else:
            recent = self._blank.copy()
            _tell(recent, log if older is None else log._replace(noise=log.noise * older))
            self._recent = recent
        self._log, self.rounds, self.claimed_gain = log, rounds, self.claimed_gain + claimed


class DiscountedPosterior(ModelSet):
    """The belief of `Discounted`: the mean of one posterior, all else of another that discounts twice as fast."""

    def __init__(self, once: RecentPosterior, twice: RecentPosterior) -> None:
        super().__init__({"std": twice, "mean": once})

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        mean: Floats = self.members["mean"].mean
        return mean

    @property
    def misfit(self) -> float:
        """How ill the rewards fit the prior, each with the weight that it has in the mean."""
        misfit: float = self.members["mean"].misfit
        return misfit

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        return self.members["mean"].predict(points)[0], self.members["std"].predict(points)[1]

    def sample(self, rng: Rng) -> Floats:
        """One function with this mean and covariance, jointly on all arms, (N,)."""
        draw: Floats = self.mean + (self.members["std"].sample(rng) - self.members["std"].mean)
        return draw

    def at(self, arms: Any) -> Any:
        """The same knowledge about other (N, d) arms."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self.members["mean"].points)
        return super().at(arms)


def _tell(belief: Posterior, log: _Log) -> None:
    """Let a belief learn all rewards of a log."""
    if not len(log.rewards):
        return
    noise = None if (log.noise == 1).all() else log.noise
    if (log.arms >= 0).all():
        belief.update(log.arms, log.rewards, noise=noise)
    else:
        belief.learn(log.points, log.rewards, noise)


KEPT = 4_000_000
"""Numbers in the kernel columns that are kept for arms that come back."""


@dataclass(frozen=True)
class VaryingGP:
    """Gaussian process that walks: f_(t+1) = sqrt(1 - rate) f_t + sqrt(rate) g_t, with g_t new draws from the kernel.

    So the covariance of f_s(x) and f_t(y) is k(x, y) (1 - rate)^(|t - s| / 2). The belief after t rewards is about
    round t + 1, and a reward is of the round in which it came.

    The last W = 10 / rate rewards are remembered, and up to W more. Older ones, whose correlation with now is below
    exp(-5), are forgotten, W at a time. So on N arms a round costs O(W (W + N)) on average, one in W of them O(W^2 (W +
    N)), and the memory is O(W (W + N)), however many the rounds.

    Parameters
    ----------
    kernel : Kernel, or any callable (n, d), (m, d) -> (n, m)
    ridge : float
        The variance of the noise, above 0.
    rate : float
        How much of the variance is new in every round, in (0, 1).

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
        object.__setattr__(self, "kernel", as_kernel(kernel))
        object.__setattr__(self, "ridge", float(ridge))
        object.__setattr__(self, "rate", float(rate))

    @property
    def memory(self) -> int:
        """W, the rewards that are always remembered."""
        return math.ceil(10 / self.rate)

    def prior(self, arms: Any, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        arms = as_arms(arms)
        return (
            BlockPosterior(self.prior(arms.first), arms) if isinstance(arms, Blocks) else VaryingPosterior(self, arms)
        )


class Seen(NamedTuple):
    """Observations, each a row of the factor."""

    points: Floats
    """Where they were made, (r, d)."""
    arms: Ints
    """The arm that each point is, -1 if it is none, (r,)."""
    values: Floats
    noise: Floats
    """The variance of the noise of each, (r,)."""
    rounds: Floats
    """The round of each, (r,)."""

    def and_one(self, *observation: Any) -> Seen:
        """With one more."""
        return Seen(*(np.concatenate([old, np.asarray(new)[None]]) for old, new in zip(self, observation, strict=True)))

    def last(self, count: int) -> Seen:
        """The last so many."""
        return Seen._make(each[-count:] for each in self)


class VaryingPosterior:
    """The belief of `VaryingGP` (see `noregret.belief.posterior.Posterior` for the contract).

    Mean, std and covariance are those of the coming round; gain and misfit are of the observations remembered.
    """

    largest_reward = HUGE

    def __init__(self, model: VaryingGP, arms: Floats) -> None:
        self._model, self.arms, self.ridge = model, arms, model.ridge
        self._columns = KernelColumns(model.kernel, arms, KEPT)
        self._factor = Factor(self._columns.variance)
        none = np.empty(0)
        self._seen = Seen(np.empty((0, arms.shape[1])), np.empty(0, np.intp), none, none, none)
        self.rounds, self.claimed_gain = 0, 0.0

    @property
    def mean(self) -> Array:
        """Posterior mean of every arm, (N,)."""
        return self._factor.mean

    @property
    def std(self) -> Array:
        """Posterior standard deviation of every arm, (N,)."""
        return root_of_positive(self._factor.variance)

    @property
    def information_gain(self) -> float:
        """Realised gain of what is remembered, 1/2 ln det(I + K / ridge) with time in the kernel."""
        return self._factor.gain

    @property
    def misfit(self) -> float:
        """Y' (K + ridge I)^-1 y of what is remembered, with time in the kernel."""
        return self._factor.misfit

    @property
    def effective_dimension(self) -> float:
        """Sum of std(x_s)^2 / ridge over the pulls that are remembered, std that of the coming round."""
        return float((self.predict(self._seen.points)[1] ** 2 / self._seen.noise).sum()) if self.rank else 0.0

    @property
    def rank(self) -> int:
        """Number of observations remembered."""
        return self._factor.rows

    @property
    def pulled(self) -> Ints:
        """The distinct arms among what is remembered, in the order of their first pulls there."""
        return np.array(list(dict.fromkeys(self._seen.arms[self._seen.arms >= 0].tolist())), np.intp)

    @property
    def seen(self) -> Seen:
        """What is remembered."""
        return self._seen

    @property
    def ages(self) -> Floats:
        """How many rounds before the coming one each observation was made, (r,)."""
        return self.rounds - self._seen.rounds

    def recall(self, points: Floats, values: Floats, noise: Floats, rounds: Floats, now: int) -> None:
        """Put these r observations, of the rounds given, in the place of all that is known, after ``now`` rounds.

        ``noise`` scales the ridge of each. It costs O(r^2 (r + N)).
        """
        self.rounds = now
        self._refactor(Seen(points, arms_of(self.arms, points), values, self.ridge * noise, rounds))

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards, each of a round of its own; None changes the variance only, and is of now."""
        places, values, factors = as_pulls(arms, rewards, noise, len(self.arms), self.largest_reward)
        points, std = np.asarray(numpy_of(self.arms[places])), numpy_of(self.std[places])
        self._take(places, points, values, factors, std)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points, each of a round of its own; None changes the variance only."""
        points = as_points(points, self.arms.shape[1])
        _, values, factors = as_pulls(np.arange(len(points)), rewards, noise, len(points), self.largest_reward)
        self._take(arms_of(self.arms, points), points, values, factors, self.predict(points)[1])

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std in the coming round, each (n,), at any (n, d) points."""
        points = as_arms(points)
        prior = self._model.kernel.diag(points)
        if not self.rank:
            return 0.0 * prior, root_of_positive(prior)
        mean, explained = self._factor.explained(self._covariances(points))
        return mean, root_of_positive(prior - explained)

    def sample(self, rng: Rng) -> Array:
        """One joint draw on all arms, (N,), at O(N^3)."""
        everywhere = np.arange(len(self.arms))
        with threads_for(len(self.arms) ** 3):
            draw = CovarianceRoot(self.covariance(everywhere, everywhere)).draw(rng)
        return self.mean + beside(self.mean, draw)

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others in the coming round, (n,), (m,) -> (n, m)."""
        prior = self._model.kernel(numpy_of(self.arms[first]), numpy_of(self.arms[second]))
        return prior - self._factor.explained_covariance(first, second)

    def at(self, arms: Any) -> Any:
        """The same knowledge about other (N, d) arms, at O(W^2 N)."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self._seen.points)
        other = copy.copy(self)
        other.arms = arms
        other._columns = KernelColumns(self._model.kernel, other.arms, KEPT)
        other._seen = self._seen._replace(arms=arms_of(other.arms, self._seen.points))
        with threads_for(self.rank**2 * len(other.arms)):
            other._factor = self._factor.moved(other._columns.variance, other._columns_of(other._seen), -1)
        return other

    def under(self, kernel: Kernel) -> VaryingPosterior:
        """What is remembered would say this about the pulled arms if f had another kernel."""
        other = VaryingPosterior(VaryingGP(kernel, self.ridge, self._model.rate), self.arms[self.pulled])
        other.recall(
            self._seen.points, self._seen.values, self._seen.noise / self.ridge, self._seen.rounds, self.rounds
        )
        return other

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._columns, twin._factor = self._columns.copy(), self._factor.copy()
        return twin

    def _take(self, arms: Ints, points: Floats, values: Floats | None, factors: Floats | None, std: Floats) -> None:
        """Learn from points that have this std before; where values are given, a round passes with each."""
        ridges = self.ridge * (np.ones(arms.size) if factors is None else factors)
        for i, arm in enumerate(arms.tolist()):
            with threads_for((self.rank + 1) * len(self.arms)):
                value = float(self.predict(points[i : i + 1])[0][0]) if values is None else float(values[i])
                self._observe(arm, points[i], value, float(ridges[i]))
                if values is not None:
                    self.rounds += 1
                    self._factor.fade(math.sqrt(1 - self._model.rate))
            self._forget()
        if values is not None:
            self.claimed_gain += 0.5 * float(np.log1p(std**2 / ridges).sum())

    def _observe(self, arm: int, point: Floats, value: float, ridge: float) -> None:
        """Append a row, of the coming round."""
        row, factor = self.rank, self._factor
        if arm >= 0:
            done = factor.append_one(arm, row, self._columns.of_one(arm), value, ridge)
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
        self._seen = self._seen.and_one(point, arm, value, ridge, self.rounds)

    def _forget(self) -> None:
        """Once twice as many observations as are to be remembered are there, drop the older half."""
        kept = self._model.memory
        if self.rank < 2 * kept:
            return
        self._refactor(self._seen.last(kept))

    def _refactor(self, seen: Seen) -> None:
        """Put these observations in the place of all."""
        rows, apart = len(seen.values), np.abs(seen.rounds[:, None] - seen.rounds)
        with threads_for(rows**2 * (rows + len(self.arms))):
            inner = self._model.kernel(seen.points, seen.points) * (1 - self._model.rate) ** (0.5 * apart)
            columns = self._columns_of(seen)
            self._factor.refactor(np.arange(rows), inner, columns, seen.values, seen.noise, -1)
        self._seen = seen

    def _fading(self, seen: Seen) -> Floats:
        """The correlation of each observation's round with the coming one, (r, 1)."""
        return np.asarray((1 - self._model.rate) ** (0.5 * (self.rounds - seen.rounds)))[:, None]

    def _covariances(self, points: Floats) -> Array:
        """Prior covariance of the observations with (n, d) points in the coming round, (r, n)."""
        columns = self._model.kernel(self._seen.points, points)
        return columns * beside(columns, self._fading(self._seen))

    def _columns_of(self, seen: Seen) -> Columns:
        """Prior covariance of observations with a slab of the arms in the coming round, (r, m)."""
        names, fading = np.arange(len(seen.values)), beside(self._columns.variance, self._fading(seen))
        return lambda slab: self._columns.at(names, seen.points, slab) * fading
