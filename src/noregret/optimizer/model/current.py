"""Snapshot: everything that questions and answers are computed from, as a pure function of history, seed and space.

Expensive steps happen at milestones of the number of answers, on the answers up to there: scale, kernel and noise are
fitted at the milestones of ``refit``; trust is weighed and candidates are drawn at those of ``refresh``. Later answers
are added to the posterior one by one. So it does not matter when it is computed, or whether the history was lived
through or loaded after a restart: the result is the same, up to rounding.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np

from noregret.belief.posterior import Floats, Ints
from noregret.decision.playing import child
from noregret.optimizer.checking import UNKNOWN, Constraint
from noregret.optimizer.model.constraints import RECOMMEND, Margin, Margins, log_feasible, log_feasible_at
from noregret.optimizer.model.drift import Drift, DriftMonitor, DriftTest, refresh_interval
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.history import Arrival, History
from noregret.optimizer.model.hypotheses import FittedModels, ModelConfig, milestone
from noregret.optimizer.model.learning import Learnt, learn, representative
from noregret.optimizer.model.posterior import Posterior
from noregret.optimizer.model.safety import Safety, safety
from noregret.optimizer.model.step import LevelShift, find_step
from noregret.optimizer.model.transforms import Logarithms, RobustScale
from noregret.optimizer.space.contexts import ContextSpace, FixedContext, with_context
from noregret.optimizer.space.space import Bools, Space

LOG = logging.getLogger("noregret")

SAME = 1e-6
"""Distance by which rounding may move the coordinates of params from those of their candidate."""

CANDIDATE = -1
"""Number that stands for an arm which is no point of the history."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State after all answers, about all settings or those of one context.

    Parameters
    ----------
    history : History
    space : Space
        Where candidates are: all of the space, or one context.
    models : FittedModels
    belief : Posterior
        Of f less its prior mean, in standardised units, at the arms: points of the history, and candidates.
    numbers : (N,) ints
        Point of the history that each arm is, `CANDIDATE` for the others.
    margins : Margins
        Of each constraint, at the same arms.
    learnt : Learnt
        Posterior after the answers up to the last milestone.
    trust : (n,) floats
        In each answer, nan for failures and what is left out.
    safety : Safety or None
        Of questions that must meet the constraints.
    step : LevelShift or None
        Change of the machine that the models assume.
    objectives : tuple of Snapshot
        With several objectives, the snapshot of each, None for one with fewer than two values. This one is then that of
        the first that has them.
    """

    history: History
    space: Space
    models: FittedModels
    belief: Posterior
    numbers: Ints
    margins: Margins
    learnt: Learnt
    trust: Floats
    safety: Safety | None = None
    step: LevelShift | None = None
    objectives: tuple[Snapshot | None, ...] = ()

    @cached_property
    def in_context(self) -> Bools:
        """True for the arms that are in the context and meet ``require``; others are evidence only."""
        return self.space.holds(self.belief.arms)

    @cached_property
    def allowed(self) -> Bools:
        """True for the arms in the context that are not hopeless; for all in the context if all are hopeless.

        With ``safe``, of these the safe ones and the baseline.
        """
        hopeless = self.history.hopeless
        hopeful = self.in_context & ~np.isin(self.numbers, hopeless) if hopeless.size else self.in_context
        hopeful = hopeful if hopeful.any() else self.in_context
        return hopeful if self.safety is None else self._safe(self.safety, hopeful)

    @property
    def recommendable(self) -> Bools:
        """True for the arms in the context that may be recommended: with ``safe``, safe ones and the baseline."""
        return self.in_context if self.safety is None else self._safe(self.safety, self.in_context, to_recommend=True)

    def _safe(self, safety: Safety, among: Bools, to_recommend: bool = False) -> Bools:
        safe, baseline = among.copy(), self.baseline_arm()
        safe[among] = safety.holds(self.belief.arms[among], to_recommend)
        if baseline is not None:
            safe[baseline] = True
        return safe

    def permits(self, asked: int | Floats) -> bool:
        """Return True if an arm, or the point with these coordinates, may be asked for."""
        if self.safety is None:
            return True
        return bool(self.allowed[asked] if isinstance(asked, int) else self.safety.holds(asked[None])[0])

    @cached_property
    def log_feasible(self) -> Floats:
        """Log probability that all constraints are met at each arm, (N,)."""
        return log_feasible(self.margins, len(self.numbers))

    @cached_property
    def incumbents(self) -> Ints:
        """Arms that an improvement is counted over: the measured ones, of these the likely feasible or likeliest.

        In a context all of its arms: few of them have been measured, but other contexts tell about them.
        """
        found = self.belief.pulled[self.in_context[self.belief.pulled]]
        if not found.size or (isinstance(self.space, FixedContext) and not self.in_context.all()):
            found = np.flatnonzero(self.in_context)
        if not self.margins:
            return found
        chances = self.log_feasible[found]
        return np.asarray(found[chances >= min(math.log(RECOMMEND), float(chances.max()))])

    @property
    def is_moving(self) -> bool:
        """True if f is found to change."""
        return self.models.is_moving

    def arms(self, numbers: Iterable[int]) -> Ints:
        """Arms of these points, of those that have one."""
        return np.flatnonzero(np.isin(self.numbers, list(numbers)))

    def baseline_arm(self) -> int | None:
        """Arm of the baseline in this space, None if it is none."""
        params = with_context(self.history.baseline, self.space)
        number = self.history.number(params)
        arms = self.arms([number]) if number is not None else np.empty(0, dtype=np.intp)
        if not arms.size:
            arms = np.flatnonzero((np.abs(self.belief.arms - self.space.encode([params])) <= SAME).all(axis=1))
        return int(arms[0]) if arms.size else None

    def params(self, arm: int) -> Any:
        """Params of an arm."""
        number = int(self.numbers[arm])
        return self.space.decode(self.belief.arms[[arm]])[0] if number == CANDIDATE else self.history.params[number]

    def log_feasible_at(self, points: Floats) -> Floats:
        """Log probability that all constraints are met at (n, d) points, (n,)."""
        return log_feasible_at(self.margins, points)

    def all_trust(self) -> Floats:
        """Trust in each answer, nan for failures; in what is left out, as if it came now."""
        trust, arrivals = self.trust.copy(), self.history.arrivals
        rest = [i for i in np.flatnonzero(np.isnan(trust)).tolist() if arrivals[i].value == arrivals[i].value]
        if rest:
            points = self.history.points[[arrivals[i].where for i in rest]]
            at = self.belief.predict(points)
            trust[rest] = [
                self.models.arriving(arrivals[i].value, arrivals[i].noise, point, mean, std, arrivals[i].bound)[2]
                for i, point, mean, std in zip(rest, points, *(column.tolist() for column in at), strict=True)
            ]
        return trust


class Fitted(NamedTuple):
    """Number of answers of the last fit, its models, the number of answers that are weighed together, and a step."""

    at: int
    models: FittedModels
    weigh: int
    step: LevelShift | None = None


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Posterior after the first ``stop`` answers, of the values and of each constraint."""

    stop: int
    fitted: FittedModels
    values: Learnt
    row_numbers: Ints
    """Point of each row."""
    observed: Ints
    """Answer of each observation, ``stop`` for those that are none."""
    left_out: frozenset[int]
    """Points whose observations are no part of it."""
    constraints: list[Learnt | None]
    step: LevelShift | None


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Posteriors at the arms after the first answers."""

    space: Space
    belief: Posterior
    numbers: Ints
    placed: int
    """Number of points that have an arm or are left out."""
    constraints: list[Posterior | None]
    first_trust: Floats
    """Trust in each of the first answers, nan for failures and what is left out."""
    later_trust: tuple[float, ...] = ()

    @property
    def answers(self) -> int:
        """Number of answers that it is made of."""
        return len(self.first_trust) + len(self.later_trust)


class CurrentBelief:
    """Computes snapshots. Its fields cache the last result of each step; none of them is ever changed in place."""

    def __init__(
        self,
        space: Space,
        config: ModelConfig,
        seed: np.random.SeedSequence,
        constraints: Iterable[Constraint] = (),
        drift: Drift = None,
        risks: Sequence[float | None] | None = None,
    ) -> None:
        self._space, self._config, self._seed, self._constraints = space, config, seed, tuple(constraints)
        self._risks, self._safety = risks, cast(Safety | None, None)
        self._test = DriftTest(drift if isinstance(drift, float) else None)
        self._monitor = None if drift is None else DriftMonitor(self._test)
        self._still: tuple[int, FittedModels, LevelShift | None] | None = None
        self._constraint_fits: tuple[int, bool, list[FittedModels | None]] | None = None
        self._weighed: _Weighed | None = None
        self._drawn: _Drawn | None = None

    @property
    def space(self) -> Space:
        """Space of the last snapshot, or all of it."""
        return self._space if self._drawn is None else self._drawn.space

    def share_constraints(self, other: CurrentBelief) -> None:
        """Use the fits of the constraints that another belief about the same answers has made."""
        self._constraint_fits = other._constraint_fits

    def snapshot(self, history: History, space: Space, needed: Iterable[int] = ()) -> Snapshot:
        """State after all answers, at least two of which have a value, with the ``needed`` points among the arms."""
        fitted, needed = self.fitted(history), tuple(needed)
        if self._risks is not None and (self._safety is None or self._safety.answers != len(history.arrivals)):
            fits = self._fit_constraints(history, fitted.at, fitted.models.is_moving)
            self._safety = safety(history, self._constraints, self._risks, fits)
        weighed, drawn = self._weighed, self._drawn
        if weighed is None or weighed.stop != fitted.weigh or weighed.fitted is not fitted.models:
            weighed, drawn = self._weigh(history, fitted), None
        if drawn is None or (drawn.space is not space and drawn.space != space):
            drawn = self._draw(history, space, weighed, needed)
        drawn = self._place(history, drawn, weighed, needed)
        for index in range(drawn.answers, len(history.arrivals)):
            drawn = self._take(drawn, weighed, history.arrivals[index])
        self._weighed, self._drawn = weighed, drawn
        learnt, margins = weighed.values, self._margins(weighed, drawn.constraints)
        trust = np.concatenate([drawn.first_trust, drawn.later_trust])
        return Snapshot(
            *(history, space, learnt.models, drawn.belief, drawn.numbers, margins, learnt, trust),
            safety=self._safety,
            step=weighed.step,
        )

    def fitted(self, history: History) -> Fitted:
        """Fit to the answers up to the last milestone, or since f was last found to change."""
        answers, config = len(history.arrivals), self._config
        first = max(config.first(self._space), history.usable)
        at = config.fitted_from(answers, history.usable, self._space)
        if self._monitor is not None:
            test_at = max(at, milestone(answers, first, *config.drift_milestones))
            self._monitor = self._monitor.after(history, config, test_at, partial(self._if_still, history, at))
            found = self._monitor.found
            if found is not None:
                since = self._monitor.tested_at
                return Fitted(since, found, answers - (answers - since) % refresh_interval(found.fit.half_life))
        weigh = max(at, milestone(answers, first, *config.refresh, config.longest))
        if history.runs:  # a report takes the place of an earlier one, which may be part of the posterior
            weigh = answers
        models = self._if_still(history, at)
        return Fitted(at, models, weigh, self._still[2] if self._still else None)

    def _if_still(self, history: History, stop: int) -> FittedModels:
        """Fit to the first ``stop`` answers if f stays; the machine may have changed."""
        if self._still is None or self._still[0] != stop:
            evidence, numbers = history.evidence(stop)
            models, step = self._config.calibrated(evidence), None
            if self._monitor is None and history.baseline_points:
                baseline = np.flatnonzero(np.isin(numbers, history.baseline_points))
                models, step = find_step(self._config.calibrated, evidence, baseline, models) or (models, None)
            self._still = stop, models, step
            fit = models.fit
            LOG.debug("fitted after %d answers: noise %.3g, lengthscales %s", stop, fit.noise, fit.lengthscales)
        return self._still[1]

    def _weigh(self, history: History, fitted: Fitted) -> _Weighed:
        """Weigh the answers up to the milestone."""
        evidence, numbers = history.evidence(fitted.weigh)
        evidence = fitted.step.removed(evidence) if fitted.step else evidence
        has_contexts = isinstance(self._space, ContextSpace)  # there may be ever more of them, each with a baseline
        always = np.isin(numbers, [] if has_contexts else history.baseline_points)
        kept, points = self._kept(fitted.models, evidence, fitted.weigh, always)
        learnt, row_numbers = learn(fitted.models, kept), numbers[points]
        left_out = frozenset(numbers.tolist()) - frozenset(row_numbers.tolist())
        assert kept.when is not None
        constraints = [self._learn_constraint(history, fitted, index) for index in range(len(self._constraints))]
        observed = kept.when
        return _Weighed(fitted.weigh, fitted.models, learnt, row_numbers, observed, left_out, constraints, fitted.step)

    def _kept(self, models: FittedModels, evidence: Evidence, stop: int, always: Bools) -> tuple[Evidence, Ints]:
        """Standardised observations that a posterior is made of, and the point of each of its rows."""
        if models.is_moving:
            current = self._test.current(models, evidence, stop)
            assert current.origin is not None
            return current, current.origin
        evidence = models.scale.standardised(evidence)
        is_small = self._space.count <= self._config.candidates.few
        most = len(evidence.points) if is_small else self._config.exact
        points = np.union1d(representative(models, evidence, most), np.flatnonzero(always))
        return evidence.only(points), points

    def _learn_constraint(self, history: History, fitted: Fitted, index: int) -> Learnt | None:
        """Posterior of a constraint after the answers up to the milestone; None if fewer than two have its number."""
        models = self._fit_constraints(history, fitted.at, fitted.models.is_moving)[index]
        if models is None:
            return None
        evidence = history.numbers(index, self._constraints[index].sign, fitted.weigh)
        return learn(models, self._kept(models, evidence, fitted.weigh, np.zeros(len(evidence.points), dtype=bool))[0])

    def _fit_constraints(self, history: History, stop: int, is_moving: bool) -> list[FittedModels | None]:
        """Models of each constraint, fitted where those of the values were; a constraint has no logarithm."""
        if self._constraint_fits is None or self._constraint_fits[:2] != (stop, is_moving):
            config = replace(self._config, logarithms=Logarithms(gaps=()))
            if self._risks is not None:  # the bound must not be where numbers count as less bad than they are
                config = replace(config, scale=RobustScale(bend=math.inf))
            found: list[FittedModels | None] = []
            for index, constraint in enumerate(self._constraints):
                evidence = history.numbers(index, constraint.sign, stop)
                if len(evidence) < 2:
                    found.append(None)
                else:
                    found.append(
                        self._test.fitted(config, evidence, stop) if is_moving else config.calibrated(evidence)
                    )
            self._constraint_fits = stop, is_moving, found
        return list(self._constraint_fits[2])

    def _draw(self, history: History, space: Space, weighed: _Weighed, needed: tuple[int, ...]) -> _Drawn:
        """Draw candidates, and compute the posteriors at these and at the points of the history."""
        rng, process = np.random.default_rng(child(self._seed, 1, weighed.stop)), weighed.values.process
        lengthscales = np.array(weighed.values.models.fit.lengthscales)[list(space.groups)]
        measured = process.rows.points[np.sort(np.unique(weighed.row_numbers, return_index=True)[1])]
        draw = self._config.candidates_within if isinstance(space, FixedContext) else self._config.candidates
        penalty = partial(log_feasible_at, self._margins(weighed, [its and its.process for its in weighed.constraints]))
        safe = self._safety
        if safe is not None:
            drawn = draw(space, process, measured, lengthscales, rng, lambda at: penalty(at) + safe.penalty(at))
        else:
            drawn = draw(space, process, measured, lengthscales, rng, penalty if weighed.constraints else None)
        points = history.points
        left_out = weighed.left_out.difference(needed, (each.where for each in history.arrivals[weighed.stop :]))
        shown = np.array([number for number in range(len(points)) if number not in left_out], dtype=np.intp)
        first, lifted = drawn
        if history.baseline is not None and isinstance(space, FixedContext):
            baseline = space.encode([with_context(history.baseline, space)])
            first, lifted = np.vstack([baseline, first]), np.hstack([process.lifted(baseline), lifted])
        new = unknown(first, points[[*shown, *left_out.intersection(history.hopeless.tolist())]])
        arms = np.vstack([points[shown], first[new]])
        row_arms = np.searchsorted(shown, weighed.row_numbers)
        belief = process.at(arms, row_arms, np.hstack([process.lifted(points[shown]), lifted[:, new]]))
        noise = weighed.values.models.noise_variance(arms)
        belief = replace(belief, ridge=noise, rounds=len(weighed.observed))
        numbers = np.concatenate([shown, np.full(len(new), CANDIDATE)])
        constraints = [None if its is None else self._constraint_at(its, arms) for its in weighed.constraints]
        trust = np.full(weighed.stop + 1, UNKNOWN)
        trust[weighed.observed] = weighed.values.trust
        return _Drawn(space, belief, numbers, len(points), constraints, trust[: weighed.stop])

    def _constraint_at(self, learnt: Learnt, arms: Floats) -> Posterior:
        nowhere = np.full(len(learnt.process.rows.values), CANDIDATE)
        return replace(learnt.process.at(arms, nowhere), ridge=learnt.models.fit.noise**2)

    def _place(self, history: History, drawn: _Drawn, weighed: _Weighed, needed: tuple[int, ...]) -> _Drawn:
        """Give an arm to every point met since: the candidate that it is, or a new one."""
        recent = (arrival.where for arrival in history.arrivals[drawn.answers :])
        met = dict.fromkeys([*range(drawn.placed, len(history.params)), *needed, *recent])
        missing = [number for number in met if number not in drawn.numbers]
        if not missing:
            return replace(drawn, placed=len(history.params))
        numbers, belief, new = drawn.numbers.copy(), drawn.belief, []
        for number in missing:
            arm = self._candidate(history, drawn, numbers, number)
            if arm is None:
                new.append(number)
            else:
                numbers[arm] = number
        constraints = drawn.constraints
        if new:
            points = np.array([history.point(number) for number in new])
            belief, constraints = belief.extended(points), [its and its.extended(points) for its in constraints]
            belief = replace(belief, ridge=weighed.values.models.noise_variance(belief.arms))
        numbers = np.concatenate([numbers, np.array(new, dtype=np.intp)])
        return replace(drawn, belief=belief, numbers=numbers, placed=len(history.params), constraints=constraints)

    def _candidate(self, history: History, drawn: _Drawn, numbers: Ints, number: int) -> int | None:
        """Arm of the candidate with the params of this point, None if there is none."""
        arms = drawn.belief.arms
        near = np.flatnonzero(
            (np.abs(arms - history.point(number)) <= SAME).all(axis=1) & (numbers[: len(arms)] == CANDIDATE)
        )
        key, params = history.space.key(history.params[number]), drawn.space.decode(arms[near]) if near.size else []
        same = (arm for arm, its in zip(near.tolist(), params, strict=True) if drawn.space.key(its) == key)
        return next(same, None)

    def _take(self, drawn: _Drawn, weighed: _Weighed, arrival: Arrival) -> _Drawn:
        """Add one answer, trusted as far as it agrees with the posterior so far.

        A failure is weighed at the next milestone, and its point is not asked for until then.
        """
        belief, constraints, models = drawn.belief, list(drawn.constraints), weighed.values.models
        arm, trust = int(np.flatnonzero(drawn.numbers == arrival.where)[0]), UNKNOWN
        if arrival.value == arrival.value:
            belief, trust = told(belief, models, arm, arrival.value, arrival.noise, arrival.bound)
        for index, number in enumerate(arrival.constraints):
            posterior, learnt = constraints[index], weighed.constraints[index]
            if posterior is not None and learnt is not None and not math.isnan(number):
                signed = self._constraints[index].sign * number
                constraints[index] = told(posterior, learnt.models, arm, signed, UNKNOWN)[0]
        if models.is_moving:
            belief, constraints = belief.advanced(1), [its and its.advanced(1) for its in constraints]
        return replace(drawn, belief=belief, constraints=constraints, later_trust=(*drawn.later_trust, trust))

    def _margins(self, weighed: _Weighed, posteriors: Iterable[Any]) -> Margins:
        """Posterior of each constraint with the least number that meets it, in standard units."""
        margins: list[Margin | None] = []
        for constraint, learnt, posterior in zip(self._constraints, weighed.constraints, posteriors, strict=True):
            if learnt is None or posterior is None:
                margins.append(None)
            else:
                least = float(learnt.models.scale.standard(np.array(constraint.least))) - learnt.models.fit.centre
                margins.append(Margin(posterior, least))
        return margins


def told(
    posterior: Posterior, models: FittedModels, arm: int, value: float, noise: float, bound: int = 0
) -> tuple[Posterior, float]:
    """Posterior after one more value of an arm, or bound on it, and the trust in it."""
    at = float(posterior.mean[arm]), float(posterior.std[arm])
    standard, std, trust = models.arriving(value, noise, posterior.arms[arm], *at, bound)
    return posterior.told(arm, standard, std**2 / trust), trust


def unknown(candidates: Floats, points: Floats) -> Ints:
    """Indices of the candidates that equal none of the points, without duplicates, ascending."""
    both = np.ascontiguousarray(np.vstack([points, candidates]) + 0.0)  # -0.0 becomes 0.0: equal points, equal bytes
    first = np.unique(both.view(np.dtype((np.void, both.itemsize * both.shape[1]))), return_index=True)[1]
    return np.sort(first[first >= len(points)]) - len(points)
