"""Grow: the question that makes the set of safe settings larger where that is worth it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from noregret.gp.posterior import Floats, Rng
from noregret.optimizer.model.candidates import Candidates, top
from noregret.optimizer.model.tenable import Tenable
from noregret.optimizer.questions.questions import Improve
from noregret.optimizer.questions.state import Asked, PendingSnapshot


@dataclass(frozen=True)
class Grow:
    """The safe setting that tells most about the constraint of the most promising setting that is not safe.

    None if the most promising of all settings is safe.
    """

    first: int
    """Answers up to which every question is of this kind."""
    every: int = 3
    """After these, one question of this many is. Decision 0215."""
    steps: int = 12
    """Number of steps towards the promising one that are looked at, from each of the best `Candidates.centres`. Not
    measured."""
    improve: Improve = field(default_factory=Improve)

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        safety = state.safety
        if safety is None or None in safety.guards or (state.known >= self.first and state.known % self.every):
            return None
        scores = np.where(state.in_context, self.improve._scores(state, rng), -np.inf)
        target = int(np.argmax(scores))
        if state.allowed[target]:
            return None
        arms, goal = np.flatnonzero(state.allowed), state.belief.arms[[target]]
        _, model = min((guard.at(goal) for guard in safety.guards if guard), key=lambda bound: bound[0])
        told = news(model, state.belief.arms[arms], goal)
        near = state.belief.arms[arms[top(told, Candidates.centres)]]
        parts = np.linspace(0, 1, self.steps + 2)[1:-1, None, None]
        between = state.space.snap((near + parts * (goal - near)).reshape(-1, goal.shape[1]))
        between = between[safety.holds(between)]
        if len(between):
            more = news(model, between, goal)
            if more.max() > told.max():
                return np.asarray(between[np.argmax(more)])
        return int(arms[np.argmax(told)])


def news(model: Tenable, points: Floats, goal: Floats) -> Floats:
    """Variance of a constraint at the (1, d) goal that a reading at each of (n, d) points takes off, (n,)."""
    process = model.process
    lifted, at_goal = process.lifted(points), process.lifted(goal)
    shared = process.prior_covariance(points, goal)[:, 0] - lifted.T @ at_goal[:, 0]
    own = process.prior(points) - np.einsum("ij,ij->j", lifted, lifted)
    noise = model.noise**2 * np.ravel(model.fitted.noise_variance(points))
    return np.asarray(shared**2 / (np.maximum(own, 0.0) + noise))
