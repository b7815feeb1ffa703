"""Regret balancing: which base asks the next question, by the rewards that each base has earned so far.

Base 0 is the practical rule: expected improvement under the fitted model. The others are safe ones, which look where
the model would not. Every base has a guess d at its regret: n questions of its own cost at most d sqrt(n) in all. The
next question is asked by the base with the smallest weight * d * sqrt(n). After its reward the guess of a base is
doubled if it is refuted, that is, if for the average reward of the base with its error e(n)

    average + d / sqrt(n) + e(n)  <  the largest average - e(n) of all bases,

where e(n) = c sqrt(2 ln(pi^2 M n^2 / (3 delta)) / n), M the number of bases and c the sub-Gaussian constant of the
noise. So a base that fails asks less, at the pace at which it fails, and the regret of all questions is of the order of
that of the best base, whichever it is (docs/guarantees.md). While the rule does not fail, each safe base asks at most
1 + n / weight^2 questions, n those of the rule.

A. Pacchiano, C. Dann, C. Gentile. Data-driven online model selection with regret guarantees. AISTATS 2024 (D3RB); the
weights are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import LEVEL, Evidence
from noregret.optimizer.model.history import History
from noregret.optimizer.model.transforms import RobustScale, ValueScale


@dataclass(frozen=True, eq=False)
class Balance:
    """Number of questions, sum of the rewards and guess of each base, (M,)."""

    weights: Floats
    counts: Floats
    sums: Floats
    guesses: Floats
    delta: float

    def turn(self, ahead: int = 0) -> int:
        """Base of the next question but ``ahead``, if no guess is doubled until then."""
        counts = self.counts.copy()
        for _ in range(ahead):
            counts[self._next(counts)] += 1
        return self._next(counts)

    def after(self, rewards: Sequence[float], noise: float) -> tuple[Balance, list[int]]:
        """Balance after rewards whose noise has this sub-Gaussian constant, and the base of each.

        Plain numbers: there are two or three bases and up to millions of rewards.
        """
        each, events = range(len(self.counts)), math.pi**2 * len(self.counts) / (3 * self.delta)
        weights, bases = self.weights.tolist(), list[int]()
        counts, sums, guesses = self.counts.tolist(), self.sums.tolist(), self.guesses.tolist()

        def error(base: int) -> float:
            return noise * math.sqrt(2 * math.log(events * counts[base] ** 2) / counts[base])

        errors = [error(base) if counts[base] else math.inf for base in each]
        turns = [weights[base] * guesses[base] * math.sqrt(counts[base]) for base in each]
        for reward in rewards:
            base = turns.index(min(turns))
            counts[base] += 1.0
            sums[base] += reward
            errors[base] = error(base)
            upper = sums[base] / counts[base] + guesses[base] / math.sqrt(counts[base]) + errors[base]
            if upper < max(sums[other] / counts[other] - errors[other] for other in each if counts[other]):
                guesses[base] *= 2.0
            turns[base] = weights[base] * guesses[base] * math.sqrt(counts[base])
            bases.append(base)
        after = [np.array(column) for column in (counts, sums, guesses)]
        return replace(self, counts=after[0], sums=after[1], guesses=after[2]), bases

    def _next(self, counts: Floats) -> int:
        return int(np.argmin(self.weights * self.guesses * np.sqrt(counts)))


@dataclass(frozen=True)
class Rewards:
    """Values as bounded rewards, and the constant of their noise.

    A reward is the value in robust units, with very bad values bent, clipped to ``bounds``; a failure has the lowest.
    ``noise`` is in these units.
    """

    scale: ValueScale
    bounds: tuple[float, float]
    noise: float

    @classmethod
    def all_equal(cls) -> Rewards:
        """Rewards before there are values to compare: 0, whatever the value."""
        return cls(ValueScale(0.0, 1.0), (0.0, 0.0), math.inf)

    def __call__(self, values: Floats) -> Floats:
        """Rewards of values, nan for failures."""
        return np.nan_to_num(np.clip(self.scale.standard(values), *self.bounds), nan=self.bounds[0])


@dataclass(frozen=True)
class Balancing:
    """Numbers of the balance."""

    weight: float = 2.0
    """Weight of a safe base; that of the rule is 1. A safe base asks at most 1 + n / weight^2 questions while the rule,
    with n questions, does not fail; where it fails itself, of the order of sqrt(n). Decision 0191."""
    blind_weight: float = 5.0
    """Weight of a safe base where rewards are not comparable: no guess is doubled and shares do not fade. A share of 4%
    for each: decision 0191."""
    after: int = 200
    """Answers before the balance begins: earlier, exploring costs more than it finds. Decision 0191."""
    small: int = 50
    """Settings up to which the balance begins with the first fit: a few more measurements leave nothing unexplored
    there, and `done` can say so. Decision 0191."""
    settings: int = 256
    """Settings up to which they are explored one by one. The first guess d is the unit of the rewards times
    sqrt(min(this, number of settings)): a base may cost the regret of asking once for each before it is doubted.
    Decision 0191."""
    bounds: tuple[float, float] = (-3.0, 6.0)
    """Bounds of the rewards, in robust standard deviations of all values from their median. Not measured."""

    def begins(self, settings: float, design: int) -> int:
        """Answers before the balance begins, given the number of settings and of the initial design."""
        return design if settings <= self.small else max(design, self.after)

    def start(self, safe: int, settings: float, is_comparable: bool) -> Balance:
        """Balance of the rule and the safe bases before the first reward, given the number of settings."""
        weight = self.weight if is_comparable else self.blind_weight
        weights, nothing = np.array([1.0] + [weight] * safe), np.zeros(1 + safe)
        guess = math.sqrt(min(self.settings, settings))
        return Balance(weights, nothing, nothing, np.full(1 + safe, guess), 1 - LEVEL)

    def rewards(self, evidence: Evidence) -> Rewards:
        """Rewards in the units of these observations."""
        scale = RobustScale()(evidence)
        numbers = np.clip(scale.standard(evidence.values), *self.bounds)
        return Rewards(scale, self.bounds, noise_level(evidence.points[evidence.where], numbers))


def noise_level(points: Floats, values: Floats) -> float:
    """Standard deviation of the noise of (n,) values at (n, d) points, by differences between nearest neighbours.

    Repeats are neighbours at distance 0. Only the half of the values with the nearest neighbours counts. The variation
    of f between neighbours is part of it, so it errs to the high side.
    """
    if len(values) < 2:
        return math.inf
    distances, neighbours = map(np.asarray, sp.cKDTree(points).query(points, k=2))
    column = (neighbours[:, 0] == np.arange(len(points))).astype(np.intp)  # where a point is not its own neighbour
    away, other = (np.take_along_axis(table, column[:, None], axis=1)[:, 0] for table in (distances, neighbours))
    nearest = np.argsort(away, kind="stable")[: (len(values) + 1) // 2]
    return math.sqrt(float(np.mean((values - values[other])[nearest] ** 2)) / 2)


@dataclass(frozen=True, eq=False)
class Realised:
    """Balance of a history: a pure function of the answers.

    Answer number t since the beginning is the reward of the base that the balance of the answers before it names,
    whichever asked. So only the values are needed, and a history that is loaded after a restart has the same balance.
    If trials are evaluated one at a time, that is the base which asked. Answers of trials that were pending together
    count in the order of arrival. Answers for settings that were not asked for count as asked by the base whose turn it
    was. The theorem is about questions that are answered one after another.

    Units and noise of the rewards are those of the answers so far whenever their number is the first one times a power
    of two. Where a value alone does not say what is best (contexts, constraints, drift), all rewards are equal: no
    guess is ever doubled and the shares are constant.
    """

    balancing: Balancing
    balance: Balance
    begins: int
    is_comparable: bool
    asked: Ints
    """Base of each answer since the beginning."""
    rewards: Rewards = field(default_factory=Rewards.all_equal)

    def after(self, history: History) -> Realised:
        """Balance after all answers."""
        now, index = self, self.begins + len(self.asked)
        values = history.values(len(history)) if index < len(history) else None
        while values is not None and index < len(history):
            doubled = self.begins << (index // self.begins).bit_length()  # the next change of units
            if index == doubled // 2:
                now = now._rescaled(history, index)
            block = now.rewards(values[index:doubled]).tolist()
            balance, bases = now.balance.after(block, now.rewards.noise)
            now = replace(now, balance=balance, asked=np.concatenate([now.asked, np.array(bases, dtype=np.intp)]))
            index += len(block)
        return now

    def turn(self, history: History, pending: int) -> int:
        """Base of the next question; 0, the rule, before the beginning."""
        ahead = len(history) + pending - self.begins - len(self.asked)
        return self.balance.turn(ahead) if ahead >= 0 else 0

    def _rescaled(self, history: History, stop: int) -> Realised:
        """Balance with all rewards in units of the first ``stop`` answers."""
        values = history.values(stop)
        if not self.is_comparable or np.count_nonzero(values == values) < 2:
            return self
        evidence = history.evidence(stop)[0].exact
        if len(evidence) < 2:
            return self
        rewards = self.balancing.rewards(evidence)
        sums = np.bincount(self.asked, rewards(values[self.begins :]), len(self.balance.sums)).astype(float)
        return replace(self, rewards=rewards, balance=replace(self.balance, sums=sums))
