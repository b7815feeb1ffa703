"""Loops: generators that read like the papers' boxes.

A loop yields a `Pull`, the arms to pull next, and is sent what was actually pulled and what came back. It owns
the belief of the run; whoever drives it (`noregret.Policy`, `noregret.run`) owns the rewards.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from noregret.belief.arrays import Array, largest, numpy_of
from noregret.belief.posterior import Floats, Ints, Model, Posterior, Rng
from noregret.decision.rules import UCB, Band, Rule, best_arm, best_of
from noregret.decision.schedules import Constant

Play = Generator["Pull", tuple[Any, Floats], None]


class Best(NamedTuple):
    """The arm with the largest lower confidence bound, and what is believed about it."""

    arm: Any
    """Its index; on a box its coordinates, (d,)."""
    mean: float
    lower: float
    upper: float

    @property
    def empty(self) -> bool:
        """Whether the lower bound lies above the upper: no function fits, so norm or noise is wrong."""
        return self.lower > self.upper


class Pull(NamedTuple):
    """What a loop asks for, and for whoever looks on, why."""

    arms: Any
    """The arms to pull, in order, (n,); repetitions mean repeated pulls. On a box, (n, d) points."""
    belief: Posterior
    """The posterior they were chosen by; its i-th arm is ``about[i]``, by default ``active[i]``."""
    active: Any
    """The arms still in play, ascending; on a box, a `Region`."""
    about: Any = None
    """The arms that the belief is about, where these are not the active ones."""
    best: Best | None = None
    """The arm with the largest lower bound, where the belief does not hold all that the loop has learnt."""


class Algorithm(Protocol):
    """A frozen description of an algorithm; its repr is the record of the experiment."""

    def play(self, arms: Any, rng: Rng) -> Play:
        """Start a run on these (N, d) arms, or on a `Box` if the algorithm can.

        A loop that also takes ``belief``, what is known about the arms already, lets them change during a run, and
        lets rewards come with a noise of their own. It must know nothing else: it may be started anew at any time.
        """
        ...

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bound of every arm of the belief, each (N,)."""
        ...


@runtime_checkable
class ThinksAhead(Protocol):
    """An algorithm that can choose arms while others are out; its ``play`` must take a ``belief``."""

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """Arms to pull, one after another for ever, beyond the (k,) arms that are ``out``; the belief stays as it is.

        `noregret.decision.loops.ahead` is this for a rule.
        """
        ...


