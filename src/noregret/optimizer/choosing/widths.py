"""Widths: how far beyond the mean to look, and how far off it may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from noregret.belief.exact import ExactPosterior
from noregret.belief.posterior import Posterior


@dataclass(frozen=True)
class FittedWidth:
    """scale * sqrt(B^2 + 2 (gain + ln(1 / delta))): the AMM width with R^2 = ridge and a norm B from the measurements.

    B^2 is what noise does not explain of the misfit y'(K + D)^-1 y, of which it explains the rounds less the effective
    dimension. So B grows when measurements contradict the fit. Were kernel, noise and B known, ``scale`` 1 would be a
    theorem's; they are not, and 1 explores far more than pays.
    """

    scale: float = 0.25
    delta: float = 0.1

    def __call__(self, posterior: ExactPosterior) -> float:
        noise = posterior.rounds - posterior.effective_dimension
        norm2 = max(0.0, posterior.misfit - noise)
        return self.scale * math.sqrt(norm2 + 2 * (posterior.information_gain + math.log(1 / self.delta)))


@dataclass(frozen=True)
class SimultaneousWidth:
    """sqrt(2 ln(d / delta)), d the effective dimension: d Gaussians all lie so near, with probability 1 - delta.

    What looks best is the luckiest of about d guesses, so its interval must hold for all of them. Heuristic: the
    posterior is taken at its word, and the guesses for independent.
    """

    delta: float = 0.05

    def __call__(self, posterior: Posterior) -> float:
        return math.sqrt(2 * math.log(max(posterior.effective_dimension, 1.0) / self.delta))
