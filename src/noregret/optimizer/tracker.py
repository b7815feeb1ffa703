"""Tracker: the belief about all points met and all candidates, as a function of the history and the seed alone.

What is expensive happens at milestones of the number of arrivals, and from the arrivals up to there: scale, kernel and
noise are fitted at the milestones of ``refit``, trust is weighed and candidates are drawn at those of ``refresh``.
Later arrivals are taken in one by one. So it does not matter when somebody looks, or whether the history was lived
through or told after a restart: the belief is the same, up to rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from noregret.belief.exact import ExactGP, ExactPosterior
from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.calibration import MANY_SMALL_STEPS, Calibrated, Calibration
from noregret.optimizer.history import UNKNOWN, History

HARDLY = 0.3
"""Trust below which a measurement is doubted."""


class _Weighed(NamedTuple):
    """What the arrivals up to a milestone amount to."""

    stop: int
    numbers: Ints  # the point of each observation
    values: Floats
    noise: Floats  # factor on the ridge
    trust: Floats


class Tracker:
    """The current belief, kept up to date when somebody asks for it."""

    def __init__(self, history: History, calibration: Calibration, seed: np.random.SeedSequence) -> None:
        self._history, self._calibration, self._seed = history, calibration, seed
        self._fitted_at = 0
        self._fitted: Calibrated | None = None  # as of the last milestone for fitting
        self._calibrated: Calibrated | None = None  # the same, its views in the order of the last weighing
        self._weighed: _Weighed | None = None
        self._belief: ExactPosterior | None = None
        self._candidates = np.empty((0, len(history.space.groups)))
        self._arms: dict[int, int] = {}  # the arm of each point
        self._trust: list[float] = []  # in each arrival, nan for failures
        self._suspects: dict[int, float] = {}  # the value of each point whose only measurement is hardly trusted

    @property
    def calibrated(self) -> Calibrated:
        """Scale and views of the noise, as of the last milestones."""
        self.belief()
        assert self._calibrated is not None
        return self._calibrated

    @property
    def trust(self) -> Floats:
        """Trust in each arrival, nan for failures."""
        self.belief()
        return np.array(self._trust)

    def arms(self, numbers: Ints | list[int]) -> Ints:
        """The arms of the belief that these points are."""
        self.belief()
        return np.array([self._arms[int(number)] for number in numbers], dtype=np.intp)

    def params(self, arm: int) -> Any:
        """The params of an arm of the belief."""
        number = next((number for number, its in self._arms.items() if its == arm), None)
        if number is not None:
            return self._history.params[number]
        return self._history.space.decode(self.belief().arms[[arm]])[0]

    def met(self, arm: int) -> int:
        """The number of the point that this arm is; it is met now if it was a mere candidate."""
        number = self._history.meet(self.params(arm), self.belief().arms[arm])
        self._arms.setdefault(number, arm)
        return number

    def doubted(self) -> list[int]:
        """Points that are worth a second measurement: the only one would be the best of all, but is hardly trusted.

        Heuristic. A narrow peak and an absurd measurement look alike, and one more measurement tells them apart.
        """
        if not self._suspects:
            return []
        belief = self.belief()
        highest = float(belief.mean[belief.pulled].max())
        return [number for number, value in self._suspects.items() if value > highest]

    def belief(self) -> ExactPosterior:
        """What is believed after all arrivals, of which at least two must have a value."""
        arrivals, first = len(self._history.arrivals), self._calibration.first(self._history.space)
        first = max(first, self._history.usable)
        fit_at = milestone(arrivals, first, *self._calibration.refit)
        draw_at = max(fit_at, milestone(arrivals, first, *self._calibration.refresh))
        if fit_at != self._fitted_at:
            self._fitted = self._calibration.calibrated(self._history.evidence(fit_at)[0])
            self._fitted_at = fit_at
        if self._weighed is None or self._weighed.stop != draw_at:
            with threads_for(MANY_SMALL_STEPS):
                self._redraw(draw_at)
        elif len(self._arms) < len(self._history.params):
            self._build()
        assert self._belief is not None
        while len(self._trust) < arrivals:
            self._take(len(self._trust))
        return self._belief

    def _redraw(self, stop: int) -> None:
        """Weigh the first ``stop`` arrivals, and draw candidates in the light of them."""
        evidence, numbers = self._history.evidence(stop)
        assert self._fitted is not None
        evidence = self._fitted.scale.standardised(evidence)
        self._calibrated, trust = self._fitted.weighed(evidence)
        fit = self._calibrated.fit
        noise = evidence.variance(fit.noise**2) / (fit.noise**2 * trust)
        self._weighed = _Weighed(stop, numbers[evidence.where], evidence.values - fit.centre, noise, trust)
        self._model = ExactGP(fit.kernel(evidence.groups), fit.noise**2)
        measured = self._model.prior(evidence.points)
        measured.update(evidence.where, self._weighed.values, noise=noise)
        rng = np.random.default_rng(child(self._seed, 1, stop))
        lengthscales = np.array(fit.lengthscales)[evidence.groups]
        self._candidates = self._calibration.candidates(self._history.space, measured, lengthscales, rng)
        self._build()

    def _build(self) -> None:
        """The belief on all points met and all other candidates, after the arrivals that were weighed together."""
        assert self._weighed is not None
        stop, numbers, values, noise, trust = self._weighed
        points = self._history.points
        self._belief = self._model.prior(np.vstack([points, others(self._candidates, points)]))
        self._belief.update(numbers, values, noise=noise)
        self._arms = {number: number for number in range(len(points))}
        self._suspects = _suspects(numbers, values, trust)
        measured = iter(trust.tolist())
        self._trust = [UNKNOWN if arrival.failed else next(measured) for arrival in self._history.arrivals[:stop]]

    def _take(self, index: int) -> None:
        """One more arrival, trusted as far as it agrees with the belief so far."""
        assert self._belief is not None
        assert self._calibrated is not None
        belief, calibrated = self._belief, self._calibrated
        scale, fit = calibrated.scale, calibrated.fit
        where, value, told = arrival = self._history.arrivals[index]
        if arrival.failed:  # it is weighed at the next milestone, and not asked for until then
            self._trust.append(UNKNOWN)
            return
        arm, standard = self._arms[where], float(scale.standard(np.array(value))) - fit.centre
        noise = fit.noise if told != told else float(scale.standard_noise(np.array(told)))
        trust = calibrated.weighing.arriving(standard - float(belief.mean[arm]), float(belief.std[arm]), noise)
        new = not np.any(belief.pulled == arm)
        belief.update(arm, standard, noise=noise**2 / (fit.noise**2 * trust))
        self._trust.append(trust)
        self._suspects.pop(where, None)
        if new and trust < HARDLY:
            self._suspects[where] = standard


def _suspects(numbers: Ints, values: Floats, trust: Floats) -> dict[int, float]:
    """The value of each point that was measured once, with hardly any trust."""
    single = np.bincount(numbers)[numbers] == 1
    return {int(numbers[i]): float(values[i]) for i in np.flatnonzero(single & (trust < HARDLY))}


def others(candidates: Floats, points: Floats) -> Floats:
    """The candidates that are none of the points, each once: what a point is known for, no copy of it escapes."""
    known = {point.tobytes() for point in points + 0.0}  # -0.0 becomes 0.0, so that equal points have equal bytes
    new = {candidate.tobytes(): i for i, candidate in reversed(list(enumerate(candidates + 0.0)))}
    return candidates[sorted(i for point, i in new.items() if point not in known)]


@lru_cache(maxsize=16)
def milestone(count: int, first: int, eager: int, growth: float) -> int:
    """The last milestone not above ``count``, or ``count`` itself before the first one.

    From one milestone m to the next it is m / eager of m, at least 1 and at most what makes it grow by ``growth``: they
    are close at first, when a measurement changes much and costs little, and later evenly spaced in ln m.
    """
    at = min(count, first)
    while (after := at + max(1, int(at * min(at / eager, growth - 1)))) <= count:
        at = after
    return at


def child(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """A stream of its own for each key."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
