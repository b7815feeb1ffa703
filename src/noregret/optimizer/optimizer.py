"""Optimizer: ask, measure, tell. No constants needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import wraps
from numbers import Integral
from threading import RLock
from typing import Any, TypeVar, cast, overload

import numpy as np

from noregret.decision.playing import child, seed_sequence
from noregret.optimizer.questions.asking import Asking
from noregret.optimizer.model.hypotheses import FittedModels, OptimizerConfig
from noregret.optimizer.answers.importance import Share
from noregret.optimizer.checking import Goal, checked_goal
from noregret.optimizer.questions.baseline import checked_baseline
from noregret.optimizer.answers.gain import Gain
from noregret.optimizer.answers.conclusions import Conclusions
from noregret.optimizer.constraint import checked_constraints
from noregret.optimizer.model.drift import checked_drift
from noregret.optimizer.answers.estimate import Estimate
from noregret.optimizer.history import FAILURE, Arrival, History
from noregret.optimizer.frames import Frames
from noregret.optimizer.words import Standing
from noregret.optimizer.space.contexts import Pair, checked_contexts
from noregret.optimizer.space.table import as_space
from noregret.optimizer.model.current import Tracker
from noregret.optimizer.trials import Measurement, Observation, Trial, Trials

KEPT = 1000
"""With drift, so many of the last answers are kept at least, and fewer than twice as many."""

Method = TypeVar("Method", bound=Callable[..., Any])


def alone(method: Method) -> Method:
    """The method, for one thread at a time: it holds the lock ``_lock`` of its object."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(Method, guarded)


