"""Certificate: how far off an estimate may be, how much better another setting may be, and whether that will do.

Two things are doubted. First the fit: it is one of many models that explain the observations about as well, so
everything is computed under each alternative that is not refuted, and the worst counts. f may be rougher or larger than
fitted, and more of what was measured may be noise; the second matters most while few settings have been repeated, when
only the priors separate noise from signal. A model gives joint draws of f, and each draw has a maximum: how far that
lies above the draw at the recommended setting is how much another one may be better (Wilson 2024). Second the model
itself, which knows nothing of a narrow hill in an unexplored region: nothing is promised while more than half of the
allowed risk is the share of the settings that have no measurement near them. Heuristic: f is a draw under one of the
models, but for a hill that may be anywhere, each place being as likely as the others.

`Certificate.remaining` has no doubt of the second kind, and more of the first. It says up to which width of a hill it
speaks: `Certificate.narrowest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.kernels import Matern
from noregret.gp.linalg import pivoted_root
from noregret.gp.posterior import Floats, Ints, Rng
from noregret.gp.seeds import child
from noregret.optimizer.model.candidates import around, spread_out, top, unexplored_from
from noregret.optimizer.model.constraints import IGNORE
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.evidence import LEVEL, MOST_FITTED
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.learning import spread, with_best
from noregret.optimizer.model.tenable import PooledRows, Tenable, models, unrefuted, widest
from noregret.optimizer.space.parameters import ROUNDING
from noregret.optimizer.space.space import Bools, Space

WIDTH = 2.5
"""Standard deviations on both sides of the mean of a gain, under every model that is not refuted.

