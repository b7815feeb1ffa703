"""Replay: an `Optimizer` led to where a history has led, so that what it says depends on nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np

from noregret.optimizer.calibration import Calibrated, Calibration
from noregret.optimizer.fitting.evidence import Evidence
from noregret.optimizer.optimizer import Goal, Optimizer


@dataclass(frozen=True)
class Remembering(Calibration):
    """A calibration that fits the same evidence only once: optimizers that are told one history after another share it.

    What was fitted depends on the evidence alone, so remembering changes nothing but the time it takes.
    """

    _kept: dict[bytes, Calibrated] = field(default_factory=dict, repr=False, compare=False)

    def calibrated(self, evidence: Evidence) -> Calibrated:
        key = sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in astuple(evidence))).digest()
        found = self._kept.get(key) or super().calibrated(evidence)
        self._kept.clear()
        self._kept[key] = found
        return found


Answer = tuple[Any, float | None, *tuple[Any, ...]]
"""Params, the value that was measured there, None for a failure, and what else `Optimizer.tell` takes."""


class Replay:
    """Leads an optimizer to where a history has led, from where the last one was led to if that was on the way.

    What it says depends on the history alone (up to rounding), so going on changes nothing but the time it takes.

    Parameters
    ----------
    space, goal, seed
        As `Optimizer` takes them.
    """

    def __init__(self, space: Any, goal: Goal, seed: int) -> None:
        self._arguments = space, goal, seed
        self._lock, self._calibration = Lock(), Remembering()
        self._begin()

    def __reduce__(self) -> tuple[type[Replay], tuple[Any, Goal, int]]:
        return Replay, self._arguments

    def __call__(self, answers: Sequence[Answer], pending: Iterable[Any] = (), settled: int | None = None) -> Optimizer:
        """An optimizer that is told everything.

        Parameters
        ----------
        answers : sequence of (params, value, ...)
            In the order in which they came.
        pending : iterable of params
            What others are measuring.
        settled : int, optional
            How many of the first answers will stay the first, if not all will.
        """
        with self._lock:
            self._go_on(answers[:settled])
            optimizer, known = copy(self._optimizer), len(self._told)
        tell_all(optimizer, answers[known:])
        for params in pending:
            optimizer.expect(params)
        return optimizer

    def _begin(self) -> None:
        space, goal, seed = self._arguments
        self._optimizer = Optimizer(space, goal=goal, rng=seed, calibration=self._calibration)
        self._told: list[Answer] = []

    def _go_on(self, answers: Sequence[Answer]) -> None:
        """Tell the optimizer that is kept what is new, and let it draw its conclusions before it is copied."""
        if self._told != answers[: len(self._told)]:
            self._begin()
        tell_all(self._optimizer, answers[len(self._told) :])
        self._told = list(answers)
        if sum(value is not None for _, value, *_ in answers) > 1:
            self._optimizer.calibrated  # noqa: B018


def tell_all(optimizer: Optimizer, answers: Iterable[Answer]) -> None:
    """Tell an optimizer these answers."""
    for params, value, *more in answers:
        if value is None:
            optimizer.fail(params)
        else:
            optimizer.tell(params, value, *more)
