"""The belief of any model on recent rewards."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from noregret.belief.arms import as_arms, as_points
from noregret.belief.arrays import numpy_of
from noregret.belief.cluster.belief import BlockPosterior
from noregret.belief.cluster.blocks import Blocks
from noregret.belief.drift.memory import Discount, Memory
from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng, as_pulls
from noregret.belief.pulls import arms_of


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
    >>> from noregret.belief.drift.memory import Window
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


class DiscountedPosterior:
    """The belief of `Discounted`: the mean of one posterior, all else of another that discounts twice as fast."""

    def __init__(self, once: RecentPosterior, twice: RecentPosterior) -> None:
        self._once, self._twice = once, twice

    def __getattr__(self, name: str) -> Any:
        if name in ("_once", "_twice"):  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._twice, name)

    @property
    def mean(self) -> Floats:
        """Posterior mean of every arm, (N,)."""
        mean: Floats = self._once.mean
        return mean

    @property
    def misfit(self) -> float:
        """How ill the rewards fit the prior, each with the weight that it has in the mean."""
        misfit: float = self._once.misfit
        return misfit

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each ridge."""
        for part in (self._once, self._twice):
            part.update(arms, rewards, noise=noise)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points; None changes the variance only; ``noise`` scales each ridge."""
        for part in (self._once, self._twice):
            part.learn(points, rewards, noise)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        return self._once.predict(points)[0], self._twice.predict(points)[1]

    def sample(self, rng: Rng) -> Floats:
        """One function with this mean and covariance, jointly on all arms, (N,)."""
        draw: Floats = self.mean + (self._twice.sample(rng) - self._twice.mean)
        return draw

    def at(self, arms: Any) -> Any:
        """The same knowledge about other (N, d) arms."""
        arms = as_arms(arms)
        if isinstance(arms, Blocks):
            return BlockPosterior(self.at(arms.first), arms, self._once.points)
        return DiscountedPosterior(self._once.at(arms), self._twice.at(arms))

    def copy(self) -> DiscountedPosterior:
        """An independent posterior with the same knowledge."""
        return DiscountedPosterior(self._once.copy(), self._twice.copy())


def _tell(belief: Posterior, log: _Log) -> None:
    """Let a belief learn all rewards of a log."""
    if not len(log.rewards):
        return
    noise = None if (log.noise == 1).all() else log.noise
    if (log.arms >= 0).all():
        belief.update(log.arms, log.rewards, noise=noise)
    else:
        belief.learn(log.points, log.rewards, noise)
