"""Tenable models: those near the fit that the observations do not refute.

A fit is one of many models that explain the observations about as well. f may be rougher or larger than fitted, and
more of what was measured may be noise. The certificate and safe questions count the worst of these models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from noregret.gp.posterior import Ints
from noregret.optimizer.model.evidence import REFUTED
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.kernel import CENTRE
from noregret.optimizer.model.posterior import Conditioned, ObservationRows, condition, prior_matrix
from noregret.optimizer.space.parameters import ROUNDING
from noregret.optimizer.space.space import Bools

RATIOS = (1.0, 0.5, 0.25, 0.125)
"""Factors on the fitted lengthscales. Decision 0185."""

AMPLITUDES = (1.0, 2.0)
"""Factors on the fitted amplitude, tried with each lengthscale and the fitted noise. Decision 0185."""

NOISES = (1.0, 1.4, 2.0, 4.0, 8.0)
"""Factors on the fitted noise, tried with the fitted lengthscales and amplitude, and on that of noise alone. Decision
0185."""


@dataclass(frozen=True, eq=False)
class Tenable:
    """A model that the observations do not refute, and the process given the observations under it.

    ``fitted`` turns its numbers into values. ``likelihood`` is the log density of all observations, up to a constant
    that all models share.
    """

    fitted: FittedModels
    ratio: float
    amplitude: float
    noise: float
    process: Conditioned
    likelihood: float


@dataclass(frozen=True, eq=False)
class PooledRows:
    """Rows of observations, and the scatter within points that have several.

    ``scatter`` is the sum over all observations of (value - average)^2 / noise variance, and has ``freedom`` degrees of
    freedom. The noise variances are estimates, unless ``is_noise_known``.
    """

    rows: ObservationRows
    scatter: float
    freedom: int
    now: float
    is_noise_known: bool = False
    bounded: Bools | None = None
    """True for the rows that stand for bounds: their noise is not that of values. None if there are none."""

    def only(self, kept: Ints) -> PooledRows:
        """Some of the rows, in this order."""
        bounded = None if self.bounded is None else self.bounded[kept]
        return replace(self, rows=self.rows.only(kept), bounded=bounded)

    def noise_alone(self) -> float:
        """Factor on the noise with which a constant f explains the observations best."""
        _, values, noise, *_ = self.rows if self.bounded is None else self.rows.only(np.flatnonzero(~self.bounded))
        squares = float(((values - np.average(values, weights=1 / noise)) ** 2 / noise).sum()) + self.scatter
        return max(math.sqrt(squares / (len(values) + self.freedom)), 1.0)


def unrefuted(fitted: FittedModels, groups: Ints, pooled: PooledRows) -> list[Tenable]:
    """Models that the observations do not refute; the fitted one too if they refute all that differ from noise.

    The half-life is not doubted.
    """
    rougher = [each for ratio in RATIOS for each in models(fitted, groups, pooled, ratio, product(AMPLITUDES, [1.0]))]
    if pooled.is_noise_known:
        noisier = models(fitted, groups, pooled, 1.0, [(0.0, 1.0)])
    else:
        alone = pooled.noise_alone()
        factors = [(1.0, noise) for noise in NOISES[1:]] + [(0.0, alone * noise) for noise in NOISES]
        noisier = models(fitted, groups, pooled, 1.0, factors)
    least = max(each.likelihood for each in rougher + noisier) - REFUTED
    return ([each for each in rougher if each.likelihood >= least] or rougher[:1]) + [
        each for each in noisier if each.likelihood >= least
    ]


def widest(found: Iterable[Tenable]) -> list[Tenable]:
    """Of models with the same lengthscales and noise that with the largest amplitude: it leaves most open."""
    return list({(each.ratio, each.noise, each.amplitude > 0): each for each in found}.values())


def models(
    fitted: FittedModels, groups: Ints, pooled: PooledRows, ratio: float, factors: Iterable[tuple[float, float]]
) -> list[Tenable]:
    """The fit with one factor on its lengthscales, and with each pair of factors on its amplitude and noise."""
    fit = fitted.fit
    kernel = fit.scaled(ratio).kernel(groups)
    prior, made = prior_matrix(kernel, pooled.rows, fit.half_life), []
    for amplitude, noise in factors:
        factor = noise**2 if pooled.bounded is None else np.where(pooled.bounded, 1.0, noise**2)
        variances = np.maximum(factor * pooled.rows.noise, ROUNDING * (amplitude * fit.size) ** 2)
        rows = pooled.rows._replace(noise=variances)
        process = condition(kernel, rows, fit.half_life, pooled.now, CENTRE**2, amplitude**2, prior)
        likelihood = process.log_density - 0.5 * pooled.scatter / noise**2 - pooled.freedom * math.log(noise)
        made.append(Tenable(fitted, ratio, amplitude, noise, process, likelihood))
    return made
