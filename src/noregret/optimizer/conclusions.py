"""Conclusions: what the measurements so far amount to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from noregret.belief.exact import ExactPosterior
from noregret.decision.playing import child
from noregret.optimizer.calibration import Calibration
from noregret.optimizer.certifying.certificate import Certificate, certificate
from noregret.optimizer.checking import Goal, checked_confidence, checked_tolerance
from noregret.optimizer.comparing.gain import WIDTH, Gain
from noregret.optimizer.constraining.margins import OPEN, impossible, log_chances_at
from noregret.optimizer.constraining.questions import LIKELY, recommended
from noregret.optimizer.estimate import Estimate
from noregret.optimizer.history import History
from noregret.optimizer.spaces.contexts import Contexts
from noregret.optimizer.tracker import Tracker


class Conclusions:
    """What is recommended, believed and certain, in the units and with the sign of the user's values."""

    def __init__(
        self,
        history: History,
        tracker: Tracker,
        contexts: Contexts,
        calibration: Calibration,
        goal: Goal,
        seed: np.random.SeedSequence,
    ) -> None:
        self._history, self._tracker, self._contexts, self._calibration = history, tracker, contexts, calibration
        self._goal, self._seed = goal, seed
        self.sign = 1.0 if goal == "maximize" else -1.0
        self._certified: tuple[ExactPosterior, int, Certificate] | None = None  # the belief and answers it is made of

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
            found = self._believed(self._tracker.params(recommended(lower, self._tracker.margins())))
            found = found if is_proven else replace(found, _certificate=None)
        return found if found.feasible >= LIKELY else found.as_likeliest()

    def predict(self, params: Any, context: Any = None) -> Estimate:
        """What is believed about these params."""
        self.turn_to(context)
        params = self._contexts.checked(params, context)
        if self._history.measured < 2:
            raise ValueError(f"predict() needs at least 2 values, {self._history.measured} told so far")
        return self._believed(params)

    def _believed(self, params: Any) -> Estimate:
        """What is believed about these params of the whole space."""
        belief, calibrated = self._tracker.belief(), self._tracker.calibrated
        point, width = self._history.space.encode([params]), self._calibration.interval(belief)
        mean, std = (float(number[0]) for number in belief.predict(point))
        shifts, centre = (0.0, -width * std, width * std), calibrated.fit.centre
        own = [calibrated.scale.original(centre + mean + shift) for shift in shifts]
        certificate = self.certificate()
        ends = [self.sign * end for end in (*own, *certificate.interval(point, width))]
        chance = math.exp(float(log_chances_at(self._tracker.margins(), point)[0]))
        params = self._contexts.parted(params).params
        return Estimate(params, ends[0], min(ends), max(ends), feasible=chance, _certificate=certificate, _point=point)

    def is_done(self, within: float | str, confidence: float) -> bool:
        """Whether nothing is better than what is recommended by more than the tolerance for its estimate."""
        tolerance, risk = checked_tolerance(within), 1 - checked_confidence(confidence)
        if self._history.measured < self._calibration.first(self._history.space):
            return False
        best = self.best()
        if best._certificate is None or best._point is None:  # nothing in this context has ever given a value
            return False
        return best.feasible >= 1 - risk and self.certificate().is_within(best._point, tolerance(best.estimate), risk)

    @property
    def has_gain(self) -> bool:
        """Whether the baseline has a value, and another one is known."""
        anchor = self._history.anchor
        return anchor is not None and self._history.answered(anchor) > 0 and self._history.measured > 1

    def gain(self, baseline: Any) -> Gain:
        """How much better what is recommended is than the baseline."""
        if not self.has_gain:
            raise ValueError("gain() needs a value of the baseline and one more: tell them first")
        space, best, other = self._history.space, self.best(), self.predict(baseline)
        if space.key(best.params) == space.key(other.params):
            return Gain(0.0, 0.0, 0.0, other, other, self._goal)
        estimate = self.sign * (best.estimate - other.estimate)
        lower, upper = self.certificate().difference(space.encode([best.params, other.params]), WIDTH)
        return Gain(estimate, min(lower, estimate), max(upper, estimate), best, other, self._goal)

    def certificate(self) -> Certificate:
        """What the measurements leave open; made once for each state of the belief."""
        tracker, answers = self._tracker, len(self._history.arrivals)
        belief, anchor = tracker.belief(), self._history.anchor
        if self._certified is None or self._certified[:2] != (belief, answers):
            hopeless = tracker.arms(self._history.hopeless)
            excluded = np.union1d(hopeless, impossible(tracker.margins(), len(belief.arms)))
            excluded = np.union1d(excluded, tracker.elsewhere)
            place = None if anchor is None else next(iter(tracker.arms([anchor]).tolist()), None)
            seed, space = child(self._seed, 5, answers), tracker.space
            made = certificate(belief, excluded, space, tracker.calibrated, seed, answers, place)
            self._certified = (belief, answers, made)
        return self._certified[2]
