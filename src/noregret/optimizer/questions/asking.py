"""Asking: which point to measure next, with some answers still out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from noregret.belief.posterior import Floats, Ints, Rng
from noregret.decision.playing import child
from noregret.decision.rules import log_expected_improvement
from noregret.optimizer.model.hypotheses import OptimizerConfig
from noregret.optimizer.questions.candidates import sobol
from noregret.optimizer.questions.explore import Kind, Score, hole, sought, unexplored_from
from noregret.optimizer.model.posterior import looking
from noregret.optimizer.questions.baseline import SHARE, is_worth_measuring
from noregret.optimizer.model.condensing import Belief
from noregret.optimizer.model.constraints import FAINT, Margins, log_chances, log_chances_at
from noregret.optimizer.questions.feasible import POSSIBLE, among_likely, question_scores, recommended
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.history import History
from noregret.optimizer.space.contexts import brought
from noregret.optimizer.model.current import Tracker

PATIENCE = 10
"""A trial is taken for lost when so many times more answers came since than trials were out with it."""

SMALL, OFTEN, INSTEAD = 50, 8, 4
"""In a space of at most so many settings, where one that was measured so often would be measured again, each question
whose number this divides is for one that is unexplored."""

EXACT = 0.01
"""There is next to no noise if it is at most this part of what f varies by."""

TIE = 1e-9
"""Scores that differ by a smaller part are equal: rounding must not choose."""


class _Out(NamedTuple):
    """A trial that is out: its point, and the number of arrivals after which it is taken for lost."""

    number: int
    lost_at: int


class Asking:
    """Chooses points, and keeps account of the trials that are out."""

    def __init__(
        self, history: History, tracker: Tracker, calibration: OptimizerConfig, seed: np.random.SeedSequence
    ) -> None:
        self._history, self._tracker, self._calibration, self._seed = history, tracker, calibration, seed
        self._out: dict[int, _Out] = {}
        self._ahead: list[Belief] = []  # the beliefs as if those in _taken had been measured
        self._ahead_of: tuple[Belief, int] | None = None
        self._taken: list[int] = []

    def copy(self, history: History, tracker: Tracker) -> Asking:
        """The same for copies of history and tracker."""
        twin = Asking(history, tracker, self._calibration, self._seed)
        twin._out = dict(self._out)
        return twin

    @property
    def out(self) -> dict[int, int]:
        """The points of the trials that are out and not lost, by the trials' ids."""
        arrivals = len(self._history.arrivals)
        return {id: out.number for id, out in self._out.items() if arrivals < out.lost_at}

    def take_over(self, other: Asking, fewer: int, numbers: Mapping[int, int]) -> None:
        """The trials of another that are out and not lost, so many arrivals being forgotten and points renumbered."""
        self._out = {id: _Out(numbers[place], other._out[id].lost_at - fewer) for id, place in other.out.items()}

    def sent(self, id: int, number: int) -> None:
        """A trial at this point is out."""
        with_it = len(self._outstanding()) + 1
        self._out[id] = _Out(number, len(self._history.arrivals) + PATIENCE * with_it)

    def back(self, id: int) -> None:
        """An answer to this trial has come."""
        self._out.pop(id, None)

    def oldest(self, number: int) -> int | None:
        """The first trial out at this point, None if there is none."""
        return next((id for id, out in self._out.items() if out.number == number), None)

    def next_point(self) -> int:
        """The number of the point to measure next."""
        out, first = self._outstanding(), self._calibration.first(self._history.space)
        known, measured = len(self._history.arrivals) + len(out), self._history.measured
        if self._history.baseline is not None and not any(self._is_begun(each, out) for each in self._history.anchors):
            return self._history.meet(brought(self._history.baseline, self._tracker.space))
        if measured < 2 or known < first:
            unmet = self._design(known)
            if unmet is not None:
                return unmet
        return self._again(known) if measured < 2 else self._chosen(out)

    def _is_begun(self, number: int, out: list[int]) -> bool:
        return number in out or self._history.is_answered(number)

    def _outstanding(self) -> list[int]:
        """Points of the trials that are out and not lost."""
        return list(self.out.values())

    def _design(self, index: int) -> int | None:
        """Point ``index`` of a Sobol sequence, or the next one that has not been met, None if there is none.

        Where there are few points in all, those come last that are nearest to none of the sequence.
        """
        space, seed = self._tracker.space, int(self._seed.generate_state(1)[0])
        count = max(64, 2 << index.bit_length())  # few different lengths, each drawn once
        points = space.snap(sobol(count, len(space.groups), seed))[index:]
        if space.count <= self._calibration.candidates.few:
            points = np.vstack([points, space.everything()])
        for point, params in zip(points, space.decode(points), strict=True):
            if self._history.number(params) is None:
                return self._history.meet(params, point)
        return None

    def _again(self, index: int) -> int:
        """One of the points met, in turn: of those that may give a value, if there are any."""
        met = self._tracker.met_here()
        hopeful = np.setdiff1d(met, self._history.unproven)
        choices = hopeful if hopeful.size else met
        return int(choices[index % choices.size])

    def _chosen(self, out: list[int]) -> int:
        """The point that scores highest, as if all trials out had come back as expected."""
        belief, hopeless = self._tracker.belief(needed=out), self._tracker.arms(self._history.hopeless)
        margins, known = self._tracker.margins(), len(self._history.arrivals) + len(out)
        kind = self._calibration.exploring.turn(known, self._tracker.calibrated.fit)
        due = self._due(belief, margins, out) if kind is None else None
        if due is not None:
            return due
        rng, (ahead, margins) = self._rng(out), self._looked_ahead(belief, margins, out)
        found = None if kind is None else self._explored(kind, ahead, margins, rng)
        if found is not None:
            if found not in self._history.hopeless:
                return found
            upper = self._calibration.exploring.upper(ahead.mean, ahead.std)
            scores = upper + log_chances(margins, len(upper)) if margins else upper
        else:
            rule = self._calibration.asks_by(self._tracker.space, self._tracker.is_moving)
            scores = question_scores(rule, ahead, margins, rng, self._tracker.here)
        scores[self._tracker.elsewhere] = -np.inf
        for unwanted in (hopeless, self._tracker.arms(out)) if self._is_exact else (hopeless,):
            if np.count_nonzero(np.delete(scores, unwanted) > -np.inf):
                scores[unwanted] = -np.inf
        highest = scores.max()
        arm = int(np.argmax(scores >= highest - TIE * abs(highest)))
        instead = self._instead(arm, ahead, margins, known) if kind is None else None
        return self._tracker.met(arm) if instead is None else instead

    @property
    def _is_exact(self) -> bool:
        """Whether there is next to no noise, so that a second measurement of a setting tells nothing."""
        fit = self._tracker.calibrated.fit
        return fit.noise <= EXACT * fit.size

    def _due(self, belief: Belief, margins: Margins, out: list[int]) -> int | None:
        """A point that is to be measured again, whatever else is promising.

        It is one that refutes all that was asked of late, one that is doubted, or the baseline.
        """
        if self._tracker.is_plain and len(self._history.arrivals) > self._calibration.exploring.after:
            better = self._history.account.refuting()
            if better is not None:
                return better
        chances = log_chances(margins, len(belief.arms))
        for number in self._tracker.doubted():
            if number not in out and chances[self._tracker.arms([number])[0]] >= math.log(POSSIBLE):
                return number
        return self._baseline_due(belief, margins, out)

    def _baseline_due(self, belief: Belief, margins: Margins, out: list[int]) -> int | None:
        """The baseline if it is worth another measurement here, and few of the questions have gone there; else None."""
        anchors, known = self._history.anchors, len(self._history.arrivals) + len(out)
        measured = sum(self._history.answered(number) + out.count(number) for number in anchors)
        if not anchors or measured > SHARE * known:
            return None
        baseline = self._tracker.baseline_arm()
        if baseline is None or baseline in self._tracker.arms(self._history.unproven):
            return None
        ahead, margins = self._looked_ahead(belief, margins, out)
        lower = ahead.mean - self._calibration.caution(ahead) * ahead.std
        lower[self._tracker.elsewhere] = -np.inf
        is_due = is_worth_measuring(ahead, recommended(lower, margins), baseline)
        return self._tracker.met(baseline) if is_due else None

    def _rng(self, out: list[int]) -> Rng:
        return np.random.default_rng(child(self._seed, 2, len(self._history.arrivals), len(out)))

    def _explored(self, kind: Kind, belief: Belief, margins: Margins, rng: Rng) -> int | None:
        """The point of an exploring question, None where there is nothing left to explore."""
        space, exploring = self._tracker.space, self._calibration.exploring
        likely = among_likely(belief, margins, self._tracker.here)
        match kind:
            case "again" if self._tracker.is_plain:
                return self._history.account.contender()
            case "leap":
                point = exploring.leap(space, likely, rng)
                return self._history.meet(space.decode(point[None])[0], point)
            case "hole" | "again":
                return self._hole(belief, margins)
            case "bold" | "rough":
                point = self._doubtful(kind, belief, margins, likely.pulled, rng)
                return self._history.meet(space.decode(point[None])[0], point)

    def _hole(self, belief: Belief, margins: Margins, least: float = 0.0) -> int | None:
        """The point farthest from all that was measured, farther than this; None if there is none."""
        places = np.delete(np.arange(len(belief.arms)), self._tracker.elsewhere)
        worthwhile = log_chances(margins, len(belief.arms))[places] >= math.log(FAINT)
        measured = belief.arms[belief.pulled] if self._tracker.is_moving else self._history.points
        place = hole(belief.arms[places], measured, worthwhile, least)
        return None if place is None else self._tracker.met(int(places[place]))

    def _instead(self, arm: int, belief: Belief, margins: Margins, known: int) -> int | None:
        """A setting that is unexplored or may be better, now and then, where one is asked for that was measured often.

        Only in a small space, where a few more measurements leave nothing open: until then nobody can stop. Else None.
        """
        space = self._tracker.space
        if known % INSTEAD or space.count > SMALL or self._tracker.answered(arm) < OFTEN:
            return None
        unexplored = self._hole(belief, margins, unexplored_from(max(space.groups) + 1))
        return self._rival(arm, belief, margins) if unexplored is None else unexplored

    def _rival(self, arm: int, belief: Belief, margins: Margins) -> int | None:
        """The point that most likely is better than an arm; None if none is within two standard deviations of it."""
        upper = belief.mean + 2 * belief.std
        upper[[arm, *self._tracker.elsewhere, *self._tracker.arms(self._history.hopeless)]] = -np.inf
        upper[log_chances(margins, len(upper)) < math.log(FAINT)] = -np.inf
        rival = int(np.argmax(upper))
        return self._tracker.met(rival) if upper[rival] > belief.mean[arm] else None

    def _doubtful(self, kind: Kind, belief: Belief, margins: Margins, arms: Ints, rng: Rng) -> Floats:
        """Where the improvement on the best of the arms would be largest, if f were not what was fitted, (d,)."""
        space, highest = self._tracker.space, float(belief.mean[arms].max())
        fit = self._calibration.exploring.doubting(kind, self._tracker.calibrated.fit, highest)
        score = self._improvement(belief, fit, margins, arms)
        return sought(space, belief.arms[arms], np.array(fit.lengthscales)[list(space.groups)], score, rng)

    def _improvement(self, belief: Belief, fit: Fit, margins: Margins, arms: Ints) -> Score:
        """ln(expected improvement on the best of the arms * P(feasible)) at points, if f had another fit."""
        other = looking(belief.under(fit.kernel(np.array(self._tracker.space.groups))))
        incumbent = float(other.predict(belief.arms[arms])[0].max()) + self._calibration.exploring.margin * fit.size

        def score(points: Floats) -> Floats:
            mean, std = other.predict(points)
            return np.asarray(log_expected_improvement(mean - incumbent, std) + log_chances_at(margins, points))

        return score

    def _looked_ahead(self, belief: Belief, margins: Margins, out: list[int]) -> tuple[Belief, Margins]:
        """The beliefs as if these points had been measured and come back as expected."""
        if not out:
            return belief, margins
        known = [margin for margin in margins if margin is not None]
        if self._ahead_of != (belief, belief.rounds) or out[: len(self._taken)] != self._taken:
            self._ahead = [belief.copy(), *(margin.belief.copy() for margin in known)]
            self._ahead_of, self._taken = (belief, belief.rounds), []
        for ahead in self._ahead:
            ahead.update(self._tracker.arms(out[len(self._taken) :]))
        self._taken = out
        followers = iter(self._ahead[1:])
        return self._ahead[0], [None if m is None else m._replace(belief=next(followers)) for m in margins]
