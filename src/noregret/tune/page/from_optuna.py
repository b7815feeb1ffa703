"""What is known about an Optuna study, whichever sampler ran it."""

from __future__ import annotations

import warnings
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.search_space import intersection_search_space
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from noregret.belief.posterior import HUGE
from noregret.integrations.replay import tell_all
from noregret.optimizer.optimizer import Goal, Optimizer
from noregret.optimizer.spaces.parameters import MOST_OPTIONS, Choice, Float, Int
from noregret.tune.store.records import Record, State


def informed(study: Study) -> tuple[dict[str, Any], Optimizer, list[Record], str]:
    """Space, an optimizer that was told all trials of it, their records, and the study's name."""
    if len(study.directions) != 1:
        raise ValueError(f"report() is for studies with one objective, got {len(study.directions)}")
    trials = study.get_trials(deepcopy=False)
    distributions = _common(trials)
    space = {name: _parameter(its) for name, its in distributions.items()}
    records = [_record(trial, distributions) for trial in trials if _inside(trial, distributions)]
    _warn(trials, distributions, len(records))
    goal: Goal = "minimize" if study.direction == StudyDirection.MINIMIZE else "maximize"
    optimizer = Optimizer(space, goal=goal, rng=0)
    tell_all(optimizer, ((record.params, record.value) for record in records if record.finished))
    return space, optimizer, records, study.study_name


def _common(trials: list[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The parameters that all completed trials have in common."""
    found = intersection_search_space(trials)
    common = {name: its for name, its in found.items() if not _has_too_many(its)}
    if not common:
        raise ValueError("the study must have a completed trial with a parameter that all have in common")
    return common


def _has_too_many(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, CategoricalDistribution) and len(distribution.choices) > MOST_OPTIONS


def _parameter(distribution: Any) -> Float | Int | Choice:
    if isinstance(distribution, CategoricalDistribution):
        return Choice(distribution.choices)
    kind = Float if isinstance(distribution, FloatDistribution) else Int
    return kind(distribution.low, distribution.high, distribution.log)


def _inside(trial: FrozenTrial, space: dict[str, BaseDistribution]) -> bool:
    """Whether a trial is one of this space, with values inside it: ranges may change from trial to trial."""
    return all(
        name in trial.params and its._contains(its.to_internal_repr(trial.params[name])) for name, its in space.items()
    )


def _warn(trials: list[FrozenTrial], space: dict[str, BaseDistribution], kept: int) -> None:
    """Say what the page leaves out."""
    left = sorted({name for trial in trials for name in trial.params} - space.keys())
    if left:
        warnings.warn(
            f"the page leaves out what not all completed trials have in common: {', '.join(left)}", stacklevel=4
        )
    lost = sum(bool(trial.params) for trial in trials) - kept
    if lost:
        warnings.warn(f"the page leaves out {lost} trials whose params are outside the common ranges", stacklevel=4)


def _record(trial: FrozenTrial, space: dict[str, BaseDistribution]) -> Record:
    """A trial; the last report of a pruned one stands for its result."""
    value = trial.value if trial.state.is_finished() and trial.state != TrialState.FAIL else None
    usable = value is not None and abs(value) <= HUGE
    state: State = "done" if usable else "failed" if trial.state.is_finished() else "running"
    return Record(
        number=trial.number,
        params={name: trial.params[name] for name in space},
        state=state,
        value=value if usable else None,
        failure=f"{trial.state.name.lower()}, result {value}" if state == "failed" else "",
        seconds=trial.duration.total_seconds() if trial.duration else 0.0,
        started=trial.datetime_start,
        ended=trial.datetime_complete,
    )
