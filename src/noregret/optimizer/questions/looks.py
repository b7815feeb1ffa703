"""Cheap looks: the fidelity at which a setting is measured, and when a run is not worth its remaining cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.improvement import log_expected_improvement
from noregret.gp.posterior import Floats
from noregret.optimizer.model.constraints import RECOMMEND, recommended
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.evidence import CAUTION, LEVEL
from noregret.optimizer.model.objectives import nondominated
from noregret.optimizer.questions.objectives import ImproveFront, front_of
from noregret.optimizer.questions.questions import Opening
from noregret.optimizer.questions.state import PendingSnapshot, state_of
from noregret.optimizer.space.contexts import FIRST, Contexts


@dataclass(frozen=True)
class CheapLooks:
    """Fidelity of a question, and the rule that ends a run early.

    A question is about the highest fidelity: some setting x is worth a measurement there. A measurement of x at a
    lower fidelity s changes the mean of f(x, highest) by a random amount with the standard deviation
    t = cov(f(x, s), f(x, highest)) / sqrt(var f(x, s) + noise variance). What it is expected to improve what is
    recommended by is E max(gap + t Z, 0), with Z standard normal and the gap between the means of x and of the best
    other setting. The fidelity with the largest expected improvement per unit of cost is asked for: cheap at first, and
    higher when lower ones say nothing more about x. Once trials report intermediate values, questions are asked at the
    highest fidelity, since a run can be stopped on its way there at the cost of a lower one.

    With several objectives the improvement is that of the hypervolume, over the front and the means of x, with the
    standard deviation t of each objective.
    """

    most: int = ImproveFront.most
    """Points of the front that count, as in `ImproveFront`."""

    def at_first(self, contexts: Contexts, state: Opening, number: int) -> Mapping[str, Any]:
        """Fidelity of a question of the initial design: each rung in turn, and the highest for the baseline."""
        assert contexts.fidelity is not None
        if number in state.history.baseline_points:
            return contexts.fidelity.highest
        rungs = contexts.fidelity.rungs
        order = [turn for turn in FIRST if turn < len(rungs)]
        return rungs[order[state.known % len(order)]]

    def __call__(self, contexts: Contexts, state: PendingSnapshot, number: int) -> Mapping[str, Any]:
        """Fidelity at which to measure the setting of a point."""
        assert contexts.fidelity is not None
        if state.history.runs:
            return contexts.fidelity.highest
        rungs, params, belief = contexts.fidelity.rungs, state.history.params[number], state.belief
        points = state.history.space.encode([contexts.at_fidelity(params, rung) for rung in rungs])
        costs = [contexts.fidelity.cost(rung) for rung in rungs]
        if len(state.objectives) > 1:
            return rungs[int(np.argmax(self._of_front(state, points) - np.log(costs)))]
        mean, change = _change(state, points)
        others = np.setdiff1d(state.incumbents, state.arms([number]))
        gap = -abs(float(mean - belief.mean[others].max())) if others.size else 0.0
        improvement = log_expected_improvement(np.full(len(rungs), gap), np.maximum(change, 1e-300))
        return rungs[int(np.argmax(improvement - np.log(costs)))]

    def _of_front(self, state: PendingSnapshot, points: Floats) -> Floats:
        """Log of the expected hypervolume that a measurement at each of (n, d) points adds, the last the highest."""
        states = [state_of(each, state.pending, state.balance) for each in state.objectives.values()]
        means, changes = zip(*(_change(each, points) for each in states), strict=True)
        mean, rng = np.array(means), np.random.default_rng(state.known)
        rule, _ = front_of(state, states, rng, self.most, mean)
        return rule(np.tile(mean, (len(points), 1)), np.maximum(np.column_stack(changes), 1e-300))

    def should_stop(self, state: Snapshot, number: int) -> bool:
        """Return True if the setting of a point at the highest fidelity is unlikely to be better than recommended.

        It is better with a probability of less than 1 - `LEVEL`, by the posterior of the difference. Never if no other
        setting is expected to improve more on what is recommended, nor where nothing is likely to meet the constraints.
        With several objectives, if a setting of the front is better in all of them with a probability of `LEVEL`.
        """
        if len(state.objectives) > 1:
            return self._is_beaten(state, number)
        belief, arm = state.belief, int(state.arms([number])[0])
        lower = np.where(state.in_context, belief.mean - CAUTION * belief.std, -np.inf)
        best = recommended(lower, state.margins, state.log_feasible)
        if best == arm or state.log_feasible[best] < math.log(RECOMMEND):
            return False
        pair = np.array([arm, best])
        (own, shared), (_, other) = belief.covariance(pair, pair)
        std = math.sqrt(max(float(own + other - 2 * shared), 1e-300))
        better = float(sp.ndtr((belief.mean[arm] - belief.mean[best]) / std)) * math.exp(state.log_feasible[arm])
        if better >= 1 - LEVEL:
            return False
        improvement = log_expected_improvement(belief.mean - belief.mean[best], belief.std) + state.log_feasible
        return bool(np.delete(np.where(state.allowed, improvement, -np.inf), arm).max() > improvement[arm])

    def _is_beaten(self, state: Snapshot, number: int) -> bool:
        """Return True if the setting of a point is unlikely to be on the front, and another promises more."""
        states, arm = list(state.objectives.values()), int(state.arms([number])[0])
        likely = np.flatnonzero(state.allowed & (state.log_feasible >= math.log(RECOMMEND)))
        likely = likely[likely != arm]
        if not likely.size:
            return False
        lower = np.column_stack([own.belief.mean - CAUTION * own.belief.std for own in states])[likely]
        members, beaten = likely[nondominated(lower)], 1.0
        for belief in (each.belief for each in states):
            covariance = belief.covariance(np.append(arm, members), np.append(arm, members))
            variance = covariance.diagonal() + covariance[0, 0] - 2 * covariance[0]
            gap = belief.mean[members] - belief.mean[arm]
            beaten = beaten * sp.ndtr(gap / np.sqrt(np.maximum(variance[1:], 1e-300)))
        if 1 - (1 - np.max(beaten)) * math.exp(state.log_feasible[arm]) <= LEVEL:
            return False
        rule, _ = front_of(state, states, np.random.default_rng(len(state.history)), self.most)
        mean, std = (np.column_stack([getattr(own.belief, each) for own in states]) for each in ("mean", "std"))
        improvement = np.where(state.allowed, rule(mean, std) + state.log_feasible, -np.inf)
        return bool(np.delete(improvement, arm).max() > improvement[arm])


def _change(state: Snapshot, points: Floats) -> tuple[float, Floats]:
    """Mean at the last of (n, d) points, and the std of its change by a measurement at each of them."""
    mean, covariance = state.belief.full.joint(points)
    variances = covariance.diagonal() + state.models.noise_variance(points)
    return float(mean[-1]), np.maximum(covariance[-1], 0.0) / np.sqrt(variances)
