"""Loops: generators that read like the papers' boxes.

A loop yields a `Pull`, the arms to pull next, and is sent the arms that were pulled and their rewards. It owns the
belief of the run; its driver (`noregret.Policy`, `noregret.run`) owns the rewards. `Sequential` pulls one arm at a
time, `Batched` pulls adaptive batches, `Repeated` pulls one arm many times; `ahead` chooses arms while others are
pending.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NewType, Protocol, runtime_checkable

import numpy as np

from noregret.bandits.belief.arms import Box
from noregret.bandits.belief.pulls import arms_of
from noregret.bandits.decision.breakdown import Breakdown
from noregret.bandits.decision.region import CLOUD, Region
from noregret.bandits.decision.rules import UCB, Band, ChoosesPoints, best_arm, best_of
from noregret.gp.arrays import largest, numpy_of
from noregret.gp.posterior import Constant, Floats, Ints, Model, Posterior, Rng, Rule

Play = Generator["Pull", tuple[Any, Floats], None]


class _Arm(NamedTuple):
    """Fields of `Best`, which it unpacks into."""

    arm: Any
    """Index of the arm; on a box its coordinates, (d,)."""
    mean: float
    lower: float
    upper: float


class Best(_Arm):
    """Arm with the largest lower confidence bound, its mean and its bounds."""

    gap: float | None = None
    """Upper bound on how much better another arm may be, by the algorithm's band: the largest upper bound of the others
    minus ``lower``, at least 0. Infinite if the band is empty. None if the bounds have no probability (mean +- 2 std,
    ``scale`` below 1, ``constants="experiment"``), on a `Box`, and for loops that show a part of the arms."""

    claim: Callable[[], Breakdown] | None = None

    @property
    def empty(self) -> bool:
        """True if the lower bound is above the upper one: no function fits, so norm or noise is wrong."""
        return self.lower > self.upper

    @property
    def breakdown(self) -> Breakdown | None:
        """Norm that f must have for another arm to be better by more than ``within`` (`Policy.best`), no norm assumed.

        It follows from all rewards at the time of `Policy.best`, and is computed here, in O(u^3 + u^2 N) for u distinct
        arms. None before the first reward, on a `Box`, and if the R of the noise or an exact history is missing: under
        heavy tails, where f changes, and for arms on a cluster.
        """
        return None if self.claim is None else self.claim()


class Pull(NamedTuple):
    """Arms that a loop asks for, and its state, for observers."""

    arms: Any
    """Arms to pull, in order, (n,); repetitions mean repeated pulls. On a box, (n, d) points."""
    belief: Posterior
    """Posterior they were chosen by; its i-th arm is ``about[i]``, by default ``active[i]``."""
    active: Any
    """Arms still in play, ascending; on a box, a `Region`."""
    about: Any = None
    """Arms of the belief, if they differ from the active ones."""
    best: Best | None = None
    """Arm with the largest lower bound, if the belief does not include all that the loop has learnt."""


class Algorithm(Protocol):
    """Frozen description of an algorithm; its repr is the record of the experiment."""

    def play(self, arms: Any, rng: Rng) -> Play:
        """Start a run on these (N, d) arms, or on a `Box` if the algorithm can.

        A loop that also takes ``belief``, the prior knowledge about the arms, supports changes of the arms during a run
        and rewards with their own noise factors. It must have no other state: it may be restarted at any time.
        """

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bound of every arm of the belief, each (N,)."""


@runtime_checkable
class ThinksAhead(Protocol):
    """Algorithm that can choose arms while others are pending; its ``play`` must take a ``belief``."""

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """Endless iterator over arms to pull beyond the (k,) pending arms ``out``; the belief does not change.

        `noregret.bandits.decision.loops.ahead` is this for a rule.
        """


