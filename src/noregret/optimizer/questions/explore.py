"""Explore: the safe bases of the balance, which look where the fitted models would not.

The balance says when each of them asks. In a space of few settings there is one, `OwnRewards`; in others there are two,
`ShorterLengthscales` and `Farthest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.improvement import log_expected_improvement
from noregret.gp.posterior import Floats, Ints, Rng
from noregret.optimizer.model.candidates import around, resample_inactive, spread_out, top
from noregret.optimizer.model.constraints import IGNORE
from noregret.optimizer.model.evidence import CAUTION
from noregret.optimizer.model.posterior import condition
from noregret.optimizer.questions.balance import Balancing, Realised
from noregret.optimizer.questions.state import Asked, PendingSnapshot, Question
from noregret.optimizer.space.space import SAME, Bools, Space

Score = Callable[[Floats], Floats]
"""Scores of (n, d) points, (n,)."""

EDGE = 0.1
"""Part of the distance from what was measured that a point counts as at least, however near an edge of the cube.
Decision 0191."""


@dataclass(frozen=True)
class Farthest:
    """The candidate farthest from all that was measured, and from the edges of the cube.

    These make the measured points dense in the space, whatever is fitted.
    """

    def __call__(self, state: PendingSnapshot, rng: Rng) -> int | None:
        arms = np.flatnonzero(state.in_context)
        measured = state.belief.arms[state.belief.pulled] if state.is_moving else state.history.points
        worthwhile = state.log_feasible[arms] >= math.log(IGNORE)
        place = farthest_of(state.belief.arms[arms], measured, worthwhile)
        return None if place is None or not state.allowed[arms[place]] else int(arms[place])


def farthest_of(places: Floats, measured: Floats, worthwhile: Bools) -> int | None:
    """Of the worthwhile of (n, d) places, or else of all, the one farthest from all (m, d) measured points.

    None if all were measured. Near an edge of the cube most of what a measurement could tell about lies outside, so a
    place counts as no farther away than its mirror image beyond the edge; but as at least `EDGE` of its distance, so
    that edges have their turn.
    """
    distances, edges = sp.cKDTree(measured).query(places)[0], np.minimum(places, 1 - places).min(axis=1)
    scores = np.minimum(distances, 2 * edges + EDGE * distances)
    scores = np.where(worthwhile, scores, 0.0) if worthwhile.any() else scores
    return int(np.argmax(scores)) if scores.max() > 0 else None


@dataclass(frozen=True)
class OwnRewards:
    """The setting whose own rewards have the highest upper bound, whatever is fitted: UCB on independent arms.

    Settings that were never measured come first, the farthest first.
    """

    farthest: Farthest = field(default_factory=Farthest)

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        unmeasured, history = self.farthest(state, rng), state.history
        if unmeasured is not None:
            return unmeasured
        where = np.array([history.where(index) for index in range(len(history))])
        values = history.values(len(history))
        rewards = state.balance.rewards
        upper = upper_bounds(where, rewards(values), state.pending, rewards.noise)
        upper[history.hopeless] = -np.inf
        upper[~state.space.holds(history.points[: len(upper)])] = -np.inf
        number = int(np.argmax(upper))
        arms = state.arms([number])
        return int(arms[0]) if arms.size else history.point(number)


def upper_bounds(where: Ints, rewards: Floats, pending: tuple[int, ...], noise: float) -> Floats:
    """Upper bound of the mean reward of each setting, from the (n,) rewards at the settings with these numbers.

    A pending trial counts as if it had returned the average of its setting. Infinite without any reward.
    """
    settings = 1 + max(int(where.max()), *pending, 0)
    own = np.bincount(where, minlength=settings)
    counts = own + np.bincount(np.array(pending, dtype=np.intp), minlength=settings)
    averages = np.bincount(where, rewards, settings) / np.maximum(own, 1)
    width = noise * np.sqrt(2 * math.log(max(len(rewards), 2)) / np.maximum(counts, 1))
    return np.where(own > 0, averages + width, np.inf)


@dataclass(frozen=True)
class ShorterLengthscales:
    """The largest expected improvement if f had narrower and higher hills than fitted.

    A hill that was hit but is too narrow for the fit is looked at again, and climbed. The best one is at most `CAUTION`
    standard deviations of f high.
    """

    ratio: float = 0.35
    """Part of the fitted lengthscales. Decision 0191."""
    margin: float = 0.25
    """Standard deviations of f from which on an improvement counts: there is always a little one on the best hill.
    Decision 0191."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Floats:
        score, known = self.score(state)
        return best_of_cloud(state.space, state.belief.arms[state.incumbents], known, self.reach(state), score, rng)

    def reach(self, state: PendingSnapshot) -> Floats:
        """The shorter lengthscale of each coordinate, (d,)."""
        return self.ratio * np.array(state.models.fit.lengthscales)[list(state.space.groups)]

    def score(self, state: PendingSnapshot) -> tuple[Score, Floats]:
        """Log expected improvement plus log probability of being feasible: a function, and its values at incumbents."""
        fit, belief, arms = state.models.fit, state.belief, state.incumbents
        highest = float(belief.mean[arms].max())
        fit = fit.scaled(self.ratio, max(1.0, highest / (CAUTION * fit.size)))
        other = condition(fit.kernel(np.array(state.space.groups)), belief.rows, fit.half_life, belief.first.now)
        means, stds = other.predict(belief.arms[arms])
        incumbent = float(means.max()) + self.margin * fit.size

        def score(points: Floats) -> Floats:
            mean, std = other.predict(points)
            return np.asarray(log_expected_improvement(mean - incumbent, std) + state.log_feasible_at(points))

        return score, log_expected_improvement(means - incumbent, stds) + state.log_feasible[arms]


