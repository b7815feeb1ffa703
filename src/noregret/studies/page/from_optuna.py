"""Findings of an Optuna study, whichever sampler ran it."""

from __future__ import annotations

import warnings
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from noregret.integrations.distributions import Parameter, parameter
from noregret.integrations.optuna import Levels, ReportSteps, constraints_of, goals_of, values_of
from noregret.integrations.structure import Columns, Structure, params_of
from noregret.optimizer import Choice, Float, Int, Measures, Optimizer, Reading, State, Trial


def informed(study: Study) -> tuple[dict[str, Any], Optimizer, list[Trial], str]:
    """Space, an optimizer that knows all its trials, these trials, and the study's name."""
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.params]
    columns = Structure()(trials)
    if not columns:
        raise ValueError("the study must have a completed trial with a parameter that all have in common")
    space = {_shown(label): _parameter(label, columns) for label in columns}
    goals, limited = goals_of(study), (name for trial in trials for name in _constraints(trial))
    sought: dict[str, Any] = {"goals": goals} if len(goals) > 1 else {"goal": next(iter(goals.values()))}
    steps = ReportSteps()
    levels = steps(trials)
    if steps.are_needed and levels is not None:
        sought |= {"fidelity": levels.fidelity.product.parameters}
    optimizer = Optimizer(space, **sought, rng=0, constraints=dict.fromkeys(limited, ("<=", 0.0)))
    found = [(trial, params) for trial in trials if (params := _params(columns, trial)) is not None]
    shown = [
        _trial(trial, optimizer.space.checked(params), optimizer.measures, levels if optimizer.fidelity else None)
        for trial, params in found
    ]
    _warn(trials, columns, len(shown))
    optimizer.add(trial for trial in shown if trial.is_finished)
    return space, optimizer, shown, study.study_name


def _constraints(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name; 0 or less is feasible."""
    return {f"constraint {name}" if name.isdigit() else name: its for name, its in constraints_of(trial).items()}


def _shown(label: str) -> str:
    """The name of a column; a further range of a parameter has a number."""
    name, _, number = label.partition("\n")
    return f"{name} ({int(number) + 1})" if number else name


def _parameter(label: str, columns: Columns) -> Float | Int | Choice:
    """A column as a parameter, its values as Optuna has them."""
    when = {
        _shown(above): [Parameter(columns[above].distribution).value(value) for value in values]
        for above, values in columns[label].when.items()
    }
    return parameter(columns[label].distribution, when or None)


def _params(columns: Columns, trial: FrozenTrial) -> dict[str, Any] | None:
    """Params of a trial by the shown names of the columns, None if it lacks one."""
    ours = params_of(columns, trial)
    return None if ours is None else {_shown(label): trial.params[columns[label].name] for label in ours}


def _warn(trials: list[FrozenTrial], columns: Columns, kept: int) -> None:
    """Warn about parameters and trials that the page leaves out."""
    left = sorted({name for trial in trials for name in trial.params} - {its.name for its in columns.values()})
    if left:
        unclear = "parameters of which it is not clear when trials have them"
        warnings.warn(f"the page leaves out {unclear}: {', '.join(left)}", stacklevel=4)
    if len(trials) > kept:
        lost = len(trials) - kept
        warnings.warn(f"the page leaves out {lost} trials whose params are outside the common ranges", stacklevel=4)


def _trial(trial: FrozenTrial, params: dict[str, Any], measures: Measures, levels: Levels | None) -> Trial:
    """A trial of Optuna as ours, with its value as `NoRegretSampler` takes it."""
    numbers = {**values_of(trial, list(measures.objectives)), **_constraints(trial)}
    has_value = any(name in numbers for name in measures.objectives)
    state: State = "done" if has_value else "failed" if trial.state.is_finished() else "running"
    return Trial(
        trial.number,
        params,
        state=state,
        readings={name: (Reading(number),) for name, number in numbers.items()},
        failure=f"{trial.state.name.lower()}, result {(trial.values or [None])[0]}" if state == "failed" else "",
        seconds=trial.duration.total_seconds() if trial.duration else None,
        started=trial.datetime_start,
        ended=trial.datetime_complete,
        fidelity=(levels.of(trial) or levels.fidelity.highest) if levels and has_value else None,
        is_stopped=trial.state == TrialState.PRUNED,
    )
