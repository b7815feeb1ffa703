"""One number per arm, on a cluster: computed on the workers when something is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from noregret.belief.cluster.blocks import Blocks, Source
from noregret.belief.cluster.section import (
    Call,
    Question,
    Read,
    any_of,
    extreme,
    leading,
    those_at,
    top_of,
)
from noregret.belief.posterior import Floats, Ints


class BlockNumbers(NDArrayOperatorsMixin):
    """An (N,) array of numbers, one per arm of a cluster, that knows how to compute itself where the arms are.

    Operators, comparisons and NumPy's ufuncs give another one; nothing is computed. What is small (the largest, the
    place of it, the numbers at some arms) is asked of all workers at once. ``np.asarray`` brings all numbers here.
    They are those of the belief as it was, so they must be asked for before it learns more.
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
        """The largest."""
        return float(np.max(self._ask(partial(extreme, of="max"))))

    def min(self) -> float:
        """The smallest."""
        return float(np.min(self._ask(partial(extreme, of="min"))))

    def any(self) -> bool:
        """Whether one of them is true."""
        return any(self._ask(any_of))

    def argmax(self) -> int:
        """The place of the largest, the lowest on ties, or of the first nan."""
        return self.top()[0]

    def top(self) -> tuple[int, float]:
        """The place of the largest, the lowest on ties, or of the first nan; and the number there."""
        places, numbers, rows = zip(*self._ask(top_of), strict=True)
        best = int(np.argmax(numbers))
        place = self._blocks.starts[best] + places[best]
        self._blocks.note(place, rows[best])  # it is likely to be pulled
        return place, numbers[best]

    def largest(self, count: int) -> tuple[Ints, Floats]:
        """The places of so many of the largest, in falling order, the lowest place first on ties; and the numbers."""
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
        """The answers of all sections, to one question or each to its own; None where the question is."""
        if any(source.version != version for source, version in self._sources.items()):
            raise ValueError("the belief has learnt since: ask for what is needed of its mean and std before it does")
        return self._blocks.ask(self._recipe, list(self._sources), question)
