"""Cheap looks: the fidelity at which a setting is measured, and when a run is not worth its remaining cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.improvement import log_expected_improvement
from noregret.optimizer.model.constraints import RECOMMEND, recommended
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.evidence import CAUTION, LEVEL
from noregret.optimizer.questions.questions import Opening
from noregret.optimizer.questions.state import PendingSnapshot
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
    """

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
        mean, covariance = belief.full.joint(points)
        variances = covariance.diagonal() + state.models.noise_variance(points)
        change = np.maximum(covariance[-1], 0.0) / np.sqrt(variances)
        others = np.setdiff1d(state.incumbents, state.arms([number]))
        gap = -abs(float(mean[-1] - belief.mean[others].max())) if others.size else 0.0
        improvement = log_expected_improvement(np.full(len(rungs), gap), np.maximum(change, 1e-300))
        costs = [contexts.fidelity.cost(rung) for rung in rungs]
        return rungs[int(np.argmax(improvement - np.log(costs)))]

    def should_stop(self, state: Snapshot, number: int) -> bool:
        """Return True if the setting of a point at the highest fidelity is unlikely to be better than recommended.

        It is better with a probability of less than 1 - `LEVEL`, by the posterior of the difference. Never if no other
        setting is expected to improve more on what is recommended, nor where nothing is likely to meet the constraints.
        """
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
