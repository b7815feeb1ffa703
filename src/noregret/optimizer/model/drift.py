"""Drift: whether f changes over time, how fast, and which observations are out of date.

Two hypotheses about the same observations compete: f stays, or it changes with a half-life that is fitted like the rest
(see `fit`). Change must explain the observations better by `REFUTED` on average over the noise
models: things mostly stay, and a kernel that is not quite right finds excuses in time. With heavy tails
alone, a fixed f takes everything out of date for noise; without them, noise is taken for change. Heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.model.evidence import MOST_FITTED, REFUTED, SURPRISING, Evidence, recent
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import Explained, FittedModels, Hypothesis, ModelConfig, best_first
from noregret.optimizer.model.learning import Learnt, learn
from noregret.optimizer.model.transforms import ValueScale


@dataclass(frozen=True)
class DriftTest:
    """Decides how fast f changes, from the newest observations and some of the older ones."""

    half_life: float | None
    """Half-life that was given; None if it is to be found."""
    enough: int = 30
    """Observations from which on the test is made. Not measured."""
    span: int = 40
    """The test looks at twice as many newest observations, and at as many older ones, evenly spread. A change that was
    found this many answers ago is still believed, unless the rest speaks against it: decision 0160."""
    memory: float = 5.0
    """Older observations than this many half-lives are out of date: they explain 1/32 of the variance at most."""

    def is_likely(self, config: ModelConfig, evidence: Evidence, now: int) -> bool:
        """Return True if change explains more under Gaussian noise, without a prior against it: a quick first look."""
        if self.half_life is not None:
            return True
        scale, aged = self._looked_at(config, evidence, now)
        gaussian = Hypothesis(scale, config.noise_models[0])
        moving, still = (config.explain(gaussian, each).nats for each in (aged, replace(aged, ages=None)))
        return moving > still

    def fitted(self, config: ModelConfig, evidence: Evidence, now: int) -> FittedModels:
        """Models that explain the newest observations best, with a half-life or without one."""
        scale, aged = self._looked_at(config, evidence, now)
        if self.half_life is not None:
            return FittedModels(tuple(config.noises(scale, aged)))
        moving, still, gains = self._compared(config, scale, aged)
        gain = float(np.mean(gains))
        is_found = gain >= REFUTED or (gain > -REFUTED and self._gain(config, evidence, now - self.span) >= REFUTED)
        explaining = [view for view, extra in zip(moving, gains, strict=True) if extra > 0]
        tried = (explaining or moving) if is_found else still
        return best_first(tried)

    def current(self, found: FittedModels, evidence: Evidence, now: int) -> Evidence:
        """Standardised observations that say how f is after ``now`` answers, none out of date, at least the newest."""
        assert evidence.when is not None
        oldest = min(now - math.ceil(self.memory * found.fit.half_life), int(evidence.when.max()))
        young = np.flatnonzero(evidence.when >= oldest)
        kept = young[recent(young.size, MOST_FITTED // 2, MOST_FITTED // 2)]
        return found.scale.standardised(evidence.aged(kept, now))

    def _gain(self, config: ModelConfig, evidence: Evidence, now: int) -> float:
        """Nats by which change explained more after ``now`` answers, on average over the noise models."""
        assert evidence.when is not None
        if np.count_nonzero(evidence.when < now) < self.enough:
            return -math.inf
        return float(np.mean(self._compared(config, *self._looked_at(config, evidence, now))[2]))

    def _compared(
        self, config: ModelConfig, scale: ValueScale, aged: Evidence
    ) -> tuple[list[Explained], list[Explained], list[float]]:
        """Noise models if f changes, the same if it stays, and by how many nats each explains more if it changes.

        Each observation is a point of its own in both, so that they differ in time alone.
        """
        moving, still = (
            [config.explain(Hypothesis(scale, noise), each) for noise in config.noise_models]
            for each in (aged, replace(aged, ages=None))
        )
        return moving, still, [changing.nats - staying.nats for changing, staying in zip(moving, still, strict=True)]

    def looked_at(self, count: int) -> Ints:
        """Indices of those of ``count`` observations that the test is made on."""
        return recent(count, 2 * self.span, self.span)

    def _looked_at(self, config: ModelConfig, evidence: Evidence, now: int) -> tuple[ValueScale, Evidence]:
        """A scale, and in its units the observations of the first ``now`` answers that the test is made on."""
        assert evidence.when is not None
        known = np.flatnonzero(evidence.when < now)
        chosen = known[self.looked_at(known.size)]
        scale = config.scale(evidence.chosen(chosen).exact)
        return scale, scale.standardised(evidence.aged(chosen, now, self.half_life))


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """The last test for drift, and how surprising each answer since then was.

    The test is made at milestones of the number of answers, and at once after surprising answers: when the last five
    are together as far from their prediction, by the root of the sum of squared distances in standard deviations, as
    is out of the question for one (`SURPRISING`). So the result depends on the answers alone. Gaussians that are as
    well known as they seem are that far away once in 7,000 times.
    """

    test: DriftTest
    milestone: int
    tested_at: int
    found: FittedModels | None = None
    """Models with a finite half-life, None if f was found to stay."""
    expected: Learnt | None = None
    """Posterior that answers are compared with."""
    squares: tuple[float, ...] = ()
    """Squared distance of each answer since the test from its prediction."""
    together: int = 5
    """Answers that are looked at together. Decision 0160."""
    farthest: float = 4.0
    """Distance at the most that one answer counts as: a single outlier is no sign of change. Decision 0160."""

    def after(
        self, history: History, config: ModelConfig, milestone: int, still: Callable[[], FittedModels]
    ) -> DriftMonitor:
        """Monitor after all answers; ``still`` fits the models of an f that stays."""
        monitor = self
        if milestone != self.milestone:
            monitor = replace(self, milestone=milestone)._tested(history, config, milestone, still)
        while monitor.expected is not None:
            begin = monitor.tested_at + len(monitor.squares)
            if begin == len(history):
                break
            squares = (*monitor.squares, *monitor._surprises(history, begin))
            sums = np.convolve(squares, np.ones(self.together), "full")[: len(squares)]
            late = np.flatnonzero(sums >= SURPRISING**2)
            if not late.size:
                return replace(monitor, squares=squares)
            monitor = monitor._tested(history, config, monitor.tested_at + int(late[0]) + 1, None)
        return monitor

    def _tested(
        self, history: History, config: ModelConfig, stop: int, still: Callable[[], FittedModels] | None
    ) -> DriftMonitor:
        """Monitor after a test on the first ``stop`` answers; where ``still`` is given, a quick look may be enough."""
        evidence = history.evidence(stop)[0]
        blank = replace(self, tested_at=stop, found=None, expected=None, squares=())
        if self.test.half_life is None and len(evidence) < self.test.enough:
            return blank
        is_likely = still is None or self.test.is_likely(config, evidence, stop)
        models = self.test.fitted(config, evidence, stop) if is_likely or still is None else still()
        if models.is_moving:
            return replace(blank, found=models, expected=learn(models, self.test.current(models, evidence, stop)))
        looked_at = evidence.chosen(self.test.looked_at(len(evidence)))
        return replace(blank, expected=learn(models, models.scale.standardised(looked_at)))

    def _surprises(self, history: History, begin: int) -> Floats:
        """Squared distance of each answer from ``begin`` on from its prediction, 0 for a failure and for a bound."""
        assert self.expected is not None
        models, squares = self.expected.models, np.zeros(len(history) - begin)
        readings = {i: history.reading(begin + i) for i in range(len(squares))}
        good = {i: each for i, each in readings.items() if each.value == each.value and not each.bound}
        if good:
            points = history.points[[history.where(begin + i) for i in good]]
            mean, std = self.expected.process.predict(points)
            mean += self.expected.process.offsets(history.block(begin + i) for i in good)
            squares[list(good)] = [
                models.distance(each.value, each.noise, *at) ** 2
                for each, *at in zip(good.values(), points, mean.tolist(), std.tolist(), strict=True)
            ]
        return np.minimum(squares, self.farthest**2)


def refresh_interval(half_life: float) -> int:
    """Answers after which a posterior of a changing f is made again: a fifth of the half-life, from 5 to 40."""
    return int(np.clip(half_life / 5, 5, 40))
