"""More of `tests.integrations.test_optuna_conditions`, nightly."""

import numpy as np
import optuna
import pytest
from tests.integrations.test_optuna_conditions import branches, check_asked, layers, nested, study_of

from noregret.integrations.optuna import NoRegretSampler


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:parameter '.*' is drawn at random", "ignore:what is recommended leaves out")
@pytest.mark.parametrize("seed", range(4))
def test_no_search_space_is_too_dynamic(seed):
    """Parameters come and go at random, by numbers, with ranges that depend on others; some are pruned."""
    rng = np.random.default_rng(seed)

    def objective(trial):
        value = trial.suggest_float("x", 0, 1)
        size = trial.suggest_int("size", 1, 5)
        if value > 0.5:
            value += trial.suggest_float("by number", 0, 1)
        if rng.random() < 0.5:
            value += trial.suggest_int("by chance", 0, 7)
        value += trial.suggest_int("up to size", 0, size)
        value += trial.suggest_float("up to x", 0, value)
        if size % 2:
            value += len(trial.suggest_categorical("odd", ["a", "bb", "ccc"]))
        if rng.random() < 0.1:
            raise optuna.TrialPruned
        return value

    study = optuna.create_study(sampler=NoRegretSampler(seed=seed))
    study.optimize(objective, n_trials=40)
    assert {"x", "size"} <= study.sampler.best(study).params.keys()
    assert len(study.trials) == 40


@pytest.mark.parametrize("seed", range(2))
def test_the_right_branch_is_found_and_complete(seed):
    noise = np.random.default_rng(seed)
    study = study_of(lambda trial: branches(trial) + 0.03 * noise.standard_normal(), 50, seed)
    best = study.sampler.best(study)
    assert set(best.params) == {"kind", "y", "z"}
    assert branches(optuna.trial.FixedTrial(best.params)) < 0.1


@pytest.mark.parametrize("objective", [layers, nested])
def test_suggestions_and_recommendations_are_as_the_objective_asks(objective):
    check_asked(objective)
