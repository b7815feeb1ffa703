"""Pace: how fast f changes, by likelihood.

Two views of the same measurements compete: f stays as it is, or it changes with a half-life that is fitted like the
rest (see `fit`). Heuristic: the second must explain them better by `PRIOR` nats, since things mostly stay as they are,
and a kernel that is not quite right finds excuses in time. That is asked under every view of the noise, and the average
counts: with heavy tails alone, who believes in no change takes all that is out of date for noise, and without them
noise is taken for change.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from noregret.belief.posterior import Ints
from noregret.optimizer.model.hypotheses import FittedModels, OptimizerConfig, View
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.transforms import Scale
from noregret.optimizer.space.parameters import finite

PRIOR = 6.0
"""So many nats more must be explained if f changes, on average over the views of the noise."""

STAYS = 40
"""A change that was found so many answers ago is believed in unless as much speaks against it."""

ENOUGH = 30
"""With fewer measurements nobody looks whether f changes."""

NEWEST = 80
"""So many of the newest measurements are looked at,"""

OLDER = 40
"""and so many of the older ones, evenly spread."""

LONGEST = 10_000.0
"""A longer half-life cannot be given: nothing as old as that is kept."""

MEMORY = 5.0
"""What is older than so many half-lives is no part of the belief: it explains 1/32 of the variance at most."""

MOST = 200
"""Measurements that a belief about now is made of at most, half of them the newest."""


Scored = tuple[float, View]
"""A view, and the log likelihood under it."""

Drift = float | Literal["auto"] | None
"""A half-life in answers; "auto" if it is to be found out, and None if f stays as it is."""


def checked_drift(drift: Any) -> Drift:
    """None, "auto" or a half-life in answers; ValueError if it is none of these."""
    if drift is None:
        return None
    if isinstance(drift, str) and drift == "auto":
        return "auto"
    if finite(drift) and 1 <= drift <= LONGEST:
        return float(drift)
    raise ValueError(
        f"drift must be 'auto' or a half-life, which must be a number of evaluations from 1 to {LONGEST:g}, got "
        f"{drift!r}: leave it out if nothing changes, or let 'auto' find out"
    )


def recent(count: int, newest: int, older: int) -> Ints:
    """The newest of so many measurements, and some of the older ones, evenly spread, in order.

    >>> recent(10, 3, 2)
    array([0, 6, 7, 8, 9])
    """
    split = max(count - newest, 0)
    spread = np.linspace(0, split - 1, min(older, split)).astype(np.intp)
    return np.concatenate([spread, np.arange(split, count)])


def looked_at(evidence: Evidence) -> Ints:
    """The measurements that say how fast f changes, in order."""
    return recent(len(evidence), NEWEST, OLDER)


class Pace:
    """How an optimizer finds out how fast f changes.

    Parameters
    ----------
    calibration : OptimizerConfig
    drift : "auto" or float
        Whether the half-life is to be found out, or what it is.
    """

    def __init__(self, calibration: OptimizerConfig, drift: Drift) -> None:
        self._calibration, self.half_life = calibration, drift if isinstance(drift, float) else None

    def is_likely(self, evidence: Evidence, now: int) -> bool:
        """Whether a glance speaks for change: the noise is taken for Gaussian, and no margin is asked for.

        Heavy tails would explain away what contradicts the past.
        """
        if self.half_life is not None:
            return True
        aged, gaussian = self._looked_at(evidence, now)[1], self._calibration.weighings[0]
        moving, still = (self._calibration.fitted(each, gaussian)[0] for each in (aged, without_ages(aged)))
        return moving > still

    def calibrated(self, evidence: Evidence, now: int) -> FittedModels:
        """The scale and the views that explain the newest measurements best: with a half-life, or without one."""
        scale, aged = self._looked_at(evidence, now)
        if self.half_life is not None:
            return FittedModels(scale, tuple(view for _, view in self._calibration.views(aged)))
        moving, still, gains = self._compared(aged)
        gain = float(np.mean(gains))
        is_found = gain >= PRIOR or (gain > -PRIOR and self._gain(evidence, now - STAYS) >= PRIOR)
        explaining = [view for view, its in zip(moving, gains, strict=True) if its > 0]
        tried = (explaining or moving) if is_found else still
        return FittedModels(scale, tuple(view for _, view in sorted(tried, key=lambda view: -view[0])))

    def _gain(self, evidence: Evidence, now: int) -> float:
        """How much more change explained after ``now`` arrivals, on average over the views of the noise."""
        assert evidence.when is not None
        is_enough = np.count_nonzero(evidence.when < now) >= ENOUGH
        return float(np.mean(self._compared(self._looked_at(evidence, now)[1])[2])) if is_enough else -math.inf

    def _compared(self, aged: Evidence) -> tuple[list[Scored], list[Scored], list[float]]:
        """The views of the noise if f changes, those if it stays, and how much more each explains if it changes."""
        moving, still = (
            [self._calibration.fitted(each, weighing) for weighing in self._calibration.weighings]
            for each in (aged, without_ages(aged))
        )
        return moving, still, [changing[0] - staying[0] for changing, staying in zip(moving, still, strict=True)]

    def _looked_at(self, evidence: Evidence, now: int) -> tuple[Scale, Evidence]:
        """A scale, and in its units what says how fast f changes, of the first ``now`` arrivals."""
        assert evidence.when is not None
        known = np.flatnonzero(evidence.when < now)
        chosen = known[recent(known.size, NEWEST, OLDER)]
        scale = self._calibration.scale(evidence.chosen(chosen))
        return scale, scale.standardised(evidence.aged(chosen, now, self.half_life))


def without_ages(aged: Evidence) -> Evidence:
    """The same measurements if f stays as it is, each still a point of its own.

    So both views have the same parts of the kernel and the same degrees of freedom, and differ in time alone.
    """
    return replace(aged, ages=None)


def is_moving(found: FittedModels) -> bool:
    """Whether f changes."""
    return found.fit.half_life < math.inf


def renewal(half_life: float) -> int:
    """After how many answers measurements are weighed and candidates drawn anew: a fifth of the half-life."""
    return int(np.clip(half_life / 5, 5, 40))


def of_now(found: FittedModels, evidence: Evidence, now: int) -> Evidence:
    """What a belief about f as it is after ``now`` arrivals is made of, standardised.

    No measurement that is too old, and at most `MOST`; at least the newest one.
    """
    assert evidence.when is not None
    is_young = evidence.when >= min(now - math.ceil(MEMORY * found.fit.half_life), int(evidence.when.max()))
    young = np.flatnonzero(is_young)
    kept = young[recent(young.size, MOST // 2, MOST // 2)]
    return found.scale.standardised(evidence.aged(kept, now))
