"""Safety: the settings whose constraints are met with a stated probability, grown from a baseline that meets them.

A setting is safe if for each constraint

    mean - width * std  >=  the least number that meets it

under every model of the constraint that the readings do not refute: the fit, rougher and noisier ones, the fits of
other noise models, and a cautious one. The cautious model supposes that the constraint can change as much as the
baseline is away from the bound over a lengthscale of `LENGTHSCALE`. It is never refuted: readings near the baseline do
not show what lies farther away.

The width is that of a Gaussian at the stated probability, times a multiplier. The multiplier is adaptive conformal:
each reading is compared with what was predicted for it from the readings before it. A reading beyond the predicted
bound multiplies the width by e^`STEP`, every reading divides it by e^(`STEP` risk), and it never falls below 1. So
the share of readings beyond their bounds is at most risk + (ln multiplier) / (STEP n), whatever the function is.

A. Gibbs, E. Candes. Adaptive conformal inference under distribution shift. NeurIPS 2021. Y. Zhang, S. Park, O. Simeone.
Bayesian optimization with formal safety guarantees via online conformal prediction. 2024. The bound on readings is the
theorem; that of the true numbers rests on the models. The safe set is that of Y. Sui et al. (2015), SafeOpt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from noregret.belief.posterior import Floats, Ints
from noregret.optimizer.checking import Constraint
from noregret.optimizer.model.evidence import Evidence
from noregret.optimizer.model.history import History
from noregret.optimizer.model.hypotheses import FittedModels, ModelConfig, milestone
from noregret.optimizer.model.kernel import Fit
from noregret.optimizer.model.learning import learn, representative
from noregret.optimizer.model.tenable import REFUTED, Pooled, Tenable, models, unrefuted, widest
from noregret.optimizer.space.space import Bools

REPEATS = 3
"""Readings of the baseline before any other setting is asked for: they show the noise."""

LENGTHSCALE = 0.3
"""Longest lengthscale of the cautious model, times d^(1/4) for d parameters: the median of the fit's prior."""

MOST = 300
"""Points that a model is made of at most, since its cost grows with their cube."""

STEP = math.log(2.0)
"""Logarithm of the factor on the width after a reading beyond its bound."""

UNSAFE = -1e3
"""Term on the predictions of unsafe settings where candidates are drawn, so that they are drawn around safe ones."""


@dataclass(frozen=True, eq=False)
class Guard:
    """Models of one constraint, in standardised units, and the least number that meets it."""

    tenable: tuple[Tenable, ...]
    least: float
    width: float

    def slack(self, points: Floats) -> Floats:
        """Lower bound less the least number that meets the constraint, at (n, d) points, (n,)."""
        predicted = [model.process.predict(points) for model in self.tenable]
        return np.min([mean - self.width * std for mean, std in predicted], axis=0) - self.least

    def spread(self, points: Floats) -> Floats:
        """Largest standard deviation under the models, at (n, d) points, (n,)."""
        return np.max([model.process.predict(points)[1] for model in self.tenable], axis=0)

    def excess(self, point: Floats, number: float) -> float:
        """Standard deviations, as of a Gaussian, by which a reading at a (d,) point is below all predictions."""
        found = []
        for model in self.tenable:
            (mean,), (std,) = model.process.predict(point[None])
            fitted = model.fitted
            noise = model.noise * math.sqrt(float(np.ravel(fitted.noise_variance(point[None]))[0]))
            short = (float(mean) - float(fitted.scale.standard(np.array(number)))) / math.hypot(float(std), noise)
            found.append(math.copysign(fitted.noise.distance(abs(short)), short))
        return min(found)


Fits = Callable[[int], Sequence[FittedModels | None]]
"""Models of each constraint, fitted to this many first answers; None for those with fewer than two readings."""


