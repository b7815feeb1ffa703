"""Configurations of the Optimizer with another rule, and posteriors for tests."""

import numpy as np

from noregret.optimizer import OptimizerConfig
from noregret.optimizer.model.hypotheses import Explained, FittedModels, Hypothesis
from noregret.optimizer.model.noise import GaussianNoise
from noregret.optimizer.model.posterior import Rows, condition
from noregret.optimizer.model.transforms import Scale
from noregret.optimizer.questions.questions import Improve, Recheck, RemeasureBaseline


def with_rule(rule, **options):
    """The default configuration with this rule, and with these options."""
    return OptimizerConfig(questions=(Recheck(), RemeasureBaseline(), Improve(rule=rule)), **options)


def fitted(fit, scale=None):
    """Models of one hypothesis: Gaussian noise and this fit, by default on the scale of the values themselves."""
    return FittedModels((Explained(Hypothesis(scale or Scale(0.0, 1.0), GaussianNoise()), fit, 0.0),))


def observed(kernel, points, values, variance):
    """A Gaussian process given a value of this noise variance at each of (n, d) points."""
    points, values = np.asarray(points, dtype=float), np.asarray(values, dtype=float)
    return condition(kernel, Rows(points, values, np.full(len(values), variance)))
