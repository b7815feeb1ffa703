"""Progress of a running command: its intermediate results, and whether the rest of the run is worth its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noregret.optimizer import Fidelity, Int, Reading
from noregret.tune.study.results import Steps

FIRST_SECONDS, LONGEST_SECONDS, PART = 0.2, 2.0, 0.1
"""Time from the start to the first look at the output, and from one look to the next: a part of the time so far, at
most the longest. A look takes about 30 ms of processor time if results are found by a regular expression."""


class Progress:
    """Intermediate results of one run.

    Parameters
    ----------
    levels : Fidelity
        Steps are values of its parameter; smaller ones are ignored, and larger ones count as the highest.
    result : Steps
        Finds results and their steps in the output.
    asked : mapping
        The fidelity at which the trial is to be measured.
    is_told : bool
        True if the command knows that, and ends by itself.
    is_hopeless : callable
        Decides from the results so far whether the run is stopped; called a few times in a run.
    """

    def __init__(
        self,
        levels: Fidelity,
        result: Steps,
        asked: Mapping[str, Any],
        is_told: bool,
        is_hopeless: Callable[[Sequence[Reading]], bool],
    ) -> None:
        self.levels, self._result, self._asked = levels, result, asked[levels.name]
        self._is_told, self._is_hopeless = is_told, is_hopeless
        self._kept: list[Reading] = []
        self._next, self._position, self._judged = FIRST_SECONDS, 0, 0
        self.last: Reading | None = None
        self.is_stopped = False
        """True if the run was found not to be worth its time."""

    @property
    def reports(self) -> tuple[Reading, ...]:
        """The first result at or above each of a few fidelities, and the last one."""
        is_more = self.last is not None and self.last not in self._kept
        return (*self._kept, *([self.last] if self.last is not None and is_more else []))

    @property
    def reached(self) -> dict[str, Any]:
        """Fidelity of the last result."""
        assert self.last is not None
        assert self.last.step is not None
        return {self.levels.name: self.last.step}

    def is_over(self, seconds: float, new_lines: Callable[[int], tuple[str, int]]) -> bool:
        """Return True if the run is to be ended: stopped, or at the asked fidelity. Reads new lines if it is time.

        Parameters
        ----------
        seconds : float
            Duration of the run so far.
        new_lines : callable
            Complete lines of output from a position on, and the position of their end.
        """
        if seconds < self._next:
            return False
        self._next = seconds + min(FIRST_SECONDS + PART * seconds, LONGEST_SECONDS)
        text, self._position = new_lines(self._position)
        if text:
            self.read(text)
        if self.last is None:
            return False
        if self.reached[self.levels.name] >= self._asked:
            return not self._is_told
        rungs = self.levels.rung(self.reached)
        if rungs > self._judged:
            self._judged, self.is_stopped = rungs, self._is_hopeless(self.reports)
        return self.is_stopped

    def read(self, text: str) -> None:
        """Take in the results in these lines."""
        parameter = self.levels.parameter
        for step, value in ((reading.step or 0.0, reading.value) for reading in self._result.steps(text)):
            reached = min(math.floor(step) if isinstance(parameter, Int) else step, parameter.high)
            if reached < parameter.low or (self.last is not None and reached <= self.reached[self.levels.name]):
                continue
            known = 0 if self.last is None else self.levels.rung(self.reached)
            self.last = Reading(value, step=reached)
            if self.levels.rung(self.reached) > known:
                self._kept.append(self.last)
