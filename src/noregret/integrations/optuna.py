"""Optuna: noregret as a sampler and as a pruner, and what the page of `noregret.report` shows of a study.

>>> import optuna
>>> from noregret.integrations.optuna import NoRegretSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=NoRegretSampler(seed=0))
>>> study.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.5) ** 2, n_trials=20)
>>> abs(study.best_params["x"] - 0.5) < 0.1
True

Measurements may be noisy, with outliers: no option is needed for that. Optuna's own ``best_params`` are those of the
luckiest measurement; `NoRegretSampler.best` recommends by all of them. So do `NoRegretSampler.front` and ``best`` with
limits or weights for a study with several ``directions``, where Optuna's own ``best_trials`` are the luckiest.

`NoRegretPruner` stops trials that are unlikely to become the best, with this sampler or any other.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.study import Study, StudyDirection
from optuna.study._constrained_optimization import _CONSTRAINTS_KEY
from optuna.trial import FrozenTrial, TrialState

from noregret.gp.posterior import HUGE
from noregret.integrations.structure import (
    IN_A_ROW,
    Columns,
    ConditionalParameter,
    Parameter,
    Structure,
    nearest,
    parameter,
    params_of,
    too_many,
)
from noregret.optimizer import (
    MOST_OPTIONS,
    VALUE,
    Choice,
    Constraint,
    Fidelity,
    Float,
    Goal,
    Int,
    JointEstimate,
    Measures,
    Optimizer,
    Reading,
    Replay,
    State,
    Trial,
    axis_of,
    is_to_stop,
)

RECENT = 100
"""Number of last trials among which a pending one is expected to finish; older pending ones are taken for lost."""


class NoRegretSampler(BaseSampler):
    """Sampler that learns from all trials, however noisy.

    Suggestions are a function of the study's trials and the seed. It keeps no state between trials, so it works the
    same with ``study.optimize``, with ask and tell, with ``n_jobs``, with several processes on one storage, and
    after a restart. Running trials count as pending, failed ones as bad. Pruned ones count with their last report, as a
    value of its step: what they would have reached is estimated from the trials that went on.

    The objective may suggest parameters in some trials only: the condition is inferred from the trials (see
    `noregret.integrations.structure`), if it is a choice or a whole number. A range may change during a study: all
    trials count, and a suggestion outside of the present range is moved to its end. Parameters without a clear
    condition are drawn at random, with a warning, and so are those with more than 1000 choices. So is a new parameter,
    for 20 trials; it is then learnt from the trials that have it.

    Parameters
    ----------
    seed : int, optional
        For suggestions that can be repeated.
    constraints_func : FrozenTrial -> sequence of floats, optional
        Computes the constraints of a finished trial: it is feasible if all are 0 or less. They may be noisy. Stored as
        Optuna's samplers store them; all stored constraints count, those of other samplers too.
    """

    def __init__(
        self, seed: int | None = None, constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None
    ) -> None:
        self._given_seed, self._constraints_func = seed, constraints_func
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._random = RandomSampler(seed=seed)
        self._structure, self._steps = Structure(), ReportSteps()
        self._learner: _Learner | None = None
        self._warned: set[str] = set()  # parameters
        self._asked: dict[tuple[str, int], dict[str, Any]] = {}  # suggestions for running trials

    def __repr__(self) -> str:
        constrained = "" if self._constraints_func is None else f", constraints_func={self._constraints_func!r}"
        known = "no trial yet" if self._learner is None else f"{self._learner.known} finished trials"
        return f"<NoRegretSampler(seed={self._given_seed}{constrained}): knows {known}>"

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._asked.pop((study.study_name, trial.number), None)
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)

    def reseed_rng(self) -> None:
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {column.name: column.distribution for column in _free(self._columns(study)).values()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        columns = _free(self._columns(study))
        if {column.name for column in columns.values()} != search_space.keys():  # the caller has a space of its own
            columns = {name: ConditionalParameter(name, distribution) for name, distribution in search_space.items()}
        optimizer = self._informed(study, columns, but=trial.number)
        params = optimizer.ask(1 + _asking(study, trial))[-1].params  # after those that ask at the same time
        asked = self._asked[study.study_name, trial.number] = _theirs(columns, params)
        for old in list(self._asked)[:-RECENT]:
            self._asked.pop(old, None)
        return asked

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        asked = self._asked.get((study.study_name, trial.number), {}).get(param_name)
        if asked is not None and not isinstance(param_distribution, CategoricalDistribution):
            return nearest(param_distribution, asked)
        if param_name not in self._warned and not param_distribution.single():
            self._warn(study, param_name, param_distribution)
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def _warn(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Warn once that a parameter is drawn at random from now on, if it is."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not too_many(distribution) and _is_learnt(name, distribution, self._columns(study), trials):
            return
        self._warned.add(name)
        odd = next((trial for trial in trials if trial.distributions.get(name) != distribution), None)
        if too_many(distribution) or odd is None:
            advice = f"it has more than {MOST_OPTIONS} choices: drop some, or suggest a number that stands for them"
        elif name in odd.distributions:
            advice = (
                f"trial {odd.number} was completed with another kind of range, and no choice or whole number that was "
                "suggested before decides which: suggest it with one kind, in a new study"
            )
        else:
            advice = (
                f"trial {odd.number} was completed without it, and no choice or whole number that was suggested before "
                f"decides that. If it is new, it is learnt after {IN_A_ROW} trials in a row with it. Or suggest it in "
                "every trial, and continue in a new study with the trials that have it: "
                f"new.add_trials(t for t in study.trials if {name!r} in t.params)"
            )
        warnings.warn(f"parameter {name!r} is drawn at random: {advice}", stacklevel=2)

    def best(self, study: Study, *, limits: Any = None, weights: Any = None) -> Any:
        """Recommended params with their estimate: not those of the luckiest measurement.

        With several objectives, ``limits`` or ``weights`` say which of the front are wanted, as `Optimizer.best` takes
        them. Objectives have the names that ``study.set_metric_names`` gave them, or "0", "1" and so on.

        A warning names the parameters that the params lack, as they are drawn at random, and says how many trials are
        left out.
        """
        wish = {"limits": limits, "weights": weights} if len(study.directions) > 1 else {}
        return self._recommended(study, lambda optimizer: [optimizer.best(**wish)])[0]

    def front(self, study: Study) -> list[JointEstimate]:
        """The params that are likely best in some trade-off of several objectives: `Optimizer.front`."""
        if len(study.directions) == 1:
            raise ValueError("front() needs several objectives, and this study has one: use best()")
        return self._recommended(study, Optimizer.front)

    def _recommended(self, study: Study, conclude: Callable[[Optimizer], list[Any]]) -> list[Any]:
        """Estimates that an optimizer gives, with params as Optuna has them."""
        columns = self._columns(study)
        if not columns:
            raise ValueError("the study must have a finished trial with a parameter that all have in common")
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if left := _left_out(columns, trials):
            warnings.warn(f"what is recommended leaves out {left}", stacklevel=3)
        estimates = []
        for estimate in conclude(self._informed(study, _free(columns) or columns)):
            fixed = {
                label: axis_of(Parameter(column.distribution).parameter).values()[0]
                for label, column in columns.items()
                if column.distribution.single() and column.applies(estimate.params)
            }
            estimates.append(replace(estimate, params=_theirs(columns, fixed | estimate.params)))
        return estimates

    def _columns(self, study: Study) -> Columns:
        """Columns to learn: parameters of all completed trials, or with a known condition."""
        return self._structure(study.get_trials(deepcopy=False))

    def _informed(self, study: Study, columns: Columns, but: int | None = None) -> Optimizer:
        """The optimizer that knows all of a study's trials, except one."""
        goals = goals_of(study)
        trials = [trial for trial in study.get_trials(deepcopy=False) if trial.number != but]
        constraints = tuple(dict.fromkeys(name for trial in trials for name in constraints_of(trial)))
        levels = self._steps(trials)
        about = columns, goals, constraints, levels if self._steps.are_needed else None
        if self._learner is None or self._learner.about != about:
            self._learner = _Learner(*about, self._seed)
        return self._learner(trials)


