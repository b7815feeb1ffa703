"""Questions: the kinds of settings that are worth a measurement, one class each.

A question is asked in the order of a list; the first one that names a setting decides. Opening questions need no model;
the others see a `PendingSnapshot`, in which pending trials count as measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from noregret.gp.improvement import log_expected_improvement
from noregret.gp.posterior import Floats, Posterior, Rng, Rule
from noregret.optimizer.model.candidates import spread_out
from noregret.optimizer.model.constraints import REPEATS, SEARCH, recommended, search_scores
from noregret.optimizer.model.evidence import CAUTION, FEWEST_OBSERVATIONS
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import ModelConfig
from noregret.optimizer.questions.state import Asked, PendingSnapshot
from noregret.optimizer.space.contexts import with_context
from noregret.optimizer.space.parameters import ROUNDING
from noregret.optimizer.space.space import Space


class Opening(NamedTuple):
    """Input of opening questions: no model, only what was asked and answered."""

    history: History
    space: Space
    config: ModelConfig
    seed: np.random.SeedSequence
    pending: Sequence[int]
    is_safe: bool = False
    """True if the design is the baseline alone."""

    @property
    def known(self) -> int:
        """Number of answers and pending trials; the values of one run count once."""
        return len(self.history) - self.history.replaced + len(self.pending)


def opening(state: Opening) -> int | None:
    """Point that is asked for before the model is: the baseline, then the design; None if they are done."""
    history = state.history
    if state.is_safe:
        asked = sum(history.answered(number) + state.pending.count(number) for number in history.baseline_points)
        is_enough = asked >= FEWEST_OBSERVATIONS and history.measured > 1
        return None if is_enough else history.intern(with_context(history.baseline, state.space))
    if history.baseline is not None and not any(
        number in state.pending or history.is_answered(number) for number in history.baseline_points
    ):
        return history.intern(with_context(history.baseline, state.space))
    if history.measured < 2 or state.known < state.config.first(history.space):
        proposal = _next_of_design(state)
        if proposal is not None:
            return proposal
    return _repeat(state) if history.measured < 2 else None


def _next_of_design(state: Opening) -> int | None:
    """Next point of a Sobol sequence that has not been met, None if there is none.

    Where there are two scales, they take turns: a linear one has no points near 0. In finite spaces the points that the
    sequence does not reach follow.
    """
    space, index, seed = state.space, state.known, int(state.seed.generate_state(1)[0])
    space = (index % 2 and space.logarithmic) or space
    count = max(64, 2 << index.bit_length())  # few different lengths, each drawn once
    points = spread_out(space, count, seed)[index:]
    if space.count <= state.config.candidates.few:
        points = np.vstack([points, space.everything()])
    for point, params in zip(points, space.decode(points), strict=True):
        if state.history.number(params) is None:
            return state.history.intern(params, point if space is state.space else None)
    return None


def _repeat(state: Opening) -> int:
    """One of the points in this space, in turn: of those that may give a value, if there are any."""
    met = state.history.within(state.space)
    hopeful = np.setdiff1d(met, state.history.unproven)
    choices = hopeful if hopeful.size else met
    return int(choices[state.known % choices.size])


@dataclass(frozen=True)
class Recheck:
    """A point whose only value would be the best of all but is hardly trusted.

    A narrow peak and an outlier look alike, and one more measurement tells them apart.
    """

    distrust: float = 0.3
    """Trust below which a value is doubted. Not measured; without the question two measures are worse: decision
    0189."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        history = state.history
        doubted = np.flatnonzero(state.trust < self.distrust)
        if not doubted.size:
            return None
        tried = state.belief.pulled if state.in_context.all() else np.flatnonzero(state.in_context)
        highest = float(state.belief.mean[tried].max())
        for index in doubted.tolist():
            where = history.where(index)
            arms = state.arms([where])
            if not arms.size or history.answered(where) > 1 or where in state.pending:
                continue
            value = float(state.models.scale.standard(np.array(history.reading(index).value))) - state.models.fit.centre
            arm = int(arms[0])
            if value > highest and state.in_context[arm] and state.log_feasible[arm] >= math.log(SEARCH):
                return arm
        return None


