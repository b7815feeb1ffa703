"""Reward models: rewards with the mean of their arm and tails from Gaussian to barely integrable.

The noise of every model depends on the number of pulls alone, not on the arms: n pulls at once have the same noise as n
single pulls. Two algorithms on one seed therefore have the same noise.

`Payoff.moment` bounds E|y|^(1 + alpha) over all arms, for 0 < alpha <= 1; it is infinite if there is no such
moment. For noise symmetric about 0, E|f + noise|^p <= |f|^p + E|noise|^p at 1 <= p <= 2 (Clarkson's inequality), with
equality at p = 2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gamma, ndtri

from noregret.gp.posterior import Floats, Rng


class Payoff(ABC):
    """Base class of reward models: a random reward for every arm, with a given mean."""

    @abstractmethod
    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """One reward per pull: all arms' means (N,) and the pulled indices (n,) -> (n,)."""

    @abstractmethod
    def moment(self, means: Floats, alpha: float) -> float:
        """Bound on E|y|^(1 + alpha) over all arms; infinite if there is none."""

    @abstractmethod
    def deviation(self, means: Floats) -> float:
        """Largest standard deviation over all arms; infinite if there is none."""

    @property
    def usual_alpha(self) -> float:
        """Largest commonly used alpha at which the moment is finite."""
        return 1.0

    def check(self, means: Floats) -> None:  # noqa: B027  most models take any means
        """Raise ValueError if rewards with these means cannot be drawn."""


class Additive(Payoff):
    """Base class of y = mean + noise, with noise that is symmetric about 0 and has one distribution on all arms."""

    @abstractmethod
    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        """Independent draws of the noise."""

    @abstractmethod
    def absolute_moment(self, order: float) -> float:
        """E|noise|^order, infinite if there is none."""

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        mean = means[arms]
        return np.asarray(mean + self.noise(mean.shape, rng))

    def moment(self, means: Floats, alpha: float) -> float:
        """Largest |f|^(1 + alpha), plus E|noise|^(1 + alpha)."""
        order = order_of(alpha)
        return math.pow(np.abs(means).max(), order) + self.absolute_moment(order)

    def deviation(self, means: Floats) -> float:
        return math.sqrt(self.absolute_moment(2.0))