class FollowsRule:
    """Part of a loop that chooses arms by a rule."""

    rule: Rule
    band: Band | None

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """Arms with the highest scores, each as if those before it and the pending ones had returned their mean."""
        return ahead(self.rule, belief, rng, out)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,): those of the band, or of the rule, or else mean +- 2 std."""
        chosen: Any = self.band or self.rule
        return (chosen if isinstance(chosen, Band) else UCB(Constant(2.0))).bounds(belief)


@dataclass(frozen=True)
class Sequential(FollowsRule):
    """Loop that pulls one arm at a time: the one with the highest score, the lowest index on ties.

    ``band`` provides the bounds that `Policy.best` reports. The default is the rule's own band if it has one (UCB,
    Thompson), and otherwise mean +- 2 std, a convention without a guarantee. ``times`` is the number of pulls of the
    arm before the next update.
    """

    model: Model
    rule: Rule
    band: Band | None = None
    times: int = 1

    def play(self, arms: Floats | Box, rng: Rng, belief: Posterior | None = None) -> Play:
        """Score, pull, learn; for ever. ``belief`` is the prior knowledge about these arms."""
        if isinstance(arms, Box):
            yield from play_on_box(self.model, self.rule, arms, rng, lambda belief, std: self.times)
            return
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            pulled, rewards = yield Pull(np.array([best] * self.times, np.intp), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """Arms with the highest scores, each as if those before it and the pending ones had returned their mean.

        Each comes ``times`` in a row, so a multiple of that number of arms consists of whole rows.
        """
        if self.times == 1:
            yield from ahead(self.rule, belief, rng, out)
        while True:
            row = [next(ahead(self.rule, belief, rng, out))] * self.times
            yield from row
            out = np.append(out, row)


def play_on_box(
    model: Model, rule: Rule, box: Box, rng: Rng, times: Callable[[Posterior, float], int]
) -> Generator[Pull, tuple[Any, Floats], None]:
    """Choose a point of the box, pull it ``times(belief, its std)`` times, learn; for ever.

    The belief's arms are `CLOUD` uniform points, from which searches start, and all points pulled. The band of a UCB
    rule holds at all points of the box; `Policy.best` is the arm of the belief with the largest lower bound.
    """
    if not isinstance(rule, ChoosesPoints):
        raise ValueError(
            f"on a Box the rule must be UCB or Thompson, or have a method point, got {rule}: pass box.sample(count, "
            "rng) as arms"
        )
    belief, region = model.prior(box.sample(CLOUD, rng), rng), Region(box)
    while True:
        point = rule.point(belief, box, rng)[None]
        count = times(belief, float(belief.predict(point)[1][0]))
        pulled, rewards = yield Pull(np.repeat(point, count, axis=0), belief, region, belief.arms)
        belief = with_arms(belief, pulled)
        belief.learn(pulled, rewards)


def with_arms(belief: Posterior, points: Floats) -> Posterior:
    """Same knowledge about the arms of the belief and these (n, d) points."""
    new = np.unique(points[arms_of(belief.arms, points) < 0], axis=0)
    return belief.at(np.vstack([belief.arms, new])) if len(new) else belief


def check_playable(algorithm: Any) -> None:
    """Raise ValueError unless this is an algorithm: a name or a builder is not one yet."""
    if not hasattr(algorithm, "play"):
        raise ValueError(
            f"algorithm must have a method play, as algorithms.amm_ucb(kernel) has, got {algorithm!r}: build it first"
        )


def starts_from_belief(algorithm: Algorithm) -> bool:
    """True if the loop can start from a belief, which is then its whole state."""
    return "belief" in inspect.signature(algorithm.play).parameters


def recommended(algorithm: Algorithm, pull: Pull) -> Best:
    """Arm with the largest lower confidence bound, by the belief of a pull."""
    if pull.best is not None:
        return pull.best
    about = pull.active if pull.about is None else pull.about
    return vouched(pull.belief, algorithm.bounds(pull.belief), about)


def vouched(belief: Posterior, bounds: tuple[Floats, Floats], about: Any) -> Best:
    """Arm with the largest of these lower bounds; the i-th arm of the belief is ``about[i]``."""
    i = int(bounds[0].argmax())
    arm = int(about[i]) if about.ndim == 1 else about[i]
    best = Best(arm, float(belief.mean[i]), float(bounds[0][i]), float(bounds[1][i]))
    highest = zip(*(each.tolist() for each in largest(bounds[1], 2)), strict=True)
    others = max((upper for other, upper in highest if other != i), default=-math.inf)
    best.gap = math.inf if best.empty else max(others - best.lower, 0.0)
    return best


@dataclass(frozen=True)
class Batched(FollowsRule):
    """Loop with adaptive batches (BBKB, Calandriello et al. 2020), for any model and rule.

    A batch is chosen arm by arm as if each had returned its mean. It ends with its ``size``-th arm, or when
    1 + sum s_0(x)^2 / ridge exceeds ``growth``, s_0 the std at its start, whichever comes first. At least one of the
    two must be given. With ``growth``, no variance shrinks by more than that factor before the batch's last arm. A
    batch also ends when it becomes long compared to all rewards before, which happens only if an arm has almost no
    information left. The whole batch is asked for at once, so its arms can be evaluated in parallel.

    Under UCB the picked arms are conditioned on through the posterior covariance, so on a sketch also in the part
    without features; the authors' code leaves that part of the variance unchanged until the end of the batch.
    """

    model: Model
    rule: Rule
    growth: float | None = None
    size: int | None = None
    band: Band | None = None

    def __post_init__(self) -> None:
        if self.growth is None and self.size is None:
            raise ValueError("growth or size must be given, got neither: pass growth=2, or size= the arms of a batch")
        if self.growth is not None:
            _check_growth(self.growth)
        size: Any = self.size
        if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
            raise ValueError(f"size must be a whole number from 1, the arms of a batch, got {size!r}")

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose a batch, pull it, learn it as one block; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        growth, size = self.growth or math.inf, self.size or math.inf
        while True:
            spent, least, batch = 1.0, _least_cost(belief), list[int]()
            choose = ahead(self.rule, belief, rng)
            while spent <= growth and len(batch) < size:
                batch.append(next(choose))
                spent += max(float(belief.std[batch[-1]]) ** 2 / belief.ridge, least)
            pulled, rewards = yield Pull(np.array(batch, dtype=np.intp), belief, active)
            belief.update(pulled, rewards)


@dataclass(frozen=True)
class Repeated(FollowsRule):
    """Loop that repeats the chosen arm until its variance has shrunk (mini-GP-UCB, Calandriello et al. 2022).

    The arm is pulled floor((growth^2 - 1) ridge / s(x)^2) times in a row, at least once and at most as often as all
    pulls before plus one. No variance shrinks by more than growth^2 meanwhile. The number of choices grows like the
    information gain, not like the number of rounds.
    """

    model: Model
    rule: Rule
    growth: float
    band: Band | None = None

    def __post_init__(self) -> None:
        _check_growth(self.growth)

    def play(self, arms: Floats | Box, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose an arm, pull it until its variance has shrunk, learn; for ever."""
        if isinstance(arms, Box):
            yield from play_on_box(self.model, self.rule, arms, rng, self._times)
            return
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            times = self._times(belief, float(belief.std[best]))
            pulled, rewards = yield Pull(np.full(times, best), belief, active)
            belief.update(pulled, rewards)

    def _times(self, belief: Posterior, std: float) -> int:
        """Number of pulls of an arm with this std."""
        times = (self.growth**2 - 1) * belief.ridge / max(std**2, 1e-300)
        return int(min(max(times, 1), belief.rounds + 1))