@dataclass(frozen=True)
class Sequential:
    """One arm at a time: the one that scores highest, the lowest index on ties.

    ``band`` gives the bounds that `Policy.best` reports. By default it is the rule's own where the rule has one
    (UCB, Thompson) and otherwise mean +- 2 std, which is a habit and not a guarantee. ``times`` is how often the arm is
    pulled in a row before anything is learnt.
    """

    model: Model
    rule: Rule
    band: Band | None = None
    times: int = 1

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Score, pull, learn; for ever. ``belief`` is what is known about these arms already."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            pulled, rewards = yield Pull(np.array([best] * self.times, np.intp), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean.

        Each comes ``times`` in a row, so whoever asks for a multiple of that gets whole rows.
        """
        if self.times == 1:
            yield from ahead(self.rule, belief, rng, out)
        while True:
            row = [next(ahead(self.rule, belief, rng, out))] * self.times
            yield from row
            out = np.append(out, row)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def starts_from_belief(algorithm: Algorithm) -> bool:
    """Whether its loop can start from a belief, which is then all that it knows."""
    return "belief" in inspect.signature(algorithm.play).parameters


def recommended(algorithm: Algorithm, pull: Pull) -> Best:
    """The arm with the largest lower confidence bound, by the belief of a pull."""
    if pull.best is not None:
        return pull.best
    lower, upper = algorithm.bounds(pull.belief)
    i = int(lower.argmax())
    about = pull.active if pull.about is None else pull.about
    return Best(int(about[i]), float(pull.belief.mean[i]), float(lower[i]), float(upper[i]))


def bounds_of(rule: Rule, band: Band | None, belief: Posterior) -> tuple[Floats, Floats]:
    """Bounds of the band, or of the rule if it has any, or else mean +- 2 std."""
    chosen: Any = band or rule
    return (chosen if isinstance(chosen, Band) else UCB(Constant(2.0))).bounds(belief)


@dataclass(frozen=True)
class Batched:
    """Adaptive batches (BBKB, Calandriello et al. 2020), whatever the model and the rule.

    A batch is chosen arm by arm as if each had returned its mean. It ends with its ``size``-th arm, or once
    1 + sum s_0(x)^2 / ridge exceeds ``growth``, s_0 the std at its start, whichever comes first. One of the two must be
    given, or both. With ``growth``, no variance shrinks by more than that factor before the batch's last arm; and a
    batch also ends when it gets long beside all rewards before, which happens only where an arm has hardly anything to
    tell. All of it is asked for at once, so it is also how to measure in parallel.

    Under UCB the arms picked are conditioned on through the posterior covariance, so on a sketch also where it has no
    features; the authors' code leaves that part of the variance as it is until the batch is over.
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
        _check_size(self.size)

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose a batch, pull it, learn it as one block; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            pulled, rewards = yield Pull(np.array(self._batch(belief, rng), dtype=np.intp), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean."""
        return ahead(self.rule, belief, rng, out)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)

    def _batch(self, belief: Posterior, rng: Rng) -> list[int]:
        spent, least, batch = 1.0, _least_cost(belief), list[int]()
        choose, growth, size = ahead(self.rule, belief, rng), self.growth or math.inf, self.size or math.inf
        while spent <= growth and len(batch) < size:
            batch.append(next(choose))
            spent += max(float(belief.std[batch[-1]]) ** 2 / belief.ridge, least)
        return batch


@dataclass(frozen=True)
class Repeated:
    """The chosen arm again and again, until its variance has shrunk (mini-GP-UCB, Calandriello et al. 2022).

    The arm is pulled floor((growth^2 - 1) ridge / s(x)^2) times in a row, at least once and never more often than all
    pulls before together plus one. No variance shrinks by more than growth^2 meanwhile. The number of choices grows
    like the information gain, not like the rounds.
    """

    model: Model
    rule: Rule
    growth: float
    band: Band | None = None

    def __post_init__(self) -> None:
        _check_growth(self.growth)

    def play(self, arms: Floats, rng: Rng, belief: Posterior | None = None) -> Play:
        """Choose an arm, pull it so often that choosing again is worth it, learn; for ever."""
        belief, active = belief or self.model.prior(arms, rng), np.arange(len(arms))
        while True:
            best = best_arm(self.rule, belief, rng)
            times = (self.growth**2 - 1) * belief.ridge / max(float(belief.std[best]) ** 2, 1e-300)
            pulled, rewards = yield Pull(np.full(int(min(max(times, 1), belief.rounds + 1)), best), belief, active)
            belief.update(pulled, rewards)

    def ahead(self, belief: Posterior, out: Ints, rng: Rng) -> Iterator[int]:
        """The arms that score highest, each as if those before it and those ``out`` had returned their mean."""
        return ahead(self.rule, belief, rng, out)

    def bounds(self, belief: Posterior) -> tuple[Floats, Floats]:
        """Lower and upper confidence bounds, each (N,)."""
        return bounds_of(self.rule, self.band, belief)


def _least_cost(belief: Posterior) -> float:
    """What an arm costs at least, whose cost is s(x)^2 / ridge: half of 1 / (t + 1/c), c the largest cost of all.

    On a stationary kernel t pulls leave every arm at least 1 / (t + ridge / k(x, x)), so that the limit changes nothing
    there. It ends the batches in which the arm on top has a std of 0, or one that is tiny from the start.
    """
    largest = float(belief.std.max()) ** 2 / belief.ridge
    return 0.5 / (belief.rounds + 1 / largest) if largest else math.inf


def _check_size(size: Any) -> None:
    """Raise ValueError unless size is None or a whole number from 1."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
        raise ValueError(f"size must be a whole number from 1, the arms of a batch, got {size!r}")


def _check_growth(growth: float) -> None:
    if not 1 < growth < math.inf:
        raise ValueError(f"growth must be above 1, got {growth}: 2 is a usual choice")


GLANCE = 8
"""At least so many arms are looked at together; a look at one costs nearly as much."""

LISTED = 1000
"""So many arms are listed at first; four times as many when all of them were looked at."""


def ahead(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """The arms that score highest, one after another, each as if those before it had returned their mean.

    So have the arms that are ``out``: asked for, and not answered. The belief stays as it is. Under UCB, for k arms
    out and a belief of rank r, it takes O(N) at the start, and O(k (r + k)) for each of those that scored higher than
    the arm that comes next before the arms out were counted. Other rules work on a copy of the belief.
    """
    return lazily(rule, belief, out) if type(rule) is UCB else afresh(rule, belief, rng, out)


def afresh(rule: Rule, belief: Posterior, rng: Rng, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for any rule, which scores a copy of the belief."""
    thought = belief.copy()
    if len(out):
        thought.update(np.asarray(out))
    while True:
        best = best_arm(rule, thought, rng)
        yield best
        thought.update(best)


def lazily(rule: UCB, belief: Posterior, out: Sequence[int] | Ints = ()) -> Iterator[int]:
    """`ahead` for mean + width * std, with mean and width as the belief has them.

    Scores can only fall, so an old score is an upper bound. Arms are listed by their scores at the start, more of them
    when the list is used up. The best of those that were looked at is picked if no other on the list may score higher;
    if one may, the next few on the list are looked at. No other arm is ever looked at.
    """
    width, thought = rule.width(belief), _Ahead(belief)
    start = belief.mean + belief.std * width
    best_of(start, rule, belief)
    for arm in np.asarray(out, dtype=np.intp).tolist():
        thought.pick(arm)
    listed, scores = _listed(start, LISTED)
    first = 0  # those on the list before were looked at
    while True:
        while first < len(listed) and listed[first] in thought:
            first += 1
        if first == len(listed) < len(start):
            listed, scores = _listed(start, 4 * len(listed))
            continue
        best, score = thought.best(width)
        if first < len(listed) and (-scores[first], listed[first]) < (-score, best):
            if not thought.is_empty:
                thought.look(np.array(listed[first : first + thought.glance]))
                continue
            best = listed[first]
        yield best
        thought.pick(best)


def _listed(scores: Array, count: int) -> tuple[list[int], list[float]]:
    """So many of the arms that score highest, in falling order, and their scores."""
    arms, highest = largest(scores, count)
    return arms.tolist(), highest.tolist()


class _Ahead:
    """The std of the arms that were looked at after some picks, from the posterior covariance C at the start.

    With k distinct picks P and the noise R = ridge / counts, their covariance with x is now R (C(P, P) + R)^-1 C(P, x),
    and the variance of x has lost C(x, P) (C(P, P) + R)^-1 C(P, x). Another pick changes both by a rank-one term.
    """

    def __init__(self, belief: Posterior) -> None:
        self._belief, self._ridge = belief, belief.ridge
        self.arms = np.empty(0, np.intp)  # those that were looked at, (n,)
        self._mean, self._variance = np.empty(0), np.empty(0)  # of these arms, the variance of now
        self._place: dict[int, int] = {}  # of these arms, by name: where among them it is
        self._start = np.empty((0, 0))  # C(picks, arms), (k, n)
        self._picked, self._counts = np.empty(0, np.intp), np.empty(0)  # places of the picks, and how often
        self._now = np.empty((0, 0))  # covariance of the picks with these arms, now, (k, n)

    def __contains__(self, arm: int) -> bool:
        """Whether the arm was looked at."""
        return arm in self._place

    @property
    def is_empty(self) -> bool:
        """Whether nothing was picked yet."""
        return not self._counts.size

    @property
    def glance(self) -> int:
        """How many arms to look at next."""
        return max(GLANCE, self.arms.size // 4)

    def best(self, width: float) -> tuple[int, float]:
        """Of the arms that were looked at the one with the highest mean + width * std, and this score."""
        if not self.arms.size:
            return -1, -math.inf
        scores = self._mean + width * np.sqrt(np.maximum(self._variance, 0.0))
        highest = scores.max()
        return int(self.arms[scores == highest].min()), float(highest)

    def look(self, arms: Ints) -> None:
        """Keep the std of these arms up to date from now on."""
        arms = np.unique([arm for arm in arms.tolist() if arm not in self._place])
        self._place |= zip(arms.tolist(), range(self.arms.size, self.arms.size + arms.size), strict=True)
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
            self._start, self._now = (
                np.vstack([self._start, start]),
                np.vstack([self._now, start - weights @ self._now]),
            )
            self._picked, self._counts = np.append(self._picked, place), np.append(self._counts, 0.0)
        which = int(np.flatnonzero(self._picked == place)[0])
        row, pivot = self._now[which].copy(), float(self._now[which, place]) + self._ridge
        self._variance -= row * row / pivot
        self._now -= np.outer(self._now[:, place] / pivot, row)
        self._counts[which] += 1

    def _covariance(self, picks: Sequence[int] | Ints, arms: Ints) -> Floats:
        """C(picks, arms), which is empty if nothing was picked."""
        picks = np.asarray(picks, dtype=np.intp)
        return self._belief.covariance(picks, arms) if picks.size else np.empty((0, arms.size))
