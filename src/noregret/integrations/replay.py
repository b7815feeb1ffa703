"""Replay: an `Optimizer` that knows a history, so that its suggestions depend on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import astuple, dataclass, field
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Any

import numpy as np

from noregret.optimizer import (
    Evidence,
    FittedModels,
    Goal,
    Observation,
    Optimizer,
    OptimizerConfig,
    checked_contexts,
)

Fits = Mapping[bytes, FittedModels]
"""Fits by the digest of the evidence that they were made from."""


@dataclass(frozen=True)
class Remembering(OptimizerConfig):
    """A calibration that fits the same evidence only once, shared by the optimizers of successive histories.

    A fit depends on the evidence alone, so remembering changes nothing but the time it takes.
    """

    remembered: int = 1
    """Number of fits that are kept: one of the values, one of each constraint, and one of the costs."""
    _kept: dict[bytes, FittedModels] = field(default_factory=dict, repr=False, compare=False)

    def calibrated(self, evidence: Evidence) -> FittedModels:
        key = sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in astuple(evidence))).digest()
        found = self._kept.get(key) or super().calibrated(evidence)
        self.remember({key: found})
        return found

    @property
    def fits(self) -> Fits:
        """The fits that are kept."""
        return dict(self._kept)

    def remember(self, fits: Fits) -> None:
        """Keep fits that were made elsewhere, in place of those that were used longest ago."""
        for key, found in fits.items():
            self._kept.pop(key, None)
            self._kept[key] = found
        while len(self._kept) > self.remembered:
            del self._kept[next(iter(self._kept))]


class Replay:
    """Builds an optimizer that knows a history, from the last such optimizer if its history was a beginning of it.

    The result depends on the history alone (up to rounding), so the reuse changes nothing but the time it takes.

    Parameters
    ----------
    space, goal, seed, options
        As `Optimizer` takes them; the options are its baseline, constraints and goals. With goals, goal is None.
    as_good : float
        As `OptimizerConfig` takes it.
    """

    def __init__(self, space: Any, goal: Goal | None, seed: int, *, as_good: float = 0.0, **options: Any) -> None:
        self._arguments, self._options = (space, goal, seed), options
        remembered = 1 + len(options.get("goals") or "1") + len(options.get("constraints") or ())
        self._lock, self._calibration = Lock(), Remembering(as_good=as_good, remembered=remembered)
        self._begin()

    def __reduce__(self) -> tuple[Callable[..., Replay], tuple[Any, Goal | None, int]]:
        return partial(Replay, as_good=self._calibration.as_good, **self._options), self._arguments

    def __call__(
        self, answers: Sequence[Observation], pending: Iterable[Any] = (), settled: int | None = None
    ) -> Optimizer:
        """Return an optimizer that knows all answers.

        Parameters
        ----------
        answers : sequence of (params, value, ...)
            In the order of arrival.
        pending : iterable of params
            Pending trials.
        settled : int, optional
            Number of first answers that will stay the first, if not all will.
        """
        with self._lock:
            self._go_on(answers[:settled])
            optimizer, known = copy(self._optimizer), len(self._told)
        tell_all(optimizer, answers[known:])
        for params in pending:
            optimizer.expect(params)
        return optimizer

    def remember(self, fits: Fits) -> None:
        """Use fits that a replay of the same study has made in another process."""
        self._calibration.remember(fits)

    def fitted_from(self, answers: Sequence[Observation]) -> int:
        """Number of the first answers that the fit for the next question is made from; 0 if no fit is needed.

        It is known without fitting, but only without drift.
        """
        if not self._is_fit_needed(answers):
            return 0
        values = (number for number, answer in enumerate(answers, 1) if _is_value(answer))
        _, usable = next(values), next(values)
        optimizer = self._optimizer
        whole = checked_contexts(optimizer.space, optimizer.context, optimizer.fidelity).whole
        return self._calibration.fitted_from(len(answers), usable, whole)

    def _begin(self) -> None:
        space, goal, seed = self._arguments
        self._optimizer = Optimizer(space, goal=goal, rng=seed, calibration=self._calibration, **self._options)
        self._told: list[Observation] = []

    def _go_on(self, answers: Sequence[Observation]) -> None:
        """Tell the kept optimizer the new answers, and let it fit before it is copied."""
        if self._told != answers[: len(self._told)]:
            self._begin()
        tell_all(self._optimizer, answers[len(self._told) :])
        self._told = list(answers)
        if self._is_fit_needed(answers):
            self._optimizer.calibrated  # noqa: B018

    def _is_fit_needed(self, answers: Sequence[Observation]) -> bool:
        """Return True if a fit is likely to choose the next question; it does not choose the first ones."""
        first = self._optimizer.calibration.first(self._optimizer.space)
        return 2 * len(answers) >= first and sum(map(_is_value, answers)) > 1


def _is_value(answer: Observation) -> bool:
    return answer[1] is not None and getattr(answer, "bound", None) is None


def tell_all(optimizer: Optimizer, answers: Iterable[Observation]) -> None:
    """Tell an optimizer these answers."""
    for answer in answers:
        params, value, noise, constraints, context = (*answer, None, None, None)[:5]
        bound, fidelity = getattr(answer, "bound", None), getattr(answer, "fidelity", None)
        values = getattr(answer, "values", None)
        if value is None:
            optimizer.fail(params, context, getattr(answer, "cost", None))
        else:
            told = {"value" if bound is None else bound: values or value, "fidelity": fidelity}
            optimizer.tell(
                params,
                noise=noise,
                constraints=constraints,
                context=context,
                cost=getattr(answer, "cost", None),
                **told,
            )


def is_hopeless(
    optimizer: Optimizer,
    params: Any,
    fidelity: Mapping[str, Any] | None,
    reports: Iterable[tuple[Any, float]],
    context: Any = None,
) -> bool:
    """`Optimizer.should_stop` of a trial with these reports, as steps and values; the optimizer is changed."""
    key = optimizer.space.key
    same = (its for its in optimizer.pending if key(its.params) == key(params) and its.fidelity == fidelity)
    trial = next((its for its in same if its.context == context), None)
    trial = trial or optimizer.expect(params, context, fidelity=fidelity)
    for step, value in reports:
        optimizer.report(trial, dict.fromkeys(optimizer.fidelity or (), step), value)
    return optimizer.should_stop(trial)
