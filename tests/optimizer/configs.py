"""Configurations of the Optimizer with another rule, and posteriors for tests."""

import numpy as np

from noregret.optimizer import OptimizerConfig
from noregret.optimizer.checking import UNKNOWN
from noregret.optimizer.model.history import Answer, Signed
from noregret.optimizer.model.hypotheses import Explained, FittedModels, Hypothesis
from noregret.optimizer.model.kernel import Fit
from noregret.optimizer.model.noise import GaussianNoise
from noregret.optimizer.model.posterior import ObservationRows, condition
from noregret.optimizer.model.transforms import ValueScale
from noregret.optimizer.questions.explore import AroundSurprise
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline


def with_rule(rule, **options):
    """The default configuration with this rule, and with these options."""
    return OptimizerConfig(questions=(Recheck(), RemeasureBaseline(), AroundSurprise(), Improve(rule=rule)), **options)


def fitted(fit, scale=None):
    """Models of one hypothesis: Gaussian noise and this fit, by default on the scale of the values themselves."""
    return FittedModels((Explained(Hypothesis(scale or ValueScale(0.0, 1.0), GaussianNoise()), fit, 0.0),))


def fit_of(lengthscales, amplitude, noise, additive=0.0, **options):
    """A fit of an f around 0."""
    return Fit(lengthscales, amplitude, noise, centre=0.0, neg_log_prior=0.0, additive=additive, **options)


def answer_of(where, **values):
    """An answer that stands alone, with values of unknown noise."""
    return Answer(where, {name: Signed(value, UNKNOWN, bound=0) for name, value in values.items()}, run=-1)


def observed(kernel, points, values, variance):
    """A Gaussian process given a value of this noise variance at each of (n, d) points."""
    points, values = np.asarray(points, dtype=float), np.asarray(values, dtype=float)
    return condition(kernel, ObservationRows(points, values, np.full(len(values), variance)))
