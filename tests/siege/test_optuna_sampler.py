"""More of `tests.integrations.test_optuna_sampler`, nightly."""

import numpy as np
import optuna
import pytest

from noregret.integrations.optuna import NoRegretSampler


@pytest.mark.slow
def test_heavy_tails_need_no_option():
    rng = np.random.default_rng(1)
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return 4 * (x - 0.7) ** 2 + 0.05 * rng.standard_t(1.2)

    study.optimize(objective, n_trials=60)
    assert abs(study.sampler.best(study).params["x"] - 0.7) < 0.15
