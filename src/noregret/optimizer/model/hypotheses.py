"""Hypotheses: families of models of the values, the noise and f, and the evidence for each.

The constants that the papers assume are unknown here, so they are estimated from the observations, and no theorem
covers what comes out. A hypothesis says which family of models to fit; everything else is fitted. Hypotheses are
compared by their log evidence in nats: a lower bound on the log likelihood of the observations, plus the log prior of
the fitted numbers, plus that of the hypothesis. The search is greedy:

1. noise: Gaussian, Student-t with heavier and heavier tails, or Gaussian with a level that varies with the setting;
2. values: as they are, or the logarithm of their distance to a bound.

f is smooth, unless most parameters have few values: then it is rough along the axes, since nothing says that it is
smooth between them. This is a rule of the space and not chosen by evidence. Questions are asked under the best
hypothesis; the others are kept with their evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from noregret.gp.posterior import Floats
from noregret.optimizer.model import censoring
from noregret.optimizer.model.candidates import Candidates
from noregret.optimizer.model.evidence import (
    ABSURD,
    CAUTION,
    FEWEST_OBSERVATIONS,
    MOST_FITTED,
    UNLIKELY,
    Evidence,
    subset,
)
from noregret.optimizer.model.fit import FitMatern, is_mostly_discrete, log_likelihood
from noregret.optimizer.model.kernel import Fit
from noregret.optimizer.model.noise import (
    GaussianNoise,
    LocalNoise,
    NoiseModel,
    StudentNoise,
    are_shared,
    smoothed,
    surprising,
)
from noregret.optimizer.model.transforms import Logarithms, RobustScale, ValueScale
from noregret.optimizer.space.space import Space


@dataclass(frozen=True)
class Hypothesis:
    """Family of models of the values, the noise and f."""

    values: ValueScale
    noise: NoiseModel
    is_rough: bool = False


class Explained(NamedTuple):
    """A hypothesis, its fit, and the log evidence for it in nats."""

    hypothesis: Hypothesis
    fit: Fit
    nats: float


class FittedModels(NamedTuple):
    """Hypotheses with their fits, the best one first."""

    explained: tuple[Explained, ...]

    @property
    def scale(self) -> ValueScale:
        """Scale of the best hypothesis."""
        return self.explained[0].hypothesis.values

    @property
    def fit(self) -> Fit:
        """Fit of the best hypothesis."""
        return self.explained[0].fit

    @property
    def noise(self) -> NoiseModel:
        """Noise model of the best hypothesis."""
        return self.explained[0].hypothesis.noise

    @property
    def is_moving(self) -> bool:
        """True if f changes over time."""
        return self.fit.half_life < math.inf

    def reported(self, numbers: Floats) -> Floats:
        """Mean values where f has these numbers, in the values' own units."""
        return self.scale.original(numbers, self.fit.noise)

    def weighed(self, evidence: Evidence) -> tuple[FittedModels, Floats]:
        """Models with the noise model first that explains these standardised observations best, and the trust in each.

        The first noise model stays, unless it is Gaussian and an observation rules that out.
        """
        if self.noise.heavy or not surprising(evidence, self.fit):
            (hypothesis, fit, nats), *others = self.explained
            learnt = hypothesis.noise.learnt(evidence, fit)
            first = Explained(replace(hypothesis, noise=learnt), fit, nats)
            return FittedModels((first, *others)), learnt.trust(evidence, fit)
        tried = []
        for each in self.explained:
            noise = each.hypothesis.noise
            if each.hypothesis.values is self.scale and not noise.varies:  # an outlier is not a noise level
                trust = noise.trust(evidence, each.fit)
                tried.append((_nats(evidence, trust, noise, each.fit), each, trust))
        _, best, trust = max(tried, key=lambda each: each[0])
        return FittedModels((best, *(each for each in self.explained if each is not best))), trust

    def noise_variance(self, points: Floats) -> Floats | float:
        """Noise variance of an observation, standardised: one number, or (n,) if it varies with the (n, d) points."""
        return self.fit.noise**2 * (self.noise.levels(points) if self.noise.varies else 1.0)

    def arriving(
        self, value: float, noise: float, point: Floats, mean: float, std: float, bound: int = 0
    ) -> tuple[float, float, float]:
        """Standardised value less the prior mean of f, its noise and the trust in it, given the prediction."""
        standard, noise = self._standard(value, noise, point)
        if bound:
            return censoring.arriving(standard, bound, noise, self.noise, mean, std)
        return standard, noise, self.noise.arriving(standard - mean, std, noise)

    def distance(self, value: float, noise: float, point: Floats, mean: float, std: float) -> float:
        """Distance of an observation from the prediction, in standard deviations of a Gaussian."""
        return self.noise.distance(self.deviations(value, noise, point, mean, std))

    def deviations(self, value: float, noise: float, point: Floats, mean: float, std: float) -> float:
        """Distance of an observation from the prediction, in standard deviations of the prediction."""
        standard, noise = self._standard(value, noise, point)
        return abs(standard - mean) / math.hypot(std, noise)

    def _standard(self, value: float, noise: float, point: Floats) -> tuple[float, float]:
        """Standardised value less the prior mean of f, and noise."""
        standard = float(self.scale.standard(np.array(value))) - self.fit.centre
        if math.isnan(noise):  # unknown
            return standard, self.fit.noise * math.sqrt(float(self.noise.levels(point[None])[0]))
        return standard, float(self.scale.standard_noise(np.array(noise), np.array(value)))


