"""Safety: the settings that meet all constraints with a stated probability, grown from a baseline that meets them.

A setting is safe if for each constraint

    mean - width * std  >=  the least number that meets it

under every model of the constraint that the readings do not refute: the fit, rougher and noisier ones, the fits of
other noise models, and a cautious one. The cautious model supposes that the constraint can change by as much as the
baseline is away from the bound within a lengthscale of `LENGTHSCALE`, the median of the prior of a fit. It is never
refuted: readings near the baseline do not show what lies farther away. A reading that breaks the bound is never taken
for an outlier.

The width is that of a Gaussian at the stated probability, times a multiplier, which is adaptive conformal. An account
of each constraint starts at 0. For each answer the probability that its setting truly breaks the constraint, given all
readings, is added, and the stated risk is subtracted; the account stays between 0 and `MOST_DUE`. The multiplier is
2^account. So if the account has never reached its limit, the sum of these probabilities is at most risk * n + the
account. The limit forgets what is above it.

The safe set is that of SafeOpt: Y. Sui, A. Gotovos, J. Burdick, A. Krause. Safe exploration for optimization with
Gaussian processes. ICML 2015. The account follows A. Gibbs, E. Candes. Adaptive conformal inference under distribution
shift. NeurIPS 2021; and Y. Zhang, S. Park, O. Simeone. Bayesian optimization with formal safety guarantees via online
conformal prediction. IEEE J. Sel. Top. Signal Process. 2024. Heuristic: the probabilities are those of a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from noregret.gp import functions as sp
from noregret.gp.posterior import Floats, Ints
from noregret.optimizer.measures import Constraint
from noregret.optimizer.model.evidence import MOST_FITTED, REFUTED, Evidence
from noregret.optimizer.model.fit import LENGTHSCALE
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import FittedModels
from noregret.optimizer.model.kernel import Fit
from noregret.optimizer.model.learning import learn, representative
from noregret.optimizer.model.tenable import RATIOS, PooledRows, Tenable, models, unrefuted, widest
from noregret.optimizer.model.transforms import FARTHEST
from noregret.optimizer.space.space import Bools

MOST_DUE = 3.0
"""Largest account, in violations: the width is at most 2^3 times that of a Gaussian, so little but repeats is safe.
Decision 0215."""

UNSAFE = -FARTHEST
"""Term on the predictions of unsafe settings where candidates are drawn, so that they are drawn around safe ones."""


@dataclass(frozen=True, eq=False)
class Guard:
    """Models of one constraint, in standardised units, and the least number that meets it."""

    tenable: tuple[Tenable, ...]
    least: float
    width: float
    """Of the bounds for questions: ``plain`` times the multiplier."""
    plain: float
    """Of the bounds for recommendations: that of a Gaussian at the stated probability."""

    def at(self, point: Floats) -> tuple[float, Tenable]:
        """Lower bound at a (1, d) point less the least number that meets the constraint, and its model."""
        predicted = [model.process.predict(point) for model in self.tenable]
        bounds = [float((mean - self.width * std)[0]) - self.least for mean, std in predicted]
        return min(bounds), self.tenable[int(np.argmin(bounds))]

    def broken(self, points: Floats) -> Floats:
        """Probability that the constraint is broken, by the cautious model, at (n, d) points, (n,)."""
        mean, std = self.tenable[-1].process.predict(points)
        return np.asarray(sp.ndtr((self.least - mean) / np.maximum(std, 1e-12)))


@dataclass(frozen=True, eq=False)
class Safety:
    """Safe settings after a number of answers, by the guard of each constraint; None while it has too few readings."""

    guards: tuple[Guard | None, ...]
    answers: int

    def holds(self, points: Floats, to_recommend: bool = False) -> Bools:
        """Mask of the (n, d) points that are safe to ask for or to recommend; none is while a constraint is unknown."""
        safe = np.full(len(points), None not in self.guards)
        for owner, model in ((guard, model) for guard in self.guards if guard for model in reversed(guard.tenable)):
            left = np.flatnonzero(safe)  # most are ruled out by the cautious models, which come first
            if left.size:
                mean, std = model.process.predict(points[left])
                safe[left] = mean - (owner.plain if to_recommend else owner.width) * std >= owner.least
        return safe

    def penalty(self, points: Floats) -> Floats:
        """`UNSAFE` where (n, d) points are not safe, 0 elsewhere, (n,)."""
        return np.where(self.holds(points), 0.0, UNSAFE)


def safety(
    history: History,
    limits: Mapping[str, Constraint],
    risks: Sequence[float | None],
    fits: Mapping[str, FittedModels],
) -> Safety:
    """Safety after all answers, given the last fit of each constraint and the risk of breaking it.

    None for the risk of a constraint that questions need not meet. One with fewer than two readings has no fit.
    """
    guards, answers = [], len(history)
    for (name, limit), risk in zip(limits.items(), risks, strict=True):
        if risk is not None:
            readings = replace(history.numbers(name, answers), bounds=None)  # a bound counts as if it were the number
            guards.append(guard(history, readings, limit.least, risk, fits[name]) if name in fits else None)
    return Safety(tuple(guards), answers)


def guard(history: History, readings: Evidence, least: float, risk: float, fitted: FittedModels) -> Guard:
    """Guard of a constraint that is broken with this risk."""
    baselines, groups = history.points[history.baseline_points], np.array(history.space.groups)
    bound = float(fitted.scale.standard(np.array(least)))
    made = Guard(tuple(tenable(fitted, readings, groups, baselines, bound)), bound, 0.0, -float(sp.ndtri(risk)))
    is_baseline = (readings.points[:, None] == baselines).all(axis=2).any(axis=1)
    broken = np.where(is_baseline, 0.0, made.broken(readings.points))[readings.where]  # it is known to be safe
    due = 0.0
    for chance in broken.tolist():
        due = min(max(due + chance - risk, 0.0), MOST_DUE)
    return replace(made, width=2.0**due * made.plain)


def tenable(fitted: FittedModels, readings: Evidence, groups: Ints, baselines: Floats, least: float) -> list[Tenable]:
    """Models of a constraint under all of which a safe setting must meet it."""
    best, *others = fitted.explained
    rivals = [FittedModels((each,)) for each in others if each.nats > best.nats - REFUTED]
    own, pooled = _pooled(fitted, readings, least)
    found = [model for model in widest(unrefuted(own, groups, pooled)) if model.amplitude > 0]
    for rival in rivals:
        its, its_pooled = _pooled(rival, readings, least)
        found += models(its, groups, its_pooled, 1.0, [(1.0, 1.0)])
    at_baseline = (readings.points[:, None] == baselines).all(axis=2).any(axis=1)
    known = fitted.scale.standard(readings.values[at_baseline[readings.where]])
    gap = float(np.median(known)) - least if known.size else 0.0
    explained = own.explained[0]
    cautious = FittedModels((explained._replace(fit=_cautious(explained.fit, gap)),))
    smoother = [models(cautious, groups, pooled, ratio, [(1.0, 1.0)])[0] for ratio in RATIOS]
    least_likely = max(model.likelihood for model in smoother) - REFUTED
    return [*found, next(model for model in smoother if model.likelihood >= least_likely)]


def _pooled(fitted: FittedModels, readings: Evidence, least: float) -> tuple[FittedModels, PooledRows]:
    """Models that weigh these readings, and the standardised averages of each point."""
    evidence = fitted.scale.standardised(readings)
    kept = evidence.only(representative(fitted, evidence, MOST_FITTED))
    learnt = learn(fitted, kept, kept.values < least)
    rows = learnt.process.rows
    centred = rows._replace(values=rows.values + learnt.models.fit.centre)
    return learnt.models, PooledRows(centred, learnt.scatter, learnt.freedom, learnt.process.now)


def _cautious(fit: Fit, gap: float) -> Fit:
    """The fit with lengthscales of at most `LENGTHSCALE`, and a size of f of at least the ``gap``."""
    longest = LENGTHSCALE * len(fit.lengthscales) ** 0.25
    lengthscales = tuple(min(each, longest) for each in fit.lengthscales)
    factor = max(gap / fit.size, 1.0)
    return replace(fit.scaled(1.0, factor), lengthscales=lengthscales, is_rough=False)