It is more than the 2 that a Gaussian would need for 95%, since what is recommended was chosen for looking good:
decision 0134.
"""

LENGTHS = 2.0
"""Lengthscales, of the shortest model not refuted, beyond which a place is unexplored. Decision 0238."""

AVERAGED = 256
"""Settings all over the space that averages over it are taken of: for changes and importance. Not measured; a power of
two, as Sobol points need."""

COVER = 2048
"""Places at which a space with more settings than that is looked at for holes. Decision 0238; a power of two, as Sobol
points need."""

REACH = 3.0
"""Standard deviations above its mean at which a setting may still be the best one, or on a front. A Gaussian is beyond
them once in 700 times."""

CONTENDERS = 500
"""Settings that are drawn jointly at most: those with the largest mean + `REACH` std. With 300, what remains is up to a
tenth lower."""

DRAWS = 1000
"""Draws of each model for a gap, and for what remains to be gained. A tail of 2.5% has 25 of them: decision 0238."""

SAME_PLACE = 0.05
"""Points that are closer than this times the root of the number of coordinates count as one place, where it is asked
how rough f may be: trials gather around the best setting, and say nothing about how rough f is elsewhere. Decision
0238."""

CLOUD, RADII = 256, (0.3, 0.1, 0.03)
"""Settings around those that are the best in some draws, four for each draw, and how far away, in lengthscales."""

ANGLES = 65
"""Pairs of values that are looked at on the ellipse of a difference. With 64 arcs an end is off by 0.12% of the width
at most."""

SIZES = tuple(int(32 * 1.5**step) for step in range(15))
"""Numbers of draws after which a test may be decided: 32, 48, 72, ... 9341. Half as many again each time; not
measured."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """Errors and improvements that the observations do not rule out, in the units of the fitted models.

    Parameters
    ----------
    calibrated : FittedModels
    space : Space
    pooled : PooledRows
        The measurements, as averages of (u, d) points.
    means : (u,) floats
        The posterior mean at these points.
    others : (n, d) floats
        Settings that may be better than any measured one.
    seed : SeedSequence
    answers : int
    anchors : (k,) ints
        Which of the measured points are never left out.
    is_free : bool
        True if the space has settings that are not among the others, and all of them may be chosen.
    """

    calibrated: FittedModels
    space: Space
    pooled: PooledRows
    means: Floats
    others: Floats
    seed: np.random.SeedSequence
    answers: int
    anchors: Ints
    is_free: bool

    @cached_property
    def tenable(self) -> list[Tenable]:
        """The models under which the worst is stated: of those that differ in amplitude alone, the largest."""
        return widest(self._unrefuted)

    @cached_property
    def _unrefuted(self) -> list[Tenable]:
        """The models of the best hypothesis that are not refuted."""
        return unrefuted(self.calibrated, self._groups, self.pooled.only(self._telling()))

    @property
    def may_be_noise(self) -> bool:
        """True if the observations do not refute that f is constant."""
        return any(model.amplitude == 0 for model in self._unrefuted)

    @property
    def averaged(self) -> list[tuple[float, Tenable]]:
        """Models that are not refuted, without noise alone, each with its share of their likelihood."""
        varying = [model for model in self._unrefuted if model.amplitude > 0]
        weights = np.exp(np.array([model.likelihood for model in varying]) - max(model.likelihood for model in varying))
        return list(zip((weights / weights.sum()).tolist(), varying, strict=True))

    @cached_property
    def doubtful(self) -> list[Tenable]:
        """The models under which the worst is stated for `remaining`, the roughest last.

        They have the fitted amplitude. Rougher ones are not refuted by what was measured at places apart from each
        other; those with more noise by no observations.
        """
        pooled = self.pooled.only(self._telling())
        rougher = unrefuted(self.calibrated, self._groups, pooled.only(apart(pooled.rows.points)))
        factors = {(model.ratio, 1.0) for model in rougher if model.amplitude == model.noise == 1.0}
        factors |= {(1.0, model.noise) for model in self._unrefuted if model.amplitude == 1.0 and model.noise > 1.0}
        return [
            models(self.calibrated, self._groups, pooled, ratio, [(1.0, noise)])[0]
            for ratio, noise in sorted(factors or {(1.0, 1.0)}, reverse=True)
        ]

    @property
    def _groups(self) -> Ints:
        return np.array(self.space.groups)

    @property
    def narrowest(self) -> float:
        """Width at half height of the narrowest hill that `remaining` speaks of, as a part of each range.

        It is that of the kernel of the roughest model, the geometric mean over the parameters.
        """
        shortest = min(model.ratio for model in self.doubtful)
        widths = np.minimum(2 * half_height() * shortest * np.array(self.calibrated.fit.lengthscales), 1.0)
        return float(np.exp(np.log(widths).mean()))

    @cached_property
    def unexplored(self) -> float:
        """The share of the settings that have no measurement near them, and none within a half-life if f changes."""
        is_small = self.space.count <= COVER
        places = self.space.everything() if is_small else spread_out(self.space, COVER, 0)
        if not is_small and self._are_far(places[:64]).all():
            return 1.0  # as in many dimensions, where looking at all of them would take long
        return float(self._are_far(places).mean())

    def _are_far(self, places: Floats) -> Bools:
        """Mask of the (n, d) places with no measurement near them, (n,); near is wider where more parameters apply."""
        points, times = self.pooled.rows.points, self.pooled.rows.times
        if times is not None:  # what is more than half out of date does not count
            points = points[self.pooled.now - times <= self.calibrated.fit.half_life]
        applying, far = self.space.applying(places).sum(axis=1), np.ones(len(places), dtype=bool)
        shortest = min(model.ratio for model in self.tenable)
        for parameters in np.unique(applying):
            reach = np.minimum(LENGTHS * shortest * self._lengthscales, unexplored_from(parameters))
            near, there = sp.cKDTree(points / reach), applying == parameters
            far[there] = np.isinf(near.query(places[there] / reach, distance_upper_bound=1.0)[0])
        return far

    def interval(self, points: Floats, width: float) -> tuple[Floats, Floats]:
        """The least mean - width std and the largest mean + width std under all of them at (n, d) points, two (n,)."""
        ends = []
        for model in self.tenable:
            mean, std = model.process.predict(points)
            ends.append([model.fitted.reported(mean - width * std), model.fitted.reported(mean + width * std)])
        lower, upper = np.array(ends).transpose(1, 0, 2)
        return lower.min(axis=0), upper.max(axis=0)

    def difference(self, points: Floats, width: float) -> tuple[float, float]:
        """Least and largest difference of f between the first and the second of two points, (2, d).

        Under each model the two values are jointly Gaussian, and all pairs within ``width`` standard deviations of the
        mean count: for a scale without a bend that is the mean of the difference +- width times its std.
        """
        first, second = self._pairs(points, width)
        apart = first - second
        apart[np.abs(apart) < ROUNDING * np.abs(first)] = 0.0
        return float(apart.min()), float(apart.max())

    def differences(self, point: Floats, others: Floats, width: float) -> list[tuple[float, float]]:
        """`difference` between a (1, d) point and each of (n, d) others."""
        intervals = []
        joint = [(model.fitted, *model.process.joint(np.vstack([point, others]))) for model in self.tenable]
        for other in range(1, len(others) + 1):
            pair = np.array([0, other])
            ends = [
                np.subtract(*fitted.reported(_ellipse(mean[pair], covariance[np.ix_(pair, pair)], width)))
                for fitted, mean, covariance in joint
            ]
            intervals.append((float(np.min(ends)), float(np.max(ends))))
        return intervals

    def relative_difference(self, points: Floats, width: float) -> tuple[float, float]:
        """`difference` as a part of the size at the second point, pair by pair; infinite if that may be 0."""
        first, second = self._pairs(points, width)
        if second.min() <= 0 <= second.max():
            return -math.inf, math.inf
        parts = (first - second) / np.abs(second)
        parts[np.abs(parts) < ROUNDING] = 0.0
        return float(parts.min()), float(parts.max())

    def _pairs(self, points: Floats, width: float) -> Floats:
        """Values that f may have at two points, (2, n): those on the ellipse of this width under each model."""
        joint = [(model.fitted, _ellipse(*model.process.joint(points), width)) for model in self.tenable]
        return np.hstack([fitted.reported(ellipse) for fitted, ellipse in joint])

    def gap(self, point: Floats) -> float:
        """Possible improvement on a (1, d) point elsewhere, at `LEVEL`; infinite if too much is unexplored."""
        rng, risk = np.random.default_rng(self.seed), (1 - LEVEL) / 2
        if self.unexplored > risk:
            return math.inf
        excesses = [self._contest(model, point).excess(DRAWS, rng) for model in self.tenable]
        return max(float(np.quantile(excess, 1 - risk)) for excess in excesses)

    def is_within(self, point: Floats, tolerance: float, risk: float) -> bool:
        """Return True if nothing is better than a (1, d) point by more than this, with probability 1 - ``risk``.

        Half of the risk is that the best place is unexplored, a quarter is the share of draws in which
        something is better, and a quarter is spent on estimating that share, after every answer some.
        """
        rng = np.random.default_rng(self.seed)

        def is_unlikely(model: Tenable) -> bool:
            exceeding = partial(self._contest(model, point).exceeding, tolerance, rng)
            return clopper_pearson_test(exceeding, 0.25 * risk, alpha_spending(0.25 * risk, self.answers))

        explored = self.unexplored <= 0.5 * risk
        return explored and all(is_unlikely(model) for model in reversed(self.tenable))  # the likeliest no first

    def remaining(self, point: Floats, level: float) -> float:
        """Improvement on a (1, d) point elsewhere that is not exceeded with this probability, under the worst model.

        The draws take half of the risk: the other half is left for what no model knows, such as narrower hills.

        Infinite while noise alone may explain the observations: the size of f is unknown then, and a fit that takes all
        of it for noise would leave nothing to gain.
        """
        if self.may_be_noise:
            return math.inf
        return max(float(np.quantile(excess, (1 + level) / 2)) for excess in self.excesses(point))

    def is_likely_within(self, point: Floats, tolerance: float, risk: float) -> bool:
        """Return True if `remaining` at the level 1 - ``risk`` is within the tolerance; False as soon as it is not."""
        if self.may_be_noise or risk < 2 / DRAWS:  # too rare for this number of draws
            return False
        return all(np.mean(excess > tolerance) <= risk / 2 for excess in self.excesses(point))

    def excesses(self, point: Floats) -> Iterator[Floats]:
        """By how much the best setting is better in each of `DRAWS` draws of f, under each model, roughest first."""
        for place, model in enumerate(reversed(self.doubtful)):
            rng = np.random.default_rng(child(self.seed, place))
            yield self._contest_everywhere(model, point, rng).excess(DRAWS, rng)

    @cached_property
    def _cover(self) -> Floats:
        """Settings all over the space that may be better than any measured one, (n, d)."""
        if not self.is_free:
            return self.others
        return np.vstack([self.others, spread_out(self.space, COVER, 0)])

    def _contest_everywhere(self, model: Tenable, point: Floats, rng: Rng) -> Contest:
        """The point, others that may be the best, and settings around those that are the best in some draws of f."""
        mean, std = model.process.predict(self._cover)
        best = self._cover[top(mean + REACH * std, CONTENDERS)]
        first = contest(model, np.vstack([point, best]))
        if not self.is_free:
            return first
        tops = np.vstack([point, best])[np.unique(first.draws(CLOUD // 4, rng).argmax(axis=0))]
        radii = model.ratio * self._lengthscales * rng.choice(RADII, size=(CLOUD, 1))
        near = self.space.snap(around(tops, CLOUD, radii, np.array(self.space.groups), rng))
        return contest(model, np.vstack([point, best, near]))

    @property
    def _lengthscales(self) -> Floats:
        """The fitted lengthscale of each coordinate, (d,)."""
        return np.array([self.calibrated.fit.lengthscales[group] for group in self.space.groups])

    def _telling(self) -> Ints:
        """At most `MOST_FITTED` of the measured points: half spread over all of them, half where f is highest."""
        points = self.pooled.rows.points
        if len(points) <= MOST_FITTED:
            return np.arange(len(points))
        kept = with_best(spread(points / self._lengthscales, MOST_FITTED // 2), self.means, MOST_FITTED)
        return np.union1d(kept, self.anchors)

    def _contest(self, model: Tenable, point: Floats) -> Contest:
        """The point and the others that may be the best under a model."""
        mean, std = model.process.predict(self.others)
        return contest(model, np.vstack([point, self.others[top(mean + REACH * std, CONTENDERS)]]))


def apart(points: Floats) -> Ints:
    """Indices of (n, d) points, in order, each of them `SAME_PLACE` from all before it."""
    kept, reach = np.empty(0, dtype=np.intp), SAME_PLACE * math.sqrt(points.shape[1])
    for index, point in enumerate(points):
        if ((points[kept] - point) ** 2).sum(axis=1).min(initial=math.inf) >= reach**2:
            kept = np.append(kept, index)
    return kept


def _ellipse(mean: Floats, covariance: Floats, width: float) -> Floats:
    """Pairs that are ``width`` standard deviations away from the mean, (2, `ANGLES`)."""
    angles, root = np.linspace(0, 2 * np.pi, ANGLES), pivoted_root(covariance)
    circle = np.array([np.cos(angles), np.sin(angles)])[: root.shape[1]]
    return np.asarray(mean[:, None] + width * root @ circle)


@dataclass(frozen=True, eq=False)
class Contest:
    """The settings that may be the best, the recommended one first: mean (m,), covariance root root'."""

    fitted: FittedModels
    mean: Floats
    root: Floats

    def draws(self, count: int, rng: Rng) -> Floats:
        """Joint draws, (m, count)."""
        deviations = self.root @ rng.standard_normal((self.root.shape[1], count))
        return np.asarray(self.mean[:, None] + deviations)

    def excess(self, count: int, rng: Rng) -> Floats:
        """Improvement of the best setting on the recommended one in ``count`` joint draws, in values, (count,)."""
        numbers = self.draws(count, rng)
        return self.fitted.reported(numbers.max(axis=0)) - self.fitted.reported(numbers[0])

    def exceeding(self, bound: float, rng: Rng, count: int) -> int:
        """Number of ``count`` joint draws in which it is better by more than the bound."""
        return int(np.count_nonzero(self.excess(count, rng) > bound))


