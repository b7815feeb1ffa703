"""Account: what the answers say by themselves, without a model, so that something can be said whatever is fitted.

With t answers of standard deviation s so far, the average of n of them is taken to be off by at most s ln t / sqrt(n).
If their noise is sub-Gaussian, that is so for every point at once from some time on, whatever its constant
(docs/guarantees.md).
"""

from __future__ import annotations

import copy
import math

import numpy as np

from noregret.belief.posterior import Floats


class Account:
    """Averages of the values of each point, and of all since the last power of two."""

    def __init__(self) -> None:
        self._counts: list[int] = []  # of each point
        self._sums: list[float] = []
        self._answers, self._mean, self._squares = 0, 0.0, 0.0  # of all; squares of what differs from the mean
        self._recent, self._recent_sum = 0, 0.0  # since the last power of two

    def copy(self) -> Account:
        """An account of its own with the same past."""
        twin = copy.copy(self)
        twin._counts, twin._sums = self._counts.copy(), self._sums.copy()
        return twin

    def meet(self) -> None:
        """There is one more point."""
        self._counts.append(0)
        self._sums.append(0.0)

    def add(self, number: int, value: float) -> None:
        """One more value of a point."""
        self._counts[number] += 1
        self._sums[number] += value
        if self._answers & (self._answers - 1) == 0:
            self._recent, self._recent_sum = 0, 0.0
        self._recent += 1
        self._recent_sum += value
        self._answers += 1
        off = value - self._mean
        self._mean += off / self._answers
        self._squares += abs(off) * abs(value - self._mean)  # of one sign, but where they overflow

    def count(self, number: int) -> int:
        """How many values a point has."""
        return self._counts[number]

    def refuting(self) -> int | None:
        """The point that is surely better than what was asked since the last power of two, None if there is none.

        Its lower bound is the highest of all, and above the upper bound of the average of those answers.
        """
        counts, means = self._averages()
        with np.errstate(invalid="ignore"):  # values near the largest float
            lower = np.where(counts > 0, means - self._width(counts), -np.inf)
        best = int(np.argmax(lower))
        upper = self._recent_sum / self._recent + float(self._width(np.array(self._recent)))
        return best if lower[best] > upper else None

    def contender(self) -> int:
        """Of the first t^(1/3) points that have a value, the one with the highest upper bound."""
        counts, means = self._averages()
        first = np.flatnonzero(counts)[: math.ceil(math.cbrt(self._answers))]
        return int(first[np.argmax((means + self._width(counts))[first])])

    def _averages(self) -> tuple[Floats, Floats]:
        """How many values each point has, and their average, 0 without any."""
        counts = np.array(self._counts, dtype=float)
        return counts, np.array(self._sums) / np.maximum(counts, 1.0)

    def _width(self, counts: Floats) -> Floats:
        """How far off the averages of so many values may be."""
        spread = math.sqrt(self._squares / self._answers) if self._squares < math.inf else math.inf
        return np.asarray(spread * math.log(self._answers) / np.sqrt(np.maximum(counts, 1.0)))
