"""Replay: an `Optimizer` that knows a history, so that its suggestions depend on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np

from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.measures import Goal
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.trial import Reading, Trial

Fits = Mapping[bytes, FittedModels]
"""Fits by the digest of the evidence that they were made from."""


@dataclass(frozen=True)
class Remembering(OptimizerConfig):
    """A calibration that fits the same evidence only once, shared by the optimizers of successive histories.

    A fit depends on the evidence alone, so remembering changes nothing but the time it takes.
    """

    remembered: int = field(kw_only=True)
    """Number of fits that are kept: of the values on two scales of the parameters, each constraint, and the costs."""
    _kept: dict[bytes, FittedModels] = field(default_factory=dict, repr=False, compare=False)

    def calibrated(self, evidence: Evidence) -> FittedModels:
        key = sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in astuple(evidence))).digest()
        models = self._kept.get(key) or super().calibrated(evidence)
        self.remember({key: models})
        return models

    @property
    def fits(self) -> Fits:
        """The fits that are kept."""
        return dict(self._kept)

    def remember(self, fits: Fits) -> None:
        """Keep fits that were made elsewhere, in place of those that were used longest ago."""
        for key, models in fits.items():
            self._kept.pop(key, None)
            self._kept[key] = models
        while len(self._kept) > self.remembered:
            del self._kept[next(iter(self._kept))]


class Replay:
    """Builds an optimizer that knows a history, from the last such optimizer if its history was a beginning of it.

    The result depends on the history alone (up to rounding), so the reuse changes nothing but the time it takes.

    ``space``, ``goal``, ``seed`` and ``options`` are as `Optimizer` takes them, ``as_good`` as `OptimizerConfig` does;
    the options are its baseline, constraints and goals. With goals, goal is None.
    """

    def __init__(self, space: Any, goal: Goal | None, seed: int, *, as_good: float = 0.0, **options: Any) -> None:
        self._arguments, self._options = (space, goal, seed), options
        remembered = 1 + 2 * len(options.get("goals") or "1") + len(options.get("constraints") or ())
        self._lock, self._calibration = Lock(), Remembering(as_good=as_good, remembered=remembered)
        self._begin()

    def __reduce__(self) -> tuple[Callable[..., Replay], tuple[Any, Goal | None, int]]:
        return partial(Replay, as_good=self._calibration.as_good, **self._options), self._arguments

    def __call__(self, trials: Sequence[Trial], pending: Iterable[Trial] = (), settled: int | None = None) -> Optimizer:
        """Return an optimizer that knows all these trials, by their numbers.

        The trials have an outcome, in the order of arrival; the first ``settled`` will stay the first, if not all will.
        """
        with self._lock:
            if self._is_fit_needed_after(trials[:settled]):
                self._optimizer.calibrated  # noqa: B018 - before it is copied
            optimizer, known = copy(self._optimizer), len(self._told)
        optimizer.add(map(final, trials[known:]))
        for trial in pending:
            optimizer.expect(trial.params, trial.context, fidelity=trial.fidelity, number=trial.number, pair=trial.pair)
        return optimizer

    def made_fits(self, trials: Sequence[Trial]) -> Fits:
        """Fits that the next question after these trials needs, for a replay of the same study in another process."""
        with self._lock:
            if self._is_fit_needed_after(trials):
                self._optimizer._current.fit(self._optimizer._history)
            return self._calibration.fits

    def remember(self, fits: Fits) -> None:
        """Use fits that a replay of the same study has made in another process."""
        self._calibration.remember(fits)

    def fitted_from(self, trials: Sequence[Trial]) -> int:
        """Number of the first answers that the fit for the next question is made from; 0 if no fit is needed.

        It is known without fitting, but only without drift.
        """
        answers = [trial for trial in trials for _ in range(self._measures.runs(trial))]
        values = (place for place, trial in enumerate(answers, 1) if self._measures.has_value(trial))
        usable = next(islice(values, 1, None), None)
        if usable is None or not self._is_fit_near(len(answers)):
            return 0
        return self._calibration.fitted_from(len(answers), usable, self._optimizer._history.space)

    def _begin(self) -> None:
        space, goal, seed = self._arguments
        self._optimizer = Optimizer(space, goal=goal, rng=seed, calibration=self._calibration, **self._options)
        self._measures = self._optimizer.measures
        self._told: list[Trial] = []

    def _is_fit_needed_after(self, trials: Sequence[Trial]) -> bool:
        """Tell the kept optimizer the new trials; return True if a fit is likely to choose its next question."""
        if not are_same(self._told, trials[: len(self._told)]):
            self._begin()
        self._optimizer.add(map(final, trials[len(self._told) :]))
        self._told = list(trials)
        history = self._optimizer._history
        return history.measured > 1 and self._is_fit_near(len(history))

    def _is_fit_near(self, answers: int) -> bool:
        """Return True if pending trials may complete the opening questions, which no fit chooses."""
        return 2 * answers >= self._optimizer.calibration.first(self._optimizer.space)


def are_same(first: Sequence[Trial], second: Sequence[Trial]) -> bool:
    """Return True if two histories are of the same trials with the same outcomes."""
    return len(first) == len(second) and all(map(is_same, first, second))


def is_same(one: Trial, other: Trial) -> bool:
    """Return True if two trials are the same one, with the same outcome."""
    if one is other:
        return True
    parts = "number", "params", "context", "fidelity", "state", "readings", "block"
    return all(getattr(one, part) == getattr(other, part) for part in parts)


def final(trial: Trial) -> Trial:
    """A trial without its reports, which are no evidence once it has an outcome."""
    if not trial.is_finished or not any(r.step is not None for each in trial.readings.values() for r in each):
        return trial
    return replace(trial, readings={name: tuple(trial.runs(name)) for name in trial.readings if trial.runs(name)})


def is_to_stop(optimizer: Optimizer, trial: Trial, reports: Iterable[Reading]) -> bool:
    """`Optimizer.should_stop` of a trial with these reports; the optimizer is changed."""
    mine = next((own for own in optimizer.pending if own.number == trial.number), None)
    mine = mine or optimizer.expect(trial.params, trial.context, fidelity=trial.fidelity)
    for report in reports:
        optimizer.report(mine, dict.fromkeys(optimizer.fidelity or (), report.step), report.value)
    return optimizer.should_stop(mine)
