"""Optimizer: ask, measure, tell. No constants needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import wraps
from numbers import Integral
from threading import RLock
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, overload
from uuid import uuid4

import numpy as np

from noregret.belief.exact import ExactPosterior
from noregret.decision.playing import child, seed_sequence
from noregret.optimizer.asking import Asking
from noregret.optimizer.calibration import Calibrated, Calibration
from noregret.optimizer.certifying.certificate import Certificate, certificate
from noregret.optimizer.certifying.importance import Share, shares
from noregret.optimizer.checking import checked_confidence, checked_noise, checked_tolerance, checked_value
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.history import UNKNOWN, Arrival, History
from noregret.optimizer.spaces.space import Product
from noregret.optimizer.spaces.table import as_space
from noregret.optimizer.tracker import Tracker

Goal = Literal["minimize", "maximize"]
Method = TypeVar("Method", bound=Callable[..., Any])

LARGEST = 1e300
"""Larger values are taken for this one, so that differences of values are finite."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One thing to measure. Its ``token`` tells the trials of different optimizers apart, wherever a trial has been."""

    id: int
    params: Any
    token: str = field(default="", repr=False)


class _Sent(NamedTuple):
    """A trial that was given away: the number of its point, and its token."""

    number: int
    token: str


class Measurement(NamedTuple):
    """One value that was told, and how far it is trusted: 1 if it fits the others, about 0 if it is absurd."""

    params: Any
    value: float
    trust: float