class NoRegretPruner(BasePruner):
    """Pruner that stops a trial if it is unlikely to become better than the best known setting.

    A model of the value as a function of parameters and step is fitted to all trials: their last reports, and the
    values of those that were completed. A trial is pruned if, by its reports so far, the probability that it would be
    better at the last step than the recommended setting is small. The noise is estimated, and a single bad report
    among noisy ones prunes nothing. Nothing is pruned before there are enough trials to fit the model.

    It keeps no state of its own, and works with `NoRegretSampler` and with any other sampler. The last step is the
    largest one of the trials so far. Report at every step if you like: a trial is judged at most five times, at steps
    that are evenly spaced on a logarithmic scale.

    Examples
    --------
    >>> import optuna
    >>> from noregret.integrations.optuna import NoRegretPruner, NoRegretSampler
    >>> study = optuna.create_study(sampler=NoRegretSampler(seed=0), pruner=NoRegretPruner())
    """

    def __init__(self) -> None:
        self._structure, self._steps = Structure(), ReportSteps()
        self._learner: _Learner | None = None
        self._judged: dict[int, tuple[int, bool]] = {}
        """Number of rungs that each running trial had reached when it was judged, and the verdict."""

    def __repr__(self) -> str:
        return "NoRegretPruner()"

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        trials = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        levels, reports = self._steps(trials), _reports(trial)
        if levels is None or not reports or levels.reached(reports[-1][0]) == levels.fidelity.highest:
            return False
        rung, known = levels.fidelity.rung(levels.reached(reports[-1][0])), self._judged.get(trial.number)
        if known is None or known[0] < rung:
            known = self._judged[trial.number] = rung, self._is_to_stop(study, trial, trials, levels)
        return known[1]

    def _is_to_stop(self, study: Study, trial: FrozenTrial, trials: Sequence[FrozenTrial], levels: Levels) -> bool:
        columns = self._structure(trials)
        columns = _free(columns) or columns
        params = params_of(columns, trial)
        if not columns or params is None:
            return False
        about: tuple[Columns, dict[str, Goal], tuple[str, ...], Levels] = columns, goals_of(study), (), levels
        if self._learner is None or self._learner.about != about:
            self._learner = _Learner(*about, 0)
        reports = [Reading(value, step=levels.reached(step)[levels.name]) for step, value in _reports(trial)]
        mine = Trial(trial.number, params, fidelity=levels.fidelity.highest)
        return is_to_stop(self._learner(trials), mine, reports)


