"""Worker side of a cluster: a block of the arms, the beliefs about it, and the questions it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from noregret.belief.arrays import (
    Array,
    beside,
    function_like,
    is_tensor,
    joined,
    largest,
    numpy_of,
    on_device,
    top,
)
from noregret.belief.posterior import Floats, Ints, Posterior
from noregret.belief.pulls import places_among

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
        found = getattr(section.beliefs[self.key][1], self.name)
        return found if self.arguments is None else found(**self.arguments)

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
