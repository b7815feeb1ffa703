"""Posterior about arms on a cluster, and its numbers per arm: small arrays are here, long ones on the workers."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from noregret.belief.arrays import numpy_of
from noregret.belief.cluster.blocks import Blocks, Source
from noregret.belief.cluster.section import (
    Call,
    Knowledge,
    News,
    Question,
    Read,
    draw_alike,
    leading,
    reduced,
    those_at,
    top_of,
)
from noregret.belief.numerics.draws import ROOT_ARMS
from noregret.belief.posterior import Copyable, Floats, Ints, Posterior, Rng, as_pulls
from noregret.extra import extra


class BlockPosterior(Copyable):
    """Posterior about all arms of a cluster (see `noregret.belief.posterior` for the contract).

    The ``small`` posterior is about one arm, and learns every reward as that of a point. It provides everything that is
    not as long as the arms. Each section makes its own posterior from it once, and then learns new rewards. ``mean``
    and ``std`` are `BlockNumbers`, which must be read before the next update.
    """

    OWN = ("_small", "_all", "_pulled")

    def __init__(self, small: Any, arms: Blocks, points: Floats | None = None) -> None:
        self._small, self.arms = small, arms
        self._pulled: dict[int, None] = {}
        self._all: Posterior | None = None  # about all arms, here, for draws on few arms, made on demand
        self._enter()
        if points is not None:
            self._note_pulls(points)

    def _enter(self) -> None:
        self.key, self.version = uuid.uuid4().hex, 0
        self._news: list[News] = []  # the last updates
        self._heard: dict[int, int] = {}  # version of each section
        self.arms.sources.add(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self._small, name)

    @property
    def mean(self) -> Any:
        return self._numbers("mean")

    @property
    def std(self) -> Any:
        return self._numbers("std")

    @property
    def rounds(self) -> int:
        return int(self._small.rounds)

    @rounds.setter
    def rounds(self, rounds: int) -> None:
        self._small.rounds = rounds
        self._heard.clear()

    @property
    def pulled(self) -> Ints:
        return np.array(list(self._pulled), np.intp)

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        places, values, factors = as_pulls(arms, rewards, noise, len(self.arms), self._small.largest_reward)
        if places.size:
            news = self._tell(self.arms.rows(places), values, factors)
            self._pulled |= dict.fromkeys(places.tolist())
            if self._all is not None:
                draw_alike(self._all, news.random_state)
                self._all.update(places, values, noise=factors)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        points = np.array(numpy_of(points), dtype=float).reshape(-1, self.arms.shape[1])
        self._tell(points, rewards, noise)
        self._note_pulls(points)
        self._all = None

    def sample(self, rng: Rng) -> Any:
        """Joint draw on all arms, (N,); on few arms it is made here."""
        if len(self.arms) <= ROOT_ARMS:
            if self._all is None:
                self._all = self._small.copy().at(self.arms.rows(np.arange(len(self.arms))))
            return self._all.sample(rng)
        stream = copy.deepcopy(rng)
        self._small.sample(rng, among=len(self.arms))  # advances rng as much as the workers do
        return self._numbers("sample", {"rng": stream, "among": len(self.arms)})

    def covariance(self, first: Ints, second: Ints) -> Floats:
        points = self._small.at(self.arms.rows(np.concatenate([first, second])))
        covariance: Floats = points.covariance(np.arange(len(first)), len(first) + np.arange(len(second)))
        return covariance

    def copy(self) -> Self:
        """Return an independent posterior with the same knowledge; the sections make theirs again."""
        twin = super().copy()
        twin._enter()
        return twin

    def knowledge(self, section: int, *, afresh: bool = False) -> Knowledge:
        if afresh or section not in self._heard:
            pickle = extra("distributed.protocol.pickle", "cluster")
            return Knowledge(self.key, self.version, [], partial(pickle.loads, pickle.dumps(self._small)))
        unheard = self.version - self._heard[section]
        return Knowledge(self.key, self.version, self._news[len(self._news) - unheard :], None)

    def heard(self, section: int) -> None:
        """Note that a section is up to date; updates that all sections have are dropped."""
        self._heard[section] = self.version
        oldest = min(self._heard.values()) if len(self._heard) == len(self.arms.sizes) else 0
        self._news = self._news[len(self._news) - min(self.version - oldest, len(self._news)) :]

    def _tell(self, points: Floats, rewards: Floats | None, noise: Floats | None) -> News:
        """Learn rewards of points here, and queue them for the sections."""
        generator = getattr(self._small, "generator", None)
        news = News(points, rewards, noise, generator and generator.bit_generator.state)
        self._small.learn(points, rewards, noise)
        self._news, self.version = [*self._news, news], self.version + 1
        return news

    def _note_pulls(self, points: Floats) -> None:
        """Count the (n, d) points that equal arms as pulled."""
        if len(points):
            places = self.arms.places(points)
            self._pulled |= dict.fromkeys(places[places < len(self.arms)].tolist())

    def _numbers(self, name: str, arguments: dict[str, Any] | None = None) -> BlockNumbers:
        return BlockNumbers(self.arms, Read(self.key, name, arguments), {self: self.version})


class BlockNumbers(NDArrayOperatorsMixin):
    """Lazy (N,) array of numbers, one per arm of a cluster, computed on the workers.

    Operators, comparisons and NumPy's ufuncs return another one; nothing is computed. Small results (the largest
    number, its index, the numbers at some arms) are requested from all workers at once. ``np.asarray`` transfers all
    numbers. They belong to one version of the belief, so they must be read before its next update.
    """

    def __init__(self, blocks: Blocks, recipe: Read | Call, sources: Mapping[Source, int]) -> None:
        self._blocks, self._recipe, self._sources = blocks, recipe, sources

    @property
    def shape(self) -> tuple[int]:
        """(N,)."""
        return (len(self._blocks),)

    @property
    def size(self) -> int:
        """N."""
        return len(self._blocks)

    def __len__(self) -> int:
        return len(self._blocks)

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **options: Any) -> Any:
        return NotImplemented if method != "__call__" or options else self._applied(function, given)

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        return self._applied(function, given) if function is np.where and not options else NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.asarray(np.concatenate(self._ask(partial(those_at, places=None))), dtype=dtype)

    def __getitem__(self, places: Any) -> Any:
        if isinstance(places, slice):
            return self if places.indices(len(self)) == (0, len(self), 1) else self[np.arange(len(self))[places]]
        index = np.asarray(places)
        flat = index.reshape(-1) % len(self)
        if not flat.size:
            return np.empty(0)
        found = self._blocks.joined(flat, self._ask(self._blocks.each(those_at, flat)))
        return found if index.ndim else found[0]

    def max(self) -> float:
        """Largest number."""
        return float(np.max(self._ask(partial(reduced, by="max"))))

    def min(self) -> float:
        """Smallest number."""
        return float(np.min(self._ask(partial(reduced, by="min"))))

    def any(self) -> bool:
        """True if one of the numbers is true."""
        return any(self._ask(partial(reduced, by="any")))

    def argmax(self) -> int:
        """Index of the largest number, the lowest on ties, or of the first nan."""
        return self.top()[0]

    def top(self) -> tuple[int, float]:
        """Index and value of the largest number, the lowest index on ties, or of the first nan."""
        places, numbers, rows = zip(*self._ask(top_of), strict=True)
        best = int(np.argmax(numbers))
        place = self._blocks.starts[best] + places[best]
        self._blocks.note(place, rows[best])  # it is likely to be pulled
        return place, numbers[best]

    def largest(self, count: int) -> tuple[Ints, Floats]:
        """Indices and values of the ``count`` largest numbers, in decreasing order, the lowest index first on ties."""
        found = self._ask(partial(leading, count=count))
        places = np.concatenate([start + local for start, (local, _) in zip(self._blocks.starts, found, strict=True)])
        numbers = np.concatenate([numbers for _, numbers in found])
        order = np.argsort(-numbers, kind="stable")[:count]
        return places[order], numbers[order]

    def _applied(self, function: Any, given: Any) -> BlockNumbers:
        others = [each for each in given if isinstance(each, BlockNumbers)]
        if any(each._blocks is not self._blocks for each in others):
            raise ValueError("numbers of different arms do not go together")
        sources = {source: version for each in others for source, version in each._sources.items()}
        recipes = tuple(each._recipe if isinstance(each, BlockNumbers) else each for each in given)
        return BlockNumbers(self._blocks, Call(function, recipes), sources)

    def _ask(self, question: Question | list[Any]) -> list[Any]:
        """Answers of all sections, to one question or each to its own; None for a question None."""
        if any(source.version != version for source, version in self._sources.items()):
            raise ValueError("the belief was updated since: read its mean and std before the next update")
        return self._blocks.ask(self._recipe, list(self._sources), question)