class Optimizer:
    """Finds the best params from noisy measurements, when nobody knows the constants.

    Several threads may use one optimizer: their calls are carried out one after another.

    Parameters
    ----------
    space : dict, or table of candidates
        ``{"rate": Float(1e-4, 1, log=True), "layers": Int(1, 8), "kind": Choice(["a", "b"])}``; or the rows to choose
        from, as a DataFrame, a list of dicts or an (N, d) array.
    goal : "minimize" or "maximize"
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
        ``{"memory": ("<=", 512), "accuracy": (">=", 0.9)}``: numbers that are told with each value, and may be noisy.
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
        goal: Goal = "minimize",
        rng: Any = None,
        baseline: Any = None,
        context: Any = None,
        drift: Any = None,
        constraints: Any = None,
        calibration: OptimizerConfig | None = None,
    ) -> None:
        if not isinstance(calibration, OptimizerConfig | None):
            raise ValueError(f"calibration must be an OptimizerConfig, got {calibration!r}")
        self.space, self.goal = as_space(space), checked_goal(goal)
        self.calibration, self.constraints = calibration or OptimizerConfig(), checked_constraints(constraints)
        self.drift = checked_drift(drift)
        self._contexts, seed = checked_contexts(self.space, context), seed_sequence(rng)
        self.context = None if context is None else dict(context)
        self.baseline = None if baseline is None else checked_baseline(self.space, baseline)
        self._history = History(self._contexts.whole, self.baseline)
        if baseline is not None and context is None:
            self._history.meet(self.baseline)
        self._seed, self._forgotten = seed, 0
        self._learn_from(self._history)
        self._frames = Frames(self._contexts, self.constraints, self._conclusions.sign)
        self._trials, self._lock = Trials(), RLock()

    @overload
    def ask(self, count: None = None, context: Any = None) -> Trial: ...
    @overload
    def ask(self, count: int, context: Any = None) -> list[Trial]: ...

    @alone
    def ask(self, count: int | None = None, context: Any = None) -> Trial | list[Trial]:
        """What to measure next, in this context if there are contexts; with a ``count``, so many things at once.

        Trials that are out are taken into account: they count as measured, with a value as expected. One that
        stays out while ten times as many others are answered as were out with it is taken for lost.
        """
        if count is None:
            self._conclusions.turn_to(context)
            return self._sent(self._asking.next_point())
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"count must be a whole number from 1, got {count!r}")
        return [self.ask(context=context) for _ in range(count)]

    @alone
    def expect(self, params: Any, context: Any = None) -> Trial:
        """A trial with params of your own: a first guess, or what another process has begun to measure."""
        return self._sent(self._history.meet(self._contexts.checked(params, context)))

    @alone
    def tell(
        self,
        trial: Trial | Any,
        value: float,
        noise: float | None = None,
        constraints: Any = None,
        context: Any = None,
    ) -> None:
        """The value of a trial, or of params measured in the past. ValueError, and nothing changed, if it is bad.

        Parameters
        ----------
        trial : Trial, or params
            Params of a trial that is out answer that trial. Answers may come in any order, also after `fail`.
        value : float
            Values beyond 1e300 in size are taken for that.
        noise : float, optional
            Standard deviation of this value, if known; otherwise it is estimated.
        constraints : dict, optional
            The number of each constraint, ``{"memory": 480}``; None for one that was not measured.
        context : dict, optional
            The context that params were measured in, if there are contexts; a trial knows its own.
        """
        arrival = self._frames.arrival(value, noise, constraints)
        self._add(arrival._replace(where=self._resolved(trial, context, failing=False)))

    @alone
    def tell_many(self, frame: Any) -> None:
        """Measurements of the past, all or none: ValueError, and nothing changed, if one of them is bad.

        Parameters
        ----------
        frame : DataFrame, list of dicts, or dict of columns
            Columns are named like the parameters, ``context.NAME``, ``value``, and optionally ``noise`` and
            ``constraint.NAME``, as in `to_frame`, whose ``state`` counts too: "failed" is `fail`, and "running" says
            nothing. What has no column or an empty cell was not measured.
        """
        for params, arrival in self._frames.arrivals(frame):
            self._add(arrival._replace(where=self._met(params, arrival.failed)))

    @alone
    def fail(self, trial: Trial | Any, context: Any = None) -> None:
        """A trial, or params tried in the past, gave no value.

        Params that likely never will, since they or their neighbours keep failing, are not asked for again.
        """
        if isinstance(trial, Trial) and self._trials.has_failed(trial):
            return
        self._add(FAILURE._replace(where=self._resolved(trial, context, failing=True)))

    @alone
    def best(self, context: Any = None) -> Estimate:
        """The params with the largest lower confidence bound (upper, if minimising): not the luckiest measurement.

        In this context, if there are contexts. Of those that meet all constraints with a probability of at least 0.95;
        if there are none, the likeliest.
        """
        self._conclusions.turn_to(context)
        return self._conclusions.best()

    @alone
    def done(self, within: float | str, confidence: float = 0.95, context: Any = None) -> bool:
        """Whether to stop: no setting is likely to be better than `best` by more than ``within``.

        Ask after every answer if you like: the confidence is that of the first yes. It is no before the first fit, and
        until there are measurements near almost all settings, so in many dimensions it may be no for ever, and while
        `best` meets all constraints with less probability than ``confidence``. Settings that hardly can meet
        them do not count. Heuristic: see the page on the Optimizer for what it rests on and how often it was right.

        Parameters
        ----------
        within : float, or str
            In the units of the values; or "2%", of the size of the best estimate.
        confidence : float
            Probability of being right.
        context : dict, optional
            The context that it is about, if there are contexts.
        """
        self._conclusions.turn_to(context)
        return self._conclusions.is_done(within, confidence)

    @alone
    def gain(self, context: Any = None) -> Gain:
        """How much better `best` is than the baseline, with the interval of the difference.

        Both in this context, if there are contexts.
        """
        if self.baseline is None:
            raise ValueError("gain() needs something to compare with: Optimizer(..., baseline=params)")
        return self._conclusions.gain(self.baseline, context)

    @alone
    def predict(self, params: Any, context: Any = None) -> Estimate:
        """What is believed about these params, in this context if there are contexts."""
        return self._conclusions.predict(params, context)

    @alone
    def predict_many(self, params: Iterable[Any], context: Any = None) -> list[Estimate]:
        """What is believed about each of these params: cheaper than one after another."""
        return self._conclusions.predict_many(params, context)

    @alone
    def importance(self) -> dict[str, Share]:
        """How much of the difference between settings each parameter accounts for, the most important first.

        Needs a space of Float, Int and Choice, no table, no contexts, and at least two values. Shares add up to more
        than 1 where parameters act together.
        """
        return self._conclusions.importance()

    @alone
    def to_frame(self) -> Any:
        """All answers in order and the trials that are out, as a DataFrame (extra ``frames``).

        Columns are ``trial state value noise``, one per parameter, ``context.NAME`` and ``constraint.NAME``. The state
        is "done", "failed" or "running"; a trial is empty where params of the past were told.
        """
        return self._frames.frame(self._history, self._trials)

    @alone
    def __repr__(self) -> str:
        return str(self._standing())

    @alone
    def _repr_html_(self) -> str:
        return self._standing().html()

    def _standing(self) -> Standing:
        values, out = self._history.measured, len(self._trials.running())
        is_one = not self._contexts.contexts  # each context has another best
        best = self.best() if values and is_one else None
        gain = self.gain() if self._conclusions.has_gain and is_one else None
        failed = len(self._history.arrivals) - values
        names, half_life = self.space.names, self.half_life
        return Standing(self.goal, names, self.constraints, values, failed, out, best, gain, half_life)

    @property
    @alone
    def calibrated(self) -> FittedModels:
        """Scale, kernel, noise and view of the noise that the measurements led to, as of the last milestone."""
        return self._tracker.calibrated

    @property
    @alone
    def half_life(self) -> float:
        """The evaluations after which half of what was learnt is out of date; infinite if nothing is found to change.

        Given with `drift`, or found out at the last milestone if that is "auto".
        """
        return self._tracker.calibrated.fit.half_life if self._history.measured > 1 else math.inf

    @property
    @alone
    def measurements(self) -> list[Measurement]:
        """All values told, in order, and how far each is trusted."""
        trust = self._tracker.trust if self._history.measured > 1 else np.ones(len(self._history.arrivals))
        told = zip(self._frames.answers(self._history), np.minimum(trust, 1.0).tolist(), strict=True)
        return [Measurement(its.params, its.value, t, its.context) for its, t in told if its.value is not None]

    @property
    @alone
    def answers(self) -> list[Observation]:
        """Every answer in order, failures too."""
        return self._frames.answers(self._history)

    @alone
    def __copy__(self) -> Optimizer:
        """An optimizer of its own with the same past: cheap, since what never changes is shared."""
        twin = Optimizer.__new__(Optimizer)
        twin.__setstate__(self.__getstate__())
        twin._history = self._history.copy()
        twin._tracker = self._tracker.copy(twin._history)
        twin._asking = self._asking.copy(twin._history, twin._tracker)
        twin._conclusions = self._conclusions.copy(twin._history, twin._tracker)
        twin._trials = self._trials.copy()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What a copy gets: everything but the lock."""
        with self._lock:
            return vars(self) | {"_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_lock": RLock()})

    def _learn_from(self, history: History) -> None:
        """Everything is a function of this history and the seed; a new one where an older history was forgotten."""
        seed = child(self._seed, 6, self._forgotten) if self._forgotten else self._seed
        self._history = history
        self._tracker = Tracker(history, self.calibration, seed, self.constraints.values(), self.drift)
        self._asking = Asking(history, self._tracker, self.calibration, seed)
        self._conclusions = Conclusions(history, self._tracker, self._contexts, self.calibration, self.goal, seed)

    def _add(self, arrival: Arrival) -> None:
        """Take in an answer; where things may change, the older half is forgotten when there are twice `KEPT`."""
        self._history.add(arrival)
        if self.drift is None or len(self._history.arrivals) < 2 * KEPT:
            return
        out, asking = self._asking.out, self._asking
        self._forgotten += KEPT
        history, numbers = self._history.last(KEPT, out.values())
        self._trials.forget(KEPT, set(out), numbers)
        self._learn_from(history)
        self._asking.take_over(asking, KEPT, numbers)

    def _sent(self, number: int) -> Trial:
        """A new trial at this point."""
        trial = self._trials.send(number, *self._parted(number))
        self._asking.sent(trial.id, number)
        return trial

    def _parted(self, number: int) -> Pair:
        """The params of a point and their context, as copies that may be changed."""
        return self._contexts.parted(self._history.params[number])

    def _resolved(self, trial: Trial | Any, context: Any, failing: bool) -> int:
        """The point that an answer is about; the trial it answers is out no more."""
        if not isinstance(trial, Trial):
            return self._met(self._contexts.checked(trial, context), failing)
        if context is not None:
            raise ValueError(f"a trial knows its context, got {context!r}: leave it out")
        number = self._trials.number(trial)
        self._close(trial.id, failing)
        return number

    def _met(self, params: Any, failing: bool) -> int:
        """The point with these checked params; the oldest trial that is out there has its answer."""
        number = self._history.meet(params)
        self._close(self._asking.oldest(number), failing)
        return number

    def _close(self, id: int | None, failing: bool) -> None:
        self._trials.answer(id, failing)
        if id is not None:
            self._asking.back(id)
