"""NoRegretSampler under Optuna's own conformance tests."""

import optuna
import pytest

from noregret.integrations.optuna import NoRegretSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)

cases = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna's own tests come with version 5")


@pytest.mark.filterwarnings("ignore:parameter '.*' is drawn at random")
class TestConformance(cases.BasicSamplerTestCase, cases.RelativeSamplerTestCase, cases.MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return NoRegretSampler
