"""Optuna: noregret as a sampler.

>>> import optuna
>>> from noregret.integrations.optuna import NoRegretSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=NoRegretSampler(seed=0))
>>> study.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.5) ** 2, n_trials=20)
>>> abs(study.best_params["x"] - 0.5) < 0.1
True

Measurements may be noisy, and now and then wildly off: no option is needed for that. Optuna's own ``best_params`` are
those of the luckiest measurement; `NoRegretSampler.best` is the recommendation that is not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _process_constraints_after_trial
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.study._constrained_optimization import _CONSTRAINTS_KEY
from optuna.trial import FrozenTrial, TrialState

from noregret.belief.posterior import HUGE
from noregret.integrations.replay import Answer, Replay
from noregret.optimizer.checking import Goal
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.optimizer import Optimizer
from noregret.optimizer.spaces.parameters import MOST_OPTIONS, Choice, Float, Int

RECENT = 100
"""Of so many trials, those under way may well finish before later ones are told; older ones are taken for lost."""


class NoRegretSampler(BaseSampler):
    """Suggests what to try next from all that was measured, however noisy.

    What it suggests is a function of the study's trials and the seed: it keeps no state between trials, so it works
    the same with ``study.optimize``, with ask and tell, with ``n_jobs``, with several processes on one storage, and
    after a restart. Trials that are running count as under way, failed ones as bad. Parameters that not all trials
    have had are drawn at random, as Optuna's other samplers do, and so are those with more than 1000 choices; a warning
    says so.

    Parameters
    ----------
    seed : int, optional
        For suggestions that can be repeated.
    constraints_func : FrozenTrial -> sequence of floats, optional
        Computes the constraints of a finished trial: it is feasible if all are 0 or less. They may be noisy. Stored as
        Optuna's samplers store them; those that are stored count, whoever has computed them.
    """

    def __init__(
        self, seed: int | None = None, constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None
    ) -> None:
        self._given_seed, self._constraints_func = seed, constraints_func
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._random = RandomSampler(seed=seed)
        self._common = IntersectionSearchSpace()
        self._learner: _Learner | None = None
        self._warned: set[str] = set()  # parameters

    def __repr__(self) -> str:
        constrained = "" if self._constraints_func is None else f", constraints_func={self._constraints_func!r}"
        known = "no trial yet" if self._learner is None else f"{self._learner.known} finished trials"
        return f"<NoRegretSampler(seed={self._given_seed}{constrained}): knows {known}>"

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)

    def reseed_rng(self) -> None:
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        found = self._common.calculate(study)
        return {name: its for name, its in found.items() if not its.single() and not _too_many(its)}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        _check_one_goal(study)
        if not search_space:
            return {}
        optimizer = self._informed(study, search_space, but=trial.number)
        params = optimizer.ask(1 + _asking(study, trial))[-1].params  # after those that ask at the same time
        return {name: Parameter(search_space[name]).value(params[name]) for name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        _check_one_goal(study)
        if param_name not in self._warned and not param_distribution.single():
            self._warn(study, param_name, param_distribution)
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def _warn(self, study: Study, name: str, distribution: BaseDistribution) -> None:
        """Warn once that a parameter is drawn at random from now on, if it is."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        odd = next((trial for trial in trials if trial.distributions.get(name) != distribution), None)
        if odd is None and not _too_many(distribution):
            return
        self._warned.add(name)
        if odd is None:
            advice = f"it has more than {MOST_OPTIONS} choices: drop some, or suggest a number that stands for them"
        elif name in odd.distributions:
            advice = (
                f"trial {odd.number} was completed with another range of it, and only what all completed trials have "
                "in common is learnt: suggest it with one range, in a new study"
            )
        else:
            advice = (
                f"trial {odd.number} was completed without it, and only what all completed trials have in common is "
                "learnt. Suggest it in every trial, and go on in a new study with the trials that have it: "
                f"new.add_trials(t for t in study.trials if {name!r} in t.params)"
            )
        warnings.warn(f"parameter {name!r} is drawn at random: {advice}", stacklevel=2)

    def best(self, study: Study) -> Estimate:
        """The params to recommend, and what is believed about them: not those of the luckiest measurement."""
        _check_one_goal(study)
        space = {name: its for name, its in self._common.calculate(study).items() if not _too_many(its)}
        if not space:
            raise ValueError("the study must have a finished trial with a parameter that all have in common")
        free = {name: its for name, its in space.items() if not its.single()} or space
        best = self._informed(study, free).best()
        ours = {name: Parameter(its).parameter.values()[0] for name, its in space.items() if its.single()} | best.params
        return replace(best, params={name: Parameter(space[name]).value(ours[name]) for name in space})

    def _informed(self, study: Study, space: dict[str, BaseDistribution], but: int | None = None) -> Optimizer:
        """The optimizer that knows all of a study's trials, except one."""
        goal: Goal = "minimize" if study.direction == StudyDirection.MINIMIZE else "maximize"
        trials = [trial for trial in study.get_trials(deepcopy=False) if trial.number != but]
        constraints = tuple(dict.fromkeys(name for trial in trials for name in constraints_of(trial)))
        about = space, goal, constraints
        if self._learner is None or self._learner.about != about:
            self._learner = _Learner(space, goal, self._seed, constraints)
        return self._learner(trials)


