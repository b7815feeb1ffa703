"""The contract of reward models."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from noregret.belief.posterior import Floats, Rng


class Payoff(ABC):
    """A random reward for every arm, with a given mean."""

    @abstractmethod
    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """One reward per pull: all arms' means (N,) and the pulled indices (n,) -> (n,)."""

    @abstractmethod
    def moment(self, means: Floats, alpha: float) -> float:
        """Bound on E|y|^(1 + alpha) over all arms; infinite where there is none."""

    @abstractmethod
    def deviation(self, means: Floats) -> float:
        """Largest standard deviation over all arms; infinite where there is none."""

    @property
    def usual_alpha(self) -> float:
        """An alpha, the largest in common use, at which the moment is finite."""
        return 1.0

    def check(self, means: Floats) -> None:  # noqa: B027  most models take any means
        """Raise ValueError if rewards with these means cannot be drawn."""


class Additive(Payoff):
    """y = mean + noise, the noise symmetric about 0 and the same on all arms."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        """Independent draws of the noise."""

    @abstractmethod
    def absolute_moment(self, order: float) -> float:
        """E|noise|^order, infinite where there is none."""

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """Mean + noise, (n,)."""
        mean = means[arms]
        rewards: Floats = mean + self.noise(mean.shape, rng)
        return rewards

    def moment(self, means: Floats, alpha: float) -> float:
        """Largest |f|^(1 + alpha), plus E|noise|^(1 + alpha)."""
        order = order_of(alpha)
        return math.pow(np.abs(means).max(), order) + self.absolute_moment(order)

    def deviation(self, means: Floats) -> float:
        """Standard deviation of the noise."""
        return math.sqrt(self.absolute_moment(2.0))


def order_of(alpha: float) -> float:
    """The order 1 + alpha of a moment, once alpha is checked."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")
    return 1 + alpha
