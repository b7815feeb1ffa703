"""Coordinator side of a cluster: an (N, d) array of arms whose rows are on the workers, and messages to them."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NoReturn, Protocol
from weakref import WeakSet

import numpy as np

from noregret.belief.cluster.section import (
    Call,
    Knowledge,
    Question,
    Read,
    answer,
    built,
    places_of,
    rows_at,
    some,
)
from noregret.belief.posterior import Floats, Ints
from noregret.extra import extra


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
            found = self.ask(None, [], self.each(rows_at, new))
            self._rows |= zip(new.tolist(), self.joined(new, found), strict=True)
        return np.array([self._rows[place] for place in places.tolist()]).reshape(-1, self.shape[1])

    def note(self, place: int, row: Floats) -> None:
        """Store an arm, (d,), that came with an answer."""
        self._rows[place] = row

    def places(self, points: Floats) -> Ints:
        """Row of each of (n, d) points among the arms, N for points that are not arms."""
        found = np.stack(self.ask(None, [], partial(places_of, points=points)))
        places = np.where(found < np.array(self.sizes)[:, None], found + np.array(self.starts)[:, None], len(self))
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
        found = np.concatenate([each for each in answers if each is not None])
        result = np.empty_like(found)
        result[order] = found
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
            for i, found in zip(waiting, asked(waiting, calls), strict=True):
                answers[i] = found
                for source in sources if found is not None else []:
                    source.heard(i)
            waiting, asked = [i for i in waiting if answers[i] is None], self._by_task
        return answers

    def _by_message(self, sections: list[int], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Answers of these sections by direct messages, in milliseconds; None if a section has left its worker."""
        if not self._workers:
            holders = self._client.who_has(self._sections)
            self._workers = [next(iter(holders.get(section.key, ())), None) for section in self._sections]
        messages = [(self._workers[i], self._sections[i].key, call) for i, call in zip(sections, calls, strict=True)]
        found: list[Any] = self._client.sync(answers_to, self._client, messages)
        if any(each is None for each in found):
            self._workers = []
        return found

    def _by_task(self, sections: list[int], calls: list[tuple[Any, ...]]) -> list[Any]:
        """Answers of these sections by dask tasks; dask makes the sections of a lost worker again."""
        submit = partial(self._client.submit, answer, pure=False)
        tasks = [submit(self._sections[i], *call) for i, call in zip(sections, calls, strict=True)]
        found: list[Any] = self._client.gather(tasks)
        return found


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
    found = running.result()[address]
    if isinstance(found, Exception) and not isinstance(found, OSError | KeyError):
        raise found
    return None if isinstance(found, Exception) else found


async def _answer_at(key: str, *call: Any, dask_worker: Any) -> Any:
    """Answer of the section with this key, computed on one of the worker's threads."""
    section = dask_worker.data[key]
    return await asyncio.get_running_loop().run_in_executor(dask_worker.executors["default"], answer, section, *call)
