"""Arms on a cluster: blocks of them stay on dask workers, each with an ordinary posterior about it.

Three parts, from the workers to the caller:

- worker side: a `Section` is a block of the arms, with the posteriors about it, and answers questions;
- coordinator side: `Blocks` is an (N, d) array whose rows are on the workers, and sends them messages;
- the belief: `BlockPosterior` is a small posterior here with all rewards, one about every block there, and
  `BlockNumbers`, numbers per arm (a mean, a score), computed on the workers when they are read.

A question goes to all workers at once, with the rewards that they do not have yet. A new worker, which lacks earlier
rewards, answers None; it is then sent the small posterior, from which it makes its own.
"""

from __future__ import annotations

import asyncio
import copy
import math
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, NoReturn, Protocol, Self
from weakref import WeakSet

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from noregret.bandits.belief.draws import ROOT_ARMS
from noregret.bandits.belief.pulls import as_pulls, places_among
from noregret.extra import extra
from noregret.gp.arrays import Array, beside, function_like, is_tensor, joined, largest, numpy_of, on_device, top
from noregret.gp.posterior import Copyable, Floats, Ints, Posterior, Rng

# The workers' side

Question = Callable[[Array, Array], Any]
"""Function of the (n,) numbers of a block and its (n, d) arms."""


class News(NamedTuple):
    """Rewards of (n, d) points (None changes the variance only), and the state of the features' generator."""

    points: Floats
    rewards: Floats | None
    noise: Floats | None
    random_state: Any


class Knowledge(NamedTuple):
    """Updates that bring a belief about a block up to date."""

    key: str
    version: int
    """Number of updates so far."""
    news: list[News]
    """The last updates."""
    small: Callable[[], Posterior] | None
    """Function that makes a posterior with all updates on other arms, for sections without the earlier updates."""


@dataclass(frozen=True)
class Read:
    """Attribute of the belief with this key, or the result of one of its methods."""

    key: str
    name: str
    arguments: dict[str, Any] | None = None

    def on(self, section: Section) -> Array:
        """Compute the numbers of a block."""
        attribute = getattr(section.beliefs[self.key][1], self.name)
        return attribute if self.arguments is None else attribute(**self.arguments)

    def cut(self, rows: slice) -> Read:
        """Return the recipe for the block with these rows."""
        return self


@dataclass(frozen=True)
class Call:
    """Function of numbers (one per arm), of (N,) NumPy arrays and of scalars."""

    function: Any
    arguments: tuple[Any, ...]

    def on(self, section: Section) -> Array:
        given = [each.on(section) if isinstance(each, Read | Call) else each for each in self.arguments]
        if not is_tensor(section.arms):
            return self.function(*given)
        there = [beside(section.arms, each) if isinstance(each, np.ndarray) else each for each in given]
        return function_like(self.function, section.arms)(*there)

    def cut(self, rows: slice) -> Call:

        def cut(argument: Any) -> Any:
            if isinstance(argument, Read | Call):
                return argument.cut(rows)
            return argument[rows] if isinstance(argument, np.ndarray) and argument.ndim else argument

        return replace(self, arguments=tuple(cut(each) for each in self.arguments))


class Section:
    """Block of the arms, and the beliefs about it, by key, each with its version.

    When a section moves to another worker, its beliefs do not move; they are made again there.
    """

    def __init__(self, arms: Array) -> None:
        self.arms = arms
        self.beliefs: dict[str, tuple[int, Posterior]] = {}
        self.lock = threading.Lock()  # an abandoned question may still be in progress

    def __reduce__(self) -> tuple[type[Section], tuple[Array]]:
        return Section, (self.arms,)

    def __len__(self) -> int:
        return len(self.arms)

    def __sizeof__(self) -> int:
        """Size in bytes, with some rows of a factor besides the arms, so that dask does not move it needlessly.

        Memory on a device does not count against the worker's memory.
        """
        rows = 0 if on_device(self.arms) else 32
        return 8 * len(self.arms) * (int(self.arms.shape[1]) + rows)

    def catch_up(self, knowledge: Knowledge) -> bool:
        """Bring a belief up to date; False if earlier updates are missing."""
        if knowledge.small is not None:
            self.beliefs[knowledge.key] = knowledge.version, knowledge.small().at(self.arms)
            return True
        first = knowledge.version - len(knowledge.news)
        version, belief = self.beliefs.get(knowledge.key, (-1, None))
        if belief is None or version < first:
            return False
        del self.beliefs[knowledge.key]  # so that it is made again if an update fails
        for news in knowledge.news[version - first :]:
            draw_alike(belief, news.random_state)
            belief.learn(news.points, news.rewards, news.noise)
        self.beliefs[knowledge.key] = knowledge.version, belief
        return True


