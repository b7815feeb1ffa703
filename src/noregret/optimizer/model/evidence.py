"""Evidence: observations at points, in the form that models are fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from noregret.gp.posterior import Floats, Ints

LEVEL = 0.95
"""Probability of all that is stated, and of all that is taken for sure: 95%, by convention."""

CAUTION = 2.0
"""Standard deviations from a mean to a cautious guess, or to a hopeful one: a Gaussian is within them with 95%. From 0
to 4 it makes no difference to recommendations: decision 0041."""

REFUTED = 6.0
"""Nats, odds of 400 to 1, by which a model explains less than another one if it is refuted: decision 0185."""

UNLIKELY = 3.0
"""Nats, odds of 20 to 1, against a scale or a noise that is not the plain one: by taste, half of `REFUTED` (0192)."""

FEWEST_OBSERVATIONS = 3
"""Observations of one thing that say something about it, its noise or that it fails: two may agree by accident."""

MOST_FITTED = 250
"""Points that are fitted to, and that a fit is doubted with, at most: the cost grows with their cube (0080)."""

LEAST_NOISE = 1e-3
"""Noise is never taken for less than this part of the amplitude, nor of the unit: matrices of `MOST_FITTED` points, and
squares of it, stay well-conditioned."""

ABSURD = 10.0
"""Numbers this many times as far away as is usual, in units or ranges of the others, are absurd: by taste."""

SURPRISING = 5.0
"""Standard deviations from a prediction, or robust units from the middle, beyond which Gaussian noise is out of the
question: once in 2 million times. Decision 0192."""

AGREEING = 4
"""Settings whose repeats are all equal from which on there is no noise, or repeats of the best one: by accident two
trainings of five agree in a fifth of the cases, four times in one of 600, about the 6 nats that refute a model.
Decision 0239."""


@dataclass(frozen=True)
class Evidence:
    """n measurements at u distinct points, larger being better.

    Parameters
    ----------
    points : (u, d) floats
        The distinct points, in the unit cube.
    where : (n,) ints
        The point of each measurement.
    values : (n,) floats
    noise : (n,) floats
        Standard deviation of each measurement, nan where it is unknown.
    groups : (d,) ints
        The lengthscale that each coordinate has; coordinates of one parameter share theirs.
    active_together : tuple of ints, optional
        Number of parameters that may apply together with each, itself included; None for all.
    when : (n,) ints, optional
        How many answers had come before each measurement.
    ages : (u,) floats, optional
        How many answers ago each point was measured, if what was measured goes out of date: then it was measured once.
    origin : (u,) ints, optional
        Where measurements that have ages came from: which of the points, when several could be of one.
    half_life : float, optional
        Age at which half of an observation is out of date, if it is known.
    bounds : (n,) ints, optional
        1 where the measurement is at least the value, -1 where it is at most the value, and 0 where it is the value;
        None if all are values. See `censoring`.
    blocks : (u, k) ints, optional
        Level of each of k factors that the measurements of a point share, -1 for none: then a point that was measured
        at other levels is another of the points.
    """

    points: Floats
    where: Ints
    values: Floats
    noise: Floats
    groups: Ints
    active_together: tuple[int, ...] | None = None
    when: Ints | None = None
    ages: Floats | None = None
    origin: Ints | None = None
    half_life: float | None = None
    bounds: Ints | None = None
    blocks: Ints | None = None

    def __len__(self) -> int:
        return len(self.values)

    def only(self, kept: Ints) -> Evidence:
        """The measurements of these points alone, in the order that they have."""
        rank = np.full(len(self.points), -1)
        rank[kept] = np.arange(kept.size)
        chosen = self._chosen(np.flatnonzero(rank[self.where] >= 0))
        blocks = None if self.blocks is None else self.blocks[kept]
        return replace(chosen, points=self.points[kept], where=rank[chosen.where], blocks=blocks)

    def chosen(self, measurements: Ints) -> Evidence:
        """These measurements alone, in order, and the points that they are of."""
        points = np.unique(self.where[measurements])
        return self._chosen(measurements).only(points)

    def aged(self, measurements: Ints, now: int, half_life: float | None = None) -> Evidence:
        """These measurements alone, each a point of its own, which has the age that it has after ``now`` answers."""
        chosen = self._chosen(measurements)
        assert chosen.when is not None
        ages = np.maximum(now - 1.0 - chosen.when, 0.0)
        return replace(chosen.apart(), ages=ages, origin=chosen.where, half_life=half_life)

    def apart(self) -> Evidence:
        """The same measurements, each a point of its own."""
        blocks = None if self.blocks is None else self.blocks[self.where]
        return replace(self, points=self.points[self.where], where=np.arange(len(self)), blocks=blocks)

    def _chosen(self, measurements: Ints) -> Evidence:
        """These measurements alone, all points being left as they are."""
        when = None if self.when is None else self.when[measurements]
        where, values, noise = self.where[measurements], self.values[measurements], self.noise[measurements]
        bounds = None if self.bounds is None else self.bounds[measurements]
        return replace(self, where=where, values=values, noise=noise, when=when, bounds=bounds)

    @property
    def factors(self) -> Ints:
        """Factors of blocks whose offsets can be learnt."""
        return np.empty(0, dtype=np.intp) if self.blocks is None else learnable(self.blocks)

    @property
    def exact(self) -> Evidence:
        """The measurements whose value is known, and the points that they are of."""
        if self.bounds is None:
            return self
        known = np.flatnonzero(self.bounds == 0)
        points, exact = np.unique(self.where[known]), replace(self.chosen(known), bounds=None)
        if self.ages is None or self.origin is None:
            return exact
        return replace(exact, ages=self.ages[points], origin=self.origin[points])

    def variance(self, default: float) -> Floats:
        """Noise variance of each measurement, (n,), ``default`` where it is unknown."""
        return np.where(np.isnan(self.noise), default, self.noise**2)

    def pooled(self, precision: Floats) -> tuple[Floats, Floats]:
        """Weighted average and total precision of the measurements of each point, two (u,)."""
        total = self.summed(precision)
        return self.summed(precision * self.values) / total, total

    def summed(self, numbers: Floats) -> Floats:
        """Sum of a number per measurement over the measurements of each point, (n,) -> (u,)."""
        return np.asarray(np.bincount(self.where, numbers, len(self.points)), dtype=float)

    def medians(self) -> Floats:
        """Median measurement of each point, (u,)."""
        order = np.lexsort((self.values, self.where))
        counts = np.bincount(self.where, minlength=len(self.points))
        start = np.cumsum(counts) - counts
        ranked = self.values[order]
        return np.asarray(0.5 * (ranked[start + (counts - 1) // 2] + ranked[start + counts // 2]))

    def agreement(self) -> int:
        """Degrees of freedom of repeats that agree to the last digit, which say nothing about the noise elsewhere.

        One setting whose repeats are equal may have no noise of its own, such as a model that always fails to learn, or
        its values may be rounded. Only if several settings agree (`AGREEING`) and none disagrees, there is no noise;
        or if this number of repeats of the best one do.
        """
        unknown = np.isnan(self.noise)
        if self.ages is not None or self.bounds is not None or not unknown.any():
            return 0
        where, values = self.where[unknown], self.values[unknown]
        counts = np.bincount(where, minlength=len(self.points))
        lowest, highest = np.full(len(self.points), np.inf), np.full(len(self.points), -np.inf)
        np.minimum.at(lowest, where, values)
        np.maximum.at(highest, where, values)
        agreeing = (counts > 1) & (lowest == highest)
        disagrees = bool(((counts > 1) & ~agreeing).any())
        best = int(np.argmax(highest))
        is_seen = np.count_nonzero(agreeing) >= AGREEING or (agreeing[best] and counts[best] > AGREEING)
        return 0 if is_seen and not disagrees else int((counts[agreeing] - 1).sum())

    def second_best(self) -> float:
        """The best measurement below the best one, of all points but the one that has it; the best if there is none."""
        best = self.values.max()
        others = (self.where != self.where[np.argmax(self.values)]) & (self.values < best)
        return float(self.values[others].max() if others.any() else best)


def learnable(levels: Ints) -> Ints:
    """Those of k factors that have several levels in n rows, (n, k), and one of them more than once.

    >>> learnable(np.array([[0, 2, 3], [0, 1, 4], [0, 1, 5]]))
    array([1])
    """
    each = ((np.unique(known).size, known.size) for known in (column[column >= 0] for column in levels.T))
    return np.flatnonzero([1 < count < size for count, size in each])


def recent(count: int, newest: int, older: int) -> Ints:
    """Indices of the newest of ``count`` observations, and of some of the older ones, evenly spread, in order.

    >>> recent(10, 3, 2)
    array([0, 6, 7, 8, 9])
    """
    split = max(count - newest, 0)
    spread = np.linspace(0, split - 1, min(older, split)).astype(np.intp)
    return np.concatenate([spread, np.arange(split, count)])


def subset(evidence: Evidence, most: int) -> Evidence:
    """At most ``most`` of the points, evenly spread over the order in which they were met."""
    size = len(evidence.points)
    return evidence if size <= most else evidence.only(np.unique(recent(size, 0, most)))
