"""Front: the best compromises between several objectives, how sure they are, and the choice of one of them.

A setting is on the front if no other one is better in one objective and not worse in another, judged by the cautious
values mean - caution * std: one lucky observation does not put a setting there. Probabilities and the interval of the
hypervolume come from joint draws of each objective at the settings that may be on the front, under all models that the
observations do not refute, weighted by their likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from noregret.formatting import as_precise_as, shown
from noregret.gp.posterior import HUGE, Floats, Ints
from noregret.gp.seeds import child
from noregret.optimizer.answers.answers import Answers
from noregret.optimizer.answers.certificate import CONTENDERS, DRAWS, REACH, contest
from noregret.optimizer.answers.estimate import Gain, chance_in_words
from noregret.optimizer.answers.importance import Importance
from noregret.optimizer.measures import LARGEST_VALUE, check_objectives, checked_constraints
from noregret.optimizer.model.constraints import RECOMMEND
from noregret.optimizer.model.current import CANDIDATE, Snapshot
from noregret.optimizer.model.evidence import LEVEL
from noregret.optimizer.model.objectives import hypervolume, is_dominated, means_at, nondominated, reported
from noregret.optimizer.space.contexts import FixedContext, with_context
from noregret.optimizer.space.parameters import finite


@dataclass(frozen=True, repr=False)
class JointEstimate:
    """Estimate of several objectives of some params.

    Parameters
    ----------
    params
    values : dict
        The expected value of each objective, by name.
    lower, upper : dict
        The true value of an objective lies between them with probability ``level``.
    probability : float
        That no other setting is better in one objective and not worse in another, among those that were measured or
        are on the front.
    feasible : float
        The probability that all constraints are met, 1 without any.
    level : float
    is_likeliest : bool
        True if it was recommended although it likely violates a constraint or limit, as everything else does.
    """

    params: Any
    values: Mapping[str, float]
    lower: Mapping[str, float]
    upper: Mapping[str, float]
    probability: float
    feasible: float
    level: float = LEVEL
    is_likeliest: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        """As ``JointEstimate: latency 3.10 (2.90 to 3.31), cost 0.20 (0.19 to 0.22), at 95%, of {x: 0.1}``."""
        parts = [f"{name} {self.in_words(name)}" for name in self.values]
        feasible = f", feasible with probability {chance_in_words(self.feasible)}" if self.feasible < 1 else ""
        note = (
            " <nothing is likely to meet all constraints and limits: this comes nearest>" if self.is_likeliest else ""
        )
        on_front = f"on the front with probability {chance_in_words(self.probability)}"
        of = f"at {100 * self.level:g}%, of {shown(self.params)}"
        return f"JointEstimate: {', '.join(parts)}, {of}, {on_front}{feasible}{note}"

    def in_words(self, name: str) -> str:
        """One objective as ``3.10 (2.90 to 3.31)``, with the digits that its interval supports."""
        low, high = self.lower[name], self.upper[name]
        middle = as_precise_as(low, high, self.values[name])
        if not math.isfinite(high - low):
            return middle
        return f"{middle} ({as_precise_as(low, high, low)} to {as_precise_as(low, high, high)})"


@dataclass(frozen=True)
class Hypervolume:
    """Volume between the true values of the front and a reference point.

    Parameters
    ----------
    estimate : float
        In the product of the objectives' units.
    lower, upper : float
        It lies between them with probability ``level``.
    reference : dict
        The reference point: values that are beyond it in one objective add nothing.
    level : float
    """

    estimate: float
    lower: float
    upper: float
    reference: Mapping[str, float]
    level: float = LEVEL


class Gains(dict[str, Gain]):
    """Gain of one setting on the baseline in each objective, by name."""

    @property
    def is_better(self) -> bool:
        """True if the setting is better in every objective, each with probability `Gain.level`."""
        return all(gain.lower > 0 for gain in self.values())

    def __str__(self) -> str:
        """As ``better in both: latency 18% lower than your settings (...); cost 5% lower ...``."""
        parts = "; ".join(f"{name} {gain}" for name, gain in self.items())
        every = "both" if len(self) == 2 else "all"
        return f"better in {every}: {parts}" if self.is_better else f"not shown to be better in {every}: {parts}"


@dataclass(frozen=True, eq=False)
class FrontAnswers:
    """Answers about several objectives: those of each by name, all about the same settings."""

    each: dict[str, Answers]

    @property
    def states(self) -> list[Snapshot]:
        """Snapshot of each objective."""
        return [answers.state for answers in self.each.values()]

    @property
    def _first(self) -> Answers:
        return next(iter(self.each.values()))

    @property
    def _signs(self) -> Floats:
        return np.array([answers.measure.sign for answers in self.each.values()])

    @cached_property
    def _pool(self) -> Ints:
        """Arms of the first objective that may be recommended.

        They are the measured ones, and all others in a space of few settings or in a context. With a fidelity, those
        that were measured at any fidelity.
        """
        state = self._first.state
        allowed = state.allowed if state.safety is None else state.recommendable
        allowed = allowed & ~np.isin(state.numbers, state.history.unproven)
        is_small = state.space.count <= len(state.numbers) or isinstance(state.space, FixedContext)
        histories = [objective.history for objective in self.states]
        measured = np.array([any(past.answered(number) for past in histories) for number in state.numbers.tolist()])
        if self._first.contexts.fidelity is not None:
            key, params = self._first.contexts.space.key, state.history.params
            tried = {key(params[number].params) for number in np.unique(state.numbers[measured]).tolist()}
            is_tried = [
                number != CANDIDATE and key(params[number].params) in tried for number in state.numbers.tolist()
            ]
            is_small, measured = is_small and not (allowed & is_tried).any(), np.array(is_tried)
        arms = np.flatnonzero(allowed & (is_small | measured))
        if not arms.size:
            raise ValueError("a front needs a value of params that meet require: tell one first")
        return state.feasible(arms)

    @cached_property
    def _cautious(self) -> tuple[Floats, Floats, Floats]:
        """Points of the pool, (n, d), the cautious numbers of each objective there, and optimistic ones, (n, m).

        A setting may be on the front if no cautious value of it is above the setting's optimistic one everywhere.
        """
        points = self._first.state.belief.arms[self._pool]
        mean, std = means_at(self.states, points)
        return points, mean - self._first.config.caution * std, mean + REACH * std

    @cached_property
    def _front(self) -> Ints:
        """Settings of the pool that are on the front, the best in the first objective first."""
        cautious = self._cautious[1]
        members = nondominated(cautious)
        return np.asarray(members[np.argsort(-cautious[members, 0], kind="stable")])

    @cached_property
    def _contenders(self) -> Floats:
        """Points of the front and of others that may be better than some of it, (n, d)."""
        points, cautious, hopeful = self._cautious
        others = np.setdiff1d(np.flatnonzero(~is_dominated(hopeful, cautious[self._front])), self._front)
        if others.size > CONTENDERS:
            scale = np.ptp(hopeful, axis=0) + 1e-300
            short = [float(((cautious[self._front] - row) / scale).min(axis=1).max()) for row in hopeful[others]]
            others = others[np.argsort(short, kind="stable")[:CONTENDERS]]
        return np.vstack([points[self._front], points[others]])

    def draws(self, points: Floats) -> Floats:
        """Joint draws of all objectives at (n, d) points, with larger values better, (`DRAWS`, n, m)."""
        seed = child(self._first.seed, 7, len(self._first.state.history))
        rng, columns = np.random.default_rng(seed), []
        for answers in self.each.values():
            weights, models = zip(*answers.certificate.averaged, strict=True)
            counts, parts = rng.multinomial(DRAWS, weights), []
            for model, count in zip(models, counts.tolist(), strict=True):
                if count:
                    parts.append(model.fitted.reported(contest(model, points).draws(count, rng)).T)
            columns.append(rng.permutation(np.vstack(parts)))
        return np.stack(columns, axis=2)

    @cached_property
    def front(self) -> list[JointEstimate]:
        """The best compromises, the best in the first objective first."""
        return self.predict(list(map(self._first.state.params, self._pool[self._front].tolist())))

    def predict(self, params: Sequence[Any]) -> list[JointEstimate]:
        """Estimates of each of these params of the whole space, at least one."""
        if len(params) > CONTENDERS:
            starts = range(0, len(params), CONTENDERS)
            return [estimate for start in starts for estimate in self.predict(params[start : start + CONTENDERS])]
        columns = [answers.predict(params) for answers in self.each.values()]
        points = self._first.state.history.space.encode(params)
        drawn, count = self.draws(np.vstack([points, self._contenders])), len(points)
        beaten = np.array([is_dominated(each[:count], each[count:]) for each in drawn])
        estimates = []
        for row, chance in zip(zip(*columns, strict=True), (1 - beaten.mean(axis=0)).tolist(), strict=True):
            named = dict(zip(self.each, row, strict=True))
            values, lower, upper = (
                {name: getattr(point, end) for name, point in named.items()} for end in ("estimate", "lower", "upper")
            )
            known = {"feasible": row[0].feasible, "is_likeliest": row[0].feasible < RECOMMEND}
            estimates.append(JointEstimate(row[0].params, values, lower, upper, chance, **known))
        return estimates

    def best(self, limits: Any = None, weights: Any = None) -> JointEstimate:
        """The setting of the front that meets all limits and is best by its weighted sum of cautious values."""
        if limits is not None and not isinstance(limits, Mapping):
            raise ValueError(f"limits must be a dict like {{'cost': ('<=', 0.3)}}, got {limits!r}")
        check_objectives(self.each, limits or {})
        limits = checked_constraints(limits, "limit")
        weights = self._checked_weights(weights, limits)
        cautious = reported(self.states, self._cautious[1][self._front])
        scores, missing = cautious @ weights, np.zeros(len(cautious))
        for index, name in enumerate(self.each):
            if name in limits:
                sign, limit = self._signs[index], limits[name]
                if limit.sign != sign:
                    raise ValueError(
                        f"a limit of {name!r} must be {'>=' if sign > 0 else '<='} a number, since the goal is to "
                        f"{self.each[name].goal} it, got {limit.operator} {limit.bound:g}"
                    )
                unit = np.ptp(cautious[:, index]) or 1.0
                missing = missing + np.maximum(limit.least - cautious[:, index], 0.0) / unit
        chosen = np.lexsort((-scores, missing))[0]
        member: JointEstimate = self.front[chosen]
        return replace(member, is_likeliest=True) if missing[chosen] > 0 else member

    def _checked_weights(self, weights: Any, limits: Mapping[str, Any]) -> Floats:
        """Weight of each objective; without any, all of it on the one without a limit."""
        names, free = list(self.each), [name for name in self.each if name not in limits]
        if weights is None:
            if len(free) != 1:
                example = f"weights={{{names[0]!r}: 1, {names[1]!r}: 10}}"
                left = f"limits leave {free}" if limits else "there is no single best of several objectives"
                raise ValueError(
                    f"best() must know what matters: {left}. Give a limit for all but one objective, as in "
                    f"limits={{{names[-1]!r}: ('<=', 0.3)}}, or {example}; front() lists all compromises"
                )
            return np.array([float(name == free[0]) for name in names])
        if not isinstance(weights, Mapping):
            raise ValueError(f"weights must be a dict with a number for some of {names}, got {weights!r}")
        check_objectives(self.each, weights)
        numbers = [weights.get(name, 0.0) for name in names]
        if not all(finite(weight) and weight >= 0 for weight in numbers) or not any(numbers):
            raise ValueError(f"weights must be numbers from 0, and one above 0, got {dict(weights)!r}")
        return np.array(numbers, dtype=float)

    def hypervolume(self, reference: Any = None) -> Hypervolume:
        """Volume that the front dominates."""
        signs = self._signs
        if reference is None:
            worst = reported(self.states, means_at(self.states, self._cautious[0])[0]).min(axis=0)
        else:
            worst = signs * self._checked_reference(reference)
        drawn = self.draws(self._cautious[0][self._front])
        unit = np.maximum(np.abs(drawn).max(axis=(0, 1)), np.abs(worst))
        unit = np.where(unit > HUGE, unit, 1.0)  # a product of huge numbers is not finite
        volumes = np.array([hypervolume(each / unit, worst / unit) for each in drawn])
        for factor in unit:
            volumes = np.minimum(volumes, LARGEST_VALUE / factor) * factor
        lower, upper = np.quantile(volumes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
        worst_values = dict(zip(self.each, (signs * worst + 0.0).tolist(), strict=True))
        return Hypervolume(float(volumes.mean()), lower, upper, worst_values)

    def _checked_reference(self, reference: Any) -> Floats:
        if not isinstance(reference, Mapping) or set(reference) != set(self.each):
            raise ValueError(f"reference must be a dict with a number for each of {list(self.each)}, got {reference!r}")
        if not all(finite(number) for number in reference.values()):
            raise ValueError(f"reference must have finite numbers, got {dict(reference)!r}")
        return np.array([float(reference[name]) for name in self.each])

    def gain(self, baseline: Any, chosen: JointEstimate | None = None) -> Gains:
        """Gain of a setting on the baseline; by default of that which is better by most where it is by least.

        The baseline and the settings are params of the whole space.
        """
        if chosen is None:
            cautious = self._cautious[1]
            at = self._first.state.history.space.encode([baseline])
            base = means_at(self.states, at)[0][0]
            unit = np.ptp(cautious[self._front], axis=0)
            least = ((cautious[self._front] - base) / np.where(unit > 0, unit, 1.0)).min(axis=1)
            chosen = self.front[int(np.argmax(least))]
        params = with_context(self._first.contexts.space.checked(chosen.params), self._first.state.space)
        return Gains({name: known.gain(baseline, known.predict([params])[0]) for name, known in self.each.items()})

    def importance(self, better_half: bool = False) -> dict[str, Importance]:
        """Importance of each parameter by objective."""
        return {name: answers.importance(better_half) for name, answers in self.each.items()}