@dataclass(frozen=True)
class AroundSurprise:
    """A setting near a lone value that is better than all others say: the best one if f had narrower hills.

    The fit takes such a value for noise, though a narrow hill that one setting has hit looks the same. A second value
    within the shorter lengthscales tells them apart, and is asked for once: then the value is not alone. It lies
    `CAUTION` standard deviations or more above what is predicted without it. Asked until the balance of the safe bases
    begins, one of which does the same. Decision 0249.
    """

    shorter: ShorterLengthscales = field(default_factory=ShorterLengthscales)

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Floats | None:
        belief, reach = state.belief, self.shorter.reach(state)
        if state.is_moving or state.known >= state.balance.begins:
            return None
        rows, arms = belief.rows, belief.row_arms
        remaining = np.maximum(rows.noise - belief.variance[arms], SAME * rows.noise)
        surprise = (rows.values - belief.mean[arms]) / np.sqrt(remaining)  # leave-one-out residuals by their deviations
        if rows.blocks is not None:
            inverse = np.linalg.inv(belief.full.root)
            surprise = inverse.T @ belief.full.whitened / np.sqrt(np.einsum("ij,ij->j", inverse, inverse))
        surprise[~state.in_context[arms]] = -np.inf
        scaled, groups = state.history.points / reach, np.array(state.space.groups)
        for row in np.argsort(-surprise)[: np.count_nonzero(surprise >= CAUTION)]:
            point = belief.arms[arms[row]]
            near = np.count_nonzero(((scaled - point / reach) ** 2).sum(axis=1) < 1.0)
            if near > 1 or np.count_nonzero(arms == arms[row]) > 1:
                continue
            cloud = state.space.snap(around(point[None], 128, reach / 2, groups, rng))
            apart = (((cloud - point) / reach) ** 2).sum(axis=1)
            cloud = cloud[(apart > SAME) & (apart < 1.0) & state.space.holds(cloud)]
            if len(cloud):
                return np.asarray(cloud[np.argmax(self.shorter.score(state)[0](cloud))])
        return None


def best_of_cloud(
    space: Space,
    starts: Floats,
    known: Floats,
    radii: Floats,
    score: Score,
    rng: Rng,
    cover: int = 256,
    cloud: int = 128,
    centres: int = 4,
    sizes: tuple[float, ...] = (1.0, 0.5, 0.2),
) -> Floats:
    """Point with the highest score, (d,): of (n, d) starts, a cover of the space, and a cloud around the best of both.

    The scores of the starts are ``known``, (n,). Parts of the cloud have ``radii``, (d,), times each of the ``sizes``.
    """
    groups, others = np.array(space.groups), spread_out(space, cover, 0, rng)
    best = np.vstack([starts, others])[top(np.concatenate([known, score(others)]), centres)]
    radii = np.resize(np.repeat(sizes, centres), cloud)[:, None] * radii
    near = np.vstack([best, space.snap(around(resample_inactive(space, best, rng), cloud, radii, groups, rng))])
    return np.asarray(near[np.argmax(score(near))])


@dataclass(frozen=True)
class Explore:
    """A question of the safe base whose turn it is.

    None if it is the rule's turn, there is nothing left to explore, or the base names a setting that only fails.
    """

    balancing: Balancing = field(default_factory=Balancing)

    def start(self, settings: float, design: int, is_comparable: bool) -> Realised:
        """Balance before any answer, given the number of settings and of the initial design."""
        settings = settings if is_comparable else math.inf
        balance = self.balancing.start(len(self.bases(settings)), settings, is_comparable)
        begins, nothing = self.balancing.begins(settings, design), np.empty(0, dtype=np.intp)
        return Realised(self.balancing, balance, begins, is_comparable, nothing)

    def bases(self, settings: float) -> tuple[Question, ...]:
        """Safe bases in a space of this many settings."""
        return (OwnRewards(),) if settings <= self.balancing.settings else (ShorterLengthscales(), Farthest())

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        turn, balance = state.balance.turn(state.history, len(state.pending)), state.balance
        if turn == 0:
            return None
        bases = self.bases(state.history.space.count if balance.is_comparable else math.inf)
        proposal = bases[turn - 1](state, rng)
        if proposal is None or isinstance(proposal, int):
            return proposal
        number = state.history.number(state.space.decode(proposal[None])[0])
        return None if number in state.history.hopeless else proposal
