"""Snapshot: everything that questions and answers are computed from, as a pure function of history, seed and space.

Expensive steps happen at milestones of the number of answers, on the answers up to there: scale, kernel and noise are
fitted at the milestones of ``refit``; trust is weighed and candidates are drawn at those of ``refresh``. Later answers
are added to the posterior one by one. So it does not matter when it is computed, or whether the history was lived
through or loaded after a restart: the result is the same, up to rounding.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from noregret.gp.posterior import Floats, Ints
from noregret.gp.seeds import child
from noregret.optimizer.checking import UNKNOWN, Drift
from noregret.optimizer.measures import Measures
from noregret.optimizer.model.constraints import RECOMMEND, Margin, Margins, log_feasible, log_feasible_at
from noregret.optimizer.model.drift import DriftMonitor, DriftTest, refresh_interval
from noregret.optimizer.model.evidence import ABSURD, Evidence
from noregret.optimizer.model.history import History, Signed
from noregret.optimizer.model.hypotheses import FittedModels, ModelConfig, milestone
from noregret.optimizer.model.learning import Learnt, learn, representative
from noregret.optimizer.model.noise import COMMON
from noregret.optimizer.model.posterior import PosteriorAtArms
from noregret.optimizer.model.safety import Safety, safety
from noregret.optimizer.model.step import LevelShift, find_step
from noregret.optimizer.model.transforms import Logarithms, RobustScale
from noregret.optimizer.space.contexts import ContextSpace, FixedContext, with_context
from noregret.optimizer.space.space import SAME, Bools, Space
from noregret.optimizer.trial import OUTLYING

LOG = logging.getLogger("noregret")

CANDIDATE = -1
"""Number that stands for an arm which is no point of the history. Points are counted from 0."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State after all answers, about all settings or those of one context.

    Parameters
    ----------
    history : History
        In the coordinates that explain the values better: those given, or logarithmic ones.
    space : Space
        Where candidates are: all of the space, or one context; in the same coordinates.
    models : FittedModels
    belief : PosteriorAtArms
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
    objectives : dict of Snapshot
        Snapshot of each objective that has two values, all with the same arms; this one is that of the first of these.
    """

    history: History
    space: Space
    models: FittedModels
    belief: PosteriorAtArms
    numbers: Ints
    margins: Margins
    learnt: Learnt
    trust: Floats
    safety: Safety | None = None
    step: LevelShift | None = None
    objectives: Mapping[str, Snapshot] = field(default_factory=dict)

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
        arms = self.belief.pulled[self.in_context[self.belief.pulled]]
        if not arms.size or (isinstance(self.space, FixedContext) and not self.in_context.all()):
            arms = np.flatnonzero(self.in_context)
        return self.feasible(arms)

    def feasible(self, arms: Ints) -> Ints:
        """Those of the arms that are likely to meet all constraints; the likeliest ones if none is."""
        if not self.margins:
            return arms
        chances = self.log_feasible[arms]
        return np.asarray(arms[chances >= min(math.log(RECOMMEND), float(chances.max()))])

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
        trust, history = self.trust.copy(), self.history
        readings = {i: history.reading(i) for i in np.flatnonzero(np.isnan(trust)).tolist()}
        rest = {i: each for i, each in readings.items() if each.value == each.value}
        if rest:
            points = history.points[[history.where(i) for i in rest]]
            mean, std = self.belief.predict(points)
            mean += self.belief.full.offsets(map(history.block, rest))
            trust[list(rest)] = [
                self.models.arriving(value, noise, point, mean, std, bound)[2]
                for (value, noise, bound), point, mean, std in zip(
                    rest.values(), points, mean.tolist(), std.tolist(), strict=True
                )
            ]
        return trust

    def absurd(self) -> dict[int, float]:
        """Answers with next to no trust that lie `ABSURD` standard deviations from what all others say, and how many.

        Empty if there are more than a few: then they are the tails of the noise.
        """
        history, deviations = self.history, dict[int, float]()
        for index in np.flatnonzero(self.all_trust() < OUTLYING).tolist():
            (value, noise, bound), point = history.reading(index), history.point(history.where(index))
            mean, std = (float(column[0]) for column in self.belief.predict(point[None]))
            mean += float(self.belief.full.offsets([history.block(index)])[0])
            away = self.models.deviations(value, noise, point, mean, std)
            if not bound and away >= ABSURD and (self.step is None or index >= self.step.until):
                deviations[index] = away
        return deviations if len(deviations) <= max(1, COMMON * history.measured) else {}


class Fitted(NamedTuple):
    """Number of answers of the last fit, its models, the number of answers that are weighed together, and a step."""

    at: int
    models: FittedModels
    weigh: int
    step: LevelShift | None = None


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Posteriors after the first ``stop`` answers."""

    stop: int
    fitted: Mapping[str, Fitted]
    learnt: Mapping[str, Learnt]
    """Of each objective, and of each constraint that has two numbers."""
    rows: Mapping[str, Ints]
    """Point of each row of an objective."""
    observed: Mapping[str, Ints]
    """Answer of each observation of an objective, the number of answers for those that are none."""
    left_out: frozenset[int]
    """Points whose observations are no part of any of them."""


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Posteriors at the arms after the first ``answers``."""

    space: Space
    numbers: Ints
    placed: int
    """Number of points that have an arm or are left out."""
    beliefs: Mapping[str, PosteriorAtArms]
    """Of the measures that have been learnt."""
    trust: Mapping[str, tuple[Floats, tuple[float, ...]]]
    """Trust in each of the answers that were weighed, nan for failures and what is left out, and in each later one."""
    answers: int


class Beliefs:
    """Computes snapshots: what is believed of each measure at the same arms.

    An objective and a constraint each have their own scale, noise, kernel and trust, as if it were the only one. Given
    the observations they are independent: heuristic. The fields cache the last result of each step; none of them is
    ever changed in place, but for ``space``, that of the last snapshot.
    """

    def __init__(
        self,
        space: Space,
        config: ModelConfig,
        seed: np.random.SeedSequence,
        measures: Measures,
        drift: Drift = None,
        risks: Sequence[float | None] | None = None,
    ) -> None:
        self.space = self._space = space
        self._config, self._seed, self._measures = config, seed, measures
        self._limits = {name: measure.limit for name, measure in measures.constraints.items() if measure.limit}
        self._risks = risks
        self._safety: Safety | None = None
        self._test = DriftTest(drift if isinstance(drift, float) else None)
        monitor = None if drift is None else DriftMonitor(self._test, milestone=0, tested_at=0)
        self._monitors: Mapping[str, DriftMonitor | None] = dict.fromkeys(measures.objectives, monitor)
        self._still: Mapping[tuple[str, bool], tuple[int, FittedModels, LevelShift | None]] = {}
        self._constraint_fits: tuple[tuple[int, bool, bool], Mapping[str, FittedModels]] | None = None
        self._weighed: _Weighed | None = None
        self._drawn: _Drawn | None = None

    def snapshot(self, history: History, space: Space, needed: Iterable[int] = ()) -> Snapshot:
        """State after all answers, two of which have a value of an objective, with the ``needed`` points as arms."""
        self.space, needed, (history, fitted, fits) = space, tuple(needed), self.fit(history)
        if history.space is not self._space and space.logarithmic is not None:
            space = space.logarithmic
        known = self._known(history)
        if self._risks is not None and (self._safety is None or self._safety.answers != len(history)):
            self._safety = safety(history, self._limits, self._risks, fits)
        weighed, drawn, stop = self._weighed, self._drawn, max(each.weigh for each in fitted.values())
        if weighed is None or weighed.stop != stop or not _are_same(weighed.fitted, fitted):
            weighed, drawn = self._weigh(known, fitted, fits, stop), None
        if drawn is None or (drawn.space is not space and drawn.space != space):
            drawn = self._draw(history, space, weighed, needed)
        drawn = self._place(history, drawn, weighed, needed)
        for index in range(drawn.answers, len(history)):
            drawn = self._take(history, drawn, weighed, index)
        self._weighed, self._drawn = weighed, drawn
        margins, snapshots = self._margins(weighed, drawn.beliefs), {}
        for name, own in known.items():
            learnt, trust = weighed.learnt[name], np.concatenate(drawn.trust[name])
            seen = own, space, learnt.models, drawn.beliefs[name], drawn.numbers, margins, learnt, trust
            snapshots[name] = Snapshot(*seen, safety=self._safety, step=weighed.fitted[name].step)
        return replace(next(iter(snapshots.values())), objectives=snapshots)

    def fit(self, history: History) -> tuple[History, Mapping[str, Fitted], Mapping[str, FittedModels]]:
        """The history in the coordinates that explain the values better, and fits of the objectives and constraints."""
        other = history.logarithmic
        history = other if other is not None and self._is_better(other, history) else history
        fitted = {name: self._fitted(own, name) for name, own in self._known(history).items()}
        first = next(iter(fitted.values()))
        return history, fitted, self._fit_constraints(history, first.at, first.models.is_moving)

    def _known(self, history: History) -> dict[str, History]:
        """History of each objective that has two values."""
        return {name: history.of(name) for name in self._measures.objectives if history.of(name).measured > 1}

    def _is_better(self, history: History, other: History) -> bool:
        """Return True if the values are explained better in the coordinates of a history than in those of another.

        Not asked where f may change, nor where questions must be safe: a scale that changed would break a promise.
        """
        if self._risks is not None or any(self._monitors.values()):
            return False
        each = ([self._fitted(own, name) for name, own in self._known(past).items()] for past in (history, other))
        first, second = (sum(fitted.models.explained[0].nats for fitted in fits) for fits in each)
        return first > second

    def _fitted(self, history: History, name: str) -> Fitted:
        """Fit to the answers up to the last milestone, or since f was last found to change."""
        answers, config, usable = len(history), self._config, history.column.usable
        first, monitor = max(config.first(self._space), usable), self._monitors[name]
        at = config.fitted_from(answers, usable, self._space)
        if monitor is not None:
            test_at = max(at, milestone(answers, first, *config.drift_milestones))
            monitor = monitor.after(history, config, test_at, partial(self._if_still, history, name, at))
            self._monitors = {**self._monitors, name: monitor}
            if monitor.found is not None:
                since, models = monitor.tested_at, monitor.found
                return Fitted(since, models, answers - (answers - since) % refresh_interval(models.fit.half_life))
        weigh = max(at, milestone(answers, first, *config.refresh, config.longest))
        if history.runs:  # a report takes the place of an earlier one, which may be part of the posterior
            weigh = answers
        models = self._if_still(history, name, at)
        return Fitted(at, models, weigh, self._still[name, history.space is self._space][2])

    def _if_still(self, history: History, name: str, stop: int) -> FittedModels:
        """Fit to the first ``stop`` answers if f stays; the machine may have changed."""
        key = name, history.space is self._space
        if key not in self._still or self._still[key][0] != stop:
            evidence, numbers = history.evidence(stop)
            models, step = self._config.calibrated(evidence), None
            if self._measures.is_single and self._monitors[name] is None and history.baseline_points:
                baseline = np.flatnonzero(np.isin(numbers, history.baseline_points))
                models, step = find_step(self._config.calibrated, evidence, baseline, models) or (models, None)
            self._still = {**self._still, key: (stop, models, step)}
            fit = models.fit
            LOG.debug("fitted after %d answers: noise %.3g, lengthscales %s", stop, fit.noise, fit.lengthscales)
        return self._still[key][1]

    def _weigh(
        self,
        known: Mapping[str, History],
        fitted: Mapping[str, Fitted],
        constraints: Mapping[str, FittedModels],
        stop: int,
    ) -> _Weighed:
        """Weigh the answers up to the milestone."""
        met, learnt = set[int](), dict[str, Learnt]()
        rows, observed = dict[str, Ints](), dict[str, Ints]()
        for name, history in known.items():
            evidence, numbers = history.evidence(stop)
            models, step = fitted[name].models, fitted[name].step
            evidence = step.removed(evidence) if step else evidence
            has_contexts = isinstance(self._space, ContextSpace)  # there may be ever more of them, each with a baseline
            always = np.isin(numbers, [] if has_contexts else history.baseline_points)
            kept, points = self._kept(models, evidence, stop, always)
            assert kept.when is not None
            learnt[name], rows[name], observed[name] = learn(models, kept), numbers[points], kept.when
            met.update(numbers.tolist())
        left_out = frozenset(met).difference(*(each.tolist() for each in rows.values()))
        for name, models in constraints.items():
            evidence = next(iter(known.values())).numbers(name, stop)
            kept, _ = self._kept(models, evidence, stop, np.zeros(len(evidence.points), dtype=bool))
            learnt[name] = learn(models, kept)
        return _Weighed(stop, fitted, learnt, rows, observed, left_out)

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

    def _fit_constraints(self, history: History, stop: int, is_moving: bool) -> Mapping[str, FittedModels]:
        """Models of each constraint that has two numbers, fitted where those of the values were, without logarithms."""
        key = stop, is_moving, history.space is self._space
        if self._constraint_fits is None or self._constraint_fits[0] != key:
            config = replace(self._config, logarithms=Logarithms(gaps=()), slips=False)
            if self._risks is not None:  # the bound must not be where numbers count as less bad than they are
                config = replace(config, scale=RobustScale(bend=math.inf))
            fit = partial(self._test.fitted, config, now=stop) if is_moving else config.calibrated
            each = {name: history.numbers(name, stop) for name in self._limits}
            fits = {name: fit(evidence) for name, evidence in each.items() if len(evidence.exact) > 1}
            self._constraint_fits = key, fits
        return self._constraint_fits[1]

    def _draw(self, history: History, space: Space, weighed: _Weighed, needed: tuple[int, ...]) -> _Drawn:
        """Draw candidates for each objective, and compute all posteriors at these and at the points of the history."""
        rng, points = np.random.default_rng(child(self._seed, 1, weighed.stop)), history.points
        draw = self._config.candidates_within if isinstance(space, FixedContext) else self._config.candidates
        known = {name: each.process for name, each in weighed.learnt.items()}
        feasible, safe = partial(log_feasible_at, self._margins(weighed, known)), self._safety
        penalty: Callable[[Floats], Floats] | None = feasible if self._limits else None
        if safe is not None:
            penalty = lambda at: feasible(at) + safe.penalty(at)  # noqa: E731
        lots: list[tuple[str, Floats, Floats]] = []
        for name, rows in weighed.rows.items():
            process, fit = known[name], weighed.learnt[name].models.fit
            lengthscales = np.array(fit.lengthscales)[list(space.groups)]
            measured = process.rows.points[np.sort(np.unique(rows, return_index=True)[1])]
            lots.append((name, *draw(space, process, measured, lengthscales, rng, penalty)))
        recent = (history.where(index) for index in range(weighed.stop, len(history)))
        left_out = weighed.left_out.difference(needed, recent)
        shown = np.array([number for number in range(len(points)) if number not in left_out], dtype=np.intp)
        if history.baseline is not None and isinstance(space, FixedContext):
            baseline = space.encode([with_context(history.baseline, space)])
            name = lots[0][0]
            lots.insert(0, (name, baseline, known[name].lifted(baseline)))
        candidates = np.vstack([lot for _, lot, _ in lots])
        new = unknown(candidates, points[[*shown, *left_out.intersection(history.hopeless.tolist())]])
        arms = np.vstack([points[shown], candidates[new]])
        beliefs, trust = dict[str, PosteriorAtArms](), dict[str, tuple[Floats, tuple[float, ...]]]()
        for name, process in known.items():
            if name in self._limits:
                nowhere = np.full(len(process.rows.values), CANDIDATE)
                beliefs[name] = process.at(arms, nowhere, weighed.learnt[name].models.fit.noise ** 2)
                continue
            learnt, rows, observed = weighed.learnt[name], weighed.rows[name], weighed.observed[name]
            lifted = np.hstack([local if owner == name else process.lifted(lot) for owner, lot, local in lots])
            lifted = np.hstack([process.lifted(points[shown]), lifted[:, new]])
            at = process.at(arms, np.searchsorted(shown, rows), learnt.models.noise_variance(arms), lifted)
            beliefs[name] = replace(at, rounds=len(observed))
            weights = np.full(weighed.stop + 1, UNKNOWN)
            weights[observed] = learnt.trust
            trust[name] = weights[: weighed.stop], ()
        numbers = np.concatenate([shown, np.full(len(new), CANDIDATE)])
        return _Drawn(space, numbers, len(points), beliefs, trust, weighed.stop)

    def _place(self, history: History, drawn: _Drawn, weighed: _Weighed, needed: tuple[int, ...]) -> _Drawn:
        """Give an arm to every point met since: the candidate that it is, or a new one."""
        recent = (history.where(index) for index in range(drawn.answers, len(history)))
        met = dict.fromkeys([*range(drawn.placed, len(history.params)), *needed, *recent])
        missing = [number for number in met if number not in drawn.numbers]
        if not missing:
            return replace(drawn, placed=len(history.params))
        numbers, new = drawn.numbers.copy(), []
        arms = next(iter(drawn.beliefs.values())).arms
        for number in missing:
            arm = self._candidate(history, drawn.space, arms, numbers, number)
            if arm is None:
                new.append(number)
            else:
                numbers[arm] = number
        beliefs = dict(drawn.beliefs)
        if new:
            points = np.array([history.point(number) for number in new])
            beliefs = {name: belief.extended(points) for name, belief in beliefs.items()}
            for name in weighed.rows:
                ridge = weighed.learnt[name].models.noise_variance(beliefs[name].arms)
                beliefs[name] = replace(beliefs[name], ridge=ridge)
        numbers = np.concatenate([numbers, np.array(new, dtype=np.intp)])
        return replace(drawn, beliefs=beliefs, numbers=numbers, placed=len(history.params))

    def _candidate(self, history: History, space: Space, arms: Floats, numbers: Ints, number: int) -> int | None:
        """Arm of the candidate with the params of this point, None if there is none."""
        near = np.flatnonzero(
            (np.abs(arms - history.point(number)) <= SAME).all(axis=1) & (numbers[: len(arms)] == CANDIDATE)
        )
        key, params = history.space.key(history.params[number]), space.decode(arms[near]) if near.size else []
        same = (arm for arm, setting in zip(near.tolist(), params, strict=True) if space.key(setting) == key)
        return next(same, None)

    def _take(self, history: History, drawn: _Drawn, weighed: _Weighed, index: int) -> _Drawn:
        """Add one answer, trusted as far as it agrees with the posteriors so far.

        A failure is weighed at the next milestone, and its point is not asked for until then.
        """
        beliefs, trust = dict(drawn.beliefs), dict(drawn.trust)
        arm = int(np.flatnonzero(drawn.numbers == history.where(index))[0])
        for name, learnt in weighed.learnt.items():
            reading, weight = history.columns[name].at(index), UNKNOWN
            if reading.value == reading.value:
                beliefs[name], weight = told(beliefs[name], learnt.models, arm, reading, history.block(index))
            beliefs[name] = beliefs[name].advanced(1) if learnt.models.is_moving else beliefs[name]
            if name in trust:
                first, later = trust[name]
                trust[name] = first, (*later, weight)
        return replace(drawn, beliefs=beliefs, trust=trust, answers=index + 1)

    def _margins(self, weighed: _Weighed, posteriors: Mapping[str, Any]) -> Margins:
        """Posterior of each constraint that is learnt, and the least number that meets it, in standard units."""
        margins: list[Margin | None] = []
        for name, limit in self._limits.items():
            if name not in weighed.learnt:
                margins.append(None)
                continue
            models = weighed.learnt[name].models
            standard = float(models.scale.standard(np.array(limit.least)))
            margins.append(Margin(posteriors[name], standard - models.fit.centre))
        return margins


def _are_same(before: Mapping[str, Fitted], now: Mapping[str, Fitted]) -> bool:
    """Return True if the models are the same objects."""
    return before.keys() == now.keys() and all(before[name].models is each.models for name, each in now.items())


def told(
    posterior: PosteriorAtArms, models: FittedModels, arm: int, reading: Signed, block: Mapping[int, int] | None
) -> tuple[PosteriorAtArms, float]:
    """Posterior after one more value of an arm in a block, or bound on it, and the trust in it."""
    mean, variance, _ = posterior.expected(arm, block)
    at = mean, math.sqrt(variance), reading.bound
    standard, std, trust = models.arriving(reading.value, reading.noise, posterior.arms[arm], *at)
    return posterior.told(arm, standard, std**2 / trust, block), trust


def unknown(candidates: Floats, points: Floats) -> Ints:
    """Indices of the candidates that equal none of the points, without duplicates, ascending."""
    both = np.ascontiguousarray(np.vstack([points, candidates]) + 0.0)  # -0.0 becomes 0.0: equal points, equal bytes
    first = np.unique(both.view(np.dtype((np.void, both.itemsize * both.shape[1]))), return_index=True)[1]
    return np.sort(first[first >= len(points)]) - len(points)
