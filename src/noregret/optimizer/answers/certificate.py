"""Certificate: how far off an estimate may be, how much better another setting may be, and whether that will do.

Two things are doubted. First the fit: everything is computed under each rung of the `ladder` that the measurements do
not refute, and the worst counts. A rung gives joint draws of f, and each draw has a maximum: how far that lies above
the draw at the recommended setting is how much another one may be better (Wilson 2024). Second the model itself, which
knows nothing of a narrow hill where nobody has looked: nothing is promised while more than half of the allowed risk is
the share of the settings that have no measurement near them. Heuristic: f is taken for a draw under one of the rungs,
but for a hill that may be anywhere, each place being as likely as the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import betaincinv

from noregret.belief.drift import VaryingPosterior
from noregret.belief.numerics.linalg import pivoted_root
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints, Rng
from noregret.optimizer.model.hypotheses import MANY_SMALL_STEPS, FittedModels
from noregret.optimizer.answers.ladder import Pooled, Rung, ladder
from noregret.optimizer.questions.candidates import sobol, top
from noregret.optimizer.questions.explore import unexplored_from
from noregret.optimizer.model.condensing import Belief, spread, with_best
from noregret.optimizer.space.space import Bools, Space

LEVEL = 0.95
"""The probability that is stated for intervals and gaps."""

LENGTHS = 2.0
"""A place is unexplored, too, if none is nearer than so many lengthscales of the shortest rung not refuted."""

COVER = 2048
"""Places at which a space with more settings than that is looked at for holes."""

MOST = 300
"""Measured points that a rung is made of at most, since its cost grows with their cube."""

CONTENDERS = 300
"""Settings that are drawn jointly: those with the largest mean + 3 std."""

DRAWS = 1000
"""Draws for a gap."""

ANGLES = 65
"""Pairs of values that are looked at on the ellipse of a difference."""

SIZES = tuple(int(32 * 1.5**step) for step in range(15))
"""Numbers of draws after which a test may be decided: 32, 48, 72, ... 9341."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known after some answers, in the units of a calibration, and what it leaves open.

    Parameters
    ----------
    calibrated : FittedModels
    space : Space
    pooled : Pooled
        The measurements, as averages of (u, d) points.
    means : (u,) floats
        The posterior mean at these points.
    others : (n, d) floats
        Settings that may be better than any measured one.
    seed : SeedSequence
    answers : int
    anchors : (k,) ints, optional
        Which of the measured points are never left out.
    """

    calibrated: FittedModels
    space: Space
    pooled: Pooled
    means: Floats
    others: Floats
    seed: np.random.SeedSequence
    answers: int
    anchors: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @cached_property
    def rungs(self) -> list[Rung]:
        """The models that are not refuted."""
        with threads_for(MANY_SMALL_STEPS):
            return ladder(self.calibrated.fit, np.array(self.space.groups), self.pooled.only(self._telling()))

    @cached_property
    def unexplored(self) -> float:
        """The share of the settings that have no measurement near them, and none within a half-life if f changes."""
        is_small = self.space.count <= COVER
        places = self.space.everything() if is_small else self.space.snap(sobol(COVER, len(self.space.groups), 0))
        if not is_small and self._are_far(places[:64]).all():
            return 1.0  # as in many dimensions, where looking at all of them would take long
        return float(self._are_far(places).mean())

    def _are_far(self, places: Floats) -> Bools:
        """Whether no measurement is near each of (n, d) places, (n,); the more parameters apply, the wider is near."""
        applying, far = self.space.applying(places).sum(axis=1), np.ones(len(places), dtype=bool)
        shortest = min(rung.ratio for rung in self.rungs)
        for parameters in np.unique(applying):
            reach = np.minimum(LENGTHS * shortest * self._lengthscales, unexplored_from(parameters))
            near, there = cKDTree(self._up_to_date / reach), applying == parameters
            far[there] = np.isinf(near.query(places[there] / reach, distance_upper_bound=1.0)[0])
        return far

    def interval(self, points: Floats, width: float) -> tuple[Floats, Floats]:
        """The least mean - width std and the largest mean + width std of all rungs at (n, d) points, two (n,)."""
        mean, std = np.array([rung.predict(points) for rung in self.rungs]).transpose(1, 0, 2)
        ends = (mean - width * std).min(axis=0), (mean + width * std).max(axis=0)
        return self.calibrated.reported(ends[0]), self.calibrated.reported(ends[1])

    def difference(self, points: Floats, width: float) -> tuple[float, float]:
        """How much f may be higher at the first of two points, (2, d), than at the second, at least and at most.

        Under each rung the two values are jointly Gaussian, and all pairs within ``width`` standard deviations of the
        mean count: for a scale without a bend that is the mean of the difference +- width times its std.
        """
        first, second = self._pairs(points, width)
        return float((first - second).min()), float((first - second).max())

    def relative_difference(self, points: Floats, width: float) -> tuple[float, float]:
        """The same as a part of the size at the second point, pair by pair; infinite if that may be 0."""
        first, second = self._pairs(points, width)
        if second.min() <= 0 <= second.max():
            return -math.inf, math.inf
        parts = (first - second) / np.abs(second)
        return float(parts.min()), float(parts.max())

    def _pairs(self, points: Floats, width: float) -> Floats:
        """Values that f may have at two points, (2, n): those on the ellipse of this width under each rung."""
        ellipses = np.hstack([_ellipse(*rung.joint(points), width) for rung in self.rungs])
        return self.calibrated.reported(ellipses)

    def gap(self, point: Floats) -> float:
        """How much better than at a (1, d) point f may be elsewhere, at `LEVEL`; infinite if too much is unexplored."""
        rng, risk = np.random.default_rng(self.seed), (1 - LEVEL) / 2
        if self.unexplored > risk:
            return math.inf
        with threads_for(MANY_SMALL_STEPS):
            excesses = [self._contest(rung, point).excess(DRAWS, rng) for rung in self.rungs]
        return max(float(np.quantile(excess, 1 - risk)) for excess in excesses)

    def is_within(self, point: Floats, tolerance: float, risk: float) -> bool:
        """Whether nothing is better than a (1, d) point by more than this, but for a probability of at most ``risk``.

        Half of the risk is that the best place is unexplored, a quarter is the share of draws in which
        something is better, and a quarter is spent on estimating that share, after every answer some.
        """
        rng = np.random.default_rng(self.seed)

        def is_unlikely(rung: Rung) -> bool:
            exceeding = partial(self._contest(rung, point).exceeding, tolerance, rng)
            return is_rare(exceeding, 0.25 * risk, spent(0.25 * risk, self.answers))

        with threads_for(MANY_SMALL_STEPS):
            explored = self.unexplored <= 0.5 * risk
            return explored and all(is_unlikely(rung) for rung in reversed(self.rungs))  # the likeliest no first

    @property
    def _up_to_date(self) -> Floats:
        """The measured points, but for those of which more than half is out of date."""
        points, ages = self.pooled.points, self.pooled.ages
        return points if ages is None else points[ages <= self.calibrated.fit.half_life]

    @property
    def _lengthscales(self) -> Floats:
        """The fitted lengthscale of each coordinate, (d,)."""
        return np.array([self.calibrated.fit.lengthscales[group] for group in self.space.groups])

    def _telling(self) -> Ints:
        """At most `MOST` of the measured points: half spread over all of them, half where f is highest."""
        points = self.pooled.points
        if len(points) <= MOST:
            return np.arange(len(points))
        kept = with_best(spread(points / self._lengthscales, MOST // 2), self.means, MOST)
        return np.union1d(kept, self.anchors)

    def _contest(self, rung: Rung, point: Floats) -> _Contest:
        """The point and the others that may be the best under a rung."""
        mean, std = rung.predict(self.others)
        best = self.others[top(mean + 3 * std, CONTENDERS)]
        mean, covariance = rung.joint(np.vstack([point, best]))
        return _Contest(self.calibrated, mean, pivoted_root(covariance))


def _ellipse(mean: Floats, covariance: Floats, width: float) -> Floats:
    """Pairs that are ``width`` standard deviations away from the mean, (2, `ANGLES`)."""
    angles, root = np.linspace(0, 2 * np.pi, ANGLES), pivoted_root(covariance)
    circle = np.array([np.cos(angles), np.sin(angles)])[: root.shape[1]]
    return np.asarray(mean[:, None] + width * root @ circle)


@dataclass(frozen=True, eq=False)
class _Contest:
    """The settings that may be the best, the recommended one first: mean (m,), covariance root root'."""

    calibrated: FittedModels
    mean: Floats
    root: Floats

    def excess(self, count: int, rng: Rng) -> Floats:
        """How much better the best setting is than the recommended one in so many joint draws, in values, (count,)."""
        numbers = self.mean[:, None] + self.root @ rng.standard_normal((self.root.shape[1], count))
        return self.calibrated.reported(numbers.max(axis=0)) - self.calibrated.reported(numbers[0])

    def exceeding(self, bound: float, rng: Rng, count: int) -> int:
        """In how many of so many joint draws it is better by more than the bound."""
        return int(np.count_nonzero(self.excess(count, rng) > bound))