def contest(model: Tenable, points: Floats) -> Contest:
    """Contest of (m, d) points under a model."""
    mean, covariance = model.process.joint(points)
    return Contest(model.fitted, mean, pivoted_root(covariance))


def certificate(state: Snapshot, seed: np.random.SeedSequence) -> Certificate:
    """Certificate of a snapshot. Settings that are hopeless or hardly feasible are no alternatives."""
    history, belief, centre = state.history, state.belief, state.models.fit.centre
    is_other = state.in_context & ~np.isin(state.numbers, history.hopeless)
    is_other &= state.log_feasible >= math.log(IGNORE)
    rows = belief.rows._replace(values=belief.rows.values + centre)
    learnt, now = state.learnt, belief.full.now
    only_bounded = history.only_bounded
    bounded = np.isin(state.numbers[belief.row_arms], only_bounded) if only_bounded.size else None
    pooled = PooledRows(rows, learnt.scatter, learnt.freedom, now, history.column.is_noise_known, bounded)
    baseline = state.baseline_arm() if history.baseline_points else None
    anchors = np.flatnonzero(belief.row_arms == baseline) if baseline is not None else np.empty(0, dtype=np.intp)
    means, answers = belief.mean[belief.row_arms], len(history)
    is_free = not state.margins and state.space.count > len(belief.arms)
    return Certificate(state.models, state.space, pooled, means, belief.arms[is_other], seed, answers, anchors, is_free)


