"""Scaling: a centre and a unit for the measurements that a few absurd ones cannot move, and logarithms of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer.measures import LARGEST_VALUE
from noregret.optimizer.model.evidence import ABSURD, LEAST_NOISE, SURPRISING, Evidence

FARTHEST = 1e6
"""No measurement counts as farther from the centre than this many units, so that its square is harmless. By taste."""

FEW_POINTS = 5
"""Fewer points say little about how much f varies. Not measured."""

LARGEST_LOGARITHM = math.log(LARGEST_VALUE)
"""No value is taken for farther from a ceiling than e to this power, which is still a float."""


@dataclass(frozen=True)
class Logarithm:
    """ell = -ln(ceiling - value), for values that come close to a ceiling and do not pass it.

    Within ``knee`` of the ceiling, and beyond it, it is the tangent: -ln knee + (value - ceiling + knee) / knee.
    So every value has a logarithm, and one far beyond the ceiling is as absurd here as it was before. Mean distances to
    the ceiling count as at most e^``correction`` times the median ones: more cannot be estimated.
    """

    ceiling: float
    knee: float
    correction: float

    def distance(self, values: Floats) -> Floats:
        """Distance of values from the ceiling, at least the knee: d value / d ell."""
        return np.asarray(np.maximum(self.ceiling - values, self.knee))

    def __call__(self, values: Floats) -> Floats:
        """The logarithms of values."""
        beyond = np.maximum(values - self.ceiling + self.knee, 0.0)
        return np.asarray(beyond / self.knee - np.log(self.distance(values)))

    def original(self, logarithms: Floats, noise: float = 0.0) -> Floats:
        """The means of values whose logarithms are Gaussian around these with this standard deviation.

        They are ceiling - exp(noise^2 / 2 - logarithm); within the knee as much less than the tangent as there.
        """
        beyond = np.maximum(logarithms + math.log(self.knee), 0.0)
        correction = min(noise**2 / 2, self.correction)
        distances = np.exp(np.minimum(correction - logarithms + beyond, LARGEST_LOGARITHM))
        return np.asarray(self.ceiling + self.knee * beyond - distances)


@dataclass(frozen=True)
class ValueScale:
    """value = centre + unit * number, but for very bad values, which count as less bad than they are.

    Numbers z below -``bend`` are taken for -bend - ln(1 + (-bend - z)): where it is very bad, it does not matter how
    bad, and a kernel that need not follow cliffs there is free to follow what happens near the top. With a
    ``logarithm``, centre and unit are those of the values' logarithms. No value is reported as worse than the
    ``floor``: what few measurements leave open grows like an exponential there, and would be absurd.
    """

    centre: float
    unit: float
    bend: float = math.inf
    logarithm: Logarithm | None = None
    floor: float = -math.inf

    def standard(self, values: Floats) -> Floats:
        """Values in units from the centre, none beyond `FARTHEST`."""
        numbers = self._straight(values)
        beyond = np.maximum(-self.bend - numbers, 0.0)
        return np.asarray(numbers + beyond - np.log1p(beyond))

    def original(self, numbers: Floats, noise: float = 0.0) -> Floats:
        """The values that have these numbers; with a noise, in units, the means of what is measured around them."""
        beyond = np.clip(-self.bend - numbers, 0.0, math.log(FARTHEST))
        straight = np.asarray(self.centre + self.unit * (numbers + beyond - np.expm1(beyond)))
        values = straight if self.logarithm is None else self.logarithm.original(straight, self.unit * noise)
        return np.maximum(values, self.floor)

    def units(self, values: Floats) -> Floats:
        """Size of one unit at each of these values, where nothing is bent."""
        worth = np.ones_like(values) if self.logarithm is None else self.logarithm.distance(values)
        return np.asarray(self.unit * worth)

    def log_slope(self, values: Floats) -> float:
        """Sum of ln(d number / d value) over the values: what makes densities on two scales comparable."""
        beyond = np.maximum(-self.bend - self._straight(values), 0.0)
        return -float((np.log1p(beyond) + np.log(self.units(values))).sum())

    def limited(self, values: Floats) -> Floats:
        """Values with those that are too far away moved to where they count as being; not with a logarithm."""
        return np.clip(values, self.centre - FARTHEST * self.unit, self.centre + FARTHEST * self.unit)

    def standard_noise(self, noise: Floats, values: Floats) -> Floats:
        """Noise of values in units, neither so small nor so large that its square would spoil a matrix."""
        with np.errstate(over="ignore"):
            return np.clip(noise / self.units(values), LEAST_NOISE, FARTHEST)

    def standardised(self, evidence: Evidence) -> Evidence:
        """The evidence in these units."""
        noise = self.standard_noise(evidence.noise, evidence.values)
        return replace(evidence, values=self.standard(evidence.values), noise=noise)

    def _straight(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            values = values if self.logarithm is None else self.logarithm(values)
            return np.clip((values - self.centre) / self.unit, -FARTHEST, FARTHEST)


@dataclass(frozen=True)
class RobustScale:
    """Median of the points' medians, and the spread of their middle four fifths as a Gaussian's standard deviation.

    Heuristic. A tenth of the points may be absurd on either side, or one of four and more. Points, not measurements,
    are counted, since a good point is measured often. Where the middle does not spread, the range of all but absurd
    points counts, or that of all but absurd values, up to the size of the middle; where nothing spreads, the unit is
    that size, or 1. A few points may be close to each other by luck: then the unit is at least the noise.
    """

    bend: float = 2.0
    """No measure is better or worse without it for sure: decision 0189."""

    def __call__(self, evidence: Evidence) -> ValueScale:
        """A scale for these measurements."""
        medians = without_absurd_ends(evidence.medians())
        low, middle, high = np.quantile(medians, [0.1, 0.5, 0.9])
        size, spread = abs(float(middle)), float(high - low) / 2.563
        if not spread:
            spread = float(np.ptp(medians) or np.ptp(without_absurd_ends(evidence.values))) / 2.563
            spread = min(spread, size) if size else spread
        unit = max(spread, _noise(evidence) if len(medians) < FEW_POINTS else 0.0) or size or 1.0
        floor = float(middle - ABSURD * max(middle - medians.min(), unit))
        return ValueScale(float(middle), unit, self.bend, floor=floor)


def _noise(evidence: Evidence) -> float:
    """The standard deviation of measurements around the median of their point, robustly; 0 if none was repeated."""
    repeated = evidence.summed(np.ones(len(evidence)))[evidence.where] > 1
    away = np.abs(evidence.values - evidence.medians()[evidence.where])[repeated]
    return 1.483 * float(np.median(away)) if away.size else 0.0


def without_absurd_ends(numbers: Floats) -> Floats:
    """The (n,) numbers, of four and more the lowest and the highest brought as near to the others as `ABSURD` says.

    >>> without_absurd_ends(np.array([3.0, 1e300, 1.0, 2.0]))
    array([ 3., 13.,  1.,  2.])
    """
    if len(numbers) < 4:
        return numbers
    low, high = np.sort(numbers)[[1, -2]]
    reach = ABSURD * (high - low)
    return np.clip(numbers, low - reach, high + reach)


@dataclass(frozen=True)
class Logarithms:
    """Scales of the logarithms of the distance to a ceiling, each ceiling closer than the last.

    Heuristic. Where all values are negative, as those of positive quantities to be made small, the ceiling is 0: the
    logarithm is that of the quantity itself. If 0 is more than `SURPRISING` units of the plain scale above the best
    value, or below it, the ceilings are ``gaps`` units above the best value. Values more than as many units above the
    centre do not count as the best. There are no logarithms where the noise of a measurement is known: they would have
    to estimate it. What is reported are means; with a ``correction`` of 0, medians.

    If the noise of values y <= c is multiplied by c - y, and so vanishes where y = c is best, it is the same for all
    logarithms. Timings and losses, to be made small, are like that. A ceiling much closer to the best value than 0
    would move it away from all others, and let nothing but itself look promising.
    """

    gaps: tuple[float, ...] = (1.0, 0.1, 0.01, 1e-4, 1e-8)
    """One alone is worse: decision 0192."""
    correction: float = 1.0
    """Not measured."""
    knee: float = 0.5
    """The distance to the ceiling at which the logarithm goes over into its tangent, as a part of the best value's. Not
    measured."""

    def __call__(self, evidence: Evidence, plain: ValueScale) -> Iterator[ValueScale]:
        """The scales, from the mildest on."""
        if not self.gaps or not np.isnan(evidence.noise).all():
            return
        values = plain.limited(evidence.values)
        best = float(values.max(initial=-math.inf, where=plain.standard(values) <= SURPRISING))
        is_natural = values.max() < 0 and -best <= SURPRISING * plain.unit
        for gap in (-best,) if is_natural else plain.unit * np.array(self.gaps):
            if best + gap / 2 > best:
                logarithm = Logarithm(best + float(gap), self.knee * float(gap), self.correction)
                scale = RobustScale()(replace(evidence, values=logarithm(values)))
                yield replace(scale, logarithm=logarithm, floor=plain.floor)
