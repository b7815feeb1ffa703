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
    grow. A ``rough_lengthscale`` is longer by d: distances along the axes add up. The additive part is there from
    ``enough`` points on: fewer do not tell it from the other. Where most parameters are choices, it is there from the
    start and expected to be ``additive_names``: a choice has no neighbours from which the joint part could learn. The
    ``half_life`` is fitted where points have an age and nobody knows it. Warps are fitted to parameters of one
    coordinate if the ``start`` has warps; their median is 0.

    The posterior density often has several maxima: at one of them all that varies is noise, with long lengthscales,
    even where repeats agree. So the search starts at the noise that repeats show, and of the medians with lengthscales
    times each of the ``length_starts`` where the density is highest.
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
    length_starts: tuple[float, ...] = (1.0, 0.25)
    warp_spread: float = 2.0
    rough_lengthscale: float = 0.3

    def __call__(self, evidence: Evidence, trust: Floats, start: Fit | None = None, is_rough: bool = False) -> Fit:
        """Fit standardised measurements with trust w, (n,), from ``start`` or else from the likeliest start."""
        dimension = int(evidence.groups.max()) + 1
        is_warped = start is not None and bool(start.warps)
        likelihood = Likelihood(evidence, trust, is_warped, is_rough)
        is_named = _is_mostly_names(evidence)
        parts = 2 if not is_rough and dimension > 1 and (is_named or len(evidence.points) >= self.enough) else 1
        company = evidence.company or (dimension,) * dimension
        amplitudes = [self.amplitude, self.additive_names if is_named else self.additive][:parts]
        centre, spread = (
            self._medians(company, amplitudes, evidence, is_rough),
            self._spreads(dimension, parts, evidence),
        )
        noise = len(centre) - 1  # its place
        if is_warped:
            is_number = np.bincount(evidence.groups) == 1
            centre = np.append(centre, np.zeros(dimension))
            spread = np.append(spread, np.where(is_number, self.warp_spread, KNOWN / 2))

        def loss(theta: Floats) -> tuple[float, Floats]:
            value, gradient = likelihood(theta)
            off = (theta - centre) / spread
            return 0.5 * float(off @ off) - value, off / spread - gradient

        reach = np.where(spread < KNOWN, 0.0, 4 * spread)
        least = centre - reach
        least[noise] = math.log(LEAST_NOISE)
        bounds = Bounds(least, centre + reach)
        first = min(self._starts(centre, likelihood), key=lambda each: loss(each)[0]) if start is None else start.theta
        found = _minimised(loss, first, bounds)
        return likelihood.fit(found.x, 0.5 * float((((found.x - centre) / spread) ** 2).sum()))

    def _starts(self, centre: Floats, likelihood: Likelihood) -> list[Floats]:
        """Medians with the noise that repeats show and with other lengthscales."""
        start = centre.copy()
        start[-1] = likelihood.log_noise_of_repeats(centre[-1])
        is_length = np.arange(len(centre)) < likelihood.dimension
        return [start + math.log(ratio) * is_length for ratio in self.length_starts]

    def _medians(self, company: tuple[int, ...], amplitudes: list[float], evidence: Evidence, is_rough: bool) -> Floats:
        lengthscales = [
            self.rough_lengthscale * each if is_rough else self.lengthscale * each**0.25 for each in company
        ]
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
