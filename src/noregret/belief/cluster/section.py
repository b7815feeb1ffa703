"""What a worker holds: a block of the arms, and what is believed about it."""

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
"""What is wanted of the (n,) numbers of a block, given them and its (n, d) arms."""


class News(NamedTuple):
    """Rewards of (n, d) points, None for a change of the variance only, and the state of the features' generator."""

    points: Floats
    rewards: Floats | None
    noise: Floats | None
    random_state: Any


class Knowledge(NamedTuple):
    """What brings a belief about a block up to date."""

    key: str
    version: int
    """How many news there were in all."""
    news: list[News]
    """The last of them."""
    small: Callable[[], Posterior] | None
    """Makes a posterior of other arms that knows all of them, for those who do not know those before."""


@dataclass(frozen=True)
class Read:
    """An attribute of a belief, by the key of the belief; or what a method of it returns."""

    key: str
    name: str
    arguments: dict[str, Any] | None = None

    def on(self, section: Section) -> Array:
        """Its numbers on a block."""
        found = getattr(section.beliefs[self.key][1], self.name)
        return found if self.arguments is None else found(**self.arguments)

    def cut(self, rows: slice) -> Read:
        """The same for the block with these of all rows."""
        return self


@dataclass(frozen=True)
class Call:
    """A function of numbers, one per arm, of (N,) arrays of NumPy, and of scalars."""

    function: Any
    arguments: tuple[Any, ...]

    def on(self, section: Section) -> Array:
        """Its numbers on a block."""
        given = [each.on(section) if isinstance(each, Read | Call) else each for each in self.arguments]
        if not is_tensor(section.arms):
            return self.function(*given)
        there = [beside(section.arms, each) if isinstance(each, np.ndarray) else each for each in given]
        return function_like(self.function, section.arms)(*there)

    def cut(self, rows: slice) -> Call:
        """The same for the block with these of all rows."""
        return replace(self, arguments=tuple(_cut(each, rows) for each in self.arguments))


def _cut(argument: Any, rows: slice) -> Any:
    if isinstance(argument, Read | Call):
        return argument.cut(rows)
    return argument[rows] if isinstance(argument, np.ndarray) and argument.ndim else argument


class Section:
    """A block of the arms, and by key the version of each belief about it, and the belief.

    When it is moved to another worker, its beliefs stay behind: they are made again there.
    """

    def __init__(self, arms: Array) -> None:
        self.arms = arms
        self.beliefs: dict[str, tuple[int, Posterior]] = {}
        self.lock = threading.Lock()  # a question that nobody waits for any more may still be worked on

    def __reduce__(self) -> tuple[type[Section], tuple[Array]]:
        return Section, (self.arms,)

    def __len__(self) -> int:
        return len(self.arms)

    def __sizeof__(self) -> int:
        """Bytes, so that it is not moved lightly: those of the arms, and of some rows of a factor beside them.

        On a device they are not of the memory that a worker is given.
        """
        rows = 0 if on_device(self.arms) else 32
        return 8 * len(self.arms) * (int(self.arms.shape[1]) + rows)

    def catch_up(self, knowledge: Knowledge) -> bool:
        """Bring a belief up to date; False if more must be known than is given."""
        if knowledge.small is not None:
            self.beliefs[knowledge.key] = knowledge.version, knowledge.small().at(self.arms)
            return True
        first = knowledge.version - len(knowledge.news)
        version, belief = self.beliefs.get(knowledge.key, (-1, None))
        if belief is None or version < first:
            return False
        del self.beliefs[knowledge.key]  # it is made anew, should it fail half-way
        for news in knowledge.news[version - first :]:
            draw_alike(belief, news.random_state)
            belief.learn(news.points, news.rewards, news.noise)
        self.beliefs[knowledge.key] = knowledge.version, belief
        return True


def draw_alike(belief: Posterior, random_state: Any) -> None:
    """Let the features of a belief be drawn as they were where the generator had this state."""
    generator = getattr(belief, "generator", None)
    if generator is not None:
        generator.bit_generator.state = random_state


def built(
    check: Callable[[Any, int], Array], parts: list[Any], starts: list[int], shapes: list[tuple[int, int]]
) -> Section:
    """A section of blocks that lie one behind the other, which must have these shapes; each starts at a row of all."""
    blocks = [check(part, start) for part, start in zip(parts, starts, strict=True)]
    for block, start, shape in zip(blocks, starts, shapes, strict=True):
        if tuple(block.shape) != shape:
            raise ValueError(
                f"the block of arms from row {start} on has shape {tuple(block.shape)}, but was declared as {shape}: "
                "mend the shape that it is declared with"
            )
    return Section(joined(blocks))


def some(section: Section, rows: Ints) -> Section:
    """A section of some of the rows, (n,)."""
    return Section(section.arms[rows])


def answer(
    section: Section, live: list[str], knowledge: list[Knowledge], numbers: Read | Call | None, question: Question
) -> Any:
    """What is wanted of these numbers; None if a belief cannot be brought up to date.

    Beliefs that are not among the live ones are dropped.
    """
    with section.lock, np.errstate(all="ignore"):  # of formulas for parts of the numbers, others may overflow
        section.beliefs = {key: held for key, held in section.beliefs.items() if key in live}
        if not all(section.catch_up(each) for each in knowledge):
            return None
        return question(None if numbers is None else numbers.on(section), section.arms)


def extreme(numbers: Array, arms: Array, of: str) -> float:
    """The largest or the smallest of the numbers, by the name of the method that finds it."""
    return float(getattr(numbers, of)())


def any_of(numbers: Array, arms: Array) -> bool:
    """Whether one of them is true."""
    return bool(numbers.any())


def leading(numbers: Array, arms: Array, count: int) -> tuple[Ints, Floats]:
    """The places of so many of the largest numbers, and these."""
    return largest(numbers, count)


def top_of(numbers: Array, arms: Array) -> tuple[int, float, Floats]:
    """The place of the largest number, the first nan if there is one, the number there, and this arm, (d,)."""
    place, number = top(numbers)
    return place, number, numpy_of(arms[place])


def those_at(numbers: Array, arms: Array, places: Ints | None) -> Floats:
    """The numbers in some places, all if None, as NumPy's."""
    return np.asarray(numpy_of(numbers if places is None else numbers[places]))


def rows_at(numbers: None, arms: Array, places: Ints | None) -> Floats:
    """The arms in some places, all if None, as NumPy's."""
    return those_at(arms, arms, places)


def places_of(numbers: None, arms: Array, points: Floats) -> Ints:
    """The places of (n, d) points among the arms; those of the others are beyond."""
    return places_among(arms, points)