def certificate(
    belief: Belief,
    excluded: Ints,
    space: Space,
    calibrated: FittedModels,
    seed: np.random.SeedSequence,
    answers: int,
    anchor: int | None = None,
    is_noise_known: bool = False,
) -> Certificate:
    """What a belief that was made with this calibration leaves open; excluded arms are no alternatives.

    The measurements of the arm ``anchor`` are never left out.
    """
    others, centre = np.delete(belief.arms, excluded, axis=0), calibrated.fit.centre
    if isinstance(belief, VaryingPosterior):
        points, arms, values, noise, _ = belief.seen
        means = belief.predict(points)[0]
        pooled = Pooled(points, centre + values, noise, is_noise_known=is_noise_known, ages=belief.ages)
    else:
        (values, noise), arms = belief.pooled, belief.pulled
        points, means = belief.arms[arms], belief.mean[arms]
        pooled = Pooled(points, centre + values, noise, *belief.scatter, is_noise_known)
    anchors = np.flatnonzero(arms == anchor)
    return Certificate(calibrated, space, pooled, means, others, seed, answers, anchors)


def is_rare(count: Callable[[int], int], share: float, risk: float) -> bool:
    """Whether something happens in at most this share of all cases; yes is wrong with probability at most ``risk``.

    ``count(n)`` is how often it happened in n new cases. The bounds are Clopper and Pearson's, exact for a binomial,
    and the risk is divided evenly among the `SIZES` at which they are looked at. No, if it is undecided after the last.
    """
    each, seen, happened = risk / len(SIZES), 0, 0
    for size in SIZES:
        happened, seen = happened + count(size - seen), size
        if happened < seen and betaincinv(happened + 1, seen - happened, 1 - each) <= share:
            return True
        if happened and betaincinv(happened, seen - happened + 1, each) > share:
            return False
    return False


def spent(risk: float, answers: int) -> float:
    """What of a risk may be spent on the test after so many answers: (0.1 / 1.1) risk answers^-1.1.

    The sum over all numbers of answers is less than the risk, so a test may follow every answer.
    """
    return 0.1 / 1.1 * risk / math.pow(answers, 1.1)
