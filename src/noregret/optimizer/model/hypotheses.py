"""OptimizerConfig: from measurements to a belief, in steps that can each be replaced. All of it is heuristic.

Nobody gives the constants that the papers assume, so they are taken from the measurements themselves, and no theorem
covers what comes out. The steps:

1. ``scale``: a centre and a unit that a few absurd measurements cannot move;
2. ``weighings``: views of the noise, from Gaussian to heavy-tailed; each says how far measurements are trusted;
3. ``fit``: kernel, noise and prior mean, given that trust; 2 and 3 alternate, and of the views the one that explains
   the measurements best is kept; ``logarithms``: scales that take its place where they explain them better;
4. ``candidates`` and ``rule``: what could be asked for next, and what is; ``caution``: how sure `best` wants to be;
   ``interval``: how far off its estimate may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from noregret.belief.posterior import Floats
from noregret.optimizer.model.candidates import Candidates
from noregret.optimizer.model.evidence import Evidence, subset
from noregret.optimizer.model.fit import Fit
from noregret.optimizer.model.likelihood import log_likelihood
from noregret.optimizer.model.matern import FitMatern
from noregret.optimizer.model.noise import Equal, StudentT, Weighing, surprising
from noregret.optimizer.model.transforms import Logarithms, RobustScale, Scale
from noregret.optimizer.space.space import Space

CONVINCING = 3.0
"""A logarithm must make the measurements more likely by so much (in logarithms) to be preferred to their own scale."""

HOPELESS = 8.0
"""Heavier tails are not fitted if they make the measurements less likely by so much under the fit without them."""

RISING = 1.0
"""A closer ceiling must make them more likely by so much to be preferred to the one before."""


class View(NamedTuple):
    """A view of the noise, and what is fitted under it."""

    weighing: Weighing
    fit: Fit

    def explains(self, evidence: Evidence, trust: Floats) -> float:
        """How well it explains standardised measurements: a lower bound on their log likelihood, less the oddity."""
        return log_likelihood(evidence, trust, self.fit) - self.weighing.cost(evidence, trust) - self.fit.strange


class FittedModels(NamedTuple):
    """A scale, and the views of the noise in its units, the one that explains the measurements best first."""

    scale: Scale
    views: tuple[View, ...]

    @property
    def fit(self) -> Fit:
        """What was fitted under the best view."""
        return self.views[0].fit

    @property
    def weighing(self) -> Weighing:
        """The best view."""
        return self.views[0].weighing

    @property
    def is_moving(self) -> bool:
        """True if f changes over time."""
        return self.fit.half_life < math.inf

    def reported(self, numbers: Floats) -> Floats:
        """The means of what is measured where f has these numbers, in the values' own units."""
        return self.scale.original(numbers, self.fit.noise)

    def weighed(self, evidence: Evidence) -> tuple[FittedModels, Floats]:
        """The same with the view first that explains these standardised measurements best, and the trust in each.

        The first view stays without further ado, unless it is Gaussian and a measurement is out of the question then.
        """
        if self.weighing.heavy or not surprising(evidence, self.fit):
            return self, self.weighing.trust(evidence, self.fit)
        trusts = [view.weighing.trust(evidence, view.fit) for view in self.views]
        scores = [view.explains(evidence, trust) for view, trust in zip(self.views, trusts, strict=True)]
        best = int(np.argmax(scores))
        return FittedModels(self.scale, (self.views[best], *self.views[:best], *self.views[best + 1 :])), trusts[best]

    def arriving(self, value: float, noise: float, mean: float, std: float) -> tuple[float, float, float]:
        """Standardised value less the prior mean of f, noise and trust of a measurement where this is believed."""
        standard, noise = self._standard(value, noise)
        return standard, noise, self.weighing.arriving(standard - mean, std, noise)

    def distance(self, value: float, noise: float, mean: float, std: float) -> float:
        """How far a measurement lies from where this is believed, in a Gaussian's standard deviations."""
        standard, noise = self._standard(value, noise)
        return self.weighing.distance(abs(standard - mean) / math.hypot(std, noise))

    def _standard(self, value: float, noise: float) -> tuple[float, float]:
        """Standardised value less the prior mean of f, and noise."""
        standard = float(self.scale.standard(np.array(value))) - self.fit.centre
        if math.isnan(noise):  # nobody knows it
            return standard, self.fit.noise
        return standard, float(self.scale.standard_noise(np.array(noise), np.array(value)))


