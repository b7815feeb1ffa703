"""Answers: what is recommended, predicted and certain after the observations so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from noregret.gp.posterior import Floats
from noregret.gp.seeds import child
from noregret.optimizer.answers.certificate import WIDTH, Certificate, certificate
from noregret.optimizer.answers.changes import ChangedParameter, Reversions, one_by_one, with_fewest_changes
from noregret.optimizer.answers.estimate import Estimate, Gain
from noregret.optimizer.answers.importance import Importance, Share, shares
from noregret.optimizer.checking import StopRule, checked_confidence, checked_tolerance
from noregret.optimizer.config import OptimizerConfig
from noregret.optimizer.measures import Goal, Measure
from noregret.optimizer.model.constraints import RECOMMEND, recommended
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.evidence import FEWEST_OBSERVATIONS
from noregret.optimizer.space.contexts import Contexts, with_context
from noregret.optimizer.space.space import ParameterSpace


@dataclass(frozen=True, eq=False)
class Answers:
    """Recommendation, predictions, gain and stopping rule, in the units and with the sign of the user's values.

    Parameters
    ----------
    state : Snapshot
        With at least two values.
    contexts : Contexts
    config : OptimizerConfig
    measure : Measure
        The objective.
    seed : SeedSequence
    held : params, optional
        The setting that runs in pairs with the baseline were begun for. It is recommended, not the baseline or a
        setting that only seems better, until another one is shown to be better.
    """

    state: Snapshot
    contexts: Contexts
    config: OptimizerConfig
    measure: Measure
    seed: np.random.SeedSequence
    held: Any = None

    @property
    def goal(self) -> Goal:
        """Direction in which values are better."""
        assert self.measure.goal is not None
        return self.measure.goal

    @cached_property
    def certificate(self) -> Certificate:
        """Certificate of the observations."""
        return certificate(self.state, child(self.seed, 5, len(self.state.history)))

    def best(self, fewest_changes: bool = True) -> Estimate:
        """Params with the largest lower confidence bound, of those that likely meet the constraints.

        If questions must be safe, so must they, with the stated probability. With ``fewest_changes`` and a baseline,
        changes to it that are not shown to help are undone; while noise alone may explain the values, all of them.
        """
        state, belief = self.state, self.state.belief
        lower = np.where(state.recommendable, belief.mean - self.config.caution * belief.std, -math.inf)
        proven = np.where(np.isin(state.numbers, state.history.unproven), -math.inf, lower)
        is_proven = bool(np.isfinite(proven).any())
        scores = proven if is_proven else lower
        arm = self._most_measured(scores, recommended(scores, state.margins, state.log_feasible))
        baseline, guess = state.history.baseline, self.contexts.without_context(state.params(arm)).params
        is_known = is_proven and self._is_fitted
        if baseline is None or not fewest_changes or state.safety is not None:
            return self._recommended(guess, baseline, is_known)
        if self.certificate.may_be_noise and self._may_stay(baseline):
            promising = self._recommended(guess, baseline).changes
            stay = self._recommended(baseline, baseline, is_known)
            return replace(stay, promising=promising[0] if promising else None)
        if is_known:
            guess = with_fewest_changes(state, self.contexts.space, guess, baseline)
            guess = self.held if self._stays(guess) else guess
        return self._recommended(guess, baseline, is_known)

    def _stays(self, guess: Any) -> bool:
        """True if the held setting is likely to meet the constraints, and this one is not shown to be better."""
        if self.held is None or self.contexts.space.key(guess) == self.contexts.space.key(self.held):
            return False
        space = self.state.space
        gain = self.gains_over(with_context(guess, space), [with_context(self.held, space)])[0]
        return gain.lower <= 0 and gain.baseline.feasible >= RECOMMEND

    def _may_stay(self, baseline: Any) -> bool:
        """True if the baseline may be recommended: it has a value and is likely to meet the constraints."""
        state, arm = self.state, self.state.baseline_arm()
        if arm is None or not state.history.answered(int(state.numbers[arm])):
            return False
        return bool(state.recommendable[arm] and state.log_feasible[arm] >= math.log(RECOMMEND))

    def _recommended(self, setting: Any, baseline: Any, is_known: bool = True) -> Estimate:
        """Estimate of a recommended setting; if it is known well enough, with a certificate and its changes."""
        estimate = self.predict([with_context(setting, self.state.space)])[0]
        if not is_known:
            estimate = replace(estimate, _certificate=None)
        elif baseline is not None:
            estimate = replace(estimate, _reversions=self._reversions(setting, baseline, estimate._point))
        return replace(estimate, _is_best=True) if estimate.feasible >= RECOMMEND else estimate.as_likeliest()

    def _reversions(self, setting: Any, baseline: Any, point: Floats | None) -> Reversions | None:
        """The recommended setting with each of its changes taken back."""
        names, points = one_by_one(self.state, self.contexts.space, setting, baseline)
        if not names or point is None:
            return None
        mean, models = self.state.belief.predict(np.vstack([point, points]))[0], self.state.models
        values = models.reported(models.fit.centre + mean)
        gains = zip(names, (values[0] - values[1:]).tolist(), strict=True)
        changed = [ChangedParameter(name, baseline[name], setting[name], gain, gain, gain) for name, gain in gains]
        return Reversions(changed, points, self.certificate)

    def _most_measured(self, scores: Floats, arm: int) -> int:
        """Of the measured arms that are as good as this one and as likely feasible, the one with most measurements."""
        state = self.state
        if not self.config.as_good:
            return arm
        counts = np.array(list(map(state.history.answered, state.numbers.tolist())))  # of a candidate 0
        close = scores >= scores[arm] - self.config.as_good * state.belief.std[arm]
        close &= state.log_feasible >= min(state.log_feasible[arm], math.log(RECOMMEND))
        return int(np.lexsort((scores, np.where(close, counts, -1)))[-1]) if counts[close].any() else arm

    def worst_value(self) -> float:
        """Value that a measurement of the best setting is hardly worse than, whichever setting that is.

        The best setting is at least as good as any other, so this is the least of the upper ends of the intervals of
        measured settings (minimising), each with `WIDTH` standard deviations of the noise on top. Settings that may
        violate constraints do not count. Infinite without intervals.
        """
        state, models = self.state, self.state.models
        measured = np.setdiff1d(state.belief.pulled, state.arms(state.history.only_bounded))
        arms = measured[state.in_context[measured] & (state.log_feasible[measured] >= math.log(RECOMMEND))]
        if not arms.size:
            return -self.measure.sign * math.inf
        points = state.belief.arms[arms]
        worse = 1 if self.goal == "maximize" else 2
        ends = self.measure.sign * np.array([each[worse] for each in self._ends(points)])
        noise = np.sqrt(np.broadcast_to(models.noise_variance(points), len(points)))
        numbers = models.scale.standard(ends[np.isfinite(ends)]) - WIDTH * noise[np.isfinite(ends)]
        return self.measure.sign * float(models.scale.original(numbers).max(initial=-math.inf))

    def predict(self, params: Sequence[Any]) -> list[Estimate]:
        """Estimates for each of these params of the whole space, at least one."""
        points = self.state.history.space.encode(params)
        chances = np.exp(self.state.log_feasible_at(points)).tolist()
        chosen = [self.contexts.without_context(each).params for each in params]
        return [
            Estimate(each, *ends, feasible=chance, _certificate=self.certificate, _point=points[[i]])
            for i, (each, ends, chance) in enumerate(zip(chosen, self._ends(points), chances, strict=True))
        ]

    def _ends(self, points: Floats) -> list[tuple[float, float, float]]:
        """Estimate, lower and upper bound at (n, d) points."""
        belief, models, history = self.state.belief, self.state.models, self.state.history
        (mean, std), width = belief.predict(points), self.config.interval(belief)
        shifts, centre = (0.0, -width * std, width * std), models.fit.centre
        own = [models.reported(centre + mean + shift) for shift in shifts]
        ends = self.measure.sign * np.array([*own, *self.certificate.interval(points, width)]) + 0.0  # no -0.0
        if history.measured < FEWEST_OBSERVATIONS and not history.column.is_noise_known:
            ends[1:] = [[-math.inf], [math.inf], [-math.inf], [math.inf]]
        ends[np.isfinite(ends)] = np.clip(ends[np.isfinite(ends)], *self.measure.possible)
        return list(zip(ends[0].tolist(), ends.min(axis=0).tolist(), ends.max(axis=0).tolist(), strict=True))

    def importance(self, better_half: bool = False) -> Importance:
        """Share of the difference between settings that each parameter accounts for, the most important first."""
        space = self.state.history.space
        assert isinstance(space, ParameterSpace)
        whole, better = self._shares
        named_shares = dict(zip(space.parameters, better if better_half else whole, strict=True))
        return Importance(sorted(named_shares.items(), key=lambda named: -named[1].estimate))

    @cached_property
    def _shares(self) -> tuple[list[Share], list[Share]]:
        """Share of each parameter over the whole space, and among the better half."""
        return shares(self.certificate, self.contexts.space)

    @property
    def _is_fitted(self) -> bool:
        """True if there are as many values as the first fit waits for."""
        return self.state.history.measured >= self.config.first(self.state.history.space)

    def is_done(self, within: float | str, confidence: float, by: StopRule) -> bool:
        """Return True if nothing is better than what is recommended by more than the tolerance for its estimate."""
        tolerance, risk = checked_tolerance(within), 1 - checked_confidence(confidence)
        if not self._is_fitted:
            return False
        best = self.best()
        if best._certificate is None or best._point is None:  # nothing in this context has ever given a value
            return False
        is_within = self.certificate.is_likely_within if by == "model" else self.certificate.is_within
        return best.feasible >= 1 - risk and is_within(best._point, tolerance(best.estimate), risk)

    def gain(self, baseline: Any, chosen: Estimate | None = None) -> Gain:
        """Difference between a setting, by default what is recommended, and the baseline: params of the whole space."""
        space, best, other = self.contexts.space, chosen or self.best(), self.predict([baseline])[0]
        if space.key(best.params) == space.key(other.params):
            return Gain(0.0, 0.0, 0.0, best, best, self.goal)
        estimate = self.measure.sign * (best.estimate - other.estimate)
        assert best._point is not None
        assert other._point is not None
        points = np.vstack([best._point, other._point])
        lower, upper = self.certificate.difference(points, WIDTH)
        relative = self.certificate.relative_difference(points, WIDTH)
        values = self.measure.sign * self.state.history.values(len(self.state.history))
        gain = Gain(estimate, min(lower, estimate), max(upper, estimate), best, other, self.goal, relative=relative)
        gain = replace(gain, is_positive=not np.any(values <= 0))
        return gain.within(*self.measure.possible)

    def gains_over(self, setting: Any, others: Sequence[Any]) -> list[Gain]:
        """Difference between a setting and each of at least one other: params of the whole space."""
        best, *rest = self.predict([setting, *others])
        assert best._point is not None
        points = np.vstack([each._point for each in rest if each._point is not None])
        gains = []
        for other, (lower, upper) in zip(rest, self.certificate.differences(best._point, points, WIDTH), strict=True):
            estimate = self.measure.sign * (best.estimate - other.estimate)
            gains.append(Gain(estimate, min(lower, estimate), max(upper, estimate), best, other, self.goal))
        return gains
