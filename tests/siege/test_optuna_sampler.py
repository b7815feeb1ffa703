"""More of `tests.integrations.test_optuna_sampler`, nightly."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from tests.integrations.test_optuna_sampler import SPACE, value

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


def test_thousands_of_choices_are_drawn_at_random():
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    space = {"x": FloatDistribution(0, 1), "name": CategoricalDistribution([f"n{i}" for i in range(2000)])}
    with pytest.warns(UserWarning, match="parameter 'name' is drawn at random: it has more than 1000 choices"):
        study.tell(study.ask(space), 1.0)
    for _ in range(15):
        trial = study.ask(space)
        study.tell(trial, (trial.params["x"] - 0.4) ** 2)
    with pytest.warns(UserWarning, match="leaves out parameter 'name' of 16 of 16 trials"):
        assert set(study.sampler.best(study).params) == {"x"}


def test_a_parameter_that_one_trial_lacks_is_drawn_at_random_with_a_warning():
    """And the advice works: a study of the trials that have the parameter learns it."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}

    def measured(trial):
        study.tell(trial, (trial.params["x"] - 0.4) ** 2 + (trial.params.get("y", 0) - 0.7) ** 2)

    for _ in range(20):
        measured(study.ask(space))
    measured(study.ask({"x": space["x"]}))
    with pytest.warns(UserWarning, match="parameter 'y' is drawn at random: trial 20 was completed without") as caught:
        measured(study.ask(space))
    measured(study.ask(space))  # once is enough
    new = optuna.create_study(sampler=NoRegretSampler(seed=0))
    eval(str(caught[0].message).rpartition(": ")[2], {"new": new, "study": study})
    assert len(new.trials) == 22
    new.ask(space)
    assert abs(new.sampler.best(new).params["y"] - 0.7) < 0.1


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_all_kinds_of_parameters_in_both_directions(direction):
    sign = 1 if direction == "minimize" else -1
    rng = np.random.default_rng(0)
    study = optuna.create_study(direction=direction, sampler=NoRegretSampler(seed=0))
    for _ in range(40):
        trial = study.ask(SPACE)
        study.tell(trial, sign * (value(trial.params) + 0.05 * rng.standard_normal()))
    best = study.sampler.best(study)
    assert set(best.params) == set(SPACE)
    assert value(best.params) < 0.6
    assert best.lower <= best.estimate <= best.upper
    assert sign * best.estimate < 1
