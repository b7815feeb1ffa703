"""Optimizer: ask, measure, tell. No constants needed."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from importlib import import_module
from numbers import Integral
from threading import RLock
from typing import Any, TypeVar, cast, overload

import numpy as np

from noregret.gp.seeds import child, seed_sequence
from noregret.gp.threads import one_thread
from noregret.optimizer.answers.answers import Answers
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.answers.front import FrontAnswers, Gains, Hypervolume, JointEstimate
from noregret.optimizer.answers.paired import Pairs
from noregret.optimizer.checking import (
    StopRule,
    checked_confidence,
    checked_stop_rule,
    checked_tolerance,
    safe_risks,
)
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.log import Log, ReportProgress
from noregret.optimizer.measures import (
    Goal,
    checked_bound,
    checked_constraints,
    checked_cost,
    checked_goal,
    checked_goals,
)
from noregret.optimizer.model.constraints import RECOMMEND, UNKNOWN_FEASIBLE
from noregret.optimizer.model.costs import CostModel, CurrentCosts, Prices, prices_of
from noregret.optimizer.model.current import Beliefs, Snapshot
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.plots import Plots
from noregret.optimizer.problem import BadOption, ProblemDescription
from noregret.optimizer.questions.balance import Realised
from noregret.optimizer.questions.grow import Grow
from noregret.optimizer.questions.objectives import for_objectives
from noregret.optimizer.questions.questions import Opening, opening
from noregret.optimizer.questions.state import PendingSnapshot, state_of
from noregret.optimizer.rows import Piece, TrialRows, as_frame, joined, naming, table_rows
from noregret.optimizer.saving import read, write
from noregret.optimizer.space.contexts import Contexts, FixedContext, with_context
from noregret.optimizer.space.parameters import finite
from noregret.optimizer.space.space import ParameterSpace, Space
from noregret.optimizer.space.table import CandidateTable
from noregret.optimizer.standing import Doubt, Shift, Standing
from noregret.optimizer.trial import (
    VALUE,
    Block,
    Measurement,
    Observation,
    Reading,
    Trial,
    checked_block,
    corrected,
    withdrawn,
)

REMEMBERED = 1000
"""With drift, the number of last answers that are kept at least; fewer than twice as many are. Decision 0160."""

Method = TypeVar("Method", bound=Callable[..., Any])


def synchronized(method: Method) -> Method:
    """The method, for one thread at a time and on one BLAS thread: the matrices are too small for more."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock, one_thread():
            return method(self, *args, **kwargs)

    return cast(Method, guarded)


