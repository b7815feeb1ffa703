"""GP-UCB as the BKB paper counts its cost: the posterior computed anew from all t rewards in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from noregret.belief.kernels import Kernel
from noregret.belief.numerics.linalg import solve_lower
from noregret.belief.posterior import Floats, Ints, Rng


@dataclass(frozen=True)
class TextbookGP:
    """The exact posterior, at O(t^3 + t^2 N) a round: a yardstick for time, of no other use."""

    kernel: Kernel
    ridge: float

    def prior(self, arms: Floats, rng: Rng | None = None) -> Any:
        """Belief about f on these (N, d) arms before any reward."""
        return _TextbookPosterior(self, arms)


class _TextbookPosterior:
    """The part of the `Posterior` contract that the rule UCB uses."""

    def __init__(self, model: TextbookGP, arms: Floats) -> None:
        self.arms, self.ridge, self._kernel = arms, model.ridge, model.kernel
        self.mean, self.std = np.zeros(len(arms)), np.sqrt(model.kernel.diag(arms))
        self.history, self.rewards = np.empty(0, np.intp), np.empty(0)

    @property
    def rounds(self) -> int:
        return len(self.rewards)

    @property
    def rank(self) -> int:
        return len(self.rewards)

    @property
    def effective_dimension(self) -> float:
        return float((self.std[self.history] ** 2).sum()) / self.ridge

    def update(self, arms: Ints, rewards: Floats) -> None:
        """Factorise the kernel matrix of the whole history."""
        self.history, self.rewards = np.append(self.history, arms), np.append(self.rewards, rewards)
        pulled = self.arms[self.history]
        matrix = self._kernel(pulled, pulled) + self.ridge * np.eye(self.rounds)
        root = np.asarray(np.linalg.cholesky(matrix), dtype=float)
        lifted = solve_lower(root, self._kernel(pulled, self.arms))
        self.mean = solve_lower(root, self.rewards[:, None].copy())[:, 0] @ lifted
        self.std = np.sqrt(np.maximum(self._kernel.diag(self.arms) - np.einsum("ij,ij->j", lifted, lifted), 0.0))
