from __future__ import annotations

import numpy as np
import optuna
import optunahub
import pytest


module = optunahub.load_local_module("samplers/noregret", registry_root="package")


def test_best_is_near_the_optimum_despite_outliers() -> None:
    noise = np.random.default_rng(0)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        return (x - 0.5) ** 2 + (-5.0 if noise.random() < 0.1 else 0.05 * noise.standard_normal())

    sampler = module.NoRegretSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=40)
    assert study.best_value < -4  # an outlier
    assert sampler.best(study).params["x"] == pytest.approx(0.5, abs=0.2)


def test_pruner_works_with_other_samplers() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(5):
            trial.report(x + 1 / (step + 1), step)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return x + 0.2

    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=module.NoRegretPruner()
    )
    study.optimize(objective, n_trials=15)
    assert len(study.trials) == 15