def draw_alike(belief: Posterior, random_state: Any) -> None:
    """Set the state of the features' generator, so that features are drawn as elsewhere."""
    generator = getattr(belief, "generator", None)
    if generator is not None:
        generator.bit_generator.state = random_state


def built(
    check: Callable[[Any, int], Array], parts: list[Any], starts: list[int], shapes: list[tuple[int, int]]
) -> Section:
    """Section of consecutive blocks, checked against their declared shapes; ``starts`` are their first rows."""
    blocks = [check(part, start) for part, start in zip(parts, starts, strict=True)]
    for block, start, shape in zip(blocks, starts, shapes, strict=True):
        if tuple(block.shape) != shape:
            raise ValueError(
                f"the block of arms from row {start} on has shape {tuple(block.shape)}, but was declared as {shape}: "
                "fix the shape that it is declared with"
            )
    return Section(joined(blocks))


def some(section: Section, rows: Ints) -> Section:
    """Section of some of the rows, (n,)."""
    return Section(section.arms[rows])


def answer(
    section: Section, live: list[str], knowledge: list[Knowledge], numbers: Read | Call | None, question: Question
) -> Any:
    """Answer a question about these numbers; None if a belief cannot be brought up to date.

    Beliefs that are not among the live ones are dropped.
    """
    with section.lock, np.errstate(all="ignore"):  # a formula for some of the numbers may overflow on the others
        section.beliefs = {key: held for key, held in section.beliefs.items() if key in live}
        if not all(section.catch_up(each) for each in knowledge):
            return None
        return question(None if numbers is None else numbers.on(section), section.arms)


def reduced(numbers: Array, arms: Array, by: str) -> float:
    """Largest or smallest of the numbers, or 1 if one of them is true and 0 if none is, by the name of the method."""
    return float(getattr(numbers, by)())


def leading(numbers: Array, arms: Array, count: int) -> tuple[Ints, Floats]:
    """Indices and values of the ``count`` largest numbers."""
    return largest(numbers, count)


def top_of(numbers: Array, arms: Array) -> tuple[int, float, Floats]:
    """Index and value of the largest number (the first nan if there is one), and the arm, (d,)."""
    place, number = top(numbers)
    return place, number, numpy_of(arms[place])


def those_at(numbers: Array, arms: Array, places: Ints | None) -> Floats:
    """Numbers at some indices, all if None, as a NumPy array."""
    return np.asarray(numpy_of(numbers if places is None else numbers[places]))


def rows_at(numbers: None, arms: Array, places: Ints | None) -> Floats:
    """Arms at some indices, all if None, as a NumPy array."""
    return those_at(arms, arms, places)


def places_of(numbers: None, arms: Array, points: Floats) -> Ints:
    """Rows of (n, d) points among the arms; len(arms) or more for points that are not arms."""
    return places_among(arms, points)


# The coordinator's side


class Source(Protocol):
    """Belief about the arms of a cluster."""

    key: str
    version: int
    """Number of updates so far."""

    def knowledge(self, section: int, *, afresh: bool = False) -> Knowledge:
        """Updates that a section is missing, or with ``afresh`` the whole small posterior."""

    def heard(self, section: int) -> None:
        """Note that a section is up to date."""