def _least_cost(belief: Posterior) -> float:
    """Least cost of an arm, whose cost is s(x)^2 / ridge: half of 1 / (t + 1/c), c the largest cost of all arms.

    With a stationary kernel every arm costs at least 1 / (t + ridge / k(x, x)) after t pulls, so the limit changes
    nothing. It ends batches in which the best arm has a std of 0, or a tiny one from the start.
    """
    largest = float(belief.std.max()) ** 2 / belief.ridge
    return 0.5 / (belief.rounds + 1 / largest) if largest else math.inf


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")


GLANCE = 8
"""Least number of arms examined together; one alone costs nearly as much."""

LISTED = 1000
"""Length of the first list of arms; it is made four times as long when all of its arms were examined."""

Position = NewType("Position", int)
"""Position of an arm among the arms examined by `_Ahead`, as opposed to its index."""


def ahead(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """Arms with the highest scores, one after another, each as if those before it had returned their mean.

    The pending arms ``out`` also count as if they had returned their mean. The belief does not change. Under UCB, for k
    pending arms and a belief of rank r, it takes O(N) at the start, and O(k (r + k)) for each arm whose score before
    the pending arms were counted is above that of the next arm. Other rules work on a copy of the belief.
    """
    return lazily(rule, belief, out) if type(rule) is UCB else afresh(rule, belief, rng, out)


def afresh(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for any rule, on a copy of the belief."""
    thought = belief.copy()
    if len(out):
        thought.update(np.asarray(out))
    while True:
        best = best_arm(rule, thought, rng)
        yield best
        thought.update(best)


def lazily(rule: UCB, belief: Posterior, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for mean + width * std, with the present mean and width of the belief.

    Scores can only fall, so an old score is an upper bound. Arms are listed by their scores at the start, more of them
    when the list is used up. The best examined arm is picked if no other arm on the list can have a higher score;
    otherwise the next few arms on the list are examined. No other arm is ever examined.
    """
    width, thought = rule.width(belief), _Ahead(belief)
    start = belief.mean + belief.std * width
    best_of(start, rule, belief)
    for arm in np.asarray(out, dtype=np.intp).tolist():
        thought.pick(arm)
    listed, scores = (each.tolist() for each in largest(start, LISTED))
    first = 0  # arms on the list before this one were examined
    while True:
        while first < len(listed) and listed[first] in thought:
            first += 1
        if first == len(listed) < len(start):
            listed, scores = (each.tolist() for each in largest(start, 4 * len(listed)))
            continue
        best, score = thought.best(width)
        if first < len(listed) and (-scores[first], listed[first]) < (-score, best):
            if not thought.is_empty:
                thought.look(np.array(listed[first : first + thought.glance]))
                continue
            best = listed[first]
        yield best
        thought.pick(best)


class _Ahead:
    """Std of the examined arms after some picks, from the posterior covariance C at the start.

    With k distinct picks P and the noise R = ridge / counts, their covariance with x is now R (C(P, P) + R)^-1 C(P, x),
    and the variance of x has lost C(x, P) (C(P, P) + R)^-1 C(P, x). Another pick changes both by a rank-one term.
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._ridge = belief, belief.ridge
        self.arms = np.empty(0, np.intp)  # the examined arms, (n,)
        self._mean, self._variance = np.empty(0), np.empty(0)  # mean at the start and present variance, (n,)
        self._place: dict[int, Position] = {}  # by arm
        self._start = np.empty((0, 0))  # C(picks, arms), (k, n)
        self._picked, self._counts = np.empty(0, np.intp), np.empty(0)  # positions of the picks, and their counts
        self._now = np.empty((0, 0))  # present covariance of the picks with the examined arms, (k, n)

    def __contains__(self, arm: int) -> bool:
        """True if the arm was examined."""
        return arm in self._place

    @property
    def is_empty(self) -> bool:
        """True if nothing was picked yet."""
        return not self._counts.size

    @property
    def glance(self) -> int:
        """Number of arms to examine next."""
        return max(GLANCE, self.arms.size // 4)

    def best(self, width: float) -> tuple[int, float]:
        """Examined arm with the highest mean + width * std, and this score."""
        if not self.arms.size:
            return -1, -math.inf
        scores = self._mean + width * np.sqrt(np.maximum(self._variance, 0.0))
        highest = scores.max()
        return int(self.arms[scores == highest].min()), float(highest)

    def look(self, arms: Ints) -> None:
        """Examine these arms: keep their std up to date from now on."""
        arms = np.unique([arm for arm in arms.tolist() if arm not in self._place])
        self._place |= {arm: Position(self.arms.size + i) for i, arm in enumerate(arms.tolist())}
        self.arms = np.append(self.arms, arms)
        noise, cross = self._ridge / self._counts, self._covariance(self.arms[self._picked], arms)
        self._start = np.hstack([self._start, cross])
        weights = np.linalg.solve(self._start[:, self._picked] + np.diag(noise), cross)
        self._now = np.hstack([self._now, noise[:, None] * weights])
        self._mean = np.append(self._mean, numpy_of(self._belief.mean[arms]))
        start = numpy_of(self._belief.std[arms]) ** 2
        self._variance = np.append(self._variance, start - np.einsum("ij,ij->j", cross, weights))

    def pick(self, arm: int) -> None:
        """Count one more pull of this arm."""
        if arm not in self._place:
            self.look(np.array([arm]))
        place = self._place[arm]
        if place not in self._picked:
            start, weights = self._covariance([arm], self.arms), self._counts / self._ridge * self._start[:, place]
            self._start = np.vstack([self._start, start])
            self._now = np.vstack([self._now, start - weights @ self._now])
            self._picked, self._counts = np.append(self._picked, place), np.append(self._counts, 0.0)
        which = int(np.flatnonzero(self._picked == place)[0])
        row, pivot = self._now[which].copy(), float(self._now[which, place]) + self._ridge
        self._variance -= row * row / pivot
        self._now -= np.outer(self._now[:, place] / pivot, row)
        self._counts[which] += 1

    def _covariance(self, picks: Sequence[int] | Ints, arms: Ints) -> Floats:
        """C(picks, arms), empty if nothing was picked."""
        picks = np.asarray(picks, dtype=np.intp)
        return self._belief.covariance(picks, arms) if picks.size else np.empty((0, arms.size))