@dataclass(frozen=True)
class Levels:
    """Steps of reports as a fidelity: the first one is 1, and the cost of a trial is the number of its steps."""

    first: int
    last: int
    name: str = "step"

    @property
    def fidelity(self) -> Fidelity:
        """The fidelity of an optimizer."""
        return Fidelity(self.name, Int(1, self.last - self.first + 1, log=True))

    def reached(self, step: int) -> dict[str, int]:
        """Fidelity of a report."""
        return {self.name: min(max(step, self.first), self.last) - self.first + 1}

    def of(self, trial: FrozenTrial) -> dict[str, int] | None:
        """Fidelity of a trial's value: that of its last report if it was pruned, None for the highest."""
        if trial.state != TrialState.PRUNED or not trial.intermediate_values:
            return None
        return self.reached(max(trial.intermediate_values))


class ReportSteps:
    """First and last step of the reports of a study's finished trials; each trial is read once."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[int, int] | None] = {}
        """First and last step of each finished trial, None without reports."""
        self._name = "step"
        self.are_needed = False
        """True if a pruned trial has a report."""

    def __call__(self, trials: Sequence[FrozenTrial]) -> Levels | None:
        """The levels, None if there are fewer than two steps."""
        for trial in trials:
            if trial.state in (TrialState.COMPLETE, TrialState.PRUNED) and trial.number not in self._read:
                steps = [step for step, _ in _reports(trial)]
                self._read[trial.number] = (steps[0], steps[-1]) if steps else None
                self.are_needed |= bool(steps) and trial.state == TrialState.PRUNED
                while self._name in trial.params:
                    self._name = f"reported {self._name}"
        ends = [each for each in list(self._read.values()) if each]
        first, last = min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)
        return Levels(first, last, self._name) if first < last else None


def _reports(trial: FrozenTrial) -> list[tuple[int, float]]:
    """Reports of a trial by step, without those that are no usable numbers."""
    return sorted((step, value) for step, value in trial.intermediate_values.items() if abs(value) <= HUGE)


class _Learner:
    """Tells an optimizer the trials of a study that have these columns, and caches the finished ones."""

    def __init__(
        self, columns: Columns, goals: dict[str, Goal], constraints: tuple[str, ...], levels: Levels | None, seed: int
    ) -> None:
        self.columns, self.about = columns, (columns, goals, constraints, levels)
        self._names = list(goals) if len(goals) > 1 else []
        self._levels = levels
        more: dict[str, Any] = {} if levels is None else {"fidelity": levels.fidelity.product.parameters}
        more |= {"goals": goals} if self._names else {}
        space = {label: columns[label].parameter for label in sorted(columns)}
        bounds, goal = dict.fromkeys(constraints, Constraint("<=", 0.0)), next(iter(goals.values()))
        self._keys = Measures(goals if self._names else {VALUE: goal}, bounds).limited
        self._replay = Replay(space, None if self._names else goal, seed, constraints=bounds, **more)
        self._finished: dict[int, tuple[FrozenTrial, Trial | None]] = {}

    def __call__(self, trials: Sequence[FrozenTrial]) -> Optimizer:
        """The optimizer that knows all these trials."""
        under_way = [trial for trial in trials if not trial.state.is_finished()]
        oldest = next((trial.number for trial in under_way if trial.number >= len(trials) - RECENT), len(trials) + 1)
        told = [answer for trial in trials if trial.state.is_finished() and (answer := self._answer(trial)) is not None]
        settled = sum(trial.number < oldest for trial in told)
        pending = [Trial(trial.number, params) for trial in under_way if (params := self._params(trial)) is not None]
        return self._replay(told, pending, settled)

    def _answer(self, trial: FrozenTrial) -> Trial | None:
        """A finished trial as ours, None if it lacks a column; finished trials do not change."""
        known, answer = self._finished.get(trial.number, (None, None))
        if known is not trial:
            params, values = self._params(trial), values_of(trial, self._names or (VALUE,))
            limited = {self._keys[name]: number for name, number in constraints_of(trial).items() if name in self._keys}
            numbers = {**values, **limited}
            readings = {name: (Reading(number),) for name, number in numbers.items()}
            level = self._levels and self._levels.of(trial)
            outcome: dict[str, Any] = {"state": "done" if values else "failed", "fidelity": level, "readings": readings}
            answer = None if params is None else Trial(trial.number, params, **outcome)
            self._finished[trial.number] = trial, answer
        return answer

    @property
    def known(self) -> int:
        """Number of finished trials that the optimizer knows."""
        return sum(answer is not None for _, answer in self._finished.values())

    def _params(self, trial: FrozenTrial) -> dict[str, Any] | None:
        return None if trial.state == TrialState.WAITING else params_of(self.columns, trial)


def _free(columns: Columns) -> Columns:
    """Columns with more than one value."""
    return {label: column for label, column in columns.items() if not column.distribution.single()}


def _theirs(columns: Columns, ours: Mapping[str, Any]) -> dict[str, Any]:
    """Params as Optuna has them, by name."""
    named = sorted((columns[label].name, Parameter(columns[label].distribution).value(ours[label])) for label in ours)
    return dict(named)


def _left_out(columns: Columns, trials: Sequence[FrozenTrial]) -> str:
    """The parameters that are in no column, and the number of trials without the columns; empty if there are none."""
    known, have = {column.name for column in columns.values()}, Counter(name for each in trials for name in each.params)
    parts = [
        f"parameter {name!r} of {count} of {len(trials)} trials" for name, count in have.items() if name not in known
    ]
    lost = sum(params_of(columns, trial) is None for trial in trials)
    return ", and ".join(
        [*parts, *[f"{lost} of {len(trials)} trials, which lack a parameter of the others"] * bool(lost)]
    )


def _is_learnt(name: str, distribution: BaseDistribution, columns: Columns, trials: Sequence[FrozenTrial]) -> bool:
    """Return True if a parameter is learnt, or will be, as no completed trial has had it yet."""
    if any(column.name == name and column.distribution == distribution for column in columns.values()):
        return True
    return not any(trial.distributions.get(name) == distribution for trial in trials)


def goals_of(study: Study) -> dict[str, Goal]:
    """The goal of each objective by its name: that of Optuna if it has one, else its number."""
    names = study.metric_names or [str(number) for number in range(len(study.directions))]
    goals: list[Goal] = ["minimize" if aim == StudyDirection.MINIMIZE else "maximize" for aim in study.directions]
    return dict(zip(names, goals, strict=True))


def _asking(study: Study, trial: FrozenTrial) -> int:
    """Number of earlier trials without params yet: threads and processes may ask all at once."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return sum(not other.params and other.number < trial.number for other in running)


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints that are stored with a trial, by name; 0 or less is feasible."""
    stored = trial.system_attrs.get(_CONSTRAINTS_KEY) or ()
    start = f"{_CONSTRAINTS_KEY}:"
    named = {key.removeprefix(start): value for key, value in trial.system_attrs.items() if key.startswith(start)}
    numbers = {str(i): number for i, number in enumerate(stored)} | named
    return {name: float(min(max(number, -HUGE), HUGE)) for name, number in numbers.items() if number == number}


def values_of(trial: FrozenTrial, names: Sequence[str]) -> dict[str, float]:
    """The finite values by objective; empty for a failure. Of a pruned trial it is the last report: see `Levels.of`."""
    if trial.state == TrialState.FAIL or trial.values is None:
        return {}
    return {name: value for name, value in zip(names, trial.values, strict=True) if abs(value) <= HUGE}


def informed(study: Study) -> tuple[dict[str, Any], Optimizer, list[Trial], str]:
    """Space, an optimizer that knows all trials of a study, whichever sampler ran them, these trials, and its name."""
    trials = [trial for trial in study.get_trials(deepcopy=False) if trial.params]
    columns = Structure()(trials)
    if not columns:
        raise ValueError("the study must have a completed trial with a parameter that all have in common")
    space = {_shown(label): _shown_parameter(label, columns) for label in columns}
    goals, limited = goals_of(study), (name for trial in trials for name in _shown_constraints(trial))
    sought: dict[str, Any] = {"goals": goals} if len(goals) > 1 else {"goal": next(iter(goals.values()))}
    steps = ReportSteps()
    levels = steps(trials)
    if steps.are_needed and levels is not None:
        sought |= {"fidelity": levels.fidelity.product.parameters}
    optimizer = Optimizer(space, **sought, rng=0, constraints=dict.fromkeys(limited, ("<=", 0.0)))
    usable = [(trial, params) for trial in trials if (params := _shown_params(columns, trial)) is not None]
    shown = [
        _shown_trial(trial, optimizer.space.checked(params), optimizer.measures, levels if optimizer.fidelity else None)
        for trial, params in usable
    ]
    _warn_of_gaps(trials, columns, len(shown))
    optimizer.add(trial for trial in shown if trial.is_finished)
    return space, optimizer, shown, study.study_name


def _shown_constraints(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name; 0 or less is feasible."""
    return {f"constraint {name}" if name.isdigit() else name: value for name, value in constraints_of(trial).items()}


