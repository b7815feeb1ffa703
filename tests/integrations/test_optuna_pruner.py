"""NoRegretPruner: trials that cannot become the best are pruned, others are not."""

import pickle

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from noregret.integrations.optuna import NoRegretPruner, NoRegretSampler

X = {"x": FloatDistribution(0, 1)}
STEPS = 27


def loss(x, step):
    return 4 * (x - 0.3) ** 2 + 1 / (step + 1)


def finished(x, steps=STEPS, noise=0.0):
    """A trial that was completed, or pruned after fewer steps."""
    values = {step: loss(x, step) + noise for step in range(steps)}
    state = TrialState.COMPLETE if steps == STEPS else TrialState.PRUNED
    params = {"params": {"x": x}, "distributions": X}
    return create_trial(state=state, value=values[steps - 1], intermediate_values=values, **params)


def study_with(trials, **options):
    study = optuna.create_study(pruner=NoRegretPruner(), **options)
    study.add_trials(trials)
    return study


def pruned_at(study, x, value=loss):
    """Step at which a trial with this setting is pruned, None if it is not."""
    study.enqueue_trial({"x": x})
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
    for step in range(STEPS):
        trial.report(value(x, step), step)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return step
    study.tell(trial, value(x, step))
    return None


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [NoRegretSampler(seed=0), optuna.samplers.RandomSampler(seed=0)])
def test_bad_trials_are_pruned_and_good_ones_are_not(sampler):
    rng = np.random.default_rng(0)
    trials = [finished(float(x), noise=0.01 * rng.normal()) for x in rng.random(25)]
    study = study_with(trials, sampler=sampler)
    assert pruned_at(study, 0.95) < STEPS - 1
    assert pruned_at(study, 0.3) is None


def test_nothing_is_pruned_before_there_is_something_to_compare_with():
    study = study_with([])
    assert pruned_at(study, 0.9) is None
    assert pruned_at(study, 0.95) is None
    assert repr(pickle.loads(pickle.dumps(study.pruner))) == "NoRegretPruner()"


@pytest.mark.slow
def test_most_trials_go_on_where_all_settings_are_the_same():
    """Nothing is lost there; 9 of these 25 were pruned when this was written."""
    rng = np.random.default_rng(1)
    study = study_with([], sampler=optuna.samplers.RandomSampler(seed=1))
    found = [pruned_at(study, float(x), lambda x, step: 1 / (step + 1) + 0.05 * rng.normal()) for x in rng.random(25)]
    assert sum(step is not None for step in found) <= 12


def test_pruned_trials_count_as_values_of_their_step_and_not_as_results():
    rng = np.random.default_rng(0)
    done = [finished(float(x), noise=0.01 * rng.normal()) for x in np.linspace(0.05, 0.95, 12)]
    cut = [finished(float(x), steps=2, noise=0.01 * rng.normal()) for x in np.linspace(0.2, 0.4, 12)]
    study = study_with(done + cut, sampler=NoRegretSampler(seed=0))
    best = study.sampler.best(study)
    true = loss(best.params["x"], STEPS - 1)
    assert best.params["x"] == pytest.approx(0.3, abs=0.1)
    assert best.estimate == pytest.approx(true, abs=0.1), "reports of step 1 are larger by 0.46"


def test_a_parameter_may_be_named_step():
    space = {"step": FloatDistribution(0, 1), "reported step": FloatDistribution(0, 1)}
    study = optuna.create_study(sampler=NoRegretSampler(seed=0), pruner=NoRegretPruner())
    for number in range(12):
        x = number / 12
        values = {step: loss(x, step) for step in range(9 if number % 3 else 4)}
        state = TrialState.COMPLETE if number % 3 else TrialState.PRUNED
        params = {"params": {"step": x, "reported step": x}, "distributions": space}
        study.add_trial(create_trial(state=state, value=max(values), intermediate_values=values, **params))
    assert study.sampler.best(study).params.keys() == space.keys()
    trial = study.ask(space)
    trial.report(1.0, 0)
    assert trial.should_prune() in (True, False)