@dataclass(frozen=True, eq=False)
class Safety:
    """Safe settings after a history: a pure function of the answers, computed from that after fewer of them.

    Parameters
    ----------
    safe : float
        Probability that a question meets all constraints.
    constraints : tuple of Constraint
    config : ModelConfig
    guards : tuple of Guard or None
        One of each constraint; None while it has too few readings.
    multipliers : tuple of floats
        Factor on the width of each constraint.
    answers : int
        Number of answers that it is made of.
    """

    safe: float
    constraints: tuple[Constraint, ...]
    config: ModelConfig
    guards: tuple[Guard | None, ...] = ()
    multipliers: tuple[float, ...] = ()
    answers: int = 0
    _before: tuple[int, tuple[Guard | None, ...]] = (0, ())
    """Number of answers, and the guards after them, that the next readings are compared with."""

    @property
    def risk(self) -> float:
        """Probability that a question breaks one constraint."""
        return (1 - self.safe) / len(self.constraints)

    def after(self, history: History, fits: Fits) -> Safety:
        """Safety after all answers."""
        if self.guards and self.answers == len(history.arrivals):
            return self
        now = self if self.multipliers else replace(self, multipliers=(1.0,) * len(self.constraints))
        for index in range(now.answers, len(history.arrivals)):
            now = now._compared(history, index, fits)
        return replace(now, guards=now._guards(history, len(history.arrivals), fits), answers=len(history.arrivals))

    def _compared(self, history: History, index: int, fits: Fits) -> Safety:
        """Safety with the multipliers after one more answer."""
        if index < history.usable:
            return self
        arrival, first = history.arrivals[index], max(self.config.first(history.space), history.usable)
        stop = max(
            self.config.fitted_from(index, history.usable, history.space),
            milestone(index, first, *self.config.refresh, self.config.longest),
        )
        before = self._before if self._before[0] == stop else (stop, self._guards(history, stop, fits))
        found = list(self.multipliers)
        for i, (guard, number) in enumerate(zip(before[1], arrival.constraints, strict=False)):
            if guard is not None and not math.isnan(number):
                excess = guard.excess(history.point(arrival.where), self.constraints[i].sign * number)
                is_beyond = excess > found[i] * -ndtri(self.risk)
                found[i] = max(found[i] * math.exp(STEP * (is_beyond - self.risk)), 1.0)
        return replace(self, multipliers=tuple(found), _before=before)

    def _guards(self, history: History, stop: int, fits: Fits) -> tuple[Guard | None, ...]:
        """Guards after the first ``stop`` answers."""
        if stop < history.usable:
            return (None,) * len(self.constraints)
        fitted = fits(self.config.fitted_from(stop, history.usable, history.space))
        return tuple(self._guard(history, stop, i, its) for i, its in enumerate(fitted))

    def _guard(self, history: History, stop: int, index: int, fitted: FittedModels | None) -> Guard | None:
        constraint = self.constraints[index]
        if fitted is None:
            return None
        readings = history.numbers(index, constraint.sign, stop)
        least = float(fitted.scale.standard(np.array(constraint.least)))
        baselines = history.points[history.baseline_points]
        groups = np.array(history.space.groups)
        found = tenable(fitted, readings, groups, baselines, least)
        return Guard(tuple(found), least, self.multipliers[index] * -float(ndtri(self.risk)))

    def holds(self, points: Floats) -> Bools:
        """Return True for those of (n, d) points that are safe, (n,); for none while a constraint is unknown."""
        return np.asarray(self.slack(points) >= 0)

    def slack(self, points: Floats) -> Floats:
        """Least distance of a lower bound from its constraint, in standard units, at (n, d) points, (n,)."""
        if not self.guards or None in self.guards:
            return np.full(len(points), -math.inf)
        return np.min([guard.slack(points) for guard in self.guards if guard], axis=0)

    def penalty(self, points: Floats) -> Floats:
        """`UNSAFE` where (n, d) points are not safe, 0 elsewhere, (n,)."""
        return np.where(self.holds(points), 0.0, UNSAFE)


def tenable(fitted: FittedModels, readings: Evidence, groups: Ints, baselines: Floats, least: float) -> list[Tenable]:
    """Models of a constraint under all of which a safe setting must meet it."""
    best, *others = fitted.explained
    rivals = [FittedModels((each,)) for each in others if each.nats > best.nats - REFUTED]
    own, pooled = _pooled(fitted, readings)
    found = [model for model in widest(unrefuted(own, groups, pooled)) if model.amplitude > 0]
    for rival in rivals:
        its, its_pooled = _pooled(rival, readings)
        found += models(its, groups, its_pooled, 1.0, [(1.0, 1.0)])
    at_baseline = (readings.points[:, None] == baselines).all(axis=2).any(axis=1)
    known = fitted.scale.standard(readings.values[at_baseline[readings.where]])
    gap = float(np.median(known)) - least if known.size else 0.0
    explained = own.explained[0]
    cautious = FittedModels((explained._replace(fit=_cautious(explained.fit, gap)),))
    return found + models(cautious, groups, pooled, 1.0, [(1.0, 1.0)])


def _pooled(fitted: FittedModels, readings: Evidence) -> tuple[FittedModels, Pooled]:
    """Models that weigh these readings, and the standardised averages of each point."""
    evidence = fitted.scale.standardised(readings)
    learnt = learn(fitted, evidence.only(representative(fitted, evidence, MOST)))
    rows = learnt.process.rows
    centred = rows._replace(values=rows.values + learnt.models.fit.centre)
    return learnt.models, Pooled(centred, learnt.scatter, learnt.freedom)


def _cautious(fit: Fit, gap: float) -> Fit:
    """The fit with lengthscales of at most `LENGTHSCALE`, and a size of f of at least the ``gap``."""
    longest = LENGTHSCALE * len(fit.lengthscales) ** 0.25
    lengthscales = tuple(min(each, longest) for each in fit.lengthscales)
    factor = max(gap / fit.size, 1.0)
    return replace(fit.scaled(1.0, factor), lengthscales=lengthscales, is_rough=False)
