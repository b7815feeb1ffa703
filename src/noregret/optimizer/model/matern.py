"""FitMatern: the fit by maximum of the posterior density of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize

from noregret.belief.posterior import Floats
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.model.likelihood import LEAST_NOISE, Likelihood

KNOWN = 1e-6
"""A number whose logarithm has a smaller spread than this is known, and is not fitted."""


@dataclass(frozen=True)
class FitMatern:
    """The most probable fit that L-BFGS finds, under priors that are habits and not knowledge.

    Medians and spreads (standard deviations of the logarithm) of what is fitted. ``lengthscale`` is the one in one
    dimension; with d parameters that apply together it is longer by d^(1/4), half way to how distances in the cube
    grow. The additive part is there from ``enough`` points on: fewer do not tell it from the other. Where most
    parameters are choices, it is there from the start and expected to be ``additive_names``: a choice has no neighbours
    from which the joint part could learn. The ``half_life`` is fitted where points have an age and nobody knows it.

    Where f has many hills, there is often another maximum at which they all count as noise, with long lengthscales. So
    from ``enough`` points on the search starts from the medians with lengthscales times each of the ``starts``, and the
    most probable end is taken.
    """

    lengthscale: float = 0.3
    lengthscale_spread: float = 1.0
    amplitude: float = 1.0
    amplitude_spread: float = 1.0
    additive: float = 0.4
    additive_names: float = 1.0
    enough: int = 50
    noise: float = 0.3
    noise_spread: float = 1.5
    half_life: float = 50.0
    half_life_spread: float = 0.7
    starts: tuple[float, ...] = (1.0, 0.25)

    def __call__(self, evidence: Evidence, trust: Floats, start: Fit | None = None) -> Fit:
        """Fit standardised measurements with trust w, (n,), from ``start`` or, without one, from ``starts``."""
        dimension = int(evidence.groups.max()) + 1
        likelihood = Likelihood(evidence, trust)
        is_named = _is_mostly_names(evidence)
        parts = 2 if dimension > 1 and (is_named or len(evidence.points) >= self.enough) else 1
        company = evidence.company or (dimension,) * dimension
        amplitudes = [self.amplitude, self.additive_names if is_named else self.additive][:parts]
        centre, spread = self._medians(company, amplitudes, evidence), self._spreads(dimension, parts, evidence)

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = likelihood(theta)
            off = (theta - centre) / spread
            return 0.5 * float(off @ off) - value, off / spread - gradient

        reach = np.where(spread < KNOWN, 0.0, 4 * spread)
        bounds = Bounds(np.append((centre - reach)[:-1], math.log(LEAST_NOISE)), centre + reach)
        firsts = self._firsts(centre, dimension, len(evidence.points)) if start is None else [start.theta]
        found = min((_minimised(loss, first, bounds) for first in firsts), key=lambda end: float(end.fun))
        return likelihood.fit(found.x, 0.5 * float((((found.x - centre) / spread) ** 2).sum()))

    def _firsts(self, centre: Floats, dimension: int, points: int) -> list[Floats]:
        """Where the search starts."""
        is_length = np.arange(len(centre)) < dimension
        return [centre + math.log(ratio) * is_length for ratio in self.starts[: None if points >= self.enough else 1]]

    def _medians(self, company: tuple[int, ...], amplitudes: list[float], evidence: Evidence) -> Floats:
        lengthscales = [self.lengthscale * together**0.25 for together in company]
        half_life = [] if evidence.ages is None else [evidence.half_life or self.half_life]
        return np.log([*lengthscales, *amplitudes, *half_life, self.noise])

    def _spreads(self, dimension: int, parts: int, evidence: Evidence) -> Floats:
        amplitudes, known = [self.amplitude_spread] * parts, KNOWN / 2 if evidence.half_life else self.half_life_spread
        half_life = [] if evidence.ages is None else [known]
        return np.array([self.lengthscale_spread] * dimension + amplitudes + half_life + [self.noise_spread])


def _minimised(loss: Callable[[Floats], tuple[float, Floats]], first: Floats, bounds: Bounds) -> OptimizeResult:
    """Where a descent from there ends."""
    return minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50, "ftol": 3e-4})


def _is_mostly_names(evidence: Evidence) -> bool:
    """Whether most parameters are choices: each coordinate has two values, or a third where it does not apply."""
    few = np.count_nonzero(np.diff(np.sort(evidence.points, axis=0), axis=0), axis=0) < 3
    named = np.bincount(evidence.groups, few) == np.bincount(evidence.groups)
    return bool(2 * np.count_nonzero(named) > named.size)