@cache
def half_height() -> float:
    """Distance in lengthscales at which a Matern 5/2 hill is half as high as its top: about 1.04.

    >>> round(half_height(), 2)
    1.04
    """
    hill, top = Matern(2.5, 1.0), np.zeros((1, 1))
    return float(sp.brentq(lambda distance: float(hill(top, top + distance)[0, 0]) - 0.5, 0, 2))


def clopper_pearson_test(count: Callable[[int], int], share: float, risk: float) -> bool:
    """Return True if something happens in at most this share of all cases, wrongly with probability ``risk`` at most.

    ``count(n)`` is how often it happened in n new cases. The bounds are Clopper and Pearson's, exact for a binomial,
    and the risk is divided evenly among the `SIZES` at which they are looked at. No, if it is undecided after the last.
    """
    each, seen, happened = risk / len(SIZES), 0, 0
    for size in SIZES:
        happened, seen = happened + count(size - seen), size
        if happened < seen and sp.betaincinv(happened + 1, seen - happened, 1 - each) <= share:
            return True
        if happened and sp.betaincinv(happened, seen - happened + 1, each) > share:
            return False
    return False


def alpha_spending(risk: float, answers: int) -> float:
    """Part of a risk that is spent on the test after this many answers: (0.1 / 1.1) risk answers^-1.1.

    The sum over all numbers of answers is less than the risk, so a test may follow every answer.
    """
    return 0.1 / 1.1 * risk / math.pow(answers, 1.1)
