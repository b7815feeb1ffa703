"""Replay: an `Optimizer` brought to where a history has led, so that what it says depends on nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from noregret.optimizer.calibration import Calibrated, Calibration
from noregret.optimizer.evidence import Evidence
from noregret.optimizer.optimizer import Optimizer


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


def replay(
    space: Any,
    goal: Literal["minimize", "maximize"],
    seed: int,
    answers: Iterable[tuple[Any, float | None]],
    pending: Iterable[Any] = (),
    calibration: Calibration | None = None,
) -> Optimizer:
    """A new optimizer that is told everything.

    Parameters
    ----------
    space, goal, seed, calibration
        As `Optimizer` takes them.
    answers : iterable of (params, value)
        In the order in which they came; None for a failure.
    pending : iterable of params
        What others are measuring.
    """
    optimizer = Optimizer(space, goal=goal, rng=seed, calibration=calibration)
    for params, value in answers:
        if value is None:
            optimizer.fail(params)
        else:
            optimizer.tell(params, value)
    for params in pending:
        optimizer.expect(params)
    return optimizer
