"""Questions about several objectives: the setting that is expected to push their front outwards most.

The front is that of the posterior means at the measured settings, not of the measured values. Up to three objectives,
the score is the logarithm of the expected hypervolume improvement over it, exact for independent Gaussians: the part
of the space that the front does not dominate is cut into boxes, and the expected volume of a box below a Gaussian point
is a product over the objectives. With more objectives, it is the expected improvement of a random augmented Chebyshev
scalarisation (Knowles 2006).

Volumes are in the units of the values, though models may be of logarithms: between neighbouring coordinates of the
front the transformation is taken for linear.

M. Emmerich, A. Deutz, J. Klinkenberg. Hypervolume-based expected improvement. CEC 2011. S. Ament et al. Unexpected
improvements to expected improvement. NeurIPS 2023, for the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.improvement import log_expected_improvement
from noregret.gp.posterior import Floats, Ints, Rng
from noregret.optimizer.model.candidates import Candidates, around, resample_inactive, top
from noregret.optimizer.model.constraints import SEARCH
from noregret.optimizer.model.current import Snapshot
from noregret.optimizer.model.objectives import nondominated, reported
from noregret.optimizer.questions.questions import AMONG_NAMES, Improve, SaturatedImprovement
from noregret.optimizer.questions.state import Asked, PendingSnapshot, Question, state_of
from noregret.optimizer.space.parameters import ROUNDING

Score = Callable[[Floats, Floats], Floats]
"""Scores of arms by the mean and std of each objective, (n, m), (n, m) -> (n,)."""

BEYOND = np.array([0.25, 0.5, 1.0, 2.0])
"""Standard units beyond the best value of an objective at which the slope of its transformation is taken. Decision
0207."""

MARGIN = 0.1
"""The reference point is this part of the front's range below its worst values, as in BoTorch. The front is that of the
means of all arms (`ends`), not of the measured ones only: its ends would be out of reach otherwise. Decision 0207."""


def for_objectives(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Questions about several objectives in place of those about one."""
    return tuple(ImproveFront(asked) if isinstance(asked, Improve) else OfOneObjective(asked) for asked in questions)


@dataclass(frozen=True)
class OfOneObjective:
    """A question about one objective: of each in random order, until one of them names a setting."""

    question: Question

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        known = list(state.objectives.values())
        for index in rng.permutation(len(known)).tolist():
            asked = self.question(state_of(known[index], state.pending, state.balance), rng)
            if asked is not None:
                return asked
        return None