@dataclass(frozen=True)
class ModelConfig:
    """How an `Optimizer` gets from observations to a posterior.

    Parameters
    ----------
    scale : Evidence -> Scale
    logarithms : (Evidence, Scale) -> Scales
        Logarithmic scales to choose from, from the mildest on; ``Logarithms(gaps=())`` for none.
    weighings : Weighings
        Noise models to choose from, from light tails to heavy ones.
    fit : (Evidence, trust, Fit or None) -> Fit
        The last argument is where to start.
    candidates : Candidates
    candidates_within : Candidates
        The same in a context: they are drawn again as soon as it is another one, so they must cost little.
    initial, initial_parameters : int
        Before anything is fitted, ``initial`` Sobol points are asked for, and one more for each of at most
        ``initial_parameters`` parameters.
    refit, refresh : (int, float)
        When to repeat fitting, and weighing and drawing candidates: see `milestone`.
    longest : int
        Weighing and drawing are repeated after this many answers at the latest: the posterior grows with each.
    drift_milestones : (int, float, float)
        When to test whether f changes, for an optimizer with drift: see `milestone`.
    alternations : int
        How often trust and fit are improved in turn.
    most : int
        Points that are fitted to at most, since the cost of fitting grows with their cube.
    exact : int
        Points that the posterior is made of at most, unless the space has few: see `representative`.
    """

    scale: Callable[[Evidence], Scale] = field(default_factory=RobustScale)
    logarithms: Callable[[Evidence, Scale], Iterable[Scale]] = field(default_factory=Logarithms)
    weighings: tuple[Weighing, ...] = (Equal(), StudentT(4.0), StudentT(2.0))
    fit: Callable[[Evidence, Floats, Fit | None], Fit] = field(default_factory=FitMatern)
    candidates: Candidates = field(default_factory=Candidates)
    candidates_within: Candidates = field(default_factory=lambda: Candidates(entries=200_000))
    initial: int = 8
    initial_parameters: int = 20
    refit: tuple[int, float] = (400, 1.4)
    refresh: tuple[int, float] = (2000, 1.05)
    longest: int = 100
    drift_milestones: tuple[int, float, float] = (100, 1.2, 200)
    alternations: int = 3
    most: int = 250
    exact: int = 500

    def first(self, space: Space) -> int:
        """Number of answers, or pending trials, that the first fit waits for."""
        return self.initial + min(max(space.groups) + 1, self.initial_parameters)

    def fitted_from(self, answers: int, usable: int, space: Space) -> int:
        """Number of the first answers that the fit is made from, if f does not change.

        Parameters
        ----------
        answers : int
            Number of all answers.
        usable : int
            Number of answers up to the second value.
        space : Space
            The space together with its contexts.
        """
        return milestone(answers, max(self.first(space), usable), *self.refit)

    def calibrated(self, evidence: Evidence) -> FittedModels:
        """Scale, fit and view of the noise."""
        scale, part = self.scale(evidence), subset(evidence, self.most)
        tried = self.views(scale.standardised(part))
        logarithm = self._logarithm(evidence, scale, *tried[0])
        if logarithm is not None:
            scale, tried = logarithm, self.views(logarithm.standardised(part))
        return FittedModels(scale, tuple(view for _, view in tried))

    def views(self, evidence: Evidence) -> list[tuple[float, View]]:
        """The views of standardised measurements, and how well each explains them, the best one first."""
        tried = [self.fitted(evidence, self.weighings[0])]
        for weighing in self.weighings[1:]:
            explained, view = tried[-1]
            heavier = View(weighing, view.fit)
            score = heavier.explains(evidence, weighing.trust(evidence, view.fit))
            is_hopeless = score < explained - HOPELESS
            tried.append((score, heavier) if is_hopeless else self.fitted(evidence, weighing))
            if tried[-1][0] <= explained:
                break  # heavier tails still would explain no more
        return sorted(tried, key=lambda view: -view[0])

    def _logarithm(self, evidence: Evidence, plain: Scale, explained: float, view: View) -> Scale | None:
        """The logarithm under which this view of the noise explains the measurements best, if it beats the plain scale.

        Densities of numbers on two scales are compared as densities of the values, p(number) |d number / d value|. The
        slope at the best point counts as that at the second best: the ceiling was chosen close to the former.
        """
        part = subset(evidence, self.most)
        part = replace(part, values=plain.limited(part.values))
        slopes_at = np.minimum(part.values, part.second_best())
        explained += plain.log_slope(slopes_at)
        best, found = explained, None
        for scale in self.logarithms(evidence, plain):
            score, view = self.fitted(scale.standardised(part), view.weighing, view.fit)
            score += scale.log_slope(slopes_at)
            if score < best + RISING:
                break
            best, found = score, scale
        return found if best > explained + CONVINCING else None

    def fitted(self, evidence: Evidence, weighing: Weighing, start: Fit | None = None) -> tuple[float, View]:
        """The fit under one view of the noise, and how well it explains the measurements; quicker from a start."""
        trust = weighing.first(evidence) if start is None else weighing.trust(evidence, start)
        fit = self.fit(evidence, trust, start)
        for _ in range(self.alternations - 1 if weighing.heavy and start is None else 0):
            trust = weighing.trust(evidence, fit)
            fit = self.fit(evidence, trust, fit)
        view = View(weighing, fit)
        return view.explains(evidence, trust), view


@lru_cache(maxsize=16)
def milestone(count: int, first: int, eager: int, growth: float, longest: float = math.inf) -> int:
    """Last milestone not above ``count``, or ``count`` itself before the first one.

    From one milestone m to the next it is m / eager of m, at least 1 and at most what makes it grow by ``growth``, nor
    more than ``longest``: they are close at first, when an observation changes much and costs little, and later evenly
    spaced in ln m.
    """
    at = min(count, first)
    while (after := at + max(1, int(min(at * min(at / eager, growth - 1), longest)))) <= count:
        at = after
    return at
