"""Tracker: the belief about all points met and all candidates, as a function of the history and the seed alone.

What is expensive happens at milestones of the number of arrivals, and from the arrivals up to there: scale, kernel and
noise are fitted at the milestones of ``refit``, trust is weighed and candidates are drawn at those of ``refresh``.
Later arrivals are taken in one by one. So it does not matter when somebody looks, or whether the history was lived
through or told after a restart: the belief is the same, up to rounding. It is made of a bounded number of points, see
`condensing`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from noregret.belief.numerics.threads import threads_for
from noregret.belief.posterior import Floats, Ints
from noregret.decision.playing import child
from noregret.optimizer.model.hypotheses import MANY_SMALL_STEPS, FittedModels, OptimizerConfig
from noregret.optimizer.model.posterior import looking
from noregret.optimizer.model.condensing import Belief, conditioned, essential, predicted
from noregret.optimizer.constraint import Constraint
from noregret.optimizer.model.constraints import Margins, Side
from noregret.optimizer.questions.feasible import penalised
from noregret.optimizer.model.milestones import Fits
from noregret.optimizer.model.drift import Drift, is_moving, of_now
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.history import UNKNOWN, Arrival, History
from noregret.optimizer.space.contexts import Pairs, Within, brought
from noregret.optimizer.space.space import Space

HARDLY = 0.3
"""Trust below which a measurement is doubted."""
NEAR = 1e-6
"""How far rounding may bring the coordinates of params from those of the candidate that they were read from."""


class _Weighed(NamedTuple):
    """What the arrivals up to a milestone amount to."""

    stop: int
    fitted: FittedModels
    left_out: frozenset[int]  # points whose measurements are no part of it
    when: Ints  # the arrival that each observation is, ``stop`` for what is none
    numbers: Ints  # the point of each observation
    values: Floats
    trust: Floats


class Tracker:
    """The current belief, kept up to date when somebody asks for it."""

    def __init__(
        self,
        history: History,
        calibration: OptimizerConfig,
        seed: np.random.SeedSequence,
        constraints: Iterable[Constraint] = (),
        drift: Drift = None,
    ) -> None:
        self._history, self._calibration, self._seed = history, calibration, seed
        self.space = history.space  # where candidates are: all of it, or one context
        self._fits = Fits(history, calibration, drift)
        self._sides = [Side(history, calibration, drift, *numbered) for numbered in enumerate(constraints)]
        self._fitted_at = 0
        self._fitted: FittedModels | None = None  # as of the last milestone for fitting
        self._calibrated: FittedModels | None = None  # the same, its views in the order of the last weighing
        self._weighed: _Weighed | None = None
        self._measured: Belief | None = None  # at the points that were weighed
        self._looked: Belief | None = None  # the same, and what it said of the candidates
        self._belief: Belief | None = None
        self._candidates = np.empty((0, len(history.space.groups)))
        self._arms: dict[int, int] = {}  # the arm of each point that has one
        self._first_candidate = 0  # the arms from here on were mere candidates, or were met since
        self._placed = 0  # points that have an arm or are left out
        self._trust: list[float] = []  # in each arrival; nan for failures and what is left out
        self._suspects: dict[int, float] = {}  # the value of each point whose only measurement is hardly trusted

    def copy(self, history: History) -> Tracker:
        """The same for a copy of the history."""
        twin = copy.copy(self)
        twin._history = history
        twin._fits = self._fits.copy(history)
        twin._sides = [side.copy(history) for side in self._sides]
        twin._belief = None if self._belief is None else self._belief.copy()
        twin._arms, twin._trust, twin._suspects = dict(self._arms), list(self._trust), dict(self._suspects)
        return twin

    def turn_to(self, space: Space) -> None:
        """From now on candidates are in this part of the space, which is all of it or one context."""
        if space != self.space:
            self.space, self._belief = space, None

    @property
    def here(self) -> Ints | None:
        """The arms that are in the context which candidates are in, None where there are no contexts."""
        return np.flatnonzero(self.space.holds(self.belief().arms)) if isinstance(self.space, Within) else None

    @property
    def elsewhere(self) -> Ints:
        """The other arms."""
        here = self.here
        return np.empty(0, dtype=np.intp) if here is None else np.setdiff1d(np.arange(len(self.belief().arms)), here)

    @property
    def constraints(self) -> int:
        """How many there are."""
        return len(self._sides)

    @property
    def calibrated(self) -> FittedModels:
        """Scale and views of the noise, as of the last milestones."""
        self.belief()
        self.margins()  # so that whoever is copied now has drawn all conclusions
        assert self._calibrated is not None
        return self._calibrated

    @property
    def trust(self) -> Floats:
        """Trust in each arrival, nan for failures; in what is left out, as if it came now."""
        belief, arrivals = self.belief(), self._history.arrivals
        trust = np.array(self._trust)
        rest = [i for i in np.flatnonzero(np.isnan(trust)).tolist() if not arrivals[i].failed]
        if rest:
            beliefs = predicted(belief, self._history.points[[arrivals[i].where for i in rest]])
            trust[rest] = [self._arriving(arrivals[i], *at)[2] for i, *at in zip(rest, *beliefs, strict=True)]
        return trust

    def arms(self, numbers: Ints | list[int]) -> Ints:
        """The arms of the belief that these points are, of those that have one."""
        self.belief()
        return np.array([self._arms[int(number)] for number in numbers if int(number) in self._arms], dtype=np.intp)

    def params(self, arm: int) -> Any:
        """The params of an arm of the belief."""
        number = self._number(arm)
        return self.space.decode(self.belief().arms[[arm]])[0] if number is None else self._history.params[number]

    def answered(self, arm: int) -> int:
        """How often an arm of the belief has given a value."""
        number = self._number(arm)
        return 0 if number is None else self._history.answered(number)

    def _number(self, arm: int) -> int | None:
        """The number of the point that this arm is, None if it is a mere candidate."""
        return next((number for number, its in self._arms.items() if its == arm), None)

    def baseline_arm(self) -> int | None:
        """The arm of the belief that the baseline is where candidates are, None if it is none."""
        params = brought(self._history.baseline, self.space)
        number, arms = self._history.number(params), self.belief().arms
        if number in self._arms:
            return self._arms[number]
        near = (np.abs(arms - self.space.encode([params])) <= NEAR).all(axis=1)
        return int(np.argmax(near)) if near.any() else None

    def met(self, arm: int) -> int:
        """The number of the point that this arm is; it is met now if it was a mere candidate."""
        number = self._history.meet(self.params(arm), self.belief().arms[arm])
        self._arms.setdefault(number, arm)
        self._placed = max(self._placed, number + 1)
        return number

    def margins(self) -> Margins:
        """What is believed about each constraint on the arms of the belief, after all arrivals."""
        if not self._sides:
            return []
        arms, stop = self.belief().arms, self._weighed.stop if self._weighed else 0
        return [side.margin(self._fitted_key, stop, arms, self._arms) for side in self._sides]

    @property
    def is_moving(self) -> bool:
        """Whether f is found to change, so that the belief is about now."""
        self.belief()
        return self._moves

    @property
    def is_plain(self) -> bool:
        """Whether values alone say what is best: there are no contexts and no constraints, and nothing is changing."""
        return not (isinstance(self.space, Within) or self._sides or self.is_moving)

    @property
    def _moves(self) -> bool:
        return self._fitted is not None and is_moving(self._fitted)

    @property
    def _fitted_key(self) -> tuple[int, bool]:
        """After how many arrivals the last fit was made, and whether f was found to change."""
        return self._fitted_at, self._moves

    def doubted(self) -> list[int]:
        """Points that are worth a second measurement: the only one would be the best of all, but is hardly trusted.

        Heuristic. A narrow peak and an absurd measurement look alike, and one more measurement tells them apart.
        """
        if not self._suspects:
            return []
        belief, here = self.belief(), self.here
        highest = float(belief.mean[belief.pulled if here is None else here].max())
        possible = set(self.met_here().tolist())
        return [number for number, value in self._suspects.items() if value > highest and number in possible]

    def met_here(self) -> Ints:
        """The numbers of the points in the context which candidates are in; all where there are no contexts."""
        points = self._history.points
        return np.flatnonzero(self.space.holds(points)) if isinstance(self.space, Within) else np.arange(len(points))

    def belief(self, needed: Iterable[int] = ()) -> Belief:
        """What is believed after all arrivals, at least two of which have a value, with the needed points as arms."""
        self._fitted_at, self._fitted, draw_at = self._fits.latest()
        arrivals = len(self._history.arrivals)
        if self._belief is None or self._weighed is None or self._weighed[:2] != (draw_at, self._fitted):
            with threads_for(MANY_SMALL_STEPS):
                self._draw(draw_at, needed)
        else:
            self._place(needed)
        assert self._belief is not None
        while len(self._trust) < arrivals:
            self._take(len(self._trust))
        return self._belief

    def _weigh(self, stop: int) -> None:
        """Weigh the first ``stop`` arrivals."""
        assert self._fitted is not None
        evidence, numbers = self._history.evidence(stop)
        telling, observed = self._of_now(evidence, numbers, stop) if self._moves else self._telling(evidence, numbers)
        self._calibrated, values, trust, self._measured = conditioned(self._fitted, telling)
        assert telling.when is not None
        left_out = frozenset(numbers.tolist()) - frozenset(observed.tolist())
        self._weighed = _Weighed(stop, self._fitted, left_out, telling.when, observed, values, trust)

    def _of_now(self, evidence: Evidence, numbers: Ints, stop: int) -> tuple[Evidence, Ints]:
        """What the belief is made of if f changes, standardised, and the point of each observation."""
        assert self._fitted is not None
        telling = of_now(self._fitted, evidence, stop)
        assert telling.origin is not None
        return telling, numbers[telling.origin]

    def _telling(self, evidence: Evidence, numbers: Ints) -> tuple[Evidence, Ints]:
        """What the belief is made of if f stays as it is, standardised, and the point of each observation."""
        assert self._fitted is not None
        evidence, space = self._fitted.scale.standardised(evidence), self._history.space
        most = self._calibration.exact if space.count > self._calibration.candidates.few else len(numbers)
        anchors = [] if isinstance(space, Pairs) else self._history.anchors  # in contexts there may be ever more
        kept = np.union1d(essential(self._fitted, evidence, most), np.flatnonzero(np.isin(numbers, anchors)))
        telling = evidence.only(kept)
        return telling, numbers[kept][telling.where]

    def _draw(self, stop: int, needed: Iterable[int]) -> None:
        """Draw candidates in the light of the first ``stop`` arrivals."""
        if self._weighed is None or self._weighed[:2] != (stop, self._fitted):
            self._weigh(stop)
        assert self._calibrated is not None
        assert self._measured is not None
        rng, fit = np.random.default_rng(child(self._seed, 1, stop)), self._calibrated.fit
        lengthscales = np.array(fit.lengthscales)[list(self.space.groups)]
        self._looked = looking(self._measured)
        margins = [side.measured(self._fitted_key, stop) for side in self._sides]
        measured = penalised(self._looked, margins)
        calibration, is_within = self._calibration, isinstance(self.space, Within)
        candidates = calibration.candidates_within if is_within else calibration.candidates
        drawn = candidates(self.space, measured, lengthscales, rng)
        self._candidates = np.vstack([self._baseline(), drawn])
        self._build(needed)

    def _baseline(self) -> Floats:
        """The baseline in the context which candidates are in, (1, d); (0, d) if there is no baseline or no context."""
        if self._history.baseline is None or not isinstance(self.space, Within):
            return self._candidates[:0]
        return self.space.encode([brought(self._history.baseline, self.space)])

    def _place(self, needed: Iterable[int]) -> None:
        """Give an arm to every point met since: one of the candidates if it is one, else one of its own."""
        assert self._weighed is not None
        assert self._belief is not None
        recent = (arrival.where for arrival in self._history.arrivals[self._weighed.stop :])
        met = dict.fromkeys([*range(self._placed, len(self._history.params)), *needed, *recent])
        new: list[int] = []
        for number in met:
            if number not in self._arms:
                arm = self._other(number)
                self._arms[number] = len(self._belief.arms) + len(new) if arm is None else arm
                new += [number] if arm is None else []
        self._placed = len(self._history.params)
        if new:
            self._belief = self._belief.at(np.vstack([self._belief.arms, [self._history.point(its) for its in new]]))

    def _other(self, number: int) -> int | None:
        """The arm of the candidate with the params of this point, None if there is none."""
        assert self._belief is not None
        history, arms = self._history, self._belief.arms
        first = self._first_candidate
        near = first + np.flatnonzero((np.abs(arms[first:] - history.point(number)) <= NEAR).all(axis=1))
        key, params = history.space.key(history.params[number]), self.space.decode(arms[near])
        return next((arm for arm, its in zip(near.tolist(), params, strict=True) if self.space.key(its) == key), None)

    def _build(self, needed: Iterable[int] = ()) -> None:
        """The belief on the points met and all other candidates, after the arrivals that were weighed together."""
        assert self._weighed is not None
        stop, _, left_out, when, numbers, values, trust = self._weighed
        arrivals, points = self._history.arrivals, self._history.points
        left_out = left_out.difference(needed, (arrival.where for arrival in arrivals[stop:]))
        shown = [number for number in range(len(points)) if number not in left_out]
        candidates = others(self._candidates, points[[*shown, *left_out.intersection(self._history.hopeless)]])
        self._arms = {number: arm for arm, number in enumerate(shown)}
        arms = np.vstack([points[shown], candidates])
        assert self._looked is not None
        self._belief = self._looked.at(arms)
        self._first_candidate, self._placed = len(shown), len(points)
        self._suspects = _suspects(numbers, values, trust)
        known = np.full(stop + 1, UNKNOWN)
        known[when] = trust
        self._trust = known[:stop].tolist()

    def _take(self, index: int) -> None:
        """One more arrival, trusted as far as it agrees with the belief so far."""
        assert self._belief is not None
        belief, arrival = self._belief, self._history.arrivals[index]
        if arrival.failed:  # it is weighed at the next milestone, and not asked for until then
            self._trust.append(UNKNOWN)
            return
        arm = self._arms[arrival.where]
        standard, noise, trust = self._arriving(arrival, float(belief.mean[arm]), float(belief.std[arm]))
        new = not np.any(belief.pulled == arm)
        belief.update(arm, standard, noise=noise**2 / (belief.ridge * trust))
        self._trust.append(trust)
        self._suspects.pop(arrival.where, None)
        if new and trust < HARDLY:
            self._suspects[arrival.where] = standard

    def _arriving(self, arrival: Arrival, mean: float, std: float) -> tuple[float, float, float]:
        """Standardised value less the prior mean of f, noise and trust of a measurement where this is believed."""
        assert self._calibrated is not None
        return self._calibrated.arriving(arrival.value, arrival.noise, mean, std)


def _suspects(numbers: Ints, values: Floats, trust: Floats) -> dict[int, float]:
    """The value of each point that was measured once, with hardly any trust."""
    single = np.bincount(numbers)[numbers] == 1
    return {int(numbers[i]): float(values[i]) for i in np.flatnonzero(single & (trust < HARDLY))}


def others(candidates: Floats, points: Floats) -> Floats:
    """The candidates that are none of the points, each once: what a point is known for, no copy of it escapes."""
    known = {point.tobytes() for point in points + 0.0}  # -0.0 becomes 0.0, so that equal points have equal bytes
    new = {candidate.tobytes(): i for i, candidate in reversed(list(enumerate(candidates + 0.0)))}
    return candidates[sorted(i for point, i in new.items() if point not in known)]
