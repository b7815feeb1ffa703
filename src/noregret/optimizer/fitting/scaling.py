"""Scaling: a centre and a unit for the measurements that a few absurd ones cannot move."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from noregret.belief.posterior import Floats
from noregret.optimizer.fitting.evidence import Evidence

FARTHEST = 1e6
"""No measurement counts as farther from the centre than this many units, so that its square is harmless."""

SHARPEST = 1e3
"""No measurement counts as sharper than to one part in so many of a unit."""


@dataclass(frozen=True)
class Scale:
    """value = centre + unit * number, but for very bad values, which count as less bad than they are.

    Numbers z below -``bend`` are taken for -bend - ln(1 + (-bend - z)): where it is very bad, it does not matter how
    bad, and a kernel that need not follow cliffs there is free to follow what happens near the top.
    """

    centre: float
    unit: float
    bend: float = math.inf

    def standard(self, values: Floats) -> Floats:
        """Values in units from the centre, none beyond `FARTHEST`."""
        with np.errstate(over="ignore"):
            numbers = np.clip((values - self.centre) / self.unit, -FARTHEST, FARTHEST)
        beyond = np.maximum(-self.bend - numbers, 0.0)
        return np.asarray(numbers + beyond - np.log1p(beyond))

    def original(self, numbers: Floats) -> Floats:
        """The values that have these numbers."""
        beyond = np.clip(-self.bend - numbers, 0.0, math.log(FARTHEST))
        return np.asarray(self.centre + self.unit * (numbers + beyond - np.expm1(beyond)))

    def standard_noise(self, noise: Floats) -> Floats:
        """Noise in units, neither so small nor so large that its square would spoil a matrix."""
        with np.errstate(over="ignore"):
            return np.clip(noise / self.unit, 1 / SHARPEST, FARTHEST)

    def standardised(self, evidence: Evidence) -> Evidence:
        """The evidence in these units."""
        return replace(evidence, values=self.standard(evidence.values), noise=self.standard_noise(evidence.noise))


@dataclass(frozen=True)
class RobustScale:
    """Median of the points' medians, and the spread of their middle four fifths as a Gaussian's standard deviation.

    Heuristic. A tenth of the points may be absurd on either side. Points, not measurements, are counted, since a good
    point is measured often. Where the middle does not spread, everything does; where nothing does, the unit is 1.
    """

    bend: float = 2.0

    def __call__(self, evidence: Evidence) -> Scale:
        """A scale for these measurements."""
        medians = evidence.medians()
        low, middle, high = np.quantile(medians, [0.1, 0.5, 0.9])
        spread = float(high - low or np.ptp(medians) or np.ptp(evidence.values))
        return Scale(float(middle), spread / 2.563 or 1.0, self.bend)
