"""Several models of the same rewards, of which one leads: for bounds over many ridges and for unknown models."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from noregret.bandits.belief.arms import as_arms, as_points
from noregret.bandits.belief.exact import ExactGP
from noregret.gp.arrays import numpy_of
from noregret.gp.kernels import Kernel
from noregret.gp.posterior import Floats, Model, Posterior, Rng


class ModelSet:
    """Posteriors of several models, all on the same rewards. The ``leader`` answers every question.

    ``members`` maps names to posteriors, and ``leader`` is one of the names: the first, until it is set to another.
    Several names may share one posterior.
    """

    def __init__(self, members: Mapping[Any, Posterior]) -> None:
        self.members: dict[Any, Any] = dict(members)
        self.leader: Any = next(iter(members), None)

    def __getattr__(self, name: str) -> Any:
        if name in ("members", "leader"):  # not set yet while a copy is being made
            raise AttributeError(name)
        return getattr(self.members[self.leader], name)

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        for posterior in self._distinct():
            posterior.update(arms, rewards, noise=noise)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        for posterior in self._distinct():
            posterior.learn(points, rewards, noise)

    def at(self, arms: Any) -> Self:
        return self._with({id(posterior): posterior.at(arms) for posterior in self._distinct()})

    def copy(self) -> Self:
        return self._with({id(posterior): posterior.copy() for posterior in self._distinct()})

    def _distinct(self) -> list[Posterior]:
        """Posteriors, each once. The smallest ridge comes first: it refuses all that another one refuses."""
        distinct = {id(posterior): posterior for posterior in self.members.values()}
        return sorted(distinct.values(), key=lambda posterior: posterior.ridge)

    def _with(self, replaced: Mapping[int, Posterior]) -> Self:
        """Copy of the set with other posteriors, given by the id of those they replace."""
        twin = copy.copy(self)
        twin.members = {name: replaced[id(posterior)] for name, posterior in self.members.items()}
        return twin


@dataclass(frozen=True)
class RidgeFamily:
    """Exact posteriors on the same data, one per ridge. The members' names are the ridges, and the first leads."""

    kernel: Kernel
    ridges: tuple[float, ...]

    def prior(self, arms: Any, rng: Rng | None = None) -> ModelSet:
        return ModelSet({ridge: ExactGP(self.kernel, ridge).prior(arms) for ridge in self.ridges})


class SharedPosterior(ModelSet):
    """Set of models that come and go during a run. Names with equal models share one posterior.

    A model that is admitted late is fitted to all rewards before: n rewards of an arm are one of their average with
    ridge / n. So a fit costs O(u^2 N) with u the distinct arms pulled, independent of the number of rewards.
    """

    def __init__(self, arms: Any) -> None:
        super().__init__({})
        self.arms, self.rounds = as_arms(arms), 0
        # per arm: the sum of 1 / noise over its rewards, and of reward / noise
        self._precision, self._weighted = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        self._elsewhere: list[tuple[Floats, Floats, Floats]] = []  # points that are not arms, rewards and noise
        self._fits: dict[Model, Posterior] = {}

    def admit(self, name: Any, model: Model, rng: Rng | None = None) -> None:
        """Add a member; the first one leads until ``leader`` is set to another."""
        if model not in self._fits:
            self._fits[model] = self._fitted(model, rng)
        self.members[name] = self._fits[model]
        if len(self.members) == 1:
            self.leader = name

    def dismiss(self, name: Any) -> None:
        """Remove a member, and its posterior if no other member shares it. The oldest member replaces a leader."""
        gone = self.members.pop(name)
        if name == self.leader:
            self.leader = next(iter(self.members), None)
        if not any(posterior is gone for posterior in self.members.values()):
            self._fits = {model: posterior for model, posterior in self._fits.items() if posterior is not gone}

    def update(self, arms: Any, rewards: Any = None, *, noise: Any = None) -> None:
        arms = np.asarray(arms, dtype=np.intp).reshape(-1)
        values = numpy_of(self.mean[arms]) if rewards is None else np.asarray(rewards, dtype=float).reshape(-1)
        super().update(arms, rewards, noise=noise)
        self.rounds += 0 if rewards is None else arms.size
        precision: Floats = 1 / np.broadcast_to(1.0 if noise is None else noise, arms.shape)
        np.add.at(self._precision, arms, precision)
        np.add.at(self._weighted, arms, values * precision)

    def learn(self, points: Any, rewards: Any = None, noise: Any = None) -> None:
        points = as_points(points, self.arms.shape[1])
        planned = self.predict(points)[0] if rewards is None else None
        super().learn(points, rewards, noise)
        self.rounds += 0 if rewards is None else len(points)
        rewards = planned if rewards is None else rewards
        values, factors = (
            np.broadcast_to(np.asarray(each, float), len(points)) for each in (rewards, 1.0 if noise is None else noise)
        )
        self._elsewhere = [*self._elsewhere, (points, values, factors)]

    def at(self, arms: Any) -> Any:
        """Return the leader's knowledge about other (N, d) arms."""
        return self.members[self.leader].at(arms)

    def _with(self, replaced: Mapping[int, Posterior]) -> Self:
        twin = super()._with(replaced)
        twin._precision, twin._weighted = self._precision.copy(), self._weighted.copy()
        twin._fits = {model: replaced[id(posterior)] for model, posterior in self._fits.items()}
        return twin

    def _fitted(self, model: Model, rng: Rng | None) -> Posterior:
        """Posterior of a new model on all rewards so far."""
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
