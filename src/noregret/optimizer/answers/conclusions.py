"""Conclusions: what the measurements so far amount to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats
from noregret.decision.playing import child
from noregret.optimizer.model.hypotheses import OptimizerConfig
from noregret.optimizer.answers.certificate import Certificate, certificate
from noregret.optimizer.answers.importance import Share, shares
from noregret.optimizer.checking import Goal, checked_confidence, checked_tolerance
from noregret.optimizer.answers.gain import WIDTH, Gain
from noregret.optimizer.model.condensing import Belief
from noregret.optimizer.model.constraints import OPEN, impossible, log_chances_at
from noregret.optimizer.questions.feasible import LIKELY, recommended
from noregret.optimizer.answers.estimate import Estimate
from noregret.optimizer.history import History
from noregret.optimizer.space.contexts import Contexts
from noregret.optimizer.space.space import Product
from noregret.optimizer.model.current import Tracker

FEWEST = 3
"""Values from which an interval is stated where their noise is unknown: two say too little about it."""


class Conclusions:
    """What is recommended, believed and certain, in the units and with the sign of the user's values."""

    def __init__(
        self,
        history: History,
        tracker: Tracker,
        contexts: Contexts,
        calibration: OptimizerConfig,
        goal: Goal,
        seed: np.random.SeedSequence,
    ) -> None:
        self._history, self._tracker, self._contexts, self._calibration = history, tracker, contexts, calibration
        self._goal, self._seed = goal, seed
        self.sign = 1.0 if goal == "maximize" else -1.0
        self._certified: tuple[Belief, int, Certificate] | None = None  # the belief and answers it is made of

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what can be made again."""
        return vars(self) | {"_certified": None}

    def copy(self, history: History, tracker: Tracker) -> Conclusions:
        """The same for copies of history and tracker."""
        return Conclusions(history, tracker, self._contexts, self._calibration, self._goal, self._seed)

    def turn_to(self, context: Any) -> None:
        """From now on everything is about this context; ValueError if it is missing or bad."""
        self._tracker.turn_to(self._contexts.within(context))

    def best(self) -> Estimate:
        """The params with the largest lower confidence bound, of those that likely meet the constraints."""
        if not self._history.measured:
            raise ValueError("best() needs a value: none has been told yet")
        if self._history.measured == 1:
            only = next(arrival for arrival in self._history.arrivals if not arrival.failed)
            params = self._contexts.parted(self._history.params[only.where]).params
            chance = math.exp(OPEN * self._tracker.constraints)
            found = Estimate(params, self.sign * only.value, -math.inf, math.inf, feasible=chance)
        else:
            belief = self._tracker.belief()
            lower = belief.mean - self._calibration.caution(belief) * belief.std
            lower[self._tracker.elsewhere] = -math.inf
            unproven = self._tracker.arms(self._history.unproven)
            is_proven = bool(np.isfinite(np.delete(lower, unproven)).any())
            if is_proven:
                lower[unproven] = -math.inf
            found = self._believed([self._tracker.params(recommended(lower, self._tracker.margins()))])[0]
            found = found if is_proven and self._is_fitted else replace(found, _certificate=None)
        return found if found.feasible >= LIKELY else found.as_likeliest()

    def predict(self, params: Any, context: Any = None) -> Estimate:
        """What is believed about these params."""
        return self.predict_many([params], context)[0]

    def predict_many(self, params: Iterable[Any], context: Any = None) -> list[Estimate]:
        """What is believed about each of these params."""
        self.turn_to(context)
        checked = [self._contexts.checked(each, context) for each in params]
        self._check_measured("predict")
        return self._believed(checked) if checked else []

    def _believed(self, params: list[Any]) -> list[Estimate]:
        """What is believed about each of these params of the whole space, at least one."""
        points, certificate = self._history.space.encode(params), self.certificate()
        chances = np.exp(log_chances_at(self._tracker.margins(), points)).tolist()
        chosen = [self._contexts.parted(each).params for each in params]
        return [
            Estimate(each, *ends, feasible=chance, _certificate=certificate, _point=points[[i]])
            for i, (each, ends, chance) in enumerate(zip(chosen, self._ends(points), chances, strict=True))
        ]

    def _ends(self, points: Floats) -> list[tuple[float, float, float]]:
        """Estimate, lower and upper bound at (n, d) points."""
        belief, calibrated = self._tracker.belief(), self._tracker.calibrated
        (mean, std), width = belief.predict(points), self._calibration.interval(belief)
        shifts, centre = (0.0, -width * std, width * std), calibrated.fit.centre
        own = [calibrated.reported(centre + mean + shift) for shift in shifts]
        ends = self.sign * np.array([*own, *self.certificate().interval(points, width)]) + 0.0  # no -0.0
        if self._history.measured < FEWEST and not self._history.is_noise_known:
            ends[1:] = [[-math.inf], [math.inf], [-math.inf], [math.inf]]
        return list(zip(ends[0].tolist(), ends.min(axis=0).tolist(), ends.max(axis=0).tolist(), strict=True))

    def importance(self) -> dict[str, Share]:
        """How much of the difference between settings each parameter accounts for, the most important first."""
        if not isinstance(self._history.space, Product):
            came = "a table of candidates" if self._contexts.contexts is None else "contexts"
            raise ValueError(
                f"importance() needs a space of Float, Int and Choice without contexts, got {came}: give the space as "
                "a dict of these, and no context"
            )
        self._check_measured("importance")
        found = dict(zip(self._history.space.parameters, shares(self.certificate()), strict=True))
        return dict(sorted(found.items(), key=lambda named: -named[1].estimate))

    def _check_measured(self, method: str) -> None:
        if self._history.measured < 2:
            raise ValueError(
                f"{method}() needs at least 2 values, {self._history.measured} told so far: tell more first"
            )

    @property
    def _is_fitted(self) -> bool:
        """Whether there are as many values as the first fit waits for."""
        return self._history.measured >= self._calibration.first(self._history.space)

    def is_done(self, within: float | str, confidence: float) -> bool:
        """Whether nothing is better than what is recommended by more than the tolerance for its estimate."""
        tolerance, risk = checked_tolerance(within), 1 - checked_confidence(confidence)
        if not self._is_fitted:
            return False
        best = self.best()
        if best._certificate is None or best._point is None:  # nothing in this context has ever given a value
            return False
        return best.feasible >= 1 - risk and self.certificate().is_within(best._point, tolerance(best.estimate), risk)

    @property
    def has_gain(self) -> bool:
        """Whether the baseline has a value, in whatever context, and another one is known."""
        return any(map(self._history.answered, self._history.anchors)) and self._history.measured > 1

    def gain(self, baseline: Any, context: Any = None) -> Gain:
        """How much better what is recommended is than the baseline."""
        self.turn_to(context)
        if not self.has_gain:
            raise ValueError("gain() needs a value of the baseline and one more: tell them first")
        space, best, other = self._contexts.space, self.best(), self.predict(baseline, context)
        if space.key(best.params) == space.key(other.params):
            return Gain(0.0, 0.0, 0.0, other, other, self._goal)
        estimate = self.sign * (best.estimate - other.estimate)
        assert best._point is not None
        assert other._point is not None
        points = np.vstack([best._point, other._point])
        lower, upper = self.certificate().difference(points, WIDTH)
        relative = self.certificate().relative_difference(points, WIDTH)
        return Gain(estimate, min(lower, estimate), max(upper, estimate), best, other, self._goal, relative=relative)

    def certificate(self) -> Certificate:
        """What the measurements leave open; made once for each state of the belief."""
        tracker, answers = self._tracker, len(self._history.arrivals)
        belief, anchors = tracker.belief(), self._history.anchors
        if self._certified is None or self._certified[:2] != (belief, answers):
            hopeless = tracker.arms(self._history.hopeless)
            excluded = np.union1d(hopeless, impossible(tracker.margins(), len(belief.arms)))
            excluded = np.union1d(excluded, tracker.elsewhere)
            kept = tracker.baseline_arm() if anchors else None
            seed, space = child(self._seed, 5, answers), tracker.space
            is_known = self._history.is_noise_known
            made = certificate(belief, excluded, space, tracker.calibrated, seed, answers, kept, is_known)
            self._certified = (belief, answers, made)
        return self._certified[2]