@dataclass(frozen=True)
class ImproveFront:
    """The setting with the highest score, plus the log probability that it is feasible.

    The front's own values are uncertain too, and measuring one of its settings again mostly moves the front itself. So
    the uncertainty that counts is what would be left if f were known at the front's settings. Settings of one choice
    have no neighbours that could tell more about them: there all of the uncertainty counts. A repeat that tells little
    about every objective loses its appeal, as in `SaturatedImprovement`. While no measured arm is likely feasible, the
    one that most likely is.
    """

    improve: Improve
    alone: int = 4
    """One of this many questions is about one objective alone, in turn. The ends of the front are where one objective
    is best; if the model is wrong about them, no setting beyond the reference point has a score. Decision 0207."""
    most: int = 40
    """Points of the front that count, of two objectives; of three, half as many. Decision 0207."""

    def __call__(self, state: PendingSnapshot, rng: Rng) -> Asked | None:
        states = [state_of(each, state.pending, state.balance) for each in state.objectives.values()]
        is_searching = state.margins and state.log_feasible[state.incumbents].max() < math.log(SEARCH)
        if len(states) == 1 or is_searching:
            return self.improve(state, rng)
        if state.known % self.alone == 0:
            return self.improve(states[state.known // self.alone % len(states)], rng)
        score = self._score(state, states, rng)
        arms = state.belief.arms
        scores = np.where(state.allowed, score(arms), -np.inf)
        if state.pending and all(own.models.fit.noise <= self.improve.little * own.models.fit.size for own in states):
            others = np.where(np.isin(state.numbers, state.pending), -np.inf, scores)
            scores = others if others.max() > -np.inf else scores
        if state.space.count <= len(arms):
            return self._highest(scores)
        points, all_scores = self._around_best(state, states, scores, score, rng)
        chosen = self._highest(all_scores)
        if chosen < len(arms):
            return chosen
        number = state.history.number(state.space.decode(points[[chosen]])[0])
        return self._highest(scores) if number in state.history.hopeless else np.asarray(points[chosen])

    def _highest(self, scores: Floats) -> int:
        highest = scores.max()
        return int(np.argmax(scores >= highest - ROUNDING * abs(highest)))

    def _around_best(
        self,
        state: PendingSnapshot,
        states: Sequence[PendingSnapshot],
        scores: Floats,
        score: Callable[[Floats], Floats],
        rng: Rng,
    ) -> tuple[Floats, Floats]:
        """The arms, and clouds as those of `Candidates` around the best of them, with their scores."""
        space, groups = state.space, np.array(state.space.groups)
        points, worth = state.belief.arms, scores
        lengthscales = np.min([objective.models.fit.lengthscales for objective in states], axis=0)[list(space.groups)]
        for radius in Candidates.radii:
            best = resample_inactive(space, points[top(worth, Candidates.centres)], rng)
            near = space.snap(around(best, Candidates.cloud, radius * lengthscales, groups, rng))
            near = near if state.safety is None else near[state.safety.holds(near)]
            points, worth = np.vstack([points, near]), np.concatenate([worth, score(near)])
        return points, worth

    def _score(self, state: PendingSnapshot, states: Sequence[PendingSnapshot], rng: Rng) -> Callable[[Floats], Floats]:
        """Score of (n, d) points."""
        beliefs = [objective.belief for objective in states]
        rule, members = front_of(state, states, rng, self.most)
        is_one_choice = len(state.space.names) == 1 and len(state.space.groups) == state.space.count
        saturated = AMONG_NAMES if is_one_choice else SaturatedImprovement()
        enough = max(saturated.enough, saturated.early / max(state.belief.rounds, 1))

        given = [belief.full.given(members) for belief in beliefs]

        def score(points: Floats) -> Floats:
            is_arms = points is state.belief.arms
            lifted = [np.vstack([its.lifted, its.steps]) if is_arms else its.full.lifted(points) for its in beliefs]
            predicted = [predict(points, up) for predict, up in zip(given, lifted, strict=True)]
            mean, std, apart = (np.column_stack(columns) for columns in zip(*predicted, strict=True))
            noise = np.column_stack([np.broadcast_to(own.models.noise_variance(points), len(points)) for own in states])
            news = np.minimum(1.0, enough * std**2 / noise).max(axis=1)
            worth = rule(mean, std if is_one_choice else apart) + np.log(np.maximum(news, 1e-300))
            return np.asarray(worth + state.log_feasible_at(points) if state.margins else worth)

        return score


def front_of(
    state: Snapshot, states: Sequence[Snapshot], rng: Rng, most: int, mean_of_another: Floats | None = None
) -> tuple[Score, Floats]:
    """Rule that scores by what is added to the present front, and the front's points.

    With the (m,) means of another setting, as if that was on the front, too.
    """
    every = np.flatnonzero(state.allowed & (state.log_feasible >= math.log(SEARCH)))
    every = np.concatenate([state.incumbents, every])
    mean, std = (np.column_stack([getattr(own.belief, each)[every] for own in states]) for each in ("mean", "std"))
    front = nondominated(mean[: len(state.incumbents)])
    front = front[thinned(mean[front], most if len(states) == 2 else most // 2)]
    members = mean[front] if mean_of_another is None else np.vstack([mean[front], mean_of_another])
    return front_rule(states, members, ends(mean, std), rng), state.belief.arms[every[front]]


def ends(mean: Floats, std: Floats) -> Floats:
    """Means of the arms that span the front, of (n, m) means and stds.

    An arm does not count whose advantage over another is within its std in all objectives, if it is further behind in
    one: where the best value of one objective is reached in many places, noise makes some of them seem better, and they
    may be arbitrarily bad in another.
    """
    front = nondominated(mean)
    mean, std = mean[front], std[front]
    ahead = mean - mean[:, None]  # of each arm (last) over each other one
    is_level, is_ahead = np.all(ahead >= -std[:, None], axis=2), np.any(ahead > std[:, None], axis=2)
    is_beaten = np.any(is_level & is_ahead, axis=1)
    return np.asarray(mean if is_beaten.all() else mean[~is_beaten])


def front_rule(states: Sequence[Snapshot], front: Floats, spanning: Floats, rng: Rng) -> Score:
    """Rule that scores arms by what they may add to a front, given means that span all that can be reached."""
    worst, spread = spanning.min(axis=0), np.ptp(spanning, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    if len(states) > 3:
        return Scalarisation.random(worst, spread, front, rng)
    reference = worst - MARGIN * spread
    front = front[(front > reference).all(axis=1)]
    nodes = [np.unique([lowest, *column]) for lowest, column in zip(reference, front.T, strict=True)]
    ranks = np.column_stack([np.searchsorted(levels, column) for levels, column in zip(nodes, front.T, strict=True)])
    nodes = [np.concatenate([levels, levels[-1] + BEYOND]) for levels in nodes]
    values = [reported([state], column[:, None])[:, 0] for state, column in zip(states, nodes, strict=True)]
    slopes = [np.diff(each) / np.diff(column) for each, column in zip(values, nodes, strict=True)]
    slopes = [np.maximum(np.append(each, each[-1]), 1e-9 * each.max() + 1e-300) for each in slopes]
    return HypervolumeImprovement(tuple(nodes), tuple(slopes), np.array(list(boxes(ranks, [*map(len, nodes)]))))


def thinned(front: Floats, most: int) -> Ints:
    """At most this many of the (n, m) points of a front, evenly along its first objective."""
    order = np.argsort(front[:, 0], kind="stable")
    return np.asarray(order[np.unique(np.linspace(0, len(front) - 1, most).round().astype(np.intp))])


def boxes(ranks: Ints, tops: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Disjoint boxes that together are all that (n, m) ranks do not dominate: low and high rank of each objective.

    ``tops`` are the ranks that stand for infinity.

    >>> list(boxes(np.array([[1, 2], [2, 1]]), [5, 5]))
    [[(2, 5), (0, 1)], [(1, 5), (1, 2)], [(0, 5), (2, 5)]]
    """
    if ranks.shape[1] == 1:
        yield [(int(ranks.max(initial=0)), tops[0])]
        return
    for low, high in pairwise([*np.unique([0, *ranks[:, -1]]).tolist(), tops[-1]]):
        for box in boxes(ranks[ranks[:, -1] >= high][:, :-1], tops[:-1]):
            yield [*box, (low, high)]


@dataclass(frozen=True, eq=False)
class HypervolumeImprovement:
    """Logarithm of the expected hypervolume improvement over a front.

    Parameters
    ----------
    nodes : m arrays
        Coordinates of the front in each objective, ascending: the reference first, some beyond the best value last.
    slopes : m arrays
        Units of the values per standard unit, from each node to the next.
    boxes : (b, m, 2) ints
        The boxes that the front does not dominate, see `boxes`.
    """

    nodes: tuple[Floats, ...]
    slopes: tuple[Floats, ...]
    boxes: Ints

    def __call__(self, mean: Floats, std: Floats) -> Floats:
        total = np.zeros((len(mean), len(self.boxes)))
        for k, (nodes, slopes) in enumerate(zip(self.nodes, self.slopes, strict=True)):
            gap = mean[:, [k]] - nodes
            above = log_expected_improvement(gap, np.broadcast_to(std[:, [k]], gap.shape))
            parts = np.column_stack([log_less(above[:, :-1], above[:, 1:]), above[:, -1]]) + np.log(slopes)
            above = np.logaddexp.accumulate(parts[:, ::-1], axis=1)[:, ::-1]
            above = np.column_stack([above, np.full(len(mean), -np.inf)])
            total += log_less(above[:, self.boxes[:, k, 0]], above[:, self.boxes[:, k, 1]])
        return np.asarray(sp.logsumexp(total, axis=1))


def log_less(first: Floats, second: Floats) -> Floats:
    """ln(e^first - e^second), elementwise, at least -1e300."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_difference = first + np.log(-np.expm1(np.minimum(second - first, 0.0)))
    return np.nan_to_num(log_difference, nan=-1e300, neginf=-1e300)


@dataclass(frozen=True, eq=False)
class Scalarisation:
    """Logarithm of the expected improvement of -(max_k w_k l_k + rho sum_k w_k l_k), l_k what is missing to an ideal.

    Parameters
    ----------
    weights, worst, spread : (m,) floats
        What is missing is 1 at the worst and 0 at worst + spread.
    incumbent : float
        The largest scalarisation of a measured arm's mean.
    deviations : (draws, m) floats
        Standard normal draws that all arms share.
    """

    weights: Floats
    worst: Floats
    spread: Floats
    incumbent: float
    deviations: Floats
    rho: float = 0.05
    """As in Knowles (2006)."""
    softness: float = 0.01
    """Width over which the improvement goes over into 0, so that arms without one still differ. Not measured."""

    @classmethod
    def random(cls, worst: Floats, spread: Floats, measured: Floats, rng: Rng, draws: int = 64) -> Scalarisation:
        """Scalarisation with weights that are uniform on the simplex, given the (n, m) means of measured arms."""
        count = len(worst)
        made = cls(rng.dirichlet(np.ones(count)), worst, spread, 0.0, rng.standard_normal((draws, count)))
        incumbent = float(made.scalars(measured.T).max())
        return cls(made.weights, worst, spread, incumbent, made.deviations)

    def scalars(self, numbers: Sequence[Floats] | Floats) -> Floats:
        """The scalarisation of m arrays of numbers."""
        weighed = [
            weight * (1 - (column - worst) / spread)
            for weight, column, worst, spread in zip(self.weights, numbers, self.worst, self.spread, strict=True)
        ]
        return np.asarray(-(np.max(weighed, axis=0) + self.rho * np.sum(weighed, axis=0)))

    def __call__(self, mean: Floats, std: Floats) -> Floats:
        drawn = [m[:, None] + s[:, None] * d for m, s, d in zip(mean.T, std.T, self.deviations.T, strict=True)]
        gains = (self.scalars(drawn) - self.incumbent) / self.softness
        log_softplus = np.where(gains > -30, np.log(np.logaddexp(0.0, np.maximum(gains, -30.0))), gains)
        return np.asarray(sp.logsumexp(log_softplus, axis=1))