class _Learner:
    """Tells an optimizer the trials of a study that are of one space, and keeps what is known of finished ones."""

    def __init__(self, space: dict[str, BaseDistribution], goal: Goal, seed: int, constraints: tuple[str, ...]) -> None:
        self.space, self.about, self._constraints = space, (space, goal, constraints), constraints
        self._parameters = {name: Parameter(distribution) for name, distribution in space.items()}
        bounds = dict.fromkeys(constraints, ("<=", 0.0))
        self._replay = Replay(
            {name: p.parameter for name, p in self._parameters.items()}, goal, seed, constraints=bounds
        )
        self._finished: dict[int, tuple[FrozenTrial, list[Answer]]] = {}

    def __call__(self, trials: Sequence[FrozenTrial]) -> Optimizer:
        """The optimizer that knows all these trials."""
        under_way = [trial for trial in trials if not trial.state.is_finished()]
        oldest = next((trial.number for trial in under_way if trial.number >= len(trials) - RECENT), len(trials) + 1)
        told = [
            (trial.number, answer) for trial in trials if trial.state.is_finished() for answer in self._answer(trial)
        ]
        settled = sum(number < oldest for number, _ in told)
        pending = [self._params(trial) for trial in under_way if _inside(trial, self.space)]
        return self._replay([answer for _, answer in told], pending, settled)

    def _answer(self, trial: FrozenTrial) -> list[Answer]:
        """What a finished trial says, nothing if it is not of this space; storages keep such trials as they are."""
        known, answer = self._finished.get(trial.number, (None, []))
        if known is not trial:
            answer = (
                [(self._params(trial), _value(trial), None, self._told(trial))] if _inside(trial, self.space) else []
            )
            self._finished[trial.number] = trial, answer
        return answer

    @property
    def known(self) -> int:
        """How many finished trials were told."""
        return sum(len(answer) for _, answer in self._finished.values())

    def _told(self, trial: FrozenTrial) -> dict[str, float | None]:
        """The number of each constraint, None where none is stored."""
        stored = constraints_of(trial)
        return {name: stored.get(name) for name in self._constraints}

    def _params(self, trial: FrozenTrial) -> dict[str, Any]:
        return {name: parameter.ours(trial.params[name]) for name, parameter in self._parameters.items()}


@dataclass(frozen=True)
class Parameter:
    """One of Optuna's distributions as a parameter of ours; those with steps become whole numbers of steps."""

    distribution: BaseDistribution

    @property
    def parameter(self) -> Float | Int | Choice:
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Choice(list(range(len(d.choices))))
        assert isinstance(d, FloatDistribution | IntDistribution)
        if self._step is not None:
            return Int(0, round((d.high - d.low) / self._step))
        return Float(d.low, d.high, d.log) if isinstance(d, FloatDistribution) else Int(d.low, d.high, d.log)

    def value(self, ours: Any) -> Any:
        """The value as Optuna has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[ours]
        assert isinstance(d, FloatDistribution | IntDistribution)
        return ours if self._step is None else min(d.low + self._step * ours, d.high)

    def ours(self, value: Any) -> Any:
        """The value as the optimizer has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return int(d.to_internal_repr(value))
        assert isinstance(d, FloatDistribution | IntDistribution)
        return value if self._step is None else round((value - d.low) / self._step)

    @property
    def _step(self) -> float | None:
        d = self.distribution
        if isinstance(d, IntDistribution) and d.log:
            return None
        step = d.step if isinstance(d, FloatDistribution | IntDistribution) else None
        return None if isinstance(d, IntDistribution) and step == 1 else step


def _check_one_goal(study: Study) -> None:
    if len(study.directions) != 1:
        raise ValueError(f"NoRegretSampler is for studies with one objective, got {len(study.directions)}")


def _too_many(distribution: BaseDistribution) -> bool:
    """Whether it has more choices than an optimizer takes."""
    return isinstance(distribution, CategoricalDistribution) and len(distribution.choices) > MOST_OPTIONS


def _asking(study: Study, trial: FrozenTrial) -> int:
    """How many trials that began before this one have no params yet: threads and processes may ask all at once."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return sum(not other.params and other.number < trial.number for other in running)


def _inside(trial: FrozenTrial, space: dict[str, BaseDistribution]) -> bool:
    """Whether a trial is one of this space, with values inside it: ranges may change from trial to trial."""
    return trial.state != TrialState.WAITING and all(
        name in trial.params and distribution._contains(distribution.to_internal_repr(trial.params[name]))
        for name, distribution in space.items()
    )


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints that are stored with a trial, by name; 0 or less is feasible."""
    stored = trial.system_attrs.get(_CONSTRAINTS_KEY) or ()
    named = {
        key.partition(":")[2]: its for key, its in trial.system_attrs.items() if key.startswith(f"{_CONSTRAINTS_KEY}:")
    }
    numbers = {str(i): number for i, number in enumerate(stored)} | named
    return {name: float(min(max(number, -HUGE), HUGE)) for name, number in numbers.items()}


def _value(trial: FrozenTrial) -> float | None:
    """The result, None for a failure; a pruned trial's last report stands for its result."""
    if trial.state == TrialState.FAIL or trial.value is None or not abs(trial.value) <= HUGE:
        return None
    return trial.value
