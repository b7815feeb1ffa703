"""A belief about arms on a cluster: what is small is here, what is as long as the arms is on the workers."""

from __future__ import annotations

import copy
import uuid
from functools import partial
from typing import Any, Self

import numpy as np

from noregret.belief.arrays import numpy_of
from noregret.belief.cluster.blocks import Blocks
from noregret.belief.cluster.numbers import BlockNumbers
from noregret.belief.cluster.section import Knowledge, News, Read, draw_alike
from noregret.belief.numerics.draws import ROOT_ARMS
from noregret.belief.posterior import Floats, Ints, Posterior, Rng, as_pulls
from noregret.extra import extra


class BlockPosterior:
    """What a small posterior knows, about all arms of a cluster (see `noregret.belief.posterior` for the contract).

    The ``small`` one is about one arm, and learns every reward as that of a point. All that is not as long as the arms
    is asked of it. Each section makes its own from it once, and then learns what is new. ``mean`` and ``std`` are
    `BlockNumbers`, which must be asked before the belief learns more.
    """

    def __init__(self, small: Any, arms: Blocks, points: Floats | None = None) -> None:
        self._small, self.arms = small, arms
        self._pulled: dict[int, None] = {}
        self._all: Posterior | None = None  # about all arms, here, once somebody draws on few
        self._enter()
        if points is not None:
            self._note_pulls(points)

    def _enter(self) -> None:
        self.key, self.version = uuid.uuid4().hex, 0
        self._news: list[News] = []  # the last ones
        self._heard: dict[int, int] = {}  # of each section, the version it has
        self.arms.sources.add(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._small, name)

    @property
    def mean(self) -> Any:
        """Posterior mean of every arm, (N,)."""
        return self._numbers("mean")

    @property
    def std(self) -> Any:
        """Posterior standard deviation of every arm, (N,)."""
        return self._numbers("std")

    @property
    def rounds(self) -> int:
        """The rewards received."""
        return int(self._small.rounds)

    @rounds.setter
    def rounds(self, rounds: int) -> None:
        self._small.rounds = rounds
        self._heard.clear()

    @property
    def pulled(self) -> Ints:
        """The distinct arms pulled so far, in order of their first pull."""
        return np.array(list(self._pulled), np.intp)

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in one or many rewards; None changes the variance only; ``noise`` scales each one's ridge."""
        places, values, factors = as_pulls(arms, rewards, noise, len(self.arms), self._small.largest_reward)
        if places.size:
            news = self._tell(self.arms.rows(places), values, factors)
            self._pulled |= dict.fromkeys(places.tolist())
            if self._all is not None:
                draw_alike(self._all, news.random_state)
                self._all.update(places, values, noise=factors)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points; those that are arms count as pulls of these."""
        points = np.array(numpy_of(points), dtype=float).reshape(-1, self.arms.shape[1])
        self._tell(points, rewards, noise)
        self._note_pulls(points)
        self._all = None

    def predict(self, points: Any) -> tuple[Floats, Floats]:
        """Mean and std, each (n,), at any (n, d) points."""
        mean, std = self._small.predict(points)
        return mean, std

    def sample(self, rng: Rng) -> Any:
        """One joint draw on all arms, (N,): on few arms it is made here."""
        if len(self.arms) <= ROOT_ARMS:
            if self._all is None:
                self._all = self._small.copy().at(self.arms.rows(np.arange(len(self.arms))))
            return self._all.sample(rng)
        stream = copy.deepcopy(rng)
        self._small.sample(rng, among=len(self.arms))  # which draws as many numbers as the workers will
        return self._numbers("sample", {"rng": stream, "among": len(self.arms)})

    def covariance(self, first: Ints, second: Ints) -> Floats:
        """Posterior covariance of some arms with others, (n,), (m,) -> (n, m)."""
        points = self._small.at(self.arms.rows(np.concatenate([first, second])))
        covariance: Floats = points.covariance(np.arange(len(first)), len(first) + np.arange(len(second)))
        return covariance

    def at(self, arms: Any) -> Any:
        """The same knowledge about other (N, d) arms."""
        return self._small.at(arms)

    def copy(self) -> Self:
        """An independent posterior with the same knowledge; the sections make theirs again."""
        twin = copy.copy(self)
        twin._small, twin._all = self._small.copy(), None if self._all is None else self._all.copy()
        twin._pulled = self._pulled.copy()
        twin._enter()
        return twin

    def knowledge(self, section: int, *, afresh: bool = False) -> Knowledge:
        """What brings a section up to date: what it has not heard of, or afresh all that is known."""
        if afresh or section not in self._heard:
            pickle = extra("distributed.protocol.pickle", "cluster")
            return Knowledge(self.key, self.version, [], partial(pickle.loads, pickle.dumps(self._small)))
        unheard = self.version - self._heard[section]
        return Knowledge(self.key, self.version, self._news[len(self._news) - unheard :], None)

    def heard(self, section: int) -> None:
        """Note that a section is up to date; news that all have heard are dropped."""
        self._heard[section] = self.version
        oldest = min(self._heard.values()) if len(self._heard) == len(self.arms.sizes) else 0
        self._news = self._news[len(self._news) - min(self.version - oldest, len(self._news)) :]

    def _tell(self, points: Floats, rewards: Floats | None, noise: Floats | None) -> News:
        """Learn rewards of points here, and note them for the sections."""
        generator = getattr(self._small, "generator", None)
        news = News(points, rewards, noise, generator and generator.bit_generator.state)
        self._small.learn(points, rewards, noise)
        self._news, self.version = [*self._news, news], self.version + 1
        return news

    def _note_pulls(self, points: Floats) -> None:
        """Count those of the (n, d) points that are arms as pulled."""
        if len(points):
            places = self.arms.places(points)
            self._pulled |= dict.fromkeys(places[places < len(self.arms)].tolist())

    def _numbers(self, name: str, arguments: dict[str, Any] | None = None) -> BlockNumbers:
        return BlockNumbers(self.arms, Read(self.key, name, arguments), {self: self.version})