def _shown(label: str) -> str:
    """The name of a column; a further range of a parameter has a number."""
    name, _, number = label.partition("\n")
    return f"{name} ({int(number) + 1})" if number else name


def _shown_parameter(label: str, columns: Columns) -> Float | Int | Choice:
    """A column as a parameter, its values as Optuna has them."""
    when = {
        _shown(above): [Parameter(columns[above].distribution).value(value) for value in values]
        for above, values in columns[label].when.items()
    }
    return parameter(columns[label].distribution, when or None)


def _shown_params(columns: Columns, trial: FrozenTrial) -> dict[str, Any] | None:
    """Params of a trial by the shown names of the columns, None if it lacks one."""
    ours = params_of(columns, trial)
    return None if ours is None else {_shown(label): trial.params[columns[label].name] for label in ours}


def _warn_of_gaps(trials: list[FrozenTrial], columns: Columns, kept: int) -> None:
    """Warn about parameters and trials that the page leaves out."""
    left = sorted({name for trial in trials for name in trial.params} - {column.name for column in columns.values()})
    if left:
        unclear = "parameters of which it is not clear when trials have them"
        warnings.warn(f"the page leaves out {unclear}: {', '.join(left)}", stacklevel=4)
    if len(trials) > kept:
        lost = len(trials) - kept
        warnings.warn(f"the page leaves out {lost} trials whose params are outside the common ranges", stacklevel=4)


def _shown_trial(trial: FrozenTrial, params: dict[str, Any], measures: Measures, levels: Levels | None) -> Trial:
    """A trial of Optuna as ours, with its value as `NoRegretSampler` takes it."""
    numbers = {**values_of(trial, list(measures.objectives)), **_shown_constraints(trial)}
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