def _alone(method: Method) -> Method:
    """The method, for one thread at a time."""

    @wraps(method)
    def guarded(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
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
    calibration : Calibration, optional
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
        calibration: Calibration | None = None,
    ) -> None:
        if goal not in get_args(Goal):
            raise ValueError(f"goal must be 'minimize' or 'maximize', got {goal!r}")
        if not isinstance(calibration, Calibration | None):
            raise ValueError(f"calibration must be a Calibration, got {calibration!r}")
        self.space, self.goal = as_space(space), goal
        self.calibration = calibration or Calibration()
        self._sign = 1.0 if goal == "maximize" else -1.0
        self._seed = seed = seed_sequence(rng)
        self._history = History(self.space)
        self._tracker = Tracker(self._history, self.calibration, seed)
        self._asking = Asking(self._history, self._tracker, self.calibration, seed)
        self._certified: tuple[ExactPosterior, int, Certificate] | None = None  # the belief and answers it is made of
        self._lock = RLock()
        self._trials: list[_Sent] = []  # by the trial's id
        self._answered: set[int] = set()
        self._failed: set[int] = set()

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, count: int) -> list[Trial]: ...

    @_alone
    def ask(self, count: int | None = None) -> Trial | list[Trial]:
        """What to measure next; with a ``count``, that many things to measure at once.

        Trials that are out are taken into account: they count as measured, with a value as expected. One that
        stays out while ten times as many others are answered as were out with it is taken for lost.
        """
        if count is None:
            return self._sent(self._asking.next_point())
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ValueError(f"count must be a whole number from 1, got {count!r}")
        return [self.ask() for _ in range(count)]

    @_alone
    def expect(self, params: Any) -> Trial:
        """A trial with params of your own: a first guess, or what another process has begun to measure."""
        return self._sent(self._history.meet(self.space.checked(params)))

    @_alone
    def tell(self, trial: Trial | Any, value: float, noise: float | None = None) -> None:
        """The value of a trial, or of params measured in the past. ValueError, and nothing changed, if it is bad.

        Parameters
        ----------
        trial : Trial, or params
            Params of a trial that is out answer that trial. Answers may come in any order, also after `fail`.
        value : float
            Values beyond 1e300 in size are taken for that.
        noise : float, optional
            Standard deviation of this value, if known; otherwise it is estimated.
        """
        value, noise = checked_value(value), checked_noise(noise)
        number = self._resolved(trial, failing=False)
        signed = self._sign * min(max(value, -LARGEST), LARGEST)
        self._history.add(Arrival(number, signed, noise))

    @_alone
    def fail(self, trial: Trial | Any) -> None:
        """A trial, or params tried in the past, gave no value.

        Params that likely never will, since they or their neighbours keep failing, are not asked for again.
        """
        if isinstance(trial, Trial) and self._owned(trial).id in self._failed:
            return
        number = self._resolved(trial, failing=True)
        self._history.add(Arrival(number, UNKNOWN, UNKNOWN))

    @_alone
    def best(self) -> Estimate:
        """The params with the largest lower confidence bound (upper, if minimising): not the luckiest measurement."""
        if not self._history.measured:
            raise ValueError("best() needs a value: none has been told yet")
        if self._history.measured == 1:
            only = next(arrival for arrival in self._history.arrivals if not arrival.failed)
            return Estimate(self._params(only.where), self._sign * only.value, -math.inf, math.inf)
        belief = self._tracker.belief()
        lower = belief.mean - self.calibration.caution(belief) * belief.std
        lower[self._tracker.arms(self._history.unproven)] = -math.inf
        return self.predict(self._tracker.params(int(np.argmax(lower))))

    @_alone
    def done(self, within: float | str, confidence: float = 0.95) -> bool:
        """Whether to stop: no setting is likely to be better than `best` by more than ``within``.

        Ask after every answer if you like: the confidence is that of the first yes. It is no until there are
        measurements near almost all settings, so in many dimensions it may be no for ever. Heuristic: see the page on
        the Optimizer for what it rests on and how often it was right.

        Parameters
        ----------
        within : float, or str
            In the units of the values; or "2%", of the size of the best estimate.
        confidence : float
            Probability of being right.
        """
        tolerance, risk = checked_tolerance(within), 1 - checked_confidence(confidence)
        if self._history.measured < self.calibration.first(self.space):
            return False
        best = self.best()
        return self._certificate().is_within(self.space.encode([best.params]), tolerance(best.estimate), risk)

    def predict(self, params: Any) -> Estimate:
        """What is believed about these params."""
        return self.predict_many([params])[0]

    @_alone
    def predict_many(self, params: Iterable[Any]) -> list[Estimate]:
        """What is believed about each of these params: cheaper than one after another."""
        checked = [self.space.checked(each) for each in params]
        if self._history.measured < 2:
            raise ValueError(f"predict() needs at least 2 values, {self._history.measured} told so far")
        if not checked:
            return []
        belief, scale, fit = self._tracker.belief(), self.calibrated.scale, self.calibrated.fit
        points, width, certificate = self.space.encode(checked), self.calibration.interval(belief), self._certificate()
        mean, std = belief.predict(points)
        own = [scale.original(fit.centre + mean + shift) for shift in (0.0, -width * std, width * std)]
        ends = self._sign * np.array([*own, *certificate.interval(points, width)])
        numbers = zip(*(column.tolist() for column in (ends[0], ends.min(axis=0), ends.max(axis=0))), strict=True)
        return [
            Estimate(each, estimate, lower, upper, _certificate=certificate, _point=points[[i]])
            for i, (each, (estimate, lower, upper)) in enumerate(zip(checked, numbers, strict=True))
        ]

    @_alone
    def importance(self) -> dict[str, Share]:
        """How much of the difference between settings each parameter accounts for, the most important first.

        Needs named parameters and at least two values. Shares add up to more than 1 where parameters act together.
        """
        if not isinstance(self.space, Product):
            raise ValueError("importance() needs named parameters, got a table: give the space as a dict")
        if self._history.measured < 2:
            raise ValueError(f"importance() needs at least 2 values, {self._history.measured} told so far")
        found = dict(zip(self.space.parameters, shares(self._certificate()), strict=True))
        return dict(sorted(found.items(), key=lambda named: -named[1].estimate))

    @property
    @_alone
    def calibrated(self) -> Calibrated:
        """Scale, kernel, noise and view of the noise that the measurements led to, as of the last milestone."""
        return self._tracker.calibrated

    @property
    @_alone
    def measurements(self) -> list[Measurement]:
        """All values told, in order, and how far each is trusted."""
        arrivals = self._history.arrivals
        trust = self._tracker.trust if self._history.measured > 1 else np.ones(len(arrivals))
        return [
            Measurement(self._params(arrival.where), self._sign * arrival.value, min(float(t), 1.0))
            for arrival, t in zip(arrivals, trust, strict=True)
            if not arrival.failed
        ]

    @property
    @_alone
    def answers(self) -> list[tuple[Any, float | None]]:
        """Params and value of every answer in order, None for a failure."""
        return [
            (self._params(arrival.where), None if arrival.failed else self._sign * arrival.value)
            for arrival in self._history.arrivals
        ]

    def _certificate(self) -> Certificate:
        """What the measurements leave open; made once for each state of the belief."""
        belief, answers = self._tracker.belief(), len(self._history.arrivals)
        if self._certified is None or self._certified[:2] != (belief, answers):
            hopeless = self._tracker.arms(self._history.hopeless)
            made = certificate(belief, hopeless, self.space, self.calibrated, child(self._seed, 5, answers), answers)
            self._certified = (belief, answers, made)
        return self._certified[2]

    @_alone
    def __copy__(self) -> Optimizer:
        """An optimizer of its own with the same past: cheap, since what never changes is shared."""
        twin = Optimizer.__new__(Optimizer)
        twin.__setstate__(self.__getstate__())
        twin._history = self._history.copy()
        twin._tracker = self._tracker.copy(twin._history)
        twin._asking = self._asking.copy(twin._history, twin._tracker)
        twin._trials, twin._answered, twin._failed = list(self._trials), set(self._answered), set(self._failed)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """What a copy gets: everything but the lock, and what can be made again."""
        with self._lock:
            return vars(self) | {"_lock": None, "_certified": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"_lock": RLock()})

    def _sent(self, number: int) -> Trial:
        """A new trial at this point."""
        trial = Trial(len(self._trials), self._params(number), uuid4().hex)
        self._trials.append(_Sent(number, trial.token))
        self._asking.sent(trial.id, number)
        return trial

    def _owned(self, trial: Trial) -> Trial:
        """The trial; ValueError if it is none of this optimizer's."""
        if not 0 <= trial.id < len(self._trials) or self._trials[trial.id].token != trial.token:
            raise ValueError(f"trial {trial.id} is not one of this optimizer's: tell its params instead")
        return trial

    def _params(self, number: int) -> Any:
        """The params of a point, as a copy that may be changed."""
        return self.space.checked(self._history.params[number])

    def _resolved(self, trial: Trial | Any, failing: bool) -> int:
        """The point that an answer is about; the trial it answers is out no more."""
        if not isinstance(trial, Trial):
            number = self._history.meet(self.space.checked(trial))
            self._close(self._asking.oldest(number), failing)
            return number
        if self._owned(trial).id in self._answered:
            raise ValueError(
                f"trial {trial.id} has been told already: tell(trial.params, value) adds a second measurement"
            )
        self._close(trial.id, failing)
        return self._trials[trial.id].number

    def _close(self, id: int | None, failing: bool) -> None:
        if id is not None:
            self._asking.back(id)
            (self._failed if failing else self._answered).add(id)
