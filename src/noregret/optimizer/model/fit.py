"""Fit: the model of f, given by a few numbers.

The model of standardised measurements z at points x is

    z = c + f(x) + e,    c ~ N(0, CENTRE^2),    f ~ GP(0, a^2 k + b^2 k_1),    e ~ N(0, s^2 / w)

with k Matern 5/2 of all parameters, k_1 the average over the parameters of Matern 5/2 of one alone, a lengthscale per
parameter, which both share, and the trust w given (see `weights`). Where parameters act one by one, k_1 explains f, and
every measurement tells about it wherever the other parameters were. Where points have an age, f changes: all kernels
are multiplied by 2^(-|age - age'| / (2 h)), so that half of the variance of f is new after a half-life h. Where
parameters are warped, distances are those of the warped coordinates. If f is rough along the axes, k is `Rough` and b
is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from noregret.belief.kernels import Kernel, Matern
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.model.additive import Additive, Rough, Warped
from noregret.optimizer.model.evidence import Evidence

CENTRE = 2.0
"""Prior standard deviation of the mean of f, in units of the measurements' spread."""


@dataclass(frozen=True)
class Fit:
    """What was fitted, in standardised units.

    ``amplitude`` is a, ``additive`` is b, 0 where there is no such part. ``strange`` is how much less likely all this
    is than the priors' medians. ``half_life`` is h, in answers, infinite where f stays as it is. ``warps``
    are those of the parameters, none where coordinates are as given.
    """

    lengthscales: tuple[float, ...]
    amplitude: float
    noise: float
    centre: float = 0.0
    strange: float = 0.0
    additive: float = 0.0
    half_life: float = math.inf
    warps: tuple[float, ...] = ()
    is_rough: bool = False

    def kernel(self, groups: Ints) -> Kernel:
        """a^2 k + b^2 k_1, each coordinate with the lengthscale of its group."""
        columns = tuple(tuple(np.flatnonzero(groups == group).tolist()) for group in range(len(self.lengthscales)))
        smooth, rough = (
            Matern(2.5, tuple(self.lengthscales[group] for group in groups)),
            Rough(self.lengthscales, columns),
        )
        kernel = self.amplitude**2 * (rough if self.is_rough else smooth)
        if self.additive:
            kernel = kernel + self.additive**2 * Additive(self.lengthscales, columns)
        return Warped(kernel, tuple(self.warps[group] for group in groups)) if any(self.warps) else kernel

    def covariance(self, evidence: Evidence) -> Floats:
        """Prior covariance of f at the points of the evidence, each at its time, (u, u)."""
        matrix = self.kernel(evidence.groups)(evidence.points, evidence.points)
        return matrix if evidence.ages is None else matrix * fading(apart(evidence.ages), self.half_life)

    @property
    def rate(self) -> float:
        """How much of the variance of f is new after each answer, 1 - 2^(-1 / h)."""
        return -math.expm1(-math.log(2) / self.half_life)

    @property
    def size(self) -> float:
        """Prior standard deviation of f."""
        return math.hypot(self.amplitude, self.additive)

    def scaled(self, ratio: float, factor: float = 1.0) -> Fit:
        """The same with all lengthscales times ``ratio`` and amplitudes times ``factor``."""
        amplitudes = {name: factor * getattr(self, name) for name in ("amplitude", "additive")}
        return replace(self, lengthscales=tuple(ratio * each for each in self.lengthscales), **amplitudes)

    @property
    def theta(self) -> Floats:
        """What is fitted by descent: logarithms of lengthscales, a, b, half-life if it is finite and noise; warps."""
        amplitudes = [self.amplitude, self.additive] if self.additive else [self.amplitude]
        half_life = [self.half_life] if self.half_life < math.inf else []
        return np.append(np.log([*self.lengthscales, *amplitudes, *half_life, self.noise]), self.warps)


def fading(ages: Floats, half_life: float) -> Floats:
    """2^(-age / 2h), the correlation of f with f that many answers ago: its square is 1/2 at the half-life h."""
    return np.asarray(np.exp2(-ages / (2 * half_life)))


def apart(ages: Floats) -> Floats:
    """How many answers lie between each two, (u,) -> (u, u)."""
    return np.asarray(np.abs(ages[:, None] - ages))