class Optimizer:
    """Finds the best params from noisy measurements, without constants to set.

    Several threads may use one optimizer: their calls are carried out one after another. With contexts, methods that
    take a ``context`` are about that one.

    Parameters
    ----------
    space : dict, or table of candidates
        ``{"rate": Float(1e-4, 1, log=True), "layers": Int(1, 8), "kind": Choice(["a", "b"])}``; or the rows to choose
        from, as a DataFrame, a list of dicts or an (N, d) array.
    goal : "minimize" or "maximize"
        "minimize" if it is not given.
    goals : dict, optional
        ``{"latency": "minimize", "cost": "minimize"}``, for several objectives, instead of ``goal``: see `front`.
    rng : None, int, SeedSequence or Generator
        The same seed and the same answers give the same questions.
    baseline : params, optional
        What others are compared with, see `gain`: measured first, and again as long as the gain hinges on its noise, in
        whichever context that is.
    context : dict, optional
        ``{"load": Float(0, 1), "region": Choice(["eu", "us"])}``: what is given with every question and not chosen.
    drift : "auto", or float, optional
        What is best changes as time passes: "auto" finds out whether it does and how fast, a number is the half-life in
        evaluations, after which half of what was learnt is out of date. Everything is then about now.
    constraints : dict, optional
        ``{"memory": ("<=", 512), "accuracy": (">=", 0.9)}``: numbers that come with each value, and may be noisy.
    require : list of str, optional
        ``["a <= b", "threads * batch <= 4096"]``: conditions on the parameters that every question and `best` meet.
        One holds where a parameter that it names does not apply. Past values of other settings are evidence only.
    budget : float, optional
        Cost that all trials may have together, in the units of ``tell(..., cost=)``. Questions weigh improvement by
        cost, the less the more is spent, and what likely costs more than what is left is not asked.
    safe : float, or dict of floats, optional
        ``0.99``: questions meet all constraints with this probability; ``{"memory": 0.99}``: they meet these. The first
        ones are the baseline, which must meet them, and its neighbours. `docs/guarantees.md` says what this rests on.
    possible : (float, float), optional
        ``(0, 1)`` for an accuracy, ``(0, None)`` for a time: the least and the largest value that there can be. No
        estimate and no end of an interval leaves it. With several objectives, a dict of ranges by name.
    fidelity : dict, optional
        ``{"epochs": Int(1, 81, log=True)}``: one number that says how well and at what cost to measure. A trial says at
        which fidelity; a measurement costs in proportion to it. Everything else is about the highest. See `report`.
    calibration : OptimizerConfig, optional
        How constants are got from the measurements; every step can be replaced.

    Examples
    --------
    >>> from noregret import Float, Optimizer
    >>> opt = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goal="minimize", rng=0)
    >>> noise = np.random.default_rng(1)
    >>> for _ in range(40):
    ...     trial = opt.ask()
    ...     value = (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2
    ...     opt.tell(trial, value + 0.01 * noise.standard_normal())
    >>> best = opt.best()
    >>> abs(best.params["x"] - 0.3) < 0.1, abs(best.params["y"] - 0.6) < 0.1
    (True, True)
    >>> best.lower <= best.estimate <= best.upper
    True
    """

    def __init__(
        self,
        space: Any,
        *,
        goal: Goal | None = None,
        rng: Any = None,
        baseline: Any = None,
        context: Any = None,
        drift: Any = None,
        constraints: Any = None,
        require: Any = None,
        budget: float | None = None,
        safe: Any = None,
        fidelity: Any = None,
        calibration: OptimizerConfig | None = None,
        goals: Any = None,
        possible: Any = None,
    ) -> None:
        if not isinstance(calibration, OptimizerConfig | None):
            raise ValueError(f"calibration must be an OptimizerConfig, got {calibration!r}")
        described = ProblemDescription(
            space=space,
            goal=checked_goal("minimize" if goal is None or goals else goal),
            baseline=baseline,
            context=context,
            drift=drift,
            constraints={} if constraints is None else constraints,
            require=require or (),
            safe=safe,
            fidelity=fidelity,
            goals=checked_goals(goal, goals) or {},
            possible=possible,
        )
        try:
            problem = described.checked()
        except BadOption as error:
            raise ValueError(str(error)) from None
        self.space, self.measures, self.goals = problem.settings, problem.measures, dict(problem.goals) or None
        self.goal = cast(Goal, None) if self.goals else problem.goal
        self.baseline, self.require, self.possible = problem.baseline, tuple(problem.require), possible
        self.constraints, self.drift, self.safe = checked_constraints(constraints), problem.drift, problem.safe
        self.context, self.fidelity = (None if setting is None else dict(setting) for setting in (context, fidelity))
        self._contexts, seed = Contexts(self.space, problem.contexts.contexts, problem.levels), seed_sequence(rng)
        self.calibration = calibration or OptimizerConfig()
        self.budget = None if budget is None else checked_cost(budget, "budget")
        self._log = Log(self._contexts, self.measures, self.baseline)
        if baseline is not None and context is None:
            self._history.intern(self._contexts.checked(self.baseline, None))
        self._root_seed = self._seed = seed
        self._forgotten, self._spent = 0, 0.0
        self._balance: Realised
        self._costs: CurrentCosts | None
        self._conclusions: tuple[int, int, Space, Any] | None
        self._start()
        self._last: PendingSnapshot | None = None  # what the last question saw
        self._lock = RLock()

    @property
    def _history(self) -> History:
        return self._log.history

    @overload
    def ask(self, count: None = None, context: Any = None, *, left: float | None = None) -> Trial: ...
    @overload
    def ask(self, count: int, context: Any = None, *, left: float | None = None) -> list[Trial]: ...

    @synchronized
    def ask(self, count: int | None = None, context: Any = None, *, left: float | None = None) -> Trial | list[Trial]:
        """Next trial to measure, in this context if there are contexts; with a ``count``, a list of trials.

        Pending trials are treated as if they had returned their predicted value. A trial that stays pending while ten
        times as many others are answered as were pending with it counts as lost.

        Parameters
        ----------
        count : int, optional
        context : dict, optional
        left : float, optional
            Cost that is left to spend on one trial, such as the seconds to a deadline; by default, the ``budget`` less
            the costs of all trials, those expected of pending ones included. If nothing fits, the cheapest is asked.
        """
        left = None if left is None else checked_cost(left, "left")
        if count is None:
            return self._log.send(self._next_point(self._contexts.within(context), left))
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"count must be a whole number from 1, got {count!r}")
        return [self.ask(context=context, left=left) for _ in range(count)]

    def _next_point(self, space: Space, left: float | None) -> int:
        """Number of the point to measure next."""
        pending = list(self._log.pending().values())
        start = Opening(self._history, space, self.calibration, self._seed, pending, self.safe is not None)
        first = opening(start)
        if first is not None and self.fidelity is not None:
            return self._log.at(first, self.calibration.looks.at_first(self._contexts, start, first))
        if first is not None:
            return first
        self._balance = self._balance.after(self._history)
        state = self._last = state_of(self._state(space, pending), pending, self._balance, self._last)
        if self._has_costs and (model := self._cost_model(state.history)) is not None:
            state = replace(state, prices=self._prices(model, state, left))
        rng = np.random.default_rng(child(self._seed, 2, len(self._history), len(pending)))
        questions = (self.calibration.explore, *self.calibration.questions)
        if self.safe is not None:
            questions = (Grow(self.calibration.first(space)), *questions)
        questions = for_objectives(questions) if self.goals else questions
        for question in questions:
            asked = question(state, rng)
            fits = state.prices is None or question is questions[-1] or asked is None or state.prices.fits(asked)
            if asked is not None and fits and state.permits(asked):
                break
        else:  # nothing else is safe
            return self._history.intern(with_context(self.baseline, space))
        params = state.params(asked) if isinstance(asked, int) else state.space.decode(asked[None])[0]
        point = state.belief.arms[asked] if isinstance(asked, int) else asked
        number = self._history.intern(params, point if state.space is space else None)
        if self.fidelity is None:
            return number
        return self._log.at(number, self.calibration.looks(self._contexts, state, number))

    @property
    def _has_costs(self) -> bool:
        return self.measures.cost in self._history.columns

    def _cost_model(self, history: History) -> CostModel | None:
        """Model of the costs, in the coordinates of this history; None if too few are known."""
        self._costs = self._costs or CurrentCosts(self.calibration)
        return self._costs.model(history)

    def _prices(self, model: CostModel, state: PendingSnapshot, left: float | None) -> Prices:
        """Predicted costs, and what is left to spend: as given, or of the budget."""
        if left is None and self.budget is not None:
            pending = [state.history.point(number) for number in state.pending]
            expected = float(np.exp(model.predict(np.array(pending))[0]).sum()) if pending else 0.0
            left = max(self.budget - self._spent - expected, 0.0)
        return prices_of(model, state.belief.arms, state.allowed, left, self.budget or self._spent + (left or 0.0))

    def _state(self, space: Space, needed: Iterable[int] = ()) -> Snapshot:
        return self._current.snapshot(self._history, space, needed)

    def _answers_in(self, context: Any, method: str) -> Any:
        """`Answers`, or `FrontAnswers`, about a context; ValueError if it is bad or there are fewer than two values."""
        space, history = self._contexts.within(context), self._history
        if history.measured < 2:
            raise ValueError(f"{method}() needs at least 2 values, {history.measured} told so far: tell more first")
        key = len(history), len(history.params), space
        if self._conclusions is None or self._conclusions[:3] != key:
            known, objectives = self._state(space).objectives, self.measures.objectives
            lacking = next((name for name in objectives if name not in known), None)
            if lacking:
                raise ValueError(f"{method}() needs at least 2 values of objective {lacking!r}: tell more first")
            about = self._contexts, self.calibration
            is_paired = self._log.has_pairs and self.baseline is not None and self.context is None and not self.goals
            held = self.pairs.held if is_paired else None
            each = {name: Answers(known[name], *about, aim, self._seed, held) for name, aim in objectives.items()}
            self._conclusions = (*key, FrontAnswers(each) if self.goals else each[VALUE])
        return self._conclusions[3]

    @synchronized
    def expect(
        self, params: Any, context: Any = None, *, fidelity: Any = None, number: int | None = None, pair: str = ""
    ) -> Trial:
        """A trial with params of your own: a first guess, or what another process has begun to measure.

        Its ``number`` is the next one, or one that is free. It is one half of the ``pair`` of this name, see `Pairs`.
        """
        return self._log.send(self._history.intern(self._contexts.checked(params, context, fidelity)), number, pair)

    @synchronized
    def tell(
        self,
        trial: Trial | Any,
        value: float | Mapping[str, float | None] | None = None,
        noise: float | None = None,
        constraints: Any = None,
        context: Any = None,
        cost: float | None = None,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        fidelity: Any = None,
        block: Block | None = None,
    ) -> None:
        """The value of a trial, or of params measured in the past. ValueError, and nothing changed, if it is bad.

        Parameters
        ----------
        trial : Trial, or params
            Params of a trial that is out answer that trial. Answers may come in any order, also after `fail`.
        value : float, or dict
            Values beyond 1e300 in size are taken for that. With several objectives the value of each by name,
            ``{"latency": 3.1, "cost": 0.2}``; those that were not measured may be missing, but not all.
        noise : float, optional
            Standard deviation of this value, if known; otherwise it is estimated.
        constraints : dict, optional
            The number of each constraint, ``{"memory": 480}``; None for one that was not measured.
        context : dict, optional
            The context that params were measured in, if there are contexts; a trial knows its own.
        at_least, at_most : float, optional
            In place of the value, a bound beyond which it lies: of a run that was cut short, for example. `best` never
            recommends params of which only bounds are known. Constraints that were not measured may be left out.
        cost : float, optional
            What the measurement has cost, above 0: seconds, or any other unit. Questions then weigh improvement by
            the cost that is expected, see ``budget``. Costs of params measured in the past do not count as spent.
        fidelity : dict, optional
            The fidelity that it was measured at, ``{"epochs": 9}``. By default that of the trial, or the one of its
            last report if `should_stop` was true; for params the highest.
        block : dict, optional
            What this measurement shares with others: ``{"machine": "n7", "seed": 3}``. All values of one machine may be
            a bit larger, and those of another one smaller. How much is estimated with the rest, and no part of what is
            said of settings, which is about the average machine.
        """
        block = checked_block(block)
        value, bound = checked_bound(value, at_least, at_most)
        readings = self.measures.readings(value, noise, constraints, cost, bound)
        at = self._contexts.checked_fidelity(fidelity)
        number, where = self._resolved(trial, context, fidelity)
        run = self._log.runs.get(number)
        at = at or (run.reached if run is not None and run.is_stopped else None)
        where = where if at is None else self._log.at(where, at)
        is_stopped = run is not None and run.is_stopped
        told = Trial(number, None, state="done", readings=readings, is_stopped=is_stopped, block=block)
        self._told(told, where, is_run=run is not None)

    @synchronized
    def report(self, trial: Trial, fidelity: Any, value: float | Mapping[str, float | None]) -> None:
        """An intermediate value of a trial that is still running: ``opt.report(trial, {"epochs": 9}, value)``.

        With several objectives the value of each by name, as `tell` takes it.

        Reports come with rising fidelities; others are ignored. Few of them are kept: the first one at or above each of
        five fidelities, evenly spaced on the parameter's own scale. The values of one run share its noise, so only the
        last of them is evidence. A trial ends with `tell`, stopped or not.
        """
        if self.fidelity is None:
            raise ValueError("report() needs a fidelity: make Optimizer(..., fidelity={...})")
        levels, readings = self._contexts.fidelity, self.measures.readings(value, None, dict.fromkeys(self.constraints))
        assert levels is not None
        reached, where = levels.checked(fidelity), self._log.where(trial)
        run = self._log.runs.get(trial.number) or ReportProgress(
            {levels.name: -math.inf}, kept=0, judged=0, is_stopped=False
        )
        if reached[levels.name] <= run.reached[levels.name]:
            return
        rung = levels.rung(reached)
        is_kept = rung > run.kept
        at = self._log.at(where, reached) if is_kept else None
        self._log.report(trial.number, run._replace(reached=reached, kept=rung), at, readings)

    @synchronized
    def should_stop(self, trial: Trial) -> bool:
        """Return True if a running trial is unlikely to be better, at the highest fidelity, than what is recommended.

        With several objectives, if one setting is likely better in all of them.
        Judged from its reports so far and all other values. Stop it then, and `tell` its last value. False before the
        first fit. It stays true once it was.
        """
        if self.fidelity is None:
            raise ValueError("should_stop() needs a fidelity: make Optimizer(..., fidelity={...})")
        where, run = self._log.where(trial), self._log.runs.get(trial.number)
        if run is None or run.is_stopped or run.judged == run.kept:
            return run is not None and run.is_stopped
        history, space = self._history, self._contexts.within(trial.context)
        is_stopped = False
        if history.measured >= max(2, self.calibration.first(history.space)):
            assert isinstance(space, FixedContext)
            top = self._log.at(where, space.context)
            is_stopped = self.calibration.looks.should_stop(self._state(space, [top]), top)
        self._log.runs[trial.number] = run._replace(judged=run.kept, is_stopped=is_stopped)
        return is_stopped

    @synchronized
    def tell_many(self, frame: Any) -> None:
        """Measurements of the past, all or none: ValueError, and nothing changed, if one of them is bad.

        Parameters
        ----------
        frame : DataFrame, list of dicts, or dict of columns
            Its columns are those of `to_frame`; all but parameters, contexts and values may be missing. What has no
            column or an empty cell was not measured. In ``state``, "failed" is `fail`, and "running" says nothing. Of
            the rows of one ``trial`` that has "reported", only the last is evidence.
        """
        rows, table, numbered = table_rows(frame), self._rows, list[tuple[int, Piece]]()
        table.check(dict.fromkeys(column for row in rows for column in row))
        is_array, trials = isinstance(self.space, CandidateTable) and self.space.is_array, list[tuple[Trial, Any]]()
        for number, row in enumerate(rows):
            with naming(f"row {number} of the frame"):
                numbered.append((number, table.piece(row, lambda given: list(given.values()) if is_array else given)))
        for number, trial in joined(numbered):
            if trial.is_finished or any(map(trial.reports, self.measures.objectives)):
                with naming(f"row {number} of the frame"):
                    trials.append((replace(trial, id=-1), self._whole(trial)))
        self._take(trials)

    @synchronized
    def add(self, trials: Iterable[Trial]) -> None:
        """Take in trials that have an outcome, such as those of another optimizer, with all that is known of them.

        All or none: ValueError, and nothing changed, if one has bad params, or is done and has no value. A trial whose
        number is free keeps it, and one of a pending trial answers that. Others answer the oldest pending trial with
        their params, or get a new number.
        """
        self._take([(trial, self._whole(trial)) for trial in trials])

    def _whole(self, trial: Trial) -> Any:
        """Params of the whole space of a trial from elsewhere, which has a value if it is done.

        A failure has the highest fidelity.
        """
        if trial.state == "done" and not any(map(trial.runs, self.measures.objectives)):
            raise ValueError(
                f"trial {trial.number} is done and has no value of {list(self.measures.objectives)}, got readings of "
                f"{list(trial.readings)}: add one, or give it the state 'failed'"
            )
        return self._contexts.checked(trial.params, trial.context, None if trial.state == "failed" else trial.fidelity)

    def _take(self, checked: Iterable[tuple[Trial, Any]]) -> None:
        """Take in trials with their params of the whole space."""
        for trial, whole in checked:
            self._log.take(trial, whole)
            self._forget()

    @synchronized
    def fail(self, trial: Trial | Any, context: Any = None, cost: float | None = None, *, reason: str = "") -> None:
        """A trial, or params tried in the past, gave no value, at whatever fidelity; it may have a cost as in `tell`.

        Reports of the trial are no evidence then. Params that likely never will, since they or their neighbours keep
        failing, are not asked for again.
        """
        readings = {} if cost is None else {self.measures.cost: (Reading(checked_cost(cost)),)}
        if isinstance(trial, Trial) and self._log.has_failed(trial):
            return
        number, where = self._resolved(trial, context)
        is_run = number in self._log.runs
        if self._contexts.fidelity is not None:
            where = self._log.at(where, self._contexts.fidelity.highest)
        self._told(Trial(number, None, state="failed", readings=readings, failure=reason), where, is_run)

    @synchronized
    def correct(self, trial: Trial | int, value: Any, *, constraints: Any = None, reason: str = "") -> None:
        """Replace what was recorded of a trial: everything is then as if it had been reported so in its place.

        What was recorded before stays in the trial's ``earlier``, with the reason, and is no evidence.

        Parameters
        ----------
        trial : Trial or int
            A trial that has an outcome, or its number; one that failed or was withdrawn may get a value, too.
        value : float, dict or Reading
            As `tell` takes it. Numbers that are not named stay as they are; None takes one back.
        constraints : dict, optional
        reason : str
        """
        old = self._finished(trial)
        self._correct(old, corrected(old, self.measures.corrected(old, value, constraints), reason))

    @synchronized
    def withdraw(self, trial: Trial | int, reason: str = "") -> None:
        """Take a trial that has an outcome out of all conclusions. It stays in `trials`, with the reason."""
        old = self._finished(trial)
        self._correct(old, withdrawn(old, reason))

    def _finished(self, trial: Trial | int) -> Trial:
        """A trial with an outcome, as it is recorded; ValueError if there is none."""
        number = trial.number if isinstance(trial, Trial) else trial
        stored = next((each for each in self._log.trials() if each.number == number), None)
        if stored is None:
            raise ValueError(f"there is no trial {number}")
        if isinstance(trial, Trial) and trial.token != stored.token:
            raise ValueError(
                f"trial {number} is not one of this optimizer's: correct it by its number if it is the same"
            )
        if not stored.is_finished:
            raise ValueError(f"trial {number} has no outcome yet: tell it")
        return stored

    def _correct(self, old: Trial, new: Trial) -> None:
        """Put a trial in the place of the record of it, unless it is that, and compute everything again."""
        if new is old:
            return
        self._spent += self._log.correct(old, new)
        self._start()

    @overload
    def best(self, context: Any = None, *, fewest_changes: bool | None = None) -> Estimate: ...
    @overload
    def best(self, context: Any = None, *, limits: Any = None, weights: Any = None) -> JointEstimate: ...

    @synchronized
    def best(
        self, context: Any = None, *, limits: Any = None, weights: Any = None, fewest_changes: bool | None = None
    ) -> Any:
        """The params with the largest lower confidence bound (upper, if minimising): not the luckiest measurement.

        Of those that meet all constraints with a probability of at least 0.95; if there are none, the likeliest. With
        a baseline, a setting that runs in pairs with it (`pairs`) stays until another one is shown to be better.

        Parameters
        ----------
        fewest_changes : bool, optional
            Keep the baseline's value of every parameter where the observations show no difference; by default, if
            there is a baseline. Such a setting need not have been measured itself. See ``changes`` of the result.
        limits : dict, optional
            With several objectives, ``{"cost": ("<=", 0.3)}``: the setting of `front` that meets all of them and is
            best in the other objective, or by the weights.
        weights : dict, optional
            With several objectives, ``{"latency": 1, "cost": 10}``: the setting of `front` with the best weighted sum.

        Returns
        -------
        Estimate, or JointEstimate of several objectives
        """
        self._contexts.within(context)
        if self.goals:
            if fewest_changes:
                raise ValueError("fewest_changes is for one objective: leave it out, and see gain()")
            return self._answers_in(context, "best").best(limits, weights)
        if limits is not None or weights is not None:
            raise ValueError("limits and weights are for several objectives: Optimizer(..., goals={...})")
        if fewest_changes and self.baseline is None:
            raise ValueError("fewest_changes needs something to change: Optimizer(..., baseline=params)")
        history = self._history
        if history.measured > 1:
            return self._answers_in(context, "best").best(fewest_changes is not False)
        if not history.measured:
            raise ValueError("best() needs a value: tell one first")
        only = self._only_value()
        if only is None:
            raise ValueError("best() needs a value of params that meet require: tell one first")
        chance, (where, value) = math.exp(UNKNOWN_FEASIBLE * len(self.constraints)), only
        estimate = Estimate(self._log.split(where).params, value, -math.inf, math.inf, feasible=chance)
        return estimate if chance >= RECOMMEND else estimate.as_likeliest()

    @synchronized
    def front(self, context: Any = None) -> list[JointEstimate]:
        """The best compromises between several objectives, the best in the first objective first.

        No other setting is likely better in one objective and not worse in another, by the cautious bounds of the
        model: one lucky observation does not put a setting here. Settings that are unlikely to meet the constraints are
        no part of it. Needs two values of each objective.
        """
        return cast("list[JointEstimate]", list(self._of_several(context, "front").front))

    @synchronized
    def hypervolume(self, reference: Any = None, context: Any = None) -> Hypervolume:
        """Volume between `front` and a reference point, with its interval: the larger, the better the front.

        It is about the listed settings, and says nothing about what is left to find: it may stay the same while much
        is, and fall when later observations correct the estimates.

        Parameters
        ----------
        reference : dict, optional
            A value of each objective, ``{"latency": 10, "cost": 1}``; by default the worst estimate of a measured
            setting, which changes with the observations.
        """
        return cast(Hypervolume, self._of_several(context, "hypervolume").hypervolume(reference))

    def _of_several(self, context: Any, method: str) -> Any:
        if not self.goals:
            raise ValueError(f"{method}() needs several objectives: Optimizer(..., goals={{'name': 'minimize', ...}})")
        return self._answers_in(context, method)

    def _only_value(self) -> tuple[int, float] | None:
        """Point and value of the first one of params that meet ``require``, None if there is none."""
        history, replaced = self._history, self._history.reports
        readings = ((i, history.reading(i)) for i in range(len(history)) if i not in replaced)
        values = ((history.where(i), seen.value) for i, seen in readings if seen.value == seen.value and not seen.bound)
        sign, split, violated = self.measures[VALUE].sign, self._log.split, self.space.violated
        return next(((where, sign * value) for where, value in values if violated(split(where).params) is None), None)

    @synchronized
    def done(self, within: float | str, confidence: float = 0.95, by: StopRule = "model", context: Any = None) -> bool:
        """Return True if no setting is likely to be better than `best` by more than ``within``.

        It is no before the first fit, while noise alone may explain the values, and while `best` meets all constraints
        with less probability than ``confidence``. Settings that hardly can meet them do not count. Heuristic: see the
        page on the Optimizer for what it rests on and how often it was right.

        Parameters
        ----------
        within : float, or str
            In the units of the values; or "2%", of the size of the best estimate.
        confidence : float
            Level at which the model is asked: what is left to gain exceeds ``within`` in at most 1 - confidence of its
            draws. It is not the probability that a stop is right.
        by : "model" or "certificate"
            By "model", ``best().remaining`` is at most ``within``: under the worst of the models that the observations
            do not refute, which miss hills narrower than ``best().narrowest``. By "certificate", tested under each of
            these models, and only when almost all settings have a trial near them: in three dimensions and more it is
            hardly ever yes.
        """
        self._contexts.within(context)
        checked_tolerance(within)
        checked_confidence(confidence)
        checked_stop_rule(by)
        if self.goals:
            raise ValueError("done() is about one objective: with several, stop when the budget is spent")
        return self._history.measured > 1 and self._answers_in(context, "done").is_done(within, confidence, by)

    @overload
    def gain(self, context: Any = None) -> Gain: ...
    @overload
    def gain(self, context: Any = None, *, limits: Any = None, weights: Any = None) -> Gains: ...

    @synchronized
    def gain(self, context: Any = None, *, limits: Any = None, weights: Any = None) -> Any:
        """Improvement of `best` on the baseline, with the interval of the difference.

        Both in this context, if there are contexts. With several objectives, the gain in each by name: that of
        ``best(limits=..., weights=...)``, or else of the setting of `front` that is better by most in the objective
        where it is by least.
        """
        if self.baseline is None:
            raise ValueError("gain() needs something to compare with: Optimizer(..., baseline=params)")
        self._contexts.within(context)
        if not self._has_gain:
            raise ValueError("gain() needs a value of the baseline and one more: tell them first")
        answers, baseline = self._answers_in(context, "gain"), self._contexts.checked(self.baseline, context)
        is_chosen = limits is not None or weights is not None
        gain = answers.gain(baseline, self.best(context, limits=limits, weights=weights) if is_chosen else None)
        if self.goals or self.context is not None:
            return gain
        return replace(gain, measured=self.pairs.measured(gain.best.params, self.goal))

    @synchronized
    def gains_over(self, params: Any, others: Iterable[Any], context: Any = None) -> list[Gain]:
        """Improvement of these params on each of the others, with the interval of the difference.

        A difference is known better than either value: what two settings have in common does not widen its interval.
        For one objective.

        >>> opt = Optimizer([{"x": 0}, {"x": 1}, {"x": 2}], rng=0)
        >>> for repeat in range(8):
        ...     for x in range(3):
        ...         opt.tell({"x": x}, 10 * (x > 1) + repeat % 2)
        >>> same, worse = opt.gains_over({"x": 0}, [{"x": 1}, {"x": 2}])
        >>> bool(same.lower > 0), bool(worse.lower > 0)
        (False, True)
        """
        if self.goals:
            raise ValueError("gains_over() is for one objective: see front()")
        setting, *rest = (self._contexts.checked(each, context) for each in (params, *others))
        return self._answers_in(context, "gains_over").gains_over(setting, rest) if rest else []

    @property
    @synchronized
    def pairs(self) -> Pairs:
        """Runs in pairs with the baseline, by the ``pair`` of the trials."""
        if self.baseline is None:
            raise ValueError("pairs are runs of a setting and the baseline: make Optimizer(..., baseline=params)")
        return Pairs(self._log.trials(), self.space.key, self.baseline)

    @synchronized
    def cap(self, factor: float = 2.0, context: Any = None) -> float:
        """Value at which a run may be cut short, if its value grows while it runs as its time does.

        It is ``factor`` times the largest value that a measurement of the best setting is likely to have: the least
        upper end of an interval of a measured setting, with 2.5 standard deviations of the noise on top. So no setting
        is cut that could be the best. Infinite while no interval is known: two or three values of one setting make it
        known early. Report the run with ``tell(trial, at_least=...)``.

        Parameters
        ----------
        factor : float
            At least 1.
        """
        if self.goal != "minimize":
            raise ValueError("cap() needs values to be made small, such as times, and this optimizer maximizes")
        if not finite(factor) or factor < 1:
            raise ValueError(f"factor must be a number from 1, got {factor!r}")
        self._contexts.within(context)
        worst = self._answers_in(context, "cap").worst_value() if self._history.measured > 1 else math.inf
        return factor * worst if worst > 0 else math.inf

    @property
    def _has_gain(self) -> bool:
        """True if the baseline has a value, in whatever context, and another one is known."""
        return any(map(self._history.answered, self._history.baseline_points)) and self._history.measured > 1

    @synchronized
    def predict(self, params: Any, context: Any = None) -> Estimate:
        """Estimate of the value of these params, in this context if there are contexts.

        With several objectives a `JointEstimate`.
        """
        return cast(Estimate, self.predict_many([params], context)[0])

    @synchronized
    def predict_many(self, params: Iterable[Any], context: Any = None) -> list[Any]:
        """Estimate of each of these params: cheaper than one after another."""
        checked = [self._contexts.checked(each, context) for each in params]
        answers = self._answers_in(context, "predict")
        estimates = answers.predict(checked) if checked else []
        history = self._history if self.goals else answers.state.history
        model = self._cost_model(history) if estimates and self._has_costs and not self.goals else None
        if model is None:
            return estimates
        costs = np.exp(model.predict(history.space.encode(checked))[0]).tolist()
        return [replace(estimate, cost=cost) for estimate, cost in zip(estimates, costs, strict=True)]

    @synchronized
    def importance(self, *, better_half: bool = False) -> dict[str, Any]:
        """Share of the difference between settings that each parameter accounts for, the most important first.

        With ``better_half``, all settings of the worse half count as equal, as bad as the median. Needs a space of
        Float, Int and Choice, no table, no contexts, and at least two values. Shares add up to more than 1 where
        parameters act together. With several objectives, a dict of these for each objective by name.
        """
        if not isinstance(self._history.space, ParameterSpace):
            came = "contexts" if self.context else "a fidelity" if self.fidelity else "a table of candidates"
            raise ValueError(
                f"importance() needs a space of Float, Int and Choice, without contexts or a fidelity, got {came}"
            )
        return cast(dict[str, Any], self._answers_in(None, "importance").importance(better_half))

    @synchronized
    def to_frame(self) -> Any:
        """All trials as a DataFrame (extra ``frames``): those with an outcome in its order, then those that are out.

        Columns are ``trial state value noise`` (with several objectives ``trial state`` and ``value.NAME`` of each),
        one per parameter, ``context.NAME``, ``fidelity.NAME`` and ``constraint.NAME``; and where there is anything in
        them, ``measure.NAME`` of tracked numbers, ``noise.NAME`` and ``bound.NAME`` of named readings, ``block.NAME``,
        ``bound`` ("at_least" or "at_most"), ``cost``, ``failure``, ``started`` and ``seconds``. The state is "done",
        "failed", "running" or "withdrawn". Each report of a trial that was kept has a row of its own before the
        trial's, with the state "reported", and so has each of several runs ("run") and what was replaced by a
        correction ("withdrawn").
        """
        return as_frame(self._rows, self._log.by_outcome())

    @property
    def _rows(self) -> TrialRows:
        contexts, levels = self._contexts.contexts, self._contexts.fidelity
        about = contexts.names if contexts else (), [levels.name] if levels else ()
        return TrialRows(self.space.names, self.measures, *about)

    @property
    @synchronized
    def trials(self) -> list[Trial]:
        """All trials by number: with an outcome, pending, and withdrawn."""
        return self._log.trials()

    @property
    @synchronized
    def pending(self) -> list[Trial]:
        """Trials without an answer, oldest first: after `load`, those to measure again or to `fail`."""
        return self._log.unanswered()

    @synchronized
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write arguments, seed, history and pending trials to a JSON file, and nothing else: no code, no pickle.

        A crash during writing leaves the previous file intact. Options of a `Choice` and cells of a table must be text,
        numbers, True, False, None or tuples of these. Of a ``calibration`` only numbers are written: `load` takes it.
        """
        write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, calibration: OptimizerConfig | None = None) -> Optimizer:
        """Continue a saved optimizer: with the same version of noregret it asks the same questions.

        Parameters
        ----------
        path : path of the file
        calibration : OptimizerConfig, optional
            The one it was made with, if more than numbers in it was changed.
        """
        return cast(Optimizer, read(path, cls, calibration))

    @synchronized
    def __repr__(self) -> str:
        return str(self._standing())

    @synchronized
    def _repr_html_(self) -> str:
        return self._standing().html()

    def _standing(self) -> Standing:
        history, is_one = self._history, not self._contexts.contexts  # each context has another best
        best = gain = front = None
        if self.goals:
            front = self.front() if is_one and history.least_measured > 1 else None
        elif is_one:
            best = self.best() if history.measured > 1 or self._only_value() else None
            gain = self.gain() if self._has_gain else None
        goal = ", ".join(f"{goal} {name}" for name, goal in (self.goals or {}).items()) or self.goal
        counts = history.measured, history.failures, self._log.out
        about = goal, self.space.names, self.constraints, *counts, best, gain, self.half_life
        return Standing(*about, 0 if self.goals else history.column.bounds, front, self.shift, self.doubts)

    @property
    def plot(self) -> Plots:
        """Pictures with matplotlib: ``plot.history()``, ``effects()``, ``contour(a, b)`` and ``importance()``.

        With several objectives, ``plot.front()``.
        """
        return Plots(self)

    def page(self, title: str = "", *, against: Any = None) -> Any:
        """The page of `noregret.report` as it is now, which a notebook shows: ``page = opt.page()``.

        ``page.refresh()`` brings the page in the notebook up to date, ``page.save("page.html")`` writes it to a file,
        and ``str(page)`` is its HTML. Another optimizer with the same goal may be shown ``against`` this one.
        """
        return import_module("noregret").report(self, against=against, title=title)

    @property
    @synchronized
    def calibrated(self) -> FittedModels:
        """Scale, kernel and noise model that were fitted at the last milestone."""
        return self._any_state().models

    @property
    @synchronized
    def half_life(self) -> float:
        """The evaluations after which half of what was learnt is out of date; infinite if nothing is found to change.

        Given with `drift`, or found out at the last milestone if that is "auto".
        """
        return self._any_state().models.fit.half_life if self._history.measured > 1 else math.inf

    @property
    @synchronized
    def shift(self) -> Shift | None:
        """Change of the machine during the study, which repeats of the baseline and all other values show; or None.

        The values before it are corrected by it in everything that is stated. With `drift` or several objectives it is
        not looked for.
        """
        step = None if self.goals or self._history.measured < 2 else self._any_state().step
        return None if step is None else Shift(step.until, self.measures[VALUE].sign * step.by)

    @property
    @synchronized
    def doubts(self) -> list[Doubt]:
        """Values that lie absurdly far from what all others say, the farthest first; see `correct` and `withdraw`.

        They hardly count. With a few trials a value that is only somewhat off may pass for a narrow peak.
        """
        if self._history.measured < 2:
            return []
        doubts = list[Doubt]()
        for name, state in self._any_state().objectives.items():
            numbers, sign = state.history.values(len(self._history)), self.measures.objectives[name].sign
            for index, away in state.absurd().items():
                doubts.append(Doubt(self._log.trial_of(index), sign * float(numbers[index]), away))
        return sorted(doubts, key=lambda doubt: -doubt.deviations)

    @property
    @synchronized
    def measurements(self) -> list[Measurement]:
        """All values told, in order, and how far each is trusted; with several objectives, both by name."""
        measurements, weights = list[Measurement](), self._weights
        for index, (_, answer) in enumerate(self._log.observations()):
            if answer.value is not None:
                value: Any = dict(answer.values) if self.goals else answer.value
                trust: Any = {n: weights[n][index] for n in answer.values} if self.goals else weights[VALUE][index]
                measurements.append(Measurement(answer.params, value, trust, answer.context, answer.bound))
        return measurements

    @property
    def _weights(self) -> dict[str, list[float]]:
        """Trust in each answer by objective, at most 1."""
        count, names = len(self._history), self.measures.objectives
        each = self._any_state().objectives if self._history.measured > 1 else {}
        return {n: np.minimum(each[n].all_trust(), 1.0).tolist() if n in each else [1.0] * count for n in names}

    @synchronized
    def weights(self) -> dict[int, float]:
        """Trust in the value of each trial, by its number: 1 if it fits the others, about 0 if it is absurd.

        Of a trial with several runs it is the largest, of several objectives the least.
        """
        trust: dict[int, float] = {}
        columns = list(self._weights.values())
        for index, (number, answer) in enumerate(self._log.observations()):
            known = [column[index] for column in columns if column[index] == column[index]]
            if known and not answer.is_report:
                trust[number] = max(trust.get(number, 0.0), min(known))
        return trust

    @property
    @synchronized
    def answers(self) -> list[Observation]:
        """Every answer in order, failures too."""
        return [observation for _, observation in self._log.observations()]

    def _any_state(self) -> Snapshot:
        """State in the context that was looked at last, or in all of the space."""
        return self._state(self._current.space)

    @synchronized
    def __copy__(self) -> Optimizer:
        """Return an optimizer of its own with the same past: cheap, since what never changes is shared."""
        twin = Optimizer.__new__(Optimizer)
        twin.__setstate__(self.__getstate__())
        twin._log, twin._current = self._log.copy(), copy.copy(self._current)
        twin._costs = copy.copy(self._costs)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock and what can be computed again."""
        with self._lock:
            return vars(self) | {"_lock": None, "_conclusions": None, "_last": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_lock": RLock()})

    def _told(self, trial: Trial, where: int, is_run: bool) -> None:
        """Take in the outcome of a trial."""
        self._spent += self._log.tell(trial, where, is_run)
        self._forget()

    def _forget(self) -> None:
        """With drift, forget the older half of the answers when there are twice `REMEMBERED`."""
        if self.drift is not None and len(self._history) >= 2 * REMEMBERED:
            self._forgotten += REMEMBERED
            self._log.forget(REMEMBERED)
            self._seed = child(self._root_seed, 6, self._forgotten)
            self._start()

    def _start(self) -> None:
        """Begin with this history: everything else is computed from it and the seed."""
        space, config, constraints = self._history.space, self.calibration, self.constraints.values()
        risks = safe_risks(self.safe, self.constraints) if self.safe is not None else None
        self._current = Beliefs(space, config, self._seed, self.measures, self.drift, risks)
        is_simple = self.context is None and not constraints and self.drift is None
        is_comparable = is_simple and self.fidelity is None and not self.goals
        self._balance = config.explore.start(space.count, config.first(space), is_comparable)
        self._costs = self._conclusions = None

    def _resolved(self, trial: Trial | Any, context: Any, fidelity: Any = None) -> tuple[int, int]:
        """Number and point of what an answer is about."""
        if not isinstance(trial, Trial):
            where = self._history.intern(self._contexts.checked(trial, context, fidelity))
            return self._log.past(where), where
        if context is not None:
            raise ValueError(f"a trial knows its context, got {context!r}: leave it out")
        return trial.number, self._log.where(trial)