def order_of(alpha: float) -> float:
    """Order 1 + alpha of a moment; raise ValueError unless alpha is in (0, 1]."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be in (0, 1], got {alpha}")
    return 1 + alpha


@dataclass(frozen=True)
class Gaussian(Additive):
    """Noise N(0, sd^2); with sd = 0 rewards are exact."""

    sd: float

    def __post_init__(self) -> None:
        _at_least_zero("sd", self.sd)

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        return self.sd * rng.standard_normal(shape)

    def absolute_moment(self, order: float) -> float:
        """sd^p 2^(p/2) Gamma((p + 1)/2) / sqrt(pi)."""
        return float(self.sd**order * 2 ** (order / 2) * gamma((order + 1) / 2) / math.sqrt(math.pi))

    def deviation(self, means: Floats) -> float:
        return self.sd


@dataclass(frozen=True)
class StudentT(Additive):
    """Noise scale * t with ``dof`` degrees of freedom, which has only moments of order below ``dof``."""

    dof: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _above("dof", self.dof, 1)
        _above("scale", self.scale, 0)

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        return np.asarray(self.scale * rng.standard_t(self.dof, shape))

    def absolute_moment(self, order: float) -> float:
        """scale^p dof^(p/2) Gamma((p+1)/2) Gamma((dof-p)/2) / (sqrt(pi) Gamma(dof/2))."""
        if order >= self.dof:
            return math.inf
        tail = gamma((self.dof - order) / 2) / gamma(self.dof / 2) * self.dof ** (order / 2)
        return float(self.scale**order * tail * gamma((order + 1) / 2) / math.sqrt(math.pi))

    @property
    def usual_alpha(self) -> float:
        return _usual_alpha(self.dof)


@dataclass(frozen=True)
class Spikes(Additive):
    """Noise N(0, sd^2) plus, with the given probability, a spike of -size or +size."""

    sd: float
    probability: float
    size: float

    def __post_init__(self) -> None:
        _at_least_zero("sd", self.sd)
        _above("size", self.size, 0)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability must be in [0, 1], got {self.probability}")

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        """Noise from two uniform numbers per draw: one for the Gaussian part, one for the spike."""
        u = rng.random((*shape, 2))
        normal = ndtri(np.maximum(u[..., 0], 2.0**-54))  # u may be 0, and ndtri(0) = -inf
        half, spike = self.probability / 2, u[..., 1]
        return np.asarray(self.sd * normal + self.size * (1.0 * (spike >= 1 - half) - (spike < half)))

    def absolute_moment(self, order: float) -> float:
        """E|N(0, sd^2)|^p + probability size^p: a bound, exact at p = 2."""
        return Gaussian(self.sd).absolute_moment(order) + self.probability * math.pow(self.size, order)


@dataclass(frozen=True)
class Stable(Additive):
    """Symmetric stable noise with characteristic function exp(-|scale w|^index), 1 < index < 2: infinite variance.

    Drawn by the method of Chambers, Mallows and Stuck (1976).
    """

    index: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _above("scale", self.scale, 0)
        if not 1 < self.index < 2:
            raise ValueError(f"index must be in (1, 2), got {self.index}: at 2 the noise is Gaussian(sqrt(2) scale)")

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        """Noise from two uniform numbers per draw: an angle and an exponential variable."""
        u = rng.random((*shape, 2))
        a, angle = self.index, math.pi * (u[..., 0] - 0.5)
        wait = -np.log1p(-np.maximum(u[..., 1], 2.0**-54))  # u may be 0
        tail = (np.cos((1 - a) * angle) / wait) ** ((1 - a) / a)
        return np.asarray(self.scale * np.sin(a * angle) / np.cos(angle) ** (1 / a) * tail)

    def absolute_moment(self, order: float) -> float:
        """scale^p 2^p Gamma((p+1)/2) Gamma(1 - p/index) / (sqrt(pi) Gamma(1 - p/2))."""
        if order >= self.index:
            return math.inf
        tail = gamma(1 - order / self.index) / gamma(1 - order / 2)
        return float((2 * self.scale) ** order * tail * gamma((order + 1) / 2) / math.sqrt(math.pi))

    @property
    def usual_alpha(self) -> float:
        return _usual_alpha(self.index)


@dataclass(frozen=True)
class Glitch(Additive):
    """One arm that returns its mean plus or minus ``size``; every other arm returns its mean exactly."""

    arm: int
    size: float

    def __post_init__(self) -> None:
        _above("size", self.size, 0)

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """Rewards of these arms; every pull draws a sign, and only the one arm uses it."""
        return np.where(np.asarray(arms) == self.arm, super().draw(means, arms, rng), means[arms])

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Floats:
        return np.where(rng.random(shape) < 0.5, -self.size, self.size)

    def absolute_moment(self, order: float) -> float:
        """size^p, the moment at the one arm."""
        return math.pow(self.size, order)

    def check(self, means: Floats) -> None:
        if not 0 <= self.arm < len(means):
            raise ValueError(f"arm of a Glitch must be in 0..{len(means) - 1}, got {self.arm}")


@dataclass(frozen=True)
class Pareto(Payoff):
    """Pareto rewards: P(y > z) = (scale / z)^shape with scale = mean (shape - 1) / shape, mean > 0.

    Shape 2 gives the scale f(x) / 2.
    """

    shape: float

    def __post_init__(self) -> None:
        _above("shape", self.shape, 1)

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """Scale times (1 + Lomax), (n,)."""
        mean = means[arms]
        return np.asarray(mean * (1 - 1 / self.shape) * (1 + rng.pareto(self.shape, mean.shape)))

    def moment(self, means: Floats, alpha: float) -> float:
        """Shape scale^(1 + alpha) / (shape - 1 - alpha)."""
        order = order_of(alpha)
        scale = float(means.max()) * (1 - 1 / self.shape)
        return self.shape * scale**order / (self.shape - order) if order < self.shape else math.inf

    def deviation(self, means: Floats) -> float:
        """Mean / sqrt(shape (shape - 2))."""
        return float(means.max()) / math.sqrt(self.shape * (self.shape - 2)) if self.shape > 2 else math.inf

    @property
    def usual_alpha(self) -> float:
        return _usual_alpha(self.shape)

    def check(self, means: Floats) -> None:
        if not (means > 0).all():
            raise ValueError(f"means of Pareto rewards must be positive, got {means.min()}: shift or scale f first")


@dataclass(frozen=True)
class TwoPoint(Payoff):
    """Rewards sign(mean) * size with probability |mean| / size, else 0; ``alpha`` is the order of the quoted moment."""

    size: float
    alpha: float = 1.0

    def __post_init__(self) -> None:
        _above("size", self.size, 0)
        order_of(self.alpha)

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        """Rewards from one uniform number per pull, (n,)."""
        mean = means[arms]
        return np.where(rng.random(mean.shape) * self.size < np.abs(mean), np.copysign(self.size, mean), 0.0)

    def moment(self, means: Floats, alpha: float) -> float:
        """Largest |f| times size^alpha."""
        return float(np.abs(means).max()) * math.pow(self.size, order_of(alpha) - 1)

    def deviation(self, means: Floats) -> float:
        """Largest sqrt(|f| (size - |f|))."""
        spread = np.abs(means) * (self.size - np.abs(means))
        return math.sqrt(spread.max())

    @property
    def usual_alpha(self) -> float:
        return self.alpha

    def check(self, means: Floats) -> None:
        if not np.abs(means).max() <= self.size:
            raise ValueError(f"|means| must be at most size = {self.size}, got {np.abs(means).max()}")


@dataclass(frozen=True, eq=False)
class Resampled(Payoff):
    """Rewards from a table of measurements: a pull of arm i returns column i of a random row."""

    table: Floats = field(repr=False)

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=float)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
            raise ValueError(f"table must be a finite (rows, arms) array, got shape {table.shape} or nan or inf in it")
        table.setflags(write=False)
        object.__setattr__(self, "table", table)

    @property
    def means(self) -> Floats:
        """Mean of every column, (N,); a problem with these rewards must have these means."""
        return np.asarray(self.table.mean(axis=0))

    def draw(self, means: Floats, arms: Any, rng: Rng) -> Floats:
        rows = rng.random(np.shape(arms)) * len(self.table)
        return np.asarray(self.table[rows.astype(np.intp), arms])

    def moment(self, means: Floats, alpha: float) -> float:
        """Largest column mean of |y|^(1 + alpha)."""
        return float((np.abs(self.table) ** order_of(alpha)).mean(axis=0).max())

    def deviation(self, means: Floats) -> float:
        return float(self.table.std(axis=0).max())

    def check(self, means: Floats) -> None:
        if self.table.shape[1] != len(means) or not np.allclose(self.means, means, rtol=1e-9, atol=1e-12):
            raise ValueError("means must be those of the table's columns: pass payoff.means")


def _usual_alpha(tail: float) -> float:
    """1 if the variance is finite, else nine tenths of the way to the tail index."""
    return 1.0 if tail > 2 else 0.9 * (tail - 1)


def _above(name: str, value: float, bound: float) -> None:
    if not (value > bound and math.isfinite(value)):
        raise ValueError(f"{name} must be above {bound}, got {value}")


def _at_least_zero(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be at least 0, got {value}")