class Blocks:
    """(N, d) array of arms in sections, each on some worker; dask makes a section again when its worker is lost.

    Rows are transferred one by one, when arms are pulled: ``blocks.rows(places)``.
    """

    def __init__(self, client: Any, sections: Callable[[], list[Any]], sizes: Sequence[int], dimension: int) -> None:
        self._client, self._make_sections, self.sizes = client, sections, list(sizes)
        self.starts = [0, *np.cumsum(sizes).tolist()]
        self.shape = (self.starts.pop(), dimension)
        self.ndim = 2
        self.sources: WeakSet[Any] = WeakSet()
        self._rows: dict[int, Floats] = {}  # rows transferred so far
        self._workers: list[str | None] = []  # address of the worker of each section, if known

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise ValueError("this needs all arms in one place, got arms on a cluster: pass arms.compute() if they fit")

    def __getitem__(self, places: Any) -> Blocks:
        """Some arms, ascending, in sections on the same workers."""
        index = np.asarray(places, dtype=np.intp)
        if (np.diff(index) <= 0).any():
            raise ValueError("of arms on a cluster, only ascending rows can be taken")
        local = self.split(index)
        kept = [i for i, part in enumerate(local) if part is not None]

        def sections() -> list[Any]:
            return [self._client.submit(some, self._sections[i], local[i], pure=False) for i in kept]

        return Blocks(self._client, sections, [len(local[i]) for i in kept], self.shape[1])

    @cached_property
    def _sections(self) -> list[Any]:
        """Dask futures of the sections."""
        return self._make_sections()

    @property
    def first(self) -> Floats:
        """First arm as a NumPy array, (1, d)."""
        return self.rows(np.zeros(1, np.intp))

    def rows(self, places: Ints) -> Floats:
        """Some arms as a NumPy array, (n,) -> (n, d), in any order."""
        new = np.array([place for place in dict.fromkeys(places.tolist()) if place not in self._rows], np.intp)
        if new.size:
            parts = self.ask(None, [], self.each(rows_at, new))
            self._rows |= zip(new.tolist(), self.joined(new, parts), strict=True)
        return np.array([self._rows[place] for place in places.tolist()]).reshape(-1, self.shape[1])

    def note(self, place: int, row: Floats) -> None:
        """Store an arm, (d,), that came with an answer."""
        self._rows[place] = row

    def places(self, points: Floats) -> Ints:
        """Row of each of (n, d) points among the arms, N for points that are not arms."""
        local = np.stack(self.ask(None, [], partial(places_of, points=points)))
        places = np.where(local < np.array(self.sizes)[:, None], local + np.array(self.starts)[:, None], len(self))
        return np.asarray(places.min(axis=0))

    def split(self, places: Ints) -> list[Any]:
        """Local rows of each section, (m,), for some rows of all; None for a section without any."""
        owner = np.searchsorted(self.starts, places, "right") - 1
        parts = [places[owner == i] - start for i, start in enumerate(self.starts)]
        return [part if part.size else None for part in parts]

    def each(self, question: Callable[..., Any], places: Ints) -> list[Any]:
        """Question for each section about its own rows among these; None for a section without any."""
        return [None if local is None else partial(question, places=local) for local in self.split(places)]

    def joined(self, places: Ints, answers: list[Any]) -> Floats:
        """Join the answers about some rows, in the order of the rows."""
        owner = np.searchsorted(self.starts, places, "right") - 1
        order = np.argsort(owner, kind="stable")
        joint = np.concatenate([each for each in answers if each is not None])
        result = np.empty_like(joint)
        result[order] = joint
        return result

    def ask(self, numbers: Read | Call | None, sources: list[Source], question: Question | list[Any]) -> list[Any]:
        """Answers of all sections about these numbers, None for a section without a question.

        Sections of a lost worker are made again on another one, with the whole belief.
        """
        questions = question if isinstance(question, list) else [question] * len(self.sizes)
        answers: list[Any] = [None] * len(questions)
        waiting = [i for i, each in enumerate(questions) if each is not None]
        asked = self._by_message
        while waiting:
            live, calls = [source.key for source in self.sources], []
            for i in waiting:
                knowledge = [source.knowledge(i, afresh=asked == self._by_task) for source in sources]
                own = numbers and numbers.cut(slice(self.starts[i], self.starts[i] + self.sizes[i]))
                calls.append((live, knowledge, own, questions[i]))  # the arguments of `answer` besides the section
            for i, reply in zip(waiting, asked(waiting, calls), strict=True):
                answers[i] = reply
                for source in sources if reply is not None else []:
                    source.heard(i)
            waiting, asked = [i for i in waiting if answers[i] is None], self._by_task
        return answers

    def _by_message(self, sections: list[int], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Answers of these sections by direct messages, in milliseconds; None if a section has left its worker."""
        if not self._workers:
            holders = self._client.who_has(self._sections)
            self._workers = [next(iter(holders.get(section.key, ())), None) for section in self._sections]
        messages = [(self._workers[i], self._sections[i].key, call) for i, call in zip(sections, calls, strict=True)]
        answers: list[Any] = self._client.sync(answers_to, self._client, messages)
        if any(each is None for each in answers):
            self._workers = []
        return answers

    def _by_task(self, sections: list[int], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Answers of these sections by dask tasks; dask makes the sections of a lost worker again."""
        submit = partial(self._client.submit, answer, pure=False)
        tasks = [submit(self._sections[i], *call) for i, call in zip(sections, calls, strict=True)]
        answers: list[Any] = self._client.gather(tasks)
        return answers


def is_dask(arms: Any) -> bool:
    """True for a dask array. Dask is not imported for the test."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(arms, dask_array.Array)


def as_blocks(arms: Any, check: Callable[[Any, int], Any]) -> Blocks:
    """Rows of an (N, d) dask array as sections on the workers of the current client; ValueError if that is impossible.

    Consecutive blocks are joined, so that there are at most as many sections as threads. ``check`` converts a block
    that starts at some row to float64, or raises.
    """
    _check_form(arms)
    client = _client()
    chunks = arms.rechunk({1: -1})
    parts, sizes = chunks.to_delayed().ravel().tolist(), chunks.chunks[0]
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    groups = np.array_split(np.flatnonzero(sizes), min(sum(client.nthreads().values()), np.count_nonzero(sizes)))
    delayed = extra("dask", "cluster").delayed(built, pure=False)
    tasks = [
        delayed(
            check, [parts[i] for i in group], [starts[i] for i in group], [(sizes[i], arms.shape[1]) for i in group]
        )
        for group in groups
    ]
    sections = client.compute(tasks)
    blocks = Blocks(client, lambda: sections, [sum(sizes[i] for i in group) for group in groups], arms.shape[1])
    client.gather([client.submit(len, section, pure=False) for section in sections])  # raises the errors of the checks
    return blocks


def _check_form(arms: Any) -> None:
    """Raise ValueError unless this is an (N, d) array of real numbers with known block sizes."""
    if arms.ndim != 2 or 0 in arms.shape:
        raise ValueError(f"arms must be an (N, d) array, got shape {arms.shape}: numbers go in as numbers[:, None]")
    if any(math.isnan(size) for size in arms.shape):
        raise ValueError(
            "arms must have blocks of known sizes: pass arms.compute_chunk_sizes(), or, of a data frame, "
            "frame.to_dask_array(lengths=True)"
        )
    if arms.dtype.kind not in "fiub" or (arms.dtype.itemsize == 2 and arms.dtype.kind == "f"):
        raise ValueError(
            f"arms must be float64, float32 or whole numbers, got {arms.dtype}: pass arms.astype(float) if it has all "
            "the digits that tell arms apart"
        )


def _client() -> Any:
    """Current dask client; ValueError if there is none, or if it has no workers."""
    distributed = extra("distributed", "cluster")
    try:
        client = distributed.get_client()
    except ValueError:
        raise ValueError(
            "arms that are a dask array need a cluster: make a client first, distributed.Client(), or pass "
            "arms.compute() to have them here"
        ) from None
    if not client.nthreads():
        raise ValueError(
            f"the cluster at {client.scheduler.address} has no workers: start some, and client.wait_for_workers(1)"
        )
    return client


PATIENCE = 0.3
"""Seconds without an answer after which the coordinator checks that the worker is still alive."""


async def answers_to(client: Any, messages: list[tuple[str | None, str, tuple[Any, ...]]]) -> list[Any]:
    """Send messages to workers and return their answers, None for a worker that was lost.

    A message is an address, the key of a section and the arguments of `answer`. It takes a fifth of the time of a task,
    since the scheduler is not involved. An error of a section is raised here.
    """
    return await asyncio.gather(*(_answer_to(client, *message) for message in messages))


async def _answer_to(client: Any, address: str | None, key: str, call: tuple[Any, ...]) -> Any:
    if address is None:
        return None
    running = asyncio.ensure_future(client.run(_answer_at, key, *call, workers=[address], on_error="return"))
    while not (await asyncio.wait([running], timeout=PATIENCE))[0]:
        if address not in await client.nthreads():  # dask would retry for half a minute
            running.cancel()
            return None
    reply = running.result()[address]
    if isinstance(reply, Exception) and not isinstance(reply, OSError | KeyError):
        raise reply
    return None if isinstance(reply, Exception) else reply


async def _answer_at(key: str, *call: Any, dask_worker: Any) -> Any:
    """Answer of the section with this key, computed on one of the worker's threads."""
    section = dask_worker.data[key]
    return await asyncio.get_running_loop().run_in_executor(dask_worker.executors["default"], answer, section, *call)


# The belief


class BlockPosterior(Copyable):
    """Posterior about all arms of a cluster (see `noregret.gp.posterior` for the contract).

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
        numbers = self._blocks.joined(flat, self._ask(self._blocks.each(those_at, flat)))
        return numbers if index.ndim else numbers[0]

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
        leaders = self._ask(partial(leading, count=count))
        places = np.concatenate([start + local for start, (local, _) in zip(self._blocks.starts, leaders, strict=True)])
        numbers = np.concatenate([numbers for _, numbers in leaders])
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