@dataclass(frozen=True)
class ModelConfig:
    """Steps from observations to a posterior.

    Parameters
    ----------
    scale : Evidence -> ValueScale
    logarithms : (Evidence, ValueScale) -> Scales
        Logarithmic scales to choose from; ``Logarithms(gaps=())`` for none.
    noise_models : NoiseModels
        Noise models to choose from, from light tails to heavy ones.
    local_noise : NoiseModel or None
        Noise model whose level varies with the setting.
    fit : (Evidence, trust, Fit or None, is_rough) -> Fit
        The third argument is where to start.
    slips : bool
        Try the hypothesis that one value is a slip of the pen. Not for constraints: one violation is no slip.
    log_nats : float
        Log prior of logarithms, relative to values as they are.
    nats_to_skip : float
        Heavier tails are not fitted if they explain this many nats less under the fit without them.
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

    scale: Callable[[Evidence], ValueScale] = field(default_factory=RobustScale)
    logarithms: Callable[[Evidence, ValueScale], Iterable[ValueScale]] = field(default_factory=Logarithms)
    noise_models: tuple[NoiseModel, ...] = (GaussianNoise(), StudentNoise())
    local_noise: NoiseModel | None = field(default_factory=LocalNoise)
    fit: Callable[..., Fit] = field(default_factory=FitMatern)
    slips: bool = True
    log_nats: float = -UNLIKELY
    nats_to_skip: float = 8.0
    """Wrong in 7 of 2,600 fits: decision 0080."""
    candidates: Candidates = field(default_factory=Candidates)
    candidates_within: Candidates = field(default_factory=lambda: Candidates(entries=200_000))
    """Decision 0159."""
    initial: int = 8
    """Decision 0141; half as many are worse: decision 0189."""
    initial_parameters: int = 20
    """Decision 0141."""
    refit: tuple[int, float] = (150, 1.3)
    """Decision 0189."""
    refresh: tuple[int, float] = (2000, 1.05)
    """Half as often is worse: decision 0189."""
    longest: int = 100
    """Decision 0080."""
    drift_milestones: tuple[int, float, float] = (100, 1.2, 200)
    """At most 200 answers apart: decision 0160."""
    alternations: int = 3
    """One is worse: decision 0189."""
    most: int = MOST_FITTED
    exact: int = 500
    """Decision 0080."""

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
        """Fit the hypotheses, the noise first, then logarithms of the values.

        Densities of numbers on two scales are compared as densities of the values, p(number) |d number / d value|. The
        slope at the best point counts as that at the second best: a ceiling may have been chosen close to the former.
        Closer ceilings are tried as long as they explain more.
        """
        exact, part = evidence.exact, subset(evidence, self.most)
        plain = self.scale(exact)
        part = replace(part, values=plain.limited(part.values))
        slopes_at = np.minimum(part.exact.values, part.exact.second_best())
        explained = self.noises(plain, plain.standardised(part), plain.log_slope(slopes_at))
        even = next(each for each in explained if not each.hypothesis.noise.varies)  # a logarithm is to make it so
        for scale in self.logarithms(exact, plain):
            standard, offset = scale.standardised(part), scale.log_slope(slopes_at) + self.log_nats
            tried = self.explain(replace(even.hypothesis, values=scale), standard, offset)
            if tried.nats <= explained[0].nats:
                explained.append(tried)
                break
            explained = self.noises(scale, standard, offset, tried) + explained
        return best_first(explained)

    def noises(
        self, scale: ValueScale, evidence: Evidence, offset: float = 0.0, known: Explained | None = None
    ) -> list[Explained]:
        """Noise models on one scale, given standardised observations, the best one first.

        Heavier tails are tried as long as they explain more. One of the models may be ``known``.
        """
        first = Hypothesis(scale, self.noise_models[0], is_mostly_discrete(evidence))
        tried = [known if known and known.hypothesis == first else self.explain(first, evidence, offset)]
        for noise in self.noise_models[1:]:
            last = tried[-1]
            under_last = _nats_under(evidence, noise, last.fit) + offset
            heavier = replace(first, noise=noise)
            if under_last < last.nats - self.nats_to_skip:
                tried.append(Explained(heavier, last.fit, under_last))
            else:
                tried.append(self.explain(heavier, evidence, offset))
            if tried[-1].nats <= last.nats:
                break
        tried += self._slip(tried, evidence, offset)
        tried.sort(key=lambda each: -each.nats)
        return self._local(tried[0], evidence, offset) + tried

    def explain(
        self, hypothesis: Hypothesis, evidence: Evidence, offset: float = 0.0, start: Fit | None = None
    ) -> Explained:
        """Fit a hypothesis to standardised observations; ``offset`` is added to its evidence.

        Trust and fit are improved in turn; from a ``start`` once is enough. Bounds are left out at first, then replaced
        by what stands for them: given that, the slope of the log evidence is the one of Gaussian observations.
        """
        noise, known, is_exact = hypothesis.noise, evidence.exact, evidence.bounds is None
        trust = noise.first(known) if start is None else noise.trust(known, start)
        fit = self.fit(known, trust, start, hypothesis.is_rough)
        for _ in range(self.alternations - 1 if not is_exact or (noise.heavy and start is None) else 0):
            if is_exact:
                trust = noise.trust(evidence, fit)
            else:
                known, trust, *_ = censoring.resolved(evidence, fit, noise)
            fit = self.fit(known, trust, fit, hypothesis.is_rough)
        nats = _nats(evidence, trust, noise, fit) if is_exact else _nats_under(evidence, noise, fit)
        return Explained(hypothesis, fit, nats + offset)

    def _slip(self, tried: Sequence[Explained], evidence: Evidence, offset: float) -> list[Explained]:
        """The last noise model with a fit to all points but one, the one that the others predict worst; or nothing.

        That one may be a slip of the pen: any of n points, and anything within `ABSURD` units, which together with the
        prior is ln n + ln(2 ABSURD) + `UNLIKELY` nats. A fit to all takes it for a narrow hill or for noise, and trusts
        it, as long as there are few points; with ``enough`` of them heavy tails doubt it anyway. It is not the newest
        one: its neighbours may still be asked for; nor a failure, which counts as that.
        """
        count, search = len(evidence.points), self.fit
        is_open = isinstance(search, FitMatern) and FEWEST_OBSERVATIONS < count < search.enough
        is_plain = self.slips and evidence.bounds is None and evidence.ages is None
        if not is_open or not is_plain or not tried[-1].hypothesis.noise.heavy:
            return []
        assert isinstance(search, FitMatern)
        fit = search.usual(evidence, tried[0].hypothesis.is_rough)
        surprise = smoothed(fit.covariance(evidence), evidence, 1 / evidence.variance(fit.noise**2), fit.centre)[2]
        if evidence.when is not None:
            surprise[evidence.where[evidence.when == evidence.when.max()]] = 0.0
        suspect = int(np.argmax(np.abs(surprise)))
        is_within = bool((np.abs(evidence.values[evidence.where == suspect]) <= ABSURD).all())
        if abs(surprise[suspect]) <= CAUTION or not is_within:
            return []
        others = np.delete(np.arange(count), suspect)
        without = self.explain(tried[0].hypothesis, evidence.only(others), offset)
        nats = without.nats - math.log(count) - math.log(2 * ABSURD) - UNLIKELY
        if nats <= max(explained.nats for explained in tried):
            return []
        again = self.explain(tried[0].hypothesis, evidence, offset, without.fit)  # the search may have missed this fit
        return [max(again, Explained(tried[-1].hypothesis, without.fit, nats), key=lambda explained: explained.nats)]

    def _local(self, best: Explained, evidence: Evidence, offset: float) -> list[Explained]:
        """The noise level that varies with the setting, if it explains more than this.

        It is fitted if it does so under the other's fit already, or under one with four times the lengthscales: a fit
        that knows one level of noise may have taken the rest of it for signal. There is none where f changes or some
        noise is known, nor where many observations share a value: densities grow without bound there. Nor is there one
        where some observations are bounds, which say little about the noise.
        """
        noise = self.local_noise
        is_even = evidence.ages is None and np.isnan(evidence.noise).all() and not are_shared(evidence).any()
        if noise is None or not is_even or evidence.bounds is not None:
            return []
        fits = best.fit, best.fit.scaled(4.0)
        scores = [_nats(evidence, noise.trust(evidence, fit), noise, fit) + offset for fit in fits]
        if max(scores) <= best.nats:
            return []
        local, hypothesis = fits[int(np.argmax(scores))], replace(best.hypothesis, noise=noise)
        for _ in range(self.alternations - 1):
            tried = self.explain(hypothesis, evidence, offset, local)
            local = tried.fit
        return [tried] if tried.nats > best.nats else []


def _nats(evidence: Evidence, trust: Floats, noise: NoiseModel, fit: Fit) -> float:
    """Log evidence: a lower bound on the log likelihood of standardised observations, plus the log prior of the fit."""
    return log_likelihood(evidence, trust, fit) - noise.cost(evidence, trust) - fit.neg_log_prior


def _nats_under(evidence: Evidence, noise: NoiseModel, fit: Fit) -> float:
    """Log evidence of a noise model under a fit."""
    if evidence.bounds is None:
        return _nats(evidence, noise.trust(evidence, fit), noise, fit)
    values, trust, _, nats = censoring.resolved(evidence, fit, noise)
    cost = noise.cost(evidence.exact, trust[evidence.bounds == 0])
    return log_likelihood(values, trust, fit) + nats - cost - fit.neg_log_prior


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


def best_first(explained: Sequence[Explained]) -> FittedModels:
    """Models in the order of their evidence."""
    return FittedModels(tuple(sorted(explained, key=lambda each: -each.nats)))