@dataclass(frozen=True)
class RemeasureBaseline:
    """The baseline, while the gain over it hinges on its noise.

    One more measurement of the baseline takes (v - c)^2 / (v + s^2) off the variance of the gain, v the baseline's
    variance, c its covariance with the recommended setting and s^2 the noise variance. Heuristic.
    """

    worth: float = 0.1
    """Part of the variance of the gain that a measurement must take off. Decision 0134."""
    precise: float = 0.05
    """A gain is known well enough when `CAUTION` standard deviations are less than this part of it. Decision 0134."""
    share: float = 1 / 8
    """Part of the questions that goes to the baseline at most. Decision 0134."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        baseline_points, belief = state.history.baseline_points, state.belief
        measured = sum(state.history.answered(number) + state.pending.count(number) for number in baseline_points)
        if not baseline_points or measured > self.share * state.known:
            return None
        baseline = state.baseline_arm()
        if baseline is None or int(state.numbers[baseline]) in state.history.unproven:
            return None
        lower = np.where(state.in_context, belief.mean - CAUTION * belief.std, -np.inf)
        best = recommended(lower, state.margins, state.log_feasible)
        return baseline if best != baseline and self._is_worth(state, best, baseline) else None

    def _is_worth(self, state: PendingSnapshot, best: int, baseline: int) -> bool:
        belief, pair = state.belief, np.array([best, baseline])
        (own, shared), (_, variance) = belief.covariance(pair, pair)
        total = max(float(own + variance - 2 * shared), 1e-300)
        taken = float(variance - shared) ** 2 / (float(variance) + belief.noise_variance(baseline))
        gain = abs(float(belief.mean[best] - belief.mean[baseline]))
        return taken >= self.worth * total and CAUTION * math.sqrt(total) > self.precise * gain


@dataclass(frozen=True)
class SaturatedImprovement:
    """ln of expected improvement times min(1, n v / s^2), v the variance of f and s^2 that of the noise.

    n = max(enough, early / rounds), and s^2 / v is how many observations' worth is known about a point. Expected
    improvement alone keeps measuring where n of them have left little to learn, and is stuck on the first hill it
    finds; here such points lose their appeal, the sooner the more rounds have been spent. A heuristic, akin to the
    augmented expected improvement of Huang, Allen, Notz and Zeng (2006), which gives up a good point earlier.

    At the incumbent itself, the measured arm with the best mean, a repeat can only change the choice between it and the
    next best arm. With ``by_decision`` the gap between their means counts there, and the standard deviation
    v / sqrt(v + s^2) by which the mean changes: the knowledge gradient of Frazier, Powell and Dayanik (2009).
    """

    enough: float = REPEATS
    early: float = 500.0
    """Decision 0041."""
    by_decision: bool = False

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        mean, pulled, variance = posterior.mean, posterior.pulled, posterior.std**2
        incumbent = int(pulled[np.argmax(mean[pulled])]) if pulled.size else int(np.argmax(mean))
        noise = np.broadcast_to(posterior.ridge, mean.shape)
        gap, std = mean - mean[incumbent], posterior.std.copy()
        if self.by_decision and len(mean) > 1:
            gap[incumbent] = -abs(np.delete(gap, incumbent).max())
            std[incumbent] = variance[incumbent] / np.sqrt(variance[incumbent] + noise[incumbent])
        observations = max(self.enough, self.early / max(posterior.rounds, 1))
        news = np.minimum(1.0, observations * variance / noise)
        return np.asarray(log_expected_improvement(gap, std) + np.log(np.maximum(news, 1e-300)))


@dataclass(frozen=True)
class Optimism:
    """mean + width * std."""

    width: float = CAUTION

    def __call__(self, posterior: Posterior, rng: Rng) -> Floats:
        return posterior.mean + self.width * posterior.std


AMONG_NAMES = SaturatedImprovement(enough=1.0, early=0.0)
"""The rule for settings without neighbours: repeating one of them tells nothing of the others. Decision 0041."""


@dataclass(frozen=True)
class Improve:
    """The arm with the highest score of the rule, plus the log probability that it is feasible.

    While no measured arm is likely feasible, the one that most likely is. With little noise no pending arm is repeated.
    If costs are known, scores of the default rule are weighed by them, and what does not fit into the rest of the
    budget has none.
    """

    rule: Rule | None = None
    """None for `SaturatedImprovement`: with other numbers where settings have no neighbours, and ``by_decision`` where
    there is next to no noise, so that a repeat tells nothing, or where f is rough along several parameters and settings
    are left that were not measured."""
    moving_rule: Rule = Optimism()
    """The rule while f is found to change."""
    little: float = 0.1
    """Part of the size of f up to which there is little noise. Not measured."""
    exact: float = 0.02
    """Part of the size of f up to which there is next to no noise. Not measured."""
    cost_exponent: float | None = None
    """Improvement is divided by the cost to this power, under the default rule while f stays; None for 1 that falls
    to 0 as the second half of the budget is spent, or 0.5 if no budget is known."""
    weighed_every: int = 2
    """One of this many questions is weighed by cost. Where an expensive region is better than the model knows, cheap
    questions alone do not find out; and they take the smaller part of the budget. Decision 0214."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        scores = np.where(state.allowed, self._scores(state, rng), -np.inf)
        if state.prices is not None:
            is_weighed = self.rule is None and not state.is_moving and state.known % self.weighed_every == 0
            scores = state.prices.weighed(scores, self.cost_exponent if is_weighed else 0.0)
        noise = state.models.fit.noise / state.models.fit.size
        if state.pending and noise <= self.little:
            others = np.where(np.isin(state.numbers, state.pending), -np.inf, scores)
            scores = others if others.max() > -np.inf else scores
        highest = scores.max()
        return int(np.argmax(scores >= highest - ROUNDING * abs(highest)))

    def _scores(self, state: PendingSnapshot, rng: Rng) -> Floats:
        if state.margins and state.log_feasible[state.incumbents].max() < math.log(SEARCH):
            return search_scores(state.margins, state.log_feasible)
        scores = self._rule(state)(cast(Any, replace(state.belief, only_pulled=state.incumbents)), rng)
        return np.asarray(scores + state.log_feasible if state.margins else scores)

    def _rule(self, state: PendingSnapshot) -> Rule:
        if state.is_moving:
            return self.moving_rule
        is_one_choice = len(state.space.names) == 1 and len(state.space.groups) == state.space.count
        fit = state.models.fit
        is_table = fit.is_rough and len(state.space.names) > 1 and bool((state.numbers < 0).any())
        by_decision = is_table or fit.noise <= self.exact * fit.size
        return self.rule or (AMONG_NAMES if is_one_choice else SaturatedImprovement(by_decision=by_decision))
