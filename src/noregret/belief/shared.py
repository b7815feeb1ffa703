"""Several models of the same rewards: for algorithms that do not know which model is right."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from noregret.belief.arms import as_arms, as_points
from noregret.belief.arrays import numpy_of
from noregret.belief.posterior import Floats, Model, Posterior, Rng


class SharedPosterior:
    """One posterior per model, all on the same rewards; that of the ``leader`` answers all that is asked.

    ``members`` maps each name to its posterior, and the leader is one of the names. Names with equal models share one
    posterior. A model that is admitted late is fitted to all that was learnt before: n rewards of an arm are one of
    their average with ridge / n, so a fit costs O(u^2 N) with u the distinct arms pulled, however many the rewards.
    """

    def __init__(self, arms: Any) -> None:
        self.arms, self.rounds = as_arms(arms), 0
        # per arm: the sum of 1 / noise over its rewards, and of reward / noise
        self._precision, self._weighted = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        self._elsewhere: list[tuple[Floats, Floats, Floats]] = []  # points that are no arms, rewards and noise
        self._fits: dict[Model, Posterior] = {}
        self.members: dict[Any, Posterior] = {}
        self.leader: Any = None

    def __getattr__(self, name: str) -> Any:
        if name in ("members", "leader"):  # not there yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.members[self.leader], name)

    def admit(self, name: Any, model: Model, rng: Rng | None = None) -> None:
        """Add a member; the first one leads until ``leader`` is set to another."""
        if model not in self._fits:
            self._fits[model] = self._fitted(model, rng)
        self.members[name] = self._fits[model]
        if len(self.members) == 1:
            self.leader = name

    def dismiss(self, name: Any) -> None:
        """Remove a member, and its posterior if no other shares it; the longest there leads in place of a leader."""
        gone = self.members.pop(name)
        if name == self.leader:
            self.leader = next(iter(self.members), None)
        if not any(posterior is gone for posterior in self.members.values()):
            self._fits = {model: posterior for model, posterior in self._fits.items() if posterior is not gone}

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        """Take in rewards in every member; ``noise`` scales each member's own ridge."""
        arms = np.asarray(arms, dtype=np.intp).reshape(-1)
        values = numpy_of(self.mean[arms]) if rewards is None else np.asarray(rewards, dtype=float).reshape(-1)
        for posterior in self._fits.values():
            posterior.update(arms, rewards, noise=noise)
        self.rounds += 0 if rewards is None else arms.size
        precision: Floats = 1 / np.broadcast_to(1.0 if noise is None else noise, arms.shape)
        np.add.at(self._precision, arms, precision)
        np.add.at(self._weighted, arms, values * precision)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        """Take in rewards of any (n, d) points in every member; ``noise`` scales each member's own ridge."""
        points = as_points(points, self.arms.shape[1])
        planned = self.predict(points)[0] if rewards is None else None
        for posterior in self._fits.values():
            posterior.learn(points, rewards, noise)
        self.rounds += 0 if rewards is None else len(points)
        rewards = planned if rewards is None else rewards
        values, factors = (
            np.broadcast_to(np.asarray(each, float), len(points)) for each in (rewards, 1.0 if noise is None else noise)
        )
        self._elsewhere = [*self._elsewhere, (points, values, factors)]

    def copy(self) -> Self:
        """An independent posterior with the same knowledge."""
        twin = copy.copy(self)
        twin._precision, twin._weighted = self._precision.copy(), self._weighted.copy()
        twins = {id(posterior): posterior.copy() for posterior in self._fits.values()}
        twin._fits = {model: twins[id(posterior)] for model, posterior in self._fits.items()}
        twin.members = {name: twins[id(posterior)] for name, posterior in self.members.items()}
        return twin

    def _fitted(self, model: Model, rng: Rng | None) -> Posterior:
        posterior = model.prior(self.arms, rng)
        if self._fits:
            pulled = np.array([arm for arm in self.pulled.tolist() if self._precision[arm]], np.intp)
            precision = self._precision[pulled]
            posterior.update(pulled, self._weighted[pulled] / precision, noise=1 / precision)
            if self._elsewhere:
                points, values, factors = (np.concatenate(each) for each in zip(*self._elsewhere, strict=True))
                posterior.learn(points, values, factors)
            posterior.rounds = self.rounds
        return posterior
