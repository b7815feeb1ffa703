"""The two kinds of panels: algorithms compared on a problem, and studies that measure something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from noregret.belief.posterior import Floats
from noregret.decision.loops import Algorithm
from noregret.experiments.judging.figure import Setting, Task, seeds
from noregret.experiments.running.measurement import Measurement
from noregret.experiments.running.trials import Trial, build
from noregret.problems import Changing, Problem


class Entrant(NamedTuple):
    """An algorithm of a comparison: its builder, and settings beyond those that the problem knows."""

    builder: Callable[..., Algorithm]
    settings: Mapping[str, Any]
    problem: Callable[..., Problem] | None = None
    """Another form of the problem with the same arms and rewards, for an algorithm that needs another kernel."""


@dataclass(frozen=True)
class Comparison:
    """Algorithms on one problem, all of them on the same instance and the same noise in every trial.

    Parameters
    ----------
    key, title : str
    problem : callable
        Makes the problem of a trial from ``rng``. If it needs files, it takes their folder first; if it has ``rows``,
        it also takes ``row``, the number of the trial.
    entrants : mapping of str to Entrant
        The algorithms by their labels.
    files : sequence of str
        The data files the problem is made of.
    rows : int, optional
        How many instances there are; there can be no more trials.
    watch : sequence of str
        What every trace also notes, as in `noregret.run`.
    """

    key: str
    title: str
    problem: Callable[..., Problem | Changing]
    entrants: Mapping[str, Entrant]
    files: Sequence[str] = ()
    rows: int | None = None
    watch: Sequence[str] = ()

    def tasks(self, setting: Setting) -> list[Task]:
        """The tasks of the panel, ordered by trial and within a trial by algorithm."""
        count = min(setting.scale.trials, self.rows or setting.scale.trials)
        return [
            self._task(i, seed, label, setting)
            for i, seed in enumerate(seeds(setting, count))
            for label in self.entrants
        ]

    def _task(self, i: int, seed: np.random.SeedSequence, label: str, setting: Setting) -> Task:
        entrant, rounds = self.entrants[label], setting.scale.rounds
        problem = entrant.problem or self.problem
        problem = partial(problem, setting.data) if self.files else problem
        problem = partial(problem, row=i) if self.rows else problem
        algorithm = partial(built, entrant, horizon=rounds)
        trial = Trial(label, problem, algorithm, rounds, seed, watch=tuple(self.watch))
        depends: list[Any] = [rounds, setting.seed, {key: repr(value) for key, value in entrant.settings.items()}]
        depends += [str(setting.data)] if self.files and setting.data else []
        return Task(label, kept_at(self.key, label, i, depends), trial.play)


def built(entrant: Entrant, problem: Problem | Changing, horizon: int) -> Algorithm:
    """Build an algorithm as the paper ran it: with what the problem knows, and what the paper passed instead."""
    passed = problem.paper if isinstance(problem, Problem) else {}
    return build(entrant.builder, problem, horizon, {**passed, **entrant.settings})


Measure = Callable[..., Mapping[str, Floats]]


@dataclass(frozen=True)
class Study:
    """Something measured in every trial that is not a run of an algorithm.

    Parameters
    ----------
    key, title : str
    measures : mapping of str to callable
        By label: from ``rounds`` and ``rng``, a Generator, to named arrays. All labels of a trial get the same seed.
    """

    key: str
    title: str
    measures: Mapping[str, Measure]
    files: Sequence[str] = field(default=(), init=False)

    def tasks(self, setting: Setting) -> list[Task]:
        """The tasks of the panel, ordered by trial and within a trial by measurement."""
        return [
            Task(
                label,
                kept_at(self.key, label, i, [setting.scale.rounds, setting.seed]),
                partial(measured, measure, setting.scale.rounds, seed),
                Measurement,
            )
            for i, seed in enumerate(seeds(setting, setting.scale.trials))
            for label, measure in self.measures.items()
        ]


def measured(measure: Measure, rounds: int, seed: np.random.SeedSequence) -> Measurement:
    """Make one measurement, on one BLAS thread."""
    start = perf_counter()
    with threadpool_limits(1, user_api="blas"):
        arrays = measure(rounds=rounds, rng=np.random.default_rng(seed))
    about = getattr(measure, "func", measure)
    record = {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
    return Measurement(dict(arrays), perf_counter() - start, (about.__doc__ or "").strip(), record)


def kept_at(key: str, label: str, trial: int, depends: Sequence[Any]) -> Path:
    """Name the files of a trial by all that it depends on."""
    record = json.dumps([key, label, *depends, version("noregret")], sort_keys=True)
    return Path(key, f"{label}_{hashlib.sha256(record.encode()).hexdigest()[:8]}_{trial:04d}")
