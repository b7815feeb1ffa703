"""Robust estimators with every rule and kind of features: they find a good arm despite spikes."""

import pytest
from tests.belief import test_estimators
from tests.belief.test_estimators import ANY, QFF, SE, check_despite_spikes

from noregret import UCB, Constant, ExpectedImprovement, Nystrom, Thompson

one_thread = test_estimators.one_thread


@pytest.mark.parametrize("rule", [UCB(Constant(1.0)), Thompson(Constant(0.5)), ExpectedImprovement()])
@pytest.mark.parametrize("estimator", ANY)
@pytest.mark.parametrize("features", [QFF, Nystrom(SE, 5.0)])
def test_every_estimator_works_with_every_rule_and_feature(features, estimator, rule):
    check_despite_spikes(features, estimator, rule)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ANY)
def test_every_estimator_finds_a_good_arm_despite_spikes(estimator):
    check_despite_spikes(QFF, estimator, UCB(Constant(1.0)))
